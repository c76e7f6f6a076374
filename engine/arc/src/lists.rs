//! The lists of a shard: one slab of entries, linked by index, so that moving between lists is a few stores.
//!
//! ```text
//!   list      head ── older ... newer ── tail     the hand takes from the head, everything enters at the tail
//!   entries   │ 24 │ 24 │ 24 │ ...                what the hand looks at of a block, and the links
//!   contents  │  72  │  72  │  72  │ ...          which block it is, and its bytes, in the same slots
//! ```
//!
//! A miss looks at a dozen entries of others, scattered over the slab: of 8,192 blocks and as many ghosts twice, these are
//! 600 KB, and what a core has next to it; with their contents they would be 2.4 MB, and each a miss of the processor.

use crate::block::{BlockId, Kind, Origin};
use crate::horizon::{EPOCHS, Epoch, NEVER};
use std::ops::{Index, IndexMut};
use world::Buf;

const NIL: u32 = u32::MAX;
/// Uses are counted up to here,
const USES_MAX: u8 = 15;
/// and halved after so many epochs, which are twenty cachefuls of uses.
const HALVED_AFTER: Epoch = 20 * EPOCHS as Epoch;

/// Which part of its kind's cache an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Read ahead, and not yet asked for.
    Ahead,
    Window,
    Main,
    /// Compressed: the bytes are in [`crate::cold`], and what it is charged is what it was before.
    Cold,
    GhostWindow,
    GhostMain,
}

impl Part {
    pub(crate) const COUNT: usize = 6;
    /// With their bytes as they are asked for.
    pub(crate) const RESIDENT: [Part; 3] = [Part::Ahead, Part::Window, Part::Main];

    pub(crate) fn ghost(self) -> Part {
        match self {
            Part::Ahead | Part::Window | Part::GhostWindow => Part::GhostWindow,
            Part::Main | Part::Cold | Part::GhostMain => Part::GhostMain,
        }
    }
}

/// What moves blocks between the lists.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it is charged, or was while it was resident.
    pub(crate) charge: u64,
    older: u32,
    newer: u32,
    /// Of its last use; of what was read ahead, when it came.
    pub(crate) epoch: Epoch,
    pub(crate) kind: Kind,
    pub(crate) part: Part,
    /// Used since the hand last passed.
    pub(crate) used: bool,
    /// How often it was used until `epoch`.
    uses: u8,
}

#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) block: BlockId,
    /// `None` in a ghost, and of what is compressed.
    pub(crate) buf: Option<Buf>,
    /// Of a block that a second level may take.
    pub(crate) origin: Option<Box<Origin>>,
    /// The cores that have it at hand ([`crate::near`]), a bit each.
    pub(crate) holders: u64,
}

impl Entry {
    /// How often it was used, less what has aged.
    pub(crate) fn uses(&self, now: Epoch) -> u8 {
        if self.epoch == NEVER {
            return self.uses;
        }
        self.uses.checked_shr(now / HALVED_AFTER - self.epoch / HALVED_AFTER).unwrap_or(0)
    }

    /// Counts a use; `epoch` is still that of the one before.
    pub(crate) fn count(&mut self, now: Epoch) {
        self.uses = (self.uses(now) + 1).min(USES_MAX);
    }

    /// Counts a use so soon after the last one that nothing has aged.
    pub(crate) fn count_lately(&mut self) {
        self.uses = (self.uses + 1).min(USES_MAX);
    }

    /// Takes over what is known of a block from its ghost.
    pub(crate) fn remember(&mut self, uses: u8) {
        self.uses = uses;
    }
}

const _: () = assert!(size_of::<Entry>() == 24 && size_of::<Content>() <= 72);

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    bytes: u64,
    count: usize,
}

const EMPTY: List = List { head: NIL, tail: NIL, bytes: 0, count: 0 };

#[derive(Debug)]
pub(crate) struct Lists {
    entries: Vec<Entry>,
    contents: Vec<Content>,
    vacant: Vec<u32>,
    lists: [List; Part::COUNT * Kind::ALL.len()],
}

fn number(kind: Kind, part: Part) -> usize {
    kind.index() * Part::COUNT + part as usize
}

impl Lists {
    pub(crate) fn new() -> Lists {
        let lists = [EMPTY; Part::COUNT * Kind::ALL.len()];
        Lists { entries: Vec::new(), contents: Vec::new(), vacant: Vec::new(), lists }
    }

    pub(crate) fn bytes(&self, kind: Kind, part: Part) -> u64 {
        self.lists[number(kind, part)].bytes
    }

