//! Random commands from several clients while two servers are killed again and again; afterwards every promise is held against
//! what is on record and what really ran.
//!
//! Each gated command tells the test itself that it runs, over a connection, so that the account of what ran outlives the
//! environments. `FUSE_E2E_SEED` repeats the choices of a run; how they interleave is up to the machine.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuse_e2e::{Api, Reply, Server, Store, each_store, unique};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

each_store!(no_promise_is_broken_however_often_the_server_is_killed);

const CHAOS: Duration = Duration::from_secs(35);
const CLIENTS: u64 = 5;
const ENVIRONMENTS: usize = 3;

/// What all clients know.
struct World {
    /// The servers on the same data, two on PostgreSQL: each call goes to one of them.
    apis: Vec<Api>,
    calls: AtomicUsize,
    over: AtomicBool,
    /// Environments that are thought to live.
    environments: Mutex<Vec<String>>,
    /// Interventions that some client has heard of.
    known: Mutex<Vec<String>>,
    /// What each waiter was told in the end.
    told: Mutex<Vec<(String, Value)>>,
    waiters: tokio::sync::Mutex<JoinSet<()>>,
    commands: AtomicU64,
    port: u16,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pick(rng: &mut StdRng, from: &Mutex<Vec<String>>) -> Option<String> {
    let from = lock(from);
    (!from.is_empty()).then(|| from[rng.random_range(0..from.len())].clone())
}

impl World {
    /// Sends; a connection that breaks and a database that is away are part of the game, a fault is not.
    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Option<Reply> {
        let body = body.map(|b| b.to_string().into_bytes());
        let api = &self.apis[self.calls.fetch_add(1, Ordering::Relaxed) % self.apis.len()];
        let reply = api.try_send(method, path, body).await.ok()?;
        assert!(
            [200, 201, 202, 204, 404, 409, 503].contains(&reply.status),
            "{method} {path}: {} {}",
            reply.status,
            reply.text
        );
        (reply.status != 503).then_some(reply)
    }

    async fn create(&self, rng: &mut StdRng) {
        let on_timeout = if rng.random_bool(0.4) {
            "allow"
        } else {
            "reject"
        };
        let body = json!({
            "task_id": unique("chaos"),
            "spec": {"network": "host"},
            "hitl": {
                "timeout_seconds": rng.random_range(10..25),
                "on_timeout": on_timeout,
                "requests": {"ask": {}},
                "gates": [{"name": "report", "on": "exec", "match": {"program": "bash"}}],
            },
        });
        if let Some(reply) = self.send("POST", "/v1/environments", Some(body)).await
            && reply.status == 201
        {
            let id = reply.json()["id"].as_str().expect("an id").to_owned();
            lock(&self.environments).push(id);
        }
    }

