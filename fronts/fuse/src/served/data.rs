//! What is in files.

use super::{Asker, Place, Served};
use crate::counted::{self, watched};
use crate::errno::{Result, errno};
use probe::Op;
use rustix::io::Errno;
use units::Kind;
use world::Buf;
use zpl::Node;

/// The largest request that the kernel is told to make.
pub(crate) const IO_MAX: usize = 1 << 20;
/// How much one request to copy does: the client asks again, and can be killed meanwhile.
const COPY_MAX: u64 = 16 << 20;

const KEEP_SIZE: i32 = 0x1;
const PUNCH_HOLE: i32 = 0x2;
const ZERO_RANGE: i32 = 0x10;

const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// How a read is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The file was opened with `O_DIRECT`: it may go past the cache; and what lies before a damaged block is better than
    /// nothing, where else a short answer would mean the end of the file.
    pub direct: bool,
    /// It is noted as the time of the last read.
    pub counts: bool,
}

/// How a write is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub asker: Asker,
    /// It is durable before the answer.
    pub sync: bool,
    /// The file was opened with `O_DIRECT`: it may go past the cache.
    pub direct: bool,
    /// A write of this caller may not leave setuid and the like.
    pub drops_rights: bool,
}

impl Served {
    /// As much as there is of a range.
    pub async fn read(&self, number: u64, offset: u64, len: u32, how: Reading) -> Result<Buf> {
        let node = self.file(number).await?.node;
        if how.counts {
            self.note_access(&node).await;
        }
        let len = (len as usize).min(IO_MAX);
        let (read, waited) = watched(node.read_as(offset, len, how.direct)).await;
        match read {
            Ok((data, from_devices)) => {
                self.tell_past_cache(Op::Read, number, offset, from_devices);
                if counted::looks() {
                    self.counts.read(self.blocks_of(&node), data.len() as u64, !waited);
                }
                Ok(data)
            }
            Err(e) if how.direct && matches!(e.kind(), Kind::Checksum | Kind::Corrupt | Kind::Io) => {
                let good = undamaged(&node, offset, len).await;
                if good.is_empty() { Err(errno(&e)) } else { Ok(Buf::copy_from(&good)) }
            }
            Err(e) => Err(errno(&e)),
        }
    }

    /// What the kernel has of a write, in memory of ours.
    pub fn parts(&self, offset: u64, data: &[u8]) -> Vec<Buf> {
        self.fs().parts(offset, data)
    }

    pub async fn write(&self, number: u64, offset: u64, parts: Vec<Buf>, how: Writing) -> Result<()> {
        let node = self.file(number).await?.node;
        if how.drops_rights {
            self.drop_rights(how.asker, number, &node, true).await?;
        }
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let writing = zpl::Writing { durably: how.sync, is_direct: how.direct };
        let on_devices = node.write_as(offset, parts, writing).await.map_err(|e| errno(&e))?;
        self.tell_past_cache(Op::Write, number, offset, on_devices);
        self.counts.wrote(self.blocks_of(&node), number, offset, len);
        Ok(())
    }

    pub async fn sync_file(&self, number: u64) -> Result<()> {
        match self.place(number).await? {
            Place::File(file) => match file.node.sync().await {
                // Nothing was changed that could be lost.
                Err(e) if e.kind() == Kind::ReadOnly => Ok(()),
                synced => synced.map_err(|e| errno(&e)),
            },
            Place::Control | Place::Snapshots => Ok(()),
        }
    }

    pub async fn allocate(&self, asker: Asker, number: u64, offset: u64, len: u64, mode: i32) -> Result<()> {
        let node = self.file(number).await?.node;
        let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::FBIG)?;
        let done = match mode {
            m if m == PUNCH_HOLE | KEEP_SIZE => node.punch_hole(offset, len).await,
            m if m & !KEEP_SIZE == ZERO_RANGE => {
                let zeroed = node.punch_hole(offset, len).await;
                match zeroed {
                    Ok(()) if mode & KEEP_SIZE == 0 => node.allocate(offset, len, false).await,
                    zeroed => zeroed,
                }
            }
            0 | KEEP_SIZE => {
                let (room, stat) = (self.space().await?, node.stat().await.map_err(|e| errno(&e))?);
                // Nothing is set aside; but what can never be written is not promised.
                let new = if mode == 0 { end.saturating_sub(stat.size) } else { len };
                if new > room.available {
                    return Err(Errno::NOSPC);
                }
                node.allocate(offset, len, mode & KEEP_SIZE != 0).await
            }
            _ => return Err(Errno::OPNOTSUPP),
        };
        done.map_err(|e| errno(&e))?;
        self.drop_rights(asker, number, &node, false).await
    }

    pub async fn seek(&self, number: u64, offset: i64, whence: i32) -> Result<i64> {
        let node = self.file(number).await?.node;
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let found = match whence {
            SEEK_DATA => node.seek_data(offset).await,
            SEEK_HOLE => node.seek_hole(offset).await,
            _ => return Err(Errno::INVAL),
        };
        let found = found.map_err(|e| errno(&e))?.ok_or(Errno::NXIO)?;
        i64::try_from(found).map_err(|_| Errno::OVERFLOW)
    }

    /// Copies as much as one request does, and says how much that was; holes stay holes.
    pub async fn copy(&self, asker: Asker, from: (u64, u64), to: (u64, u64), len: u64) -> Result<u32> {
        let (source, target) = (self.file(from.0).await?.node, self.file(to.0).await?.node);
        self.drop_rights(asker, to.0, &target, false).await?;
        let len = len.min(COPY_MAX);
        let mut done = 0;
        while done < len {
            let part = IO_MAX.min((len - done) as usize);
            let (at, new) = (from.1.checked_add(done), to.1.checked_add(done));
            let (at, new) = (at.ok_or(Errno::FBIG)?, new.ok_or(Errno::FBIG)?);
            let copied = match source.read(at, part).await {
                Ok(data) if data.is_empty() => break,
                Ok(data) => target.write(new, &data).await.map(|()| data.len()),
                Err(e) => Err(e),
            };
            match copied {
                Ok(n) => done += n as u64,
                Err(_) if done > 0 => break,
                Err(e) => return Err(errno(&e)),
            }
        }
        Ok(done as u32)
    }
}

/// What can be read of a range from its beginning.
async fn undamaged(node: &Node, offset: u64, len: usize) -> Vec<u8> {
    let block = node.object().block_size().max(512);
    let mut good = Vec::new();
    while good.len() < len {
        let at = offset + good.len() as u64;
        let part = (block - at % block).min((len - good.len()) as u64) as usize;
        match node.read(at, part).await {
            Ok(data) if !data.is_empty() => good.extend_from_slice(&data),
            _ => break,
        }
    }
    good
}
