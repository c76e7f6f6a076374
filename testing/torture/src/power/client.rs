//! A client of one volume: does what it is told, and writes into the history what it asked and what it was answered.

use super::history::{Deed, History};
use super::workload::Act;
use crate::model::pattern;
use dmu::SyncMode;
use pool::Pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Kind, Result};
use world::Buf;
use zvol::Volume;

/// What outlives the world whose power is cut.
pub type Shared = Arc<Mutex<History>>;

#[derive(Clone, Debug)]
pub struct Client {
    pub pool: Pool,
    pub volume: Volume,
    pub history: Shared,
    pub faith: Faith,
}

/// What a client takes for a promise.
#[derive(Clone, Copy, Debug)]
pub struct Faith {
    /// As the volume is set.
    pub sync: SyncMode,
    /// A client that believes too much, to see that it is caught: it takes every answer for a promise.
    pub is_gullible: bool,
}

pub fn lock(history: &Shared) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    fn name(&self) -> &str {
        self.volume.name()
    }

    /// The size and the size of blocks.
    pub fn geometry(&self) -> (u64, u64) {
        (self.volume.size(), self.volume.block_size())
    }

    /// Does it; false when others are busy with the same blocks.
    pub async fn perform(&self, act: Act) -> Result<bool> {
        match act.clipped(self.volume.size()) {
            Act::Write { offset, len, fua } if len > 0 => self.write(offset, len, fua).await,
            Act::Zero { offset, len, fua } if len > 0 => {
                let work = async { self.volume.zero(offset, len).await };
                self.change(Deed::Zero { offset, len }, fua, fua, work).await
            }
            Act::Trim { offset, len, fua } if len > 0 => self.trim(offset, len, fua).await,
            Act::Resize { size } => self.resize(size).await,
            Act::Snapshot => self.snapshot().await,
            Act::Flush => self.flush().await,
            Act::Sync => {
                let span = lock(&self.history).begin_sync();
                self.pool.sync().await?;
                lock(&self.history).end_sync(span);
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// With `then_flush` because the engine has no durable form of this change.
    async fn change(
        &self,
        deed: Deed,
        fua: bool,
        then_flush: bool,
        work: impl Future<Output = Result<()>> + Send,
    ) -> Result<bool> {
        let promised = match self.faith.sync {
            SyncMode::Standard => fua,
            SyncMode::Always => true,
            SyncMode::Disabled => false,
        };
        let begun = lock(&self.history).begin(self.name(), deed, promised || self.faith.is_gullible);
        let Some(event) = begun else { return Ok(false) };
        work.await?;
        if then_flush {
            self.volume.flush().await?;
        }
        lock(&self.history).end(self.name(), event);
        Ok(true)
    }

    async fn write(&self, offset: u64, len: u64, fua: bool) -> Result<bool> {
        // Each write has bytes of its own.
        let seed = lock(&self.history).now().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
        let data = Buf::copy_from(&pattern(seed, len));
        let work = async {
            if fua {
                self.volume.write_durable(offset, data).await
            } else {
                self.volume.write(offset, data).await
            }
        };
        self.change(Deed::Write { offset, len, seed }, fua, false, work).await
    }

    /// Only whole blocks are given back; the last one may reach past the end.
    async fn trim(&self, offset: u64, len: u64, fua: bool) -> Result<bool> {
        let (size, block) = self.geometry();
        let first = offset.next_multiple_of(block);
        let end = if offset + len == size { size } else { (offset + len) / block * block };
        if first >= end {
            self.volume.trim(offset, len).await?;
            return Ok(true);
        }
        let work = async { self.volume.trim(offset, len).await };
        self.change(Deed::Zero { offset: first, len: end - first }, fua, fua, work).await
    }

    async fn resize(&self, size: u64) -> Result<bool> {
        let (begun, span) = {
            let mut history = lock(&self.history);
            (history.begin(self.name(), Deed::Resize { size }, false), history.begin_sync())
        };
        let Some(event) = begun else { return Ok(false) };
        let volume = self.volume.clone();
        self.pool.change("resize", move |_, tx| async move { volume.resize(&tx, size).await }).await?;
        let mut history = lock(&self.history);
        history.end(self.name(), event);
        history.end_sync(span);
        Ok(true)
    }

    async fn snapshot(&self) -> Result<bool> {
        let short = {
            let mut history = lock(&self.history);
            let count = history.volumes.get(self.name()).map_or(0, |t| t.snapshots.len());
            let short = format!("s{}x{count}", history.now());
            history.begin_snapshot(self.name(), &short);
            short
        };
        let full = format!("{}@{short}", self.name());
        let task = self
            .pool
            .change("snapshot", move |pool, tx| async move { pool.dsl().snapshot(&tx, &full).await });
        match task.await {
            Ok(_) => lock(&self.history).end_snapshot(self.name(), &short),
            // The same txg changed the volume's size.
            Err(e) if e.kind() == Kind::Busy => {
                lock(&self.history).drop_snapshot(self.name(), &short);
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    async fn flush(&self) -> Result<bool> {
        let span = lock(&self.history).begin_flush();
        self.volume.flush().await?;
        if self.faith.sync != SyncMode::Disabled {
            lock(&self.history).end_flush(self.name(), span);
        }
        Ok(true)
    }
}
