//! Writing changed structures so that they are believed.

use super::base::{Base, Part};
use super::index::{Block, What};
use codec::checksum::Checksummer;
use codec::checksum::sealed::{gang_verifier, label_verifier, seal};
use ondisk::{BLKPTR_SIZE, BlockPointer, Dva, Plain, Uberblock, Writer};
use sim::Disks;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Checksum, Compression, Endian, Error, Lsize, Psize, Result, SECTOR, Sectors, Txg};
use vdev::Top;

/// Where new blocks begin: so far from the end of the device nothing else is, in small pools.
const FROM_THE_END: u64 = 1 << 20;

/// Changes a copy of a pool's disks.
pub struct Sealer<'a> {
    base: &'a Base,
    disks: &'a Disks,
    top: Arc<Top>,
    /// The space from here on is taken.
    end: u64,
    changed: BTreeMap<usize, Vec<u8>>,
    /// Each indirect block leads to one block below it only, as often as it has room: a small tree becomes one that
    /// takes for ever to walk.
    pub is_multiplied: bool,
}

impl<'a> Sealer<'a> {
    pub fn new(base: &'a Base, disks: &'a Disks) -> Result<Sealer<'a>> {
        let top = base.tree().tops().into_iter().find(|top| !top.is_log && top.is_usable());
        let top = top.ok_or_else(|| Error::invalid("the pool has no usable device"))?;
        let end = (top.asize() - FROM_THE_END) & !(FROM_THE_END - 1);
        Ok(Sealer { base, disks, top, end, changed: BTreeMap::new(), is_multiplied: false })
    }

    /// The bytes of a block, to be changed.
    pub fn change(&mut self, number: usize) -> &mut Vec<u8> {
        let base = self.base;
        self.changed.entry(number).or_insert_with(|| base.index.blocks[number].data.to_vec())
    }

    /// Writes all that was changed, and what leads to it.
    pub fn finish(mut self) -> Result<()> {
        let blocks = &self.base.index.blocks;
        while let Some(number) = self.changed.keys().copied().max_by_key(|n| (blocks[*n].depth, *n)) {
            let mut data = self.changed.remove(&number).unwrap_or_default();
            let block = &blocks[number];
            if self.is_multiplied && block.what == What::Indirect {
                multiply(&mut data);
            }
            match block.what {
                What::Log | What::Gang => self.seal_in_place(block, data)?,
                _ => {
                    let bp = self.write(block, data)?;
                    match block.parent {
                        Some((above, at)) => {
                            let bytes = bp.to_bytes(Endian::NATIVE);
                            self.change(above)[at..at + BLKPTR_SIZE].copy_from_slice(&bytes);
                        }
                        None => {
                            let uberblock = Uberblock { root: bp, ..self.base.uberblock.clone() };
                            let mut bytes = vec![0; Uberblock::SIZE];
                            uberblock.encode(&mut Writer::native(&mut bytes));
                            uberblocks(self.base, self.disks, &bytes);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a block where nothing is, uncompressed.
    fn write(&mut self, block: &Block, mut data: Vec<u8>) -> Result<BlockPointer> {
        data.resize(data.len().next_multiple_of(SECTOR as usize).max(SECTOR as usize), 0);
        let asize = self.top.psize_to_asize(data.len() as u64);
        self.end = (self.end - asize) / asize.next_power_of_two().max(1) * asize.next_power_of_two().max(1);
        self.poke(&self.top.clone(), self.end, &data)?;
        let checksum_kind = Checksum::Fletcher4;
        let bp = Plain {
            dvas: [
                Dva {
                    vdev: self.top.id,
                    asize: Sectors::of(asize),
                    offset: Sectors::of(self.end),
                    ..Dva::EMPTY
                },
                Dva::EMPTY,
                Dva::EMPTY,
            ],
            lsize: Lsize(data.len() as u64),
            psize: Psize(data.len() as u64),
            compression: Compression::Off,
            checksum_kind,
            kind: block.bp.kind(),
            level: block.bp.level(),
            birth: block.bp.birth(),
            physical_birth: Txg::NONE,
            fill: block.bp.as_plain().map_or(1, |plain| plain.fill),
            checksum: Checksummer::unsalted().compute(checksum_kind, Endian::NATIVE, &data),
            endian: Endian::NATIVE,
            dedup: false,
            rewritten: false,
            crypt: None,
        };
        Ok(BlockPointer::Plain(bp))
    }

    fn seal_in_place(&self, block: &Block, mut data: Vec<u8>) -> Result<()> {
        let Some(plain) = block.bp.as_plain() else { return Ok(()) };
        for dva in plain.copies() {
            let offset = dva.offset.bytes();
            if block.what == What::Gang {
                let verifier = gang_verifier(dva.vdev, offset, plain.birth);
                seal(Checksum::GangHeader, Endian::NATIVE, &mut data, verifier, None);
            } else {
                if !seals(plain.checksum_kind, &data) {
                    return Ok(());
                }
                seal(plain.checksum_kind, Endian::NATIVE, &mut data, plain.checksum, None);
            }
            if let Some(top) = self.base.tree().top(dva.vdev) {
                self.poke(&top, offset, &data)?;
            }
        }
        Ok(())
    }

    /// On every device that has a part of it. Parity stays as it was: the data pass their checksum, so none is asked for.
    fn poke(&self, top: &Top, offset: u64, data: &[u8]) -> Result<()> {
        for place in top.places(offset, data.len())? {
            let Some(bytes) = place.bytes.and_then(|range| data.get(range.start..range.end.min(data.len())))
            else {
                continue;
            };
            if let Some(disk) = self.disks.get(&place.device.path) {
                disk.poke(place.offset, bytes);
            }
        }
        Ok(())
    }
}

/// The first pointer in the place of all.
fn multiply(indirect: &mut [u8]) {
    let is_used = |pointer: &&[u8]| pointer.iter().any(|byte| *byte != 0);
    let Some(first) = indirect.chunks_exact(BLKPTR_SIZE).find(is_used).map(<[u8]>::to_vec) else { return };
    indirect.chunks_exact_mut(BLKPTR_SIZE).for_each(|pointer| pointer.copy_from_slice(&first));
}

/// Whether a log block that says so can be sealed at all: it tells itself how much of it is covered.
fn seals(kind: Checksum, data: &[u8]) -> bool {
    let used = data.get(136..144).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    kind != Checksum::Zilog2
        || used.checked_next_multiple_of(4096).is_some_and(|n| n > 0 && n <= data.len() as u64)
}

/// Writes an uberblock into all slots that have the newest.
pub fn uberblocks(base: &Base, disks: &Disks, uberblock: &[u8]) {
    base.slots.iter().for_each(|slot| label_part(disks, slot, uberblock));
}

/// Writes a packed configuration into all labels.
pub fn configs(base: &Base, disks: &Disks, packed: &[u8]) {
    base.configs.iter().for_each(|part| label_part(disks, part, packed));
}

fn label_part(disks: &Disks, part: &Part, bytes: &[u8]) {
    let Some(disk) = disks.get(&part.path) else { return };
    let mut whole = vec![0; part.len];
    let len = bytes.len().min(whole.len());
    whole[..len].copy_from_slice(&bytes[..len]);
    seal(Checksum::Label, Endian::NATIVE, &mut whole, label_verifier(part.at), None);
    disk.poke(part.at, &whole);
}
