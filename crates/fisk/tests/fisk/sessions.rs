//! Runs that end in the middle, and go on.

use std::{fs, process::Child};

use fisk_llm::standin::Turn;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{runs::is_running, support::*};

const START: [&str; 5] = ["run", "--checkpoint", "--name", "one", "go"];
const RESUME: [&str; 3] = ["run", "--resume", "one"];

fn done() -> Turn {
    Turn::text("done")
}

/// A command that says that it began, and then takes a while.
fn slow(world: &World) {
    let script = "#!/bin/sh\nif [ \"$1\" = --fisk-introspect ]; then exec \"$APP\" \"$@\"; fi\n\
                  echo \"$@\" >> began\nif [ -e wait ]; then sleep 1000; fi\nexec \"$APP\" \"$@\"\n";
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(world.path("app.sh"), script).unwrap();
    fs::set_permissions(world.path("app.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let text = world.read("agent.yaml");
    let rest = text.split_once('\n').unwrap().1;
    fs::write(
        world.path("agent.yaml"),
        format!("application_path: ./app.sh\n{rest}"),
    )
    .unwrap();
    fs::write(world.path("wait"), "").unwrap();
}

fn start(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.fisk(arguments);
    command.env("APP", application());
    command.spawn().unwrap()
}

fn go_on(world: &World, arguments: &[&str]) -> Ran {
    let mut command = world.fisk(arguments);
    ran(command.env("APP", application()))
}

fn began(world: &World) -> usize {
    world.read("began").lines().count()
}

fn three_calls() -> Vec<Turn> {
    let calls = Turn::tool_use("t1", "status", json!({})).and_tool_use("t2", "update", json!({}));
    vec![calls, Turn::tool_use("t3", "status", json!({})), done()]
}

// check: FISK-71
#[test]
fn a_crash_in_the_middle_of_a_call_repeats_that_call_alone() {
    let world = World::new("", three_calls());
    slow(&world);
    let mut child = start(&world, &START);
    until("the command", || began(&world) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(world.path("wait")).unwrap();
    let ran = go_on(&world, &RESUME);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("status may have run already"),
        "{ran:?}"
    );
    assert_eq!(world.read("began"), "status\nstatus\nupdate\nstatus\n");
    // The model was asked for its first reply once.
    assert_eq!(world.requests().len(), 3);
}

// check: FISK-71
#[test]
fn a_call_that_two_crashes_cut_off_is_not_run_a_third_time() {
    let world = World::new("", three_calls());
    slow(&world);
    for (n, arguments) in [(1, &START[..]), (2, &RESUME)] {
        let mut child = start(&world, arguments);
        until("the command", || began(&world) == n);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    fs::remove_file(world.path("wait")).unwrap();
    assert_eq!(go_on(&world, &RESUME).code, Some(0));
    assert_eq!(world.read("began"), "status\nstatus\nupdate\nstatus\n");
    let (content, is_error) = &world.results()[0];
    assert!(
        *is_error && content.contains("not known whether this command ran"),
        "{content}"
    );
}

// check: FISK-71
#[test]
fn a_suspend_waits_for_the_running_call_and_repeats_none() {
    for number in [Signal::SIGTERM, Signal::SIGINT] {
        let world = World::new("", three_calls());
        slow(&world);
        // Short enough to wait for.
        let script = world
            .read("app.sh")
            .replace("sleep 1000", "while [ -e wait ]; do sleep 0.05; done");
        fs::write(world.path("app.sh"), script).unwrap();
        let mut child = start(&world, &START);
        until("the command", || began(&world) == 1);
        signal(&child, number);
        fs::remove_file(world.path("wait")).unwrap();
        let output = child.wait_with_output_soon();
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(
            output.stderr.contains("go on with: fisk run --resume one"),
            "{output:?}"
        );
        assert_eq!(began(&world), 1);
        let listed = world.run(&["session", "ls"]);
        assert!(listed.stdout.contains("suspended"), "{listed:?}");
        let ran = go_on(&world, &RESUME);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "done\n"),
            "{ran:?}"
        );
        assert_eq!(world.read("began"), "status\nupdate\nstatus\n");
        assert!(!ran.stderr.contains("may have run already"), "{ran:?}");
    }
}

trait Soon {
    fn wait_with_output_soon(&mut self) -> Ran;
}

impl Soon for Child {
    fn wait_with_output_soon(&mut self) -> Ran {
        use std::io::Read as _;
        let code = end(self).code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        self.stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        Ran {
            code,
            stdout,
            stderr,
        }
    }
}

// check: FISK-71
#[test]
fn a_call_that_the_operator_killed_has_a_result_and_is_not_repeated() {
    let world = World::new(
        "",
        vec![
            Turn::tool_use("t1", "sleep", json!({"for": "50s", "deaf": true})),
            done(),
        ],
    );
    let mut child = start(&world, &START);
    until("the command", || is_running(&child));
    // Signals that come together are one, so the second is sent until it is heard.
    until("the end", || {
        signal(&child, Signal::SIGTERM);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait_with_output_soon().code, Some(3));
    let ran = go_on(&world, &RESUME);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        world.results()[0]
            .0
            .contains("the operator stopped the run")
    );
}

// check: FISK-8
#[test]
fn a_resume_forgets_what_was_allowed_for_the_session() {
    let gated = |id: &str| Turn::tool_use(id, "restart", json!({}));
    let hang = done().delay(std::time::Duration::from_secs(100));
    let world = World::new("", vec![gated("t1"), hang, gated("t2"), done()]);
    let mut screen = world.at_terminal(&START);
    screen.sees("[y/s/v/N] ");
    screen.types("s");
    until("the second turn", || world.requests().len() == 2);
    screen.child.kill().unwrap();
    screen.child.wait().unwrap();
    let mut screen = world.at_terminal(&RESUME);
    screen.sees("[y/s/v/N] ");
    screen.types("n");
    assert_eq!(screen.ends().code, Some(0));
    assert!(
        world.results()[1].0.contains("\"allowed\":false"),
        "{:?}",
        world.results()
    );
}

// check: FISK-23
#[test]
fn a_resume_as_another_run_is_refused_and_told_what_changed() {
    let world = World::new("", vec![done().delay(std::time::Duration::from_secs(100))]);
    let mut child = start(&world, &START);
    until("the model", || world.requests().len() == 1);
    // A signal takes a run away from the model, too.
    signal(&child, Signal::SIGTERM);
    assert_eq!(end(&mut child).code(), Some(3));
    for (more, told) in [
        (
            "harness: {confirm_tags: ['impact:rw']}\n",
            "harness.confirm_tags: was none, is impact:rw; the gate of the tool \"change_apply\": was ai:confirm, is ai:confirm, impact:rw",
        ),
        ("system_prompt: other\n", "system_prompt changed"),
        (
            "exclude: {tools: ['^update$']}\n",
            "exclude was [] and is [\"tool ^update$\"]; the tool \"update\" is gone",
        ),
        (
            "harness: {human_in_the_loop: {enabled: true}}\n",
            "harness.human_in_the_loop.enabled was \"false\" and is \"true\"",
        ),
    ] {
        world.configure(more);
        let ran = world.run(&RESUME);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.stderr.contains("cannot be resumed") && ran.stderr.contains(told),
            "{ran:?}"
        );
    }
    let journal = world.journal("one");
    let text = world
        .read("agent.yaml")
        .replace("claude-test", "claude-other");
    fs::write(world.path("agent.yaml"), text).unwrap();
    let ran = world.run(&RESUME);
    assert!(
        ran.stderr
            .contains("llm.model was \"claude-test\" and is \"claude-other\""),
        "{ran:?}"
    );
    assert_eq!(world.journal("one"), journal);
    assert_eq!(world.requests().len(), 1);
}

