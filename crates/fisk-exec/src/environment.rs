//! Which variables a child gets.

use std::ffi::{OsStr, OsString};

/// Variables that hold secrets of the harness itself. No child gets one, and [`harden_process`](crate::harden_process) hides
/// them. The first five are the spec's (Safety, "A command is sandboxed by construction"); the others are the second
/// provider's key, and the tokens by which Fisk speaks to Fuse or is spoken to.
pub const HARNESS_SECRETS: [&str; 10] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "OPENAI_API_KEY",
    "FUSE_*TOKEN*",
    "FUSE_*KEY*",
    "FISK_*TOKEN*",
    "FISK_*KEY*",
];

/// Tells an application that a model reads its output.
const LLM_FORMAT: (&str, &str) = ("LLMFORMAT", "1");

/// Names and `*` patterns, compared in any case.
#[derive(Debug, Clone)]
pub struct Names {
    patterns: Vec<String>,
}

impl Names {
    /// The harness' own secrets, and more.
    ///
    /// # Errors
    /// A sentence about the first entry that can be no name of a variable, with its place.
    pub fn secrets_and<S: AsRef<str>>(more: &[S]) -> Result<Self, String> {
        let mut patterns: Vec<String> = HARNESS_SECRETS.map(str::to_lowercase).into();
        for (at, pattern) in more.iter().enumerate() {
            let pattern = pattern.as_ref();
            if pattern.is_empty() || pattern.contains(['=', '\0']) {
                return Err(format!(
                    "strip_env[{at}]: {pattern:?} names no variable: it must not be empty nor hold `=` or NUL; `*` stands for anything"
                ));
            }
            patterns.push(pattern.to_lowercase());
        }
        Ok(Self { patterns })
    }

    /// Whether a variable is meant.
    pub fn matches(&self, name: &OsStr) -> bool {
        // A name that is no text is compared with replacements in it; at worst a variable too much is taken away.
        let name = name.to_string_lossy().to_lowercase();
        self.patterns.iter().any(|pattern| glob(pattern, &name))
    }
}

/// Whether `text` is what `pattern` says, with `*` for any number of characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The environment of every child: `all` without what is stripped, and with `LLMFORMAT=1`, which cannot be stripped.
pub fn for_children(
    all: impl Iterator<Item = (OsString, OsString)>,
    stripped: &Names,
) -> Vec<(OsString, OsString)> {
    let (name, value) = LLM_FORMAT;
    all.filter(|(name, _)| !stripped.matches(name) && name != LLM_FORMAT.0)
        .chain([(name.into(), value.into())])
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn child(all: &[(&str, &str)], strip: &[&str]) -> Vec<String> {
        let all = all.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        for_children(all, &Names::secrets_and(strip).unwrap())
            .into_iter()
            .map(|(n, v)| format!("{}={}", n.to_string_lossy(), v.to_string_lossy()))
            .collect()
    }

    // check: FISK-3
    #[test]
    fn no_secret_of_the_harness_reaches_a_child_in_any_case() {
        let all = [
            ("ANTHROPIC_API_KEY", "s"),
            ("anthropic_auth_token", "s"),
            ("Anthropic_Identity_Token", "s"),
            ("ANTHROPIC_WEBHOOK_SIGNING_KEY", "s"),
            ("ANTHROPIC_CUSTOM_HEADERS", "s"),
            ("OPENAI_API_KEY", "s"),
            ("FUSE_TOKEN", "s"),
            ("FUSE_API_TOKEN", "s"),
            ("FISK_MCP_TOKEN", "s"),
            ("ANTHROPIC_BASE_URL", "u"),
            ("HOME", "/h"),
        ];
        assert_eq!(
            child(&all, &[]),
            ["ANTHROPIC_BASE_URL=u", "HOME=/h", "LLMFORMAT=1"]
        );
    }

    // check: FISK-3
    #[test]
    fn the_operator_adds_names_and_patterns_in_any_case() {
        let all = [("AWS_SECRET", "s"), ("Db_Password", "s"), ("HOME", "/h")];
        assert_eq!(
            child(&all, &["aws_*", "*PASS*D"]),
            ["HOME=/h", "LLMFORMAT=1"]
        );
        assert_eq!(child(&all, &["*"]), ["LLMFORMAT=1"]);
    }

    // check: FISK-3
    #[test]
    fn the_mark_for_models_is_always_ours() {
        assert_eq!(
            child(&[("LLMFORMAT", "0")], &["LLMFORMAT"]),
            ["LLMFORMAT=1"]
        );
        assert_eq!(child(&[("LLMFORMAT", "0")], &[]), ["LLMFORMAT=1"]);
    }

    #[test]
    fn a_variable_that_is_no_text_is_passed_on_and_can_be_stripped() {
        let odd = || OsString::from_vec(vec![b'A', 0xff]);
        let all = || [(odd(), odd())].into_iter();
        let passed = for_children(all(), &Names::secrets_and::<&str>(&[]).unwrap());
        assert_eq!(passed[0], (odd(), odd()));
        let stripped = for_children(all(), &Names::secrets_and(&["a*"]).unwrap());
        assert_eq!(stripped.len(), 1);
    }

    #[test]
    fn an_entry_that_names_no_variable_is_refused_with_its_place() {
        let error = Names::secrets_and(&["OK", "A=B"]).unwrap_err();
        assert!(error.starts_with("strip_env[1]: \"A=B\""), "{error}");
        assert!(Names::secrets_and(&[""]).is_err());
    }

    #[test]
    fn a_star_stands_for_anything_and_everything_else_for_itself() {
        for (pattern, text, expected) in [
            ("ab", "ab", true),
            ("ab", "abc", false),
            ("a*", "a", true),
            ("a*b*c", "axbxbc", true),
            ("a*b", "ab", true),
            ("ab*ba", "aba", false),
            ("*a*", "bab", true),
            ("**", "", true),
            ("a?c", "abc", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
