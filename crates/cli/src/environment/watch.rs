//! `fuse environment watch`.

use fuse_api::events::EventKind;
use fuse_client::Client;
use fuse_terminal::strip;

use crate::args::Face;
use crate::failure::Done;
use crate::output;

pub async fn watch(client: &Client, id: &str, face: &Face) -> Done {
    let mut events = client.environments().events(id).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        if face.is_json() {
            output::json_line(&event)?;
            continue;
        }
        let what = match (event.event, &event.intervention) {
            (EventKind::Intervention, Some(about)) => {
                format!("{} {} {}", about.kind, about.state, about.id)
            }
            (EventKind::Intervention | EventKind::State, _) => match &event.error {
                Some(error) => format!("{}: {}", event.state.as_str(), strip(error)),
                None => event.state.as_str().to_owned(),
            },
        };
        output::line(&format!("{} {} {what}", crate::time::now(), event.vm_id))?;
    }
    Ok(0)
}
