//! The head of a deadlist.

use super::Space;
use crate::bytes::{Reader, Writer, bonus};
use units::Result;

/// Bonus of 320 bytes of a ZAP from birth txg to the bpobj of the blocks born since then.
///
/// ```text
///   0  used   8  compressed   16  uncompressed   24  padding to 320
/// ```
///
/// Before pool version 26 the object is a bpobj itself; its type tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlistPhys {
    /// Of all blocks on the list.
    pub space: Space,
}

impl DeadlistPhys {
    pub const SIZE: usize = 320;

    pub fn decode(r: &mut Reader<'_>) -> Result<DeadlistPhys> {
        let [used, compressed, uncompressed] = r.u64s()?;
        r.skip(DeadlistPhys::SIZE - 24)?;
        Ok(DeadlistPhys { space: Space { used, compressed, uncompressed } })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.space.used, self.space.compressed, self.space.uncompressed]);
        w.zeros(DeadlistPhys::SIZE - 24);
    }
}

bonus!(DeadlistPhys, "deadlist");
