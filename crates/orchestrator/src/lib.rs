//! The orchestrator: HTTP, app verbs, effects, reconcile loops.

pub mod metrics;
