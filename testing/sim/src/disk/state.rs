//! The inside of one disk: what a read sees, what is durable, and what lies between.
//!
//! ```text
//!   write issued ──▶ in flight ──▶ completed: in `view`, and in `unflushed` ──▶ flushed: in `durable`
//!                        │                          │                              │
//!   power cut:      any part, torn            any part, torn                     all of it
//! ```

use super::host::Place;
use crate::fault::Fault;
use crate::image::Image;
use crate::model::{Cache, Model};
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::Duration;
use world::{Buf, Instant};

#[derive(Clone)]
pub(super) struct Write {
    pub offset: u64,
    pub parts: Vec<Buf>,
}

impl Write {
    fn apply(&self, image: &mut Image) {
        let mut at = self.offset;
        for part in &self.parts {
            image.write(at, part);
            at += part.len() as u64;
        }
    }

    /// Its first bytes alone.
    pub fn first(self, len: u64) -> Write {
        let mut left = len as usize;
        let cut = |part: Buf| {
            let kept = part.slice(0..left.min(part.len()));
            left -= kept.len();
            kept
        };
        Write { offset: self.offset, parts: self.parts.into_iter().map(cut).collect() }
    }

    fn len(&self) -> u64 {
        self.parts.iter().map(|p| p.len() as u64).sum()
    }
}

#[derive(Clone)]
pub(super) struct State {
    pub size: u64,
    pub model: Model,
    pub fault: Fault,
    /// What reads see.
    pub view: Image,
    /// What survives a cut.
    pub durable: Image,
    /// Completed and not durable, in the order of completion; each with its number in that order.
    unflushed: VecDeque<(u64, Write)>,
    completed: u64,
    /// Issued, and not completed, by number.
    pub in_flight: BTreeMap<u64, Write>,
    issued: u64,
    /// Faults to come, by the number of the write at which they begin.
    pub script: BTreeMap<u64, Fault>,
    /// Reads of these fail until they are written again.
    pub bad: Vec<Range<u64>>,
    busy_until: Vec<Instant>,
    head: u64,
    dirty_bytes: u64,
    pub opened_for_writing: bool,
    /// How often it was unplugged: what was opened before the last time stays dead, as a descriptor does.
    pub unplugged: u64,
    /// What it has of its host; one of its own has its room for itself.
    pub place: Option<Place>,
    /// Writes for which the host had no room.
    pub refused: u64,
}

impl State {
    pub fn new(size: u64, model: Model) -> State {
        State {
            size,
            model,
            fault: Fault::default(),
            view: Image::default(),
            durable: Image::default(),
            unflushed: VecDeque::new(),
            completed: 0,
            in_flight: BTreeMap::new(),
            issued: 0,
            script: BTreeMap::new(),
            bad: Vec::new(),
            busy_until: vec![Instant(0); model.channels.max(1)],
            head: 0,
            dirty_bytes: 0,
            opened_for_writing: false,
            unplugged: 0,
            place: None,
            refused: 0,
        }
    }

    /// How many writes were issued so far.
    pub fn writes(&self) -> u64 {
        self.issued
    }

    /// When an operation of this kind, given to the disk now, is done.
    pub fn schedule(&mut self, now: Instant, base: Duration, offset: u64, len: u64) -> Instant {
        let moving = if offset == self.head { Duration::ZERO } else { self.model.seek };
        self.head = offset + len;
        let transfer = per_mib(self.model.per_mib, len);
        let channel = self.busy_until.iter_mut().min().expect("a disk has a channel");
        *channel = (*channel).max(now).after(base + moving + transfer + self.fault.delay);
        *channel
    }

    pub fn schedule_flush(&mut self, now: Instant) -> Instant {
        let dirty = std::mem::take(&mut self.dirty_bytes);
        let start = if dirty > 0 { self.model.flush_dirty } else { Duration::ZERO };
        let destage = start + per_mib(self.model.flush_per_mib, dirty);
        let head = self.head;
        self.schedule(now, self.model.flush + destage, head, 0)
    }

    /// Numbers a write that is being issued; the script may have something for it.
    pub fn number(&mut self) -> u64 {
        self.issued += 1;
        if let Some(fault) = self.script.remove(&self.issued) {
            self.fault = fault;
        }
        self.issued
    }

    pub fn complete(&mut self, write: Write) {
        let len = write.len();
        let range = write.offset..write.offset + len;
        self.bad.retain(|bad| bad.end <= range.start || bad.start >= range.end);
        self.dirty_bytes += len;
        write.apply(&mut self.view);
        match self.model.cache {
            Cache::Protected => write.apply(&mut self.durable),
            Cache::Volatile => {
                self.completed += 1;
                self.unflushed.push_back((self.completed, write));
            }
        }
    }

