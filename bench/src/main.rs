//! Benchmarks: figures of one run, as ratios wherever there is something to compare with.
//!
//! `cargo xtask bench [MEASURE]…`; see `bench/README.md`.

mod command;
mod create;
mod exec;
mod expiry;
mod http;
mod lifecycles;
mod machine;
mod make;
mod parked;
mod postgres;
mod process;
mod report;
mod server;
mod stats;
mod stores;
mod turn;
mod verdict;
mod wake;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use report::Report;
use stores::Bed;

const USAGE: &str = "\
usage: cargo xtask bench [MEASURE]... [--fuse PATH]

  lifecycles   raise, approve, waiter woken: per second, on both databases, beside pgbench
  wake         from an approval to its waiter beside 10,000 parked long polls, and the memory of each
  verdict      what a policy of 50 gates says about a command
  exec         a command's round trip, beside bwrap
  create       an environment without build steps
  expiry       100,000 interventions with one deadline
  command      a command that Fisk runs, beside a bare spawn; memory while it floods
  turn         a turn of Fisk's loop, beside the provider's call in it

Without a name all of them run. --fuse names the binary that serves; it lies beside this one by default.
";

/// The measures, in the order in which they run, each with the longest time it may take.
const MEASURES: [(&str, Duration); 8] = [
    ("lifecycles", Duration::from_secs(170)),
    ("wake", Duration::from_secs(100)),
    ("verdict", Duration::from_secs(20)),
    ("exec", Duration::from_secs(40)),
    ("create", Duration::from_secs(40)),
    ("expiry", Duration::from_secs(110)),
    ("command", Duration::from_secs(60)),
    ("turn", Duration::from_secs(90)),
];

fn main() -> ExitCode {
    // The sandbox starts this program again for each environment.
    fuse_backend::maybe_run_stage();
    // Fails where it is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wanted = match Wanted::read(std::env::args().skip(1)) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprint!("error: {error:#}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Wanted {
    measures: Vec<&'static str>,
    fuse: Option<PathBuf>,
}

impl Wanted {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut wanted = Self {
            measures: Vec::new(),
            fuse: None,
        };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "-h" | "--help" | "help" => return Ok(None),
                "--fuse" => wanted.fuse = Some(args.next().context("--fuse needs a path")?.into()),
                name => match MEASURES.iter().find(|(known, _)| *known == name) {
                    Some((known, _)) => wanted.measures.push(known),
                    None => bail!("no such measure: {name}"),
                },
            }
        }
        if wanted.measures.is_empty() {
            wanted.measures = MEASURES.map(|(name, _)| name).to_vec();
        }
        Ok(Some(wanted))
    }

    fn binary(&self) -> Result<PathBuf> {
        let path = match &self.fuse {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("this program has no path")?
                .with_file_name("fuse"),
        };
        if !path.is_file() {
            bail!(
                "{} is not there; `cargo xtask bench` builds it",
                path.display()
            );
        }
        Ok(path)
    }
}

/// Runs what is wanted. False where a measure failed.
fn run(wanted: &Wanted) -> Result<bool> {
    if cfg!(debug_assertions) {
        eprintln!("a debug build: the figures say nothing");
    }
    http::raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let bed = Bed::new(wanted.binary()?)?;
    let mut report = Report::default();
    let load = machine::load();
    let ran = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            well = measure_all(wanted, &bed, &mut report) => Ok(well),
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("interrupted"),
        }
    });
    // Environments outlive the server that made them.
    runtime.block_on(bed.clear());
    runtime.shutdown_timeout(Duration::from_secs(2));
    let well = ran?;
    let machine = machine::describe(&bed, load);
    print!("{}", report.table(&machine));
    let path = report.write(&machine)?;
    println!("written to {}", path.display());
    Ok(well)
}

async fn measure_all(wanted: &Wanted, bed: &Bed, report: &mut Report) -> bool {
    let mut well = true;
    for (name, limit) in MEASURES {
        if !wanted.measures.contains(&name) {
            continue;
        }
        eprintln!("{name} …");
        let begun = Instant::now();
        let measured = async {
            match name {
                "lifecycles" => lifecycles::measure(bed, report).await,
                "wake" => wake::measure(bed, report).await,
                "verdict" => verdict::measure(report),
                "exec" => exec::measure(bed, report).await,
                "create" => create::measure(bed, report).await,
                "expiry" => expiry::measure(bed, report).await,
                "command" => command::measure(report).await,
                "turn" => turn::measure(report).await,
                other => bail!("{other} has no code"),
            }
        };
        let outcome = match tokio::time::timeout(limit, measured).await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("not done within {} s", limit.as_secs())),
        };
        if let Err(error) = outcome {
            eprintln!("{name} failed: {error:#}");
            report.note(format!("{name} failed: {error:#}"));
            well = false;
        }
        eprintln!("{name} took {:.1} s", begun.elapsed().as_secs_f64());
    }
    well
}