    /// Remembers an intervention and waits for its end, as an agent would.
    async fn follow(self: &Arc<Self>, intervention: &Value) {
        let id = intervention["id"].as_str().expect("an id").to_owned();
        assert!(intervention["deadline"].is_string(), "{intervention}");
        lock(&self.known).push(id.clone());
        let world = Arc::clone(self);
        self.waiters.lock().await.spawn(async move {
            loop {
                let path = format!("/v1/interventions/{id}?wait=10s");
                let seen = world
                    .send("GET", &path, None)
                    .await
                    .map(|reply| reply.ok(200));
                match seen {
                    Some(seen) if is_over(&seen) => {
                        lock(&world.told).push((id, seen));
                        return;
                    }
                    Some(_) => {}
                    None => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
    }

    async fn step(self: &Arc<Self>, rng: &mut StdRng) {
        let Some(env) = pick(rng, &self.environments) else {
            return self.create(rng).await;
        };
        let action = |action: &str| format!("/v1/environments/{env}?action={action}");
        match rng.random_range(0..100) {
            0..25 => {
                let number = self.commands.fetch_add(1, Ordering::Relaxed);
                let text = format!(
                    "exec 3<>/dev/tcp/127.0.0.1/{}; echo \"{number} $(date +%s%6N)\" >&3",
                    self.port
                );
                let body = json!({"cmd": ["bash", "-c", text, number.to_string()]});
                if let Some(reply) = self.send("POST", &action("exec"), Some(body)).await {
                    assert_ne!(reply.status, 200, "it was not held: {}", reply.text);
                    if reply.status == 202 {
                        self.follow(&reply.held()).await;
                    }
                }
            }
            25..45 => {
                let body = json!({"kind": "ask", "question": "Go on?"});
                if let Some(reply) = self.send("POST", &action("request"), Some(body)).await
                    && reply.status == 201
                {
                    self.follow(&reply.json()).await;
                }
            }
            45..60 => {
                let body = json!({"cmd": ["true"]});
                self.send("POST", &action("exec"), Some(body)).await;
            }
            60..80 => {
                if let Some(id) = pick(rng, &self.known) {
                    self.send(
                        "POST",
                        &format!("/v1/interventions/{id}?action=approve"),
                        Some(json!({})),
                    )
                    .await;
                }
            }
            80..88 => {
                if let Some(id) = pick(rng, &self.known) {
                    let body = json!({"reason": "no"});
                    self.send(
                        "POST",
                        &format!("/v1/interventions/{id}?action=reject"),
                        Some(body),
                    )
                    .await;
                }
            }
            88..97 => {
                if let Some(id) = pick(rng, &self.known) {
                    self.send("GET", &format!("/v1/interventions/{id}?wait=300ms"), None)
                        .await;
                }
            }
            _ => {
                lock(&self.environments).retain(|id| *id != env);
                self.send("DELETE", &format!("/v1/environments/{env}"), None)
                    .await;
                self.create(rng).await;
            }
        }
    }
}

/// Whether there is nothing left to wait for.
fn is_over(seen: &Value) -> bool {
    let approved = seen["decision"]["outcome"] == "approve";
    seen["state"] != "pending"
        && (!approved || seen["kind"] != "exec" || seen["result"].is_object())
}

/// What really ran: by the command's number, when.
async fn account(listener: TcpListener, ran: Arc<Mutex<HashMap<u64, Vec<i64>>>>) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            continue;
        };
        let ran = Arc::clone(&ran);
        tokio::spawn(async move {
            let mut line = String::new();
            let _ = stream.read_to_string(&mut line).await;
            let (number, at) = line.trim().split_once(' ').expect("a report");
            let number = number.parse().expect("a number");
            lock(&ran)
                .entry(number)
                .or_default()
                .push(at.parse().expect("a time"));
        });
    }
}

// check: INV-1, INV-3, INV-4, INV-7, INV-11, INV-18, INV-19, GATE-12, GATE-16, STORE-7, AUDIT-1, AUDIT-3
async fn no_promise_is_broken_however_often_the_server_is_killed(store: Store) {
    let seed = std::env::var("FUSE_E2E_SEED")
        .ok()
        .and_then(|s| s.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("FUSE_E2E_SEED={seed} on {store:?}");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = Server::start(store);
    let servers = Arc::new(match store {
        Store::Postgres => vec![server.beside(), server],
        Store::Sqlite => vec![server],
    });
    let server = servers.last().expect("a server");
    let world = Arc::new(World {
        apis: servers.iter().map(Server::api).collect(),
        calls: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        environments: Mutex::default(),
        known: Mutex::default(),
        told: Mutex::default(),
        waiters: tokio::sync::Mutex::default(),
        commands: AtomicU64::new(0),
        port: listener.local_addr().expect("an address").port(),
    });
    let ran = Arc::new(Mutex::new(HashMap::new()));
    let accountant = tokio::spawn(account(listener, Arc::clone(&ran)));
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..ENVIRONMENTS {
        world.create(&mut rng).await;
    }
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let world = Arc::clone(&world);
        let mut rng = StdRng::seed_from_u64(seed.wrapping_add(client + 1));
        clients.spawn(async move {
            while !world.over.load(Ordering::Relaxed) {
                world.step(&mut rng).await;
                tokio::time::sleep(Duration::from_millis(rng.random_range(5..40))).await;
            }
        });
    }
    let kills = tokio::task::spawn_blocking({
        let servers = Arc::clone(&servers);
        move || kill_again_and_again(&servers, &mut rng)
    });
    let kills = kills.await.expect("the killer ends");
    world.over.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("no client was told nonsense");
    }
    settle(&world).await;
    accountant.abort();
    let ran = std::mem::take(&mut *lock(&ran));
    println!(
        "{kills} kills, {} interventions, {} commands ran",
        lock(&world.known).len(),
        ran.len()
    );
    hold_against(server, &world, &ran).await;
}

fn kill_again_and_again(servers: &[Server], rng: &mut StdRng) -> u32 {
    let end = Instant::now() + CHAOS;
    let mut kills = 0;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(rng.random_range(200..2500)));
        // Mostly one of them, so that the other one has to tell what is left of it; now and then both.
        let one = rng.random_range(0..servers.len());
        let chosen = if rng.random_bool(0.3) {
            servers
        } else {
            &servers[one..=one]
        };
        for server in chosen {
            if rng.random_bool(0.8) {
                server.kill9();
            } else {
                server.stop();
            }
            kills += 1;
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
        chosen.iter().for_each(Server::restart);
    }
    kills
}

