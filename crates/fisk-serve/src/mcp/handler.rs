//! The tools of the served set, as an MCP client sees and calls them.

use std::{panic::AssertUnwindSafe, sync::Arc};

use fisk_domain::CommandTool;
use futures_util::FutureExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
        ConstString, ContentBlock, CustomRequest, CustomResult, ErrorCode, Implementation,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    approval::{Agreed, Approvals},
    sessions::Sessions,
    states::States,
};
use crate::{ServeError, run::Runner};

const SESSION: &str = "mcp-session-id";

/// How to know that a client went away.
#[derive(Clone)]
pub(super) enum Client {
    /// Its session is over. A client without one (protocol 2026-07-28) went away when its request did, which cancels the request.
    Http(Arc<Sessions>),
    /// Its end of the pipe is closed.
    Pipe(CancellationToken),
}

/// Answers one client.
#[derive(Clone)]
pub(super) struct Handler {
    runner: Arc<Runner>,
    approvals: Arc<Approvals>,
    client: Client,
}

impl Handler {
    pub(super) fn new(runner: Arc<Runner>, client: Client) -> Result<Self, ServeError> {
        let limits = &runner.limits;
        let states = States::new(limits.answer, limits.questions)
            .map_err(|error| ServeError::Start(error.to_string()))?;
        Ok(Self {
            approvals: Arc::new(Approvals::new(states, limits.questions)),
            runner,
            client,
        })
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let input = request.arguments.clone().unwrap_or_default();
        let (tool, call) = match self.runner.check(&request.name, &input) {
            Ok(checked) => checked,
            Err(rejected) => {
                return CallToolResult::error(vec![ContentBlock::text(rejected)]).into();
            }
        };
        let left = self.left(&context);
        if tool.is_gated() {
            let agreed = self
                .approvals
                .decide(
                    &self.runner,
                    tool,
                    &call,
                    &request,
                    &context,
                    gone(&context, &left),
                )
                .await;
            match agreed {
                Agreed::Run => {}
                Agreed::Denied(denial) => return result(denial.to_json(), false),
                Agreed::Ask(question) => return question.into(),
            }
        }
        let ran = self.runner.run(call, gone(&context, &left)).await;
        let (value, is_error) = ran.into_json();
        result(value, is_error)
    }

    /// Is cancelled once the client went away.
    fn left(&self, context: &RequestContext<RoleServer>) -> CancellationToken {
        match &self.client {
            Client::Pipe(closed) => closed.clone(),
            Client::Http(sessions) => {
                let id = context
                    .extensions
                    .get::<http::request::Parts>()
                    .and_then(|head| head.headers.get(SESSION))
                    .and_then(|id| id.to_str().ok());
                match id {
                    // The name of a session means nothing from a client that has none.
                    Some(id) if !is_modern(context) => sessions.over(id),
                    Some(_) | None => CancellationToken::new(),
                }
            }
        }
    }
}

/// Whether the client speaks protocol 2026-07-28 or a later one: it has no session, and carries questions to its user by itself.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The call was taken back, or its client went away.
async fn gone(context: &RequestContext<RoleServer>, left: &CancellationToken) {
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = left.cancelled() => {}
    }
}

fn result(value: Value, is_error: bool) -> CallToolResponse {
    let text = vec![ContentBlock::text(value.to_string())];
    let mut result = if is_error {
        CallToolResult::error(text)
    } else {
        CallToolResult::success(text)
    };
    result.structured_content = Some(value);
    result.into()
}

/// What is wrong with the parameters of a call. Their values are not repeated: errors are logged.
fn misshapen(params: Option<Value>) -> &'static str {
    let Some(Value::Object(params)) = params else {
        return "params: an object with \"name\" and \"arguments\" is allowed";
    };
    let is = |name: &str, right: fn(&Value) -> bool| params.get(name).is_none_or(right);
    if !params.get("name").is_some_and(Value::is_string) {
        "params.name: a text, the name of a tool, is required; nothing else is allowed"
    } else if !is("arguments", |value| value.is_object() || value.is_null()) {
        "params.arguments: a JSON object is allowed, not one written as a text"
    } else if !is("inputResponses", |value| {
        value.is_object() || value.is_null()
    }) {
        "params.inputResponses: an object of answers by the names of their questions is allowed"
    } else if !is("requestState", |value| value.is_string() || value.is_null()) {
        "params.requestState: the text that came with the question is allowed"
    } else {
        "params: they cannot be read; an object with \"name\" and \"arguments\", each once, is allowed"
    }
}

fn describe(tool: &CommandTool) -> Tool {
    let schema = tool.input_schema().as_object().cloned().unwrap_or_default();
    let hints = tool.hints();
    let mut annotations = ToolAnnotations::with_title(tool.path().join(" "));
    // What needs somebody's agreement is never told as harmless.
    annotations.read_only_hint = if tool.is_gated() {
        Some(false)
    } else {
        hints.read_only
    };
    annotations.destructive_hint = hints.destructive;
    let mut told = Tool::new(
        tool.name().to_string(),
        tool.description().to_owned(),
        Arc::new(schema),
    );
    told.annotations = Some(annotations);
    told
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let served = &self.runner.served;
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(
                served.name.clone(),
                env!("CARGO_PKG_VERSION"),
            ));
        match &served.instructions {
            Some(instructions) => info.with_instructions(instructions.clone()),
            None => info,
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.runner.served.tools.tools();
        let list = ListToolsResult::with_all_items(tools.iter().map(describe).collect());
        Ok(list)
    }

    /// What is no request that the protocol knows, a call that cannot be read included.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != CallToolRequestMethod::VALUE {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                request.method,
                None,
            ));
        }
        Err(ErrorData::invalid_params(misshapen(request.params), None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A panic would leave the client without any answer.
        AssertUnwindSafe(self.answer(request, context))
            .catch_unwind()
            .await
            .map_err(|_panicked| {
                ErrorData::internal_error("the call failed inside the server", None)
            })
    }
}
