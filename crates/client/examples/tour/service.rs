use fuse_client::{AuditFilter, Client, Error};

/// What the server is, and what is on record there.
pub async fn service(client: &Client) -> Result<(), Error> {
    let version = client.version().await?;
    println!("{} {}", version.service, version.version);

    let mut filter = AuditFilter {
        since: Some("24h".to_owned()),
        ..AuditFilter::default()
    };
    loop {
        let page = client.audit(&filter).await?;
        for entry in &page.entries {
            println!("{} {} {}", entry.seq, entry.at, entry.event.as_str());
        }
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            return Ok(());
        }
    }
}
