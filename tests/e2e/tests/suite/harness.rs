//! The whole way of an approval: `fisk` with nobody at a terminal, a model's reply, a real orchestrator, and a person with
//! the `fuse` command line.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use fisk_llm::standin::{self, KEY, Turn};
use fuse_e2e::{Api, Env, Server, Store, both, each_store, fuse, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

both!(
    a_command_runs_once_a_person_approved_it_with_the_command_line_shown_whole,
    a_long_command_line_is_read_in_a_review_and_runs_as_it_stands_there,
    a_denial_reaches_the_model_with_its_reason_and_nothing_runs,
    an_approval_for_the_session_is_good_for_the_command_and_the_run,
    silence_denies_although_the_policy_takes_it_for_a_yes,
    a_destroyed_environment_denies,
    a_wrong_token_denies_and_is_told_to_nobody,
    a_run_that_is_ended_takes_its_question_back,
    the_model_asks_people_through_fuse,
    a_task_of_another_agent_waits_for_a_person,
);
each_store!(a_run_waits_over_a_server_that_is_killed);

const SOON: Duration = Duration::from_secs(60);
const FINAL: &str = "It is as it is.";

/// A file beside the tests' own, or where the variable says.
fn built(variable: &str, name: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(
        || {
            let own = std::env::current_exe().expect("this program has a path");
            let folder = own.parent().and_then(|deps| deps.parent());
            folder.expect("it lies in target").join(name)
        },
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "{} is not there: run the tests with `cargo xtask test`",
        path.display()
    );
    path.canonicalize().expect("a path")
}

fn application() -> PathBuf {
    built("FISK_TEST_FIXTURES", "../go-fixtures").join("app")
}

/// A harness with its configuration and a scripted model.
struct Fisk {
    folder: TempDir,
    model: standin::Server,
    url: String,
    token: String,
}

impl Fisk {
    async fn new(server: &Server, env: &Env, timeout: &str, turns: Vec<Turn>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let text = format!(
            "application_path: {}\nglobal_flags: [context]\nllm: {{model: claude-test}}\nharness:\n  operator: fuse\n  \
             human_in_the_loop: {{enabled: true}}\n  fuse: {{environment: {}{timeout}}}\nexpose:\n  agent:\n    a2a: {{port: 0}}\n",
            application().display(),
            env.id
        );
        std::fs::write(folder.path().join("agent.yaml"), text).expect("a configuration");
        Self {
            folder,
            model: standin::Server::start(turns).await,
            url: server.url(),
            token: server.token().to_owned(),
        }
    }

    /// Begins a run, with no terminal anywhere.
    fn run(&self) -> Child {
        self.start(&["run", "Do it."])
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(built("FISK_TEST_BIN", "fisk"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("ANTHROPIC_BASE_URL", self.model.base_url())
            .env("FUSE_URL", &self.url)
            .env("FUSE_API_TOKEN", &self.token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command.spawn().expect("fisk starts")
    }

    /// What the model was told in the end, one result after the other. None of them is an error.
    fn results(&self) -> Vec<Value> {
        let requests = self.model.requests();
        let messages = requests.last().expect("a request").body["messages"].clone();
        let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
        let all = messages.as_array().expect("messages").iter();
        all.flat_map(blocks)
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                assert_ne!(block["is_error"], true, "{block}");
                let text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    parts => parts[0]["text"].as_str().expect("a text").to_owned(),
                };
                serde_json::from_str(&text).expect("a result is JSON")
            })
            .collect()
    }

    fn result(&self) -> Value {
        match self.results().as_slice() {
            [only] => only.clone(),
            more => panic!("{more:?}"),
        }
    }
}

async fn output(run: Child) -> Output {
    let ended = tokio::time::timeout(SOON, run.wait_with_output()).await;
    ended.expect("the run ends").expect("a child")
}

/// The run ends well, with the model's last word alone on standard output.
async fn ends_well(run: Child) -> Output {
    let output = output(run).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), FINAL);
    output
}

fn calls(tool: &str, input: Value) -> Vec<Turn> {
    vec![Turn::tool_use("t1", tool, input), Turn::text(FINAL)]
}

