//! An environment without build steps: made and destroyed over the API.

use std::time::Instant;

use anyhow::Result;

use crate::report::{Aim, Report};
use crate::stats::{ms, percentile};
use crate::stores::{Bed, Kind};

const ENVIRONMENTS: usize = 40;

/// Measures, and reports.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    let server = bed.serve(&bed.place(Kind::Sqlite, "create")?).await?;
    let mut connection = server.connect().await?;
    let (mut created, mut destroyed) = (Vec::new(), Vec::new());
    for n in 0..ENVIRONMENTS {
        let body = format!(r#"{{"task_id":"agent-{n}"}}"#);
        let begun = Instant::now();
        connection
            .call("POST", "/v1/environments", &body)
            .await?
            .ok(201)?;
        created.push(ms(begun.elapsed()));
        let begun = Instant::now();
        let path = format!("/v1/environments/fuse-agent-{n}");
        connection.call("DELETE", &path, "").await?.ok(204)?;
        destroyed.push(ms(begun.elapsed()));
    }
    report.repeated(
        "environment create",
        "ms",
        &created,
        Some(Aim::AtMost(150.0)),
    );
    report.single(
        "environment create, p95",
        "ms",
        percentile(&created, 0.95),
        Some(Aim::AtMost(150.0)),
    );
    report.repeated("environment destroy", "ms", &destroyed, None);
    report.single(
        "environment destroy, p95",
        "ms",
        percentile(&destroyed, 0.95),
        None,
    );
    Ok(())
}
