//! `fuse connect`.

use std::io::{self, IsTerminal as _};

use clap::Args;
use fuse_api::environment::SecretText;
use fuse_client::{Client, InterventionFilter};
use fuse_terminal::prompt;

use crate::context::{self, Context};
use crate::failure::{Done, Failure};
use crate::output::note;
use crate::progress::Progress;

#[derive(Args)]
pub struct ConnectArgs {
    /// Where the server is, like http://127.0.0.1:8080.
    url: String,
    /// The master token or an API key; `-` reads it from standard input. Without it FUSE_TOKEN counts, and a person is asked.
    /// A token written here can be seen by other users of this machine while the command runs.
    #[arg(long, value_name = "T")]
    token: Option<String>,
    /// The context's name.
    #[arg(long, default_value = "default")]
    name: String,
}

pub async fn connect(args: ConnectArgs) -> Done {
    context::check_name(&args.name).map_err(Failure::Usage)?;
    let token = token(args.token)?;
    let client = Client::builder(&args.url)
        .token(&token.0)
        .tries(1)
        .build()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let progress = Progress::start(format!("connecting to {}", fuse_terminal::strip(&args.url)));
    let version = client.version().await?;
    if version.service != "fuse-orchestrator" {
        return Err(Failure::said(format!(
            "{} is no Fuse server: it calls itself {:?}",
            args.url, version.service
        )));
    }
    let filter = InterventionFilter {
        limit: Some(1),
        ..InterventionFilter::default()
    };
    match client.interventions().list(&filter).await {
        Ok(_) => {}
        // A key that may do something else is a key all the same.
        Err(error) if error.status() == Some(403) => {}
        Err(error) => return Err(error.into()),
    }
    drop(progress);
    let url = args.url.trim().to_owned();
    let path = context::save(
        &args.name,
        Context {
            url: url.clone(),
            token,
        },
    )?;
    let version = fuse_terminal::strip(&version.version);
    note(&format!(
        "connected to {url} (version {version}); saved as context {} in {}",
        args.name,
        path.display()
    ));
    Ok(0)
}

fn token(given: Option<String>) -> Result<SecretText, Failure> {
    let unusable = |error: prompt::PromptError| Failure::Usage(format!("the token: {error}"));
    let text = match given.as_deref() {
        Some("-") if io::stdin().is_terminal() => {
            prompt::secret("token").map_err(unusable)?.to_string()
        }
        Some("-") => prompt::secret_from(io::stdin().lock())
            .map_err(unusable)?
            .to_string(),
        Some(text) => text.to_owned(),
        None => match std::env::var("FUSE_TOKEN") {
            Ok(text) if !text.trim().is_empty() => text,
            Ok(_) | Err(_) => match prompt::secret("token") {
                Ok(text) => text.to_string(),
                Err(prompt::PromptError::NotATerminal) => {
                    return Err(Failure::Usage(
                        "a token is needed: --token - reads it from standard input".to_owned(),
                    ));
                }
                Err(error) => return Err(unusable(error)),
            },
        },
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(Failure::Usage("the token is empty".to_owned()));
    }
    Ok(SecretText(text))
}
