//! What lies beside a Fusefile.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fuse_fusefile::{Options, compile, load, parse, task_id_of};
use serde_json::{Value, json};
use tempfile::TempDir;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("project/tool/sub")).unwrap();
    fs::write(at.join("outside"), "secret").unwrap();
    fs::write(at.join("project/agent.sh"), "#!/bin/sh\n").unwrap();
    fs::write(at.join("project/tool/a"), "a").unwrap();
    fs::write(at.join("project/tool/sub/b"), [0, 255]).unwrap();
    folder
}

fn files(folder: &Path, text: &str) -> Result<Value, String> {
    let parsed = parse("Fusefile", &format!("version: 1\n{text}")).unwrap();
    let files = load(&parsed, &folder.join("project")).map_err(|verdicts| verdicts.to_string())?;
    let request = compile(&parsed, &Options::default(), &files).unwrap();
    Ok(serde_json::to_value(request.files).unwrap())
}

// check: FILE-6
#[test]
fn files_and_folders_beside_the_fusefile_are_copied() {
    let folder = folder();
    assert_eq!(
        files(
            folder.path(),
            "files:
  /in: text
  /beside: {from: tool/a}
copy:
  - {from: agent.sh, to: /workspace/}
  - {from: ./agent.sh, to: /bin/agent}
  - {from: tool, to: /opt/tool}
  - {from: tool/sub, to: /srv/}
"
        ),
        Ok(json!({
            "/in": "dGV4dA==",
            "/beside": "YQ==",
            "/workspace/agent.sh": "IyEvYmluL3NoCg==",
            "/bin/agent": "IyEvYmluL3NoCg==",
            "/opt/tool/a": "YQ==",
            "/opt/tool/sub/b": "AP8=",
            "/srv/b": "AP8=",
        }))
    );
}

// check: FILE-6
#[test]
fn nothing_outside_of_the_folder_is_read() {
    let folder = folder();
    let at = folder.path();
    symlink("../outside", at.join("project/leaves")).unwrap();
    symlink("..", at.join("project/up")).unwrap();
    symlink("../../outside", at.join("project/tool/leaves")).unwrap();
    for (from, words) in [
        ("../outside", "without `..`"),
        ("tool/../../outside", "without `..`"),
        ("/etc/passwd", "relative to the Fusefile's folder"),
        ("''", "relative to the Fusefile's folder"),
        ("leaves", "is a link that leaves the Fusefile's folder"),
        ("up/outside", "is a link that leaves the Fusefile's folder"),
        ("up", "is a link that leaves the Fusefile's folder"),
        (
            "tool",
            "\"tool/leaves\" is a link that leaves the Fusefile's folder",
        ),
        ("none", "\"none\" cannot be read"),
    ] {
        let refused = files(at, &format!("copy:\n  - {{from: {from}, to: /x}}\n")).unwrap_err();
        assert!(
            refused.starts_with("Fusefile:3:12: error: copy[0].from: "),
            "{refused}"
        );
        assert!(refused.contains(words), "{from}: {refused}");
    }
    let refused = files(at, "files: {/x: {from: ../outside}}\n").unwrap_err();
    assert!(
        refused.contains("files[\"/x\"].from: must be a path relative"),
        "{refused}"
    );
    assert!(refused.contains("files: {/x: {from: …}}"), "{refused}");
}

#[test]
fn a_link_inside_of_the_folder_is_followed_to_a_file_and_no_further() {
    let folder = folder();
    let at = folder.path();
    symlink("../agent.sh", at.join("project/tool/link")).unwrap();
    let copied = files(at, "copy: [{from: tool, to: /t}]\n").unwrap();
    assert_eq!(copied["/t/link"], "IyEvYmluL3NoCg==");
    symlink(".", at.join("project/tool/round")).unwrap();
    let refused = files(at, "copy: [{from: tool, to: /t}]\n").unwrap_err();
    assert!(
        refused.contains("\"tool/round\" is a link to a folder"),
        "{refused}"
    );
}

#[test]
fn what_is_no_file_is_refused_without_waiting_for_it() {
    let folder = folder();
    let socket = folder.path().join("project/socket");
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    for text in [
        "copy: [{from: socket, to: /t}]\n",
        "copy: [{from: ., to: /t}]\n",
    ] {
        let refused = files(folder.path(), text).unwrap_err();
        assert!(refused.contains("is no regular file"), "{refused}");
    }
}

#[test]
fn two_sources_of_one_path_are_refused() {
    let folder = folder();
    for text in [
        "files: {/x: a}\ncopy: [{from: agent.sh, to: /x}]\n",
        "copy: [{from: tool, to: /t}, {from: agent.sh, to: /t/a}]\n",
    ] {
        let refused = files(folder.path(), text).unwrap_err();
        assert!(
            refused.contains("which another entry writes too"),
            "{refused}"
        );
    }
}

// check: ENV-8
#[test]
fn more_than_half_a_mebibyte_is_refused_where_it_is_read() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("project/big"), vec![b'x'; 512 * 1024]).unwrap();
    assert!(files(at, "copy: [{from: big, to: /x}]\n").is_ok());
    let refused = files(
        at,
        "copy: [{from: big, to: /x}, {from: agent.sh, to: /y}]\n",
    )
    .unwrap_err();
    assert!(
        refused.contains("copy[1].from: with \"agent.sh\" the files are more than 512 KiB in all"),
        "{refused}"
    );
}

#[test]
fn a_file_without_a_name_takes_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    for (name, id) in [
        ("my-agent", "my-agent"),
        ("My Agent_2", "my-agent-2"),
        ("--x--", "x"),
        ("\u{e4}\u{f6}", "agent"),
    ] {
        let at = folder.path().join(name);
        fs::create_dir(&at).unwrap();
        assert_eq!(task_id_of(&at), id);
        assert_eq!(task_id_of(&at.join("../").join(name)), id);
    }
    assert_eq!(task_id_of(Path::new("/")), "agent");
}
