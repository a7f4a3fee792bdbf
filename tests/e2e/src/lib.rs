//! What the end-to-end tests share: real servers with databases of their own, raw HTTP, and environments that never outlive a test.

mod api;
mod data;
mod environment;
mod events;
mod log;
mod proxy;
mod server;
mod wait;

pub use api::{Api, Reply};
pub use data::{Data, Raw, Store};
pub use environment::Env;
pub use events::Events;
pub use log::Log;
pub use proxy::{Link, Proxy};
pub use server::{Ended, Server, Settings, fuse};
pub use wait::{until, within};

use std::future::Future;

/// Makes two tests of each function that takes a shared server: one per database.
#[macro_export]
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&$crate::Server::shared($crate::Store::Sqlite)).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&$crate::Server::shared($crate::Store::Postgres)).await;
            })+
        }
    };
}

/// Makes two tests of each function that starts its servers itself: one per database.
#[macro_export]
macro_rules! each_store {
    ($($name:ident),+ $(,)?) => {
        mod own_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::Store::Sqlite).await;
            })+
        }
        mod own_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::Store::Postgres).await;
            })+
        }
    };
}

/// A name that no other test of this machine uses: a DNS label.
#[must_use]
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", hex::encode(rand::random::<[u8; 6]>()))
}

/// Runs async work to its end where there is no runtime, or where its threads must not be relied on.
pub(crate) fn blocking<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(work)
        });
        ran.join().expect("the work did not panic")
    })
}
