//! The test programs of the workspace: built once by cargo, told by it, and run the way it runs them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::proc;
use crate::workspace::{cargo_command, without_own_package};

/// What builds every library, program, example and test of the workspace, once, and tells what came out.
const BUILD: [&str; 6] = [
    "test",
    "--workspace",
    "--locked",
    "--quiet",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    /// Its package and target, `fuse-store store`; a program's and a library's unit tests say so.
    pub name: String,
    program: PathBuf,
    manifest: PathBuf,
    package: String,
}

/// Builds them all; none where the build failed, which has said why.
pub fn build(limit: Duration) -> Result<Option<Vec<Binary>>> {
    let mut build = cargo_command(&BUILD);
    let mut binaries = Vec::new();
    let status = proc::run_lines(&mut build, limit, |line| {
        binaries.extend(binary(line));
    })?;
    binaries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(status.success().then_some(binaries))
}

/// The test program that a line of cargo's messages tells of, if it tells of one.
fn binary(line: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let package = package(message["package_id"].as_str()?);
    let target = text(&message["target"]["name"])?;
    let kind = message["target"]["kind"][0].as_str()?;
    let name = match kind {
        "test" => format!("{package} {target}"),
        "bin" => format!("{package} {target} (program)"),
        _ => format!("{package} ({kind})"),
    };
    Some(Binary {
        name,
        program: text(&message["executable"])?.into(),
        manifest: text(&message["manifest_path"])?.into(),
        package,
    })
}

/// The package's name from its id: `path+file:///a/crates/store#fuse-store@0.1.0`, or `…/crates/fisk#0.1.0` where the
/// folder has the same name.
fn package(id: &str) -> String {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next().unwrap_or(place).to_owned(),
    }
}

impl Binary {
    /// The command that runs it in the folder and with the variables that `cargo test` gives it.
    pub fn command(&self) -> Result<Command> {
        let folder = self.manifest.parent().context("a manifest in a folder")?;
        let mut command = Command::new(&self.program);
        command.current_dir(folder);
        without_own_package(&mut command);
        command
            .env("CARGO_MANIFEST_DIR", folder)
            .env("CARGO_MANIFEST_PATH", &self.manifest)
            .env("CARGO_PKG_NAME", &self.package);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn message(id: &str, kind: &str, target: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/a/crates/store/Cargo.toml",
            "target": {"kind": [kind], "name": target},
            "profile": {"test": test},
            "executable": "/a/target/debug/deps/store-1",
        })
        .to_string()
    }

    #[test]
    fn a_test_program_is_named_by_its_package_and_target() {
        let named = |id, kind, target| binary(&message(id, kind, target, true)).unwrap().name;
        let store = "path+file:///a/crates/store#fuse-store@0.1.0";
        assert_eq!(named(store, "test", "store"), "fuse-store store");
        assert_eq!(named(store, "lib", "fuse_store"), "fuse-store (lib)");
        let fisk = "path+file:///a/crates/fisk#0.1.0";
        assert_eq!(named(fisk, "bin", "fisk"), "fisk fisk (program)");
    }

    #[test]
    fn programs_that_are_no_tests_and_other_messages_are_passed_over() {
        let id = "path+file:///a/crates/store#fuse-store@0.1.0";
        assert_eq!(binary(&message(id, "bin", "fuse", false)), None);
        assert_eq!(
            binary(r#"{"reason": "build-finished", "success": true}"#),
            None
        );
        assert_eq!(binary("warning: unused"), None);
    }

    #[test]
    fn a_test_program_runs_in_its_package() {
        let id = "path+file:///a/crates/store#fuse-store@0.1.0";
        let command = binary(&message(id, "test", "store", true))
            .unwrap()
            .command()
            .unwrap();
        assert_eq!(
            command.get_current_dir(),
            Some(Path::new("/a/crates/store"))
        );
        let given: Vec<_> = command
            .get_envs()
            .filter(|(_, value)| value.is_some())
            .collect();
        assert!(given.contains(&(
            "CARGO_MANIFEST_DIR".as_ref(),
            Some("/a/crates/store".as_ref())
        )));
    }
}
