//! Text as a person sees it.

/// Whether a person sees nothing of this text: blanks, controls and characters without a picture only.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_unseen(c))
}

/// The text without the characters that leave no trace on a screen.
#[must_use]
pub fn seen(text: &str) -> String {
    text.chars().filter(|&c| !is_unseen(c)).collect()
}

/// Controls, zero-width and direction marks, fillers, tags and variation selectors.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_blank() {
        for text in [
            "",
            " \t\n",
            "\u{200b}",
            "\u{feff} \u{2060}",
            "\u{3164}",
            "\u{e0041}",
            "\u{a0}",
        ] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["x", "\u{200b}x", "é", "👩\u{200d}🚒", "0"] {
            assert!(!is_blank(text), "{text:?}");
        }
        assert_eq!(seen("ma\u{200b}st\u{ad}er"), "master");
    }
}
