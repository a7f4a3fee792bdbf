//! `fuse hitl watch`.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::Intervention;
use fuse_client::{Client, Error, InterventionFilter};

use super::describe;
use crate::args::Face;
use crate::failure::{Done, Failure};
use crate::output::{self, note};
use crate::time::relative;

/// How often is looked. The event streams drop events under load, so they are no record to go by.
const EVERY: Duration = Duration::from_secs(2);

#[derive(Args)]
pub struct WatchArgs {
    /// Those of this environment.
    #[arg(long, value_name = "ID")]
    env: Option<String>,
}

pub async fn watch(client: &Client, args: WatchArgs, face: &Face) -> Done {
    let mut seen = HashSet::new();
    let mut away = false;
    loop {
        match fresh(client, args.env.as_deref(), &seen).await {
            Ok(found) => {
                if std::mem::take(&mut away) {
                    note("the server is back");
                }
                for intervention in &found {
                    tell(intervention, face)?;
                    seen.insert(intervention.id.clone());
                }
                if !found.is_empty() && output::stdout_is_terminal() && !face.is_json() {
                    output::data("\u{7}")?;
                }
            }
            Err(error) if passing(&error) => {
                if !std::mem::replace(&mut away, true) {
                    output::failure(&Failure::from(error));
                    note("still watching");
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The pending ones that were not there before, oldest first.
async fn fresh(
    client: &Client,
    env: Option<&str>,
    seen: &HashSet<InterventionId>,
) -> Result<Vec<Intervention>, Error> {
    let mut filter = InterventionFilter {
        env: env.map(str::to_owned),
        limit: Some(200),
        ..InterventionFilter::default()
    };
    let mut found = Vec::new();
    loop {
        let page = client.interventions().list(&filter).await?;
        let known = page
            .interventions
            .iter()
            .any(|intervention| seen.contains(&intervention.id));
        found.extend(
            page.interventions
                .into_iter()
                .filter(|intervention| !seen.contains(&intervention.id)),
        );
        filter.cursor = page.next_cursor;
        // Newest first: beyond one that was seen there is nothing new.
        if known || filter.cursor.is_none() {
            found.reverse();
            return Ok(found);
        }
    }
}

fn tell(intervention: &Intervention, face: &Face) -> Result<(), Failure> {
    if face.is_json() {
        return output::json_line(intervention);
    }
    let about = describe::summary(intervention);
    let head = format!(
        "{} {} {} deadline {}",
        intervention.id,
        intervention.env_id,
        intervention.kind,
        relative(intervention.deadline)
    );
    let columns = output::screen().map_or(usize::MAX, |(columns, _)| columns.saturating_sub(3));
    output::line(&format!(
        "{head}\n  {}",
        fuse_terminal::cell(&about, columns)
    ))
}

/// Whether the server may be back soon.
fn passing(error: &Error) -> bool {
    match error {
        Error::Transport { .. } => true,
        other => other.status().is_some_and(|status| status >= 500),
    }
}
