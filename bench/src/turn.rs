//! What a turn of Fisk's loop costs over the provider's call in it, with a stand-in of the provider on this machine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fisk::agent::{Agent, End, log::Log, stop::Stop};
use fisk::session::Store;
use fisk_domain::Toolset;
use fisk_domain::budget::Limits;
use fisk_domain::event::{Event, Watcher};
use fisk_domain::session::{FORMAT, Fingerprint, Record};
use fisk_exec::{ExecConfig, Executor};
use fisk_llm::standin::{Server, Turn};
use fisk_llm::{Anthropic, Delta, Message, Provider, Request, Sink};
use fisk_operator::{LineOptions, LinePrompter};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::report::Report;
use crate::stats::{median, ms};

const ROUNDS: usize = 7;
const TURNS: usize = 100;

/// Nobody watches.
struct Nobody;

impl Watcher for Nobody {
    fn event(&self, _: Event) {}
}

impl Sink for Nobody {
    fn delta(&self, _: Delta) {}
}

/// Each turn calls a tool that is not there, so that no process is in the figures: what a command costs is another measure.
pub async fn measure(report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir().context("no folder")?;
    let store = Store::locate(Some(folder.path())).map_err(anyhow::Error::msg)?;
    let mut seen = 0;
    let server = Server::answering(move |_| {
        seen += 1;
        match seen % (TURNS + 1) {
            0 => Turn::text("done"),
            turn => Turn::tool_use(&format!("t{turn}"), "nothing", json!({})),
        }
    })
    .await;
    let provider: Arc<dyn Provider> = Arc::new(Anthropic::new(server.anthropic("bench"))?);
    let agent = agent(Arc::clone(&provider)).await?;
    let (mut alone, mut plain, mut kept, mut over) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut log = Log::begin(first("bench"), None).map_err(anyhow::Error::msg)?;
        let with_loop = time(&agent, &mut log).await?;
        let bare = calls(&*provider, &agent.system, log.messages()).await?;
        let (journal, record) = store.create(None, first).map_err(anyhow::Error::msg)?;
        let mut log = Log::begin(record, Some(journal)).map_err(anyhow::Error::msg)?;
        kept.push(time(&agent, &mut log).await?);
        over.push(with_loop - bare);
        plain.push(with_loop);
        alone.push(bare);
    }
    report.repeated("the provider's call of a turn alone", "ms", &alone, None);
    report.repeated("a turn of the loop", "ms", &plain, None);
    report.repeated("loop over the provider's call", "ms", &over, None);
    report.repeated("a turn with a journal", "ms", &kept, None);
    if median(&over) < 0.0 {
        report.note("the loop costs less than the noise of the calls".to_owned());
    }
    Ok(())
}

/// One turn of a whole run.
async fn time(agent: &Agent, log: &mut Log) -> Result<f64> {
    let begun = Instant::now();
    let end = agent.run(log).await;
    let took = ms(begun.elapsed()) / (TURNS + 1) as f64;
    match end {
        End::Finished(_) => Ok(took),
        other => bail!("the run ended with {other:?}"),
    }
}

/// The same calls with the same conversation, growing in the same steps.
async fn calls(provider: &dyn Provider, system: &str, messages: &[Message]) -> Result<f64> {
    let cancel = CancellationToken::new();
    let mut took = Duration::ZERO;
    for turn in 0..=TURNS {
        let request = Request {
            system,
            messages: &messages[..turn * 2 + 1],
            tools: &[],
            max_tokens: 16_000,
            timeout: Duration::from_secs(20),
        };
        let begun = Instant::now();
        provider.complete(request, &Nobody, &cancel).await?;
        took += begun.elapsed();
    }
    Ok(ms(took) / (TURNS + 1) as f64)
}

async fn agent(provider: Arc<dyn Provider>) -> Result<Agent> {
    let executor = Executor::new(ExecConfig {
        application: Path::new("/bin/true").to_owned(),
        strip_env: Vec::new(),
        sandbox: false,
    })
    .await?;
    Ok(Agent {
        provider,
        tools: Arc::new(Toolset::default()),
        executor: Arc::new(executor),
        prompter: Arc::new(LinePrompter::new(LineOptions::default())),
        watcher: Arc::new(Nobody),
        human_in_the_loop: false,
        system: fisk::agent::system::prompt(None, None),
        limits: Limits {
            max_tokens: u64::MAX,
            max_iterations: u32::MAX,
        },
        call_timeout: Duration::from_secs(20),
        tool_timeout: Duration::from_secs(60),
        stop: Stop::new(false),
    })
}

fn first(session: &str) -> Record {
    Record::Started {
        format: FORMAT,
        session: session.to_owned(),
        fingerprint: Box::new(Fingerprint {
            provider: "anthropic".into(),
            model: "bench".into(),
            base_url: None,
            system_prompt: String::new(),
            application: "/bin/true".into(),
            version: String::new(),
            global_flags: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            confirm_tags: BTreeSet::new(),
            human_in_the_loop: false,
            sandbox: false,
            tools: Default::default(),
        }),
        prompt: "go".into(),
    }
}
