//! `fuse apikeys`.

use clap::{Args, Subcommand};
use fuse_api::keys::{ActorLabel, CreateKey, CreatedKey, Key, KeyList, Scope};
use fuse_client::Client;
use fuse_terminal::strip;

use crate::args::{Face, seconds};
use crate::failure::Done;
use crate::output::{self, note};
use crate::table;
use crate::time::relative;

#[derive(Subcommand)]
pub enum Command {
    /// Make a key and print its secret, this once.
    Create(CreateArgs),
    /// List keys, without their secrets.
    List,
    /// Revoke a key; doing so again is no error.
    Revoke(RevokeArgs),
}

#[derive(Args)]
pub struct CreateArgs {
    /// What people call the key.
    #[arg(long)]
    label: Option<String>,
    /// What a scoped key may do: read, decide, secret, takeover, act-as. Without it the key has full access, and decides nothing.
    #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = scope)]
    scopes: Vec<String>,
    /// The environment that a scoped key is limited to, with its forks.
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// How long a scoped key lives, up to 24h.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    ttl: Option<u64>,
    /// The person that a scoped key is pinned to.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// What people call that person.
    #[arg(long, value_name = "NAME", requires = "actor")]
    actor_name: Option<String>,
}

#[derive(Args)]
pub struct RevokeArgs {
    /// The key's id.
    id: String,
}

fn scope(text: &str) -> Result<String, String> {
    [
        Scope::Read,
        Scope::Decide,
        Scope::Secret,
        Scope::Takeover,
        Scope::ActAs,
    ]
    .into_iter()
    .map(Scope::as_str)
    .find(|name| *name == text || name.strip_prefix("hitl:") == Some(text))
    .map(str::to_owned)
    .ok_or_else(|| "a scope is read, decide, secret, takeover or act-as".to_owned())
}

pub async fn run(command: Command, face: &Face) -> Done {
    let client = face.client()?;
    match command {
        Command::Create(args) => create(&client, args, face).await,
        Command::List => list(&client, face).await,
        Command::Revoke(args) => {
            client.api_keys().revoke(&args.id).await?;
            note(&format!("revoked {}", strip(&args.id)));
            Ok(0)
        }
    }
}

async fn create(client: &Client, args: CreateArgs, face: &Face) -> Done {
    let request = CreateKey {
        label: args.label,
        scopes: (!args.scopes.is_empty()).then_some(args.scopes),
        env_id: args.env,
        ttl_seconds: args
            .ttl
            .map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)),
        actor: args.actor.map(|id| ActorLabel {
            id,
            name: args.actor_name,
        }),
    };
    let created = client.api_keys().create(&request).await?;
    if face.is_json() {
        output::json(&created)?;
        return Ok(0);
    }
    let CreatedKey { key, info } = created;
    note(&format!("{}: {}, {}", info.id, reach(&info), life(&info)));
    note("the secret is shown this once:");
    output::line(&strip(&key.0))?;
    Ok(0)
}

async fn list(client: &Client, face: &Face) -> Done {
    let mut api_keys = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = client.api_keys().list(cursor.as_deref()).await?;
        api_keys.extend(page.api_keys);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if face.is_json() {
        output::json(&KeyList {
            api_keys,
            next_cursor: None,
        })?;
        return Ok(0);
    }
    let rows = api_keys.iter().map(|key| {
        let actor = key
            .actor
            .as_ref()
            .map(|actor| strip(&actor.id))
            .unwrap_or_default();
        vec![
            key.id.to_string(),
            reach(key),
            life(key),
            relative(key.created_at),
            actor,
            strip(&key.label),
        ]
    });
    table::print(
        &["ID", "MAY", "LIFE", "MADE", "ACTOR", "LABEL"],
        rows.collect(),
    )?;
    Ok(0)
}

fn reach(key: &Key) -> String {
    if key.scopes.is_empty() {
        return "full access".to_owned();
    }
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    match &key.env_id {
        Some(env) => format!("{} in {env}", scopes.join(",")),
        None => scopes.join(","),
    }
}

fn life(key: &Key) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", relative(at)),
        (None, Some(at)) if at <= crate::time::now() => format!("expired {}", relative(at)),
        (None, Some(at)) => format!("expires {}", relative(at)),
        (None, None) => "until revoked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_a_short_and_a_long_name() {
        assert_eq!(scope("act-as"), Ok("hitl:act-as".to_owned()));
        assert_eq!(scope("hitl:read"), Ok("hitl:read".to_owned()));
        assert!(scope("write").is_err());
    }
}
