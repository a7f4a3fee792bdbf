//! What holds for every text.

use fuse_terminal::{
    ColourChoice, Exact, MAX_MARKS, Review, cell, is_blank_lookalike, is_dangerous, strip,
    strip_and_cut, strip_lines,
};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text that is likely to be hostile.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,6}",
        2 => prop::sample::select(vec![
            "\u{1b}", "\u{1b}[", "\u{1b}]", "\u{1b}P", "\u{1b}X", "\u{1b}^", "\u{1b}_", "\u{1b}\\", "\u{1b}(",
            "\u{9b}", "\u{9d}", "\u{90}", "\u{98}", "\u{9e}", "\u{9f}", "\u{9c}", "\u{85}", "\u{7}", "\u{18}",
            "\n", "\t", "\r", "\r\n", "\0", "\u{7f}", "31m", "0;", "$'", "'", "\\", "\\u{202e}", "\\n", " ",
        ]).prop_map(String::from),
        2 => prop::sample::select(vec![
            '\u{202e}', '\u{2066}', '\u{200b}', '\u{200d}', '\u{feff}', '\u{ad}', '\u{e0041}', '\u{fe0f}',
            '\u{fff9}', '\u{2028}', '\u{3164}', '\u{a0}', '\u{3000}', '\u{e000}', '\u{1f468}', 'é', '深',
        ]).prop_map(String::from),
        1 => (0usize..12).prop_map(|n| "\u{301}".repeat(n)),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Text with nothing in it that stripping would touch.
fn harmless() -> impl Strategy<Value = String> {
    let c = any::<char>().prop_filter("harmless", |c| !is_dangerous(*c) && c.width() != Some(0));
    prop::collection::vec(c, 0..60).prop_map(String::from_iter)
}

fn has_pile(text: &str) -> bool {
    let mut marks = 0;
    text.chars().any(|c| {
        let mark = !is_dangerous(c) && c.width() == Some(0);
        marks = if mark { marks + 1 } else { 0 };
        marks > MAX_MARKS
    })
}

/// Reads back what [`Exact::argv`] wrote, by nothing but its documented rules.
fn read_argv(shown: &str) -> Vec<String> {
    let mut argv = Vec::new();
    let mut rest = shown;
    while !rest.is_empty() {
        let end = if let Some(body) = rest.strip_prefix("$'") {
            let (argument, length) = read_dollar(body);
            argv.push(argument);
            2 + length
        } else {
            // A word of the shell ends at the first blank outside of quotes.
            let mut quote = None;
            let mut escaped = false;
            let end = rest
                .char_indices()
                .find(|(_, c)| {
                    if escaped {
                        escaped = false;
                        return false;
                    }
                    match (quote, c) {
                        (None, ' ') => return true,
                        (None, '\'' | '"') => quote = Some(*c),
                        (Some(open), c) if open == *c => quote = None,
                        (None | Some('"'), '\\') => escaped = true,
                        _ => {}
                    }
                    false
                })
                .map_or(rest.len(), |(at, _)| at);
            let word = shlex::split(&rest[..end]).expect("it is quoted well");
            assert_eq!(word.len(), 1, "{rest:?}");
            argv.extend(word);
            end
        };
        rest = &rest[end..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(' ').expect("one blank between arguments");
            assert!(!rest.is_empty());
        }
    }
    argv
}

