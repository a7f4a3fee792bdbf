//! `fuse environment create`.

use std::path::PathBuf;

use clap::Args;
use fuse_api::environment::{CreateEnvironment, EnvVar};
use fuse_client::Client;
use fuse_terminal::strip;

use crate::args::{Face, pair, seconds};
use crate::failure::{Done, Failure};
use crate::input::text;
use crate::output;
use crate::progress::Progress;

#[derive(Args)]
pub struct CreateArgs {
    /// The environment's name: it becomes fuse-TASK.
    #[arg(long, value_name = "TASK", required_unless_present = "file")]
    task_id: Option<String>,
    /// A create request in JSON to begin with; `-` reads it from standard input. The other flags change it.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// `host`, or a root tree of the server.
    #[arg(long)]
    image: Option<String>,
    /// Processors it may use.
    #[arg(long)]
    cpus: Option<f64>,
    /// Memory, in MiB.
    #[arg(long, value_name = "MIB")]
    ram: Option<u64>,
    /// Disk, in GiB.
    #[arg(long, value_name = "GIB")]
    storage: Option<u64>,
    /// none (its own loopback) or host.
    #[arg(long)]
    network: Option<String>,
    /// Remove it after so long without activity.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    idle_timeout: Option<u64>,
    /// Remove it after so long whatever happens.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    max_runtime: Option<u64>,
    /// A label of your own.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    labels: Vec<(String, String)>,
    /// A variable that every command sees.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
}

pub async fn create(client: &Client, args: CreateArgs, face: &Face) -> Done {
    let request = request(args)?;
    make(client, &request, face).await
}

/// Creates it and prints its id.
pub async fn make(client: &Client, request: &CreateEnvironment, face: &Face) -> Done {
    let progress = Progress::start(format!("creating {}", strip(&request.task_id)));
    let environment = client.environments().create(request).await?;
    drop(progress);
    if face.is_json() {
        output::json(&environment)?;
    } else {
        output::line(environment.id.as_str())?;
    }
    Ok(0)
}

fn request(args: CreateArgs) -> Result<CreateEnvironment, Failure> {
    let mut request = match &args.file {
        None => CreateEnvironment::default(),
        Some(path) => {
            let text = text(path)?;
            // It may hold secrets, so the complaint does not quote it.
            serde_json::from_str(&text).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                let what = if error.is_data() {
                    "is no create request"
                } else {
                    "is no JSON"
                };
                Failure::said(format!(
                    "{}:{line}:{column}: {what}{}",
                    path.display(),
                    unknown(&error)
                ))
            })?
        }
    };
    let spec = &mut request.spec;
    spec.image = args.image.or(spec.image.take());
    spec.cpus = args.cpus.or(spec.cpus);
    spec.ram_mb = args.ram.or(spec.ram_mb);
    spec.storage_gb = args.storage.or(spec.storage_gb);
    spec.network = args.network.or(spec.network.take());
    spec.idle_timeout_seconds = args.idle_timeout.or(spec.idle_timeout_seconds);
    spec.max_runtime_seconds = args.max_runtime.or(spec.max_runtime_seconds);
    spec.labels.extend(args.labels);
    let variables = args.env.into_iter().map(|(name, value)| {
        (
            name,
            EnvVar {
                value: Some(value),
                secret: None,
            },
        )
    });
    request.env.extend(variables);
    if let Some(task_id) = args.task_id {
        request.task_id = task_id;
    }
    Ok(request)
}

/// The complaint about an unknown field names fields alone.
fn unknown(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("unknown field") {
        format!(": {}", text.split(" at line").next().unwrap_or_default())
    } else {
        String::new()
    }
}
