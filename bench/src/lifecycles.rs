//! Life cycles per second: a request is raised, approved, and whoever waits for it is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fuse_domain::intervention::raise::Home;
use fuse_store::Store;
use tokio::task::JoinSet;

use crate::make;
use crate::process::capture;
use crate::report::{Aim, Report};
use crate::server::Server;
use crate::stores::{Bed, Kind, open};

const CLIENTS: [usize; 3] = [1, 16, 64];
const REPEATS: usize = 3;
const WARM: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(1_500);
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pgbench/lifecycle.sql");

/// The ways to run life cycles, each with its figures by number of clients and repetition.
#[derive(Default)]
struct Figures {
    pgbench: [Vec<f64>; 3],
    ledger: [[Vec<f64>; 3]; 2],
    http: [[Vec<f64>; 3]; 2],
}

struct Way {
    ledger: (Arc<Store>, Home),
    server: Server,
    env: String,
}

/// Measures, and reports.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    let mut ways = Vec::new();
    for kind in Kind::ALL {
        let store = open(&bed.place(kind, "ledger")?.url).await?;
        let home = make::environment(&store, "agent").await?;
        let server = bed.serve(&bed.place(kind, "http")?).await?;
        let env = server.environment("agent").await?;
        ways.push(Way {
            ledger: (Arc::new(store), home),
            server,
            env,
        });
    }
    // The store brings the tables into shape; what is measured there goes without it.
    open(&bed.place(Kind::Postgres, "pgbench")?.url)
        .await?
        .close()
        .await;

    let mut figures = Figures::default();
    for _ in 0..REPEATS {
        for (n, clients) in CLIENTS.into_iter().enumerate() {
            figures.pgbench[n].push(pgbench(bed, clients).await?);
            for (kind, way) in ways.iter().enumerate() {
                figures.ledger[kind][n].push(ledger(&way.ledger, clients).await?);
                figures.http[kind][n].push(http(&way.server, &way.env, clients).await?);
            }
        }
    }
    for way in ways {
        way.ledger.0.close().await;
    }
    tell(&figures, report);
    Ok(())
}

fn tell(figures: &Figures, report: &mut Report) {
    for (n, clients) in CLIENTS.into_iter().enumerate() {
        let pgbench = &figures.pgbench[n];
        report.repeated(
            format!("lifecycles pgbench, {clients} clients"),
            "/s",
            pgbench,
            None,
        );
        for (k, kind) in Kind::ALL.into_iter().enumerate() {
            let store = kind.name();
            let (ledger, http) = (&figures.ledger[k][n], &figures.http[k][n]);
            report.repeated(
                format!("lifecycles {store} ledger alone, {clients} clients"),
                "/s",
                ledger,
                None,
            );
            report.repeated(
                format!("lifecycles {store} over HTTP, {clients} clients"),
                "/s",
                http,
                None,
            );
            if kind == Kind::Postgres {
                let aim = |aim| (clients == 64).then_some(Aim::AtLeast(aim));
                report.repeated(
                    format!("ratio {store} ledger to pgbench, {clients} clients"),
                    "x",
                    &ratios(ledger, pgbench),
                    aim(3.0),
                );
                report.repeated(
                    format!("ratio {store} HTTP to pgbench, {clients} clients"),
                    "x",
                    &ratios(http, pgbench),
                    aim(1.0),
                );
            }
        }
    }
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(theirs)
        .map(|(ours, theirs)| ours / theirs)
        .collect()
}

/// What several clients count, and when they stop.
#[derive(Default)]
struct Run {
    done: AtomicU64,
    stop: AtomicBool,
}

impl Run {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets clients run, and tells how many life cycles a second they ended once they were warm.
async fn rate(run: &Arc<Run>, mut clients: JoinSet<Result<()>>) -> Result<f64> {
    tokio::time::sleep(WARM).await;
    let (before, begun) = (run.done.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(MEASURED).await;
    let (after, took) = (run.done.load(Ordering::Relaxed), begun.elapsed());
    run.stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.context("a client broke off")??;
    }
    Ok((after - before) as f64 / took.as_secs_f64())
}

async fn ledger((store, home): &(Arc<Store>, Home), clients: usize) -> Result<f64> {
    let run = Arc::new(Run::default());
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (run, store, home) = (Arc::clone(&run), Arc::clone(store), home.clone());
        tasks.spawn(async move {
            let caller = make::caller();
            while run.goes_on() {
                let record = make::ask(&home, &caller, 3_600);
                make::commit(&store, make::raise(vec![record.clone()], &caller)).await?;
                make::commit(&store, make::approve(&record, &caller)?).await?;
                run.count();
            }
            Ok(())
        });
    }
    rate(&run, tasks).await
}

async fn http(server: &Server, env: &str, clients: usize) -> Result<f64> {
    let run = Arc::new(Run::default());
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let run = Arc::clone(&run);
        let raise = format!("/v1/environments/{env}?action=request");
        // The agent raises and waits on connections of its own; a person has another one.
        let (mut agent, mut person) = (server.connect().await?, server.connect().await?);
        tasks.spawn(async move {
            const ASK: &str = r#"{"kind":"ask","question":"Deploy the release to production now?","choices":["yes","no"]}"#;
            while run.goes_on() {
                let id = agent.call("POST", &raise, ASK).await?.ok(201)?.intervention()?;
                let waiting = format!("/v1/interventions/{id}?wait=50s");
                agent.send("GET", &waiting, "").await?;
                let approve = format!("/v1/interventions/{id}?action=approve");
                person.call("POST", &approve, r#"{"answer":"yes"}"#).await?.ok(200)?;
                let heard = agent.receive().await?.ok(200)?;
                if !heard.holds(r#""state":"approved""#) {
                    bail!("the waiter was not woken by the approval");
                }
                run.count();
            }
            Ok(())
        });
    }
    rate(&run, tasks).await
}

/// The same writes, one transaction each.
async fn pgbench(bed: &Bed, clients: usize) -> Result<f64> {
    let postgres = bed.postgres()?;
    let mut command = postgres.client("pgbench", "pgbench");
    let seconds = (WARM + MEASURED).as_secs_f64().ceil();
    command.args(["-n", "-M", "prepared", "-D", "n=0", "-f", SCRIPT]);
    command.args([
        "-c",
        &clients.to_string(),
        "-j",
        &clients.min(2).to_string(),
    ]);
    command.args(["-T", &seconds.to_string()]);
    // Each run counts its ids from the beginning.
    let mut clean = postgres.client("psql", "pgbench");
    clean.args([
        "-q",
        "-c",
        "TRUNCATE interventions, audit_log",
        "-c",
        "UPDATE chain_head SET seq = 0",
    ]);
    let printed = tokio::task::spawn_blocking(move || {
        capture(&mut clean)?;
        capture(&mut command)
    })
    .await??;
    let tps = printed.lines().find_map(|line| line.strip_prefix("tps = "));
    let tps = tps.and_then(|rest| rest.split_whitespace().next());
    tps.with_context(|| format!("pgbench printed no rate: {printed}"))?
        .parse()
        .context("pgbench's rate")
}
