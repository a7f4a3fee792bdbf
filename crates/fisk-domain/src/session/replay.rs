//! From records to where a run stands.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{FORMAT, Fingerprint, MAX_STARTS, Record, Stop};
use crate::budget::Spent;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// With the model's answer.
    Answered(String),
    /// The model refused; what it said about it.
    Refused(String),
    /// The model stopped for another reason before it was done: the reason, and what it had said.
    Stopped {
        /// The reason, in our words or the provider's.
        reason: String,
        /// What it had said.
        text: String,
    },
}

/// A call of a tool that has no result yet.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Map<String, Value>,
    /// The raw text of an input that is no JSON object.
    pub malformed: Option<String>,
    /// The reply ended within this call, so that its input may lack something.
    pub cut: bool,
    /// How often it was started already. Where it is more than 0, a run ended while the call ran.
    pub starts: u32,
}

impl PendingCall {
    /// Whether it may be started (again).
    pub fn may_start(&self) -> bool {
        self.starts < MAX_STARTS
    }
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<'a> {
    /// Ask the model.
    Model,
    /// Work on a call.
    Tool(&'a PendingCall),
    /// Put the end on record.
    End(Finish),
    /// Nothing: the end is on record.
    Over,
}

/// Why a record cannot follow on those before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Broken(String);

fn broken(why: impl Into<String>) -> Broken {
    Broken(why.into())
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    New,
    Model,
    Tools,
    Finished(Finish),
    Over,
}

/// Where a run stands.
#[derive(Debug, Clone)]
pub struct Replay {
    phase: Phase,
    fingerprint: Option<Box<Fingerprint>>,
    messages: Vec<Value>,
    pending: Vec<PendingCall>,
    results: Vec<Value>,
    spent: Spent,
    suspended: Option<String>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            phase: Phase::New,
            fingerprint: None,
            messages: Vec::new(),
            pending: Vec::new(),
            results: Vec::new(),
            spent: Spent::default(),
            suspended: None,
        }
    }
}

