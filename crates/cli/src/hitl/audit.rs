//! `fuse hitl audit`.

use clap::Args;
use fuse_api::audit::{AuditEntry, AuditPage};
use fuse_client::{AuditFilter, Client};
use fuse_domain::audit::{Head, Verifier};
use fuse_terminal::strip;

use super::describe;
use crate::args::Face;
use crate::failure::{Done, Failure};
use crate::output;
use crate::progress::Progress;
use crate::table;

#[derive(Args)]
pub struct AuditArgs {
    /// Entries of this environment.
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// Entries of this actor.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Entries since then: a duration before now like 24h, or an RFC 3339 time.
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Recompute every hash on this machine; exit with 1 at the first entry that does not hold.
    #[arg(long, conflicts_with_all = ["env", "actor", "since"])]
    verify: bool,
    /// With --verify: a head that was noted before, to prove that nothing was cut off the end.
    #[arg(long, value_name = "SEQ:HASH", requires = "verify", value_parser = head)]
    head: Option<Head>,
}

fn head(text: &str) -> Result<Head, String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        let seq = seq.parse().ok().filter(|seq: &i64| *seq >= 0)?;
        let fine = hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        fine.then(|| Head {
            seq,
            hash: hash.to_owned(),
        })
    });
    parsed.ok_or_else(|| {
        "a head is a number, a colon and 64 hex digits, as --verify prints it".to_owned()
    })
}

pub async fn audit(client: &Client, args: AuditArgs, face: &Face) -> Done {
    if args.verify {
        return verify(client, args.head).await;
    }
    let mut filter = AuditFilter {
        env: args.env,
        actor: args.actor,
        since: args.since,
        limit: Some(200),
        cursor: None,
    };
    let mut entries = Vec::new();
    loop {
        let page = client.audit(&filter).await?;
        entries.extend(page.entries);
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            break;
        }
    }
    if face.is_json() {
        output::json(&AuditPage {
            entries,
            next_cursor: None,
        })?;
        return Ok(0);
    }
    table::print(
        &[
            "SEQ",
            "AT",
            "EVENT",
            "ON",
            "GATE",
            "ENVIRONMENT",
            "INTERVENTION",
            "ACTOR",
        ],
        entries.iter().map(row).collect(),
    )?;
    Ok(0)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    vec![
        entry.seq.to_string(),
        entry.at.to_string(),
        entry.event.as_str().to_owned(),
        strip(&entry.on),
        strip(&entry.gate),
        entry
            .env_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        entry
            .intervention_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        describe::actor(&entry.actor),
    ]
}

async fn verify(client: &Client, noted: Option<Head>) -> Done {
    let progress = Progress::start("reading the audit log");
    let mut verifier = Verifier::with_noted_head(noted);
    let mut filter = AuditFilter {
        limit: Some(200),
        ..AuditFilter::default()
    };
    loop {
        let page = client.audit(&filter).await?;
        for entry in &page.entries {
            verifier
                .next(entry)
                .map_err(|broken| Failure::said(broken.to_string()))?;
        }
        if let Some(last) = page.entries.last() {
            progress.turn_to(format!("verifying the audit log, at seq {}", last.seq));
        }
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            break;
        }
    }
    let head = verifier
        .finish()
        .map_err(|broken| Failure::said(broken.to_string()))?;
    drop(progress);
    output::line(&format!(
        "{} entries, head {}:{}",
        head.seq, head.seq, head.hash
    ))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_printed() {
        let hash = "a1".repeat(32);
        assert_eq!(
            head(&format!("7:{hash}")).unwrap(),
            Head {
                seq: 7,
                hash: hash.clone()
            }
        );
        for wrong in [
            "",
            "7",
            &hash,
            &format!("-1:{hash}"),
            &format!("7:{}", hash.to_uppercase()),
            "7:ab",
        ] {
            assert!(head(wrong).is_err(), "{wrong}");
        }
    }
}
