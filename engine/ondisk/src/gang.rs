//! The gang header: a block that found no room in one piece becomes a list of smaller ones.
//!
//! ```text
//!      0  block pointer   128  block pointer   256  block pointer   384  zeros   472  trailer     512 bytes
//! ```
//!
//! The contents of the pointed-to blocks, one after another, are the block; each may be a gang itself. Headers larger
//! than 512 bytes (feature `dynamic_gang_header`) hold as many pointers as fit before the trailer at their end. The
//! checksum in the trailer is seeded with vdev, offset and birth of the gang pointer.

use crate::blkptr::{BLKPTR_SIZE, BlockPointer};
use crate::bytes::{Reader, Writer};
use crate::trailer::Trailer;
use units::{Endian, Result};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangHeader {
    /// As many as the header has room for; those not needed are holes, and last.
    pub pointers: Vec<BlockPointer>,
    pub trailer: Trailer,
}

impl GangHeader {
    /// Without the feature `dynamic_gang_header`.
    pub const SIZE: usize = 512;
    /// The largest: that of the largest `ashift`.
    pub const MAX_SIZE: usize = 64 << 10;

    /// Pointers in a header of `size` bytes: 3 in 512.
    pub fn capacity(size: usize) -> usize {
        size.saturating_sub(Trailer::SIZE) / BLKPTR_SIZE
    }

    /// The order of the header is that of the machine that wrote it; the magic of the trailer tells.
    pub fn endian_of(bytes: &[u8]) -> Option<Endian> {
        let (_, trailer) = bytes.split_last_chunk::<{ Trailer::SIZE }>()?;
        let magic = *trailer.first_chunk::<8>()?;
        [Endian::Little, Endian::Big].into_iter().find(|endian| match endian {
            Endian::Little => u64::from_le_bytes(magic) == Trailer::MAGIC,
            Endian::Big => u64::from_be_bytes(magic) == Trailer::MAGIC,
        })
    }

    /// `bytes` are the whole header.
    pub fn from_bytes(bytes: &[u8], endian: Endian) -> Result<GangHeader> {
        GangHeader::decode(&mut Reader::new(bytes, endian, "gang header"))
    }

    /// Reads all that is left of `r`: its length is the size of the header.
    pub fn decode(r: &mut Reader<'_>) -> Result<GangHeader> {
        let size = r.remaining();
        if !(GangHeader::SIZE..=GangHeader::MAX_SIZE).contains(&size) {
            return Err(r.corrupt(format_args!("a size of {size} bytes")));
        }
        let capacity = GangHeader::capacity(size);
        let pointers = (0..capacity).map(|_| BlockPointer::decode(r)).collect::<Result<_>>()?;
        r.skip(size - capacity * BLKPTR_SIZE - Trailer::SIZE)?;
        Ok(GangHeader { pointers, trailer: Trailer::decode(r)? })
    }

    /// Fills what is left of `w`.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let end = w.position() + w.remaining();
        assert!(self.pointers.len() <= GangHeader::capacity(w.remaining()), "the pointers fit the header");
        for pointer in &self.pointers {
            pointer.encode(w);
        }
        w.pad_to(end - Trailer::SIZE);
        self.trailer.encode(w);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blkptr::tests::any_pointer;
    use crate::testing::{Numbers, ORDERS, assault, check_round_trip};

    fn any_header(n: &mut Numbers, size: usize) -> GangHeader {
        let pointers = (0..GangHeader::capacity(size)).map(|_| any_pointer(n)).collect();
        GangHeader { pointers, trailer: Trailer::new([n.next(); 4]) }
    }

    #[test]
    fn headers_of_all_sizes_survive_the_round_trip_in_both_orders() {
        let mut n = Numbers(30);
        for (size, pointers) in [(512, 3), (4096, 31), (8192, 63)] {
            let header = any_header(&mut n, size);
            assert_eq!(header.pointers.len(), pointers);
            check_round_trip(&header, size, GangHeader::encode, GangHeader::decode);
        }
    }

    #[test]
    fn the_trailer_tells_the_byte_order() {
        let header = any_header(&mut Numbers(31), 512);
        for endian in ORDERS {
            let mut bytes = [0; 512];
            header.encode(&mut Writer::new(&mut bytes, endian));
            assert_eq!(GangHeader::endian_of(&bytes), Some(endian));
        }
        assert_eq!(GangHeader::endian_of(&[0; 512]), None);
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut good = [0; 512];
        any_header(&mut Numbers(32), 512).encode(&mut Writer::new(&mut good, Endian::Little));
        assault(&good, |bytes, endian| drop(GangHeader::from_bytes(bytes, endian)));
    }
}
