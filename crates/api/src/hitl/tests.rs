use super::*;
use serde_json::{Value, json};

fn block(value: Value) -> Result<HitlBlock, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn an_empty_block_has_the_defaults() {
    let parsed = block(json!({})).unwrap();
    assert_eq!(parsed, HitlBlock::default());
    assert_eq!(
        (parsed.timeout_seconds, parsed.on_timeout),
        (600, OnTimeout::Reject)
    );
    assert_eq!(
        serde_json::to_value(parsed).unwrap(),
        json!({"timeout_seconds": 600, "on_timeout": "reject"})
    );
}

#[test]
// check: CONF-14
fn a_full_block_comes_back_as_it_was_written_with_names_as_lists() {
    let full = json!({"timeout_seconds":600,"on_timeout":"allow","require_actor":true,
        "requests":{"ask":{},"review":{},
            "secret":{"targets":[{"env":"GH_TOKEN","label":"a"},{"file":"/root/.netrc","label":"b"}]},
            "takeover":{"via":["terminal","desktop"]}},
        "gates":[{"name":"force-push","on":"exec","match":{"program":["git"],"args":["push","--force"]},
            "mode":"ask","grant":"ttl:30m","timeout_seconds":120,"reason":"r",
            "decide":{"url":"https://d.example.com","secret":"s"}}],
        "exec":{"default":"deny","allow":["ls"]},
        "notify":[{"webhook":"https://h.example.com","secret":"s"}]});
    assert_eq!(
        serde_json::to_value(block(full.clone()).unwrap()).unwrap(),
        full
    );

    let one = block(json!({"gates":[{"name":"g","on":"lifecycle","match":{"action":"destroy"}}]}))
        .unwrap();
    assert_eq!(
        serde_json::to_value(one).unwrap()["gates"][0]["match"],
        json!({"action":["destroy"]})
    );
}

#[test]
// check: CONF-1
fn a_kind_is_declared_by_presence_and_null_declares_nothing() {
    let parsed =
        block(json!({"requests":{"ask":{},"review":null,"secret":{},"takeover":{}}})).unwrap();
    assert!(parsed.requests.ask.is_some() && parsed.requests.review.is_none());
    assert!(parsed.requests.secret.is_some() && parsed.requests.takeover.is_some());
    assert_eq!(
        serde_json::to_value(parsed).unwrap()["requests"],
        json!({"ask":{},"secret":{},"takeover":{}})
    );
}

#[test]
// check: CONF-5
fn an_unknown_field_is_refused_at_every_depth() {
    for value in [
        json!({"gate": []}),
        json!({"requests":{"ask":{"x":1}}}),
        json!({"requests":{"sacret":{}}}),
        json!({"requests":{"secret":{"targets":[{"env":"A","label":"l","path":"/x"}]}}}),
        json!({"requests":{"takeover":{"vai":[]}}}),
        json!({"gates":[{"name":"g","on":"exec","match":{"programm":"git"}}]}),
        json!({"gates":[{"name":"g","on":"exec","timeout":"2m"}]}),
        json!({"gates":[{"name":"g","on":"exec","decide":{"url":"u","secret":"s","x":1}}]}),
        json!({"exec":{"deny":[]}}),
        json!({"notify":[{"url":"u","secret":"s"}]}),
    ] {
        let error = block(value.clone()).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{value}: {error}");
    }
}

#[test]
// check: CONF-20
fn a_grant_is_once_env_or_a_duration() {
    for (text, reach, shown) in [
        ("once", GrantReach::Once, "once"),
        ("env", GrantReach::Env, "env"),
        ("ttl:30m", GrantReach::Ttl(1_800_000_000_000), "ttl:30m"),
        ("ttl:90s", GrantReach::Ttl(90_000_000_000), "ttl:1m30s"),
    ] {
        assert_eq!(text.parse(), Ok(reach));
        assert_eq!(reach.to_string(), shown);
    }
    for text in [
        "", "Once", "ttl", "ttl:", "ttl:30", "ttl: 30m", "forever", "env ", "ttl:1d",
    ] {
        assert_eq!(text.parse::<GrantReach>(), Err(GrantReachError), "{text}");
    }
}

#[test]
// check: CONF-4
// check: CONF-9
// check: CONF-19
fn words_from_a_closed_list_are_taken_as_they_are_and_no_others() {
    let gate = |field: &str, word: &str| {
        let mut gate = json!({"name":"g","on":"exec"});
        gate[field] = json!(word);
        block(json!({ "gates": [gate] })).map(|block| block.gates[0].clone())
    };
    for on in ["exec", "lifecycle", "computer", "stall", "expiry"] {
        assert_eq!(gate("on", on).unwrap().on.as_str(), on);
    }
    for mode in ["ask", "notify", "deny"] {
        assert_eq!(gate("mode", mode).unwrap().mode.as_str(), mode);
    }
    assert_eq!(gate("on", "exec").unwrap().mode, GateMode::Ask);
    for word in ["", "Exec", "network", "allow"] {
        assert!(
            gate("on", word).is_err() && gate("mode", word).is_err(),
            "{word}"
        );
    }
    for (word, fine) in [
        ("reject", true),
        ("allow", true),
        ("approve", false),
        ("Allow", false),
        ("", false),
    ] {
        assert_eq!(block(json!({ "on_timeout": word })).is_ok(), fine, "{word}");
    }
    assert!(block(json!({"exec":{"default":"allow"}})).is_err());
    assert!(block(json!({"requests":{"takeover":{"via":["ssh"]}}})).is_err());
}
