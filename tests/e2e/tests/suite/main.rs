//! The whole product over its real binary: servers, databases, sandboxed environments, HTTP.

mod boxes;
mod commands;
mod deciding;
mod environments;
mod gates;
mod grants;
mod requests;
mod reviews;
mod waiting;
