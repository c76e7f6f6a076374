//! Being asked to end: SIGINT, SIGTERM, and SIGHUP where that is not ignored: the terminal is gone.
//!
//! The handler does the one thing a handler may: it writes to an eventfd, which a loop reads.

use crate::executor::{begin, with_local};
use crate::operation::{Operation, as_result, is_transient};
use io_uring::{opcode, squeue, types};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use world::sync::oneshot::{self, Sender};

static BELL: OnceLock<OwnedFd> = OnceLock::new();

/// Waits until the process is asked to end. The second signal ends it at once, whatever it is doing.
///
/// # Panics
/// Outside of a loop; when the system has no file descriptor left.
pub async fn shutdown_signal() {
    let bell = BELL.get_or_init(install);
    let (reply, waiting) = oneshot::channel();
    let shared = with_local(|local| local.shared.clone()).expect("a task of a loop waits for signals");
    begin(&shared, Box::new(Rung { bell, reply }));
    // An error means that the program is ending anyway.
    let _ = waiting.await;
}

/// From now on these signals do not end the process: every task that waits, or will wait, is told.
pub fn expect_shutdown() {
    BELL.get_or_init(install);
}

fn install() -> OwnedFd {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let bell = bell.unwrap_or_else(|e| panic!("cannot create an eventfd: {e}"));
    handle(libc::SIGINT);
    handle(libc::SIGTERM);
    if !is_ignored(libc::SIGHUP) {
        handle(libc::SIGHUP);
    }
    bell
}

/// For tests: SIGTERM is caught once more.
#[cfg(test)]
pub(crate) fn handle_again() {
    handle(libc::SIGTERM);
}

/// As `nohup` has it.
#[allow(unsafe_code)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zero is a valid sigaction, and this call only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[allow(unsafe_code)]
fn handle(signal: libc::c_int) {
    // SAFETY: all zero is a valid sigaction; the handler makes only calls that are safe in handlers.
    let outcome = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ring as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // RESETHAND: the second one is not caught. A terminal that goes may say so twice.
        let once = if signal == libc::SIGHUP { 0 } else { libc::SA_RESETHAND };
        action.sa_flags = libc::SA_RESTART | once;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    assert_eq!(outcome, 0, "SIGINT, SIGTERM and SIGHUP can be caught");
}

extern "C" fn ring(_signal: libc::c_int) {
    // The descriptor is set right after the handler is installed; a signal in between is lost, the next is not.
    if let Some(bell) = BELL.get() {
        let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
    }
}

/// Waits for the bell without consuming it: every waiter is told.
struct Rung {
    bell: &'static OwnedFd,
    reply: Sender<()>,
}

impl Operation for Rung {
    fn entry(&mut self) -> Option<squeue::Entry> {
        Some(opcode::PollAdd::new(types::Fd(self.bell.as_raw_fd()), libc::POLLIN as u32).build())
    }

    fn perform(&mut self) -> i32 {
        as_result(Ok(0))
    }

    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.bell.as_fd(), PollFlags::IN))
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let _ = self.reply.send(());
        None
    }
}
