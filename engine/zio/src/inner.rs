//! What all operations of one pipeline share, and the small questions that they ask of it.
//!
//! Reads, writes and gangs are functions on this and know nothing of the pipeline above them.

use crate::prepare::Rules;
use crate::{ReadAhead, Sick, Suspension, Young};
use arc::{BlockId, Cache, Opening};
use l2arc::L2arc;
use metaslab::Space;
use ondisk::{BlockPointer, Dva, Plain};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Error, Kind, Result, Txg};
use vdev::{Top, Tree};
use world::sync::Semaphore;

/// See the module.
#[derive(Debug)]
pub(crate) struct Inner {
    pub devices: Arc<Tree>,
    pub space: Option<Arc<Space>>,
    pub cache: Arc<Cache>,
    /// Which blocks in the cache are of this pipeline.
    pub opening: Opening,
    /// The cache devices.
    pub second: Arc<L2arc>,
    pub checksummer: Mutex<Arc<codec::checksum::Checksummer>>,
    pub rules: Mutex<Rules>,
    /// Bounds the bytes of writes under way, and so the memory that holds compressed copies.
    pub writing: Semaphore,
    /// Gang blocks that were freed: their headers must be read to know what they held.
    pub freed_gangs: Mutex<Vec<(Plain, Txg)>>,
    /// Frees that the space maps contradict: damage, to be told to the administrator.
    pub problems: Mutex<Vec<Error>>,
    pub sick: Sick,
    pub young: Young,
    pub suspension: Arc<Suspension>,
    pub ahead: Arc<ReadAhead>,
}

/// At most so many problems wait to be taken.
const PROBLEMS_MAX: usize = 1000;

impl Inner {
    pub fn note_problem(&self, problem: Error) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < PROBLEMS_MAX {
            problems.push(problem);
        }
    }

    pub fn rules(&self) -> Rules {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn checksummer(&self) -> Arc<codec::checksum::Checksummer> {
        self.checksummer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn top(&self, dva: &Dva) -> Result<Arc<Top>> {
        self.devices.top(dva.vdev).ok_or_else(|| Error::corrupt(format!("no vdev {} in this pool", dva.vdev)))
    }

    /// Waits when `error` is that of devices which give no sign of life, until the pool is resumed; else it is returned.
    /// `begun`: [`Suspension::resumed`] before the read. `again`: the block was read once more since, from devices that
    /// answered.
    pub async fn outlast(&self, bp: &BlockPointer, error: Error, begun: u64, again: &mut bool) -> Result<()> {
        // "No copy passed its checksum" is said as well when a copy could not be read at all.
        if !matches!(error.kind(), Kind::Io | Kind::Checksum) || self.space.is_none() {
            return Err(error);
        }
        for dva in bp.dvas() {
            if !self.top(dva)?.answers().await {
                *again = false;
                return self.suspension.wait(begun, &error).await;
            }
        }
        // A device that answers may have been away when it was asked for the block.
        if std::mem::replace(again, true) { Err(error) } else { Ok(()) }
    }

    /// Nothing is written to the pool: what a pointer leads to stays there.
    pub fn is_steady(&self) -> bool {
        self.space.is_none()
    }

    pub fn space(&self) -> Result<&Arc<Space>> {
        self.space.as_ref().ok_or_else(|| Error::new(Kind::ReadOnly, "write to the pool"))
    }

    /// The name of a block in the cache: where its first copy is, and when it was put there.
    pub fn cache_id(&self, bp: &BlockPointer) -> Option<BlockId> {
        let plain = bp.as_plain()?;
        let (opening, dva) = (self.opening, plain.dvas[0]);
        Some(BlockId { opening, vdev: dva.vdev, offset: dva.offset, birth: plain.resolved_physical_birth() })
    }
}
