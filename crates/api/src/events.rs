//! What the event stream of an environment carries.

use crate::environment::EnvState;
use crate::ids::{EnvId, InterventionId};
use crate::intervention::{Kind, State};
use serde::{Deserialize, Serialize};

/// Which kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The environment's state.
    State,
    /// An intervention was raised or resolved.
    Intervention,
}

/// One event. It is a hint to read again, never the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Grows within one stream.
    pub id: String,
    /// Which kind of event it is.
    pub event: EventKind,
    /// The environment.
    pub vm_id: EnvId,
    /// The environment's state.
    pub state: EnvState,
    /// Why the environment failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The intervention: ids and states only, never content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervention: Option<EventIntervention>,
}

/// The part of an intervention that an event tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventIntervention {
    /// Its id.
    pub id: InterventionId,
    /// What kind of answer is wanted.
    pub kind: Kind,
    /// Where it is in its life.
    pub state: State,
}
