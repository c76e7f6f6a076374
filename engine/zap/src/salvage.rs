//! Listing a damaged ZAP: around what cannot be read.
//!
//! A listing goes from leaf to leaf by the pointer table. At the first block that it cannot read it leaves the table, and
//! looks through all blocks: a leaf says itself of which hashes it is.
//!
//! ```text
//!   salvage ── leaf, leaf, leaf ──damage──▶ every block of the object: leaves of the hashes from there on
//!      └─────── header lost ─────────────▶ every block of the object: all leaves
//! ```
//!
//! So a leaf that is damaged costs its own entries, an entry without a legible name or value itself alone, and header and
//! pointer table nothing. Each is a [`Gap`], which the caller must say, or the listing is a lie: this is for programs that
//! rescue. All others go by [`Zap::page`], which ends at damage.

use crate::Zap;
use crate::blocks::Blocks;
use crate::cursor::Cursor;
use crate::fat::read::{Fat, at_block, behind, position, read_leaf};
use crate::hash::Rules;
use crate::key::OwnedKey;
use crate::leaf::{EntryChunk, Leaf, prefix_of};
use crate::micro::Micro;
use crate::normalize::Normalization;
use crate::read::Opened;
use crate::value::Entry;
use ondisk::zap::ZapFlags;
use units::{Error, Result};
use world::Buf;

/// After so many blocks in a row that are no leaves the rest is given up: how many there are may be a lie.
const PATIENCE: u64 = 1 << 16;

/// What a listing has left out.
#[derive(Debug)]
pub struct Gap {
    /// Why the first block or entry cannot be read.
    pub why: Error,
    /// How many more cannot be, before the next that can.
    pub more: u64,
}

/// Some of the entries of a ZAP that may be damaged.
#[derive(Debug)]
pub struct Salvaged {
    /// In listing order, each with the cookie behind it.
    pub entries: Vec<(Entry, u64)>,
    pub gaps: Vec<Gap>,
    /// The cookie of the rest; `None` behind the last entry.
    pub next: Option<u64>,
}

/// As [`Salvaged`], before there are cookies.
struct Found {
    rules: Rules,
    /// Where the listing starts.
    from: Cursor,
    entries: Vec<(Cursor, Entry)>,
    gaps: Vec<Gap>,
    /// How many entries there were before the last gap.
    before: usize,
}

impl<S: Blocks> Zap<S> {
    /// The entries from `cookie` on that can be read: at least so many and to the end of the leaf that they end in, or all
    /// when there is damage before that. An error says why there are none.
    pub async fn salvage(&self, cookie: u64, at_least: usize) -> Result<Salvaged> {
        let _turn = self.turn.read().await;
        match self.opened().await {
            Ok(opened) => {
                let rules = opened.rules();
                let found = Found::new(rules, Cursor::from_cookie(cookie, &rules));
                Ok(match &opened {
                    Opened::Micro(names) => found.micro(&names.micro, &self.blocks.name()),
                    Opened::Fat(fat) => found.fat(fat, at_least).await,
                })
            }
            Err(why) => {
                // What the header would say is the same for all directories, but for what only a lookup needs.
                let rules = Rules { salt: 1, norm: Normalization::NONE, flags: ZapFlags::default() };
                let mut found = Found::new(rules, Cursor::START);
                // What is no leaf is the table.
                found.look_through(&self.blocks, |_, is_read| is_read).await;
                if found.entries.is_empty() {
                    return Err(why);
                }
                found.gaps.insert(0, Gap { why, more: 0 });
                Ok(found.end(None))
            }
        }
    }
}

impl Found {
    fn new(rules: Rules, from: Cursor) -> Found {
        Found { rules, from, entries: Vec::new(), gaps: Vec::new(), before: 0 }
    }

    fn micro(mut self, micro: &Micro, name: &str) -> Salvaged {
        for slot in micro.slots() {
            match slot {
                Ok(slot) => {
                    let entry = Entry { key: OwnedKey::Name(slot.name.to_vec()), value: slot.value.into() };
                    self.entries.push((micro.position(&slot), entry));
                }
                Err(e) => self.miss(e.at(name)),
            }
        }
        self.entries.retain(|(at, _)| *at >= self.from);
        self.end(None)
    }