    pub(crate) fn count(&self, kind: Kind, part: Part) -> usize {
        self.lists[number(kind, part)].count
    }

    /// The entry that has been longest in a list.
    pub(crate) fn oldest(&self, kind: Kind, part: Part) -> Option<u32> {
        let head = self.lists[number(kind, part)].head;
        (head != NIL).then_some(head)
    }

    /// The slots of a list: from the longest there, or from the newest.
    pub(crate) fn slots(&self, kind: Kind, part: Part, newest_first: bool) -> impl Iterator<Item = u32> + '_ {
        let list = &self.lists[number(kind, part)];
        let linked = |slot: u32| (slot != NIL).then_some(slot);
        let first = linked(if newest_first { list.tail } else { list.head });
        let next = move |slot: &u32| if newest_first { self[*slot].older } else { self[*slot].newer };
        std::iter::successors(first, move |slot| linked(next(slot)))
    }

    /// A new entry at the tail of its list.
    pub(crate) fn insert(&mut self, block: BlockId, kind: Kind, part: Part, buf: Buf, charge: u64) -> u32 {
        let (older, newer, epoch, used, uses) = (NIL, NIL, NEVER, false, 0);
        let entry = Entry { charge, older, newer, epoch, kind, part, used, uses };
        let content = Content { block, buf: Some(buf), origin: None, holders: 0 };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                self.contents[slot as usize] = content;
                slot
            }
            None => {
                self.entries.push(entry);
                self.contents.push(content);
                u32::try_from(self.entries.len() - 1).expect("a shard holds less than 2^32 blocks")
            }
        };
        self.link(slot);
        slot
    }

    /// Moves an entry to the tail of a list of its kind.
    pub(crate) fn move_to(&mut self, slot: u32, part: Part) {
        self.unlink(slot);
        self[slot].part = part;
        self.link(slot);
    }

    /// Makes an entry the next that the hand meets in its list.
    pub(crate) fn move_to_head(&mut self, slot: u32) {
        self.unlink(slot);
        let number = self.list_of(slot);
        let charge = self[slot].charge;
        let list = &mut self.lists[number];
        let head = std::mem::replace(&mut list.head, slot);
        if head == NIL {
            list.tail = slot;
        }
        list.count += 1;
        list.bytes += charge;
        if head != NIL {
            self[head].older = slot;
        }
        let entry = &mut self[slot];
        entry.newer = head;
        entry.older = NIL;
    }

    /// Takes an entry out; its bytes are returned so that they can be freed outside of the lock.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Buf> {
        self.unlink(slot);
        self.vacant.push(slot);
        self.content_mut(slot).buf.take()
    }

    /// Exchanges the bytes of a resident entry for others; returns the old ones.
    pub(crate) fn replace(&mut self, slot: u32, buf: Buf, charge: u64) -> Option<Buf> {
        let list = self.list_of(slot);
        self.lists[list].bytes += charge;
        self.lists[list].bytes -= self[slot].charge;
        self[slot].charge = charge;
        self.content_mut(slot).buf.replace(buf)
    }

    pub(crate) fn content(&self, slot: u32) -> &Content {
        &self.contents[slot as usize]
    }

    pub(crate) fn content_mut(&mut self, slot: u32) -> &mut Content {
        &mut self.contents[slot as usize]
    }

    fn list_of(&self, slot: u32) -> usize {
        number(self[slot].kind, self[slot].part)
    }

    fn link(&mut self, slot: u32) {
        let number = self.list_of(slot);
        let list = &mut self.lists[number];
        let tail = std::mem::replace(&mut list.tail, slot);
        if tail == NIL {
            list.head = slot;
        }
        list.count += 1;
        list.bytes += self.entries[slot as usize].charge;
        if tail != NIL {
            self[tail].newer = slot;
        }
        let entry = &mut self[slot];
        entry.older = tail;
        entry.newer = NIL;
    }

    fn unlink(&mut self, slot: u32) {
        let number = self.list_of(slot);
        let (older, newer, charge) = (self[slot].older, self[slot].newer, self[slot].charge);
        match older {
            NIL => self.lists[number].head = newer,
            _ => self[older].newer = newer,
        }
        match newer {
            NIL => self.lists[number].tail = older,
            _ => self[newer].older = older,
        }
        self.lists[number].count -= 1;
        self.lists[number].bytes -= charge;
    }
}

impl Index<u32> for Lists {
    type Output = Entry;

    fn index(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }
}

impl IndexMut<u32> for Lists {
    fn index_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.entries[slot as usize]
    }
}
