//! `fuse serve` and `fuse dev`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use fuse_api::environment::SecretText;
use fuse_orchestrator::RunError;
use fuse_orchestrator::config::{Config, ConfigError, Flags, Secret, fresh_key, load_or_create};

use crate::context::{self, Context};
use crate::failure::{Done, Failure};
use crate::output::{self, note};

/// The context that `fuse dev` saves.
const CONTEXT: &str = "dev";

#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 picks a free one [env: ORCH_LISTEN, default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Folder of database, environments and images [env: FUSE_DATA_DIR].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// postgres://… or sqlite:PATH [env: DATABASE_URL].
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

#[derive(Args)]
pub struct DevArgs {
    /// Address to listen on; port 0 picks a free one [env: ORCH_LISTEN, default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Folder of database, token, key, environments and images [env: FUSE_DATA_DIR].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub fn serve(args: ServeArgs) -> Done {
    let flags = Flags {
        listen: args.listen,
        data_dir: args.data_dir,
        database_url: args.database_url,
    };
    let config = Config::read(&flags, |name| std::env::var_os(name)).map_err(unusable)?;
    run(config, |_| Ok(()))
}

pub fn dev(args: DevArgs) -> Done {
    let flags = Flags {
        listen: args.listen,
        data_dir: args.data_dir,
        database_url: None,
    };
    let mut config = Config::read(&flags, settings).map_err(unusable)?;
    let data_dir = config.data_dir.clone();
    if config.encryption_key.is_none() {
        let key = load_or_create(&data_dir.join("encryption-key"), fresh_key).map_err(unusable)?;
        config.encryption_key = Some(key);
    }
    let token = config.master_token().map_err(unusable)?;
    run(config, move |address| {
        let path = context::save(CONTEXT, context_of(address, &token))?;
        note(&format!(
            "data in {}, context {CONTEXT} saved in {}",
            data_dir.display(),
            path.display()
        ));
        note("in another terminal:");
        note("  fuse init && fuse up         an environment from an example Fusefile");
        note("  fuse environment exec fuse-agent -- uname -a");
        note("  fuse hitl watch              what waits for you");
        note("Ctrl-C stops the server; environments go on, and the next start finds them");
        Ok(())
    })
}

/// The variables of the process, as far as `dev` obeys them: its database is always the embedded one, and it is quiet.
fn settings(name: &str) -> Option<OsString> {
    match name {
        "DATABASE_URL" => None,
        "RUST_LOG" => std::env::var_os(name).or_else(|| Some("warn".into())),
        _ => std::env::var_os(name),
    }
}

fn context_of(address: SocketAddr, token: &Secret) -> Context {
    // An address that means every interface is none to connect to.
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    Context {
        url: format!("http://{}", SocketAddr::new(ip, address.port())),
        token: SecretText(token.expose().to_owned()),
    }
}

fn unusable(error: ConfigError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Runs it until it is told to stop. `ready` is called when it is about to accept connections.
fn run(config: Config, ready: impl FnOnce(SocketAddr) -> Result<(), Failure> + Send) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::said(format!("cannot start: {error}")))?;
    let mut told = Ok(());
    let outcome = runtime.block_on(fuse_orchestrator::run_and_tell(config, |address| {
        told = ready(address);
        if told.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }));
    // Whatever still runs would hold up the end.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => told.map(|()| 0),
        Err(error) => Ok(say(&error)),
    }
}

fn say(error: &RunError) -> u8 {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    output::error(&text);
    error.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_never_points_to_every_interface() {
        for (listen, url) in [
            ("0.0.0.0:81", "http://127.0.0.1:81"),
            ("[::]:82", "http://[::1]:82"),
            ("10.1.2.3:83", "http://10.1.2.3:83"),
        ] {
            assert_eq!(
                context_of(listen.parse().unwrap(), &Secret::new("t".into())).url,
                url
            );
        }
    }
}
