//! Any text is either a Fusefile or refused, and every complaint has a place and shows nothing that a terminal obeys.
#![no_main]

use fuse_fusefile::{Files, Options, ServerFacts, compile, parse, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let verdicts = match parse("Fusefile", text) {
        Err(verdicts) => {
            assert!(verdicts.errors().all(|verdict| verdict.place.is_some()));
            assert!(
                verdicts
                    .errors()
                    .all(|verdict| !verdict.message.starts_with("is no Fusefile")),
                "the types and the schema disagree"
            );
            verdicts
        }
        Ok(parsed) => {
            let (options, files) = (Options::default(), Files::inline(&parsed));
            let verdicts = validate(&parsed, &options, &files, &ServerFacts::offline());
            if !verdicts.has_errors() {
                let request =
                    compile(&parsed, &options, &files).expect("a valid file makes a request");
                assert!(
                    fuse_domain::environment::validate(&request, &ServerFacts::offline()).is_ok()
                );
            }
            verdicts
        }
    };
    let shown = verdicts.to_string();
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'));
});
