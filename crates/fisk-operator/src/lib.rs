//! How Fisk reaches the operator.
//!
//! One trait, [`Prompter`], and two that implement it here: [`LinePrompter`] on the terminal of this process and, with the
//! feature `fuse`, `FusePrompter` through a Fuse orchestrator. The full-screen interface brings a third. [`AskTool`] are
//! the tools by which the model asks the operator something of its own.
//!
//! Whatever the model wrote is stripped, then cut, before it is shown; a command line is neither, and shown exactly. Every
//! failure is a no. Nothing of this crate can be served to other programs: a
//! [`ServedSet`](fisk_domain::ServedSet) holds commands of the application only, and what is here is none.

mod ask;
#[cfg(feature = "fuse")]
mod fuse;
mod interrupts;
mod line;
mod prompter;

pub use ask::{AskTool, Question};
#[cfg(feature = "fuse")]
pub use fuse::{FuseConfig, FuseConfigError, FusePrompter, Token};
/// A command line as it is shown before it runs.
pub use fuse_terminal::Exact;
pub use interrupts::Interrupts;
pub use line::{LineOptions, LinePrompter};
pub use prompter::{ApprovalRequest, Confirm, Input, Prompter, Select};
