//! One call of a tool, from the model's words to its result.

use fisk_domain::{
    CommandTool, Facts, Gate, Outcome, Step, Toolset, Verdict,
    event::{Ending, Event},
    instead,
    session::{PendingCall, Record},
};
use fisk_exec::ExecError;
use fisk_llm::ToolSpec;
use fisk_operator::{ApprovalRequest, AskTool};
use fuse_terminal::Exact;
use serde_json::{Value, json};

use super::{Agent, log::Log};

/// The most characters of the model's own that an error quotes.
const QUOTED: usize = 200;

/// What the model may call.
pub(super) fn specs(tools: &Toolset, human_in_the_loop: bool) -> Vec<ToolSpec> {
    let ask = AskTool::ALL
        .into_iter()
        .filter(|_| human_in_the_loop)
        .map(|tool| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input_schema: tool.input_schema(),
            deferrable: false,
        });
    tools
        .tools()
        .iter()
        .map(|tool| ToolSpec {
            name: tool.name().to_string(),
            description: tool.description().to_owned(),
            input_schema: tool.input_schema().clone(),
            deferrable: true,
        })
        .chain(ask)
        .collect()
}

/// What the model gets to read, and what the operator is told about it.
struct Answer {
    content: String,
    ending: Ending,
}

impl Answer {
    fn error(message: impl Into<String>) -> Self {
        Self {
            content: message.into(),
            ending: Ending::Error,
        }
    }

    fn denied(content: &Value) -> Self {
        Self {
            content: content.to_string(),
            ending: Ending::Denied,
        }
    }
}

impl Agent {
    /// Works on a call. `false`: the run stops before it has a result, and the call keeps its turn.
    pub(super) async fn tool(
        &self,
        call: &PendingCall,
        gate: &mut Gate,
        log: &mut Log,
    ) -> Result<bool, String> {
        let command = self.tools.get(&call.tool);
        let ask = AskTool::parse(&call.tool).filter(|_| self.human_in_the_loop);
        let answer = match (unusable(call), command, ask) {
            (Some(message), _, _) => Some(self.told(call, Answer::error(message))),
            (None, Some(tool), _) => self.command(call, tool, gate, log).await?,
            (None, None, Some(tool)) => self.question(call, tool).await,
            (None, None, None) => Some(self.told(call, Answer::error(self.unknown(&call.tool)))),
        };
        let Some(answer) = answer else {
            return Ok(false);
        };
        log.record(Record::ToolResult {
            call: call.id.clone(),
            content: answer.content.clone(),
            is_error: answer.ending == Ending::Error,
        })?;
        self.watcher.event(Event::ToolEnded {
            id: call.id.clone(),
            result: answer.content,
            ending: answer.ending,
        });
        Ok(true)
    }

    /// Tells of a call that comes to nothing.
    fn told(&self, call: &PendingCall, answer: Answer) -> Answer {
        self.called(call, None);
        answer
    }

    fn called(&self, call: &PendingCall, argv: Option<Vec<String>>) {
        self.watcher.event(Event::ToolCalled {
            id: call.id.clone(),
            tool: call.tool.clone(),
            input: Value::Object(call.input.clone()),
            argv,
        });
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = self
            .tools
            .tools()
            .iter()
            .map(|tool| tool.name().as_str())
            .collect();
        if self.human_in_the_loop {
            names.extend(AskTool::ALL.map(AskTool::name));
        }
        let quoted: String = name.chars().take(QUOTED).collect();
        format!("there is no tool {quoted:?}; {}", instead(name, names))
    }

    async fn question(&self, call: &PendingCall, tool: AskTool) -> Option<Answer> {
        self.called(call, None);
        self.watcher.event(Event::Waiting {
            id: call.id.clone(),
        });
        let asked = tool.call(&call.input, &*self.prompter, &self.stop.soft);
        let answer = self.stop.asking(asked).await;
        if self.stop.soft.is_cancelled() {
            return None;
        }
        Some(match answer {
            Ok(value) if value.get("reason").is_some() => Answer::denied(&value),
            Ok(value) => Answer {
                content: value.to_string(),
                ending: Ending::Ran(None),
            },
            Err(rejected) => Answer::error(rejected.to_string()),
        })
    }

