//! Hostile text must come out safe, short and, where it will run, whole.
#![no_main]

use fuse_terminal::{
    ColourChoice, Exact, Review, cell, is_blank_lookalike, is_dangerous, strip, strip_and_cut,
    strip_lines,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);

    let line = strip(&text);
    assert!(line.len() <= text.len());
    assert!(!line.chars().any(is_dangerous));
    assert_eq!(strip(&line), line);

    let lines = strip_lines(&text);
    assert_eq!(strip_lines(&lines), lines);
    assert_eq!(lines.replace(['\n', '\t'], " "), line);

    let cut = strip_and_cut(&text, 10);
    assert!(cut.chars().count() <= 160);
    assert!(cell(&text, 10).chars().filter(|c| c.is_ascii()).count() <= 10);

    let exact = Exact::value(&text);
    let whole = exact.whole();
    assert!(!whole.chars().any(|c| is_dangerous(c) || is_blank_lookalike(c)));
    match whole.strip_prefix("$'") {
        Some(_) => assert!(whole.ends_with('\'')),
        None => assert_eq!(shlex_split(whole), [text.as_ref()]),
    }

    let review = Review::diff(&text);
    let plain = review.render(ColourChoice::Plain);
    assert_eq!(strip_lines(&review.render(ColourChoice::Colour)), plain);
});

fn shlex_split(word: &str) -> Vec<String> {
    shlex::split(word).expect("it is quoted well")
}
