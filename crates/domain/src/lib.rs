//! Every rule of Fuse, free of I/O.

pub mod access;
pub mod audit;
pub mod environment;
pub mod intervention;
pub mod policy;
pub mod refusal;
pub mod text;
pub mod transition;
