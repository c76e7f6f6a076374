//! A volume as all its clients share it: it stays the same to them when another takes its place.
//!
//! ```text
//!   NbdVolume, Lun ──▶ SharedVolume ──▶ InService { volume, mirror? }   an operation holds the one it began with
//!
//!            mirror_to            close                open_with
//!   alone ─────────────▶ mirrored ─────▶ closed ──────────────────▶ alone, with the new volume
//!                           │              │ dropped
//!                           └── unmirror ──┴──▶ alone, with the old volume
//! ```
//!
//! Each step puts another in place and waits until the operations of the one before are done. While it is closed
//! everybody waits: that is how long it takes to exchange the names of two volumes.
//!
//! Invariants: what is read comes from the volume that is in service; a change that was answered is in it. While there
//! is a mirror, everything that was written is in both, or known to be missing in the other ([`mirror`]).
//!
//! Not here: why a volume would be exchanged (`appliance`).

mod mirror;

pub use mirror::Mirror;

use crate::counted::Counts;
use flow::{Extent, Piece, Reading};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};
use world::sync::{Event, Notify};
use world::{Buf, boxed};
use zvol::{Begun, Volume};

/// See the module. Clones are the same volume.
#[derive(Clone)]
pub struct SharedVolume(Arc<Inner>);

struct Inner {
    name: String,
    read_only: bool,
    state: Mutex<State>,
    opened: Notify,
    /// What clients ask of it.
    counts: Arc<Counts>,
}

enum State {
    Open(Arc<InService>),
    /// The volume that was in service last: what it says of itself holds until there is another.
    Closed(Volume),
}

/// What operations work on.
pub struct InService {
    pub volume: Volume,
    mirror: Option<Arc<Mirror>>,
    /// Set when the last operation that began with this is done.
    ended: Arc<Event>,
}

impl fmt::Debug for InService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InService({})", self.volume.name())
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        self.ended.set();
    }
}

impl InService {
    fn new(volume: Volume, mirror: Option<Arc<Mirror>>) -> Arc<InService> {
        Arc::new(InService { volume, mirror, ended: Arc::default() })
    }
}

impl SharedVolume {
    /// `name` is that of the dataset.
    pub fn new(name: &str, volume: Volume) -> SharedVolume {
        SharedVolume::counted_by(name, volume, Arc::default())
    }

