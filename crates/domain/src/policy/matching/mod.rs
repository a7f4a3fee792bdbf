//! What an action looks like to a gate: which programs a command would run, which action it is, what it would type.

pub(super) mod argv;
pub(super) mod carriers;
pub(super) mod computer;
pub(super) mod lifecycle;
pub(super) mod options;
pub(super) mod shells;
pub(super) mod split;
pub(super) mod tail;
pub(super) mod variables;
pub(super) mod wrappers;

pub use computer::ComputerAction;
pub use lifecycle::LifecycleAction;