fn block() -> Value {
    json!({"requests": {"ask": {}, "review": {}}})
}

async fn pending(env: &Env) -> Value {
    until("a question stands", async || {
        let all = env.interventions().await;
        all.into_iter().find(|one| one["state"] == "pending")
    })
    .await
}

fn id(asked: &Value) -> String {
    asked["id"].as_str().expect("an id").to_owned()
}

/// A person at the command line.
async fn person(server: &Server, arguments: &[&str]) {
    let run = Command::new(fuse())
        .args(["hitl"])
        .args(arguments)
        .env("FUSE_URL", server.url())
        .env("FUSE_TOKEN", server.token())
        .stdin(Stdio::null())
        .output()
        .await
        .expect("fuse starts");
    assert!(run.status.success(), "{arguments:?}: {run:?}");
}

fn has_run(result: &Value, name: &str) -> bool {
    let output = result["output"].as_str().unwrap_or_default();
    result["exit_code"] == 0 && output.contains(&format!("\"ran\":\"{name}\""))
}

#[track_caller]
fn assert_denied(result: &Value) {
    assert_eq!(result["allowed"], false, "{result}");
    let reason = result["reason"].as_str().expect("a reason");
    assert!(reason.contains("do not retry"), "{reason}");
}

// check: FISK-10, FISK-44
async fn a_command_runs_once_a_person_approved_it_with_the_command_line_shown_whole(
    server: &Server,
) {
    let env = server.env(block()).await;
    let hostile = "a\nApproved.\u{202e}\u{1b}[2J";
    let fisk = Fisk::new(
        server,
        &env,
        "",
        calls("restart", json!({"context": hostile})),
    )
    .await;
    let run = fisk.run();
    let asked = pending(&env).await;
    let question = asked["payload"]["ask"]["question"].as_str().expect("text");
    let shown = format!(
        r"{} $'--context=a\nApproved.\u{{202e}}\u{{1b}}[2J' restart",
        application().display()
    );
    assert!(question.ends_with(&shown), "{question}");
    assert!(question.contains("ai:confirm"), "{question}");
    person(server, &["answer", &id(&asked), "approve"]).await;
    ends_well(run).await;
    assert!(has_run(&fisk.result(), "restart"), "{}", fisk.result());
}

// check: FISK-10, FISK-44
async fn a_long_command_line_is_read_in_a_review_and_runs_as_it_stands_there(server: &Server) {
    let env = server.env(block()).await;
    let long = "x".repeat(5000);
    let fisk = Fisk::new(server, &env, "", calls("restart", json!({"context": long}))).await;
    let run = fisk.run();
    let asked = pending(&env).await;
    assert_eq!(asked["kind"], "review");
    let content = asked["payload"]["review"]["content"].as_str();
    let shown = format!("{} '--context={long}' restart", application().display());
    assert!(content == Some(shown.as_str()), "{content:?}");
    person(server, &["approve", &id(&asked), "--yes"]).await;
    ends_well(run).await;
    assert!(has_run(&fisk.result(), "restart"), "{}", fisk.result());
}

// check: FISK-10, FISK-44
async fn a_denial_reaches_the_model_with_its_reason_and_nothing_runs(server: &Server) {
    let env = server.env(block()).await;
    for (arguments, told) in [
        (vec!["--reason", "not on a Friday"], "not on a Friday"),
        (vec!["deny"], ""),
    ] {
        let fisk = Fisk::new(server, &env, "", calls("purge", json!({}))).await;
        let run = fisk.run();
        let asked = id(&pending(&env).await);
        let verb = if told.is_empty() { "answer" } else { "reject" };
        person(server, &[&[verb, &asked], arguments.as_slice()].concat()).await;
        ends_well(run).await;
        assert_denied(&fisk.result());
        let reason = fisk.result()["reason"].to_string();
        assert!(reason.contains(told), "{reason}");
    }
}

