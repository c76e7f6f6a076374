//! What other threads have for a loop, and the bell that wakes it.
//!
//! ```text
//!   sender                           loop, before it sleeps
//!   put the message in               sleeping = true
//!   filled = true                    filled?  then do not sleep
//!   sleeping was true? ring          wait in the kernel, which also reads the bell
//! ```
//!
//! Both sides write first and look second, in one total order, so at least one of them sees the other.

use crate::executor::TaskCell;
use crate::operation::Operation;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use world::Pending;

pub(crate) enum Message {
    Wake(Arc<TaskCell>),
    Spawn(Pending<()>),
    Submit(Box<dyn Operation>),
}

#[derive(Default)]
struct Waiting {
    messages: Vec<Message>,
    closed: bool,
}

pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    filled: AtomicBool,
    sleeping: AtomicBool,
    pub bell: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Inbox> {
        Ok(Inbox {
            waiting: Mutex::default(),
            filled: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    pub fn put(&self, message: Message) {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.closed {
                // Dropping a message drops a task or an operation, which may put another: not under the lock.
                drop(waiting);
                drop(message);
                return;
            }
            waiting.messages.push(message);
        }
        self.filled.store(true, SeqCst);
        if self.sleeping.swap(false, SeqCst) {
            self.ring_bell();
        }
    }

    /// Wakes the loop even without a message.
    pub fn ring_bell(&self) {
        // It can only fail when the counter is full, and then the loop is being woken already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Whether the loop may sleep now; [`Inbox::awake`] follows.
    pub fn may_sleep(&self) -> bool {
        self.sleeping.store(true, SeqCst);
        let may = !self.filled.load(SeqCst);
        if !may {
            self.sleeping.store(false, SeqCst);
        }
        may
    }

    pub fn awake(&self) {
        self.sleeping.store(false, SeqCst);
    }

    /// Moves all messages to the end of `to`.
    pub fn take(&self, to: &mut Vec<Message>) {
        if self.filled.swap(false, SeqCst) {
            to.append(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner).messages);
        }
    }

    /// Refuses messages from now on; returns those that were waiting.
    pub fn close(&self) -> Vec<Message> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.closed = true;
        std::mem::take(&mut waiting.messages)
    }
}
