//! The database goes away and comes back. SQLite is a file beside the server and has no such outage, so this is PostgreSQL's.

use std::time::Duration;

use fuse_e2e::{Data, Env, Link, Proxy, Server, Settings, Store, until, within};
use serde_json::json;

fn behind(proxy: &Proxy, data: &std::sync::Arc<Data>) -> Server {
    let settings = Settings {
        database_url: Some(data.rerouted(proxy.port())),
        ..Settings::default()
    };
    Server::on(data.clone(), settings)
}

fn block() -> serde_json::Value {
    json!({
        "requests": {"ask": {}},
        "gates": [{"name": "sh", "on": "exec", "match": {"program": "sh"}}, {"name": "note", "on": "exec", "match": {"program": "touch"}, "mode": "notify"}],
    })
}

async fn hold(env: &Env, text: &str) -> String {
    let held = env.hold(&["sh", "-c", text]).await;
    held["id"].as_str().expect("an id").to_owned()
}

// check: GATE-24, HTTP-13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_nothing_runs_and_afterwards_all_goes_on() {
    let data = Data::new(Store::Postgres);
    let proxy = Proxy::to(&data.address());
    let server = behind(&proxy, &data);
    let env = server.env(block()).await;
    let api = env.api.clone();
    let held = hold(&env, "echo ran >> /tmp/ran").await;
    let under_way = hold(&env, "sleep 3; echo late >> /tmp/late; echo done").await;
    let asked = env.ask("Q?").await;
    api.approve(&under_way, json!({})).await.ok(200);
    until("the approved one runs", async || {
        let seen = env.run(&["cat", "/proc/loadavg"]).await;
        let names = env.run(&["bash", "-c", "cat /proc/[0-9]*/comm"]).await;
        (seen["exit_code"] == 0
            && names["stdout"]
                .as_str()
                .is_some_and(|s| s.contains("sleep")))
        .then_some(())
    })
    .await;

    for link in [Link::Down, Link::Silent] {
        proxy.set(link);
        within(Duration::from_secs(20), "it is noticed", async || {
            (api.get("/ready").await.status == 503).then_some(())
        })
        .await;
        api.get("/health").await.ok(200);
        let (approved, rejected) =
            tokio::join!(api.approve(&held, json!({})), api.reject(&held, "no"));
        for reply in [approved, rejected] {
            reply.refused(503, "unavailable");
        }
        let exec = |argv: &'static [&'static str]| env.exec(argv);
        let (one, two, three, four) = tokio::join!(
            exec(&["true"]),
            exec(&["touch", "/tmp/noted"]),
            api.get("/v1/interventions"),
            env.request(json!({"kind": "ask", "question": "Q?"}))
        );
        for reply in [one, two, three, four] {
            reply.refused(503, "unavailable");
        }
        proxy.set(Link::Up);
        within(
            Duration::from_secs(30),
            "it recovers by itself",
            async || (api.get("/ready").await.status == 200).then_some(()),
        )
        .await;
        // A decision whose answer was 503 may have got through in the end only as a whole; here it never reached the database.
        let read = until("it is read again", async || {
            let reply = api.get(&format!("/v1/interventions/{held}")).await;
            (reply.status == 200).then(|| reply.json())
        })
        .await;
        assert_eq!(read["state"], "pending", "{link:?}: held actions stay held");
    }
    let seen = env.run(&["ls", "/tmp/ran", "/tmp/noted"]).await;
    assert_eq!(seen["stdout"], "", "nothing ran meanwhile");
    // What was running when the database went went on, and its result is on record now.
    let settled = api.wait(&under_way, "50s").await;
    assert_eq!(settled["result"]["exec"]["stdout"], "done\n", "{settled}");
    assert_eq!(env.run(&["cat", "/tmp/late"]).await["stdout"], "late\n");
    let (woken, _) = tokio::join!(api.wait(&held, "50s"), api.approve(&held, json!({})));
    let woken = if woken.get("result").is_some() {
        woken
    } else {
        api.wait(&held, "50s").await
    };
    assert_eq!(woken["result"]["exec"]["exit_code"], 0, "{woken}");
    assert_eq!(
        env.run(&["cat", "/tmp/ran"]).await["stdout"],
        "ran\n",
        "once"
    );
    api.approve(&asked, json!({"answer": "yes"})).await.ok(200);
    crate::audit::verify(&server).await;
}

