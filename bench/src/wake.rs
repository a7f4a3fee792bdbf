//! From an approval to its waiter, beside ten thousand parked long polls; what each of them costs; and how long it takes to
//! wake them all.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fuse_api::ids::EnvId;
use tokio::task::JoinSet;

use crate::make;
use crate::parked::Parked;
use crate::report::{Aim, Report};
use crate::server::Server;
use crate::stats::{ms, percentile};
use crate::stores::{Bed, Kind, Place, open};

/// The waiters that stay parked while others are woken one by one.
const PARKED: usize = 10_000;
const SAMPLES: usize = 500;
/// An environment holds 1,000 pending interventions at most, so that it takes several.
const ENVIRONMENTS: usize = 11;
const READS: usize = 200;

/// Measures, and reports.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    for kind in Kind::ALL {
        on(bed, kind, report).await.with_context(|| kind.name())?;
    }
    report.note(format!(
        "wake: {PARKED} polls wait for as many interventions in {ENVIRONMENTS} environments; an answer that comes after the \
         approver's own is counted from there, and the time of one read is added for what the approver's answer itself took"
    ));
    Ok(())
}

async fn on(bed: &Bed, kind: Kind, report: &mut Report) -> Result<()> {
    let place = bed.place(kind, "wake")?;
    let server = bed.serve(&place).await?;
    let mut environments = Vec::new();
    for n in 0..ENVIRONMENTS {
        environments.push(server.environment(&format!("agent-{n}")).await?);
    }
    let crowd = server.environment("crowd").await?;
    // The server starts anew, so that its memory holds nothing of what went before.
    drop(server);
    let ids = fill(&place, &environments).await?;
    let server = bed.serve(&place).await?;
    let mut person = server.connect().await?;
    let path = format!("/v1/interventions/{}", ids[0]);
    for _ in 0..50 {
        person.call("GET", &path, "").await?.ok(200)?;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;

    let before = server.resident_kib()?;
    let mut parked = park(&server, ids.clone()).await?;
    let each = (server.resident_kib()? - before) / ids.len() as f64;

    let samples = sample(&server, &mut parked, &ids).await?;
    let name = kind.name();
    let line = |what: &str| format!("wake {name}: {what}");
    let (p50, p99) = (
        |values: &[f64]| percentile(values, 0.5),
        |values: &[f64]| percentile(values, 0.99),
    );
    report.single(
        line("approval committed to waiter, p50"),
        "ms",
        p50(&samples.woken),
        Some(Aim::AtMost(1.0)),
    );
    report.single(
        line("approval committed to waiter, p99"),
        "ms",
        p99(&samples.woken),
        Some(Aim::AtMost(5.0)),
    );
    report.single(
        line("approval sent to waiter, p50"),
        "ms",
        p50(&samples.whole),
        None,
    );
    report.single(
        line("approval sent to waiter, p99"),
        "ms",
        p99(&samples.whole),
        None,
    );
    report.single(
        line("approval sent to its own answer, p50"),
        "ms",
        p50(&samples.approved),
        None,
    );
    report.single(
        line("approval sent to its own answer, p99"),
        "ms",
        p99(&samples.approved),
        None,
    );
    report.single(line("a read, p50"), "ms", p50(&samples.reads), None);
    report.single(
        line("a request that touches nothing, p50"),
        "ms",
        p50(&samples.bare),
        None,
    );
    report.single(
        line("memory of a parked poll"),
        "KiB",
        each,
        Some(Aim::AtMost(24.0)),
    );

    let begun = Instant::now();
    let last = destroy(&server, &mut parked, &environments).await?;
    report.single(
        line("all 10,000 woken by destroying 11 environments"),
        "ms",
        ms(last - begun),
        None,
    );

    let crowd = crowd_on_one(&server, &crowd).await?;
    report.single(
        line("10,000 waiters of one id, from its approval's answer"),
        "ms",
        crowd,
        None,
    );
    Ok(())
}

/// Raises the interventions, without the server.
async fn fill(place: &Place, environments: &[String]) -> Result<Vec<String>> {
    let store = open(&place.url).await?;
    let caller = make::caller();
    let mut ids = Vec::new();
    let each = (PARKED + SAMPLES).div_ceil(environments.len());
    for env in environments {
        let row = store.get_environment(&EnvId::parse(env)?).await?;
        let home = make::home(&row.with_context(|| format!("{env} is gone"))?);
        let records: Vec<_> = (0..each)
            .map(|_| make::ask(&home, &caller, 3_600))
            .collect();
        ids.extend(records.iter().map(|record| record.view.id.to_string()));
        make::commit(&store, make::raise(records, &caller)).await?;
    }
    store.close().await;
    ids.truncate(PARKED + SAMPLES);
    Ok(ids)
}

/// Parks a poll for each id, and waits until the server says that all are.
async fn park(server: &Server, ids: Vec<String>) -> Result<Parked> {
    let wanted = ids.len() as f64;
    let parked = Parked::open(server.address, server.token(), ids).await?;
    let begun = Instant::now();
    while server.metric("fuse_waiters_parked").await? < wanted {
        if begun.elapsed() > Duration::from_secs(20) {
            bail!("the polls do not get parked");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(parked)
}

/// Times of single approvals, in milliseconds.
#[derive(Default)]
struct Samples {
    woken: Vec<f64>,
    whole: Vec<f64>,
    approved: Vec<f64>,
    reads: Vec<f64>,
    bare: Vec<f64>,
}

/// Approves one after another, and times the waiter and the approver.
async fn sample(server: &Server, parked: &mut Parked, ids: &[String]) -> Result<Samples> {
    let mut samples = Samples::default();
    let mut person = server.connect().await?;
    let reading = format!("/v1/interventions/{}", ids[ids.len() - 1]);
    for _ in 0..READS {
        let begun = Instant::now();
        person.call("GET", &reading, "").await?.ok(200)?;
        samples.reads.push(ms(begun.elapsed()));
        let begun = Instant::now();
        person.call("GET", "/health", "").await?.ok(200)?;
        samples.bare.push(ms(begun.elapsed()));
    }
    let read = percentile(&samples.reads, 0.5);
    // Waiters from all over the list, so that those of every environment are among them.
    let step = ids.len() / SAMPLES;
    for waiter in (0..SAMPLES).map(|n| n * step) {
        let approve = format!("/v1/interventions/{}?action=approve", ids[waiter]);
        let begun = Instant::now();
        person
            .call("POST", &approve, r#"{"answer":"yes"}"#)
            .await?
            .ok(200)?;
        let answered = Instant::now();
        let heard = parked.next().await?;
        if heard.waiter != waiter || !heard.settled {
            bail!("waiter {} heard of the approval for {waiter}", heard.waiter);
        }
        samples.approved.push(ms(answered - begun));
        samples.whole.push(ms(heard.at - begun));
        samples
            .woken
            .push(ms(heard.at.saturating_duration_since(answered)) + read);
    }
    Ok(samples)
}

/// Destroys the environments all at once; tells when the last waiter heard of it.
async fn destroy(server: &Server, parked: &mut Parked, environments: &[String]) -> Result<Instant> {
    let mut calls = JoinSet::new();
    for env in environments {
        let mut person = server.connect().await?;
        let path = format!("/v1/environments/{env}");
        calls.spawn(async move { person.call("DELETE", &path, "").await?.ok(204).map(drop) });
    }
    let mut last = Instant::now();
    for _ in 0..PARKED {
        let heard = parked.next().await?;
        if !heard.settled {
            bail!("a waiter was answered while nothing had changed");
        }
        last = last.max(heard.at);
    }
    while let Some(done) = calls.join_next().await {
        done??;
    }
    Ok(last)
}

/// Everybody waits for the same approval; from its answer to the last waiter, in milliseconds.
async fn crowd_on_one(server: &Server, env: &str) -> Result<f64> {
    let mut person = server.connect().await?;
    let raise = format!("/v1/environments/{env}?action=request");
    let raised = person
        .call("POST", &raise, r#"{"kind":"ask","question":"Go on?"}"#)
        .await?;
    let id = raised.ok(201)?.intervention()?;
    let mut parked = park(server, vec![id.clone(); PARKED]).await?;
    let mut person = server.connect().await?;
    let approve = format!("/v1/interventions/{id}?action=approve");
    person.call("POST", &approve, "{}").await?.ok(200)?;
    let answered = Instant::now();
    let mut last = answered;
    for _ in 0..PARKED {
        let heard = parked.next().await?;
        if !heard.settled {
            bail!("a waiter was answered while nothing had changed");
        }
        last = last.max(heard.at);
    }
    Ok(ms(last - answered))
}
