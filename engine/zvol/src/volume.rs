//! An open volume.

use crate::{DATA, PROPERTIES, SIZE};
use dmu::{Missed, ObjSet, Object, PieceToFree, PrefetchStreams, Shape, Sought, SyncMode, Tx};
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use txg::{Claim, Reach, SpaceReservation, Txgs};
use units::{Error, Kind, Result, Txg};
use world::Buf;
use world::sync::{RangeLocks, ReadGuard, RwLock};
use zap::{Value, Zap};
use zil::Log;

/// How many blocks of one read are asked for at once: enough for a disk that does many things at a time.
const AT_ONCE: usize = 32;
/// Runs of one kind that are looked at for one answer about what is data and what is hole.
const RUNS_MAX: usize = 1 << 12;

/// A run of bytes that is all data or all hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub len: u64,
    pub hole: bool,
}

/// A part of what a read returns.
#[derive(Clone, Debug)]
pub enum Piece {
    Data(Buf),
    /// So many zeros that are stored nowhere.
    Hole(u64),
}

impl Piece {
    /// Its bytes; those of a hole are made.
    pub fn into_buf(self) -> Buf {
        match self {
            Piece::Data(buf) => buf,
            Piece::Hole(len) => Buf::zeroed(len as usize),
        }
    }
}

/// A read that has [begun](Volume::begin_read).
#[derive(Debug)]
pub enum Begun {
    /// No device need be asked.
    Done(Result<Vec<Piece>>),
    Waits(Waiting),
}

/// A read that must ask a device: [`Volume::finish_read`].
#[derive(Debug)]
pub struct Waiting {
    offset: u64,
    len: u64,
    /// The block, of a read of one.
    missed: Option<Box<Missed>>,
}

/// See the crate. Clones are the same volume.
#[derive(Clone, Debug)]
pub struct Volume(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    set: ObjSet,
    data: Object,
    properties: Zap<Object>,
    size: AtomicU64,
    block_size: u64,
    /// `None` for a volume that cannot be written: a snapshot, or a pool opened read-only.
    txgs: Option<Txgs>,
    /// Where none was set, there is room without end.
    space_reservation: OnceLock<Arc<SpaceReservation>>,
    /// Without a log a flush waits for a txg.
    log: OnceLock<Log>,
    /// Where panics are told.
    domain: OnceLock<Arc<dyn world::Domain>>,
    locks: RangeLocks,
    /// Shared by changes from when they have their txg; held by a resize that moves the end to the front. Range locks are
    /// taken by changes that still wait for a txg, and a resize is made by the sync that they wait for.
    end: RwLock<()>,
    prefetch_streams: PrefetchStreams,
    /// The newest txg that a write of this volume went into.
    written_in: AtomicU64,
}

impl Volume {
    /// Opens the volume in `set`; without `txgs` it is read-only.
    pub async fn open(name: &str, set: &ObjSet, txgs: Option<Txgs>) -> Result<Volume> {
        let place = |e: Error| e.at(format!("volume '{name}'"));
        let data = set.object(DATA).await.map_err(place)?;
        let properties = Zap::open(set.object(PROPERTIES).await.map_err(place)?);
        let size = properties
            .lookup_u64(SIZE)
            .await
            .map_err(place)?
            .ok_or_else(|| place(Error::corrupt("no entry 'size' among the volume's properties")))?;
        if size >> 63 != 0 {
            return Err(place(Error::corrupt(format!("a size of {size} bytes"))));
        }
        let inner = Inner {
            name: name.into(),
            set: set.clone(),
            block_size: data.block_size(),
            data,
            properties,
            size: AtomicU64::new(size),
            txgs,
            space_reservation: OnceLock::new(),
            log: OnceLock::new(),
            domain: OnceLock::new(),
            locks: RangeLocks::default(),
            end: RwLock::new(()),
            prefetch_streams: PrefetchStreams::default(),
            written_in: AtomicU64::new(0),
        };
        Ok(Volume(Arc::new(inner)))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// `volsize`, bytes.
    pub fn size(&self) -> u64 {
        self.0.size.load(Ordering::Acquire)
    }

    /// `volblocksize`, bytes.
    pub fn block_size(&self) -> u64 {
        self.0.block_size
    }

    /// It is of a pool that is only read, of a snapshot, or its property `readonly` is on.
    pub fn is_read_only(&self) -> bool {
        self.0.txgs.is_none() || self.0.set.policy().read_only
    }

    /// Its pool is suspended, and changes wait until that goes on, and so may reads; not where they fail meanwhile
    /// (`failmode=continue`). Of a volume that is never written to this says nothing.
    pub fn is_suspended(&self) -> bool {
        self.0.txgs.as_ref().is_some_and(Txgs::makes_wait)
    }

    /// What the volume is charged for, bytes, as of the last txg.
    pub fn used(&self) -> u64 {
        self.0.data.used()
    }

    fn check(&self, offset: u64, len: u64, doing: &str) -> Result<()> {
        let size = self.size();
        if offset.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        Err(Error::invalid(format!("{doing} {len} bytes at {offset}: '{}' ends at {size}", self.0.name)))
    }

    /// Keeps the end of the volume where it is for a change that has joined a txg, which may have had to wait for that:
    /// checks again that the range is inside.
    async fn keep_end(&self, offset: u64, len: u64, doing: &str) -> Result<ReadGuard<'_, ()>> {
        let end = self.0.end.read().await;
        self.check(offset, len, doing)?;
        Ok(end)
    }

