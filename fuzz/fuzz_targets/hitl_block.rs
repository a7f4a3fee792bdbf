//! Any JSON is either a policy, or refused with a path; what was accepted survives being stored.
#![no_main]

use fuse_api::hitl::HitlBlock;
use fuse_domain::policy::{ExecAction, Policy, PolicyFacts, Severity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(block) = serde_json::from_slice::<HitlBlock>(bytes) else {
        return;
    };
    let facts = PolicyFacts {
        secret_names: ["s".to_owned()].into(),
        has_desktop: true,
        sealing_available: true,
        idle_timeout_seconds: Some(3600),
        max_runtime_seconds: None,
        has_task: false,
    };
    match Policy::compile(&block, &facts) {
        Ok(policy) => {
            let stored = serde_json::to_vec(policy.block()).expect("a block can be written");
            let read =
                serde_json::from_slice::<HitlBlock>(&stored).expect("a written block can be read");
            assert_eq!(Policy::reload(&read).as_ref(), Ok(&policy));
            let verdict = policy.judge_exec(ExecAction::Shell("true"));
            assert_eq!(
                verdict.severity() == Severity::Ask,
                verdict.deny.is_none() && verdict.timeout_seconds().is_some()
            );
            let _ = policy.warnings();
        }
        Err(violations) => {
            assert!(!violations.is_empty());
            for violation in violations {
                assert!(violation.path.starts_with("hitl.") && !violation.message.is_empty());
                assert!(violation.message.len() < 2000);
            }
        }
    }
});
