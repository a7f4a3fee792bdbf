//! Attempts to get out, or to look out.

use super::{Bench, Ran, argv, must, sh, suite};
use crate::{Guest, Network};
use std::{net::TcpListener, os::unix::net::UnixListener, sync::Arc};

suite![
    the_machines_files_are_out_of_reach,
    the_machines_processes_are_out_of_sight,
    the_first_process_cannot_be_touched,
    namespaces_and_mounts_cannot_be_made,
    dangerous_system_calls_are_refused,
    privileges_are_gone,
    the_kernels_settings_cannot_be_written,
    there_is_no_network_but_loopback,
    the_machines_network_is_there_when_asked_for,
    two_environments_do_not_see_each_other,
    its_own_world_is_usable,
];

async fn perl(guest: &Arc<dyn Guest>, code: &str) -> Ran {
    Ran::new(must(guest.exec(argv(&["perl", "-e", code])).await, code))
}

// check: BOX-4
async fn the_machines_files_are_out_of_reach(bench: Arc<Bench>) {
    let marker = must(tempfile_in_home(), "a file of this user's");
    let path = marker.display().to_string();
    bench
        .with(|guest| async move {
            for gone in [
                "/etc/shadow",
                "/etc/gshadow",
                "/etc/ssh",
                "/etc/sudoers",
                "/boot",
                "/var/lib/dpkg",
                "/run/systemd",
                &path,
            ] {
                sh(&guest, &format!("test -e {gone}")).await.fails();
            }
            assert_eq!(
                sh(&guest, "ls -A /root /home /run /var/log /mnt | grep -v :$")
                    .await
                    .out,
                ""
            );
            // Ways around by what another process's root or the first process's descriptors show.
            sh(&guest, "ls /proc/1/root/ /proc/1/cwd/ /proc/1/fd/")
                .await
                .fails();
            sh(&guest, "cat /proc/1/environ").await.fails();
            assert_eq!(sh(&guest, "ls -A /sys").await.ok(), "");
            let devices = sh(&guest, "find /dev -type b; ls /dev").await;
            assert_eq!(
                devices.ok(),
                "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"
            );
            sh(&guest, "mknod /tmp/disk b 254 0").await.fails();
            sh(&guest, "head -c 1 /proc/kcore | grep .").await.fails();
        })
        .await;
    must(std::fs::remove_file(marker), "removing the file");
}

/// A file where the environment's image does not reach.
fn tempfile_in_home() -> std::io::Result<std::path::PathBuf> {
    let path =
        std::path::Path::new("/var/tmp").join(format!("fuse-conformance-{}", std::process::id()));
    std::fs::write(&path, "seen")?;
    Ok(path)
}

// check: BOX-1
async fn the_machines_processes_are_out_of_sight(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let own = std::process::id();
            sh(&guest, &format!("test -d /proc/{own} || kill -0 {own}"))
                .await
                .fails();
            let count = sh(&guest, "ls -d /proc/[0-9]* | wc -l").await;
            let count: u32 = must(count.ok().parse(), "a count");
            assert!(count <= 5, "{count} processes are seen");
            assert_eq!(sh(&guest, "cat /proc/1/comm").await.ok(), "fused");
        })
        .await;
}

// check: BOX-2
async fn the_first_process_cannot_be_touched(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            // A signal may be accepted, but it must not arrive.
            sh(&guest, "for s in KILL TERM STOP INT HUP SEGV USR1 34; do kill -$s 1; done; kill -KILL -1; true").await;
            let ptrace_attach = if cfg!(target_arch = "x86_64") { "101, 16" } else { "117, 16" };
            assert_eq!(perl(&guest, &format!("print syscall({ptrace_attach}, 1, 0, 0)")).await.ok(), "-1");
            for file in ["mem", "maps", "environ", "exe", "auxv", "stack"] {
                sh(&guest, &format!("head -c 1 /proc/1/{file}")).await.fails();
            }
            sh(&guest, "echo x > /proc/1/mem").await.fails();
            must(guest.status().await, "status");
            sh(&guest, "true").await.ok();
        })
        .await;
}

