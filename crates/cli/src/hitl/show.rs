//! `fuse hitl show`.

use clap::Args;
use fuse_client::Client;

use super::describe::{self, View};
use crate::args::Face;
use crate::failure::Done;
use crate::output;
use crate::pager;

#[derive(Args)]
pub struct ShowArgs {
    /// The intervention's id.
    id: String,
    /// Cut nothing: the whole command, question and output.
    #[arg(long)]
    full: bool,
}

pub async fn show(client: &Client, args: ShowArgs, face: &Face) -> Done {
    let intervention = client.interventions().get(&args.id).await?;
    if face.is_json() {
        output::json(&intervention)?;
        return Ok(0);
    }
    let colour = output::colour();
    let columns = output::screen().map(|(columns, _)| columns);
    let mut text = describe::details(
        &intervention,
        View {
            colour,
            columns,
            full: args.full,
        },
    );
    if let Some(review) = &intervention.payload.review {
        text.push_str(&describe::review_content(review, colour));
    }
    pager::show(&text)?;
    Ok(0)
}
