//! Performing what was committed. An effect's outcome is a new command at the top.

pub mod exec;
