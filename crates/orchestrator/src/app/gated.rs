//! What the gates say of an action, put on record before the action goes on (spec: "Gates").

use super::homes::Home;
use super::{App, AppError, AppResult, Outcome};
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{
    Actor, ExecPayload, Kind, LifecyclePayload, Mode, Outcome as Decided, Payload,
};
use fuse_api::time::Timestamp;
use fuse_domain::access::{Caller, actor};
use fuse_domain::intervention::raise::{Draft, transition, with_gates};
use fuse_domain::intervention::{Record, decide, end};
use fuse_domain::policy::{LifecycleAction, PolicyGate, Severity, Verdict, deadline_for};
use fuse_domain::refusal::Refusal;
use fuse_domain::transition::{Grant, Transition};
use std::sync::Arc;

/// An action that gates may concern.
pub(crate) struct Gated {
    kind: Kind,
    payload: Payload,
}

impl Gated {
    pub(crate) fn exec(exec: &ExecPayload) -> Self {
        Self {
            kind: Kind::Exec,
            payload: Payload {
                exec: Some(exec.clone()),
                ..Payload::default()
            },
        }
    }

    /// Says through which carrier gates read the command.
    pub(crate) fn through(mut self, carrier: Option<String>) -> Self {
        self.payload.carrier = carrier;
        self
    }

    pub(crate) fn lifecycle(action: LifecycleAction) -> Self {
        Self {
            kind: Kind::Lifecycle,
            payload: Payload {
                lifecycle: Some(LifecyclePayload {
                    action: action.as_str().to_owned(),
                    params: None,
                }),
                ..Payload::default()
            },
        }
    }

    fn draft(
        &self,
        by: Actor,
        gate: &PolicyGate,
        mode: Mode,
        gates: Vec<String>,
        now: Timestamp,
    ) -> Draft {
        Draft {
            id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
            kind: self.kind,
            gate: Some((gate.name.clone(), mode)),
            triggered_by: by,
            payload: with_gates(self.payload.clone(), gates, &gate.reason),
            now,
            timeout_seconds: gate.timeout_seconds,
        }
    }

    /// The record that a notify gate leaves.
    pub(crate) fn noted(
        &self,
        home: &Home,
        by: Actor,
        gate: &PolicyGate,
        now: Timestamp,
    ) -> Record {
        self.draft(by, gate, Mode::Notify, Vec::new(), now)
            .resolved(
                &home.raise,
                Decided::Approve,
                format!("let through and recorded by gate {}", gate.name),
                actor::gate(&gate.name),
            )
    }
}

impl App {
    /// Puts what the gates say on record. Gives the held intervention, or nothing where the action may go on.
    pub(crate) async fn gated(
        &self,
        caller: &Caller,
        home: &Home,
        action: &Gated,
        verdict: &Verdict<'_>,
        now: Timestamp,
    ) -> AppResult<Option<Arc<Record>>> {
        if verdict.severity() == Severity::Pass {
            return Ok(None);
        }
        let mut records: Vec<Record> = verdict
            .notifies
            .iter()
            .map(|gate| action.noted(home, caller.actor.clone(), gate, now))
            .collect();
        let notified = records.len();
        if let Some(gate) = verdict.deny {
            let refused = action.draft(caller.actor.clone(), gate, Mode::Deny, Vec::new(), now);
            let id = refused.id.clone();
            records.push(refused.resolved(
                &home.raise,
                Decided::Reject,
                gate.denial(),
                actor::gate(&gate.name),
            ));
            self.put(transition(records, caller)).await?;
            self.count_notified(notified);
            self.metrics.denied();
            return Err(Refusal::denied(&gate.name, gate.denial(), &id).into());
        }
        let (holding, used) = self.without_granted(home, action, &verdict.asks).await?;
        if let Some(first) = holding.first() {
            let gates = holding.iter().map(|g| g.name.clone()).collect();
            let mut held = action.draft(caller.actor.clone(), first, Mode::Ask, gates, now);
            held.timeout_seconds = deadline_for(&holding).unwrap_or_default();
            records.push(held.pending(&home.raise));
            let held = self.put(transition(records, caller)).await?.pop();
            self.count_notified(notified);
            self.metrics.held();
            return held
                .map(Some)
                .ok_or_else(|| AppError::Internal("a hold committed without its record".into()));
        }
        let mut change = transition(records, caller);
        for grant in &used {
            let env_id = &home.raise.env_id;
            let note = end::grant_used(env_id, grant, action.kind, caller, now);
            change.audit.push(note);
        }
        if !change.audit.is_empty() {
            // What lets an action through is on record before the action is performed.
            self.put(change).await?;
            self.count_notified(notified);
        }
        Ok(None)
    }

    /// Only what is on record counts.
    fn count_notified(&self, records: usize) {
        for _ in 0..records {
            self.metrics.notified();
        }
    }

    /// The ask gates that still hold the action, and the grants that let it past the others.
    async fn without_granted<'g>(
        &self,
        home: &Home,
        action: &Gated,
        asks: &[&'g PolicyGate],
    ) -> AppResult<(Vec<&'g PolicyGate>, Vec<Grant>)> {
        let Some(digest) = decide::digest(&action.payload).filter(|_| !asks.is_empty()) else {
            return Ok((asks.to_vec(), Vec::new()));
        };
        let grants = self
            .store
            .live_grants(&home.raise.env_uid, &[digest], self.now())
            .await?;
        let granted = |gate: &PolicyGate| grants.iter().find(|g| g.gate == gate.name).cloned();
        let used = asks.iter().filter_map(|gate| granted(gate)).collect();
        let holding = asks
            .iter()
            .filter(|gate| granted(gate).is_none())
            .copied()
            .collect();
        Ok((holding, used))
    }

    async fn put(&self, change: Transition) -> AppResult<Vec<Arc<Record>>> {
        match self.commit(change).await? {
            Outcome::Done(records) => Ok(records),
            Outcome::Conflict => Err(AppError::Internal(
                "a fresh intervention id was taken".into(),
            )),
        }
    }
}