    fn counted_by(name: &str, volume: Volume, counts: Arc<Counts>) -> SharedVolume {
        SharedVolume(Arc::new(Inner {
            name: name.into(),
            read_only: volume.is_read_only(),
            state: Mutex::new(State::Open(InService::new(volume, None))),
            opened: Notify::new(),
            counts,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Its values are whole at any time.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The same, whose requests are counted with those of former clients.
    pub(crate) fn counting_on(self, counts: &Arc<Counts>) -> SharedVolume {
        let now = self.of_volume(Volume::clone);
        SharedVolume::counted_by(self.name(), now, counts.clone())
    }

    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.0.counts
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.of_volume(Volume::size)
    }

    /// `volblocksize`, bytes.
    pub fn block_size(&self) -> u64 {
        self.of_volume(Volume::block_size)
    }

    /// As [`Volume::is_suspended`], of the volume in service.
    pub fn is_suspended(&self) -> bool {
        self.of_volume(Volume::is_suspended)
    }

    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    fn of_volume<T>(&self, ask: impl Fn(&Volume) -> T) -> T {
        match &*self.state() {
            State::Open(now) => ask(&now.volume),
            State::Closed(volume) => ask(volume),
        }
    }

    fn try_now(&self) -> Option<Arc<InService>> {
        match &*self.state() {
            State::Open(now) => Some(now.clone()),
            State::Closed(_) => None,
        }
    }

    async fn now(&self) -> Arc<InService> {
        match self.try_now() {
            Some(now) => now,
            None => self.0.opened.until(|| self.try_now()).await,
        }
    }

    /// The volume, which keeps its place until this is dropped; an error while another is about to take it.
    pub async fn steady(&self) -> Result<Arc<InService>> {
        let now = self.now().await;
        if now.mirror.is_none() {
            return Ok(now);
        }
        let why = "it is being copied into blocks of another size";
        Err(Error::new(Kind::Busy, format!("change volume '{}'", self.name())).because(why))
    }

    /// Appends to `into` what need not be waited for; see [`Volume::begin_read`].
    pub fn begin_read(&self, offset: u64, len: u32, into: &mut Vec<Piece>) -> Reading {
        let Some(now) = self.try_now() else {
            let volume = self.clone();
            return Reading::Waits(boxed(|| async move { volume.read(offset, len).await }));
        };
        let began = self.0.counts.look();
        let waiting = match now.volume.begin_guarded_read(offset, len.into()) {
            Begun::Waits(waiting) => waiting,
            Begun::Done(read) => {
                if let (Some(began), true) = (began, read.is_ok()) {
                    self.0.counts.read(len.into(), true, world::now().since(began));
                }
                return Reading::Done(read.map(|read| into.extend(pieces(read))));
            }
        };
        let counts = self.0.counts.clone();
        Reading::Waits(boxed(|| async move {
            let read = now.volume.guard(now.volume.finish_read(waiting)).await?;
            if let Some(began) = began {
                counts.read(len.into(), false, world::now().since(began));
            }
            Ok(pieces(read).collect())
        }))
    }

    /// As [`Volume::pieces`].
    pub async fn read(&self, offset: u64, len: u32) -> Result<Vec<Piece>> {
        let began = self.0.counts.look();
        let now = self.now().await;
        let read = now.volume.guard(now.volume.pieces(offset, len.into())).await?;
        if let Some(began) = began {
            self.0.counts.read(len.into(), false, world::now().since(began));
        }
        Ok(pieces(read).collect())
    }

    /// As [`Volume::write_parts`].
    pub async fn write_parts(&self, offset: u64, parts: Vec<Buf>, durably: bool) -> Result<()> {
        let (began, len) = (world::now(), parts.iter().map(|part| part.len() as u64).sum());
        let now = self.now().await;
        let block = now.volume.block_size();
        self.write_to(now, offset, parts, durably).await?;
        let ended = world::now();
        self.0.counts.wrote(block, offset, len, ended.since(began));
        if durably {
            self.0.counts.synced(ended);
        }
        Ok(())
    }

    async fn write_to(&self, now: Arc<InService>, offset: u64, parts: Vec<Buf>, durably: bool) -> Result<()> {
        let Some(mirror) = &now.mirror else {
            return now.volume.guard(now.volume.write_parts(offset, parts, durably)).await;
        };
        rarely(async {
            let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
            let (again, other) = (parts.clone(), mirror.volume().clone());
            // In the other it need not be durable yet: the other comes into service with a txg that has all of it.
            let both =
                (now.volume.write_parts(offset, parts, durably), other.write_parts(offset, again, false));
            now.volume.guard(mirror.change(offset..offset + len, both.0, both.1)).await
        })
        .await
    }

    /// As [`Volume::zero`].
    pub async fn zero(&self, offset: u64, len: u64) -> Result<()> {
        let now = self.now().await;
        let Some(mirror) = &now.mirror else {
            return now.volume.guard(now.volume.zero(offset, len)).await;
        };
        let other = mirror.volume().clone();
        let both = (now.volume.zero(offset, len), other.zero(offset, len));
        now.volume.guard(mirror.change(offset..offset + len, both.0, both.1)).await
    }

    /// As [`Volume::trim`].
    pub async fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let now = self.now().await;
        let Some(mirror) = &now.mirror else {
            return now.volume.guard(now.volume.trim(offset, len)).await;
        };
        // The other has other blocks, and must read the same: what was whole here is zero there.
        let whole = whole_blocks(offset, len, now.volume.block_size(), now.volume.size());
        let other = mirror.volume().clone();
        let there = async move {
            match whole.is_empty() {
                true => Ok(()),
                false => other.zero(whole.start, whole.end - whole.start).await,
            }
        };
        now.volume.guard(mirror.change(offset..offset + len, now.volume.trim(offset, len), there)).await
    }

    /// As [`Volume::flush`].
    pub async fn flush(&self) -> Result<()> {
        let now = self.now().await;
        now.volume.guard(now.volume.flush()).await?;
        self.0.counts.synced(world::now());
        Ok(())
    }

    /// As [`Volume::extents`].
    pub async fn extents(&self, offset: u64, len: u64, limit: usize) -> Result<Vec<Extent>> {
        let now = self.now().await;
        let extents = now.volume.guard(now.volume.extents(offset, len, limit)).await?;
        Ok(extents.into_iter().map(|e| Extent { len: e.len, hole: e.hole }).collect())
    }

    /// From now on what is written goes to `volume` as well, as far as it was copied; returns when none goes on without.
    pub async fn mirror_to(&self, volume: Volume) -> Result<Arc<Mirror>> {
        let mirror = Arc::new(Mirror::new(self.steady().await?.volume.clone(), volume));
        self.replace(Some(mirror.clone())).await;
        Ok(mirror)
    }

    /// No longer; returns when no operation writes to the other any more.
    pub async fn unmirror(&self) {
        self.replace(None).await;
    }

    async fn replace(&self, mirror: Option<Arc<Mirror>>) {
        let before = self.now().await;
        let ended = before.ended.clone();
        *self.state() = State::Open(InService::new(before.volume.clone(), mirror));
        drop(before);
        ended.wait().await;
    }

    /// Lets no operation begin, and waits until all are done.
    pub async fn close(&self) -> Closed {
        let before = self.now().await;
        let (ended, volume) = (before.ended.clone(), before.volume.clone());
        drop(before);
        // Made first: when the wait is given up, dropping it opens it again.
        let closed = Closed { served: self.clone(), opens_with: volume.clone() };
        *self.state() = State::Closed(volume);
        ended.wait().await;
        closed
    }
}

impl fmt::Debug for SharedVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedVolume({})", self.0.name)
    }
}

