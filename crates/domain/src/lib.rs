//! Every rule of Fuse, free of I/O.

pub mod audit;
pub mod intervention;
pub mod transition;