    fn txgs(&self) -> Result<&Txgs> {
        let denied = || Error::new(Kind::ReadOnly, format!("write to volume '{}'", self.0.name));
        self.0.txgs.as_ref().filter(|_| !self.0.set.policy().read_only).ok_or_else(denied)
    }

    /// The blocks that a range touches.
    fn blocks(&self, offset: u64, len: u64) -> Range<u64> {
        offset / self.0.block_size..(offset + len).div_ceil(self.0.block_size)
    }

    fn read_ahead(&self, range: Range<u64>) {
        let shape = Shape { block_size: self.0.block_size, max_blkid: Shape::UNENDING };
        self.0.data.observe_read(&self.0.prefetch_streams, shape, range);
    }

    /// Reads a range as the pieces of the blocks it touches; nothing is copied, and a hole is one piece.
    pub async fn pieces(&self, offset: u64, len: u64) -> Result<Vec<Piece>> {
        match self.begin_read(offset, len) {
            Begun::Done(read) => read,
            Begun::Waits(waiting) => self.finish_read(waiting).await,
        }
    }

    /// Begins what [`Volume::pieces`] does, and ends it when no device need be asked.
    pub fn begin_read(&self, offset: u64, len: u64) -> Begun {
        if let Err(e) = self.check(offset, len, "read") {
            return Begun::Done(Err(e));
        }
        let blocks = self.blocks(offset, len);
        let mut pieces = Vec::new();
        let (mut blkid, mut is_at_hand) = (blocks.start, true);
        while blkid < blocks.end {
            let (block, next) = match self.0.data.block_at_hand(blkid) {
                Some(block) => (Some(block), blkid + 1),
                None => {
                    is_at_hand = false;
                    match self.0.data.seek_block(blkid) {
                        Sought::Found(Some(block)) => (Some(block), blkid + 1),
                        Sought::Found(None) => (None, self.end_of_hole(blkid, blocks.end)),
                        Sought::Missed(missed) => {
                            let missed = (blocks.end - blocks.start == 1).then_some(missed);
                            return Begun::Waits(Waiting { offset, len, missed });
                        }
                    }
                }
            };
            self.add(&mut pieces, block, blkid..next, offset, len);
            blkid = next;
        }
        match is_at_hand {
            true => self.0.data.observe_at_hand(&self.0.prefetch_streams, offset..offset + len),
            false => self.read_ahead(offset..offset + len),
        }
        Begun::Done(Ok(pieces))
    }

    /// Ends a read that waits for devices.
    pub async fn finish_read(&self, Waiting { offset, len, missed }: Waiting) -> Result<Vec<Piece>> {
        self.read_ahead(offset..offset + len);
        let (data, blocks) = (&self.0.data, self.blocks(offset, len));
        let mut pieces = Vec::new();
        if let Some(missed) = missed {
            // As most requests have it: what waits for several is dearer than a small block.
            let block = data.read_missed(missed).await?;
            self.add(&mut pieces, block, blocks, offset, len);
            return Ok(pieces);
        }
        let (mut runs, mut next) = (FuturesOrdered::new(), blocks.start);
        loop {
            while runs.len() < AT_ONCE && next < blocks.end {
                let sought = data.seek_block(next);
                let run = match &sought {
                    Sought::Found(None) => next..self.end_of_hole(next, blocks.end),
                    _ => next..next + 1,
                };
                next = run.end;
                runs.push_back(async move {
                    let block = match sought {
                        Sought::Found(block) => block,
                        Sought::Missed(missed) => data.read_missed(missed).await?,
                    };
                    Ok::<_, Error>((block, run))
                });
            }
            let Some(run) = runs.next().await else { return Ok(pieces) };
            let (block, run) = run?;
            self.add(&mut pieces, block, run, offset, len);
        }
    }

