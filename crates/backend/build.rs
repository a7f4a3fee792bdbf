//! Builds `fused` as a static program and hands it to the crate, so that one file is all that is deployed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("building fused: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let manifest = PathBuf::from(var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .ancestors()
        .nth(2)
        .ok_or("the crate does not lie in its workspace")?;
    for watched in [
        "crates/guest/src",
        "crates/guest/Cargo.toml",
        "crates/guest-api/src",
        "crates/guest-api/Cargo.toml",
        "Cargo.lock",
        "Cargo.toml",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    println!("cargo:rerun-if-changed=build.rs");

    // <target>/<profile>/build/<package>/out; a folder of its own, or the outer build would wait for its own lock.
    let out = PathBuf::from(var("OUT_DIR")?);
    let target = out
        .ancestors()
        .nth(4)
        .ok_or("OUT_DIR is not inside a target directory")?
        .join("guest");
    let mut command = Command::new(var("CARGO")?);
    for (name, _) in env::vars_os() {
        if name.to_str().is_none_or(leaks) {
            command.env_remove(&name);
        }
    }
    let status = command
        .current_dir(root)
        .args([
            "rustc",
            "--quiet",
            "--locked",
            "-p",
            "fuse-guest",
            "--bin",
            "fused",
            "--release",
            "--target-dir",
        ])
        .arg(&target)
        .args([
            "--",
            "-C",
            "target-feature=+crt-static",
            "-C",
            "strip=symbols",
        ])
        .status()
        .map_err(|e| format!("cargo could not be started: {e}"))?;
    if !status.success() {
        return Err(format!("cargo ended with {status}"));
    }
    let built = target.join("release/fused");
    let bytes = fs::read(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    if !is_static(&bytes) {
        return Err(format!(
            "{} is not a static 64-bit ELF program",
            built.display()
        ));
    }
    let embedded = out.join("fused");
    write_if_new(&embedded, &bytes)?;
    println!("cargo:rustc-env=FUSED_PATH={}", embedded.display());
    Ok(())
}

/// Whether a variable of the outer build would change the inner one.
fn leaks(name: &str) -> bool {
    let keeps = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR"];
    let cargo = name.starts_with("CARGO") && !keeps.iter().any(|k| name.starts_with(k));
    let compiler = name.starts_with("RUSTC") || matches!(name, "RUSTFLAGS" | "RUSTDOCFLAGS");
    let script = [
        "TARGET",
        "HOST",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
        "NUM_JOBS",
        "MAKEFLAGS",
        "MFLAGS",
    ];
    cargo || compiler || script.contains(&name)
}

/// Whether no program header asks for a dynamic loader.
fn is_static(elf: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let word = |at: usize, size: usize| -> Option<usize> {
        let bytes = elf.get(at..at + size)?;
        bytes.iter().rev().try_fold(0_usize, |sum, b| {
            sum.checked_mul(256)?.checked_add(usize::from(*b))
        })
    };
    let headers = || Some((word(32, 8)?, word(54, 2)?, word(56, 2)?));
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let Some((offset, size, count)) = headers() else {
        return false;
    };
    (0..count).all(|n| {
        let kind = offset.checked_add(n * size).and_then(|at| word(at, 4));
        kind.is_some_and(|kind| kind != PT_INTERP as usize)
    })
}

fn write_if_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

fn var(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set"))
}
