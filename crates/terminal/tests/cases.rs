//! What stripping does to each kind of hostile text.

use fuse_terminal::{strip, strip_lines};

/// Name, text, as one line, as lines.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("control sequence", "a\x1b[31mB\x1b[0mc", "aBc", "aBc"),
    ("title ended by bell", "a\x1b]0;title\x07c", "ac", "ac"),
    (
        "clipboard ended by ST",
        "a\x1b]52;c;aGk=\x1b\\c",
        "ac",
        "ac",
    ),
    (
        "hyperlink",
        "a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\c",
        "alinkc",
        "alinkc",
    ),
    ("device control", "a\x1bPq#0\x1b\\c", "ac", "ac"),
    ("application command", "a\x1b_Gx\x1b\\c", "ac", "ac"),
    (
        "privacy message, start of string",
        "a\x1b^x\x1b\\b\x1bXy\x1b\\c",
        "abc",
        "abc",
    ),
    ("8-bit CSI", "a\u{9b}31mc", "ac", "ac"),
    ("8-bit OSC", "a\u{9d}0;t\u{9c}c", "ac", "ac"),
    ("8-bit next line", "a\u{85}c", "ac", "ac"),
    (
        "bidirectional",
        "a\u{202e}b\u{2066}d\u{2069}c",
        "abdc",
        "abdc",
    ),
    (
        "zero width and marks",
        "a\u{200b}\u{200e}\u{61c}c",
        "ac",
        "ac",
    ),
    ("tag", "a\u{e0041}c", "ac", "ac"),
    ("CR, BS, BEL, DEL", "a\rb\x08d\x07\x7fc", "abdc", "abdc"),
    ("escape at the end", "a\x1b", "a", "a"),
    ("open control sequence", "abc\x1b[31", "abc", "abc"),
    (
        "open title",
        "abc\x1b]0;tail text\nnext line",
        "abc0;tail text next line",
        "abc0;tail text\nnext line",
    ),
    ("reset", "a\x1bcb", "ab", "ab"),
    ("character set", "a\x1b(0qb", "aqb", "aqb"),
    ("escape before an escape", "a\x1b\x1b[31mb", "ab", "ab"),
    ("tab and line feed", "a\tb\nc", "a b c", "a\tb\nc"),
    ("VT and FF", "a\x0bb\x0cc", "abc", "abc"),
    // Beyond the usual ones.
    (
        "8-bit DCS, SOS, PM, APC",
        "\u{90}a\u{9c}b\u{98}a\u{9c}\u{9e}a\x1b\\\u{9f}a\u{9c}c",
        "bc",
        "bc",
    ),
    ("bell ends a title only", "a\x1bPx\x07y\x1b\\b", "ab", "ab"),
    (
        "open 8-bit title",
        "a\u{9d}0;rm -rf /",
        "a0;rm -rf /",
        "a0;rm -rf /",
    ),
    (
        "title that a second escape breaks off",
        "\x1b]0;seen\x1b[1mtoo",
        "0;seentoo",
        "0;seentoo",
    ),
    (
        "title that is cancelled",
        "\x1b]0;seen\x18too\x07",
        "0;seentoo",
        "0;seentoo",
    ),
    (
        "title whose end is on another line",
        "a\x1b]0;b\nc\x07d",
        "a0;b cd",
        "a0;b\ncd",
    ),
    (
        "control sequence broken off by text",
        "\x1b[3é1m",
        "é1m",
        "é1m",
    ),
    (
        "control sequence broken off by a line feed",
        "\x1b[3\n1m",
        " 1m",
        "\n1m",
    ),
    ("escape before a wide character", "\x1b深", "深", "深"),
    ("malformed character set", "\x1b(é", "(é", "(é"),
    ("CR LF", "a\r\nb", "a b", "a\nb"),
    (
        "line and paragraph separator",
        "a\u{2028}b\u{2029}c",
        "abc",
        "abc",
    ),
    (
        "soft hyphen, variation, annotation",
        "a\u{ad}\u{fe0f}\u{fff9}b\u{fffa}c\u{fffb}",
        "abc",
        "abc",
    ),
    ("NUL", "a\0b", "ab", "ab"),
    ("Hangul filler", "a\u{3164}b", "ab", "ab"),
    (
        "accents within reason",
        "e\u{301}\u{323}",
        "e\u{301}\u{323}",
        "e\u{301}\u{323}",
    ),
];

// check: CLI-5
#[test]
fn each_case_is_stripped_as_the_table_says() {
    for (name, text, line, lines) in CASES {
        assert_eq!(strip(text), *line, "{name}");
        assert_eq!(strip_lines(text), *lines, "{name}");
    }
}

// check: CLI-7
#[test]
fn an_open_string_hides_nothing_in_any_of_its_forms() {
    for introducer in [
        "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\u{9d}", "\u{90}", "\u{98}", "\u{9e}",
        "\u{9f}",
    ] {
        let text = format!("Run the tests{introducer}and then delete production");
        assert_eq!(strip(&text), "Run the testsand then delete production");
    }
}

#[test]
fn a_tower_of_accents_is_cut_down() {
    let text = format!("a{}b", "\u{301}".repeat(1000));
    assert_eq!(strip(&text), format!("a{}b", "\u{301}".repeat(8)));
}

#[test]
fn hostile_text_is_stripped_in_linear_time() {
    // Quadratic work would take minutes here.
    for piece in ["\x1b]", "\u{9d}", "\x1bP0", "\x1b[", "\x1b(", "\x1b]\u{9c}"] {
        let text = piece.repeat(2_000_000 / piece.len());
        let start = std::time::Instant::now();
        strip(&text);
        assert!(start.elapsed().as_secs() < 20, "{piece:?}");
    }
}