/// A volume that no operation works on. Dropped, it is in service again, as it was.
#[derive(Debug)]
pub struct Closed {
    served: SharedVolume,
    opens_with: Volume,
}

impl Closed {
    /// Brings this volume into service.
    pub fn open_with(mut self, volume: Volume) {
        self.opens_with = volume;
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        *self.served.state() = State::Open(InService::new(self.opens_with.clone(), None));
        self.served.0.opened.notify_all();
    }
}

/// What the engine read, in the words of the fronts.
fn pieces(read: Vec<zvol::Piece>) -> impl Iterator<Item = Piece> {
    read.into_iter().map(|piece| match piece {
        zvol::Piece::Data(buf) => Piece::Data(buf),
        // Not longer than the request, whose length is a u32.
        zvol::Piece::Hole(len) => Piece::Hole(u32::try_from(len).unwrap_or(u32::MAX)),
    })
}

/// Work that a request seldom needs, apart from it: a request is as large as the largest of what it may come to.
fn rarely<'a, T>(work: impl Future<Output = T> + Send + 'a) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(work)
}

/// What of a range a trim gives back: its whole blocks, where the end of the volume ends a block.
fn whole_blocks(offset: u64, len: u64, block: u64, size: u64) -> std::ops::Range<u64> {
    let end = offset + len;
    let end = if end == size { end } else { end / block * block };
    let start = offset.next_multiple_of(block);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::whole_blocks;

    #[test]
    fn a_trim_gives_back_whole_blocks_up_to_the_end() {
        for (offset, len, whole) in [
            (0, 4096, 0..4096),
            (512, 4096, 4096..4096),
            (512, 8192, 4096..8192),
            (8192, 2048, 8192..10240),
            (9000, 1240, 12288..12288),
        ] {
            assert_eq!(whole_blocks(offset, len, 4096, 10240), whole, "{offset} {len}");
        }
    }
}
