//! A volume of a pool as the iSCSI front serves it.

use crate::shared::SharedVolume;
use crate::volumes::Held;
use scsi::{Extent, Piece, Reading};
use std::fmt;
use units::Result;
use world::{Buf, Pending, boxed};
use zvol::Volume;

/// A volume that is a LUN; it counts as used as long as this is there.
pub struct Lun {
    volume: SharedVolume,
    read_only: bool,
    _held: Option<Held>,
}

impl Lun {
    /// For one of several clients; the volume counts as used until this is dropped.
    pub fn new(volume: SharedVolume, read_only: bool, held: Held) -> Lun {
        Lun { read_only: read_only || volume.is_read_only(), volume, _held: Some(held) }
    }

    /// For those who have the pool to themselves.
    pub fn alone(volume: Volume) -> Lun {
        let name = volume.name().to_string();
        let volume = SharedVolume::new(&name, volume);
        Lun { read_only: volume.is_read_only(), volume, _held: None }
    }
}

impl fmt::Debug for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lun({})", self.volume.name())
    }
}

impl scsi::LogicalUnit for Lun {
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

    fn write(&self, offset: u64, parts: Vec<Buf>, durable: bool) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.write_parts(offset, parts, durable).await })
    }

    /// Zeros are holes: that later writes find room is promised by the volume's reservation.
    fn zero(&self, offset: u64, len: u64, durable: bool) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move {
            volume.zero(offset, len).await?;
            if durable { volume.flush().await } else { Ok(()) }
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.flush().await })
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Pending<Result<Vec<Extent>>> {
        let volume = self.volume.clone();
        boxed(|| async move { volume.extents(offset, len, max).await })
    }
}
