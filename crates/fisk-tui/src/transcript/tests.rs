use super::*;

/// What is counted is what is there.
fn kept(transcript: &Transcript) -> (usize, usize) {
    let lines = |entry: &Entry| 1 + entry.body.len();
    let bytes = |entry: &Entry| {
        let body: usize = entry.body.iter().map(String::len).sum();
        body + entry.size()
    };
    let entries = transcript.entries.iter();
    let counted = (
        entries.clone().map(lines).sum(),
        entries.map(bytes).sum::<usize>(),
    );
    assert_eq!(counted, (transcript.lines, transcript.bytes));
    counted
}

// check: FISK-83
#[test]
fn no_flood_makes_it_larger_than_it_may_be() {
    let mut transcript = Transcript::default();
    let check = |transcript: &Transcript| {
        let (lines, bytes) = kept(transcript);
        assert!(lines <= MAX_LINES && bytes <= MAX_BYTES);
    };
    for n in 0..12u32 {
        transcript.say(&"x".repeat(1024 * 1024));
        check(&transcript);
        transcript.think(&"\n".repeat(3000));
        check(&transcript);
        let id = n.to_string();
        transcript.call(id.clone(), "tool", &Value::Null, None);
        transcript.ended(&id, &"line\n".repeat(50_000), Ending::Denied);
        check(&transcript);
    }
    for n in 0..11_000 {
        transcript.note(&n.to_string(), Look::Warning);
    }
    check(&transcript);
}

#[test]
fn a_stream_is_the_same_in_any_pieces() {
    let text = "one\n\ntwo \u{1b}[31mred\u{1b}[0m\n深\t.\n";
    let mut whole = Transcript::default();
    whole.say(text);
    let mut pieces = Transcript::default();
    for c in text.chars() {
        pieces.say(c.encode_utf8(&mut [0; 4]));
    }
    let body = |transcript: &Transcript| transcript.entries[0].body.clone();
    assert_eq!(body(&whole), ["one", "", "two red", "深  ."]);
    assert_eq!(body(&whole), body(&pieces));
    kept(&pieces);
}

#[test]
fn a_long_output_keeps_its_head_and_its_tail() {
    let text: String = (0..5000).map(|n| format!("{n}\n")).collect();
    let lines = output_lines(&text);
    assert_eq!(lines.len(), MAX_OUTPUT_LINES + 1);
    assert_eq!(lines[0], "0");
    assert_eq!(lines[500], "[4000 lines are not shown]");
    assert_eq!(lines[1000], "4999");
}
