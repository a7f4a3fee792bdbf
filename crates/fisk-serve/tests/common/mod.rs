//! A real application, a real server in front of it, and clients with a person behind them.
#![allow(dead_code)]

pub mod agent;

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fisk_domain::{Selection, ServedSet, Toolset};
use fisk_exec::{ExecConfig, Executor};
use fisk_serve::{ConfirmOverMcp, Limits, Listen, Served, Serving, serve_mcp_http_within};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ElicitRequestParams, ElicitResult, ElicitationAction, ProtocolVersion,
    },
    service::{ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes, so that a failure is one.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct App {
    folder: TempDir,
}

impl App {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flag =
            |name: &str, required: bool| json!({"name": name, "help": name, "required": required});
        let command = |name: &str, tags: &[&str], flags: Vec<Value>| json!({"name": name, "help": format!("Does {name}"), "tags": tags, "flags": flags});
        let model = json!({"name": "app", "help": "An application", "version": "1.0.0", "commands": [
            command("say", &["impact:ro"], vec![flag("text", true), flag("tone", false)]),
            command("fail", &[], vec![]),
            command("hold", &[], vec![]),
            command("purge", &["ai:confirm", "impact:destructive"], vec![flag("target", false)]),
            command("peek", &["ai:confirm", "impact:ro"], vec![]),
            command("destroy", &["ai:deny"], vec![]),
        ]});
        std::fs::write(folder.path().join("app.json"), model.to_string()).unwrap();
        // By another process: a file that this one has open for writing cannot be run.
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/app.sh");
        let copied = Command::new("cp")
            .arg(script)
            .arg(folder.path().join("app"))
            .status()
            .unwrap();
        assert!(copied.success());
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub async fn served(&self) -> Served {
        let executor = Executor::new(ExecConfig {
            application: self.file("app"),
            strip_env: Vec::new(),
            sandbox: false,
        })
        .await
        .unwrap();
        let model = executor.introspect().await.unwrap();
        let (tools, _) = Toolset::from_introspection(&model, &Selection::default()).unwrap();
        Served {
            name: "fixture".into(),
            instructions: Some("Be gentle".into()),
            tools: Arc::new(ServedSet::new(tools)),
            executor: Arc::new(executor),
            confirm_over_mcp: ConfirmOverMcp::Always,
            operator: None,
            max_concurrent_tools: 2,
            tool_timeout: Duration::from_secs(60),
        }
    }

    /// What ran so far, line by line.
    pub fn ran(&self) -> Vec<String> {
        std::fs::read_to_string(self.file("app.ran"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    pub fn count(&self, line: &str) -> usize {
        self.ran().iter().filter(|ran| *ran == line).count()
    }

    pub async fn until(&self, line: &str, times: usize) {
        let seen = tokio::time::timeout(PATIENCE, async {
            while self.count(line) < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(seen.await.is_ok(), "{line:?} x{times}: {:?}", self.ran());
    }

    /// Lets every `hold` end.
    pub fn release(&self) {
        std::fs::write(self.file("app.go"), "").unwrap();
    }
}

pub fn local(token: Option<&str>) -> Listen {
    Listen {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        token: token.map(Arc::from),
    }
}

/// A server that ends with its test.
pub struct Mcp {
    pub serving: Serving,
    pub cancel: CancellationToken,
}

impl Mcp {
    pub async fn start(served: Served, limits: Limits, token: Option<&str>) -> Self {
        let cancel = CancellationToken::new();
        let serving = serve_mcp_http_within(served, local(token), limits, cancel.clone())
            .await
            .unwrap();
        Self { serving, cancel }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.serving.address())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Era {
    Handshake,
    Stateless,
}

pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// What a person answers to a question.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This.
    Give(ElicitationAction, Option<Value>),
    /// Nothing, ever.
    Silence,
    /// The client fails.
    Fail,
    /// The client has no way to ask.
    Unable,
}

impl Answer {
    pub fn yes() -> Self {
        Self::Give(ElicitationAction::Accept, Some(json!({"approve": true})))
    }
}

#[derive(Clone)]
pub struct Person {
    answer: Answer,
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Questions that were taken back before an answer.
    pub withdrawn: Arc<AtomicUsize>,
}

impl Person {
    pub fn who(answer: Answer) -> Self {
        Self {
            answer,
            asked: Arc::default(),
            withdrawn: Arc::default(),
        }
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.capabilities = match self.answer {
            Answer::Unable => ClientCapabilities::default(),
            _ => ClientCapabilities::builder().enable_elicitation().build(),
        };
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(&request).unwrap();
        let message = request["message"].as_str().unwrap().to_owned();
        self.asked.lock().unwrap().push(message);
        match &self.answer {
            Answer::Give(action, content) => {
                let mut result = ElicitResult::new(action.clone());
                result.content = content.clone();
                Ok(result)
            }
            Answer::Silence => {
                context.ct.cancelled().await;
                self.withdrawn.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            }
            Answer::Fail | Answer::Unable => Err(ErrorData::internal_error("no screen", None)),
        }
    }
}

/// Waits for something that is about to be so.
pub async fn soon(what: &str, holds: impl Fn() -> bool) {
    let held = tokio::time::timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(held.await.is_ok(), "not so in time: {what}");
}

pub type Client = RunningService<RoleClient, Person>;

pub fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

pub async fn connect(url: &str, era: Era, person: Person) -> Client {
    connect_with(url, era, person, None).await.unwrap()
}

pub async fn connect_with(
    url: &str,
    era: Era,
    person: Person,
    token: Option<&str>,
) -> Result<Client, String> {
    prepare();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let mode = match era {
        Era::Handshake => ClientLifecycleMode::Initialize,
        Era::Stateless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let transport = StreamableHttpClientTransport::from_config(config);
    serve_client_with_lifecycle(person, transport, mode)
        .await
        .map_err(|error| error.to_string())
}

pub fn params(tool: &str, input: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(input.as_object().unwrap().clone())
}

/// The JSON of a result's text, where it is some, else the text.
pub fn read(result: &CallToolResult) -> Value {
    let result = serde_json::to_value(result).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

pub async fn call(client: &Client, tool: &str, input: Value) -> CallToolResult {
    let answered = tokio::time::timeout(PATIENCE, client.call_tool(params(tool, input)));
    answered.await.expect("an answer in time").unwrap()
}

pub fn is_denial(value: &Value) -> bool {
    value["allowed"] == json!(false)
        && value["reason"]
            .as_str()
            .is_some_and(|reason| reason.ends_with(fisk_domain::FINAL))
}
