//! A loop without io_uring: sockets wait in poll(2), everything else is done by blocking threads.

use crate::executor::{Home, Wait};
use crate::operation::{Operation, perform_to_the_end};
use crate::workers::Workers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;

pub(crate) struct Plain {
    /// Operations that wait for a socket.
    waiting: Vec<Box<dyn Operation>>,
    home: Arc<Home>,
    blocking: Arc<Workers>,
}

impl Plain {
    pub fn new(home: Arc<Home>, blocking: Arc<Workers>) -> Plain {
        Plain { waiting: Vec::new(), home, blocking }
    }

    pub fn submit(&mut self, operation: Box<dyn Operation>) {
        if operation.readiness().is_some() {
            self.waiting.push(operation);
        } else {
            // It completes on that thread; the task it wakes comes back through the inbox.
            self.blocking.submit(Box::new(|| perform_to_the_end(operation)), |work| work());
        }
    }

    pub fn exchange(&mut self, wait: Wait) {
        for slot in self.wait_ready(wait).into_iter().rev() {
            let mut operation = self.waiting.swap_remove(slot);
            let result = operation.perform();
            if let Some(again) = operation.complete(result) {
                self.submit(again);
            }
        }
    }

    /// Which operations can go on, in ascending order.
    fn wait_ready(&self, wait: Wait) -> Vec<usize> {
        let bell = PollFd::new(&self.home.inbox.bell, PollFlags::IN);
        let sockets = self.waiting.iter().map(|operation| {
            let (fd, flags) = operation.readiness().expect("only those with readiness wait here");
            PollFd::from_borrowed_fd(fd, flags)
        });
        let mut fds: Vec<PollFd<'_>> = std::iter::once(bell).chain(sockets).collect();
        let limit = match wait {
            Wait::No => Some(Timespec::default()),
            Wait::For(limit) => Timespec::try_from(limit).ok(),
            Wait::Forever => None,
        };
        // Interrupted by a signal, nothing is ready; the next turn asks again.
        let Ok(_) = poll(&mut fds, limit.as_ref()) else { return Vec::new() };
        if !fds[0].revents().is_empty() {
            let _ = rustix::io::read(&self.home.inbox.bell, &mut [0; 8]);
        }
        (0..self.waiting.len()).filter(|&i| !fds[i + 1].revents().is_empty()).collect()
    }
}
