//! The loop: the model speaks, its calls are checked, asked about and run, and everything is on record before it matters.

pub mod log;
pub mod stop;
pub mod system;
mod tools;

use std::{sync::Arc, time::Duration};

use fisk_domain::{
    Gate, Toolset,
    budget::{BudgetSpent, Limits, Tokens},
    event::{Event, Watcher},
    session::{Finish, Next, Record, Stop as StopRecord},
};
use fisk_exec::Executor;
use fisk_llm::{Delta, LlmError, Provider, Reply, Request, Sink, StopReason, ToolSpec, Usage};
use fisk_operator::Prompter;

use log::Log;
use stop::Stop;

/// The most tokens of one reply.
const MAX_REPLY: u64 = 16_000;

/// Everything that a run needs.
pub struct Agent {
    /// Answers.
    pub provider: Arc<dyn Provider>,
    /// The application's commands.
    pub tools: Arc<Toolset>,
    /// Runs them.
    pub executor: Arc<Executor>,
    /// Reaches the operator.
    pub prompter: Arc<dyn Prompter>,
    /// Is told what happens.
    pub watcher: Arc<dyn Watcher>,
    /// Whether the model may ask the operator.
    pub human_in_the_loop: bool,
    /// The whole system prompt.
    pub system: String,
    /// The budgets.
    pub limits: Limits,
    /// The longest that one call of the model may take.
    pub call_timeout: Duration,
    /// The longest that one command may take.
    pub tool_timeout: Duration,
    /// Stops the run.
    pub stop: Stop,
}

/// How a run ended, or stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It is over.
    Finished(Finish),
    /// A budget is spent.
    Spent(BudgetSpent),
    /// Somebody stopped it.
    Stopped,
    /// Something failed.
    Failed(String),
}

/// Hands pieces of a reply on.
struct Pieces<'a>(&'a dyn Watcher);

impl Sink for Pieces<'_> {
    fn delta(&self, delta: Delta) {
        self.0.event(match delta {
            Delta::Text(text) => Event::Text(text),
            Delta::Thinking(text) => Event::Thinking(text),
            Delta::Retrying { reason, after } => Event::Retrying {
                reason,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            },
        });
    }
}

impl Agent {
    /// What the model may call: the commands, and the questions to the operator where they are on.
    pub fn specs(&self) -> Vec<ToolSpec> {
        tools::specs(&self.tools, self.human_in_the_loop)
    }

    /// Runs until the end, or until it has to stop. What it was told to do, and everything since, is in `log`.
    pub async fn run(&self, log: &mut Log) -> End {
        let end = match self.turns(log).await {
            Ok(end) => end,
            Err(error) => End::Failed(error),
        };
        let why = match &end {
            End::Finished(_) => return end,
            End::Spent(spent) => spent.to_string(),
            End::Stopped => "the operator stopped it".to_owned(),
            End::Failed(error) => error.clone(),
        };
        match log.record(Record::Suspended { why }) {
            Ok(()) => end,
            // A run that failed keeps its first reason: the second is often the same.
            Err(_) if matches!(end, End::Failed(_)) => end,
            Err(error) => End::Failed(error),
        }
    }

    async fn turns(&self, log: &mut Log) -> Result<End, String> {
        let specs = self.specs();
        let mut gate = Gate::default();
        loop {
            if self.stop.soft.is_cancelled() {
                return Ok(End::Stopped);
            }
            let next = log.replay().next();
            if let Next::End(finish) = next {
                let record = Record::Ended {
                    finish: finish.clone(),
                };
                log.record(record)?;
                return Ok(End::Finished(finish));
            }
            // Neither is the model asked nor does a command run whose result nobody would read.
            let room = match self.limits.room(log.replay().spent()) {
                Ok(room) => room,
                Err(spent) => return Ok(End::Spent(spent)),
            };
            match next {
                Next::Over => return Err("the run is over already".to_owned()),
                Next::End(finish) => return Ok(End::Finished(finish)),
                Next::Tool(call) => {
                    let call = call.clone();
                    if !self.tool(&call, &mut gate, log).await? {
                        return Ok(End::Stopped);
                    }
                }
                Next::Model => match self.ask(log, &specs, room).await {
                    Ok(reply) => self.take(reply, log)?,
                    Err(LlmError::Cancelled) => return Ok(End::Stopped),
                    Err(error) => return Err(error.to_string()),
                },
            }
        }
    }

    async fn ask(&self, log: &Log, specs: &[ToolSpec], room: u64) -> Result<Reply, LlmError> {
        let turn = log.replay().spent().iterations.saturating_add(1);
        self.watcher.event(Event::TurnStarted { turn });
        let request = Request {
            system: &self.system,
            messages: log.messages(),
            tools: specs,
            max_tokens: room.min(MAX_REPLY),
            timeout: self.call_timeout,
        };
        let sink = Pieces(&*self.watcher);
        let asked = self.provider.complete(request, &sink, &self.stop.soft);
        // The provider keeps the time itself; this holds even where it does not.
        let limit = self.call_timeout + Duration::from_secs(5);
        match tokio::time::timeout(limit, asked).await {
            Ok(reply) => reply,
            Err(_) => Err(LlmError::Timeout(self.call_timeout)),
        }
    }

    fn take(&self, reply: Reply, log: &mut Log) -> Result<(), String> {
        let content = reply
            .content
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let record = Record::Reply {
            content,
            stop: stop_record(reply.stop),
            tokens: tokens(reply.usage),
        };
        log.admits(&record)
            .map_err(|error| format!("the provider's reply cannot be used: {error}"))?;
        log.record(record)?;
        let spent = log.replay().spent().tokens;
        self.watcher.event(Event::Usage {
            input: spent.input,
            output: spent.output,
            budget: self.limits.max_tokens,
        });
        Ok(())
    }
}

/// Everything that the model read counts, whatever it cost.
fn tokens(usage: Usage) -> Tokens {
    Tokens {
        input: usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write),
        output: usage.output,
    }
}

fn stop_record(stop: StopReason) -> StopRecord {
    match stop {
        StopReason::EndTurn => StopRecord::EndTurn,
        StopReason::ToolUse => StopRecord::ToolUse,
        StopReason::MaxTokens => StopRecord::MaxTokens,
        StopReason::Pause => StopRecord::Pause,
        StopReason::Refusal => StopRecord::Refusal,
        StopReason::Other(name) => StopRecord::Other(name),
    }
}
