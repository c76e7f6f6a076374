//! The checksum a block carries within itself: labels, uberblocks, gang headers and log blocks.

use crate::bytes::{Reader, Writer};
use units::Result;

/// 40 bytes, at the end of the block (in new-style log blocks at the end of the chain at its start).
///
/// ```text
///   0  magic: also tells the byte order of the block
///   8  checksum, four words
/// ```
///
/// While the checksum is computed, its place holds the verifier: what the block must be, such as its offset on the
/// device. A block moved elsewhere therefore fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    pub magic: u64,
    pub checksum: [u64; 4],
}

impl Default for Trailer {
    fn default() -> Trailer {
        Trailer::new([0; 4])
    }
}

impl Trailer {
    pub const SIZE: usize = 40;
    pub const MAGIC: u64 = 0x0210_da7a_b10c_7a11;

    pub fn new(checksum: [u64; 4]) -> Trailer {
        Trailer { magic: Trailer::MAGIC, checksum }
    }

    /// A wrong magic is no error here: a block never written has none, and its reader knows what that means.
    pub fn decode(r: &mut Reader<'_>) -> Result<Trailer> {
        Ok(Trailer { magic: r.u64()?, checksum: r.u64s()? })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64(self.magic);
        w.u64s(&self.checksum);
    }

    pub fn is_magic(&self) -> bool {
        self.magic == Trailer::MAGIC
    }
}
