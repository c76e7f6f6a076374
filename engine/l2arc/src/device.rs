//! One cache device in use: its journal, and when it is better left alone.
//!
//! ```text
//!   new ── prepare (rebuild) ──▶ ready ── an answer that did not come ──▶ left alone for a second, two, four …
//!                                  ▲──────────────── an answer ────────────────┘
//! ```
//!
//! Errors are the leaf's to count: too many, and it is faulted. A device that hangs makes no errors, so each answer has a
//! limit here, and a device that passed it is not asked for some time.

use crate::index::DeviceId;
use crate::journal::Journal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Guid, Kind, Result};
use vdev::{Leaf, Priority};
use world::{Buf, Instant, OpenMode};

/// A write, or a read that no request waits for, that takes longer is not waited for.
pub(crate) const WORK_LIMIT: Duration = Duration::from_secs(10);
const ALONE_MIN: Duration = Duration::from_secs(1);
const ALONE_MAX: Duration = Duration::from_secs(64);

/// See the module.
#[derive(Debug)]
pub(crate) struct Device {
    pub id: DeviceId,
    pub guid: Guid,
    pub ashift: u32,
    pub leaf: Arc<Leaf>,
    mode: OpenMode,
    /// `None` until it is prepared. Only the feeding task changes it.
    journal: Mutex<Option<Journal>>,
    pub is_writing: AtomicBool,
    /// It is no cache device of the pool any more. Set under the lock of the index.
    pub is_gone: AtomicBool,
    alone: Mutex<Alone>,
    pub reads: AtomicU64,
    pub read_bytes: AtomicU64,
    pub written_bytes: AtomicU64,
}

#[derive(Debug)]
struct Alone {
    until: Instant,
    next: Duration,
}

impl Device {
    pub fn new(id: DeviceId, guid: Guid, ashift: u32, leaf: Arc<Leaf>, mode: OpenMode) -> Device {
        Device {
            id,
            guid,
            ashift,
            leaf,
            mode,
            journal: Mutex::default(),
            is_writing: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            alone: Mutex::new(Alone { until: Instant::default(), next: ALONE_MIN }),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        }
    }

    pub fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_ready(&self) -> bool {
        self.journal().is_some()
    }

    pub fn can_write(&self) -> bool {
        self.mode == OpenMode::ReadWrite
    }

    /// Whether it may be asked now.
    pub fn is_sound(&self) -> bool {
        self.leaf.is_usable() && self.alone().until <= world::now()
    }

    fn alone(&self) -> MutexGuard<'_, Alone> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an operation, though not longer than `limit`. What the outcome says of the device is noted.
    ///
    /// # Errors
    /// `Io`, also when there was no answer in time.
    pub async fn ask<T>(&self, limit: Duration, operation: impl Future<Output = Result<T>>) -> Result<T> {
        match world::timeout(limit, operation).await {
            Some(Ok(done)) => {
                self.alone().next = ALONE_MIN;
                Ok(done)
            }
            Some(Err(e)) => {
                // Asking it for a sign of life may take long, and the pool is read meanwhile.
                let (leaf, mode) = (self.leaf.clone(), self.mode);
                world::spawn(async move { leaf.judge_alone(mode).await });
                Err(e)
            }
            None => {
                let mut alone = self.alone();
                alone.until = world::now().after(alone.next);
                alone.next = (alone.next * 2).min(ALONE_MAX);
                Err(Error::new(Kind::Io, "use cache device").at(self.leaf.device()).because("no answer"))
            }
        }
    }

    pub async fn write(&self, offset: u64, data: Buf) -> Result<()> {
        let len = data.len() as u64;
        self.ask(WORK_LIMIT, self.leaf.write_raw_expendable(offset, data, Priority::AsyncWrite)).await?;
        self.written_bytes.fetch_add(len, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the header as the journal is now.
    pub async fn write_header(&self) -> Result<()> {
        let header = self.journal().as_ref().map(Journal::encode_header);
        match header {
            Some(header) => self.write(ondisk::label::DATA_OFFSET, Buf::copy_from(&header)).await,
            None => Ok(()),
        }
    }
}
