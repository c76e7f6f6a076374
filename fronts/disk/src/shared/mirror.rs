//! A volume that becomes a copy of another while that is in use.
//!
//! ```text
//!   0 ─────────────── copied ─────────────────────────────── size
//!     written to both │ chunk │ written to the first alone: the copy comes by later
//! ```
//!
//! The copy goes from the start to the end, a chunk at a time. Whoever changes a range and the copy that works at a chunk
//! take turns, so both volumes see overlapping changes in one order; who comes after the copy asked for its chunk goes
//! after it, or a chunk that is always being written to would never be copied. A change that fails in the first, or whose
//! client does not wait for its end, leaves a range of which it is not known what it holds: it is copied again in the end,
//! when no client writes ([`Mirror::catch_up`]). A change that fails in the other ends the copy, and nothing else.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};
use world::sync::{Notify, RangeLock, RangeLocks};
use world::{Buf, IoBuf};
use zvol::{Piece, Volume};

/// How much is copied at once: as long as a writer waits at most.
const CHUNK: u64 = 1 << 20;
/// More ranges than this to be copied again, and the copy is given up.
const AGAIN_MAX: usize = 4096;

#[derive(Debug)]
pub struct Mirror {
    from: Volume,
    to: Volume,
    /// In bytes.
    turns: RangeLocks,
    /// What the copy waits for.
    wanted: Mutex<Range<u64>>,
    had: Notify,
    copied: AtomicU64,
    /// Where the other was written to beyond what was copied: holes there must be made.
    written: AtomicU64,
    troubles: Mutex<Troubles>,
}

#[derive(Debug, Default)]
struct Troubles {
    /// Ranges of which it is not known what they hold.
    again: Vec<Range<u64>>,
    failure: Option<Error>,
}

/// A change that has begun; dropped before it was settled, it is not known how far it came.
struct Unsettled<'a> {
    mirror: &'a Mirror,
    range: Option<Range<u64>>,
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if let Some(range) = self.range.take() {
            self.mirror.repeat(range);
        }
    }
}

/// What the copy asks for, until it has it.
struct Wanted<'a>(&'a Mirror);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        *self.0.wanted() = 0..0;
        self.0.had.notify_all();
    }
}

impl Mirror {
    pub fn new(from: Volume, to: Volume) -> Mirror {
        Mirror {
            from,
            to,
            turns: RangeLocks::default(),
            wanted: Mutex::new(0..0),
            had: Notify::new(),
            copied: AtomicU64::new(0),
            written: AtomicU64::new(0),
            troubles: Mutex::default(),
        }
    }

    /// The volume that becomes the copy.
    pub fn volume(&self) -> &Volume {
        &self.to
    }

    /// Bytes, from the start.
    pub fn copied(&self) -> u64 {
        self.copied.load(Ordering::Acquire)
    }

    fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, Range<u64>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn of the copy, before all who come from now on.
    async fn turn_of_copy(&self, range: Range<u64>) -> RangeLock {
        self.wanted().clone_from(&range);
        let _wanted = Wanted(self);
        self.turns.take(range).await
    }

    async fn turn_of_writer(&self, range: &Range<u64>) -> RangeLock {
        let is_wanted = || {
            let wanted = self.wanted();
            wanted.start < range.end && range.start < wanted.end
        };
        if is_wanted() {
            self.had.until(|| (!is_wanted()).then_some(())).await;
        }
        self.turns.take(range.clone()).await
    }

    fn repeat(&self, range: Range<u64>) {
        let mut troubles = self.troubles();
        if troubles.again.len() < AGAIN_MAX {
            troubles.again.push(range);
        } else {
            let e = Error::new(Kind::Cancelled, "copy volume").because("too many writes were given up");
            troubles.failure.get_or_insert(e);
        }
    }