// check: FISK-44
async fn an_approval_for_the_session_is_good_for_the_command_and_the_run(server: &Server) {
    let env = server.env(block()).await;
    let turns = vec![
        Turn::tool_use("t1", "restart", json!({})),
        Turn::tool_use("t2", "restart", json!({"context": "other"})),
        Turn::tool_use("t3", "purge", json!({})),
        Turn::text(FINAL),
    ];
    let fisk = Fisk::new(server, &env, "", turns).await;
    let run = fisk.run();
    let first = id(&pending(&env).await);
    person(server, &["answer", &first, "approve for the session"]).await;
    // The next question is about the other command.
    let second = pending(&env).await;
    let question = second["payload"]["ask"]["question"].as_str().expect("text");
    assert!(question.ends_with(" purge"), "{question}");
    person(server, &["answer", &id(&second), "deny"]).await;
    ends_well(run).await;
    let results = fisk.results();
    assert_eq!(results.len(), 3);
    assert!(has_run(&results[0], "restart") && has_run(&results[1], "restart"));
    assert_denied(&results[2]);
    assert_eq!(env.interventions().await.len(), 2);
}

// check: FISK-10, FISK-44
async fn silence_denies_although_the_policy_takes_it_for_a_yes(server: &Server) {
    let mut block = block();
    block["on_timeout"] = json!("allow");
    let env = server.env(block).await;
    let fisk = Fisk::new(server, &env, ", timeout: 10s", calls("restart", json!({}))).await;
    ends_well(fisk.run()).await;
    assert_denied(&fisk.result());
    let all = env.interventions().await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["state"], "expired");
}

// check: FISK-10, FISK-44
async fn a_destroyed_environment_denies(server: &Server) {
    let env = server.env(block()).await;
    let fisk = Fisk::new(server, &env, "", calls("restart", json!({}))).await;
    let run = fisk.run();
    pending(&env).await;
    env.destroy().await;
    ends_well(run).await;
    assert_denied(&fisk.result());
}

// check: FISK-10, FISK-44
async fn a_wrong_token_denies_and_is_told_to_nobody(server: &Server) {
    let env = server.env(block()).await;
    let mut fisk = Fisk::new(server, &env, "", calls("restart", json!({}))).await;
    fisk.token = "fuse_sk_wrong_one".to_owned();
    let ended = ends_well(fisk.run()).await;
    assert_denied(&fisk.result());
    assert!(env.interventions().await.is_empty());
    let told = fisk.result().to_string() + &String::from_utf8_lossy(&ended.stderr);
    assert!(!told.contains("wrong_one"), "{told}");
}

// check: FISK-44
async fn a_run_that_is_ended_takes_its_question_back(server: &Server) {
    let env = server.env(block()).await;
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let fisk = Fisk::new(server, &env, "", calls("restart", json!({}))).await;
        let run = fisk.run();
        let asked = id(&pending(&env).await);
        let pid = i32::try_from(run.id().expect("it runs")).expect("a process number");
        kill(Pid::from_raw(pid), signal).expect("it can be told");
        let ended = output(run).await;
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        let after = env.api.read(&asked).await;
        assert_eq!(after["state"], "rejected", "{after}");
        // The model was not asked again, so nothing can have run.
        assert_eq!(fisk.model.requests().len(), 1);
    }
}

// check: FISK-12, FISK-44
async fn the_model_asks_people_through_fuse(server: &Server) {
    let env = server.env(block()).await;
    let turns = vec![
        Turn::tool_use("t1", "ask_human_confirm", json!({"question": "Go on?"})),
        Turn::tool_use(
            "t2",
            "ask_human_select",
            json!({"question": "Which?", "options": ["red\u{200b}", "blue"]}),
        ),
        Turn::tool_use("t3", "ask_human_input", json!({"question": "Name?"})),
        Turn::tool_use("t4", "ask_human_input", json!({"question": "Why?"})),
        Turn::text(FINAL),
    ];
    let fisk = Fisk::new(server, &env, "", turns).await;
    let run = fisk.run();
    for (question, answer) in [("Go on?", "yes"), ("Which?", "red"), ("Name?", "db 1")] {
        let asked = pending(&env).await;
        let text = asked["payload"]["ask"]["question"].as_str().expect("text");
        assert!(
            text.contains("agent asks") && text.contains(question),
            "{text}"
        );
        person(server, &["answer", &id(&asked), answer]).await;
    }
    let asked = id(&pending(&env).await);
    person(server, &["reject", &asked, "--reason", "no time"]).await;
    ends_well(run).await;
    let results = fisk.results();
    assert_eq!(results[0]["confirmed"], true, "{results:?}");
    // The model's own string.
    assert_eq!(results[1]["selected"], "red\u{200b}", "{results:?}");
    assert_eq!(results[2]["value"], "db 1", "{results:?}");
    assert_eq!(results[3]["value"], Value::Null, "{results:?}");
    let reason = results[3]["reason"].as_str().expect("a reason");
    assert!(reason.contains("no time"), "{reason}");
}

