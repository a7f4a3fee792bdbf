//! Text from agents made safe for a terminal, and prompts.
//!
//! What an agent writes reaches the terminal of the person who decides about it, so it must neither
//! drive that terminal nor look like something that it is not. There are two forms:
//!
//! * [`strip()`], [`strip_lines`] and [`strip_and_cut`] for text that somebody wrote to be read (a question,
//!   a message, a name): whatever drives a terminal or cannot be seen is taken out.
//! * [`Exact`] for what will be executed (argv, a command line, a path, text to be typed): nothing is
//!   taken out, since what is shown must be what runs; it is quoted and made visible instead.
//!
//! Content under review stands in between: [`Review`] keeps its lines and makes what is hidden visible,
//! because a reviewer has to see that there is something hidden.
//!
//! ```
//! use fuse_terminal::{Exact, strip_and_cut};
//!
//! let question = "Deploy?\u{1b}]0;owned\u{7} \u{202e}won ti od";
//! assert_eq!(strip_and_cut(question, 500), "Deploy? won ti od");
//!
//! let argv = ["rm", "-rf", "/tmp/x\u{202e}y"];
//! assert_eq!(Exact::argv(argv).to_string(), r"rm -rf $'/tmp/x\u{202e}y'");
//! ```

mod chars;
mod colour;
mod cut;
mod exact;
pub mod keys;
pub mod prompt;
mod review;
mod strip;
mod visible;

pub use chars::{MAX_MARKS, is_blank_lookalike, is_dangerous};
pub use colour::{ColourChoice, Style};
pub use cut::{MAX_OPTIONS, MAX_TEXT, OptionsError, cell, options, strip_and_cut};
pub use exact::{Exact, MAX_EXACT};
pub use review::{LineKind, Review};
pub use strip::{strip, strip_lines};