/// The text up to the closing quote, and the length of what was read with that quote.
fn read_dollar(body: &str) -> (String, usize) {
    let mut out = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return (out, at + 1),
            '\\' => match chars.next().expect("an escape").1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'u' => {
                    assert_eq!(chars.next().expect("a brace").1, '{');
                    let hex: String = chars
                        .by_ref()
                        .map(|(_, c)| c)
                        .take_while(|c| *c != '}')
                        .collect();
                    let code = u32::from_str_radix(&hex, 16).expect("hex");
                    out.push(char::from_u32(code).expect("a character"));
                }
                c @ ('\\' | '\'') => out.push(c),
                c => panic!("unknown escape {c:?}"),
            },
            c => out.push(c),
        }
    }
    panic!("no closing quote in {body:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    // check: CLI-5
    #[test]
    fn stripped_text_holds_nothing_dangerous(text in hostile()) {
        prop_assert!(!strip(&text).chars().any(is_dangerous));
        prop_assert!(!strip_lines(&text).chars().any(|c| is_dangerous(c) && c != '\n' && c != '\t'));
        prop_assert!(!has_pile(&strip(&text)));
    }

    #[test]
    fn stripping_twice_changes_nothing(text in hostile()) {
        let once = strip(&text);
        prop_assert_eq!(strip(&once), once.clone());
        let lines = strip_lines(&text);
        prop_assert_eq!(strip_lines(&lines), lines.clone());
    }

    #[test]
    fn stripping_never_makes_text_longer(text in hostile()) {
        prop_assert!(strip(&text).len() <= text.len());
        prop_assert_eq!(strip(&text), strip_lines(&text).replace(['\n', '\t'], " "));
    }

    #[test]
    fn harmless_text_is_left_alone(text in harmless()) {
        prop_assert_eq!(strip(&text), text.clone());
    }

    #[test]
    fn lines_keep_their_number(text in hostile()) {
        prop_assert_eq!(strip_lines(&text).matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn a_cut_keeps_its_bound_and_whole_graphemes(text in hostile(), max in 0usize..30) {
        let whole = strip(&text);
        let cut = strip_and_cut(&text, max);
        prop_assert!(cut.graphemes(true).count() <= max);
        prop_assert!(!cut.chars().any(is_dangerous));
        if cut != whole && max > 0 {
            let kept = cut.strip_suffix('…').expect("a cut is marked");
            prop_assert!(whole.starts_with(kept));
            prop_assert!(whole.grapheme_indices(true).any(|(at, _)| at == kept.len()));
        }
    }

    #[test]
    fn a_cell_keeps_its_width(text in hostile(), columns in 0usize..30) {
        let cell = cell(&text, columns);
        let width: usize = cell.graphemes(true).map(UnicodeWidthStr::width).sum();
        prop_assert!(width <= columns);
        prop_assert!(!cell.chars().any(is_dangerous));
    }

    // check: CLI-6
    #[test]
    fn what_runs_can_be_read_back_from_what_is_shown(argv in prop::collection::vec(hostile(), 0..5)) {
        let shown = Exact::argv(&argv);
        prop_assert_eq!(read_argv(shown.whole()), argv);
    }

    #[test]
    fn what_is_shown_holds_nothing_hidden(argv in prop::collection::vec(hostile(), 0..5)) {
        let shown = Exact::argv(&argv);
        prop_assert!(!shown.whole().chars().any(|c| is_dangerous(c) || is_blank_lookalike(c)));
        prop_assert!(!has_pile(shown.whole()));
    }

    #[test]
    fn ordinary_arguments_survive_a_posix_shell(argv in prop::collection::vec("[ -~]{0,12}", 0..5)) {
        let shown = Exact::argv(&argv);
        prop_assert_eq!(shlex::split(shown.whole()), Some(argv));
    }

    #[test]
    fn a_command_line_can_be_read_back_from_what_is_shown(line in hostile()) {
        let shown = Exact::command_line(&line);
        let whole = shown.whole();
        prop_assert!(!whole.chars().any(|c| is_dangerous(c) || is_blank_lookalike(c)));
        match whole.strip_prefix("$'") {
            Some(body) => prop_assert_eq!(read_dollar(body), (line, body.len())),
            None => prop_assert_eq!(whole, line),
        }
    }

    #[test]
    fn a_review_keeps_its_lines_and_holds_nothing_hidden(text in hostile()) {
        let review = Review::diff(&text);
        let shown = review.render(ColourChoice::Plain);
        prop_assert!(!shown.chars().any(|c| is_dangerous(c) && c != '\n' && c != '\t'));
        let expected = text.strip_suffix('\n').unwrap_or(&text).split('\n').count();
        prop_assert_eq!(shown.matches('\n').count(), expected);
        if review.made_visible() == 0 {
            prop_assert_eq!(shown.trim_end_matches('\n'), text.trim_end_matches('\n'));
        }
    }

    #[test]
    fn colour_adds_nothing_but_styles(text in hostile()) {
        let review = Review::diff(&text);
        let coloured = review.render(ColourChoice::Colour);
        prop_assert_eq!(strip_lines(&coloured), review.render(ColourChoice::Plain));
    }
}

proptest! {
    // Each case starts a shell.
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_real_shell_reads_back_ordinary_arguments(argv in prop::collection::vec("[ -~éß深]{0,12}", 1..6)) {
        let script = format!("printf '%s\\0' {}", Exact::argv(&argv));
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().expect("a shell");
        let read: Vec<String> = String::from_utf8(output.stdout)
            .expect("text")
            .split_terminator('\0')
            .map(String::from)
            .collect();
        prop_assert_eq!(read, argv);
    }
}
