//! One module per command.

pub mod info;
pub mod init;
pub mod run;
pub mod serve;
pub mod session;
