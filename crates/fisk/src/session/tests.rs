use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use fisk_domain::{
    budget::Tokens,
    session::{FORMAT, Fingerprint, Finish, Next, Record, Stop},
};
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn first(name: &str) -> Record {
    let fingerprint: Fingerprint = serde_json::from_value(json!({
        "provider": "p", "model": "m", "base_url": null, "system_prompt": "", "application": "/a", "version": "1", "global_flags": [],
        "include": [], "exclude": [], "confirm_tags": [], "human_in_the_loop": false, "sandbox": false, "tools": {},
    }))
    .unwrap();
    Record::Started {
        format: FORMAT,
        session: name.to_owned(),
        fingerprint: Box::new(fingerprint),
        prompt: "go".into(),
    }
}

fn reply(stop: Stop) -> Record {
    Record::Reply {
        content: vec![json!({"type": "text", "text": "done"})],
        stop,
        tokens: Tokens::default(),
    }
}

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::locate(Some(&dir.path().join("a/sessions"))).unwrap();
    (dir, store)
}

fn file(dir: &TempDir, name: &str) -> std::path::PathBuf {
    dir.path().join(format!("a/sessions/{name}.jsonl"))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// check: FISK-23
#[test]
fn a_session_is_a_private_file_in_a_private_folder() {
    let (dir, store) = store();
    store.create(Some("one"), first).unwrap();
    assert_eq!(mode(&file(&dir, "one")), 0o600);
    assert_eq!(mode(&dir.path().join("a/sessions")), 0o700);
    let folder = dir.path().join("a/sessions");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    store.create(Some("two"), first).unwrap();
    assert_eq!(mode(&folder), 0o700);
}

#[test]
fn a_name_that_is_taken_or_no_name_is_refused() {
    let (_dir, store) = store();
    store.create(Some("one"), first).unwrap();
    let told = store.create(Some("one"), first).unwrap_err();
    assert!(told.starts_with("the session \"one\" exists"), "{told}");
    for name in ["../one", "One", "", "-x"] {
        assert!(store.create(Some(name), first).is_err());
        assert!(store.resume(name).is_err() && store.remove(name).is_err());
    }
}

// check: FISK-23
#[test]
fn one_run_at_a_time_holds_a_session() {
    let (_dir, store) = store();
    let held = store.create(Some("one"), first).unwrap();
    let told = store.resume("one").unwrap_err();
    assert!(told.contains("is in use"), "{told}");
    assert!(store.remove("one").is_err());
    assert_eq!(store.read("one").unwrap().1, State::Running);
    drop(held);
    assert_eq!(store.read("one").unwrap().1, State::Interrupted);
    store.resume("one").unwrap();
    store.remove("one").unwrap();
    assert_eq!(
        store.resume("one").unwrap_err(),
        "there is no session \"one\""
    );
}

// check: FISK-23
#[test]
fn a_torn_last_record_is_dropped_and_what_follows_on_it_is_whole() {
    for torn in ["{\"at\":1,\"rec", "\0\0\0\0", "{\"at\":1,\"rec\n", "\0\0\n"] {
        let (dir, store) = store();
        drop(store.create(Some("one"), first).unwrap());
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(file(&dir, "one"))
            .unwrap();
        file.write_all(torn.as_bytes()).unwrap();
        let (mut journal, recorded) = store.resume("one").unwrap();
        assert!(recorded.warning.is_some(), "{torn:?}");
        assert_eq!(recorded.replay.next(), Next::Model);
        journal.append(&reply(Stop::Pause)).unwrap();
        drop(journal);
        let (recorded, _) = store.read("one").unwrap();
        assert_eq!((recorded.entries.len(), recorded.warning), (2, None));
    }
}

// check: FISK-23
#[test]
fn a_broken_record_elsewhere_refuses_the_session() {
    let (dir, store) = store();
    let (mut journal, _) = store.create(Some("one"), first).unwrap();
    journal.append(&reply(Stop::Pause)).unwrap();
    drop(journal);
    let path = file(&dir, "one");
    let text = fs::read_to_string(&path).unwrap();
    let (head, tail) = text.split_once('\n').unwrap();
    for (broken, record) in [
        (format!("{}\n{tail}", &head[..head.len() - 3]), 1),
        (format!("{head}\nnonsense\n{tail}"), 2),
        (format!("{head}\n{head}\n"), 2),
        (
            format!(
                "{head}\n{}\n",
                tail.trim().replace("\"reply\"", "\"unheard\"")
            ),
            2,
        ),
    ] {
        fs::write(&path, &broken).unwrap();
        let told = store.resume("one").unwrap_err();
        assert!(
            told.starts_with(&format!("the session \"one\" record {record} is broken")),
            "{told}\n{broken}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }
    assert_eq!(store.list().unwrap()[0].state, State::Broken);
    store.remove("one").unwrap();
}

#[test]
fn a_completed_session_is_not_resumed() {
    let (_dir, store) = store();
    let (mut journal, _) = store.create(Some("one"), first).unwrap();
    journal.append(&reply(Stop::EndTurn)).unwrap();
    let finish = Finish::Answered("done".into());
    journal.append(&Record::Ended { finish }).unwrap();
    drop(journal);
    let told = store.resume("one").unwrap_err();
    assert!(told.contains("is completed"), "{told}");
    let listed = store.list().unwrap();
    assert_eq!((listed[0].state, listed[0].turns), (State::Completed, 1));
}

#[test]
fn a_link_in_the_folder_is_no_session() {
    let (dir, store) = store();
    drop(store.create(Some("one"), first).unwrap());
    symlink(file(&dir, "one"), file(&dir, "two")).unwrap();
    assert!(store.resume("two").is_err() && store.read("two").is_err());
}

#[test]
fn names_that_are_made_up_are_names() {
    let (_dir, store) = store();
    let (journal, _) = store.create(None, first).unwrap();
    assert!(fisk_domain::session::is_session_name(journal.name()));
}

// check: FISK-23
#[test]
fn what_others_may_have_put_into_the_folder_is_no_session() {
    let (dir, store) = store();
    store.create(Some("open"), first).unwrap();
    let open = file(&dir, "open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o620)).unwrap();
    nix::unistd::mkfifo(&file(&dir, "pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut expected = vec![
        ("open", "may be written by others"),
        ("pipe", "is no regular file"),
    ];
    if nix::unistd::geteuid().is_root() {
        store.create(Some("theirs"), first).unwrap();
        std::os::unix::fs::chown(file(&dir, "theirs"), Some(54_322), None).unwrap();
        expected.push(("theirs", "belongs to another user"));
    }
    for (name, why) in &expected {
        for told in [
            store.resume(name).map(drop).unwrap_err(),
            store.read(name).map(drop).unwrap_err(),
            store.remove(name).unwrap_err(),
        ] {
            assert!(told.contains(why), "{told}");
        }
    }
    // None of them keeps the others from being listed.
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), expected.len());
    assert!(listed.iter().all(|one| one.state == State::Broken));
}

// check: FISK-72
#[test]
fn nothing_is_written_behind_a_record_that_failed() {
    use std::io::{PipeReader, PipeWriter, Read as _, pipe};
    // It takes bytes and cannot bring them to a disk.
    let (mut reader, writer): (PipeReader, PipeWriter) = pipe().unwrap();
    let file = fs::File::from(std::os::fd::OwnedFd::from(writer));
    let mut journal = Journal::on("one", file);
    journal.append(&first("one")).unwrap_err();
    let suspended = Record::Suspended { why: "x".into() };
    let told = journal.append(&suspended).unwrap_err().to_string();
    assert_eq!(told, "an earlier record could not be written");
    drop(journal);
    let mut written = String::new();
    reader.read_to_string(&mut written).unwrap();
    assert_eq!(written.lines().count(), 1, "{written}");
}