    /// Changes a range of the first, which decides what the client is told, and then of the other.
    pub async fn change(
        &self,
        range: Range<u64>,
        here: impl Future<Output = Result<()>>,
        there: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        if range.is_empty() {
            return here.await;
        }
        let _turn = self.turn_of_writer(&range).await;
        let mut unsettled = Unsettled { mirror: self, range: Some(range.clone()) };
        here.await?;
        if range.start < self.copied() {
            self.written.fetch_max(range.end, Ordering::AcqRel);
            if let Err(e) = there.await {
                self.troubles().failure.get_or_insert(e);
            }
        }
        unsettled.range = None;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.troubles().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Copies what comes next; whether there is more.
    pub async fn advance(&self) -> Result<bool> {
        self.check()?;
        let (start, size) = (self.copied(), self.from.size());
        if start >= size {
            return Ok(false);
        }
        // A long hole is passed at once, if it still is one when no client can write to it.
        let hole = self.hole(start, size).await?;
        let chunk = CHUNK.max(self.to.block_size());
        let end = hole.max(start + chunk).next_multiple_of(self.to.block_size()).min(size);
        let _turn = self.turn_of_copy(start..end).await;
        let is_used = start < self.written.load(Ordering::Acquire);
        let end = match self.hole(start, end).await? {
            hole if hole < end => {
                let end = (start + chunk).min(size);
                self.copy(start..end, is_used).await?;
                end
            }
            _ if is_used => {
                self.to.zero(start, end - start).await?;
                end
            }
            _ => end,
        };
        self.copied.store(end, Ordering::Release);
        Ok(end < size)
    }

    /// The end of the hole at `start`, which is there itself when there is none.
    async fn hole(&self, start: u64, end: u64) -> Result<u64> {
        let extents = self.from.extents(start, end - start, 1).await?;
        Ok(start + extents.first().filter(|extent| extent.hole).map_or(0, |extent| extent.len))
    }

    /// Copies again the ranges whose state is not known. No client may be writing.
    pub async fn catch_up(&self) -> Result<()> {
        self.check()?;
        if self.from.size() != self.to.size() || self.copied() < self.from.size() {
            return Err(Error::new(Kind::Cancelled, "copy volume").because("its size was changed meanwhile"));
        }
        let again = std::mem::take(&mut self.troubles().again);
        let (block, size) = (self.to.block_size(), self.to.size());
        for range in again {
            let (mut at, end) = (range.start / block * block, range.end.next_multiple_of(block).min(size));
            while at < end {
                let to = (at + CHUNK.max(block)).min(end);
                self.copy(at..to, true).await?;
                at = to;
            }
        }
        Ok(())
    }

    /// Copies a range that begins with a block of the other. `used`: there may be something in the other.
    async fn copy(&self, range: Range<u64>, used: bool) -> Result<()> {
        let block = self.to.block_size();
        let mut at = range.start;
        let mut pieces = self.from.pieces(range.start, range.end - range.start).await?.into_iter();
        let mut piece = pieces.next();
        while at < range.end {
            let len = block.min(range.end - at);
            let mut filled: Option<IoBuf> = None;
            let mut done = 0;
            while done < len {
                let step = match piece.take() {
                    Some(Piece::Hole(hole)) => {
                        let step = hole.min(len - done);
                        piece = (hole > step).then_some(Piece::Hole(hole - step));
                        step
                    }
                    Some(Piece::Data(buf)) => {
                        let step = (buf.len() as u64).min(len - done);
                        let into = filled.get_or_insert_with(|| IoBuf::zeroed(len as usize));
                        into[done as usize..(done + step) as usize].copy_from_slice(&buf[..step as usize]);
                        let rest = || Piece::Data(buf.slice(step as usize..buf.len()));
                        piece = (buf.len() as u64 > step).then(rest);
                        step
                    }
                    None => return Err(Error::corrupt("a volume returned less than was read")),
                };
                if piece.is_none() {
                    piece = pieces.next();
                }
                done += step;
            }
            match filled {
                Some(bytes) => self.put(at, bytes.freeze()).await?,
                None if used => self.to.zero(at, len).await?,
                None => {}
            }
            at += len;
        }
        Ok(())
    }

    async fn put(&self, at: u64, bytes: Buf) -> Result<()> {
        self.to.write_parts(at, vec![bytes], false).await
    }
}
