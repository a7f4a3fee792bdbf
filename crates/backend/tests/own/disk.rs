//! The disk of an environment, where the machine lets it be an image.

use super::{id, sandbox, shell};
use fuse_backend::{Backend, EnvId, EnvSpec, ExecSpec, Guest};
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Whether this user of this machine gets images.
pub fn offered() -> bool {
    nix::unistd::geteuid().is_root()
        && OpenOptions::new()
            .write(true)
            .open("/dev/loop-control")
            .is_ok()
}

async fn run(guest: &Arc<dyn Guest>, name: &str, text: &str) -> String {
    let mut spec = ExecSpec::new(name, shell(text));
    spec.timeout = Duration::from_secs(100);
    let done = guest.exec(spec).await.expect("an outcome");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Loop devices whose file lies below a directory.
fn devices(data: &Path) -> usize {
    fs::read_dir("/sys/block")
        .expect("block devices")
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok())
        .filter(|file| Path::new(file.trim()).starts_with(data))
        .count()
}

/// The kernel frees the device a moment after the last process.
async fn no_device_left(data: &Path) {
    for _ in 0..300 {
        if devices(data) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} loop devices are left", devices(data));
}

async fn small(data: &Path, name: EnvId) -> Arc<dyn Guest> {
    let mut spec = EnvSpec::new(name);
    spec.limits.storage_gb = 1;
    sandbox(data).create(spec).await.expect("create")
}

// check: BOX-10 BOX-15
pub async fn bounded(data: PathBuf) {
    let name = id("bounded");
    let guest = small(&data, name.clone()).await;
    let size = run(&guest, "size", "df -k --output=size /workspace | tail -1").await;
    let kib: u64 = size.parse().expect("a number");
    assert!((900 << 10..=1 << 20).contains(&kib), "{kib} KiB");
    // Whoever asks in whichever part of the root: it is one disk.
    assert_eq!(
        run(&guest, "usr", "df -k --output=size /usr | tail -1").await,
        size
    );
    let fill = "fallocate -l 800M big; i=0; while [ $i -lt 400 ]; do \
                head -c 1048576 /dev/zero > f$i || break; i=$((i+1)); done";
    let told = run(
        &guest,
        "fill",
        &format!("cd /workspace; {{ {fill}; }} 2>&1"),
    )
    .await;
    assert!(told.contains("No space left"), "{told}");
    let image = data.join("environments/bounded/disk.img");
    let used = fs::metadata(&image).expect("the image").blocks() * 512;
    assert!(used <= 1 << 30, "{used} bytes");
    let many = "my $i = 0; $i++ while $i < 200000 && open(my $f, q(>), \"n$i\"); print \"$i $!\"";
    let told = run(
        &guest,
        "many",
        &format!("cd /workspace; rm -f big f*; perl -e '{many}'"),
    )
    .await;
    assert!(told.contains("No space left"), "{told}");
    // Room that is made can be used again, and a killed guest keeps no device.
    assert_eq!(
        run(
            &guest,
            "again",
            "cd /workspace; rm -f n1*; echo x > y; cat y"
        )
        .await,
        "x"
    );
    sandbox(&data).destroy(&name).await.expect("destroy");
    assert!(!image.exists());
    no_device_left(&data).await;
}

// check: BOX-6 BOX-15
pub async fn at_once(data: PathBuf) {
    let makers: Vec<_> = (0..20)
        .map(|number| {
            let data = data.clone();
            tokio::spawn(async move {
                let name = id(&format!("at-once-{number}"));
                let guest = small(&data, name.clone()).await;
                run(&guest, "write", &format!("echo {number} > /workspace/mine")).await;
                (name, guest, number)
            })
        })
        .collect();
    let mut made = Vec::new();
    for maker in makers {
        made.push(maker.await.expect("an environment"));
    }
    assert_eq!(devices(&data), 20);
    for (name, guest, number) in made {
        assert_eq!(
            run(&guest, "read", "cat /workspace/mine").await,
            number.to_string()
        );
        sandbox(&data).destroy(&name).await.expect("destroy");
    }
    no_device_left(&data).await;
}
