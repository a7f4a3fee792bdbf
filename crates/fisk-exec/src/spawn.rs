//! Starting a command, and ending it with its whole group.

use std::{
    io,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{OnceLock, mpsc},
    thread,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::sync::oneshot;

use crate::sys;

/// A command that was started, with the group that it leads.
///
/// It is reaped only after its group was killed, so that the group's number cannot have passed to somebody else. Dropping it
/// kills the group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    ended: Option<OwnedFd>,
    reaped: bool,
}

impl Group {
    fn new(child: Child) -> io::Result<Self> {
        let mut group = Self {
            child,
            ended: None,
            reaped: false,
        };
        group.ended = Some(sys::pidfd(group.child.id())?);
        Ok(group)
    }

    /// A descriptor that becomes readable when the leader ends; once.
    pub fn ended(&mut self) -> Option<OwnedFd> {
        self.ended.take()
    }

    /// Signals all of the group. Fine when nobody is left in it.
    pub fn signal(&self, signal: Signal) {
        // A number over 1 never means "everything".
        if let Ok(leader) = i32::try_from(self.child.id())
            && leader > 1
            && !self.reaped
        {
            let _ = killpg(Pid::from_raw(leader), signal);
        }
    }

    /// Kills what is left of the group and asks how the leader ended. It has ended already, or this waits.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        let status = self.child.wait();
        self.reaped = true;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.signal(Signal::SIGKILL);
        if matches!(self.child.try_wait(), Ok(None)) {
            // It dies as soon as the kernel lets it; nobody else would reap it.
            let pid = i32::try_from(self.child.id()).unwrap_or(0);
            let _ = thread::Builder::new().stack_size(64 << 10).spawn(move || {
                let _ = nix::sys::wait::waitpid(Pid::from_raw(pid), None);
            });
        }
    }
}

struct Order {
    command: Command,
    answer: oneshot::Sender<io::Result<Group>>,
}

/// The thread that starts all commands. They are killed when it ends, and it ends with the process and not before: a command
/// does not outlive a harness that was killed.
static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();

/// Starts a command, confined. A command that is started for a caller who is gone is killed.
pub async fn spawn(command: Command) -> io::Result<Group> {
    let (answer, started) = oneshot::channel();
    let order = Order { command, answer };
    let gone = |_| io::Error::other("the thread that starts commands is gone");
    spawner().send(order).map_err(|e| gone(e.to_string()))?;
    started.await.map_err(|e| gone(e.to_string()))?
}

fn spawner() -> &'static mpsc::Sender<Order> {
    SPAWNER.get_or_init(|| {
        sys::keep_ended_children();
        let (orders, queue) = mpsc::channel::<Order>();
        // Where no thread can be had the queue is dropped, and each start fails.
        let _ = thread::Builder::new()
            .name("spawner".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                while let Ok(Order {
                    mut command,
                    answer,
                }) = queue.recv()
                {
                    if answer.is_closed() {
                        continue;
                    }
                    sys::confine(&mut command);
                    let started = command.spawn().and_then(Group::new);
                    // It holds our copies of the pipe's writing end, which would keep the reader waiting.
                    drop(command);
                    // A group that nobody takes is dropped, hence killed.
                    drop(answer.send(started));
                }
            });
        orders
    })
}