impl Replay {
    /// The conversation so far: messages with `role` and `content`, which only grow. Every call of a tool in it has exactly one
    /// result in the message behind it, unless the call is still pending.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// What the run was recorded with; `None` before its first record.
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_deref()
    }

    /// What it has cost, over all resumes.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Why it was suspended, where the last record says so.
    pub fn suspended(&self) -> Option<&str> {
        self.suspended.as_deref()
    }

    /// Whether the end is on record.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// What comes next. The calls of a reply are worked on one after another, in its order.
    pub fn next(&self) -> Next<'_> {
        match &self.phase {
            Phase::New | Phase::Over => Next::Over,
            Phase::Model => Next::Model,
            Phase::Tools => match self.pending.first() {
                Some(call) => Next::Tool(call),
                None => Next::Model,
            },
            Phase::Finished(finish) => Next::End(finish.clone()),
        }
    }

    /// Whether the record can follow. Looked at before it is written.
    ///
    /// # Errors
    /// [`Broken`], with the reason.
    pub fn admits(&self, record: &Record) -> Result<(), Broken> {
        match (record, &self.phase) {
            (Record::Started { format, .. }, Phase::New) if *format == FORMAT => Ok(()),
            (Record::Started { format, .. }, Phase::New) => Err(broken(format!(
                "the session has the format {format}; this version reads {FORMAT}"
            ))),
            (Record::Started { .. }, _) => Err(broken("a session begins once")),
            (_, Phase::New) => Err(broken("the session does not begin with its start")),
            (_, Phase::Over) => Err(broken("nothing follows on the end of a run")),
            (Record::Suspended { .. } | Record::Resumed, _) => Ok(()),
            (Record::Reply { content, .. }, Phase::Model) => calls(content, false).map(drop),
            (Record::Reply { .. }, _) => Err(broken("a reply that nobody asked for")),
            (Record::ToolStarted { call }, Phase::Tools) => {
                let first = self.first(call)?;
                match first.may_start() {
                    true => Ok(()),
                    false => Err(broken(format!("the call {call:?} was started too often"))),
                }
            }
            (Record::ToolResult { call, .. }, Phase::Tools) => self.first(call).map(drop),
            (Record::ToolStarted { .. } | Record::ToolResult { .. }, _) => {
                Err(broken("no call of a tool is pending"))
            }
            (Record::Ended { finish }, Phase::Finished(due)) if finish == due => Ok(()),
            (Record::Ended { .. }, _) => Err(broken("an end that does not follow from the reply")),
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// [`Broken`], and nothing is changed.
    pub fn apply(&mut self, record: Record) -> Result<(), Broken> {
        self.admits(&record)?;
        self.suspended = None;
        match record {
            Record::Started {
                fingerprint,
                prompt,
                ..
            } => {
                self.fingerprint = Some(fingerprint);
                self.say("user", vec![json!({"type": "text", "text": prompt})]);
                self.phase = Phase::Model;
            }
            Record::Reply {
                content,
                stop,
                tokens,
            } => {
                self.spent.charge(tokens);
                self.pending = calls(&content, may_be_cut(&stop))?;
                self.phase = follow(&stop, &content, self.pending.is_empty());
                if !content.is_empty() {
                    self.say("assistant", content);
                }
            }
            Record::ToolStarted { .. } => {
                if let Some(first) = self.pending.first_mut() {
                    first.starts += 1;
                }
            }
            Record::ToolResult {
                call,
                content,
                is_error,
            } => {
                self.pending.remove(0);
                self.results.push(json!({
                    "type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error,
                }));
                if self.pending.is_empty() {
                    let results = std::mem::take(&mut self.results);
                    self.say("user", results);
                    self.phase = Phase::Model;
                }
            }
            Record::Suspended { why } => self.suspended = Some(why),
            Record::Resumed => {}
            Record::Ended { .. } => self.phase = Phase::Over,
        }
        Ok(())
    }

    fn first(&self, call: &str) -> Result<&PendingCall, Broken> {
        match self.pending.first() {
            Some(first) if first.id == call => Ok(first),
            Some(first) => Err(broken(format!(
                "the call {call:?} is not the one whose turn it is, {:?}",
                first.id
            ))),
            None => Err(broken("no call of a tool is pending")),
        }
    }

    fn say(&mut self, role: &str, content: Vec<Value>) {
        self.messages
            .push(json!({"role": role, "content": content}));
    }
}

/// Whether the reply may end within what stands last in it. Of a reason that is not known nothing is known, and providers have several for a
/// reply that did not fit.
fn may_be_cut(stop: &Stop) -> bool {
    match stop {
        Stop::MaxTokens | Stop::Refusal | Stop::Other(_) => true,
        Stop::EndTurn | Stop::ToolUse | Stop::Pause => false,
    }
}

/// What follows on a reply. A refusal ends the run whatever else the reply holds.
fn follow(stop: &Stop, content: &[Value], no_calls: bool) -> Phase {
    let text = || text_of(content);
    if !no_calls && *stop != Stop::Refusal {
        return Phase::Tools;
    }
    match stop {
        Stop::Pause => Phase::Model,
        Stop::EndTurn | Stop::ToolUse => Phase::Finished(Finish::Answered(text())),
        Stop::Refusal => Phase::Finished(Finish::Refused(text())),
        Stop::MaxTokens => Phase::Finished(Finish::Stopped {
            reason: "the answer is cut: the model reached the most it may write in one reply"
                .to_owned(),
            text: text(),
        }),
        Stop::Other(name) => Phase::Finished(Finish::Stopped {
            reason: format!("the model stopped before it was done: {name}"),
            text: text(),
        }),
    }
}

/// The text of a reply.
fn text_of(content: &[Value]) -> String {
    content
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect()
}

/// The calls in a reply. `cut`: a call at its very end may lack something.
fn calls(content: &[Value], cut: bool) -> Result<Vec<PendingCall>, Broken> {
    let mut found: Vec<PendingCall> = Vec::new();
    for (n, block) in content.iter().enumerate() {
        if block["type"] != "tool_use" {
            continue;
        }
        let text = |key: &str| match block[key].as_str() {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            Some(_) | None => Err(broken(format!("a call of a tool without its {key}"))),
        };
        let (id, tool) = (text("id")?, text("name")?);
        if found.iter().any(|call| call.id == id) {
            return Err(broken(format!("two calls of tools with one id, {id:?}")));
        }
        let input = match &block["input"] {
            Value::Object(input) => input.clone(),
            _ => return Err(broken("a call of a tool without an input")),
        };
        found.push(PendingCall {
            id,
            tool,
            input,
            malformed: block["malformed"].as_str().map(str::to_owned),
            cut: cut && n + 1 == content.len(),
            starts: 0,
        });
    }
    Ok(found)
}
