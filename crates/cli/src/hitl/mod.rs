//! `fuse hitl`: what waits for a person, and decisions on it.

mod audit;
mod decide;
mod describe;
mod edit;
mod list;
mod show;
mod watch;

use clap::Subcommand;

use crate::args::Face;
use crate::failure::Done;

#[derive(Subcommand)]
pub enum Command {
    /// List interventions, newest first; the pending ones unless told otherwise.
    List(list::ListArgs),
    /// Show one intervention, with all that a decision on it needs.
    Show(show::ShowArgs),
    /// Answer a question.
    Answer(decide::AnswerArgs),
    /// Approve: a held action runs, a review passes.
    Approve(decide::ApproveArgs),
    /// Reject, with a reason that the agent reads.
    Reject(decide::RejectArgs),
    /// Print what waits for a person, as it comes.
    Watch(watch::WatchArgs),
    /// Read the audit log, or verify its chain on this machine.
    Audit(audit::AuditArgs),
}

pub async fn run(command: Command, face: &Face) -> Done {
    match command {
        Command::List(args) => list::list(&face.client()?, args, face).await,
        Command::Show(args) => show::show(&face.client()?, args, face).await,
        Command::Answer(args) => decide::answer(args, face).await,
        Command::Approve(args) => decide::approve(args, face).await,
        Command::Reject(args) => decide::reject(args, face).await,
        Command::Watch(args) => watch::watch(&face.client()?, args, face).await,
        Command::Audit(args) => audit::audit(&face.client()?, args, face).await,
    }
}
