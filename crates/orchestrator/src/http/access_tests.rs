//! Every route of the table with every kind of credential, against the picture that is committed.
//!
//! Keys are put into the store as they are. Those with scopes are tried from the day on that they can be minted. What a call is asked for is there and
//! in order, as far as that goes without a guest: what is not refused for its credential shows the call's own answer.

use super::{Peer, Site, router};
use crate::app::{App, digest};
use crate::assemble::test_app;
use crate::config::Networks;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use fuse_api::environment::{EnvState, Spec};
use fuse_api::ids::{EnvId, KeyId};
use fuse_api::intervention::RaiseRequest;
use fuse_api::keys::{ActorLabel, Key, Scope};
use fuse_api::routes::{Access, ROUTES, Route};
use fuse_api::time::Timestamp;
use fuse_domain::access::{Credential, Presented};
use fuse_domain::intervention::EnvUid;
use fuse_store::{EnvironmentRow, KeyRow};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tower::ServiceExt;

const MASTER: &str = "a-token-for-a-test";
/// The key that the calls are made with.
const SECRET: &str = "fuse_sk_of-a-test";
/// The key that is revoked by a call.
const VICTIM: &str = "ak_00000000000000000000000000000002";
const OURS: &str = "a";
const FOREIGN: &str = "b";

/// A kind of credential: its name in the picture, what it is, and whether a call with it names an actor.
struct Kind {
    name: &'static str,
    credential: Given,
    names_actor: bool,
}