    /// Where the hole that this block is ends, as far as is known in memory and up to `max`.
    fn end_of_hole(&self, blkid: u64, max: u64) -> u64 {
        match (blkid + 1 < max).then(|| self.0.data.cached_extent(blkid)).flatten() {
            Some((false, end)) => end.min(max),
            _ => blkid + 1,
        }
    }

    /// As [`Volume::pieces`], with zeros for holes.
    pub async fn read(&self, offset: u64, len: u64) -> Result<Vec<Buf>> {
        Ok(self.pieces(offset, len).await?.into_iter().map(Piece::into_buf).collect())
    }

    /// Appends the part of a run of blocks that lies in the range: one block of data, or a hole of any length, which
    /// joins the one before it.
    fn add(
        &self,
        pieces: &mut Vec<Piece>,
        block: Option<Buf>,
        blocks: std::ops::Range<u64>,
        offset: u64,
        len: u64,
    ) {
        if let Some(block) = block {
            pieces.push(Piece::Data(self.cut(block, blocks.start, offset, len)));
            return;
        }
        let size = self.0.block_size;
        let hole = (offset + len).min(blocks.end * size) - offset.max(blocks.start * size);
        match pieces.last_mut() {
            Some(Piece::Hole(before)) => *before += hole,
            _ => pieces.push(Piece::Hole(hole)),
        }
    }

    /// The part of a block that lies in the range.
    fn cut(&self, block: Buf, blkid: u64, offset: u64, len: u64) -> Buf {
        let start = blkid * self.0.block_size;
        let from = offset.saturating_sub(start);
        let to = (offset + len - start).min(self.0.block_size);
        if from == 0 && to == block.len() as u64 { block } else { block.slice(from as usize..to as usize) }
    }

    /// From now on writes must fit `space_reservation`; set once, before the first write.
    pub fn limit(&self, space_reservation: Arc<SpaceReservation>) {
        assert!(self.0.space_reservation.set(space_reservation).is_ok(), "the room of a volume is set once");
    }

    /// From now on changes go into `log`, and a flush commits that; set once, before the first write.
    pub fn log_to(&self, log: Log) {
        assert!(self.0.log.set(log).is_ok(), "the log of a volume is set once");
    }

    /// From now on the pool is told of panics in what is [guarded](Volume::guard); set once.
    pub fn tell_panics(&self, domain: Arc<dyn world::Domain>) {
        assert!(self.0.domain.set(domain).is_ok(), "the domain of a volume is set once");
    }

    /// Works on the volume for a client: a panic is the pool's failure and an error here, and the client's session goes on.
    pub fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> impl Future<Output = Result<T>> {
        match self.0.domain.get() {
            None => work.left_future(),
            Some(domain) => {
                let told = |done: Result<_, world::Panic>| done.unwrap_or_else(|panic| Err(of_panic(panic)));
                world::within(domain.clone(), work).map(told).right_future()
            }
        }
    }

    /// As [`Volume::guard`], for [`Volume::begin_read`].
    pub fn begin_guarded_read(&self, offset: u64, len: u64) -> Begun {
        let Some(domain) = self.0.domain.get() else { return self.begin_read(offset, len) };
        world::within_now(domain, || self.begin_read(offset, len))
            .unwrap_or_else(|panic| Begun::Done(Err(of_panic(panic))))
    }

    /// With `sync=always` every change is made durable before it is acknowledged.
    fn is_always(&self) -> bool {
        self.0.log.get().is_some_and(|log| log.mode() == SyncMode::Always)
    }

    /// As [`Volume::flush`], apart from the change that asks for it: most do not, and would be as large as this is.
    fn made_durable(&self) -> world::Pending<Result<()>> {
        let volume = self.clone();
        Box::pin(async move { volume.flush().await })
    }

    /// What is left to do for a change that was made.
    async fn settle(&self) -> Result<()> {
        if self.is_always() { self.made_durable().await } else { Ok(()) }
    }

