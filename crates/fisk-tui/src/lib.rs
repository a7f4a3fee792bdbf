//! The full-screen interface of a run: transcript, prompts, keys.
//!
//! [`App`] is the whole of it as a state machine: events, keys and sizes go in, [`Effect`]s come out, and [`draw`] shows the state.
//! It reads no clock and no terminal. [`Tui`] is the shell around it: one thread that owns the terminal, and gives it back however
//! the process ends.
//!
//! Nothing that a model, a command or a provider wrote reaches the screen unstripped, and what will run is shown exactly. A question
//! is answered by keys that were pressed after it was drawn; whatever goes wrong is a no.

mod app;
mod edit;
mod inbox;
mod question;
mod screen;
mod scroll;
mod shell;
mod transcript;
mod tui;
mod view;
mod wrap;

pub use app::{App, Effect};
pub use fuse_terminal::keys::Key;
pub use question::{Question, Reply};
pub use tui::{OnSignal, Signal, StartError, Started, Tui, TuiOptions, TuiPrompter};
pub use view::draw;
