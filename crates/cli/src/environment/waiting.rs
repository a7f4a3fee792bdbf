//! Calls that a person may have to decide on first.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use fuse_api::intervention::Intervention;
use fuse_client::Waiting;
use fuse_terminal::strip;

use crate::args::Face;
use crate::failure::Done;
use crate::output::{self, note};
use crate::progress::Progress;
use crate::time::relative;

/// Tells what is waited on, and what becomes of it when the wait is left.
pub struct Wait {
    progress: Arc<Progress>,
    /// The held intervention; nothing in it for a lock.
    on: Arc<Mutex<Option<String>>>,
}

impl Wait {
    /// Begins; `text` says what is done meanwhile and has to be safe.
    pub fn start(text: String) -> Self {
        Self {
            progress: Arc::new(Progress::start(text)),
            on: Arc::default(),
        }
    }

    /// What the call tells its waits to.
    pub fn teller(&self) -> impl FnMut(Waiting<'_>) + Send + 'static {
        let (progress, on) = (Arc::clone(&self.progress), Arc::clone(&self.on));
        move |waiting| {
            let id = match waiting {
                Waiting::Held(intervention) => {
                    progress.say(&held(intervention));
                    progress.turn_to(format!(
                        "waiting for a person, deadline {}",
                        relative(intervention.deadline)
                    ));
                    intervention.id.to_string()
                }
                Waiting::Locked {
                    intervention_id,
                    kind,
                } => {
                    progress.say(&format!(
                        "locked by a {}: waiting on intervention {intervention_id}",
                        strip(kind)
                    ));
                    progress.turn_to("waiting for the lock to lift");
                    String::new()
                }
            };
            *on.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
        }
    }

    /// The call's outcome; none where Ctrl-C ended the wait, which is then told. `what` names the action: "the command".
    pub async fn outlast<T>(self, call: impl IntoFuture<Output = T>, what: &str) -> Option<T> {
        tokio::select! {
            outcome = call.into_future() => Some(outcome),
            _ = tokio::signal::ctrl_c() => {
                let on = self.on.lock().unwrap_or_else(PoisonError::into_inner).take();
                self.progress.say(&interrupted(on.as_deref(), what));
                None
            }
        }
    }
}

/// What is held and not waited on is handed to the caller.
pub fn pending(intervention: &Intervention, face: &Face) -> Done {
    note(&held(intervention));
    if face.is_json() {
        output::json(intervention)?;
    } else {
        output::line(intervention.id.as_str())?;
    }
    Ok(1)
}

/// The line that others look for.
fn held(intervention: &Intervention) -> String {
    let gate = intervention.gate.as_deref().map(strip).unwrap_or_default();
    format!(
        "held by hitl gate {gate}: waiting on intervention {}",
        intervention.id
    )
}

fn interrupted(waits_on: Option<&str>, what: &str) -> String {
    match waits_on {
        None => format!("interrupted; {what} may go on"),
        Some("") => format!("interrupted before {what} began"),
        Some(id) => format!(
            "interrupted; intervention {id} stays pending, and {what} goes ahead if it is approved (fuse hitl reject {id} --reason …)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_wait_says_what_becomes_of_it() {
        assert!(interrupted(Some("int_1"), "the command").contains("int_1 stays pending"));
        assert!(interrupted(None, "the command").contains("may go on"));
    }
}
