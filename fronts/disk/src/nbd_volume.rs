//! A volume of a pool as the NBD front serves it.
//!
//! The front states what it needs, the engine has it, and neither knows the other: here they meet.

use crate::shared::SharedVolume;
use nbd::{Extent, Piece, Reading};
use units::{Result, pretty_size};
use world::{Buf, Pending, boxed};
use zvol::Volume;

/// A volume that is served. All its clients must share one [`SharedVolume`] (or clones of it): its locks are what keeps
/// their writes to parts of one block apart.
#[derive(Clone, Debug)]
pub struct NbdVolume {
    volume: SharedVolume,
    read_only: bool,
}

impl NbdVolume {
    /// For those who have the pool to themselves.
    pub fn new(volume: Volume) -> NbdVolume {
        let name = volume.name().to_string();
        NbdVolume::of(SharedVolume::new(&name, volume))
    }

    /// For one of several clients of the volume.
    pub fn of(volume: SharedVolume) -> NbdVolume {
        NbdVolume { read_only: volume.is_read_only(), volume }
    }

    /// Refuses writes, though the volume would take them.
    #[must_use]
    pub fn read_only(self) -> NbdVolume {
        NbdVolume { read_only: true, ..self }
    }

    /// A change of the volume, and with `fua` the wait until it is on disk.
    fn change(
        &self,
        fua: bool,
        change: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move {
            change.await?;
            if fua { volume.flush().await } else { Ok(()) }
        })
    }
}

impl nbd::Volume for NbdVolume {
    fn size(&self) -> u64 {
        self.volume.size()
    }

    fn block_size(&self) -> u32 {
        // At most 16 MiB by the format.
        u32::try_from(self.volume.block_size()).unwrap_or(u32::MAX)
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn dataset(&self) -> &str {
        self.volume.name()
    }

    fn description(&self) -> String {
        let (size, block) = (self.volume.size(), self.volume.block_size());
        format!("{}, {} in blocks of {}", self.volume.name(), pretty_size(size), pretty_size(block))
    }

    fn is_suspended(&self) -> bool {
        self.volume.is_suspended()
    }

    fn begin_read(&self, offset: u64, len: u32, into: &mut Vec<Piece>) -> Reading {
        self.volume.begin_read(offset, len, into)
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.read(offset, len).await })
    }

    fn write(&self, offset: u64, parts: Vec<Buf>, fua: bool) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.write_parts(offset, parts, fua).await })
    }

    /// Zeros are holes here whatever was asked for: that later writes do not run out of space is promised by the
    /// volume's reservation, not by blocks of zeros, which copy-on-write would not write to again.
    fn zero(&self, offset: u64, len: u32, _may_be_hole: bool, fua: bool) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        self.change(fua, async move { volume.zero(offset, u64::from(len)).await })
    }

    fn zeroes_fast(&self, _may_be_hole: bool) -> bool {
        true
    }

    fn trim(&self, offset: u64, len: u32, fua: bool) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        self.change(fua, async move { volume.trim(offset, u64::from(len)).await })
    }

    fn flush(&self) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.flush().await })
    }

    fn extents(&self, offset: u64, len: u32, max: usize) -> Pending<Result<Vec<Extent>>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.extents(offset, u64::from(len), max).await })
    }
}
