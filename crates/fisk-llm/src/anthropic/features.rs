//! What a model of the Messages API can do: guessed from its name, corrected by its refusals.

use std::sync::atomic::{AtomicU8, Ordering};

use super::Thinking;

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Not at all.
    Off,
    /// `adaptive`: the model decides. From Claude 4.6 on, and the only one from 4.7 on.
    Adaptive,
    /// `enabled` with a budget: up to Claude 4.6, and other makers' models.
    Budget,
}

/// What a request asks of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) thinking: Form,
    /// The other form of thinking, where it has not been refused.
    spare: bool,
    /// Whether thinking is asked for in a readable form; recent models leave it out otherwise.
    pub(super) display: bool,
    /// Whether tools may be deferred.
    pub(super) search: bool,
}

impl Features {
    fn of(model: &str, thinking: Thinking) -> Self {
        let claude = Claude::parse(model);
        let form = match (thinking, &claude) {
            (Thinking::Unset, _) => Form::Off,
            (Thinking::Enabled { .. }, Some(claude)) if claude.at_least(4, 6) => Form::Adaptive,
            (Thinking::Enabled { .. }, Some(_) | None) => Form::Budget,
        };
        Self {
            thinking: form,
            spare: form != Form::Off,
            display: form == Form::Adaptive,
            // Tool search began with the fourth generation; its small model came later than the others.
            search: claude
                .is_some_and(|claude| claude.at_least(if claude.haiku { 5 } else { 4 }, 0)),
        }
    }

    /// The same without what a refusal names; `None` where it names nothing that is asked for.
    pub(super) fn without(self, refusal: &str) -> Option<Self> {
        let text = refusal.to_ascii_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
        // A refusal of what is in the conversation is none of a feature, whatever words it quotes.
        if text.contains("messages.") {
            return None;
        }
        if self.search && names(&["tool_search", "defer_loading", "tool search"]) {
            return Some(Self {
                search: false,
                ..self
            });
        }
        if self.display && names(&["display"]) {
            return Some(Self {
                display: false,
                ..self
            });
        }
        if self.thinking != Form::Off && names(&["thinking", "budget_tokens"]) {
            let thinking = match (self.thinking, self.spare) {
                (Form::Adaptive, true) => Form::Budget,
                (Form::Budget, true) => Form::Adaptive,
                (Form::Off | Form::Adaptive | Form::Budget, _) => Form::Off,
            };
            return Some(Self {
                thinking,
                spare: false,
                display: thinking == Form::Adaptive && self.thinking == Form::Budget,
                ..self
            });
        }
        None
    }
}

/// A Claude model's generation, from names such as `claude-3-7-sonnet-20250219`, `claude-opus-4-6`, `claude-sonnet-5`,
/// `anthropic/claude-opus-4.6`, `us.anthropic.claude-haiku-4-5-20251001-v1:0`.
struct Claude {
    major: u32,
    minor: u32,
    haiku: bool,
}

impl Claude {
    fn parse(model: &str) -> Option<Self> {
        let model = model.to_ascii_lowercase();
        let (_, name) = model.split_once("claude")?;
        let mut numbers = name
            .split(['-', '.', '@', '_', ':'])
            .map(|part| part.parse::<u32>().ok())
            .skip_while(Option::is_none);
        // A date is no version.
        let version = |part: Option<Option<u32>>| part.flatten().filter(|n| *n < 100);
        Some(Self {
            // A name without a version is a new one: a refusal corrects it.
            major: version(numbers.next()).unwrap_or(u32::MAX),
            minor: version(numbers.next()).unwrap_or(0),
            haiku: name.contains("haiku"),
        })
    }

    fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

/// What the last good request asked for. One byte: readers and writers need no lock.
#[derive(Debug)]
pub(super) struct Remembered(AtomicU8);

impl Remembered {
    pub(super) fn new(model: &str, thinking: Thinking) -> Self {
        let known = Self(AtomicU8::new(0));
        known.set(Features::of(model, thinking));
        known
    }

    pub(super) fn get(&self) -> Features {
        let bits = self.0.load(Ordering::Relaxed);
        Features {
            thinking: match bits & 3 {
                0 => Form::Off,
                1 => Form::Adaptive,
                _ => Form::Budget,
            },
            spare: bits & 4 != 0,
            display: bits & 8 != 0,
            search: bits & 16 != 0,
        }
    }

    pub(super) fn set(&self, features: Features) {
        let form = match features.thinking {
            Form::Off => 0,
            Form::Adaptive => 1,
            Form::Budget => 2,
        };
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let bits =
            form | flag(features.spare, 4) | flag(features.display, 8) | flag(features.search, 16);
        self.0.store(bits, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Thinking = Thinking::Enabled { budget: 4_096 };

    #[test]
    fn the_form_of_thinking_follows_from_the_models_name() {
        for (model, form) in [
            ("claude-3-7-sonnet-20250219", Form::Budget),
            ("claude-opus-4-20250514", Form::Budget),
            ("claude-sonnet-4-5-20250929", Form::Budget),
            ("claude-haiku-4-5", Form::Budget),
            ("claude-opus-4-6", Form::Adaptive),
            ("anthropic/claude-opus-4.7", Form::Adaptive),
            ("us.anthropic.claude-sonnet-4-6-v1:0", Form::Adaptive),
            ("claude-fable-5-1", Form::Adaptive),
            ("claude-sonnet-5", Form::Adaptive),
            ("claude-new", Form::Adaptive),
            ("some-local-model", Form::Budget),
        ] {
            assert_eq!(Features::of(model, ON).thinking, form, "{model}");
            assert_eq!(Features::of(model, Thinking::Unset).thinking, Form::Off);
        }
    }

    // check: FISK-52
    #[test]
    fn only_models_that_can_search_are_asked_to() {
        for (model, search) in [
            ("claude-3-7-sonnet-20250219", false),
            ("claude-haiku-4-5", false),
            ("claude-haiku-5-5", true),
            ("claude-opus-4-20250514", true),
            ("claude-sonnet-5", true),
            ("glm-5", false),
        ] {
            assert_eq!(Features::of(model, ON).search, search, "{model}");
        }
    }

    #[test]
    fn a_refusal_takes_away_what_it_names_and_ends() {
        let mut features = Features::of("claude-opus-4-6", ON);
        let mut forms = Vec::new();
        while let Some(lesser) = features.without("thinking: not supported") {
            forms.push(lesser.thinking);
            features = lesser;
        }
        assert_eq!(forms, [Form::Budget, Form::Off]);
        let plain = features
            .without("'tool_search_tool_bm25' is not supported")
            .unwrap();
        assert!(!plain.search);
        assert_eq!(plain.without("tool_search"), None);
        assert_eq!(plain.without("max_tokens: too large"), None);
    }

    #[test]
    fn a_refusal_of_the_conversation_is_none_of_a_feature() {
        let features = Features::of("claude-opus-4-6", ON);
        assert_eq!(
            features.without("messages.1.content.0: thinking blocks cannot be modified"),
            None
        );
    }

    #[test]
    fn what_is_remembered_comes_back_whole() {
        for thinking in [Form::Off, Form::Adaptive, Form::Budget] {
            for bits in 0..8 {
                let features = Features {
                    thinking,
                    spare: bits & 1 != 0,
                    display: bits & 2 != 0,
                    search: bits & 4 != 0,
                };
                let known = Remembered(AtomicU8::new(0));
                known.set(features);
                assert_eq!(known.get(), features);
            }
        }
    }
}
