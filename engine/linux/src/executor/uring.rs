//! A loop's io_uring: everything begun in a turn is submitted by one system call, which also waits and also brings
//! back what is done.
//!
//! ```text
//!   submit ──▶ slab[slot] owns the operation ──▶ SQE(user_data = slot) ──▶ kernel
//!   complete ◀── slab gives it up ◀── CQE(user_data = slot) ◀──────────────┘
//! ```
//!
//! The ring belongs to one thread (SINGLE_ISSUER), and the kernel finishes requests only when that thread asks
//! (DEFER_TASKRUN), so completions come in batches and never interrupt a task. Kernels before 6.1 do without.

use crate::executor::{Home, Wait};
use crate::operation::{Operation, perform_to_the_end};
use crate::workers::Workers;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::fd::AsRawFd;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Submissions that fit between two system calls; more only cost another call.
const SUBMISSIONS: u32 = 256;
/// Threads that the kernel may have for requests which wait where they begin, as a flush does. They are made when they are
/// needed; four for each core, which is what the kernel has else, may all wait for one server that is silent.
const WAITERS: u32 = 256;
/// Completions that fit between two turns; more wait in the kernel.
const COMPLETIONS: u32 = 4096;
/// The end waits so long for the kernel to give buffers back; a device that hangs must not hang the exit.
const END_PATIENCE: Duration = Duration::from_secs(30);

const BELL: u64 = u64::MAX;
const CANCEL: u64 = u64::MAX - 1;

pub(crate) struct Uring {
    ring: IoUring,
    in_flight: Slab<Box<dyn Operation>>,
    /// Entries that did not fit into the submission queue.
    backlog: VecDeque<squeue::Entry>,
    done: Vec<(u64, i32)>,
    home: Arc<Home>,
    blocking: Arc<Workers>,
    bell_armed: bool,
    /// Where the kernel puts the bell's count; boxed, because it does so at any time while the bell is armed.
    bell_count: Box<u64>,
}

impl Uring {
    pub fn new(home: Arc<Home>, blocking: Arc<Workers>) -> io::Result<Uring> {
        let ring = build()?;
        // Older kernels have as many as they have.
        let _ = ring.submitter().register_iowq_max_workers(&mut [WAITERS, WAITERS]);
        let params = ring.params();
        // EXT_ARG: a wait with a limit (5.11). NODROP: no completion is ever lost (5.5).
        if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(Uring {
            ring,
            in_flight: Slab::with_capacity(SUBMISSIONS as usize),
            backlog: VecDeque::new(),
            done: Vec::new(),
            home,
            blocking,
            bell_armed: false,
            bell_count: Box::new(0),
        })
    }

    pub fn submit(&mut self, mut operation: Box<dyn Operation>) {
        let Some(entry) = operation.entry() else {
            self.blocking.submit(Box::new(|| perform_to_the_end(operation)), |work| work());
            return;
        };
        let slot = self.in_flight.insert(operation);
        self.push(entry.user_data(slot as u64));
    }

    fn push(&mut self, entry: squeue::Entry) {
        if self.backlog.is_empty() && self.try_push(&entry) {
            return;
        }
        self.backlog.push_back(entry);
    }

    #[allow(unsafe_code)]
    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the entry points into an operation in the slab or at `bell_count`: boxed, they stay where they
        // are until the completion has been taken, and `drop` leaks them if the kernel never answers.
        let fits = unsafe { self.ring.submission().push(entry) }.is_ok();
        if fits {
            return true;
        }
        // Full: hand over what is there. It can fail only for a moment; the backlog keeps the rest.
        let _ = self.ring.submit();
        // SAFETY: as above.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.pop_front() {
            if !self.try_push(&entry) {
                self.backlog.push_front(entry);
                return;
            }
        }
    }

    /// Submits what was begun, waits, and completes what is done.
    pub fn exchange(&mut self, wait: Wait) {
        self.arm_bell();
        self.push_backlog();
        self.enter(wait).unwrap_or_else(|e| panic!("io_uring_enter: {e}"));
        self.reap();
    }

    fn arm_bell(&mut self) {
        if self.bell_armed {
            return;
        }
        self.bell_armed = true;
        let fd = types::Fd(self.home.inbox.bell.as_raw_fd());
        let count: *mut u64 = &mut *self.bell_count;
        self.push(opcode::Read::new(fd, count.cast(), 8).build().user_data(BELL));
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::No => {
                let queue = self.ring.submission();
                let nothing = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
                drop(queue);
                if nothing { Ok(0) } else { self.ring.submit() }
            }
            Wait::Forever => self.ring.submit_and_wait(1),
            Wait::For(limit) => {
                let limit = types::Timespec::from(limit);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&limit))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(e) => match e.raw_os_error() {
                // The time is over, a signal came, or completions must be taken first: the next turn tries again.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(e),
            },
        }
    }

    fn reap(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        done.extend(self.ring.completion().map(|c| (c.user_data(), c.result())));
        for (slot, result) in done.drain(..) {
            match slot {
                BELL => self.bell_armed = false,
                CANCEL => {}
                _ => self.complete(slot as usize, result),
            }
        }
        self.done = done;
    }

    fn complete(&mut self, slot: usize, result: i32) {
        let operation = self.in_flight.remove(slot);
        if let Some(again) = operation.complete(result) {
            self.submit(again);
        }
    }

    /// Whether the kernel still has memory of ours.
    fn is_owed(&self) -> bool {
        self.bell_armed || !self.in_flight.is_empty()
    }
}

impl Drop for Uring {
    /// Takes back every buffer: what can be cancelled is, the rest finishes.
    fn drop(&mut self) {
        let slots: Vec<usize> = self.in_flight.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.push(opcode::AsyncCancel::new(slot as u64).build().user_data(CANCEL));
        }
        self.home.inbox.ring_bell();
        let began = std::time::Instant::now();
        while self.is_owed() && began.elapsed() < END_PATIENCE {
            self.push_backlog();
            if self.enter(Wait::For(Duration::from_millis(100))).is_err() {
                break;
            }
            self.reap();
        }
        if self.is_owed() {
            // The kernel may still write there: memory it never gives back is never used again.
            std::mem::forget(std::mem::take(&mut self.in_flight));
            std::mem::forget(std::mem::take(&mut self.bell_count));
        }
    }
}

fn build() -> io::Result<IoUring> {
    let mut modern = IoUring::builder();
    modern.setup_cqsize(COMPLETIONS).setup_clamp();
    let plain = modern.clone();
    modern.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
    match modern.build(SUBMISSIONS) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => plain.build(SUBMISSIONS),
        outcome => outcome,
    }
}
