//! `fuse environment`.

mod create;
mod exec;
mod list;
mod waiting;
mod watch;

pub use create::make;

use clap::{Args, Subcommand};
use fuse_api::environment::Environment;
use fuse_client::{Client, Error};
use fuse_terminal::{Exact, strip};

use crate::args::Face;
use crate::failure::Done;
use crate::output::{self, note};
use crate::table::Sheet;
use crate::time::relative;

#[derive(Subcommand)]
pub enum Command {
    /// Create an environment from flags or from a create request, and print its id once it runs.
    Create(create::CreateArgs),
    /// List environments, newest first.
    List(list::ListArgs),
    /// Show one environment.
    Get(IdArgs),
    /// Run a command in an environment and exit with its code; waits where a person has to decide first.
    Exec(exec::ExecArgs),
    /// Remove an environment; what waits for a person in it is cancelled. Waits where a person has to decide first.
    Destroy(DestroyArgs),
    /// Print the events of an environment until it is gone.
    Watch(IdArgs),
}

#[derive(Args)]
pub struct IdArgs {
    /// The environment's id, like fuse-agent.
    id: String,
}

#[derive(Args)]
pub struct DestroyArgs {
    /// The environment's id, like fuse-agent.
    id: String,
    /// Do not wait for a person: print the intervention's id and exit with 1. The environment still goes once it is approved.
    #[arg(long)]
    no_wait: bool,
}

pub async fn run(command: Command, face: &Face) -> Done {
    let client = face.client()?;
    match command {
        Command::Create(args) => create::create(&client, args, face).await,
        Command::List(args) => list::list(&client, args, face).await,
        Command::Get(args) => get(&client, &args.id, face).await,
        Command::Exec(args) => exec::exec(&client, args, face).await,
        Command::Destroy(args) => destroy(&client, args, face).await,
        Command::Watch(args) => watch::watch(&client, &args.id, face).await,
    }
}

async fn get(client: &Client, id: &str, face: &Face) -> Done {
    let environment = client.environments().get(id).await?;
    if face.is_json() {
        output::json(&environment)?;
    } else {
        output::data(&sheet(&environment))?;
    }
    Ok(0)
}

async fn destroy(client: &Client, args: DestroyArgs, face: &Face) -> Done {
    let mut call = client.environments().destroy(&args.id);
    if args.no_wait {
        call = call.no_wait();
    }
    let wait = waiting::Wait::start(format!("removing {}", strip(&args.id)));
    let call = call.on_wait(wait.teller());
    match wait.outlast(call, "the destroy").await {
        Some(Ok(())) => {
            note(&format!("removed {}", strip(&args.id)));
            Ok(0)
        }
        Some(Err(Error::PendingIntervention { intervention })) => {
            waiting::pending(&intervention, face)
        }
        Some(Err(error)) => Err(error.into()),
        None => Ok(exec::INTERRUPTED),
    }
}

fn sheet(environment: &Environment) -> String {
    let mut sheet = Sheet::new(output::screen().map(|(columns, _)| columns));
    let spec = &environment.spec;
    sheet.row("id", environment.id.as_str());
    sheet.row("state", environment.state.as_str());
    if let Some(error) = &environment.error {
        sheet.row("error", &strip(error));
    }
    sheet.row("task", environment.task_id.as_str());
    sheet.row("host", &strip(&environment.host_id));
    if !environment.url.is_empty() {
        sheet.row("url", &strip(&environment.url));
    }
    let mut row = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            sheet.row(label, &value);
        }
    };
    let duration = |seconds: u64| crate::time::span(seconds);
    row("image", spec.image.as_deref().map(strip));
    row("cpus", spec.cpus.map(|n| n.to_string()));
    row("memory", spec.ram_mb.map(|n| format!("{n} MiB")));
    row("storage", spec.storage_gb.map(|n| format!("{n} GiB")));
    row("processes", spec.max_processes.map(|n| n.to_string()));
    row("network", spec.network.as_deref().map(strip));
    row("idle timeout", spec.idle_timeout_seconds.map(duration));
    row("max runtime", spec.max_runtime_seconds.map(duration));
    for (name, value) in &spec.labels {
        row(
            "label",
            Some(format!("{}={}", Exact::value(name), Exact::value(value))),
        );
    }
    row(
        "created",
        Some(format!(
            "{} ({})",
            relative(environment.created_at),
            environment.created_at
        )),
    );
    row(
        "updated",
        Some(format!(
            "{} ({})",
            relative(environment.updated_at),
            environment.updated_at
        )),
    );
    sheet.into_text()
}
