//! Rules for names, paths and command lines.

use super::MAX_TEXT_BYTES;

/// What is wrong with a guest path, or nothing.
///
/// A path is absolute and clean: no empty, `.` or `..` part and no slash at its end.
pub(super) fn path_fault(path: &str) -> Option<&'static str> {
    if path.contains('\0') {
        return Some("must not hold a NUL byte");
    }
    if path.len() > 4096 || path.split('/').any(|part| part.len() > 255) {
        return Some("must be at most 4096 bytes long, and each part of it at most 255");
    }
    let clean = path.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty() || rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
    });
    (!clean).then_some(
        "must be an absolute path without `.`, `..`, doubled slashes or a slash at its end",
    )
}

/// The folders of an environment that no request may put anything into: Fuse's own, and those that the kernel fills.
const RESERVED: [&str; 4] = ["/fuse", "/proc", "/sys", "/dev"];

/// The reserved folder that a clean path is, or lies in.
pub(super) fn reserved(path: &str) -> Option<&'static str> {
    RESERVED.into_iter().find(|folder| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// What is wrong with a variable's name, or nothing.
pub(super) fn variable_fault(name: &str) -> Option<&'static str> {
    let good = (1..=255).contains(&name.len())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (!good)
        .then_some("is no variable name: use 1 to 255 of A-Z a-z 0-9 and _, with no digit in front")
}

/// What is wrong with a secret's name, or nothing.
pub(super) fn secret_name_fault(name: &str) -> Option<&'static str> {
    let good = (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    (!good).then_some("is no name of a secret: use 1 to 128 of A-Z a-z 0-9 _ - and .")
}

/// What is wrong with the name of an image, or nothing. It names a folder, hence the narrow alphabet.
pub(super) fn image_fault(name: &str) -> Option<&'static str> {
    let good = (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    (!good).then_some(
        "must be `host` or the name of a root tree: 1 to 63 letters, digits, `.`, `_` or `-`, starting with a letter or a digit",
    )
}

/// What is wrong with a command line or script, or nothing.
pub(super) fn command_fault(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        Some("must not be empty")
    } else {
        value_fault(text)
    }
}

/// What is wrong with an argument or a variable's value, or nothing.
pub(super) fn value_fault(text: &str) -> Option<&'static str> {
    if text.contains('\0') {
        Some("must not hold a NUL byte")
    } else if text.len() > MAX_TEXT_BYTES {
        Some("must be at most 64 KiB long")
    } else {
        None
    }
}

/// The path of a map's entry: `env.NAME`, or `files["/etc/x"]` where the key is no plain word.
pub(super) fn entry(map: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if plain {
        format!("{map}.{key}")
    } else {
        format!("{map}[{key:?}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_path_is_absolute_and_clean() {
        for good in ["/", "/a", "/a/b.c", "/..a", "/fuse"] {
            assert_eq!(path_fault(good), None, "{good}");
        }
        for bad in [
            "", "a", "./a", "//", "/a/", "/a//b", "/./a", "/a/..", "/a\0", "~/a",
        ] {
            assert!(path_fault(bad).is_some(), "{bad:?}");
        }
        assert!(path_fault(&format!("/{}", "a".repeat(256))).is_some());
        assert!(path_fault(&"/a".repeat(2049)).is_some());
    }

    #[test]
    fn only_the_folders_themselves_and_what_lies_in_them_is_reserved() {
        for folder in RESERVED {
            assert_eq!(reserved(folder), Some(folder));
            assert_eq!(reserved(&format!("{folder}/x")), Some(folder));
        }
        for free in ["/fused", "/srv/fuse", "/device", "/procs/x", "/system"] {
            assert_eq!(reserved(free), None, "{free}");
        }
    }

    #[test]
    fn names_have_their_alphabets() {
        assert!(variable_fault("_A1").is_none() && secret_name_fault("a-b.c_1").is_none());
        for bad in ["", "1A", "A-B", "A=B", "Ä", "A B"] {
            assert!(variable_fault(bad).is_some(), "{bad}");
        }
        for bad in ["", "a b", "a/b", "ä"] {
            assert!(secret_name_fault(bad).is_some(), "{bad}");
        }
        for bad in ["", ".", "..", "../etc", "a/b", "-a", "a:b"] {
            assert!(image_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_key_that_is_no_plain_word_is_quoted_in_a_path() {
        assert_eq!(entry("env", "A_B"), "env.A_B");
        assert_eq!(entry("files", "/etc/x"), r#"files["/etc/x"]"#);
        assert_eq!(entry("env", ""), r#"env[""]"#);
    }
}