enum Given {
    Nothing,
    Token(&'static str),
    Key(KeyKind),
}

#[derive(Default)]
struct KeyKind {
    scopes: Vec<Scope>,
    env: Option<&'static str>,
    pinned: bool,
    expired: bool,
    revoked: bool,
}

const fn plain(name: &'static str, credential: Given) -> Kind {
    Kind {
        name,
        credential,
        names_actor: false,
    }
}

fn scoped(name: &'static str, scopes: &[Scope]) -> Kind {
    plain(
        name,
        Given::Key(KeyKind {
            scopes: scopes.to_vec(),
            env: Some(OURS),
            ..KeyKind::default()
        }),
    )
}

fn kinds() -> Vec<Kind> {
    use Given::{Nothing, Token};
    let key = |kind: KeyKind| Given::Key(kind);
    let acting = |kind: Kind| Kind {
        names_actor: true,
        ..kind
    };
    vec![
        plain("none", Nothing),
        plain("rubbish", Token("rubbish")),
        plain("unknown key", Token("fuse_sk_unknown")),
        plain(
            "expired key",
            key(KeyKind {
                expired: true,
                ..KeyKind::default()
            }),
        ),
        plain(
            "revoked key",
            key(KeyKind {
                revoked: true,
                ..KeyKind::default()
            }),
        ),
        plain("full key", key(KeyKind::default())),
        acting(plain("full key, actor", key(KeyKind::default()))),
        scoped("read", &[Scope::Read]),
        scoped("decide", &[Scope::Decide]),
        scoped("secret", &[Scope::Secret]),
        scoped("takeover", &[Scope::Takeover]),
        scoped("act-as", &[Scope::ActAs]),
        acting(scoped("decide, actor", &[Scope::Decide])),
        acting(scoped(
            "decide act-as, actor",
            &[Scope::Decide, Scope::ActAs],
        )),
        acting(plain(
            "decide, pinned to another actor",
            key(KeyKind {
                scopes: vec![Scope::Decide],
                env: Some(OURS),
                pinned: true,
                ..KeyKind::default()
            }),
        )),
        plain(
            "all scopes, foreign environment",
            key(KeyKind {
                scopes: vec![Scope::Decide, Scope::Secret, Scope::Takeover],
                env: Some(FOREIGN),
                ..KeyKind::default()
            }),
        ),
        plain("master", Token(MASTER)),
        acting(plain("master, actor", Token(MASTER))),
    ]
}

/// An app of its own for each kind, since calls change what is there.
struct Bed {
    app: Arc<App>,
    router: Router,
    _dir: tempfile::TempDir,
}

fn env_id(task: &str) -> EnvId {
    EnvId::parse(&format!("fuse-{task}")).expect("an id")
}

impl Bed {
    async fn new(kind: &Kind) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let app = Arc::new(test_app(dir.path()).await);
        for task in [OURS, FOREIGN] {
            let now = app.now();
            let row = EnvironmentRow {
                uid: EnvUid(format!("fuse-{task}-1")),
                id: env_id(task),
                task_id: env_id(task).task_id(),
                host_id: app.host_id.clone(),
                state: EnvState::Running,
                url: String::new(),
                spec: Spec::default(),
                hitl: Some(serde_json::from_str(r#"{"requests": {"ask": {}}}"#).expect("a block")),
                has_task: false,
                error: None,
                created_at: now,
                updated_at: now,
                started_at: Some(now),
                last_activity: now,
            };
            app.store.insert_environment(&row).await.expect("stored");
        }
        if let Given::Key(key) = &kind.credential {
            put_key(&app, "ak_00000000000000000000000000000001", SECRET, key).await;
        }
        put_key(&app, VICTIM, "fuse_sk_of-a-victim", &KeyKind::default()).await;
        let site = Site {
            app: Arc::clone(&app),
            proxies: Networks::default(),
        };
        Self {
            app,
            router: router(site),
            _dir: dir,
        }
    }

    async fn asked(&self) -> String {
        let master = Presented {
            credential: Credential::Master,
            actor: None,
            remote_addr: String::new(),
        };
        let body = RaiseRequest {
            kind: "ask".into(),
            question: Some("Q?".into()),
            ..RaiseRequest::default()
        };
        let raised = self
            .app
            .raise(&master, &env_id(OURS), body)
            .await
            .expect("raised");
        raised.record.view.id.to_string()
    }

    async fn path(&self, row: &Route) -> String {
        let id = match row.path.split('/').nth(2) {
            Some("environments") => env_id(OURS).to_string(),
            Some("interventions") if row.path.contains("{id}") => self.asked().await,
            Some("api-keys") => VICTIM.to_owned(),
            Some("hitl") => format!("rec_{}", "0".repeat(32)),
            _ => format!("snap_{}", "0".repeat(32)),
        };
        let action = row
            .action
            .map(|a| format!("?action={a}"))
            .unwrap_or_default();
        format!("{}{action}", row.path.replace("{id}", &id))
    }

    /// The call's answer: its status, and why where it is refused.
    async fn call(&self, row: &Route, kind: &Kind) -> String {
        let mut request = Request::builder()
            .method(row.method)
            .uri(self.path(row).await);
        let token = match kind.credential {
            Given::Nothing => None,
            Given::Token(token) => Some(token),
            Given::Key(_) => Some(SECRET),
        };
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if kind.names_actor {
            request = request.header("Fuse-Actor", "ann");
        }
        let mut request = request.body(body(row)).expect("a request");
        request.extensions_mut().insert(Peer([127, 0, 0, 1].into()));
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("an answer");
        let status = response.status();
        if status.is_success() {
            // A stream would not end.
            return status.as_u16().to_string();
        }
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let error: Value = serde_json::from_slice(&bytes).expect("JSON");
        let error = &error["error"];
        let mut told = format!(
            "{} {}",
            status.as_u16(),
            error["code"].as_str().expect("a code")
        );
        if status == 403 {
            for detail in ["reason", "scope"] {
                if let Some(detail) = error["details"][detail].as_str() {
                    let _ = write!(told, " {detail}");
                }
            }
        }
        told
    }
}

async fn put_key(app: &App, id: &str, secret: &str, kind: &KeyKind) {
    let now = app.now();
    let pinned = || ActorLabel::new("bob");
    let row = KeyRow {
        key: Key {
            id: KeyId::parse(id).expect("an id"),
            label: String::new(),
            scopes: kind.scopes.clone(),
            env_id: kind.env.map(env_id),
            expires_at: kind.expired.then(|| Timestamp::from_micros(1)),
            actor: kind.pinned.then(pinned),
            created_at: now,
            revoked_at: None,
        },
        env_uid: kind.env.map(|task| EnvUid(format!("fuse-{task}-1"))),
        first_used_at: None,
    };
    app.store
        .insert_key(&row, &digest(secret))
        .await
        .expect("stored");
    if kind.revoked {
        app.store
            .revoke_key(&row.key.id, now)
            .await
            .expect("revoked");
    }
}

/// A body that the call takes. Where it would need a guest, or make one, its content is refused after its credential was judged.
fn body(row: &Route) -> Body {
    let body = match (row.path, row.action) {
        ("/v1/environments", None) if row.method == "POST" => json!({"task_id": "Not A Label"}),
        (_, Some("exec")) => json!({"cmd": ["true"]}),
        (_, Some("request")) => json!({"kind": "ask", "question": "Q?"}),
        (_, Some("approve")) => json!({}),
        (_, Some("reject")) => json!({"reason": "no"}),
        ("/v1/api-keys", _) if row.method == "POST" => json!({"label": "new"}),
        _ => return Body::empty(),
    };
    Body::from(body.to_string())
}

/// The rows in the order of the table, but for the one that takes the environment away.
fn in_order() -> impl Iterator<Item = &'static Route> {
    let ends = |row: &&Route| row.method == "DELETE" && row.path == "/v1/environments/{id}";
    let others = ROUTES.iter().filter(move |row| !ends(row));
    others.chain(ROUTES.iter().filter(ends))
}

/// Whether the server mints keys with scopes. Until it does there are none, and their lines are not in the picture.
async fn scoped_keys_are_minted() -> bool {
    let bed = Bed::new(&plain("master", Given::Token(MASTER))).await;
    let body = json!({"scopes": ["hitl:read"], "ttl_seconds": 60, "env_id": env_id(OURS)});
    let request = Request::post("/v1/api-keys").header("Authorization", format!("Bearer {MASTER}"));
    let request = request
        .body(Body::from(body.to_string()))
        .expect("a request");
    let status = bed
        .router
        .clone()
        .oneshot(request)
        .await
        .expect("an answer")
        .status()
        .as_u16();
    assert!([201, 501].contains(&status), "{status}");
    status == 201
}

/// What no picture may show, whatever is committed.
fn is_never(kind: &Kind, row: &Route, answer: &str) -> bool {
    let is_let_in = !answer.starts_with("401") && !answer.starts_with("403");
    let succeeds = answer.starts_with('2');
    let is_valid = match &kind.credential {
        Given::Nothing => false,
        Given::Token(token) => *token == MASTER,
        Given::Key(key) => !key.expired && !key.revoked,
    };
    let limited = match &kind.credential {
        Given::Key(key) => key.env,
        Given::Nothing | Given::Token(_) => None,
    };
    let mints = row.access == Access::Mint;
    (!is_valid && is_let_in && row.access != Access::Public)
        // What is out of its reach is not there for a key.
        || (limited == Some(FOREIGN) && succeeds && row.path.contains("{id}"))
        // The body asks for a full-access key.
        || (mints && succeeds && matches!(kind.credential, Given::Key(_)))
}

// check: ACCESS-1, ACCESS-2, ACCESS-3, ACCESS-7, ACCESS-21
#[tokio::test]
async fn every_route_answers_every_kind_of_credential_as_committed() {
    let mut kinds = kinds();
    if !scoped_keys_are_minted().await {
        kinds.retain(|kind| !matches!(&kind.credential, Given::Key(key) if !key.scopes.is_empty()));
    }
    let mut answers = BTreeMap::new();
    for (number, kind) in kinds.iter().enumerate() {
        let bed = Bed::new(kind).await;
        for row in in_order() {
            let at = ROUTES.iter().position(|other| other == row).expect("a row");
            answers.insert((at, number), bed.call(row, kind).await);
        }
    }
    let mut picture = String::new();
    for ((at, number), answer) in &answers {
        let (row, kind) = (&ROUTES[*at], &kinds[*number]);
        let action = row
            .action
            .map(|a| format!("?action={a}"))
            .unwrap_or_default();
        let line = format!(
            "{} {}{action} | {} | {answer}",
            row.method, row.path, kind.name
        );
        assert!(!is_never(kind, row, answer), "{line}");
        picture.push_str(&line);
        picture.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/access.txt");
    if std::env::var_os("FUSE_UPDATE_ACCESS").is_some() {
        std::fs::write(path, &picture).expect("written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let differs = picture
        .lines()
        .zip(committed.lines())
        .find(|(is, was)| is != was);
    assert!(
        committed == picture,
        "{path} differs, first {differs:?}; FUSE_UPDATE_ACCESS=1 writes it anew"
    );
}
