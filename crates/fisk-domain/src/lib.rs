//! Every rule of Fisk, as functions of facts.
//!
//! What a command-line application offers ([`Toolset`]), which of it may be served to others ([`ServedSet`]), what a model's
//! input becomes ([`Call`]), and whether a person has to agree first ([`Gate`]). Nothing here reads a clock, a file, the
//! environment or a terminal.

mod args;
pub mod budget;
mod call;
mod denial;
mod derive;
pub mod event;
mod gate;
pub mod model;
mod outcome;
mod parameters;
mod plain;
mod property;
mod select;
mod served;
pub mod session;
mod tool;

pub use call::{Call, Rejected};
pub use denial::{Denial, FINAL, Negative};
pub use derive::{BUILT_IN_TOOLS, CONFIRM_TAG, DENY_TAG};
pub use gate::{Approval, Facts, Gate, PromptFailure, Step, Verdict};
pub use model::{ApplicationModel, ModelError};
pub use outcome::{MAX_OUTPUT, Outcome};
pub use plain::instead;
pub use select::{Patterns, Selection, ToolError, Warning};
pub use served::ServedSet;
pub use tool::{CommandTool, DESTROYS_TAG, Hints, ToolName, Toolset, WRITES_TAG};
