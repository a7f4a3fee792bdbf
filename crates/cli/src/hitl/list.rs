//! `fuse hitl list`.

use clap::Args;
use fuse_api::intervention::{Intervention, InterventionList, Kind, State};
use fuse_client::{Client, InterventionFilter, StateFilter};

use super::describe;
use crate::args::Face;
use crate::failure::Done;
use crate::output;
use crate::table;
use crate::time::relative;

#[derive(Args)]
pub struct ListArgs {
    /// Those of this environment.
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// pending, approved, rejected, expired, cancelled, or all.
    #[arg(long, default_value = "pending", value_parser = state)]
    state: StateFilter,
    /// Those of this kind: ask, review, secret, takeover, exec, lifecycle, computer, stall or expiry.
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// Those that this actor raised or decided.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// At most so many; all unless set.
    #[arg(long)]
    limit: Option<usize>,
}

fn state(text: &str) -> Result<StateFilter, String> {
    match text {
        "all" => Ok(StateFilter::All),
        _ => State::parse(text).map(StateFilter::Only).ok_or_else(|| {
            "a state is pending, approved, rejected, expired, cancelled or all".to_owned()
        }),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("a kind is one of {}", known.join(", "))
    })
}

pub async fn list(client: &Client, args: ListArgs, face: &Face) -> Done {
    let mut filter = InterventionFilter {
        env: args.env,
        state: args.state,
        kind: args.kind,
        actor: args.actor,
        limit: Some(200),
        cursor: None,
    };
    let most = args.limit.unwrap_or(usize::MAX);
    let mut interventions = Vec::new();
    while interventions.len() < most {
        let page = client.interventions().list(&filter).await?;
        interventions.extend(page.interventions);
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            break;
        }
    }
    interventions.truncate(most);
    if face.is_json() {
        output::json(&InterventionList {
            interventions,
            next_cursor: None,
        })?;
        return Ok(0);
    }
    let rows = interventions.iter().map(|intervention| {
        vec![
            intervention.id.to_string(),
            intervention.env_id.to_string(),
            intervention.kind.to_string(),
            intervention.state.to_string(),
            when(intervention),
            describe::summary(intervention),
        ]
    });
    table::print(
        &["ID", "ENVIRONMENT", "KIND", "STATE", "WHEN", "ABOUT"],
        rows.collect(),
    )?;
    Ok(0)
}

/// How long there is to decide, or since when it is decided.
fn when(intervention: &Intervention) -> String {
    relative(intervention.resolved_at.unwrap_or(intervention.deadline))
}