    async fn fat<S: Blocks>(mut self, fat: &Fat<'_, S>, at_least: usize) -> Salvaged {
        let mut next = Some(self.from);
        while let Some(from) = next.filter(|_| self.entries.len() < at_least) {
            self.from = from;
            let mut said = None;
            let leaf = match fat.pointer_of(from.hash).await {
                Ok(blkid) => {
                    said = Some(blkid);
                    read_leaf(fat.store, &fat.header, blkid, from.hash).await.map(|leaf| (blkid, leaf))
                }
                Err(e) => Err(e),
            };
            match leaf {
                Ok((blkid, leaf)) => {
                    self.take(&leaf, |e| at_block(e, fat.store, blkid));
                    next = behind(&leaf);
                }
                Err(why) => {
                    self.miss(why);
                    let is_known = |blkid, _| said == Some(blkid) || fat.header.is_of_table(blkid);
                    self.look_through(fat.store, is_known).await;
                    next = None;
                }
            }
        }
        self.end(next)
    }

    /// Takes what is legible of all leaves. Of blocks that are known, by their number and by whether they can be read, it
    /// is not said that they are none.
    async fn look_through<S: Blocks>(&mut self, store: &S, is_known: impl Fn(u64, bool) -> bool) {
        let mut idle = 0;
        for blkid in 1..store.block_count() {
            let leaf = match store.read_block(blkid).await {
                // A hole, where there was a leaf or a part of the table.
                Ok(bytes) if bytes.iter().all(|byte| *byte == 0) => None,
                Ok(bytes) => Some(Leaf::of(bytes).map_err(|e| (at_block(e, store, blkid), true))),
                Err(e) => Some(Err((e, false))),
            };
            idle += 1;
            match leaf {
                Some(Ok(leaf)) => {
                    idle = 0;
                    // Those before were listed.
                    if behind(&leaf).is_none_or(|end| end.hash > self.from.hash) {
                        self.take(&leaf, |e| at_block(e, store, blkid));
                    }
                }
                Some(Err((why, is_read))) if !is_known(blkid, is_read) => self.miss(why),
                _ => {}
            }
            if idle == PATIENCE {
                return;
            }
        }
    }

    /// What is legible of a leaf. Its chains are not gone by, as one that is broken would hide what is behind.
    fn take(&mut self, leaf: &Leaf<Buf>, place: impl Fn(Error) -> Error) {
        let mut faults = Vec::new();
        let mut count = 0;
        for chunk in leaf.entry_chunks() {
            let read = |e: EntryChunk| {
                let entry = Entry { key: leaf.key_of(&e, &self.rules)?, value: leaf.value_of(&e)? };
                Ok((position(&e), entry))
            };
            count += 1;
            match chunk.and_then(read) {
                // An entry that is in the wrong leaf comes with the leaf.
                Ok((at, _)) if at < self.from && prefix_of(at.hash, leaf.prefix_len()) == leaf.prefix() => {}
                Ok(entry) => self.entries.push(entry),
                Err(e) => faults.push(e),
            }
        }
        if count != leaf.len() {
            faults.push(Error::corrupt(format!("ZAP leaf: {count} of {} entries", leaf.len())));
        }
        faults.into_iter().for_each(|why| self.miss(place(why)));
    }

    fn miss(&mut self, why: Error) {
        match self.gaps.last_mut().filter(|_| self.before == self.entries.len()) {
            Some(gap) => gap.more += 1,
            None => self.gaps.push(Gap { why, more: 0 }),
        }
        self.before = self.entries.len();
    }

    fn end(mut self, next: Option<Cursor>) -> Salvaged {
        self.entries.sort_by_key(|(at, _)| *at);
        let entries = self.entries.into_iter();
        Salvaged {
            entries: entries.map(|(at, entry)| (entry, at.behind().cookie(&self.rules))).collect(),
            gaps: self.gaps,
            next: next.map(|at| at.cookie(&self.rules)),
        }
    }
}
