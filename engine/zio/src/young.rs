//! The blocks that the txg being synced may yet write again in their places.
//!
//! ```text
//!   pass 1   written to a place, noted          the tree that readers see has it from here on
//!   pass 2   written to the same place          a reader of that tree would find bytes that fail their checksum
//!   synced   forgotten                          its place holds it, and keeps it
//! ```
//!
//! A reader may come between the passes with a pointer of the pass before, and the cache may have dropped the block by
//! then. So what may be overwritten is kept here until the txg is on disk, and is never read from the devices. The reader
//! gets the newer content, which is what the object holds by then.
//!
//! Only the pool's own object set must come to rest by this, as writing it changes it again; a block of another set that
//! a later pass changes gets another place. A gang block keeps its place too, header and parts: a block in pieces that
//! took other pieces in each pass would change the space maps in each, and they are such blocks themselves where free
//! space is in pieces.
//!
//! Invariant: a block that is written in its place is here, and so is each that has been, until its txg is synced.

use crate::store::WriteSpec;
use arc::BlockId;
use ondisk::BlockPointer;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{HashMap, ObjsetId};
use world::Buf;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Young(Mutex<HashMap<BlockId, Buf>>);

impl Young {
    fn lock(&self) -> MutexGuard<'_, HashMap<BlockId, Buf>> {
        // Each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, block: &BlockId) -> Option<Buf> {
        self.lock().get(block).cloned()
    }

    /// A block was written.
    pub fn note(&self, block: BlockId, bp: &BlockPointer, data: &Buf, spec: &WriteSpec) {
        let is_here = bp.as_plain().is_some_and(|p| p.birth == spec.txg);
        if is_here && spec.at.objset == ObjsetId::MOS {
            self.lock().insert(block, data.clone());
        }
    }

    pub fn grow_up(&self) {
        self.lock().clear();
    }
}
