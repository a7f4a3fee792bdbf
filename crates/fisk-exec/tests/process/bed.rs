//! The application under test: a shell script whose one command runs a script.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use fisk_domain::{Call, Selection, Toolset};
use fisk_exec::{ExecConfig, ExecError, Executor};

/// The secret that no child may see.
pub const KEY: &str = "hunter2-is-the-key";

const APPLICATION: &str = r#"#!/bin/sh
if [ "$1" = --fisk-introspect ]; then
  echo '{"name":"app","help":"Runs scripts","commands":[{"name":"sh","help":"Runs a script",
    "args":[{"name":"script","help":"The script","required":true,"cumulative":false}]}]}'
  exit 0
fi
eval "$3"
"#;

/// Writes it before there are threads, which could hold it open for writing while it is started.
pub fn write_application(folder: &Path) -> io::Result<()> {
    let path = folder.join("app");
    fs::write(&path, APPLICATION)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// A runtime, as the harness has one.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}

/// The harness, and how it makes calls.
pub struct Bed {
    pub executor: Executor,
    tools: Toolset,
}

impl Bed {
    pub async fn new(folder: &Path, sandbox: bool) -> Result<Self, ExecError> {
        let executor = Executor::new(ExecConfig {
            application: folder.join("app"),
            strip_env: vec!["my_*".to_owned()],
            sandbox,
        })
        .await?;
        let model = executor.introspect().await?;
        let (tools, _) =
            Toolset::from_introspection(&model, &Selection::default()).expect("a model");
        Ok(Self { executor, tools })
    }

    pub fn call(&self, script: &str) -> Call {
        let tool = self.tools.get("sh").expect("the command");
        let input = [("script".to_owned(), script.into())].into_iter().collect();
        tool.args_from_json(&input).expect("a call")
    }

    pub async fn sh(&self, script: &str) -> fisk_domain::Outcome {
        let cancel = tokio_util::sync::CancellationToken::new();
        let call = self.call(script);
        self.executor
            .run(&call, None, &cancel)
            .await
            .expect("an outcome")
    }
}
