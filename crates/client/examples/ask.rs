//! An agent that asks a person and goes by the outcome: `ask ENVIRONMENT QUESTION SECONDS [CHOICE]…`.
//!
//! `FUSE_URL` and `FUSE_TOKEN` say where. Zero seconds leave the deadline to the environment's policy.

use std::process::ExitCode;
use std::time::Duration;

use fuse_client::{Client, Error, HumanRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [environment, question, seconds, choices @ ..] = arguments.as_slice() else {
        eprintln!("usage: ask ENVIRONMENT QUESTION SECONDS [CHOICE]...");
        return ExitCode::from(2);
    };
    let Ok(seconds) = seconds.parse() else {
        eprintln!("not a number of seconds: {seconds}");
        return ExitCode::from(2);
    };
    match ask(environment, question, seconds, choices).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn ask(
    environment: &str,
    question: &str,
    seconds: u64,
    choices: &[String],
) -> Result<(), Error> {
    let client = Client::from_env()?;
    let mut request = HumanRequest::ask(question).no_wait();
    if !choices.is_empty() {
        request = request.choices(choices);
    }
    if seconds > 0 {
        request = request.timeout(Duration::from_secs(seconds));
    }
    // Raising and waiting are apart here, so that the id can be told while it is pending.
    let pending = client
        .environments()
        .request_human(environment, request)
        .await?;
    println!("I ask: {question} ({})", pending.id);
    let outcome = client.interventions().wait(pending.id.to_string()).await?;
    if outcome.approved() {
        println!("the answer is {:?}, so I go ahead", outcome.answer());
    } else {
        println!(
            "{}: {}; I go on without it",
            outcome.state,
            outcome.reason()
        );
    }
    Ok(())
}
