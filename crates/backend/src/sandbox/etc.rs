//! `/etc` of an environment: made anew, with the few public files of the machine that programs look for.

use super::{
    config::StageConfig,
    remount::bind_read_only,
    step::{Step, need, problem},
};
use std::{fs, path::Path};

/// Public files that are copied for the image `host`.
const COPIED: [&str; 8] = [
    "ld.so.cache",
    "ld.so.conf",
    "services",
    "protocols",
    "mime.types",
    "localtime",
    "debian_version",
    "ssl/openssl.cnf",
];
/// Public directories that are shown read-only for the image `host`.
const SHOWN: [&str; 5] = [
    "ssl/certs",
    "pki/tls/certs",
    "ca-certificates",
    "alternatives",
    "ld.so.conf.d",
];
/// Largest file that is copied.
const MAX_COPY: u64 = 4 << 20;

/// Fills `/etc` under `root`. A named image brings its own; only what depends on the environment is set there.
pub fn fill(root: &Path, config: &StageConfig) -> Step<()> {
    let etc = root.join("etc");
    if etc.is_symlink() {
        return Err(problem(
            "the image",
            "its /etc is a symbolic link".to_owned(),
        ));
    }
    let host = config.image.is_none();
    let name = &config.hostname;
    put(&etc, "hostname", &format!("{name}\n"))?;
    put(
        &etc,
        "hosts",
        &format!("127.0.0.1\tlocalhost {name}\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
    )?;
    if config.host_network {
        // Often a link into /run, which is not there inside: its content is what counts.
        if let Ok(text) = fs::read_to_string("/etc/resolv.conf") {
            put(&etc, "resolv.conf", &text)?;
        }
    }
    if !host {
        return Ok(());
    }
    put(
        &etc,
        "passwd",
        "root:x:0:0:root:/root:/bin/sh\n\
         daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    )?;
    put(
        &etc,
        "group",
        "root:x:0:\ndaemon:x:1:\ntty:x:5:\nusers:x:100:\nnogroup:x:65534:\n",
    )?;
    put(
        &etc,
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    )?;
    put(&etc, "shells", "/bin/sh\n/bin/bash\n/bin/dash\n")?;
    for file in COPIED {
        let source = Path::new("/etc").join(file);
        let fits = fs::metadata(&source).is_ok_and(|m| m.is_file() && m.len() <= MAX_COPY);
        if fits && let Ok(content) = fs::read(&source) {
            if let Some(parent) = etc.join(file).parent() {
                need("/etc", fs::create_dir_all(parent))?;
            }
            need("/etc", fs::write(etc.join(file), content))?;
        }
    }
    for directory in SHOWN {
        let source = Path::new("/etc").join(directory);
        if source.is_dir() {
            let target = etc.join(directory);
            need("/etc", fs::create_dir_all(&target))?;
            bind_read_only(&source, &target)?;
        }
    }
    Ok(())
}

/// Replaces a file, never following a link that an image left in its place.
fn put(etc: &Path, name: &str, text: &str) -> Step<()> {
    let path = etc.join(name);
    if path.is_symlink() {
        need("/etc", fs::remove_file(&path))?;
    }
    // An image's own file may belong to nobody inside and cannot be written; replacing it can.
    if fs::write(&path, text).is_err() {
        need("/etc", fs::remove_file(&path))?;
        need("/etc", fs::write(&path, text))?;
    }
    Ok(())
}