async fn namespaces_and_mounts_cannot_be_made(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            for flag in ["U", "m", "p", "n", "i", "u", "C", "Ur", "Urm"] {
                sh(&guest, &format!("unshare -{flag} true")).await.fails();
            }
            for attempt in [
                "mount -t tmpfs none /mnt",
                "mount --bind / /mnt",
                "mount -o remount,rw /proc/sys",
                "mount -t proc none /mnt",
                "umount /proc/sys",
                "umount -l /",
                "nsenter -t 1 -m true",
                "nsenter --user=/proc/1/ns/user true",
                "chroot / mount -t tmpfs none /mnt",
            ] {
                sh(&guest, attempt).await.fails();
            }
        })
        .await;
}

// check: BOX-8
async fn dangerous_system_calls_are_refused(bench: Arc<Bench>) {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    bench
        .with(|guest| async move {
            // Number, arguments, expected errno: 1 EPERM, 38 ENOSYS.
            for (name, call, errno) in [
                ("clone3", "435, 0, 0", 38),
                (
                    "clone with a user namespace",
                    "56, 0x10000011, 0, 0, 0, 0",
                    1,
                ),
                (
                    "clone with a mount namespace",
                    "56, 0x00020011, 0, 0, 0, 0",
                    1,
                ),
                ("unshare of the user namespace", "272, 0x10000000", 1),
                ("mount", "165, 0, 0, 0, 0, 0", 1),
                ("move_mount", "429, 0, 0, 0, 0, 0", 1),
                ("fsopen", "430, 0, 0", 1),
                ("pivot_root", "155, 0, 0", 1),
                ("setns", "308, 0, 0", 1),
                ("bpf", "321, 0, 0, 0", 1),
                ("perf_event_open", "298, 0, 0, 0, 0, 0", 1),
                ("add_key", "248, 0, 0, 0, 0, 0", 1),
                ("request_key", "249, 0, 0, 0, 0", 1),
                ("keyctl", "250, 0, 0, 0, 0, 0", 1),
                ("userfaultfd", "323, 0", 1),
                ("open_by_handle_at", "304, 0, 0, 0", 1),
                ("init_module", "175, 0, 0, 0", 1),
                ("finit_module", "313, 0, 0, 0", 1),
                ("kexec_load", "246, 0, 0, 0, 0", 1),
                ("acct", "163, 0", 1),
                ("swapon", "167, 0, 0", 1),
                ("reboot", "169, 0, 0, 0, 0", 1),
                ("iopl", "172, 3", 1),
                ("syslog", "103, 3, 0, 0", 1),
                ("io_uring_setup", "425, 1, 0", 1),
                ("TIOCSTI", "16, 0, 0x5412, 0", 1),
                ("TIOCSTI with high bits", "16, 0, 0x100005412, 0", 1),
                ("getpid of the other call set", "0x40000027", 38),
            ] {
                let ran = perl(
                    &guest,
                    &format!("$r = syscall({call}); print $r == -1 ? $!+0 : \"done $r\""),
                )
                .await;
                assert_eq!(ran.ok(), errno.to_string(), "{name}");
            }
        })
        .await;
}

// check: BOX-8
async fn privileges_are_gone(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let status = sh(&guest, "cat /proc/self/status").await;
            let field = |name: &str| {
                let line = status
                    .ok()
                    .lines()
                    .find_map(|l| l.strip_prefix(name))
                    .unwrap_or_default();
                line.trim_start_matches(':').trim().to_owned()
            };
            assert_eq!(
                (field("NoNewPrivs"), field("Seccomp")),
                ("1".to_owned(), "2".to_owned())
            );
            let bounding = must(u64::from_str_radix(&field("CapBnd"), 16), "CapBnd");
            // dac_read_search, net_admin, sys_module, sys_rawio, sys_ptrace, sys_admin, sys_boot, sys_time, mknod, mac_*, syslog, bpf
            for capability in [2, 12, 16, 17, 19, 21, 22, 25, 27, 32, 33, 34, 39] {
                assert_eq!(bounding >> capability & 1, 0, "capability {capability}");
            }
            for set in ["CapInh", "CapAmb"] {
                assert_eq!(u64::from_str_radix(&field(set), 16), Ok(0), "{set}");
            }
        })
        .await;
}

