//! Blocks kept in memory: what the layers above are tested on, without a pool.
//!
//! It keeps the promises of [`BlockStore`] and is strict where a pool cannot be: reading a block that was freed, freeing
//! one twice, or writing one that was not there is an error that names it.

use crate::store::{BlockStore, Bookmark, ReadClass, WriteSpec};
use ondisk::{BlockPointer, Dva, Hole, Plain};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Endian, Error, Kind, Lsize, Psize, Result, Sectors, Txg, VdevId};
use world::{Buf, Pending};

#[derive(Debug, Default)]
struct State {
    blocks: BTreeMap<u64, Buf>,
    next: u64,
    freed: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct MemStore(Mutex<State>);

impl MemStore {
    pub fn new() -> MemStore {
        MemStore::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many blocks exist.
    pub fn count(&self) -> usize {
        self.lock().blocks.len()
    }

    /// Bytes of all blocks that exist.
    pub fn bytes(&self) -> u64 {
        self.lock().blocks.values().map(|b| b.len() as u64).sum()
    }

    fn find(&self, bp: &BlockPointer) -> Result<Buf> {
        let Some(plain) = bp.as_plain() else { return Ok(Buf::zeroed(bp.lsize().0 as usize)) };
        let key = plain.dvas[0].offset.0;
        let missing = || Error::new(Kind::Checksum, "read block").at(format!("{key}"));
        self.lock().blocks.get(&key).cloned().ok_or_else(missing)
    }

    fn put(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> BlockPointer {
        let lsize = Lsize(data.len() as u64);
        if codec::is_zero(&data) {
            return BlockPointer::Hole(Hole { lsize, kind: spec.kind, level: spec.level, birth: spec.txg });
        }
        let mut state = self.lock();
        let in_place = old
            .as_plain()
            .filter(|p| spec.pass > 1 && p.birth == spec.txg && p.lsize == lsize)
            .map(|p| p.dvas[0].offset.0);
        let key = in_place.unwrap_or_else(|| {
            state.next += lsize.0 >> 9;
            state.next
        });
        state.blocks.insert(key, data);
        let dva = Dva {
            vdev: VdevId(0),
            asize: Sectors::of(lsize.0.next_multiple_of(512)),
            offset: Sectors(key),
            gang: false,
        };
        BlockPointer::Plain(Plain {
            dvas: [dva, Dva::default(), Dva::default()],
            lsize,
            psize: Psize(lsize.0),
            compression: units::Compression::Off,
            checksum_kind: spec.checksum,
            kind: spec.kind,
            level: spec.level,
            birth: spec.txg,
            physical_birth: Txg::NONE,
            fill: spec.fill,
            checksum: [key, 0, 0, 0],
            endian: Endian::NATIVE,
            dedup: false,
            rewritten: false,
            crypt: None,
        })
    }
}

impl BlockStore for MemStore {
    fn cached(&self, _: &BlockPointer) -> Option<Buf> {
        None
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, _: ReadClass) -> Pending<Result<Buf>> {
        let found = self.find(bp).map_err(|e| e.at(at));
        Box::pin(async move { found })
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        let bp = self.put(data, old, spec);
        Box::pin(async move { Ok(bp) })
    }

    /// # Panics
    /// When the block is not there: it was freed twice, or never written.
    fn free(&self, bp: &BlockPointer, _: Txg) {
        let Some(plain) = bp.as_plain() else { return };
        let mut state = self.lock();
        assert!(state.blocks.remove(&plain.dvas[0].offset.0).is_some(), "freed twice: {bp:?}");
        state.freed += 1;
    }

    fn charged(&self, bp: &BlockPointer) -> u64 {
        bp.asize().0
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        lsize * u64::from(copies)
    }
}
