//! A request as it came, and the duty to answer it: exactly once, from any thread.
//!
//! ```text
//!   Received ── parts ──▶ wire::Ask          by /dev/fuse    bytes in the reader's buffer      answered by a write
//!      └────── answer ──▶ Answer             by io_uring     a slot, which the answer owns     answered into the slot
//! ```
//!
//! An answer that is dropped says that it was not done (EIO): its work has panicked, or the mount has ended.

use crate::attr::Attr;
use crate::device::Device;
use crate::errno::Result;
use crate::wire::{self, Head, IN_HEADER};
use linux::fuse_ring::{Back, Slot};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) enum Received<'a> {
    Read(&'a Arc<Device>, &'a [u8]),
    Slot(Slot, &'a Arc<Back>),
}

impl Received<'_> {
    pub fn head(&self) -> Option<Head> {
        let (head, len) = match self {
            Received::Read(_, bytes) => Head::read(bytes)?,
            Received::Slot(slot, _) => Head::read(slot.header())?,
        };
        let (first, second) = self.parts();
        (len == IN_HEADER + first.len() + second.len()).then_some(head)
    }

    /// What follows the header. The boundary lies between two of its elements.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Received::Read(_, bytes) => (bytes.get(IN_HEADER..).unwrap_or_default(), &[]),
            Received::Slot(slot, _) => (slot.arguments(), slot.payload()),
        }
    }

    /// The last `len` bytes.
    pub fn data(&self, len: usize) -> &[u8] {
        let (first, second) = self.parts();
        let part = if second.is_empty() { first } else { second };
        &part[part.len().saturating_sub(len)..]
    }

    /// It is no request: what came in a slot is answered all the same, or the slot would be lost.
    pub fn refuse(self) {
        if let Received::Slot(slot, back) = self {
            Answer { to: Some(To::Slot(slot, back.clone())) }.error(Errno::IO);
        }
    }

    pub fn answer(self, head: &Head) -> Answer {
        let to = match self {
            Received::Read(device, _) => To::Device(device.clone(), head.unique),
            Received::Slot(slot, back) => To::Slot(slot, back.clone()),
        };
        Answer { to: Some(to) }
    }
}

enum To {
    Device(Arc<Device>, u64),
    Slot(Slot, Arc<Back>),
}

/// See the module.
pub(crate) struct Answer {
    to: Option<To>,
}

impl Answer {
    fn send(mut self, error: i32, parts: &[&[u8]]) {
        match self.to.take() {
            Some(To::Device(device, unique)) => device.answer(unique, error, parts),
            Some(To::Slot(mut slot, back)) => {
                slot.answer(error, parts);
                back.give(slot);
            }
            None => {}
        }
    }

    /// The kernel wants none: the place of the request is free.
    pub fn none(mut self) {
        if let Some(To::Slot(..)) = self.to {
            return self.empty(Ok(()));
        }
        self.to = None;
    }

    pub fn error(self, e: Errno) {
        self.send(-e.raw_os_error(), &[]);
    }

    pub fn data(self, data: &[u8]) {
        self.send(0, &[data]);
    }

    pub fn empty(self, done: Result<()>) {
        match done {
            Ok(()) => self.send(0, &[]),
            Err(e) => self.error(e),
        }
    }

    pub fn bytes<T: AsRef<[u8]>>(self, found: Result<T>) {
        match found {
            Ok(found) => self.data(found.as_ref()),
            Err(e) => self.error(e),
        }
    }

    pub fn entry(self, believed: Duration, found: Result<(Attr, u64)>) {
        self.bytes(found.map(|(attr, generation)| wire::entry(believed, &attr, generation)));
    }

    /// An extended attribute, or a list of them, for a caller that has room for so many bytes; with none it asks how many.
    pub fn xattr(self, room: u32, found: Result<Vec<u8>>) {
        match found {
            Ok(bytes) if room == 0 => self.data(&wire::count(bytes.len() as u32)),
            Ok(bytes) if bytes.len() > room as usize => self.error(Errno::RANGE),
            found => self.bytes(found),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            Answer { to: Some(to) }.error(Errno::IO);
        }
    }
}