    /// Joins the open txg when there is room to write these blocks.
    async fn begin(&self, blocks: Range<u64>) -> Result<Tx> {
        let memory = (blocks.end - blocks.start) * self.0.block_size;
        let claim = Claim { memory, devices: self.0.data.cost_of_writing(blocks), reach: Reach::Normal };
        self.begin_in(memory, claim).await
    }

    /// As [`Volume::begin`], to make holes of these blocks: neither a quota nor a pool that is nearly full is in the way.
    async fn begin_freeing(&self, blocks: Range<u64>) -> Result<Tx> {
        let devices = self.0.data.cost_of_freeing(blocks);
        self.begin_in(0, Claim { memory: 0, devices, reach: Reach::Freeing }).await
    }

    async fn begin_in(&self, bytes: u64, claim: Claim) -> Result<Tx> {
        let txgs = self.txgs()?;
        let begun = match self.0.space_reservation.get() {
            Some(space_reservation) => txgs.begin_in(space_reservation, bytes, claim).await,
            None => txgs.begin_for(claim).await,
        };
        begun.map_err(|e| e.at(format!("volume '{}'", self.0.name)))
    }

    /// Writes `data` at `offset`. On return it is in memory, in a txg that will be synced and, to be, in the log:
    /// [`Volume::flush`] makes it durable.
    pub async fn write(&self, offset: u64, data: Buf) -> Result<()> {
        self.write_parts(offset, vec![data], false).await
    }

    /// Writes `data` at `offset`, durably (FUA).
    pub async fn write_durable(&self, offset: u64, data: Buf) -> Result<()> {
        self.write_parts(offset, vec![data], true).await
    }

    /// Writes `parts`, one behind the other, from `offset` on. A part that is exactly one block, in a buffer of its own,
    /// is kept uncopied.
    pub async fn write_parts(&self, offset: u64, parts: Vec<Buf>, durably: bool) -> Result<()> {
        self.put(offset, parts).await?;
        if durably { self.made_durable().await } else { self.settle().await }
    }

    async fn put(&self, offset: u64, parts: Vec<Buf>) -> Result<()> {
        let len = parts.iter().map(|p| p.len() as u64).sum();
        self.check(offset, len, "write")?;
        if len == 0 {
            return Ok(());
        }
        let _turn = self.0.locks.take(self.blocks(offset, len)).await;
        let tx = self.begin(self.blocks(offset, len)).await?;
        let _end = self.keep_end(offset, len, "write").await?;
        self.0.written_in.fetch_max(tx.txg().0, Ordering::AcqRel);
        let mut at = offset;
        for part in &parts {
            let len = part.len() as u64;
            if self.is_block(at, part) {
                self.0.data.write_block(&tx, at / len, part.clone())?;
            } else {
                self.0.data.write(&tx, at, part).await?;
            }
            at += len;
        }
        if let Some(log) = self.0.log.get() {
            log.write(&tx, &self.0.data, offset, &parts);
        }
        Ok(())
    }

    /// Whether these bytes are one whole block that may be kept: not a slice of something much larger, whose memory
    /// would live as long as the block does.
    fn is_block(&self, offset: u64, part: &Buf) -> bool {
        let len = part.len() as u64;
        len == self.0.block_size && offset.is_multiple_of(len) && part.capacity() < 2 * part.len()
    }

