//! The Fusefile: parsing, verdicts with a caret, compiling to a create request.
//!
//! [`parse`] turns a text into a [`Parsed`] file or says everything that is wrong with its shape. [`load`] reads what the file
//! names beside itself and is the only part that touches a disk. [`compile`] makes the create request, [`validate`] holds that
//! request against the rules that a server holds it against, and puts each complaint where the file caused it.
//!
//! ```
//! use fuse_fusefile::{Options, Files, ServerFacts, parse, validate};
//!
//! let parsed = parse("Fusefile", "version: 1\nhitl:\n  timeout: 5s\n").expect("its shape is fine");
//! let verdicts = validate(&parsed, &Options::default(), &Files::inline(&parsed), &ServerFacts::offline());
//! assert_eq!(
//!     verdicts.to_string().lines().next(),
//!     Some("Fusefile:3:12: error: hitl.timeout: is 5; 10 to 86400 seconds (24 hours) are allowed")
//! );
//! ```

mod compile;
mod disk;
mod model;
mod path;
mod place;
mod schema;
mod shape;
mod source;
mod tree;
mod verdict;

pub use compile::{Files, Options, Secrets, compile, shown, validate};
pub use disk::{load, task_id_of};
pub use fuse_domain::environment::ServerFacts;
pub use model::Fusefile;
pub use parse::{Parsed, parse};
pub use place::Place;
pub use schema::json_schema;
pub use verdict::{Severity, Verdict, Verdicts};

mod parse;

/// A commented example that is valid, for `fuse init`.
pub const TEMPLATE: &str = include_str!("template.yaml");
