//! Configurations: refused, described, written.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::support::*;

// check: FISK-20
#[test]
fn a_refused_configuration_is_told_with_its_places_and_nothing_else() {
    let world = World::new("harnes: {}\nllm: {}\n", vec![]);
    for command in [
        &["run", "go"][..],
        &["info"],
        &["mcp"],
        &["a2a"],
        &["session", "ls"],
    ] {
        let ran = world.run(command);
        assert_eq!(
            (ran.code, ran.stderr.as_str(), ran.stdout.as_str()),
            (
                Some(2),
                "agent.yaml:3:1: unknown key \"harnes\", did you mean \"harness\"?\n\
                 agent.yaml:4:1: the key \"llm\" stands twice: first on line 2\n",
                ""
            ),
            "{command:?}"
        );
    }
}

// check: FISK-20
#[test]
fn what_means_nothing_to_the_application_refuses_the_start() {
    for (more, told) in [
        (
            "global_flags: [colour]\n",
            "agent.yaml: global_flags[0]: \"colour\"",
        ),
        (
            "global_flags: [backdoor]\n",
            "agent.yaml: global_flags[0]: \"backdoor\"",
        ),
    ] {
        let world = World::new(more, vec![]);
        let ran = world.run(&["run", "go"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.starts_with(told), "{ran:?}");
        assert!(world.requests().is_empty());
    }
}

// check: FISK-20
#[test]
fn two_commands_with_one_name_refuse_the_start_and_are_named() {
    let world = World::new("", vec![]);
    for (commands, told) in [
        (
            json!([{"name": "a_b"}, {"name": "a", "commands": [{"name": "b"}]}]),
            "the commands \"a_b\" and \"a b\" would both be the tool \"a_b\"",
        ),
        (
            json!([{"name": "ask_human_input"}]),
            "the command \"ask_human_input\" would have the name of the built-in tool",
        ),
    ] {
        let model = json!({"name": "app", "commands": commands});
        let script = format!("#!/bin/sh\ncat <<'END'\n{model}\nEND\n");
        fs::write(world.path("app.sh"), script).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(world.path("app.sh"), mode).unwrap();
        fs::write(world.path("agent.yaml"), "application_path: ./app.sh\n").unwrap();
        let ran = world.run(&["info"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
}

#[test]
fn a_configuration_that_is_not_there_says_how_to_get_one() {
    let world = World::new("", vec![]);
    fs::remove_file(world.path("agent.yaml")).unwrap();
    let ran = world.run(&["info"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("fisk init APPLICATION"), "{ran:?}");
    let ran = world.run(&["info", "--config", "other.yaml"]);
    assert!(
        ran.code == Some(2) && ran.stderr.starts_with("other.yaml: "),
        "{ran:?}"
    );
}

#[test]
fn an_application_that_is_not_there_is_a_bad_configuration() {
    let world = World::new("", vec![]);
    fs::write(world.path("agent.yaml"), "application_path: ./nothing\n").unwrap();
    let ran = world.run(&["info"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.starts_with("agent.yaml: application_path: "),
        "{ran:?}"
    );
}

// check: FISK-70
#[test]
fn info_shows_tools_tags_gates_and_warnings_without_a_key() {
    let world = World::new(
        "harness: {confirm_tags: ['impact:rw', 'impact:nosuch']}\n",
        vec![],
    );
    let mut command = world.fisk(&["info"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let told = ran(&mut command);
    assert_eq!(told.code, Some(0), "{told:?}");
    let line = |name: &str| {
        let mut lines = told.stdout.lines().filter(|line| line.starts_with(name));
        lines
            .next()
            .unwrap_or_else(|| panic!("{name}: {told:?}"))
            .to_owned()
    };
    assert!(line("restart ").contains("ai:confirm, impact:rw"));
    assert!(line("update ").contains("impact:rw"));
    assert!(!told.stdout.contains("destroy") && !told.stdout.contains("secret"));
    assert!(
        told.stderr
            .contains("harness.confirm_tags[1]: \"impact:nosuch\" matches no command"),
        "{told:?}"
    );
    let told: Value = serde_json::from_str(&world.run(&["info", "--json"]).stdout).unwrap();
    let tools = told["tools"].as_array().unwrap();
    let need = tools.iter().find(|tool| tool["name"] == "need").unwrap();
    assert!(
        need["required"]
            .as_array()
            .unwrap()
            .contains(&"alpha".into()),
        "{need}"
    );
    assert!(
        told["warnings"].to_string().contains("impact:nosuch"),
        "{told}"
    );
}

// check: FISK-70
#[test]
fn init_writes_a_configuration_that_gates_what_changes_something_and_never_over_another() {
    let world = World::new("", vec![]);
    let application = application();
    let application = application.to_str().unwrap();
    let before = world.read("agent.yaml");
    let ran = world.run(&["init", application]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("agent.yaml exists"), "{ran:?}");
    assert_eq!(world.read("agent.yaml"), before);
    let ran = world.run(&["init", application, "--config", "new.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = world.read("new.yaml");
    assert!(
        text.contains("confirm_tags: [\"impact:rw\", \"impact:destructive\"]"),
        "{text}"
    );
    assert!(text.contains("#   ai:confirm on 4"), "{text}");
    let info = world.run(&["info", "--config", "new.yaml"]);
    assert_eq!(info.code, Some(0), "{info:?}");
    let update = info
        .stdout
        .lines()
        .find(|line| line.starts_with("update "))
        .unwrap();
    assert!(update.contains("impact:rw"), "{update}");
}

#[test]
fn an_application_that_does_not_describe_itself_is_told_by_name() {
    let world = World::new("", vec![]);
    let ran = world.run(&["init", "/bin/true", "--config", "new.yaml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("true"), "{ran:?}");
    assert!(!world.path("new.yaml").exists());
}

#[test]
fn what_the_program_says_about_itself_can_be_cut_off_by_a_pipe() {
    let world = World::new("", vec![]);
    assert!(world.run(&["version"]).stdout.starts_with("fisk "));
    assert!(world.run(&["man"]).stdout.contains(".TH"));
    assert!(world.run(&["completion", "bash"]).stdout.contains("_fisk"));
    let mut child = world.fisk(&["completion", "zsh"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(end(&mut child).code(), Some(0));
}
