//! A gated command over MCP: the client's user is asked by elicitation, in the way that the client's protocol has for it.

use fisk_domain::{Call, CommandTool, Denial};
use fisk_operator::{ApprovalRequest, Exact};
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientResult, ElicitRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequests, InputRequiredResult, ServerRequest,
    },
    service::{Peer, PeerRequestOptions, RequestContext},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::Semaphore;

use super::{handler::is_modern, states::States};
use crate::{ConfirmOverMcp, run::Runner};

/// The name of the question in a client's answers.
const QUESTION: &str = "approval";
/// The longest command line that is put before somebody. What cannot be read whole is not approved.
const MAX_SHOWN: usize = 16 * 1024;
/// How long a client may take to hear that its question is void.
const RECALL: Duration = Duration::from_secs(1);

/// What follows on a call of a gated command.
pub(super) enum Agreed {
    /// It runs.
    Run,
    /// It does not.
    Denied(Denial),
    /// The client has to bring its user's answer first.
    Ask(InputRequiredResult),
}

/// Asks, whichever way.
pub(super) struct Approvals {
    states: States,
    questions: Semaphore,
}

impl Approvals {
    pub(super) fn new(states: States, questions: usize) -> Self {
        Self {
            states,
            questions: Semaphore::new(questions),
        }
    }

    /// Each call is asked about anew: there is no allowance for a session over MCP.
    pub(super) async fn decide(
        &self,
        runner: &Runner,
        tool: &CommandTool,
        call: &Call,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        gone: impl Future<Output = ()>,
    ) -> Agreed {
        match (
            runner.served.confirm_over_mcp,
            can_ask(context.client_capabilities()),
        ) {
            (ConfirmOverMcp::Never, _) | (ConfirmOverMcp::Auto, false) => return Agreed::Run,
            (ConfirmOverMcp::Always, false) => {
                return denied(
                    "this command needs approval and this client cannot ask its user (it offers no elicitation)",
                );
            }
            (ConfirmOverMcp::Always | ConfirmOverMcp::Auto, true) => {}
        }
        let question = ApprovalRequest {
            tool: tool.name().to_string(),
            command: runner.shown(call),
            tags: tool.gating_tags().to_vec(),
        };
        if question.command.whole().len() > MAX_SHOWN {
            return denied("the command line is too long to be shown for approval");
        }
        let Some(params) = form(&question) else {
            return denied("the question could not be put");
        };
        if is_modern(context) {
            self.carried(&question.tool, &runner.argv(call), request, params)
        } else {
            self.asked(&context.peer, params, runner.limits.answer, gone)
                .await
        }
    }

    /// The client carries the question away and comes back with the answer and our state.
    fn carried(
        &self,
        tool: &str,
        argv: &[String],
        request: &CallToolRequestParams,
        params: ElicitRequestParams,
    ) -> Agreed {
        let (state, answers) = match (&request.request_state, &request.input_responses) {
            (None, None) => {
                let Some(state) = self.states.issue(tool, argv) else {
                    return denied("too many commands wait for approval");
                };
                let question = InputRequest::Elicitation(ElicitRequest::new(params));
                let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
                return Agreed::Ask(InputRequiredResult::new(Some(questions), Some(state)));
            }
            (state, answers) => (state.as_deref().unwrap_or_default(), answers),
        };
        if !self.states.redeem(state, tool, argv) {
            return denied(
                "the approval is not for this command, was used already or came too late",
            );
        }
        let answer = answers
            .as_ref()
            .and_then(|answers| answers.get(QUESTION))
            .and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
        match answer {
            Some(answer) => verdict(&answer),
            None => denied("the answer could not be understood"),
        }
    }

