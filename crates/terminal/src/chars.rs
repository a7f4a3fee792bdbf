//! Which characters may not reach a terminal as they are.

use std::ops::RangeInclusive;

use unicode_width::UnicodeWidthChar;

/// How many marks of no width may follow one character.
///
/// A longer pile of accents runs over the lines above and below and can cover them. Eight is what the
/// tallest stacks of living scripts need; Unicode's own stream-safe limit of 30 is far taller than a line.
pub const MAX_MARKS: usize = 8;

/// Everything that drives a terminal, reorders text or cannot be seen, in code point order.
///
/// It covers the general categories Cc, Cf, Zl and Zp as a whole and the property
/// `Default_Ignorable_Code_Point` with its reserved ranges; a test compares it with Unicode's data.
const DANGEROUS: &[RangeInclusive<char>] = &[
    '\u{0}'..='\u{1f}',        // Cc: C0 controls, with ESC, BEL, BS, CR
    '\u{7f}'..='\u{9f}',       // Cc: DEL and the C1 controls, 8-bit forms of ESC [ and its like
    '\u{ad}'..='\u{ad}',       // Cf: soft hyphen, seen or not as the terminal likes
    '\u{34f}'..='\u{34f}',     // ignorable: combining grapheme joiner
    '\u{600}'..='\u{605}',     // Cf: Arabic number signs, which enclose what follows
    '\u{61c}'..='\u{61c}',     // Cf: Arabic letter mark (bidirectional)
    '\u{6dd}'..='\u{6dd}',     // Cf: end of ayah, encloses digits
    '\u{70f}'..='\u{70f}',     // Cf: Syriac abbreviation mark
    '\u{890}'..='\u{891}',     // Cf: Arabic pound and piastre mark above
    '\u{8e2}'..='\u{8e2}',     // Cf: disputed end of ayah
    '\u{115f}'..='\u{1160}',   // ignorable: Hangul fillers
    '\u{17b4}'..='\u{17b5}',   // ignorable: Khmer inherent vowels
    '\u{180b}'..='\u{180f}',   // ignorable: Mongolian variation selectors and vowel separator
    '\u{200b}'..='\u{200f}',   // Cf: zero-width space and joiners, LRM, RLM
    '\u{2028}'..='\u{202e}', // Zl, Zp, Cf: line and paragraph separator, bidi embeddings and overrides
    '\u{2060}'..='\u{206f}', // Cf: word joiner, invisible operators, bidi isolates, old format controls
    '\u{3164}'..='\u{3164}', // ignorable: Hangul filler, a letter that cannot be seen
    '\u{fdd0}'..='\u{fdef}', // noncharacters
    '\u{fe00}'..='\u{fe0f}', // ignorable: variation selectors
    '\u{feff}'..='\u{feff}', // Cf: byte order mark, zero-width no-break space
    '\u{ffa0}'..='\u{ffa0}', // ignorable: halfwidth Hangul filler
    '\u{fff0}'..='\u{fffb}', // ignorable, Cf: reserved; interlinear annotation
    '\u{fffe}'..='\u{ffff}', // noncharacters
    '\u{110bd}'..='\u{110bd}', // Cf: Kaithi number sign
    '\u{110cd}'..='\u{110cd}', // Cf: Kaithi number sign above
    '\u{13430}'..='\u{1343f}', // Cf: Egyptian hieroglyph joiners
    '\u{1bca0}'..='\u{1bca3}', // Cf: shorthand format controls
    '\u{1d173}'..='\u{1d17a}', // Cf: musical beams, slurs and phrases
    '\u{e0000}'..='\u{e0fff}', // ignorable: tags, variation selectors supplement, reserved
];

