//! The whole product over its real binary: servers, databases, sandboxed environments, HTTP.

mod environments;
