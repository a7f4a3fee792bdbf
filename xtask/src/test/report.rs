//! What a run tells at its end: how long each step took, what failed with what it wrote, and the sums.

use std::time::{Duration, Instant};

use super::tally::Tally;

/// Steps that took less are told together.
const SHORT: Duration = Duration::from_secs(2);

/// The growing account of a run.
pub struct Report {
    /// How much passed and failed so far.
    pub tally: Tally,
    begun: Instant,
    times: Vec<(String, Duration)>,
    failed: Vec<(String, String)>,
}

impl Report {
    /// An account that begins now.
    pub fn begin() -> Self {
        Self {
            tally: Tally::default(),
            begun: Instant::now(),
            times: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Does `step` and notes how long it took.
    pub fn timed<T>(&mut self, name: &str, step: impl FnOnce() -> T) -> T {
        println!("== {name}");
        let begun = Instant::now();
        let done = step();
        let took = begun.elapsed();
        println!("   after {}", seconds(took));
        self.times.push((name.to_owned(), took));
        done
    }

    /// A step that ran beside others is over: prints all that it wrote.
    pub fn ended(&mut self, name: &str, took: Duration, well: bool, output: &str) {
        let verdict = if well { "ok" } else { "failed" };
        println!("== {name}: {verdict} after {}", seconds(took));
        print!("{output}");
        if !output.is_empty() && !output.ends_with('\n') {
            println!();
        }
        self.times.push((name.to_owned(), took));
        if !well {
            self.failed.push((name.to_owned(), output.to_owned()));
        }
    }

    /// Prints the table of times, what failed once more, and the closing line.
    pub fn close(mut self) -> bool {
        for (name, output) in &self.failed {
            println!("== {name} failed:");
            for line in telling(output) {
                println!("{line}");
            }
        }
        print!("{}", table(&mut self.times));
        for failure in self.tally.failures() {
            println!("failed: {failure}");
        }
        println!("took {}", seconds(self.begun.elapsed()));
        println!(
            "{} passed, {} failed",
            self.tally.passed(),
            self.tally.failed()
        );
        self.tally.failed() == 0
    }
}

/// What is worth reading twice: all but the tests that passed.
fn telling(output: &str) -> impl Iterator<Item = &str> {
    output
        .lines()
        .filter(|line| !(line.starts_with("test ") && line.ends_with(" ... ok")))
}

/// The longest first. They add up to more than the run took, since much of it runs side by side.
fn table(times: &mut [(String, Duration)]) -> String {
    times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let long = times.iter().take_while(|(_, took)| *took >= SHORT).count();
    let (long, short) = times.split_at(long);
    let mut text = String::from("== times\n");
    for (name, took) in long {
        text += &format!("{:>8}  {name}\n", seconds(*took));
    }
    if !short.is_empty() {
        let sum: Duration = short.iter().map(|(_, took)| *took).sum();
        text += &format!("{:>8}  {} others\n", seconds(sum), short.len());
    }
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_tells_short_steps_together() {
        let of = |name: &str, millis| (name.to_owned(), Duration::from_millis(millis));
        let mut times = [of("a", 100), of("b", 3_000), of("c", 70_500), of("d", 200)];
        let lines = table(&mut times);
        let lines: Vec<&str> = lines.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            ["== times", "70.5 s  c", "3.0 s  b", "0.3 s  2 others"]
        );
    }

    #[test]
    fn what_failed_is_told_without_what_passed() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\nthread 'b' panicked";
        let told: Vec<&str> = telling(output).collect();
        assert_eq!(
            told,
            [
                "running 2 tests",
                "test b ... FAILED",
                "thread 'b' panicked"
            ]
        );
    }
}