/// Waiters that are parked when the connection breaks hear of what other servers decide meanwhile.
// check: WAIT-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_misses_no_decision_that_falls_into_an_outage() {
    let data = Data::new(Store::Postgres);
    let proxy = Proxy::to(&data.address());
    let server = behind(&proxy, &data);
    let env = server.env(block()).await;
    let direct = server.elsewhere_at(data.url());
    let id = env.ask("Q?").await;
    let waits = tokio::spawn({
        let (api, id) = (env.api.clone(), id.clone());
        async move { api.wait(&id, "50s").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.set(Link::Down);
    direct
        .api()
        .approve(&id, json!({"answer": "decided elsewhere"}))
        .await
        .ok(200);
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.set(Link::Up);
    let woken = tokio::time::timeout(Duration::from_secs(30), waits)
        .await
        .expect("it is woken")
        .expect("waits");
    assert_eq!(woken["decision"]["answer"], "decided elsewhere");
}

/// The link breaks again and again in the middle of commits: a 200 is a promise, a 503 may be either, and nothing runs twice.
// check: GATE-12, GATE-24, INV-19, STORE-4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flapping_database_breaks_no_promise() {
    let data = Data::new(Store::Postgres);
    let proxy = Proxy::to(&data.address());
    let server = behind(&proxy, &data);
    let env = server.env(block()).await;
    let api = env.api.clone();
    let over = std::sync::atomic::AtomicBool::new(false);
    let flap = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(350)).await;
            proxy.set(Link::Down);
            tokio::time::sleep(Duration::from_millis(120)).await;
            proxy.set(Link::Up);
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let client = async |of: usize| {
        let mut promised = Vec::new();
        let mut number = of * 10_000;
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            number += 1;
            let text = format!("echo {number} >> /tmp/ran");
            let held = env.exec(&["sh", "-c", &text]).await;
            if held.status == 503 {
                continue;
            }
            let id = held.held()["id"].as_str().expect("an id").to_owned();
            let reply = if number.is_multiple_of(3) {
                api.reject(&id, "no").await
            } else {
                api.approve(&id, json!({})).await
            };
            match reply.status {
                200 => promised.push((id, reply.json()["decision"].clone())),
                503 => {}
                other => panic!("{other}: {}", reply.text),
            }
        }
        promised
    };
    let ((), one, two, three) = tokio::join!(flap, client(1), client(2), client(3));
    let promised = [one, two, three].concat();
    assert!(
        promised.len() > 10,
        "only {} calls got through",
        promised.len()
    );
    let all = within(
        Duration::from_secs(60),
        "every approved command has its result",
        async || {
            let reply = api.get("/v1/interventions?state=approved&limit=200").await;
            if reply.status != 200 {
                return None;
            }
            let all = env.interventions().await;
            let open = |i: &serde_json::Value| i["state"] == "approved" && !i["result"].is_object();
            (!all.iter().any(open)).then_some(all)
        },
    )
    .await;
    for (id, decision) in &promised {
        let now = all
            .iter()
            .find(|i| i["id"] == id.as_str())
            .expect("it is on record");
        assert_eq!(now["decision"], *decision, "what was promised is on record");
    }
    let ran = env.run(&["cat", "/tmp/ran"]).await;
    let ran: Vec<&str> = ran["stdout"].as_str().unwrap_or_default().lines().collect();
    for held in all.iter().filter(|i| i["kind"] == "exec") {
        let number = held["payload"]["exec"]["argv"][2]
            .as_str()
            .unwrap_or_default();
        let number = number.split(' ').nth(1).unwrap_or_default();
        let times = ran.iter().filter(|line| **line == number).count();
        let finished = held["result"]["exec"]["exit_code"] == 0;
        match held["state"].as_str() {
            Some("approved") if finished => assert_eq!(times, 1, "{held}"),
            Some("approved") => assert!(times <= 1, "{held}"),
            _ => assert_eq!(times, 0, "{held}"),
        }
    }
    crate::audit::verify(&server).await;
}
