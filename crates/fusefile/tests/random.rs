//! Whatever the text is, there is an answer, and it has a place.

use fuse_fusefile::{Files, Options, ServerFacts, TEMPLATE, parse, validate};
use proptest::prelude::*;

fn holds(text: &str) {
    match parse("Fusefile", text) {
        Err(verdicts) => {
            assert!(verdicts.has_errors());
            for verdict in verdicts.errors() {
                assert!(
                    !verdict.message.starts_with("is no Fusefile"),
                    "the types and the schema disagree on {text:?}: {}",
                    verdict.message
                );
                let place = verdict.place.expect("each has a place");
                assert!(place.line >= 1 && place.column >= 1);
            }
            let _ = verdicts.to_string();
        }
        Ok(parsed) => {
            let (options, files) = (Options::default(), Files::inline(&parsed));
            let verdicts = validate(&parsed, &options, &files, &ServerFacts::offline());
            let _ = verdicts.to_string();
        }
    }
}

const WORDS: [&str; 44] = [
    "version", "name", "env", "files", "run", "hitl", "gates", "match", "program", "requests",
    "secret", "targets", "ask", ": ", ":\n", "\n", "\n  ", "\n    ", "- ", "{", "}", "[", "]",
    ", ", "1", "1.5", "-1", "true", "~", "5m", "ttl:5m", "exec", "\"", "'", "|", ">", "&a ", "*a",
    "<<", "!!str ", "# ", "?", "\t", "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn any_yaml_like_text_is_answered(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40)) {
        holds(&format!("version: 1\n{}", words.concat()));
        holds(&words.concat());
    }

    #[test]
    fn a_damaged_template_is_answered(at in 0..TEMPLATE.len(), cut in 0..40_usize, word in prop::sample::select(&WORDS[..])) {
        let until = (at + cut).min(TEMPLATE.len());
        if let (Some(before), Some(after)) = (TEMPLATE.get(..at), TEMPLATE.get(until..)) {
            holds(&format!("{before}{word}{after}"));
        }
    }
}
