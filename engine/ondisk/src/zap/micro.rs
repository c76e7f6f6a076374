//! The micro ZAP: a header of 64 bytes, then entries of 64 bytes to the end of the block.

use crate::bytes::{Reader, Writer};
use units::Result;

pub const MICRO_HEADER_SIZE: usize = 64;
pub const MICRO_ENTRY_SIZE: usize = 64;
/// Bytes of a name, without its final zero.
pub const MICRO_NAME_MAX: usize = NAME_FIELD - 1;
const NAME_FIELD: usize = 50;

/// ```text
///   0  block type   8  salt of the hash   16  normalization flags   24  padding to 64
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MicroHeader {
    pub salt: u64,
    pub normalization: u64,
}

/// ```text
///   0  value   8  collision differentiator (u32)   12  padding (u16)   14  name, ended by a zero byte
/// ```
///
/// An empty name marks an unused entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MicroEntry {
    pub value: u64,
    /// Tells apart names of equal hash.
    pub differentiator: u32,
    pub name: Vec<u8>,
}

impl MicroHeader {
    pub fn decode(r: &mut Reader<'_>) -> Result<MicroHeader> {
        let kind = r.u64()?;
        if kind != super::ZapBlock::MICRO {
            return Err(r.corrupt(format_args!("block type {kind:#x} where a micro ZAP should be")));
        }
        let header = MicroHeader { salt: r.u64()?, normalization: r.u64()? };
        r.skip(40)?;
        Ok(header)
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[super::ZapBlock::MICRO, self.salt, self.normalization]);
        w.zeros(40);
    }
}

impl MicroEntry {
    /// The next entry; `None` for an unused one.
    pub fn decode(r: &mut Reader<'_>) -> Result<Option<MicroEntry>> {
        let (value, differentiator) = (r.u64()?, r.u32()?);
        r.skip(2)?;
        let field: [u8; NAME_FIELD] = r.array()?;
        let Some(end) = field.iter().position(|&b| b == 0) else {
            return Err(r.corrupt("a name in a micro ZAP has no end"));
        };
        let name = field.get(..end).unwrap_or_default().to_vec();
        Ok((!name.is_empty()).then_some(MicroEntry { value, differentiator, name }))
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        assert!(self.name.len() <= MICRO_NAME_MAX, "a longer name needs a fat ZAP");
        w.u64(self.value);
        w.u32(self.differentiator);
        w.zeros(2);
        w.bytes(&self.name);
        w.zeros(NAME_FIELD - self.name.len());
    }

    /// An unused entry.
    pub fn encode_unused(w: &mut Writer<'_>) {
        w.zeros(MICRO_ENTRY_SIZE);
    }
}
