//! What of the machine shows inside, and output that is taken as one.

use super::{Bench, must, sh, shell, suite};
use crate::{BackendError, Bind, EnvSpec, ExecOutcome, ExecSpec, Ids, MergeOutput};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

suite![
    a_bound_folder_is_the_machines_own_and_its_files_keep_their_owner,
    a_read_only_bind_cannot_be_written_and_a_file_can_be_bound,
    a_bind_that_leads_elsewhere_is_refused,
    merged_output_comes_in_order_and_keeps_both_ends,
    merged_output_waits_for_those_left_behind_and_ends_them,
];

/// A folder of the machine that goes at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fuse-bind-{}-{name}", std::process::id()));
        must(fs::create_dir_all(&path), "a folder");
        must(fs::write(path.join("in"), "from outside\n"), "a file");
        Self(must(fs::canonicalize(&path), "a folder"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bind(host: &Path, inside: &str, read_only: bool) -> Bind {
    Bind {
        host: host.to_owned(),
        inside: inside.to_owned(),
        read_only,
    }
}

async fn a_bound_folder_is_the_machines_own_and_its_files_keep_their_owner(bench: Arc<Bench>) {
    let folder = Folder::new("own");
    let owner = must(fs::metadata(&folder.0), "the folder").uid();
    let place = folder.0.display().to_string();
    let spec = EnvSpec {
        ids: Ids::Own,
        workspace: place.clone(),
        binds: vec![bind(&folder.0, &place, false)],
        ..bench.spec()
    };
    bench
        .with_spec(spec, |guest| async move {
            assert_eq!(sh(&guest, "pwd").await.ok(), place);
            assert_eq!(
                sh(
                    &guest,
                    "cat in; echo more >>in; mkdir d; echo x >d/out; stat -c %u in"
                )
                .await
                .ok(),
                "from outside\n0"
            );
            // Neither device files nor, by them, the machine's devices.
            sh(&guest, "mknod null c 1 3").await.fails();
            let options = sh(&guest, "grep \" $(pwd) \" /proc/self/mounts").await;
            assert!(options.ok().contains("nosuid") && options.ok().contains("nodev"));
            // Up there is the environment, not the machine.
            assert_eq!(sh(&guest, "ls -A /home").await.ok(), "");
        })
        .await;
    assert_eq!(
        must(fs::read_to_string(folder.0.join("in")), "in"),
        "from outside\nmore\n"
    );
    for made in ["in", "d", "d/out"] {
        assert_eq!(
            must(fs::metadata(folder.0.join(made)), made).uid(),
            owner,
            "{made}"
        );
    }
}

async fn a_read_only_bind_cannot_be_written_and_a_file_can_be_bound(bench: Arc<Bench>) {
    let folder = Folder::new("read");
    let spec = EnvSpec {
        binds: vec![
            bind(&folder.0, "/opt/made/for/it", true),
            bind(&folder.0.join("in"), "/usr/local/bin/in", true),
        ],
        ids: Ids::Own,
        ..bench.spec()
    };
    bench
        .with_spec(spec, |guest| async move {
            assert_eq!(
                sh(&guest, "cat /opt/made/for/it/in /usr/local/bin/in")
                    .await
                    .ok(),
                "from outside\nfrom outside"
            );
            sh(&guest, "echo x >/opt/made/for/it/in").await.fails();
            sh(&guest, "echo x >/opt/made/for/it/new").await.fails();
            sh(&guest, "echo x >>/usr/local/bin/in").await.fails();
            sh(&guest, "mount -o remount,rw,bind /opt/made/for/it")
                .await
                .fails();
        })
        .await;
    assert_eq!(
        must(fs::read_to_string(folder.0.join("in")), "in"),
        "from outside\n"
    );
}

async fn a_bind_that_leads_elsewhere_is_refused(bench: Arc<Bench>) {
    let folder = Folder::new("bad");
    let here = folder.0.as_path();
    let gone = here.join("gone");
    for (host, inside) in [
        (here, "relative"),
        (here, "/"),
        (here, "/a/../b"),
        (here, "/a//b"),
        (here, "/proc/x"),
        (here, "/sys"),
        (here, "/dev/shm"),
        (here, "/fuse/x"),
        (Path::new("in"), "/a"),
        (Path::new("/"), "/a"),
        (Path::new("/dev/null"), "/a"),
        (gone.as_path(), "/a"),
    ] {
        let spec = EnvSpec {
            binds: vec![bind(host, inside, false)],
            ..bench.spec()
        };
        match bench.backend().create(spec).await {
            Err(BackendError::Invalid { field, .. }) => assert!(field.starts_with("binds[0].")),
            Err(other) => panic!("{} at {inside}: {other}", host.display()),
            Ok(_) => panic!("{} at {inside} was taken", host.display()),
        }
    }
    // A link of the image's does not lead a bind out of the environment.
    let spec = EnvSpec {
        binds: vec![bind(here, "/var/run/x", false)],
        ..bench.spec()
    };
    assert!(bench.backend().create(spec).await.is_err());
}

fn merged(text: &str, half: usize, linger: Duration) -> ExecSpec {
    ExecSpec {
        merge_output: Some(MergeOutput { half, linger }),
        ..shell(text)
    }
}

fn text(outcome: &ExecOutcome) -> String {
    must(String::from_utf8(outcome.stdout.clone()), "valid UTF-8")
}

const LONG: Duration = Duration::from_secs(10);

async fn merged_output_comes_in_order_and_keeps_both_ends(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let script =
                "for n in 1 2 3; do echo out$n; echo err$n >&2; done; printf '\\377'; exit 3";
            let outcome = must(guest.exec(merged(script, 1024, LONG)).await, "exec");
            assert_eq!(
                text(&outcome),
                "out1\nerr1\nout2\nerr2\nout3\nerr3\n\u{fffd}"
            );
            assert_eq!((outcome.exit_code, outcome.truncated), (3, false));
            assert!(outcome.stderr.is_empty());

            let script = "echo first; yes é | head -c 3000000; echo last >&2";
            let outcome = must(guest.exec(merged(script, 1000, LONG)).await, "exec");
            let text = text(&outcome);
            assert!(
                outcome.truncated && text.len() <= 2000 + 80,
                "{}",
                text.len()
            );
            assert!(text.starts_with("first\né\n") && text.ends_with("é\nlast\n"));
            assert!(text.contains(" bytes left out ...]"));

            let huge = guest.exec(merged("true", usize::MAX, LONG)).await;
            assert!(huge.is_err(), "{huge:?}");
        })
        .await;
}

async fn merged_output_waits_for_those_left_behind_and_ends_them(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let linger = Duration::from_secs(1);
            let began = Instant::now();
            let outcome = must(
                guest
                    .exec(merged("sleep 300 & echo $!", 1024, linger))
                    .await,
                "exec",
            );
            assert!(began.elapsed() >= linger && began.elapsed() < LONG);
            sh(
                &guest,
                &format!("sleep 0.2; kill -0 {}", text(&outcome).trim()),
            )
            .await
            .fails();
        })
        .await;
}