/// Everybody who waits is told how it ended, at the latest when the deadline has passed.
async fn settle(world: &World) {
    let mut waiters = std::mem::take(&mut *world.waiters.lock().await);
    let all = async {
        while let Some(waiter) = waiters.join_next().await {
            waiter.expect("no waiter was told nonsense");
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), all).await;
    let told: HashSet<String> = lock(&world.told).iter().map(|(id, _)| id.clone()).collect();
    let known = lock(&world.known).clone();
    let left: Vec<_> = known.iter().filter(|id| !told.contains(*id)).collect();
    assert!(
        in_time.is_ok() && left.is_empty(),
        "never told how it ended: {left:?}"
    );
}

async fn hold_against(server: &Server, world: &World, ran: &HashMap<u64, Vec<i64>>) {
    // What no client was told of, since its connection broke first, expires by itself.
    let api = server.api();
    fuse_e2e::within(
        Duration::from_secs(40),
        "nothing stays pending",
        async || {
            let left = api.get("/v1/interventions?limit=1").await.ok(200);
            (left["interventions"] == json!([])).then_some(())
        },
    )
    .await;
    let all = fuse_e2e::until("every approved action has its result", async || {
        let all = api
            .all("/v1/interventions?state=all&limit=200", "interventions")
            .await;
        all.iter().all(is_over).then_some(all)
    })
    .await;
    let mut seen = HashSet::new();
    for intervention in &all {
        let id = intervention["id"].as_str().expect("an id");
        seen.insert(id.to_owned());
        let decision = &intervention["decision"];
        assert!(
            intervention["deadline"].is_string() && decision["decided_at"].is_string(),
            "{intervention}"
        );
        let approved = decision["outcome"] == "approve";
        assert!(
            approved
                || decision["reason"]
                    .as_str()
                    .is_some_and(|r| !r.trim().is_empty()),
            "{intervention}"
        );
        if intervention["kind"] != "exec" {
            continue;
        }
        let number: u64 = intervention["payload"]["exec"]["argv"][3]
            .as_str()
            .and_then(|n| n.parse().ok())
            .expect("its number");
        let runs = ran.get(&number).map(Vec::as_slice).unwrap_or_default();
        assert!(
            runs.len() <= 1,
            "it ran {} times: {intervention}",
            runs.len()
        );
        assert!(
            approved || runs.is_empty(),
            "it ran without an approval: {intervention}"
        );
        if let Some(at) = runs.first() {
            let decided = decision["decided_at"].as_str().expect("a time");
            let decided = fuse_api::time::Timestamp::parse(decided)
                .expect("a time")
                .as_micros();
            assert!(
                *at >= decided,
                "it ran {} µs before its approval: {intervention}",
                decided - at
            );
        }
        if intervention["result"]["exec"]["exit_code"] == 0 {
            assert_eq!(runs.len(), 1, "it is said to have run: {intervention}");
        }
    }
    for (id, told) in lock(&world.told).iter() {
        assert!(seen.contains(id), "{id} is lost");
        let now = all
            .iter()
            .find(|i| i["id"] == id.as_str())
            .expect("it is listed");
        assert_eq!(now, told, "what a waiter was told has changed");
    }
    // Each has one entry for its beginning and one for its end.
    let mut entries: HashMap<String, Vec<String>> = HashMap::new();
    for entry in api.audit().await {
        let of = entry["intervention_id"].as_str().expect("an id").to_owned();
        entries
            .entry(of)
            .or_default()
            .push(entry["event"].as_str().expect("an event").to_owned());
    }
    assert_eq!(entries.len(), all.len());
    for intervention in &all {
        let told = &entries[intervention["id"].as_str().expect("an id")];
        let end = match intervention["state"].as_str() {
            Some("approved" | "rejected") => "decided",
            Some("expired") => "expired",
            _ => "cancelled",
        };
        assert_eq!(*told, ["raised", end], "{intervention}");
    }
    crate::audit::verify(server).await;
    let raw = server.data().raw();
    let broken = "SELECT id FROM interventions WHERE deadline IS NULL OR (state <> 'pending' AND (outcome IS NULL OR decided_at IS NULL))";
    assert_eq!(raw.texts(broken).await, Vec::<String>::new());
}
