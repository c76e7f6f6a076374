//! Classes: which vdevs a kind of block goes to, and taking turns among them.
//!
//! ```text
//!   log    ─▶ embedded log ─▶ normal        a class that has no vdevs or no room
//!   dedup  ─▶ special ─▶ normal             is followed by the next
//! ```
//!
//! Within a class, blocks go to one vdev for a while (its *quota*), then to the next, so that neighbours stay neighbours
//! and each device gets large writes. The quota is larger for vdevs that are larger or emptier than the others: they
//! should become full at the same time.

use crate::group::Group;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Normal,
    /// Intent log devices.
    Log,
    /// Metadata and small blocks, on faster devices.
    Special,
    /// Deduplication tables.
    Dedup,
    /// A metaslab of each larger normal vdev, kept for the intent log of pools without log devices.
    EmbeddedLog,
}

impl Class {
    pub const ALL: [Class; 5] = [Class::Normal, Class::Log, Class::Special, Class::Dedup, Class::EmbeddedLog];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// This class and those that take its blocks when it cannot.
    pub fn chain(self) -> &'static [Class] {
        match self {
            Class::Normal => &[Class::Normal],
            Class::Log => &[Class::Log, Class::EmbeddedLog, Class::Normal],
            Class::Special => &[Class::Special, Class::Normal],
            Class::Dedup => &[Class::Dedup, Class::Special, Class::Normal],
            Class::EmbeddedLog => &[Class::EmbeddedLog, Class::Normal],
        }
    }
}

/// Whose turn it is.
#[derive(Debug, Default)]
struct Turn {
    at: usize,
    /// Bytes given to the vdev at `at` in this turn.
    used: u64,
}

/// The vdevs of a class, taking turns.
#[derive(Debug, Default)]
pub(crate) struct Rotor {
    groups: Vec<Arc<Group>>,
    turn: Mutex<Turn>,
}

impl Rotor {
    pub(crate) fn new(groups: Vec<Arc<Group>>) -> Rotor {
        Rotor { groups, turn: Mutex::default() }
    }

    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// All groups, beginning with the one whose turn it is, or at `first`.
    pub(crate) fn round(&self, first: Option<usize>) -> impl Iterator<Item = (usize, &Group)> {
        let count = self.groups.len();
        let first = first.unwrap_or_else(|| if count > 1 { self.turn().at } else { 0 });
        (0..count).map(move |i| (first + i) % count).map(|i| (i, &*self.groups[i]))
    }

    /// Counts bytes given to a group; `None` when it had no room.
    pub(crate) fn took(&self, index: usize, bytes: Option<u64>) {
        if self.groups.len() < 2 {
            return;
        }
        let mut turn = self.turn();
        if turn.at != index {
            return;
        }
        turn.used += bytes.unwrap_or(0);
        // Half of the next block may lie beyond the quota. Log blocks are waited for one by one: each goes elsewhere.
        let group = &self.groups[index];
        let over = bytes.is_none_or(|b| group.class == Class::Log || turn.used + b / 2 >= group.quota());
        if over {
            *turn = Turn { at: (index + 1) % self.groups.len(), used: 0 };
        }
    }

    /// Sets the quotas by how large and how empty each vdev is, compared to all.
    pub(crate) fn balance(&self) {
        let space: u64 = self.groups.iter().map(|g| g.usage().space).sum();
        let free: u64 = self.groups.iter().map(|g| g.usage().free()).sum();
        if self.groups.len() > 1 && space > 0 {
            self.groups
                .iter()
                .for_each(|group| group.set_quota(space / self.groups.len() as u64, space, free));
        }
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        // No code that can panic runs under this lock.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
