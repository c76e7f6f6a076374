//! A disk as engine code sees it.

use super::state::Write;
use super::{Moment, Shared, SimDisk, lock};
use crate::fault::{Fault, chance};
use std::io;
use std::path::Path;
use std::sync::Arc;
use world::{Buf, Disk, Geometry, IoBuf, OpenMode, Pending};

pub(super) struct Opened {
    pub disk: Arc<SimDisk>,
    pub all: Arc<Shared>,
    pub mode: OpenMode,
    /// How often the disk had been unplugged when this was opened.
    pub unplugged: u64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disk({})", self.disk.path.display())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut state = lock(&self.disk.state);
        if self.mode == OpenMode::ReadWrite && state.unplugged == self.unplugged {
            state.opened_for_writing = false;
        }
    }
}

impl Disk for Opened {
    fn path(&self) -> &Path {
        &self.disk.path
    }

    fn geometry(&self) -> Geometry {
        let state = lock(&self.disk.state);
        let model = state.model;
        Geometry {
            size: state.size,
            logical_block: model.logical_block,
            physical_block: model.physical_block,
            kind: model.kind,
        }
    }

    fn current_size(&self) -> io::Result<u64> {
        let state = lock(&self.disk.state);
        state.answers(self.unplugged).map(|()| state.size)
    }

    fn read(&self, offset: u64, mut buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        let (disk, unplugged) = (self.disk.clone(), self.unplugged);
        let done = {
            let mut state = lock(&disk.state);
            let base = state.model.read;
            state.schedule(world::now(), base, offset, buf.len() as u64)
        };
        Box::pin(async move {
            world::sleep_until(done).await;
            let result = disk.finish_read(offset, &mut buf, unplugged);
            (buf, result)
        })
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        if self.mode == OpenMode::ReadOnly {
            return Box::pin(async { Err(io::ErrorKind::PermissionDenied.into()) });
        }
        let (disk, all, unplugged) = (self.disk.clone(), self.all.clone(), self.unplugged);
        let len = parts.iter().map(|p| p.len() as u64).sum();
        let (done, number) = {
            let mut state = lock(&disk.state);
            let number = state.number();
            if let Err(e) = state.answers(unplugged).and_then(|()| state.check(offset, len)) {
                return Box::pin(async move { Err(e) });
            }
            if state.fault.full {
                return Box::pin(async { Err(io::ErrorKind::StorageFull.into()) });
            }
            let room = state.place(offset, len);
            if room < len {
                let begun = Write { offset, parts }.first(room);
                state.complete(begun);
                return Box::pin(async { Err(io::ErrorKind::StorageFull.into()) });
            }
            let base = state.model.write;
            let done = state.schedule(world::now(), base, offset, len);
            state.in_flight.insert(number, Write { offset, parts });
            (done, number)
        };
        // The device goes on with a write whose waiter is gone.
        Box::pin(world::spawn(async move {
            world::sleep_until(done).await;
            all.reach(Moment::Write).await;
            disk.finish_write(number, unplugged)
        }))
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        let (disk, all, unplugged) = (self.disk.clone(), self.all.clone(), self.unplugged);
        let (done, mark) = {
            let mut state = lock(&disk.state);
            // What has completed by now is covered; what is on its way need not be.
            let mark = state.flush_mark();
            (state.schedule_flush(world::now()), mark)
        };
        Box::pin(async move {
            world::sleep_until(done).await;
            all.reach(Moment::Flush).await;
            let (fault, answers) = {
                let state = lock(&disk.state);
                (state.fault, state.answers(unplugged).is_ok())
            };
            if !answers || chance(fault.flush_errors_ppm) {
                if fault.forgets {
                    lock(&disk.state).lose_cache();
                }
                return Err(io::Error::other("flush error"));
            }
            if !fault.ignores_flushes {
                lock(&disk.state).flush_to(mark);
            }
            Ok(())
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>> {
        let (disk, unplugged) = (self.disk.clone(), self.unplugged);
        Box::pin(async move {
            let mut state = lock(&disk.state);
            state.answers(unplugged)?;
            state.check(offset, len)?;
            state.view.discard(offset, len);
            // A device may do it at once, whatever its cache holds: what is discarded must not be needed after a cut either.
            state.durable.discard(offset, len);
            state.give_back(offset, len);
            Ok(())
        })
    }
}

impl SimDisk {
    fn finish_read(&self, offset: u64, buf: &mut IoBuf, unplugged: u64) -> io::Result<()> {
        let fault = lock(&self.state).fault;
        let (fails, rots) = (chance(fault.read_errors_ppm), chance(fault.rot_ppm));
        {
            let state = lock(&self.state);
            state.answers(unplugged)?;
            state.check(offset, buf.len() as u64)?;
            if fails || state.is_bad(offset, buf.len() as u64) {
                return Err(io::Error::other("medium error"));
            }
            state.view.read(offset, buf);
        }
        if rots && !buf.is_empty() {
            let at = (world::random_u64() % buf.len() as u64) as usize;
            buf[at] ^= 1 << (world::random_u64() % 8);
        }
        Ok(())
    }

    fn finish_write(&self, number: u64, unplugged: u64) -> io::Result<()> {
        let Fault { write_errors_ppm, lost_writes_ppm, misdirected_writes_ppm, .. } = lock(&self.state).fault;
        let (fails, lost) = (chance(write_errors_ppm), chance(lost_writes_ppm));
        let elsewhere = chance(misdirected_writes_ppm).then(world::random_u64);
        let mut state = lock(&self.state);
        state.answers(unplugged).inspect_err(|_| drop(state.in_flight.remove(&number)))?;
        // A power cut may have taken it.
        let Some(mut write) = state.in_flight.remove(&number) else { return Ok(()) };
        if fails {
            return Err(io::Error::other("write error"));
        }
        if let Some(random) = elsewhere {
            let len: u64 = write.parts.iter().map(|p| p.len() as u64).sum();
            let unit = u64::from(state.model.logical_block);
            write.offset = random % ((state.size - len) / unit + 1) * unit;
        }
        if !lost {
            state.complete(write);
        }
        Ok(())
    }
}