// check: FISK-23
#[test]
fn one_run_at_a_time_and_none_after_the_end() {
    let world = World::new(
        "",
        vec![done().delay(std::time::Duration::from_secs(100)), done()],
    );
    let mut child = start(&world, &START);
    until("the model", || world.requests().len() == 1);
    let second = world.run(&RESUME);
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("is in use: another run holds it"),
        "{second:?}"
    );
    let taken = world.run(&START);
    assert!(
        taken.code == Some(1) && taken.stderr.contains("the session \"one\" exists"),
        "{taken:?}"
    );
    assert!(world.run(&["session", "ls"]).stdout.contains("running"));
    assert_eq!(world.run(&["session", "rm", "one"]).code, Some(1));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.run(&RESUME).code, Some(0));
    let over = world.run(&RESUME);
    assert!(
        over.code == Some(1) && over.stderr.contains("is completed"),
        "{over:?}"
    );
    let usage = world.run(&["run", "--resume", "one", "and a prompt"]);
    assert_eq!(usage.code, Some(2));
}

#[test]
fn a_spent_budget_can_be_raised_and_counts_over_the_resume() {
    let call = |id: &str| Turn::tool_use(id, "status", json!({}));
    let world = World::new("", vec![call("t1"), call("t2"), done()]);
    let budget = |calls: u32| {
        let text = format!(
            "application_path: {}\nllm: {{model: claude-test, budget: {{max_iterations: {calls}}}}}\n",
            application().display()
        );
        fs::write(world.path("agent.yaml"), text).unwrap();
    };
    budget(1);
    let ran = world.run(&START);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("budget spent: max_iterations") && ran.stderr.contains("--resume one"),
        "{ran:?}"
    );
    assert_eq!(world.run(&RESUME).code, Some(1));
    assert_eq!(world.requests().len(), 1);
    budget(3);
    assert_eq!(world.run(&RESUME).code, Some(0));
}

#[test]
fn sessions_are_listed_shown_and_removed() {
    let world = World::new(
        "",
        vec![Turn::tool_use("t1", "hostile", json!({})), done(), done()],
    );
    assert!(world.run(&["session", "ls"]).stderr.contains("no sessions"));
    assert_eq!(world.run(&START).code, Some(0));
    let unnamed = world.run(&["run", "--checkpoint", "go"]);
    assert!(unnamed.stderr.starts_with("session run-"), "{unnamed:?}");
    let listed = world.run(&["session", "ls"]);
    assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
    assert!(listed.stdout.contains("completed"), "{listed:?}");
    let shown = world.run(&["session", "show", "one"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("call of hostile") && shown.stdout.contains("  done"),
        "{shown:?}"
    );
    assert!(
        !shown.stdout.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
        "{shown:?}"
    );
    let json = world.run(&["session", "show", "one", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["entries"][0]["record"]["event"], "started");
    let ran = world.run(&["session", "rm", "one", "none"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(1), "error: there is no session \"none\"\n")
    );
    assert_eq!(world.run(&["session", "show", "one"]).code, Some(1));
}

// check: FISK-23
#[test]
fn a_torn_last_record_is_dropped_with_a_warning() {
    let world = World::new(
        "",
        vec![done().delay(std::time::Duration::from_secs(100)), done()],
    );
    let mut child = start(&world, &START);
    until("the model", || world.requests().len() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let torn = format!("{}{{\"at\":1,\"rec", world.journal("one"));
    fs::write(world.path("sessions/one.jsonl"), torn).unwrap();
    let ran = world.run(&RESUME);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("its last record is torn and was dropped"),
        "{ran:?}"
    );
}
