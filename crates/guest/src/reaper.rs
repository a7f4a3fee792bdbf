//! The one place that starts and reaps processes.
//!
//! A child is registered under the lock that the reaper takes before it reaps, so a child's end is never seen before its
//! registration, and a signal is never sent to a number that has been given to somebody else.

use crate::sys;
use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    process::Command,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A started child.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    /// Whether the rest of its group dies with it.
    doomed: AtomicBool,
    code: Mutex<Option<i32>>,
    ended: Condvar,
}

impl Child {
    /// Waits for its end and answers its exit code.
    pub fn wait(&self) -> i32 {
        let mut code = lock(&self.code);
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self
                .ended
                .wait(code)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts and reaps.
#[derive(Debug, Default)]
pub struct Reaper {
    table: Mutex<Table>,
    started: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    children: HashMap<i32, Arc<Child>>,
    starts: u64,
}

impl Reaper {
    /// Starts a command as the leader of its own session; the descriptor becomes readable at its end.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Arc<Child>, OwnedFd)> {
        sys::detach(command);
        let mut table = lock(&self.table);
        let pid = command.spawn()?.id();
        let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidData)?;
        table.starts += 1;
        let child = Arc::new(Child {
            pid,
            doomed: AtomicBool::new(false),
            code: Mutex::new(None),
            ended: Condvar::new(),
        });
        table.children.insert(pid, Arc::clone(&child));
        self.started.notify_one();
        match sys::pidfd(pid) {
            Ok(fd) => Ok((child, fd)),
            Err(error) => {
                sys::kill_group(pid, libc::SIGKILL);
                Err(error)
            }
        }
    }

    /// Sends a signal to a child's group, unless the child has ended.
    pub fn signal(&self, child: &Child, signal: i32) {
        let table = lock(&self.table);
        if table.children.contains_key(&child.pid) {
            sys::kill_group(child.pid, signal);
        }
    }

    /// Kills what a child that has ended left of its group.
    pub fn kill_left(&self, child: &Child) {
        let table = lock(&self.table);
        // Where others are left the number is theirs still; where none are, it may lead a newer command.
        if !table.children.contains_key(&child.pid) {
            sys::kill_group(child.pid, libc::SIGKILL);
        }
    }

    /// Sends a signal to a child's group and has what is left of the group killed when the child ends.
    pub fn doom(&self, child: &Child, signal: i32) {
        child.doomed.store(true, Ordering::SeqCst);
        self.signal(child, signal);
    }

    /// Reaps for ever.
    pub fn run(&self) {
        let mut seen = 0;
        loop {
            match sys::peek_ended_child() {
                Ok(pid) => self.end(pid),
                Err(_) => {
                    // No child at all: nothing can be orphaned to us before we start one.
                    let mut table = lock(&self.table);
                    while table.starts == seen {
                        table = self
                            .started
                            .wait(table)
                            .unwrap_or_else(PoisonError::into_inner);
                    }
                    seen = table.starts;
                }
            }
        }
    }

    fn end(&self, pid: i32) {
        let mut table = lock(&self.table);
        let child = table.children.remove(&pid);
        if let Some(child) = &child
            && child.doomed.load(Ordering::SeqCst)
        {
            // Before the reaping, while the number cannot be anybody else's.
            sys::kill_group(pid, libc::SIGKILL);
        }
        let code = sys::reap(pid);
        drop(table);
        if let Some(child) = child {
            *lock(&child.code) = Some(code.unwrap_or(255));
            child.ended.notify_all();
        }
    }
}

/// Locks, whatever a panicking thread left behind: every table here is valid between two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
