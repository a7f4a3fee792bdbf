//! Commands side by side. Most tests wait for something, a deadline or another process, so more of them run than there are
//! cores; those that load the machine count more. Beside them runs one command of a chain at a time, such as the linters,
//! at a low priority: it takes what the tests leave.

use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use super::report::Report;
use crate::proc::{self, Beside, Ended};

const POLL: Duration = Duration::from_millis(20);

/// What a command's end counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// One check, passed or failed.
    AsOne,
    /// The tests that its closing lines tell. One that tells none has failed, whatever its status.
    ItsTests,
}

/// A command to run.
pub struct Job {
    /// What it is called in the report.
    pub name: String,
    /// The command.
    pub command: Command,
    /// How many of the pool's slots it takes.
    pub weight: usize,
    /// How it counts.
    pub counts: Counts,
    /// The longest it may run.
    pub limit: Duration,
}

struct Running {
    beside: Beside,
    name: String,
    weight: usize,
    counts: Counts,
}

impl Job {
    fn start(mut self) -> Result<Running> {
        Ok(Running {
            beside: Beside::start(&mut self.command, self.limit)?,
            name: self.name,
            weight: self.weight,
            counts: self.counts,
        })
    }
}

/// Everything that runs now. All of it is asked to end at once when this goes.
struct Pool {
    slots: usize,
    running: Vec<Running>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        for running in &self.running {
            running.beside.ask_to_end();
        }
    }
}

/// Runs `jobs` on `slots`, begun in their order, and beside them the commands of `chain` one after the other.
///
/// # Errors
/// The run is interrupted, or a command cannot be started. Whatever runs is stopped.
pub fn run(
    mut jobs: VecDeque<Job>,
    mut chain: VecDeque<Job>,
    slots: usize,
    report: &mut Report,
) -> Result<()> {
    let mut pool = Pool {
        slots,
        running: Vec::new(),
    };
    let mut link = Pool {
        slots: 1,
        running: Vec::new(),
    };
    loop {
        pool.fill(&mut jobs)?;
        link.fill(&mut chain)?;
        if pool.running.is_empty() && link.running.is_empty() {
            return Ok(());
        }
        pool.reap(report)?;
        link.reap(report)?;
        if proc::interrupted() {
            bail!("interrupted");
        }
        std::thread::sleep(POLL);
    }
}

impl Pool {
    /// Starts what fits: the first of those that wait, and no later one in its place, or a heavy one would wait for the end.
    fn fill(&mut self, jobs: &mut VecDeque<Job>) -> Result<()> {
        while let Some(next) = jobs.front() {
            let taken: usize = self.running.iter().map(|running| running.weight).sum();
            if taken > 0 && taken + next.weight > self.slots {
                return Ok(());
            }
            self.running
                .extend(jobs.pop_front().map(Job::start).transpose()?);
        }
        Ok(())
    }

    /// Takes out what is over.
    fn reap(&mut self, report: &mut Report) -> Result<()> {
        let mut at = 0;
        while at < self.running.len() {
            if self.running[at].beside.is_over()? {
                let over = self.running.swap_remove(at);
                count(&over.name, over.counts, over.beside.close()?, report);
            } else {
                at += 1;
            }
        }
        Ok(())
    }
}

fn count(name: &str, counts: Counts, ended: Ended, report: &mut Report) {
    let (tally, mut output) = (&mut report.tally, ended.output);
    let mut well = ended.status.is_some_and(|status| status.success());
    match ended.status {
        None => output += &format!("\nstopped after {} s\n", ended.took.as_secs()),
        Some(status) if !well => output += &format!("\nended with {status}\n"),
        Some(_) => {}
    }
    match counts {
        Counts::AsOne => tally.check(name, well),
        Counts::ItsTests => {
            let failed_before = tally.failed();
            let mut told = false;
            for line in output.lines() {
                told |= tally.line(name, line);
            }
            if well && !told {
                output += "it ended well, and told no result\n";
            }
            well &= told && tally.failed() == failed_before;
            // One that broke before it counted is a failure too.
            if !well && tally.failed() == failed_before {
                tally.fail(name);
            }
        }
    }
    report.ended(name, ended.took, well, &output);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn job(name: &str, script: &str, weight: usize, limit: Duration) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            command,
            weight,
            counts: Counts::ItsTests,
            limit,
        }
    }

    fn of(jobs: Vec<Job>, slots: usize) -> Report {
        let mut report = Report::begin();
        run(jobs.into(), VecDeque::new(), slots, &mut report).unwrap();
        report
    }

    const OK: &str = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";

    #[test]
    fn closing_lines_of_all_commands_are_summed() {
        let bad =
            "echo 'test a ... FAILED'; echo 'test result: FAILED. 3 passed; 1 failed'; exit 101";
        let report = of(vec![job("one", OK, 1, LIMIT), job("two", bad, 1, LIMIT)], 2);
        assert_eq!((report.tally.passed(), report.tally.failed()), (5, 1));
        assert_eq!(report.tally.failures(), ["two: a"]);
    }

    #[test]
    fn one_that_breaks_tells_nothing_or_never_ends_has_failed() {
        let broken = format!("{OK}; kill -9 $$");
        let endless = format!("{OK}; sleep 60");
        let report = of(
            vec![
                job("broken", &broken, 1, LIMIT),
                job("silent", "true", 1, LIMIT),
                job("endless", &endless, 1, Duration::from_millis(300)),
            ],
            3,
        );
        assert_eq!(report.tally.failed(), 3);
        let mut failures = report.tally.failures().to_vec();
        failures.sort();
        assert_eq!(failures, ["broken", "endless", "silent"]);
    }

    /// Each of them notes when it begins and ends, so that what ran beside what is seen.
    #[test]
    fn no_more_runs_at_once_than_there_are_slots_and_a_heavy_one_runs_alone() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let noted = |name: &str, weight| {
            let log = log.display();
            let script = format!("echo + >> {log}; sleep 0.3; echo - >> {log}; {OK}");
            job(name, &script, weight, LIMIT)
        };
        let jobs = vec![
            noted("a", 1),
            noted("b", 1),
            noted("heavy", 5),
            noted("c", 1),
            noted("d", 1),
            noted("e", 1),
        ];
        let report = of(jobs, 2);
        assert_eq!((report.tally.passed(), report.tally.failed()), (12, 0));
        let text = std::fs::read_to_string(&log).unwrap();
        let mut now = 0;
        let mut most = 0;
        for mark in text.lines() {
            now += if mark == "+" { 1 } else { -1 };
            most = most.max(now);
        }
        assert_eq!(most, 2);
        let marks: Vec<&str> = text.lines().collect();
        // The first two are over when the heavy one begins, and it is over when the next one does.
        assert_eq!(marks[2..6], ["-", "-", "+", "-"], "{text}");
    }

    #[test]
    fn the_chain_runs_one_after_the_other_beside_the_pool() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made");
        let script = format!("test -f {} && {OK}", file.display());
        let chain = VecDeque::from([
            job(
                "makes",
                &format!("sleep 0.3; touch {}; {OK}", file.display()),
                1,
                LIMIT,
            ),
            job("needs", &script, 1, LIMIT),
        ]);
        let waits = format!(
            "until test -f {}; do sleep 0.05; done; {OK}",
            file.display()
        );
        let mut report = Report::begin();
        let begun = Instant::now();
        run(
            VecDeque::from([job("beside", &waits, 1, LIMIT)]),
            chain,
            1,
            &mut report,
        )
        .unwrap();
        assert_eq!((report.tally.passed(), report.tally.failed()), (6, 0));
        assert!(begun.elapsed() < LIMIT);
    }
}