    /// Makes a range read as zeros; whole blocks in it become holes. A long range goes in pieces, each in its own txg.
    pub async fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len, "zero")?;
        let (size, end) = (self.0.block_size, offset + len);
        let mut at = offset;
        while at < end {
            let piece = self.piece_to_free(self.blocks(at, end - at)).await?;
            let stop = piece.blocks.end.saturating_mul(size).min(end);
            let _turn = self.0.locks.take(self.blocks(at, stop - at)).await;
            let (tx, _end) = self.begin_piece(&piece, at, stop - at, "zero").await?;
            self.0.data.free_range(&tx, at, stop - at).await?;
            self.log_truncate(&tx, at, stop - at);
            at = stop;
        }
        self.settle().await
    }

    /// Gives back the whole blocks of a range; what of it only touches a block is left as it is. A long range goes in
    /// pieces, each with a txg of its own.
    pub async fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len, "trim")?;
        let size = self.0.block_size;
        // The last block may reach past the end of the volume: then the end of the volume is its end.
        let end =
            if offset + len == self.size() { (offset + len).next_multiple_of(size) } else { offset + len };
        let mut left = offset.div_ceil(size)..end / size;
        while left.start < left.end {
            let piece = self.piece_to_free(left.clone()).await?;
            let blocks = piece.blocks.clone();
            let (from, to) = (blocks.start * size, (blocks.end * size).min(offset + len));
            let _turn = self.0.locks.take(blocks.clone()).await;
            let (tx, _end) = self.begin_piece(&piece, from, to.saturating_sub(from), "trim").await?;
            self.0.data.free_blocks(&tx, blocks.clone())?;
            self.log_truncate(&tx, from, to.saturating_sub(from));
            left.start = blocks.end;
        }
        self.settle().await
    }

    /// The first of the pieces in which `blocks` are freed, when the txgs under way have room for it.
    async fn piece_to_free(&self, blocks: Range<u64>) -> Result<PieceToFree> {
        let txgs = self.txgs()?;
        txgs.wait_to_free().await?;
        self.0.data.piece_to_free(blocks, txgs.piece_to_free()).await
    }

    /// Joins the open txg to free a piece, which is the range of bytes, and keeps the end of the volume where it is.
    async fn begin_piece(
        &self,
        piece: &PieceToFree,
        offset: u64,
        len: u64,
        doing: &str,
    ) -> Result<(Tx, ReadGuard<'_, ()>)> {
        let tx = self.begin_freeing(piece.blocks.clone()).await?;
        let end = self.keep_end(offset, len, doing).await?;
        self.0.written_in.fetch_max(tx.txg().0, Ordering::AcqRel);
        tx.empties(piece.indirect);
        Ok((tx, end))
    }

    fn log_truncate(&self, tx: &Tx, offset: u64, len: u64) {
        if let Some(log) = self.0.log.get() {
            log.truncate(tx, self.0.data.id(), offset, len);
        }
    }

    /// Makes durable everything that was written before.
    pub async fn flush(&self) -> Result<()> {
        if let Some(log) = self.0.log.get() {
            return log.commit().await;
        }
        let Some(txgs) = &self.0.txgs else { return Ok(()) };
        txgs.wait_synced(Txg(self.0.written_in.load(Ordering::Acquire))).await
    }

    /// What is data and what is hole from `offset` on, over `len` bytes or less, in at most `limit` extents.
    pub async fn extents(&self, offset: u64, len: u64, limit: usize) -> Result<Vec<Extent>> {
        self.check(offset, len, "map")?;
        let (size, end) = (self.0.block_size, offset + len);
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        // A hole of a terabyte is many runs of the tree; a caller that asks for that much gets the first of them.
        for _ in 0..RUNS_MAX {
            if at >= end {
                break;
            }
            let (is_data, next) = self.0.data.extent(at / size).await?;
            let stop = next.saturating_mul(size).min(end);
            let full = extents.len() >= limit;
            match extents.last_mut() {
                Some(last) if last.hole != is_data => last.len += stop - at,
                _ if full => break,
                _ => extents.push(Extent { len: stop - at, hole: !is_data }),
            }
            at = stop;
        }
        Ok(extents)
    }

    /// Changes `volsize`, in a transaction of the caller's; what lies past a smaller size is freed. Waits for changes that
    /// are being made, and not for such as wait for a txg: those find the new end.
    pub async fn resize(&self, tx: &Tx, size: u64) -> Result<()> {
        let block = self.0.block_size;
        if size == 0 || !size.is_multiple_of(block) {
            return Err(Error::invalid(format!(
                "volsize must be a multiple of volblocksize, {}",
                units::pretty_size(block)
            )));
        }
        let _end = self.0.end.write().await;
        self.0.properties.update(tx, SIZE, Value::from(size)).await?;
        let old = self.0.size.swap(size, Ordering::AcqRel);
        self.0.written_in.fetch_max(tx.txg().0, Ordering::AcqRel);
        if let Some(log) = self.0.log.get() {
            log.unlogged(tx);
        }
        if size < old {
            let beyond = size / block..u64::MAX;
            self.0.data.free_blocks(tx, beyond.clone())?;
            // What later txgs have written there already, before the end moved, goes with the open one.
            if let Some(open) =
                self.0.txgs.as_ref().map(Txgs::begin_unthrottled).filter(|open| open.txg() > tx.txg())
            {
                self.0.data.free_blocks(&open, beyond)?;
            }
        }
        Ok(())
    }
}

fn of_panic(panic: world::Panic) -> Error {
    Error::new(Kind::Corrupt, "use volume").because(panic)
}
