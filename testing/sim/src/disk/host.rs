//! The file system of a host, whose room the disks that are sparse files in it share.
//!
//! ```text
//!   write ─▶ pages without room yet ─▶ taken from what is free ─▶ or: what came before is written, and the write fails
//!   discard ─▶ whole pages ─▶ free again
//! ```
//!
//! A page that has room is written again for nothing, as in a file of which no block is shared.

use super::lock;
use super::state::State;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const PAGE: u64 = 4096;

/// Clones, and forks of disks, share its room.
#[derive(Clone, Debug)]
pub struct Host(Arc<Mutex<u64>>);

impl Host {
    /// One with so many bytes free.
    pub fn new(free: u64) -> Host {
        Host(Arc::new(Mutex::new(free)))
    }

    /// In bytes.
    pub fn free(&self) -> u64 {
        *lock(&self.0)
    }

    /// Another file of the host grows by so many bytes, or by what is left.
    pub fn take(&self, bytes: u64) {
        let mut free = lock(&self.0);
        *free = free.saturating_sub(bytes);
    }

    /// Other files go.
    pub fn give(&self, bytes: u64) {
        *lock(&self.0) += bytes;
    }

    fn take_page(&self) -> bool {
        let mut free = lock(&self.0);
        let fits = *free >= PAGE;
        *free -= if fits { PAGE } else { 0 };
        fits
    }
}

/// What a disk has of its host.
#[derive(Clone)]
pub(super) struct Place {
    host: Host,
    pages: BTreeSet<u64>,
}

impl Place {
    pub fn new(host: &Host) -> Place {
        Place { host: host.clone(), pages: BTreeSet::new() }
    }
}

impl State {
    /// Finds room for a write, and answers how many of its bytes, from the first on, have it.
    pub fn place(&mut self, offset: u64, len: u64) -> u64 {
        let Some(Place { host, pages }) = &mut self.place else { return len };
        for page in offset / PAGE..(offset + len).div_ceil(PAGE) {
            if !pages.contains(&page) {
                if !host.take_page() {
                    self.refused += 1;
                    return (page * PAGE).saturating_sub(offset);
                }
                pages.insert(page);
            }
        }
        len
    }

    pub fn give_back(&mut self, offset: u64, len: u64) {
        let Some(Place { host, pages }) = &mut self.place else { return };
        let whole = offset.div_ceil(PAGE)..(offset + len) / PAGE;
        if !whole.is_empty() {
            let gone: Vec<u64> = pages.range(whole).copied().collect();
            gone.iter().for_each(|page| _ = pages.remove(page));
            host.give(gone.len() as u64 * PAGE);
        }
    }
}
