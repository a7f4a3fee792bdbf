//! What the first process gives up before it becomes `fused`: capabilities, system calls, resources.

use super::{
    config::{Rlimits, StageError},
    step::{Step, need},
    sys,
};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

/// Capabilities that programs inside may have over the environment's own things.
const KEPT: [u32; 11] = [
    0,  // chown
    1,  // dac_override
    3,  // fowner
    4,  // fsetid
    5,  // kill
    6,  // setgid
    7,  // setuid
    8,  // setpcap
    10, // net_bind_service
    18, // sys_chroot
    31, // setfcap
];

/// Capability numbers that a kernel may know, with room for new ones.
const ALL: u32 = 64;

/// System calls that are refused whatever their arguments.
const DENIED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_process_madvise,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
];

/// Flags of clone and unshare that make a namespace.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];

/// Terminal calls that put input into somebody else's hands.
const TERMINAL: [u64; 2] = [
    0x5412, // TIOCSTI
    0x541c, // TIOCLINUX
];

/// Lowers the limits of this process and of all that come after it.
pub fn limits(limits: &Rlimits) -> Step<()> {
    lower(Resource::RLIMIT_CORE, 0)?;
    lower(Resource::RLIMIT_FSIZE, limits.file)?;
    lower(Resource::RLIMIT_NOFILE, 65_536)?;
    if let Some(data) = limits.data {
        lower(Resource::RLIMIT_DATA, data)?;
    }
    if let Some(processes) = limits.processes {
        lower(Resource::RLIMIT_NPROC, processes)?;
    }
    Ok(())
}

/// Never above what is set already: nobody may raise that.
fn lower(resource: Resource, to: u64) -> Step<()> {
    let what = format!("the limit {resource:?}");
    let (_, hard) = need(&what, getrlimit(resource))?;
    let to = to.min(hard);
    need(&what, setrlimit(resource, to, to))
}

/// Leaves the harmless capabilities only.
pub fn capabilities() {
    for capability in (0..ALL).filter(|c| !KEPT.contains(c)) {
        sys::drop_from_bounding_set(capability);
    }
    sys::clear_ambient();
}

/// Installs the filters. They also set `no_new_privs`.
pub fn system_calls() -> Step<()> {
    let denied = filter(denied_rules(), libc::EPERM)?;
    // A C library falls back to clone, whose flags can be judged.
    let hidden = filter(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
    )?;
    for program in [foreign_calls(), hidden, denied] {
        need("seccomp filters", apply_filter(&program))?;
    }
    Ok(())
}

fn denied_rules() -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces: Vec<SeccompRule> = NAMESPACES
        .iter()
        .filter_map(|flag| {
            let flag = u64::try_from(*flag).ok()?;
            condition(
                0,
                SeccompCmpArgLen::Qword,
                SeccompCmpOp::MaskedEq(flag),
                flag,
            )
        })
        .collect();
    // The low byte of clone's flags is a signal, so CLONE_NEWTIME exists for unshare alone.
    rules.insert(
        libc::SYS_clone,
        namespaces.iter().take(7).cloned().collect(),
    );
    rules.insert(libc::SYS_unshare, namespaces);
    let terminal = TERMINAL
        .iter()
        .filter_map(|call| condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *call))
        .collect();
    rules.insert(libc::SYS_ioctl, terminal);
    rules
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Option<SeccompRule> {
    let condition = SeccompCondition::new(argument, length, operator, value).ok()?;
    SeccompRule::new(vec![condition]).ok()
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Step<BpfProgram> {
    let unknown = |_| StageError {
        facility: "seccomp filters".to_owned(),
        detail: format!(
            "there is none for the architecture {}",
            std::env::consts::ARCH
        ),
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(unknown)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = need(
        "seccomp filters",
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch),
    )?;
    need("seccomp filters", BpfProgram::try_from(filter))
}

/// Refuses the second set of call numbers that x86-64 kernels may have: it would pass by a list of numbers.
fn foreign_calls() -> BpfProgram {
    let op = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        op(0x20, 0, 0, 0),                // load the call's number
        op(0x35, 0, 1, 0x4000_0000),      // at least the first of the other set?
        op(0x06, 0, 0, 0x0005_0000 | 38), // then ENOSYS
        op(0x06, 0, 0, 0x7fff_0000),      // else go on
    ]
}
