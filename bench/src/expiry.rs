//! A hundred thousand interventions with one deadline: how long after it the last of them is expired.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fuse_api::time::Timestamp;
use fuse_store::Store;

use crate::make;
use crate::report::{Aim, Report};
use crate::stores::{Bed, Kind, Place, open};

const ENVIRONMENTS: usize = 100;
const EACH: usize = 1_000;
/// How far ahead the deadline lies: the first try is enough on a quick machine.
const AHEAD: [i64; 2] = [20, 45];
/// How long before the deadline everything has to be in place.
const READY: Duration = Duration::from_secs(2);
/// What the server counts them by.
const EXPIRED: &str = "fuse_interventions_expired_total";
const LONGEST: Duration = Duration::from_secs(30);

/// Measures, and reports.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    for kind in Kind::ALL {
        let mut late = None;
        for (attempt, ahead) in AHEAD.into_iter().enumerate() {
            let place = bed.place(kind, &format!("expiry{attempt}"))?;
            late = expire(bed, &place, ahead).await?;
            if late.is_some() {
                break;
            }
        }
        let late = late.context("the interventions were not in place before their deadline")?;
        report.single(
            format!("expiry of {} at once, {}", ENVIRONMENTS * EACH, kind.name()),
            "s",
            late.as_secs_f64(),
            Some(Aim::AtMost(5.0)),
        );
    }
    Ok(())
}

/// None where the deadline came before everything was in place.
async fn expire(bed: &Bed, place: &Place, ahead: i64) -> Result<Option<Duration>> {
    let store = open(&place.url).await?;
    let deadline = make::now().plus_seconds(ahead);
    for n in 0..ENVIRONMENTS {
        fill(&store, n, deadline).await?;
        if left(deadline) < READY {
            store.close().await;
            return Ok(None);
        }
    }
    // The file takes one process at a time.
    store.close().await;
    let server = bed.serve(place).await?;
    if left(deadline) < READY / 2 {
        return Ok(None);
    }
    tokio::time::sleep(left(deadline)).await;
    let begun = Instant::now();
    let wanted = (ENVIRONMENTS * EACH) as f64;
    while server.metric(EXPIRED).await? < wanted {
        if begun.elapsed() > LONGEST {
            bail!("not expired after {} s", LONGEST.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = begun.elapsed();
    drop(server);
    let store = open(&place.url).await?;
    let entries = usize::try_from(store.audit_head().await?.seq).unwrap_or(0);
    store.close().await;
    if entries != 2 * ENVIRONMENTS * EACH {
        bail!("the audit log holds {entries} entries");
    }
    Ok(Some(took))
}

async fn fill(store: &Store, n: usize, deadline: Timestamp) -> Result<()> {
    let home = make::environment(store, &format!("agent-{n}")).await?;
    let caller = make::caller();
    let records = (0..EACH)
        .map(|_| {
            let mut record = make::ask(&home, &caller, 0);
            record.view.deadline = deadline;
            record
        })
        .collect();
    make::commit(store, make::raise(records, &caller)).await
}

fn left(until: Timestamp) -> Duration {
    let micros = until.as_micros() - make::now().as_micros();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
