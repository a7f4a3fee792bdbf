//! Named images.

use super::{id, sandbox, shell};
use fuse_backend::{Backend, EnvSpec, ExecSpec};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// An image of a shell, a few tools and their libraries.
fn build(root: &Path) {
    for directory in ["bin", "etc", "lib", "usr/bin", "data"] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    for program in ["/bin/sh", "/bin/cat", "/bin/ls", "/usr/bin/id"] {
        let real = fs::canonicalize(program).expect("a program");
        let name = Path::new(program).file_name().expect("a name");
        fs::copy(&real, root.join("bin").join(name)).expect("a copy");
        let listed = Command::new("ldd").arg(&real).output().expect("ldd");
        for word in String::from_utf8_lossy(&listed.stdout)
            .split_whitespace()
            .filter(|w| w.starts_with('/'))
        {
            let target = root.join(word.trim_start_matches('/'));
            fs::create_dir_all(target.parent().expect("a parent")).expect("a directory");
            fs::copy(word, target).expect("a copy");
        }
    }
    fs::write(root.join("data/f"), "from the image\n").expect("a file");
    symlink("/data/f", root.join("link")).expect("a link");
    if nix::unistd::geteuid().is_root() {
        // As the documentation asks: an image's files belong to the first id of the environments.
        own(root);
    }
}

fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(100_000), Some(100_000)).expect("chown");
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).expect("a directory") {
            own(&entry.expect("an entry").path());
        }
    }
}

// check: BOX-5
pub async fn named(data: PathBuf) {
    let image = data.join("images/tiny");
    build(&image);
    let backend = sandbox(&data);
    let mut spec = EnvSpec::new(id("imaged"));
    spec.image = "tiny".to_owned();
    let guest = backend.create(spec).await.expect("create");
    let run = |text: &str| {
        let spec = ExecSpec::new(text.to_owned(), shell(text));
        async { guest.exec(spec).await.expect("exec") }
    };
    let seen =
        run("cat /link; echo changed > /data/f; cat /data/f; cat /etc/hostname; ls /usr/bin").await;
    assert_eq!(
        String::from_utf8_lossy(&seen.stdout),
        "from the image\nchanged\nimaged\n",
        "{seen:?}"
    );
    assert_eq!(
        fs::read_to_string(image.join("data/f")).expect("the image's file"),
        "from the image\n"
    );
    let whole = guest.read_file("/link", 100).await.expect("read");
    assert_eq!(
        (whole.resolved.as_str(), whole.bytes.as_slice()),
        ("/data/f", b"changed\n".as_slice())
    );
    backend.destroy(&id("imaged")).await.expect("destroy");
    fs::remove_dir_all(image).expect("removing the image");
}
