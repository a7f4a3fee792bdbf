//! Texts of the application as plain text: for the model to read, and for messages.

/// Where a cut text goes on.
const MORE: &str = "…";

/// Whether a character has no place in plain text: controls, and what is invisible or turns the text around.
fn is_stray(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Several lines of at most `max` characters in all.
pub(crate) fn lines(text: &str, max: usize) -> String {
    let kept = text
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| *c == '\n' || !is_stray(*c));
    cut(kept, max)
}

/// One line of at most `max` characters.
pub(crate) fn line(text: &str, max: usize) -> String {
    let kept = text
        .chars()
        .map(|c| if matches!(c, '\t' | '\n') { ' ' } else { c })
        .filter(|c| !is_stray(*c));
    cut(kept, max)
}

fn cut(mut chars: impl Iterator<Item = char>, max: usize) -> String {
    let mut text: String = chars.by_ref().take(max).collect();
    if chars.next().is_some() {
        text.pop();
        text.push_str(MORE);
    }
    text.trim().to_owned()
}

/// Names in quotes, the first `max` of them.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>, max: usize) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names
        .by_ref()
        .take(max)
        .map(|name| line(name, 100))
        .collect();
    let more = names.count();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    }
}

/// How many names a refusal tells: an application may have hundreds, and a model reads all that it is told.
const NEAREST: usize = 5;
/// How much of a word is compared: comparing costs the product of both lengths, and a model writes the word.
const COMPARED: usize = 100;

/// What there is instead of an unknown name: all of the names where they are few, else the nearest and how many there are.
#[must_use]
pub fn instead<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    let count = known.len();
    if count <= NEAREST {
        return format!("there are: {}", list(known, NEAREST));
    }
    let part = |text: &str| text.chars().take(COMPARED).collect::<String>();
    let word = part(word);
    known.sort_by_cached_key(|name| {
        // Likenesses lie between 0 and 1, where the bits of a float are in its order.
        std::cmp::Reverse(strsim::jaro_winkler(&word, &part(name)).to_bits())
    });
    known.truncate(NEAREST);
    format!("the nearest of {count}: {}", list(known, NEAREST))
}

/// The closest of some words, where one is close enough to be meant.
pub(crate) fn suggestion<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Comparing costs the product of both lengths, and a model writes the word.
    if word.len() > 100 {
        return None;
    }
    known
        .into_iter()
        .filter(|name| name.len() <= 100)
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-86
    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_five_and_their_number() {
        assert_eq!(instead("x", []), "there are: none");
        assert_eq!(instead("x", ["b", "a"]), "there are: b, a");
        let names: Vec<String> = (0..230)
            .map(|n| format!("consumer_{n}"))
            .chain(["stream_ls", "stream_info"].map(ToOwned::to_owned))
            .collect();
        let told = instead("stream_list", names.iter().map(String::as_str));
        assert!(
            told.starts_with("the nearest of 232: stream_ls, stream_info, "),
            "{told}"
        );
        assert_eq!(told.split(", ").count(), 5);
        let long = "s".repeat(1_000_000);
        assert!(instead(&long, names.iter().map(String::as_str)).len() < 200);
    }

    #[test]
    fn what_is_invisible_goes_and_the_rest_is_cut() {
        assert_eq!(
            lines("a\x1b[31mb\u{202e}c\n\td\u{e0041}", 100),
            "a[31mbc\n d"
        );
        assert_eq!(line("one\ntwo", 100), "one two");
        assert_eq!(line("abcdef", 4), "abc…");
        assert_eq!(line("abcd", 4), "abcd");
    }

    #[test]
    fn a_list_tells_how_many_are_left_out() {
        assert_eq!(list(["a", "b", "c"], 2), "a, b, and 1 more");
        assert_eq!(list([], 2), "none");
    }

    #[test]
    fn only_a_close_word_is_suggested() {
        assert_eq!(suggestion("contxt", ["trace", "context"]), Some("context"));
        assert_eq!(suggestion("zebra", ["trace", "context"]), None);
    }
}
