//! One question in Fuse, from its raise to its end.

use std::time::Duration;

use fisk_domain::PromptFailure;
use fuse_client::api::ids::EnvId;
use fuse_client::api::intervention::{
    ActorSource, Intervention, Outcome, Payload, ReviewFormat, State,
};
use fuse_client::{Client, Error, HumanRequest, ReviewRequest};
use fuse_terminal::{strip_and_cut, strip_lines};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::question::Form;

/// How long after its deadline a question's end is still waited for, in case the server was away.
const GRACE: Duration = Duration::from_secs(60);

/// How long a cancelled run waits for its question to be withdrawn.
const WITHDRAWAL: Duration = Duration::from_secs(2);

/// Between two tries to reach a server that is away.
const PAUSE: Duration = Duration::from_millis(500);

/// A person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decided {
    Approved { answer: String },
    Rejected { reason: String },
}

/// A question that is raised, waited for and, where nobody waits any more, withdrawn.
#[derive(Debug)]
pub(super) struct Standing {
    pub client: Client,
    pub environment: EnvId,
    pub timeout: Option<Duration>,
    pub form: Form,
}

impl Standing {
    pub async fn decided(self, cancel: &CancellationToken) -> Result<Decided, PromptFailure> {
        if cancel.is_cancelled() {
            return Err(PromptFailure::Cancelled);
        }
        // It runs to its end by itself: a question that is raised must be known, or it could not be withdrawn.
        let stop = cancel.child_token();
        let _unless_it_is_dropped = stop.clone().drop_guard();
        let mut task = tokio::spawn(self.run(stop.clone()));
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let _ = timeout(WITHDRAWAL, &mut task).await;
                return Err(PromptFailure::Cancelled);
            }
            ended = &mut task => ended,
        };
        let ended = ended.map_err(|error| PromptFailure::Failed(error.to_string()))?;
        // A yes that comes together with the end of the run is none.
        if cancel.is_cancelled() {
            return Err(PromptFailure::Cancelled);
        }
        ended
    }

    async fn run(self, stop: CancellationToken) -> Result<Decided, PromptFailure> {
        let raised = self.raise().await.map_err(|error| failed(&error))?;
        if !is_asked(&raised.payload, &self.form) {
            self.withdraw(&raised).await;
            return Err(PromptFailure::Failed(
                "the server holds another question than the one that was asked".to_owned(),
            ));
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                self.withdraw(&raised).await;
                Err(PromptFailure::Cancelled)
            }
            ended = self.end(&raised) => judge(&raised, &ended?),
        }
    }

    async fn raise(&self) -> Result<Intervention, Error> {
        let environments = self.client.environments();
        match &self.form {
            Form::Ask { question, choices } => {
                let mut request = HumanRequest::ask(question).no_wait();
                if !choices.is_empty() {
                    request = request.choices(choices);
                }
                if let Some(timeout) = self.timeout {
                    request = request.timeout(timeout);
                }
                environments.request_human(&self.environment, request).await
            }
            Form::Review { content, message } => {
                let mut request = ReviewRequest::content(content)
                    .message(message)
                    .format(ReviewFormat::Text)
                    .no_wait();
                if let Some(timeout) = self.timeout {
                    request = request.timeout(timeout);
                }
                match environments
                    .request_review(&self.environment, request)
                    .await
                {
                    Err(Error::PendingIntervention { intervention }) => Ok(*intervention),
                    Ok(verdict) => Ok(verdict.intervention),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Waits until it is decided, over lost connections and restarts of the server, until its deadline has passed for certain.
    async fn end(&self, raised: &Intervention) -> Result<Intervention, PromptFailure> {
        // Counted from now, because the clocks need not agree.
        let micros = raised.deadline.as_micros() - raised.created_at.as_micros();
        let stands = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let waiting = async {
            loop {
                match self.client.interventions().wait(&raised.id).await {
                    Ok(ended) => return Ok(ended),
                    Err(error) if is_passing(&error) => sleep(PAUSE).await,
                    Err(error) => return Err(failed(&error)),
                }
            }
        };
        match timeout_at(Instant::now() + stands + GRACE, waiting).await {
            Ok(ended) => ended,
            Err(_) => Err(PromptFailure::Expired),
        }
    }

    /// Takes it from the list of those who decide, as far as the credential may. Otherwise it stands until its
    /// deadline; an answer reaches nobody.
    async fn withdraw(&self, raised: &Intervention) {
        let why = "withdrawn: the run that asked was canceled";
        let _ = self.client.interventions().reject(&raised.id, why).await;
    }
}

/// Whether the server may answer differently soon.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Transport { .. } => true,
        other => matches!(other.status(), Some(502..=504)),
    }
}

fn failed(error: &Error) -> PromptFailure {
    PromptFailure::Failed(strip_and_cut(&error.to_string(), 500))
}

/// Whether what the server stored, and shows to people, is what was asked.
fn is_asked(payload: &Payload, form: &Form) -> bool {
    match form {
        Form::Ask { question, choices } => payload
            .ask
            .as_ref()
            .is_some_and(|ask| ask.question == *question && ask.choices == *choices),
        Form::Review { content, .. } => payload
            .review
            .as_ref()
            .is_some_and(|review| review.content == *content && !review.truncated),
    }
}

/// What the end of a question comes to. Only a person approves.
fn judge(raised: &Intervention, ended: &Intervention) -> Result<Decided, PromptFailure> {
    let failed = |why: &str| Err(PromptFailure::Failed(why.to_owned()));
    if ended.unreadable {
        return failed(
            "the server cannot read what it stored of the question; nothing counts as approved",
        );
    }
    if ended.id != raised.id || ended.payload_hash != raised.payload_hash {
        return failed("the server answered another question than the one that was asked");
    }
    match ended.state {
        State::Pending => failed("the question is still open"),
        // Also where the policy takes silence for a yes: a command needs somebody's say-so.
        State::Expired => Err(PromptFailure::Expired),
        State::Cancelled => failed("the environment was destroyed before an answer"),
        State::Rejected => Ok(Decided::Rejected {
            reason: strip_lines(ended.reason()),
        }),
        State::Approved => {
            let Some(decision) = &ended.decision else {
                return failed("the approval has no decision");
            };
            if decision.outcome != Outcome::Approve {
                return failed("the approval is none");
            }
            match decision.decided_by.source {
                ActorSource::Pinned | ActorSource::Asserted | ActorSource::Key => {
                    Ok(Decided::Approved {
                        answer: decision.answer.clone(),
                    })
                }
                ActorSource::Gate | ActorSource::Decider | ActorSource::System => {
                    failed("it was not decided by a person")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn raised() -> Intervention {
        intervention("pending", Value::Null)
    }

    fn intervention(state: &str, decision: Value) -> Intervention {
        let mut all = json!({
            "id": "int_0190b0a0c0d070008000000000000001", "env_id": "fuse-agent", "kind": "ask", "state": state,
            "deadline": "2026-01-01T00:10:00Z", "created_at": "2026-01-01T00:00:00Z", "resolved_at": null,
            "triggered_by": {"id": "key", "source": "key"},
            "payload": {"ask": {"question": "Q?", "choices": ["approve"]}}, "payload_hash": "aa",
        });
        if !decision.is_null() {
            all["decision"] = decision;
        }
        serde_json::from_value(all).expect("an intervention")
    }

    fn decision(outcome: &str, source: &str) -> Value {
        json!({"outcome": outcome, "answer": "approve", "reason": "because",
            "decided_by": {"id": "x", "source": source}, "decided_at": "2026-01-01T00:05:00Z"})
    }

    // check: FISK-10, FISK-44
    #[test]
    fn only_a_person_who_approves_in_time_approves() {
        for source in ["pinned", "asserted", "key"] {
            let ended = intervention("approved", decision("approve", source));
            assert_eq!(
                judge(&raised(), &ended),
                Ok(Decided::Approved {
                    answer: "approve".to_owned()
                })
            );
        }
        for source in ["gate", "decider", "system"] {
            let ended = intervention("approved", decision("approve", source));
            assert!(judge(&raised(), &ended).is_err(), "{source}");
        }
        let none = intervention("approved", Value::Null);
        assert!(judge(&raised(), &none).is_err());
        let odd = intervention("approved", decision("reject", "key"));
        assert!(judge(&raised(), &odd).is_err());
    }

    // check: FISK-10, FISK-44
    #[test]
    fn silence_is_no_yes_whatever_the_policy_says() {
        let ended = intervention("expired", decision("approve", "system"));
        assert_eq!(judge(&raised(), &ended), Err(PromptFailure::Expired));
        for state in ["pending", "cancelled"] {
            let ended = intervention(state, decision("approve", "key"));
            assert!(judge(&raised(), &ended).is_err(), "{state}");
        }
        let ended = intervention("rejected", decision("reject", "key"));
        assert_eq!(
            judge(&raised(), &ended),
            Ok(Decided::Rejected {
                reason: "because".to_owned()
            })
        );
    }

    #[test]
    fn an_answer_to_something_else_counts_for_nothing() {
        let mut other = intervention("approved", decision("approve", "key"));
        other.payload_hash = "bb".to_owned();
        assert!(judge(&raised(), &other).is_err());
    }
}