/// Blanks that are no space: only made visible in what will run, since prose uses some of them.
const BLANK_LOOKALIKES: &[RangeInclusive<char>] = &[
    '\u{a0}'..='\u{a0}',        // Zs: no-break space
    '\u{1680}'..='\u{1680}',    // Zs: Ogham space mark
    '\u{2000}'..='\u{200a}',    // Zs: quads, thin and hair spaces
    '\u{202f}'..='\u{202f}',    // Zs: narrow no-break space
    '\u{205f}'..='\u{205f}',    // Zs: medium mathematical space
    '\u{2800}'..='\u{2800}',    // So: braille pattern blank
    '\u{3000}'..='\u{3000}',    // Zs: ideographic space
    '\u{e000}'..='\u{f8ff}',    // Co: private use, drawn as the font likes or not at all
    '\u{16fe4}'..='\u{16fe4}',  // Mn: Khitan filler
    '\u{1d159}'..='\u{1d159}',  // So: musical null notehead
    '\u{f0000}'..='\u{10ffff}', // Co: private use planes
];

fn within(table: &[RangeInclusive<char>], c: char) -> bool {
    table
        .binary_search_by(|range| {
            if *range.end() < c {
                std::cmp::Ordering::Less
            } else if *range.start() > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// Whether `c` drives a terminal, reorders text or cannot be seen.
///
/// Control characters, format characters (bidirectional, zero-width, tag), variation selectors, line
/// and paragraph separators, fillers and noncharacters. Line feed and tab are among them: the forms that keep
/// or replace these two say so.
///
/// ```
/// assert!(fuse_terminal::is_dangerous('\u{202e}'));
/// assert!(!fuse_terminal::is_dangerous('é'));
/// ```
pub fn is_dangerous(c: char) -> bool {
    // Printable ASCII is nearly all text there is.
    if (' '..='~').contains(&c) {
        return false;
    }
    // Each plane ends in two noncharacters.
    within(DANGEROUS, c) || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether `c` looks blank, or like nothing certain, without being a space or [dangerous](is_dangerous).
///
/// Wide and no-break blanks, private use characters. [`Exact`](crate::Exact) makes them visible.
pub fn is_blank_lookalike(c: char) -> bool {
    within(BLANK_LOOKALIKES, c)
}

/// Whether `c` takes no column of its own, as a combining accent.
pub(crate) fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.width() == Some(0)
}

#[cfg(test)]
mod tests {
    use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

    use super::*;

    fn all() -> impl Iterator<Item = char> {
        '\u{0}'..='\u{10ffff}'
    }

    #[test]
    fn tables_are_sorted_and_do_not_overlap() {
        for table in [DANGEROUS, BLANK_LOOKALIKES] {
            assert!(table.iter().all(|r| r.start() <= r.end()));
            assert!(table.windows(2).all(|w| w[0].end() < w[1].start()));
        }
    }

    #[test]
    fn every_control_format_and_separator_of_unicode_is_dangerous() {
        let missed: Vec<char> = all()
            .filter(|c| {
                matches!(
                    c.general_category(),
                    GeneralCategory::Control
                        | GeneralCategory::Format
                        | GeneralCategory::LineSeparator
                        | GeneralCategory::ParagraphSeparator
                ) && !is_dangerous(*c)
            })
            .collect();
        assert_eq!(missed, []);
    }

    #[test]
    fn what_can_be_seen_is_not_dangerous() {
        // Letters to Unicode, blank to the eye.
        let fillers = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];
        let wrong: Vec<char> = all()
            .filter(|c| {
                matches!(
                    c.general_category_group(),
                    GeneralCategoryGroup::Letter
                        | GeneralCategoryGroup::Number
                        | GeneralCategoryGroup::Punctuation
                        | GeneralCategoryGroup::Symbol
                ) && !fillers.contains(c)
                    && is_dangerous(*c)
            })
            .collect();
        assert_eq!(wrong, []);
    }

    #[test]
    fn every_blank_of_unicode_but_space_is_a_lookalike() {
        let missed: Vec<char> = all()
            .filter(|c| c.general_category() == GeneralCategory::SpaceSeparator)
            .filter(|c| *c != ' ' && !is_blank_lookalike(*c))
            .collect();
        assert_eq!(missed, []);
    }

    #[test]
    fn noncharacters_of_every_plane_are_dangerous() {
        assert!(is_dangerous('\u{1ffff}') && is_dangerous('\u{10fffe}'));
        assert!(!is_dangerous('\u{1fffd}'));
    }
}
