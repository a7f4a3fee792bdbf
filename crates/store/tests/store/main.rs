//! One suite for both databases. PostgreSQL comes from `FUSE_TEST_POSTGRES`; `cargo xtask test` starts one and sets it.
// check: STORE-1

#[macro_use]
mod bed;
mod build;

mod chain;
mod commit;
mod environments;
mod expiry;
mod full_disk;
mod keys;
mod lost_answer;
mod model;
mod notices;
mod opening;
mod outage;
mod reads;
mod sealing;
