//! `fuse environment list`.

use clap::Args;
use fuse_api::environment::{EnvState, EnvironmentList};
use fuse_api::ids::TaskId;
use fuse_client::{Client, EnvironmentFilter};
use fuse_terminal::strip;

use crate::args::Face;
use crate::failure::Done;
use crate::output;
use crate::table;
use crate::time::relative;

#[derive(Args)]
pub struct ListArgs {
    /// The one of this task.
    #[arg(long, value_name = "TASK", value_parser = |text: &str| TaskId::parse(text))]
    task_id: Option<TaskId>,
    /// Those in this state: provisioning, running, draining, destroying or failed.
    #[arg(long, value_parser = state)]
    state: Option<EnvState>,
    /// At most so many; all unless set.
    #[arg(long)]
    limit: Option<usize>,
}

fn state(text: &str) -> Result<EnvState, String> {
    EnvState::parse(text).ok_or_else(|| {
        "a state is provisioning, running, draining, destroying or failed".to_owned()
    })
}

pub async fn list(client: &Client, args: ListArgs, face: &Face) -> Done {
    let mut filter = EnvironmentFilter {
        task_id: args.task_id,
        state: args.state,
        limit: Some(200),
        ..EnvironmentFilter::default()
    };
    let most = args.limit.unwrap_or(usize::MAX);
    let mut environments = Vec::new();
    while environments.len() < most {
        let page = client.environments().list(&filter).await?;
        environments.extend(page.environments);
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            break;
        }
    }
    environments.truncate(most);
    if face.is_json() {
        output::json(&EnvironmentList {
            environments,
            next_cursor: None,
        })?;
        return Ok(0);
    }
    let rows = environments.iter().map(|environment| {
        let image = environment
            .spec
            .image
            .as_deref()
            .map(strip)
            .unwrap_or_default();
        let error = environment.error.as_deref().map(strip).unwrap_or_default();
        vec![
            environment.id.to_string(),
            environment.state.as_str().to_owned(),
            image,
            relative(environment.created_at),
            error,
        ]
    });
    table::print(
        &["ID", "STATE", "IMAGE", "CREATED", "ERROR"],
        rows.collect(),
    )?;
    Ok(0)
}
