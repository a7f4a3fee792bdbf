//! `fuse hitl answer`, `approve` and `reject`.

use std::io::{self, IsTerminal as _};

use clap::Args;
use fuse_api::hitl::GrantReach;
use fuse_api::intervention::{ApproveRequest, Intervention, Kind, RejectRequest, State};
use fuse_client::Client;
use fuse_terminal::{ColourChoice, Exact, prompt, strip};

use super::describe::{self, View};
use super::edit;
use crate::args::{ActorArgs, Face, seconds};
use crate::failure::{Done, Failure};
use crate::output::{self, note};
use crate::pager;

#[derive(Args)]
pub struct AnswerArgs {
    /// The intervention's id.
    id: String,
    /// The answer; one of the choices where there are any.
    answer: String,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    actor: ActorArgs,
}

#[derive(Args)]
pub struct ApproveArgs {
    /// The intervention's id.
    id: String,
    /// A comment that the agent reads.
    #[arg(long)]
    reason: Option<String>,
    /// How far it reaches: once, env (identical repeats as long as the environment lives), or ttl: and a duration. The gate's own unless set.
    #[arg(long, value_name = "REACH", value_parser = grant)]
    grant: Option<String>,
    /// Run something else instead: the argv after --, or what $VISUAL or $EDITOR makes of the held one.
    #[arg(long)]
    edit: bool,
    /// Type this instead of what a held computer action would type.
    #[arg(long)]
    text: Option<String>,
    /// Let an expiring environment live so much longer.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    extend: Option<u64>,
    /// On a terminal, do not ask whether the held action may run.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    actor: ActorArgs,
    /// With --edit: the program and its arguments.
    #[arg(last = true, value_name = "ARGV", requires = "edit")]
    argv: Vec<String>,
}

#[derive(Args)]
pub struct RejectArgs {
    /// The intervention's id.
    id: String,
    /// Why, for the agent to read.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    actor: ActorArgs,
}

/// What the person decided on.
#[derive(Args)]
struct SeenArgs {
    /// Decide only if the payload still has this hash, as `fuse hitl show` printed it.
    #[arg(long, value_name = "HASH")]
    payload_hash: Option<String>,
}

impl SeenArgs {
    /// The hash to decide by: the one from a look before, or that of what was fetched now.
    fn hash(self, fetched: &Intervention) -> Option<String> {
        Some(
            self.payload_hash
                .unwrap_or_else(|| fetched.payload_hash.clone()),
        )
    }
}

