//! Where one copy of a block lives.

use crate::bytes::{Reader, Writer, bits, place};
use std::fmt;
use std::ops::Range;
use units::{Result, SECTOR, Sectors, VdevId};

/// Where one copy of a block lives (data virtual address): 16 bytes.
///
/// ```text
///         63   56 55        32 31   24 23        0
/// word 0 |  pad  |    vdev    |  pad  |   asize   |   asize and offset in 512-byte sectors
/// word 1 |G|             offset                   |   G: a gang header lives there
/// ```
///
/// `offset` counts from the start of the vdev's allocatable space, after the front labels and the boot area.
/// The asize of a gang DVA is that of the whole gang tree; at the DVA itself stands only its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dva {
    pub vdev: VdevId,
    pub asize: Sectors,
    pub offset: Sectors,
    pub gang: bool,
}

impl Dva {
    pub const SIZE: usize = 16;
    pub const EMPTY: Dva = Dva { vdev: VdevId(0), asize: Sectors(0), offset: Sectors(0), gang: false };

    /// No copy: all bits zero. A DVA at the very start of vdev 0 is not empty, since it has a size.
    pub fn is_empty(&self) -> bool {
        *self == Dva::EMPTY
    }

    /// Every bit pattern is a legal DVA; whether it lies inside the vdev is the pool's question.
    pub fn decode(r: &mut Reader<'_>) -> Result<Dva> {
        Ok(Dva::from_words(r.u64s()?))
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&self.to_words());
    }

    /// The bytes it takes of its vdev's space, `None` if they lie beyond 2^64. For a gang: those of the whole tree,
    /// not of the header that stands here.
    pub fn byte_range(&self) -> Option<Range<u64>> {
        let start = self.offset.0.checked_mul(SECTOR)?;
        Some(start..start.checked_add(self.asize.bytes())?)
    }

    pub fn from_words([size, place]: [u64; 2]) -> Dva {
        Dva {
            vdev: VdevId(bits(size, 32, 24) as u32),
            asize: Sectors(bits(size, 0, 24)),
            offset: Sectors(bits(place, 0, 63)),
            gang: place >> 63 == 1,
        }
    }

    pub fn to_words(&self) -> [u64; 2] {
        [
            place(self.vdev.0.into(), 32, 24) | place(self.asize.0, 0, 24),
            place(self.offset.0, 0, 63) | place(self.gang.into(), 63, 1),
        ]
    }
}

/// As zdb writes it: vdev, offset and allocated size in bytes, the latter two in hexadecimal.
impl fmt::Display for Dva {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "<{}:{:x}:{:x}>",
            self.vdev,
            u128::from(self.offset.0) << units::SECTOR_SHIFT,
            self.asize.bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_they_are_drawn() {
        let dva = Dva { vdev: VdevId(0xabcdef), asize: Sectors(8), offset: Sectors(0x2000), gang: true };
        assert_eq!(dva.to_words(), [0x00ab_cdef_0000_0008, 0x8000_0000_0000_2000]);
        assert_eq!(Dva::from_words(dva.to_words()), dva);
        assert_eq!(dva.to_string(), "<11259375:400000:1000>");
        assert!(Dva::from_words([0, 0]).is_empty() && !dva.is_empty());
    }

    #[test]
    fn an_offset_beyond_all_devices_is_no_range() {
        let at = |offset| Dva { asize: Sectors(8), offset: Sectors(offset), ..Dva::EMPTY };
        assert_eq!(at(0x2000).byte_range(), Some(0x400000..0x401000));
        assert_eq!(at((1 << 55) - 8).byte_range(), None);
        assert_eq!(at((1 << 63) - 1).byte_range(), None);
    }
}