    /// What a flush issued now will make durable: everything completed up to here.
    pub fn flush_mark(&self) -> u64 {
        self.completed
    }

    pub fn flush_to(&mut self, mark: u64) {
        while let Some((_, write)) = self.unflushed.pop_front_if(|(number, _)| *number <= mark) {
            write.apply(&mut self.durable);
        }
    }

    /// Loses what has completed and is not durable.
    pub fn lose_cache(&mut self) {
        self.unflushed.clear();
        self.dirty_bytes = 0;
        self.view = self.durable.clone();
    }

    /// Time starts again, nothing is busy; what was on its way arrives.
    pub fn restart(&mut self) {
        self.busy_until.fill(Instant(0));
        self.opened_for_writing = false;
        for (_, write) in std::mem::take(&mut self.in_flight) {
            self.complete(write);
        }
    }

    pub fn resize(&mut self, size: u64) {
        self.size = size;
        self.view.truncate(size);
        self.durable.truncate(size);
    }

    /// Loses its cache, and is gone until another fault is set; then it must be opened anew.
    pub fn unplug(&mut self) {
        self.fault = Fault { gone: true, ..Fault::default() };
        self.unplugged += 1;
        self.opened_for_writing = false;
        self.in_flight.clear();
        self.lose_cache();
    }

    /// Whether what was opened after so many times of unplugging still works.
    pub fn answers(&self, unplugged: u64) -> io::Result<()> {
        match self.fault.gone || self.unplugged != unplugged {
            true => Err(io::Error::other("the device is gone")),
            false => Ok(()),
        }
    }

    pub fn check(&self, offset: u64, len: u64) -> io::Result<()> {
        let unit = u64::from(self.model.logical_block);
        if !offset.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not aligned to the device's blocks"));
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the device")),
        }
    }

    pub fn is_bad(&self, offset: u64, len: u64) -> bool {
        self.bad.iter().any(|bad| bad.start < offset + len && offset < bad.end)
    }

    /// Loses, by `rng`, what a real disk might lose.
    pub fn power_cut(&mut self, rng: &mut Rng) {
        let completed = std::mem::take(&mut self.unflushed).into_iter().map(|(_, write)| write);
        let on_the_way = std::mem::take(&mut self.in_flight).into_values();
        let writes: Vec<Write> = completed.chain(on_the_way).collect();
        let pattern = Pattern::draw(rng, writes.len() as u64);
        for (i, write) in writes.iter().enumerate() {
            match pattern.fate(i as u64, rng) {
                Fate::Kept => write.apply(&mut self.durable),
                Fate::Lost => {}
                Fate::Torn => self.tear(write, rng),
            }
        }
        self.view = self.durable.clone();
        self.dirty_bytes = 0;
        self.opened_for_writing = false;
    }

    /// Keeps any of the write's sectors; a sector itself is never torn.
    fn tear(&mut self, write: &Write, rng: &mut Rng) {
        let mut at = write.offset;
        for part in &write.parts {
            for sector in part.chunks(self.model.logical_block as usize) {
                if rng.below(2) == 0 {
                    self.durable.write(at, sector);
                }
                at += sector.len() as u64;
            }
        }
    }
}

fn per_mib(cost: Duration, bytes: u64) -> Duration {
    cost.mul_f64(bytes as f64 / (1 << 20) as f64)
}

/// What one power cut does to the cache of one disk. The tidy patterns are those that hide behind chance when every
/// write is decided alone: all or nothing, only the oldest, only the newest.
enum Pattern {
    Nothing,
    All,
    /// The first so many arrive, the next is torn.
    Oldest(u64),
    /// The writes from this one on arrive, those before are lost: the disk reordered.
    Newest(u64),
    EachAlone,
}

enum Fate {
    Kept,
    Lost,
    Torn,
}

impl Pattern {
    fn draw(rng: &mut Rng, count: u64) -> Pattern {
        match rng.below(8) {
            0 => Pattern::Nothing,
            1 => Pattern::All,
            2 => Pattern::Oldest(rng.below(count + 1)),
            3 => Pattern::Newest(rng.below(count + 1)),
            _ => Pattern::EachAlone,
        }
    }

    fn fate(&self, index: u64, rng: &mut Rng) -> Fate {
        match *self {
            Pattern::Nothing => Fate::Lost,
            Pattern::All => Fate::Kept,
            Pattern::Oldest(n) if index < n => Fate::Kept,
            Pattern::Oldest(n) if index == n => Fate::Torn,
            Pattern::Oldest(_) => Fate::Lost,
            Pattern::Newest(n) if index < n => Fate::Lost,
            Pattern::Newest(_) => Fate::Kept,
            Pattern::EachAlone => match rng.below(4) {
                0 => Fate::Lost,
                3 => Fate::Torn,
                _ => Fate::Kept,
            },
        }
    }
}
