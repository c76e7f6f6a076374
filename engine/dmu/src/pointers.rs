//! The pointers of an indirect block while a txg changes some of them.
//!
//! A txg changes few of a thousand. The others stay the bytes that they are; of those only what their sum needs is looked
//! at. So a damaged one does not keep its neighbours from being written: it is met when it is followed.

use crate::tree::BP_SIZE;
use ondisk::BlockPointer;
use units::{Endian, Error, Result};
use world::{Buf, IoBuf};

/// In our byte order.
pub(crate) struct Pointers(IoBuf);

impl Pointers {
    /// Nothing but holes that were never written.
    pub fn holes(count: usize) -> Pointers {
        Pointers(IoBuf::zeroed(count * BP_SIZE))
    }

    /// Those of an indirect block as it was read.
    pub fn of(block: &Buf, count: usize, endian: Endian) -> Result<Pointers> {
        let bytes = block.get(..count * BP_SIZE).ok_or_else(|| {
            Error::corrupt(format!("indirect block of {} bytes has no {count} entries", block.len()))
        })?;
        let mut own = IoBuf::copy_from(bytes);
        if endian != Endian::NATIVE {
            // A pointer is sixteen words, and nothing else.
            own.chunks_exact_mut(size_of::<u64>()).for_each(<[u8]>::reverse);
        }
        Ok(Pointers(own))
    }

    pub fn get(&self, slot: usize) -> Result<BlockPointer> {
        BlockPointer::from_bytes(&self.0[slot * BP_SIZE..(slot + 1) * BP_SIZE], Endian::NATIVE)
    }

    pub fn set(&mut self, slot: usize, bp: &BlockPointer) {
        self.0[slot * BP_SIZE..(slot + 1) * BP_SIZE].copy_from_slice(&bp.to_bytes(Endian::NATIVE));
    }

    /// How many blocks are below them, as far as they say so; `None` where all are holes.
    pub fn fill(&self) -> Result<Option<u64>> {
        let mut sum = None;
        for bytes in self.0.as_chunks::<BP_SIZE>().0 {
            if let Some(fill) = BlockPointer::fill_in(bytes)? {
                sum = Some(sum.unwrap_or(0u64).saturating_add(fill));
            }
        }
        Ok(sum)
    }

    pub fn into_buf(self) -> Buf {
        self.0.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ondisk::Hole;
    use units::{Lsize, Txg};

    #[test]
    fn what_is_not_changed_stays_as_it_is_in_either_byte_order() {
        let hole = |birth| {
            BlockPointer::Hole(Hole {
                lsize: Lsize(4096),
                kind: ondisk::ObjectType::ZVOL,
                level: 0,
                birth: Txg(birth),
            })
        };
        for endian in [Endian::Little, Endian::Big] {
            let mut block = vec![0; 4 * BP_SIZE];
            block[BP_SIZE..2 * BP_SIZE].copy_from_slice(&hole(7).to_bytes(endian));
            let mut pointers = Pointers::of(&Buf::copy_from(&block), 4, endian).unwrap();
            pointers.set(3, &hole(9));
            let all: Vec<_> = (0..4).map(|slot| pointers.get(slot).unwrap()).collect();
            assert_eq!(all, [BlockPointer::HOLE, hole(7), BlockPointer::HOLE, hole(9)]);
            assert_eq!(pointers.fill().unwrap(), None, "a hole with a birth is one");
        }
        assert!(Pointers::of(&Buf::zeroed(BP_SIZE), 2, Endian::NATIVE).is_err());
    }
}