    async fn command(
        &self,
        call: &PendingCall,
        tool: &CommandTool,
        gate: &mut Gate,
        log: &mut Log,
    ) -> Result<Option<Answer>, String> {
        // Missing parameters first: a call that cannot run is never asked about.
        let ready = match tool.args_from_json(&call.input) {
            Ok(ready) => ready,
            Err(rejected) => {
                let answer = Answer::error(rejected.to_string());
                return Ok(Some(self.told(call, answer)));
            }
        };
        if !call.may_start() {
            let answer = Answer::error(
                "it is not known whether this command ran: the run ended twice while it did; find out before you call it again",
            );
            return Ok(Some(self.told(call, answer)));
        }
        let argv = self.executor.argv(&ready);
        self.called(call, Some(argv.clone()));
        if call.starts > 0 {
            self.watcher.event(Event::Notice(format!(
                "{} may have run already: the run before this one ended while it did",
                call.tool
            )));
        }
        let facts = Facts {
            interactive: self.prompter.interactive(),
            cancelled: self.stop.soft.is_cancelled(),
        };
        match gate.check(tool, &ready, facts) {
            Step::Run => {}
            Step::Deny(denial) => return Ok(Some(Answer::denied(&denial.to_json()))),
            Step::Ask => {
                self.watcher.event(Event::Waiting {
                    id: call.id.clone(),
                });
                let request = ApprovalRequest {
                    tool: tool.name().to_string(),
                    command: Exact::argv(&argv),
                    tags: tool.gating_tags().to_vec(),
                };
                let asked = self.prompter.approve(&request, &self.stop.soft);
                let answer = self.stop.asking(asked).await;
                if self.stop.soft.is_cancelled() {
                    return Ok(None);
                }
                match gate.answer(tool, &answer) {
                    Verdict::Run => {}
                    Verdict::Deny(denial) => return Ok(Some(Answer::denied(&denial.to_json()))),
                }
            }
        }
        if self.stop.soft.is_cancelled() {
            return Ok(None);
        }
        log.record(Record::ToolStarted {
            call: call.id.clone(),
        })?;
        self.watcher.event(Event::Started {
            id: call.id.clone(),
        });
        let limit = Some(self.tool_timeout);
        let ran = self.executor.run(&ready, limit, &self.stop.hard);
        let ran = tokio::select! {
            biased;
            ran = ran => ran,
            // Dropping the other future kills the command with its group.
            () = self.stop.now.cancelled() => return Ok(Some(killed(None))),
        };
        Ok(Some(match ran {
            Ok(outcome) => outcome_of(&outcome)?,
            Err(ExecError::Cancelled { outcome }) => killed(Some(outcome)),
            Err(ExecError::TimedOut { after, outcome }) => Answer::error(
                json!({
                    "error": format!("the command did not end within {after:?} and was killed; it may have done a part of its work"),
                    "output": outcome.output, "truncated": outcome.truncated,
                })
                .to_string(),
            ),
            Err(
                error @ (ExecError::Unusable(_)
                | ExecError::Introspection(_)
                | ExecError::NotStarted(_)
                | ExecError::Lost(_)),
            ) => Answer::error(error.to_string()),
        }))
    }
}

/// Why a call cannot even be looked at.
fn unusable(call: &PendingCall) -> Option<String> {
    if call.cut {
        return Some(
            "your reply was cut before this call was complete, so it was not run: call again, with less text before it"
                .to_owned(),
        );
    }
    let raw = call.malformed.as_ref()?;
    let raw: String = raw.chars().take(QUOTED).collect();
    Some(format!(
        "the input is no JSON object, so nothing was run: {raw:?}"
    ))
}

fn outcome_of(outcome: &Outcome) -> Result<Answer, String> {
    Ok(Answer {
        content: serde_json::to_string(outcome).map_err(|error| error.to_string())?,
        ending: Ending::Ran(Some(outcome.exit_code)),
    })
}

/// A command that the operator stopped. It has a result, so that a resume does not run it again unasked.
fn killed(outcome: Option<Outcome>) -> Answer {
    let (output, truncated) = outcome.map_or_else(
        || (String::new(), true),
        |outcome| (outcome.output, outcome.truncated),
    );
    Answer::error(
        json!({
            "error": "the operator stopped the run while this command ran; it was killed and may have done a part of its work",
            "output": output, "truncated": truncated,
        })
        .to_string(),
    )
}