// check: BOX-9
async fn the_kernels_settings_cannot_be_written(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            for file in [
                "/proc/sys/kernel/core_pattern",
                "/proc/sys/kernel/hostname",
                "/proc/sys/vm/drop_caches",
            ] {
                sh(&guest, &format!("echo x > {file}")).await.fails();
            }
            sh(&guest, "echo b > /proc/sysrq-trigger; touch /sys/x")
                .await
                .fails();
        })
        .await;
}

// check: BOX-3
async fn there_is_no_network_but_loopback(bench: Arc<Bench>) {
    let listener = must(TcpListener::bind("127.0.0.1:0"), "listening");
    let port = must(listener.local_addr(), "the port").port();
    let name = format!("fuse-conformance-{port}");
    let _abstract = must(abstract_listener(&name), "an abstract socket");
    bench
        .with(|guest| async move {
            sh(&guest, &format!("bash -c '</dev/tcp/127.0.0.1/{port}'")).await.fails();
            let connect = format!(
                "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"\\0{name}\")) or die"
            );
            perl(&guest, &connect).await.fails();
            let links = sh(&guest, "tail -n +3 /proc/net/dev | cut -d: -f1").await;
            assert_eq!(links.ok().trim(), "lo");
            let own = "use IO::Socket::INET; $l = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die; \
                       $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $l->sockport) or die; print 'up'";
            assert_eq!(perl(&guest, own).await.ok(), "up");
        })
        .await;
}

fn abstract_listener(name: &str) -> std::io::Result<UnixListener> {
    use std::os::linux::net::SocketAddrExt;
    UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
}

async fn the_machines_network_is_there_when_asked_for(bench: Arc<Bench>) {
    let listener = must(TcpListener::bind("127.0.0.1:0"), "listening");
    let port = must(listener.local_addr(), "the port").port();
    let mut spec = bench.spec();
    spec.network = Network::Host;
    bench
        .with_spec(spec, |guest| async move {
            sh(&guest, &format!("bash -c '</dev/tcp/127.0.0.1/{port}'"))
                .await
                .ok();
            // Using it is all: nothing about it can be changed.
            sh(&guest, "ip link set lo down").await.fails();
            sh(&guest, "ip addr add 127.7.7.7/8 dev lo").await.fails();
        })
        .await;
}

// check: BOX-6
async fn two_environments_do_not_see_each_other(bench: Arc<Bench>) {
    let other = bench.spec();
    let other_id = other.id.clone();
    let other = bench.create(other).await;
    bench
        .with(|guest| async move {
            let write = "echo mine > /workspace/f; echo mine > /tmp/f; echo mine > /dev/shm/f; echo mine > /usr/local/bin/f; \
                         sleep 1234 >/dev/null 2>&1 & ipcmk -Q >/dev/null";
            sh(&guest, write).await.ok();
            let look = "cat /workspace/f /tmp/f /dev/shm/f /usr/local/bin/f 2>/dev/null; cat /proc/[0-9]*/comm | grep -x sleep; ipcs -q | grep 0x";
            assert_eq!(sh(&other, look).await.out, "");
            assert_ne!(sh(&guest, look).await.out, "");
            let (a, b) = (sh(&guest, "hostname").await, sh(&other, "hostname").await);
            assert_ne!(a.ok(), b.ok());
        })
        .await;
    must(bench.backend().destroy(&other_id).await, "destroy");
}

async fn its_own_world_is_usable(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            for works in [
                "test $(id -u) = 0 && test $(whoami) = root",
                "echo '#!/bin/sh\necho hi' > /usr/local/bin/hi && chmod +x /usr/local/bin/hi && hi",
                "touch /root/x /home/x /opt/x /var/tmp/x /tmp/x /workspace/x /etc/x",
                "touch /usr/bin/x && rm /usr/bin/x",
                "test $(hostname) = $(cat /etc/hostname) && getent hosts localhost",
                "script -qc 'test -t 0' /dev/null",
                "test $(stat -c %a /tmp) = 1777 && test $(stat -c %a /) = 755",
                "head -c 8 /dev/urandom | wc -c && echo x > /dev/null && test -z \"$(cat /dev/null)\"",
                "echo x | cat /dev/stdin | grep x",
            ] {
                let ran = sh(&guest, works).await;
                assert_eq!(ran.code, 0, "{works}: {ran:?}");
            }
        })
        .await;
}
