//! What the program says about itself: completions, manual pages, schemas.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Done, Failure};
use crate::output;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Folder for the pages of every command; without it the page of `fuse` is printed.
    dir: Option<PathBuf>,
}

/// The completions of `program` for a shell.
pub fn completions(args: &CompletionsArgs, mut program: Command) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program, "fuse", &mut text);
    output::data(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// The manual pages of `program`.
pub fn man(args: &ManArgs, program: Command) -> Done {
    if let Some(dir) = &args.dir {
        let failed = |error: std::io::Error| Failure::said(format!("{}: {error}", dir.display()));
        std::fs::create_dir_all(dir).map_err(failed)?;
        clap_mangen::generate_to(program, dir).map_err(failed)?;
        return Ok(0);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(program).render(&mut text)?;
    output::data(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

pub fn openapi() -> Done {
    let text = fuse_orchestrator::http::openapi();
    output::data(&format!("{}\n", text.trim_end()))?;
    Ok(0)
}

pub fn schema() -> Done {
    output::json(fuse_fusefile::json_schema())?;
    Ok(0)
}