// check: FISK-44, FISK-62
async fn a_task_of_another_agent_waits_for_a_person(server: &Server) {
    let env = server.env(block()).await;
    let fisk = Fisk::new(server, &env, "", Vec::new()).await;
    let mut serving = fisk.start(&["a2a"]);
    let mut lines = BufReader::new(serving.stderr.take().expect("a pipe")).lines();
    let address = tokio::time::timeout(SOON, async {
        while let Some(line) = lines.next_line().await.expect("readable") {
            if let Some(address) = line.strip_prefix("listening on ") {
                return address.trim_end_matches('/').to_owned();
            }
        }
        panic!("it does not listen");
    });
    let address = address.await.expect("in time");
    let agent = Api::new(&address);
    let call = |tool: &str| {
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"tool": tool}}]},
            "configuration": {"returnImmediately": true}})
    };
    let begin = async |tool: &str| {
        let sent = agent.post("/v1/message:send", call(tool)).await.ok(200);
        format!("/v1/tasks/{}", sent["task"]["id"].as_str().expect("an id"))
    };
    let over = async |task: &str| {
        until("the task is over", async || {
            let seen = agent.get(task).await.ok(200);
            let state = seen["status"]["state"]
                .as_str()
                .expect("a state")
                .to_owned();
            (state != "TASK_STATE_SUBMITTED" && state != "TASK_STATE_WORKING")
                .then_some((state, seen))
        })
        .await
    };
    let result = |task: &Value| task["artifacts"][0]["parts"][0]["data"].clone();

    let task = begin("restart").await;
    let asked = pending(&env).await;
    // Nothing is allowed for a session that is none.
    assert_eq!(
        asked["payload"]["ask"]["choices"],
        json!(["approve", "deny"])
    );
    person(server, &["answer", &id(&asked), "approve"]).await;
    let (state, seen) = over(&task).await;
    assert_eq!(state, "TASK_STATE_COMPLETED");
    assert!(has_run(&result(&seen), "restart"), "{seen}");

    let task = begin("restart").await;
    let asked = id(&pending(&env).await);
    person(server, &["reject", &asked, "--reason", "not now"]).await;
    let (_, seen) = over(&task).await;
    assert_denied(&result(&seen));
    assert!(result(&seen)["reason"].to_string().contains("not now"));

    let task = begin("restart").await;
    let asked = id(&pending(&env).await);
    agent
        .post(&format!("{task}:cancel"), json!({}))
        .await
        .ok(200);
    assert_eq!(over(&task).await.0, "TASK_STATE_CANCELED");
    assert_eq!(env.api.read(&asked).await["state"], "rejected");

    begin("purge").await;
    let asked = id(&pending(&env).await);
    let pid = i32::try_from(serving.id().expect("it runs")).expect("a process number");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it can be told");
    let ended = output(serving).await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(env.api.read(&asked).await["state"], "rejected");
}

// check: FISK-44
async fn a_run_waits_over_a_server_that_is_killed(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let fisk = Fisk::new(&server, &env, "", calls("restart", json!({}))).await;
    let mut run = fisk.run();
    let asked = id(&pending(&env).await);
    server.kill9();
    // Long enough that more than one poll fails.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(run.try_wait().expect("a child").is_none());
    server.restart();
    person(&server, &["answer", &asked, "approve"]).await;
    ends_well(run).await;
    assert!(has_run(&fisk.result(), "restart"), "{}", fisk.result());
}
