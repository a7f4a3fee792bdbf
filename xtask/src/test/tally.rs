//! How much passed and failed, summed over every runner.

/// The running sums.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
}

impl Tally {
    /// A step that counts as one.
    pub fn check(&mut self, name: &str, well: bool) {
        if well {
            self.passed += 1
        } else {
            self.fail(name)
        }
    }

    /// One failure.
    pub fn fail(&mut self, name: &str) {
        self.failed += 1;
        self.failures.push(name.to_owned());
    }

    /// Reads a line of what the runner `of` wrote: a closing line adds to the sums, a failed test's line to the names. True
    /// for a closing line.
    pub fn line(&mut self, of: &str, line: &str) -> bool {
        if let Some(rest) = line.strip_prefix("test result: ") {
            self.add(rest);
            return true;
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(format!("{of}: {name}"));
        } else if let Some(name) = line
            .strip_prefix("FAILED ")
            .or_else(|| line.strip_prefix("ERROR "))
        {
            self.failures.push(format!("{of}: {name}"));
        } else if line.contains(" in ") && is_pytest(line) {
            self.add(line.rsplit_once(" in ").map_or(line, |(counts, _)| counts));
            return true;
        }
        false
    }

    fn add(&mut self, counts: &str) {
        let words: Vec<&str> = counts
            .split([' ', ',', ';', '.'])
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else {
                continue;
            };
            match pair[1] {
                "passed" => self.passed += number,
                "failed" | "error" | "errors" => self.failed += number,
                _ => {}
            }
        }
    }

    /// How many passed.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Their names, as far as they were told.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }
}

/// `3 failed, 41 passed, 1 skipped in 12.34s`, with `=` around it where it is not quiet.
fn is_pytest(line: &str) -> bool {
    let first = line
        .trim_start_matches(['=', ' '])
        .split(' ')
        .collect::<Vec<_>>();
    matches!(first.as_slice(), [count, word, ..] if count.parse::<u64>().is_ok()
        && matches!(word.trim_end_matches(','), "passed" | "failed" | "error" | "errors" | "skipped"))
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn of(lines: &[&str]) -> (u64, u64) {
        let mut tally = Tally::default();
        for line in lines {
            tally.line("suite", line);
        }
        (tally.passed(), tally.failed())
    }

    #[test]
    fn closing_lines_of_cargo_add_up() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s";
        assert_eq!(of(&[ok, "test a::b ... ok", bad]), (15, 2));
    }

    #[test]
    fn closing_lines_of_pytest_count_errors_as_failures() {
        assert_eq!(
            of(&["2 failed, 41 passed, 1 skipped, 1 error in 12.34s"]),
            (41, 3)
        );
        assert_eq!(of(&["9 passed in 75.10s (0:01:15)"]), (9, 0));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            of(&["5 passed the bridge", "running 3 tests", "done in 3s", ""]),
            (0, 0)
        );
    }

    #[test]
    fn a_failed_check_is_named() {
        let mut tally = Tally::default();
        tally.check("clippy", false);
        tally.line("suite", "test a::b ... FAILED");
        assert_eq!(tally.failures(), ["clippy", "suite: a::b"]);
        assert_eq!(tally.failed(), 1);
    }
}
