//! The whole product over its real binary: servers, databases, sandboxed environments, HTTP.

mod access;
mod audit;
mod bodies;
mod boxes;
mod commands;
mod crowds;
mod deciding;
mod edits;
mod environments;
mod expiry;
mod gates;
mod grants;
mod harness;
mod http;
mod invariants;
mod lifecycle;
mod memory;
mod operator;
mod outage;
mod requests;
mod restarts;
mod reviews;
mod sdk;
mod sealing;
mod starting;
mod waiting;