    /// The client is asked while the call waits.
    async fn asked(
        &self,
        peer: &Peer<RoleServer>,
        params: ElicitRequestParams,
        patience: Duration,
        gone: impl Future<Output = ()>,
    ) -> Agreed {
        let Ok(_place) = self.questions.try_acquire() else {
            return denied("too many commands wait for approval");
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let sent = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await;
        let Ok(mut waiting) = sent else {
            return denied("this client could not be asked");
        };
        let void = tokio::select! {
            answer = &mut waiting.rx => {
                return match answer {
                    Ok(Ok(ClientResult::ElicitResult(answer))) => verdict(&answer),
                    Ok(Ok(_other)) => denied("the answer could not be understood"),
                    Ok(Err(_)) | Err(_) => denied("this client could not ask its user"),
                };
            }
            () = tokio::time::sleep(patience) => "nobody answered in time",
            () = gone => "the call was canceled",
        };
        // So that nobody answers what no longer waits.
        let _ = tokio::time::timeout(RECALL, waiting.cancel(Some(void.to_owned()))).await;
        denied(void)
    }
}

/// Whether the client says that it can put a form before its user.
fn can_ask(capabilities: Option<ClientCapabilities>) -> bool {
    capabilities
        .and_then(|capabilities| capabilities.elicitation)
        // No mode at all stands for forms, from before there were others.
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Only an explicit yes in both places is one.
fn verdict(answer: &ElicitResult) -> Agreed {
    match answer.action {
        ElicitationAction::Accept => {
            let approve = answer
                .content
                .as_ref()
                .and_then(|content| content.get("approve"));
            match approve {
                Some(Value::Bool(true)) => Agreed::Run,
                Some(_) | None => denied("the user did not approve this command"),
            }
        }
        ElicitationAction::Decline => denied("the user declined this command"),
        ElicitationAction::Cancel => denied("the user dismissed the question"),
        // The protocol may grow more of them; none of those is a yes.
        _ => denied("the answer could not be understood"),
    }
}

fn denied(why: &str) -> Agreed {
    Agreed::Denied(Denial::new(why))
}

fn form(question: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let tags: Vec<String> = question
        .tags
        .iter()
        .map(|tag| Exact::value(tag).whole().to_owned())
        .collect();
    let message = format!(
        "Run this command? It needs approval ({}).\n\n{}",
        tags.join(", "),
        question.command.whole()
    );
    let schema: ElicitationSchema = serde_json::from_value(json!({
        "type": "object",
        "properties": {
            "approve": {
                "type": "boolean",
                "title": "Approve",
                "description": "Whether the command runs, exactly as it is shown",
                "default": false,
            },
        },
        "required": ["approve"],
    }))
    .ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(answer: Value) -> bool {
        serde_json::from_value::<ElicitResult>(answer)
            .is_ok_and(|answer| matches!(verdict(&answer), Agreed::Run))
    }

    // check: FISK-14
    #[test]
    fn only_an_accepted_form_that_says_true_approves() {
        assert!(runs(
            json!({"action": "accept", "content": {"approve": true}})
        ));
        for no in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"approve": false}}),
            json!({"action": "accept", "content": {"approve": "true"}}),
            json!({"action": "accept", "content": {"approve": 1}}),
            json!({"action": "accept", "content": {"approve": null}}),
            json!({"action": "accept", "content": {"Approve": true}}),
            json!({"action": "accept", "content": true}),
            json!({"action": "accept", "content": [true]}),
            json!({"action": "decline", "content": {"approve": true}}),
            json!({"action": "cancel", "content": {"approve": true}}),
            json!({"action": "ACCEPT", "content": {"approve": true}}),
            json!({"content": {"approve": true}}),
            json!("accept"),
        ] {
            assert!(!runs(no.clone()), "{no}");
        }
    }

    #[test]
    fn a_client_can_be_asked_where_it_takes_forms() {
        let offers = |value: Value| can_ask(serde_json::from_value(value).ok());
        assert!(offers(json!({"elicitation": {}})));
        assert!(offers(json!({"elicitation": {"form": {}}})));
        assert!(offers(json!({"elicitation": {"form": {}, "url": {}}})));
        assert!(!offers(json!({"elicitation": {"url": {}}})));
        assert!(!offers(json!({"sampling": {}})));
        assert!(!can_ask(None));
    }

    // check: FISK-10
    #[test]
    fn the_question_shows_the_whole_command_line_with_hidden_characters_visible() {
        let long = "x".repeat(4_000);
        let question = ApprovalRequest {
            tool: "purge".into(),
            command: Exact::argv(["app", "purge", "a\u{202e}b\u{1b}[2J", &long]),
            tags: vec!["ai:confirm".into()],
        };
        let Some(ElicitRequestParams::FormElicitationParams { message, .. }) = form(&question)
        else {
            panic!("no form");
        };
        assert!(message.contains("\\u{202e}"), "{message}");
        assert!(!message.contains(['\u{202e}', '\u{1b}']), "{message}");
        assert!(message.contains(&long));
    }
}