fn grant(text: &str) -> Result<String, String> {
    text.parse::<GrantReach>()
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

pub async fn answer(args: AnswerArgs, face: &Face) -> Done {
    let client = args.actor.client(face)?;
    let fetched = client.interventions().get(&args.id).await?;
    if fetched.kind != Kind::Ask {
        return Err(Failure::said(format!(
            "{} is a {}, which takes no answer: approve or reject it",
            fetched.id, fetched.kind
        )));
    }
    let request = ApproveRequest {
        answer: Some(meant(args.answer, &fetched)),
        payload_hash: args.seen.hash(&fetched),
        ..ApproveRequest::default()
    };
    send(&client, &fetched, &request, face).await
}

/// The choice that is shown as what the person typed, where it reads differently.
fn meant(answer: String, ask: &Intervention) -> String {
    let choices = ask
        .payload
        .ask
        .as_ref()
        .map(|ask| ask.choices.as_slice())
        .unwrap_or_default();
    if choices.contains(&answer) {
        return answer;
    }
    let mut alike = choices.iter().filter(|choice| strip(choice) == answer);
    match (alike.next(), alike.next()) {
        (Some(only), None) => only.clone(),
        // Of two that look the same nobody can have meant one; the server says what it takes.
        (Some(_) | None, _) => answer,
    }
}

pub async fn approve(args: ApproveArgs, face: &Face) -> Done {
    let client = args.actor.client(face)?;
    let fetched = client.interventions().get(&args.id).await?;
    let pending = fetched.state == State::Pending;
    let edited_argv = match (args.edit, args.argv.is_empty()) {
        (false, _) => None,
        (true, false) => Some(args.argv),
        (true, true) if pending => edit::argv(&fetched)?,
        (true, true) => None,
    };
    let request = ApproveRequest {
        reason: args.reason,
        edited_argv,
        edited_text: args.text,
        grant: args.grant,
        extend_seconds: args.extend,
        payload_hash: args.seen.hash(&fetched),
        ..ApproveRequest::default()
    };
    if pending
        && acts(fetched.kind)
        && !args.yes
        && somebody_is_there()
        && !confirmed(&fetched, &request)?
    {
        return Err(Failure::said(format!(
            "not approved; {} stays pending",
            fetched.id
        )));
    }
    send(&client, &fetched, &request, face).await
}

async fn send(
    client: &Client,
    fetched: &Intervention,
    request: &ApproveRequest,
    face: &Face,
) -> Done {
    let decided = client
        .interventions()
        .approve_with(&fetched.id, request)
        .await?;
    told(&decided, face)
}

pub async fn reject(args: RejectArgs, face: &Face) -> Done {
    let client = args.actor.client(face)?;
    let fetched = client.interventions().get(&args.id).await?;
    let request = RejectRequest {
        reason: Some(args.reason),
        payload_hash: args.seen.hash(&fetched),
        ..RejectRequest::default()
    };
    let decided = client
        .interventions()
        .reject_with(&fetched.id, &request)
        .await?;
    told(&decided, face)
}

fn told(decided: &Intervention, face: &Face) -> Done {
    if face.is_json() {
        output::json(decided)?;
        return Ok(0);
    }
    let grant = decided
        .decision
        .as_ref()
        .and_then(|decision| decision.grant);
    let grant = grant
        .map(|grant| format!(" (grant {grant})"))
        .unwrap_or_default();
    output::line(&format!("{} {}{grant}", decided.id, decided.state))?;
    Ok(0)
}

/// Whether the approval makes something run.
fn acts(kind: Kind) -> bool {
    match kind {
        Kind::Exec | Kind::Lifecycle | Kind::Computer => true,
        Kind::Ask | Kind::Review | Kind::Secret | Kind::Takeover | Kind::Stall | Kind::Expiry => {
            false
        }
    }
}

fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows what is going to run, all of it, and asks.
fn confirmed(held: &Intervention, request: &ApproveRequest) -> Result<bool, Failure> {
    let colour = ColourChoice::of_process(output::stderr_is_terminal());
    let columns = terminal_size::terminal_size_of(io::stderr())
        .map(|(columns, _)| usize::from(columns.0).max(20));
    let shown = describe::details(
        held,
        View {
            colour,
            columns,
            full: false,
        },
    );
    note(shown.trim_end_matches('\n'));
    let held_command = held.payload.exec.as_ref().map(describe::will_run);
    let instead = request
        .edited_argv
        .as_ref()
        .map(Exact::argv)
        .or_else(|| request.edited_text.as_deref().map(Exact::value));
    if let Some(exact) = &instead {
        note(&format!("instead      {exact}"));
    }
    if let Some(long) = instead.or(held_command).filter(Exact::is_cut) {
        // Nobody can approve what they could not read.
        pager::through(&format!("{}\n", long.whole()))?;
    }
    prompt::confirm("Let it run?").map_err(|error| Failure::said(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_checked_before_anything_is_sent() {
        assert!(grant("ttl:30m").is_ok() && grant("once").is_ok() && grant("env").is_ok());
        assert!(grant("forever").is_err() && grant("ttl:").is_err());
    }

    #[test]
    fn an_answer_means_the_choice_that_reads_like_it() {
        let ask = |choices: &[&str]| {
            let mut ask = super::describe::tests::ask("?");
            ask.payload.ask.as_mut().unwrap().choices =
                choices.iter().map(|&c| c.to_owned()).collect();
            ask
        };
        assert_eq!(
            meant("yes".into(), &ask(&["ye\u{200b}s", "no"])),
            "ye\u{200b}s"
        );
        assert_eq!(meant("yes".into(), &ask(&["yes", "ye\u{200b}s"])), "yes");
        assert_eq!(
            meant("yes".into(), &ask(&["y\u{200b}es", "ye\u{200b}s"])),
            "yes"
        );
        assert_eq!(meant("free".into(), &ask(&[])), "free");
    }
}
