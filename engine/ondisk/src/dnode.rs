//! The dnode: an object's type, block sizes, first block pointers and bonus.
//!
//! ```text
//!    0  type, indirect shift, levels, pointers     one byte each
//!    4  bonus type, checksum, compression, flags   one byte each
//!    8  data block size in sectors, bonus length   two bytes each
//!   12  extra slots, 3 bytes of padding
//!   16  number of the last block
//!   24  space used, in bytes (flag USED_BYTES) or sectors
//!   32  32 bytes of padding
//!   64  tail: 448 bytes in one slot, 512 more with each extra slot
//!
//!   tail  | pointer 0 | pointer 1 | pointer 2 |   |       3 pointers, bonus to the end
//!         | pointer 0 | bonus ...                 |       1 pointer
//!         | pointer 0 | bonus ...         | spill |       1 pointer, flag SPILL_BLKPTR
//! ```
//!
//! A dnode fills 1 to 32 slots of 512 bytes in a block of 16 KiB of the meta-dnode; the number of its first slot
//! is its object number. Of a free slot only the type (zero) counts.

use crate::blkptr::{BLKPTR_SHIFT, BLKPTR_SIZE, BlockPointer};
use crate::bytes::{Reader, Writer};
use crate::object_type::ObjectType;
use crate::swap::swap_words;
use crate::{MAX_BLOCK_SIZE, MIN_BLOCK_SIZE};
use units::{Checksum, Compression, Endian, Lsize, Result, SECTOR, SECTOR_SHIFT};

pub const DNODE_SHIFT: u32 = 9;
/// One slot, and the size of a dnode without extra slots.
pub const DNODE_SIZE: usize = 1 << DNODE_SHIFT;
/// What precedes the block pointers.
pub const DNODE_CORE_SIZE: usize = 64;
pub const DNODE_BLOCK_SHIFT: u32 = 14;
pub const DNODE_BLOCK_SIZE: usize = 1 << DNODE_BLOCK_SHIFT;
/// Slots in a block of the meta-dnode.
pub const DNODES_PER_BLOCK: usize = DNODE_BLOCK_SIZE / DNODE_SIZE;
/// Block pointers a dnode can hold.
pub const MAX_BLKPTRS: usize = 3;
/// Levels that reach 2^64 bytes with the smallest blocks of today: the format's own limit.
pub const MAX_LEVELS: u8 = 12;
/// 1 KiB, as the first versions allowed; today's smallest is 4 KiB.
pub const INDIRECT_SHIFT_MIN: u8 = 10;
/// 128 KiB.
pub const INDIRECT_SHIFT_MAX: u8 = 17;

/// A set of the `DNODE_FLAG_*` bits. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnodeFlags(pub u8);

impl DnodeFlags {
    /// `used` counts bytes, not sectors.
    pub const USED_BYTES: DnodeFlags = DnodeFlags(1);
    pub const USERUSED_ACCOUNTED: DnodeFlags = DnodeFlags(2);
    /// The last 128 bytes of the tail point to a spill block.
    pub const SPILL_BLKPTR: DnodeFlags = DnodeFlags(4);
    pub const USEROBJUSED_ACCOUNTED: DnodeFlags = DnodeFlags(8);

    pub fn has(self, flag: DnodeFlags) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub fn with(self, flag: DnodeFlags) -> DnodeFlags {
        DnodeFlags(self.0 | flag.0)
    }

    #[must_use]
    pub fn without(self, flag: DnodeFlags) -> DnodeFlags {
        DnodeFlags(self.0 & !flag.0)
    }
}

/// See the module. The default is a free slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnodePhys {
    pub kind: ObjectType,
    pub indirect_shift: u8,
    /// 1: the block pointers here lead to data.
    pub levels: u8,
    pub bonus_kind: ObjectType,
    /// An override for this object's blocks; 0 inherits. See [`DnodePhys::checksum_override`].
    pub checksum: u8,
    /// An override for this object's blocks; 0 inherits. See [`DnodePhys::compression_override`].
    pub compression: u8,
    pub flags: DnodeFlags,
    /// Of a data block, in sectors: not always a power of two while there is only one block.
    pub data_block_sectors: u16,
    /// Slots beyond the first.
    pub extra_slots: u8,
    /// The number of the last block, counted in data blocks; 0 also for an empty object.
    pub max_block_id: u64,
    /// See [`DnodePhys::used_bytes`].
    pub used: u64,
    /// One to three; none in a free slot.
    pub blkptrs: Vec<BlockPointer>,
    /// Exactly the bonus length, and always in native order whatever the order of the block: see [`swap_words`].
    pub bonus: Vec<u8>,
    /// Present if and only if the flag SPILL_BLKPTR is set.
    pub spill: Option<BlockPointer>,
}

impl DnodePhys {
    /// A slot that is not used.
    pub fn free() -> DnodePhys {
        DnodePhys::default()
    }

    pub fn is_free(&self) -> bool {
        self.kind == ObjectType::NONE
    }

    /// How many slots of 512 bytes it fills.
    pub fn slots(&self) -> usize {
        1 + usize::from(self.extra_slots)
    }

    /// Its size on disk in bytes.
    pub fn size(&self) -> usize {
        self.slots() * DNODE_SIZE
    }

    /// Bytes of a data block.
    pub fn data_block_size(&self) -> Lsize {
        Lsize(u64::from(self.data_block_sectors) << SECTOR_SHIFT)
    }

    /// Bytes of an indirect block.
    pub fn indirect_block_size(&self) -> Lsize {
        Lsize(1 << self.indirect_shift)
    }

    /// Block pointers in an indirect block, as a power of two.
    pub fn pointers_shift(&self) -> u32 {
        u32::from(self.indirect_shift).saturating_sub(BLKPTR_SHIFT)
    }

    /// Block pointers in an indirect block.
    pub fn pointers_per_indirect(&self) -> u64 {
        1 << self.pointers_shift()
    }

    /// How many data blocks lie below one pointer to a block of `level`, or `None` beyond 2^63.
    pub fn span(&self, level: u8) -> Option<u64> {
        1u64.checked_shl(u32::from(level) * self.pointers_shift()).filter(|&span| span != 0)
    }

    /// Bytes taken from the devices by the object and its indirect blocks.
    pub fn used_bytes(&self) -> u64 {
        if self.flags.has(DnodeFlags::USED_BYTES) { self.used } else { self.used.saturating_mul(SECTOR) }
    }

    /// The compression set on this object alone; an unknown code counts as none.
    pub fn compression_override(&self) -> Option<Compression> {
        Compression::from_code(self.compression)
    }

    /// The checksum set on this object alone; an unknown code counts as none.
    pub fn checksum_override(&self) -> Option<Checksum> {
        Checksum::from_code(self.checksum)
    }

    /// A reader over the bonus.
    pub fn bonus_reader(&self, what: &'static str) -> Reader<'_> {
        Reader::new(&self.bonus, Endian::NATIVE, what)
    }

    /// The longest bonus of a dnode of `slots` slots with `pointers` block pointers, and a spill pointer or not.
    pub fn bonus_max(slots: usize, pointers: usize, spill: bool) -> usize {
        let taken = DNODE_CORE_SIZE + (pointers + usize::from(spill)) * BLKPTR_SIZE;
        (slots * DNODE_SIZE).saturating_sub(taken)
    }

    /// `bytes` start at the dnode's first slot and may go on to the end of its block.
    pub fn from_bytes(bytes: &[u8], endian: Endian) -> Result<DnodePhys> {
        DnodePhys::decode(&mut Reader::new(bytes, endian, "dnode"))
    }

    /// Reads one dnode with its extra slots. Nothing but the type of a free slot is looked at.
    pub fn decode(r: &mut Reader<'_>) -> Result<DnodePhys> {
        let mut core = r.within(DNODE_CORE_SIZE, "dnode")?;
        let (mut dnode, pointers, bonus_len) = decode_core(&mut core)?;
        let mut tail = r.within(dnode.size() - DNODE_CORE_SIZE, "dnode")?;
        if dnode.is_free() {
            return Ok(dnode);
        }
        let has_spill = dnode.flags.has(DnodeFlags::SPILL_BLKPTR);
        let bonus_max = DnodePhys::bonus_max(dnode.slots(), pointers, has_spill);
        if bonus_len > bonus_max {
            return Err(tail.corrupt(format_args!("a bonus of {bonus_len} bytes where {bonus_max} fit")));
        }
        for _ in 0..pointers {
            dnode.blkptrs.push(BlockPointer::decode(&mut tail)?);
        }
        dnode.bonus = tail.bytes(bonus_len)?.to_vec();
        if r.endian() != Endian::NATIVE {
            swap_words(dnode.bonus_kind, &mut dnode.bonus);
        }
        tail.skip(bonus_max - bonus_len)?;
        if has_spill {
            dnode.spill = Some(BlockPointer::decode(&mut tail)?);
        }
        Ok(dnode)
    }

    /// Writes [`DnodePhys::size`] bytes.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let end = w.position() + self.size();
        if self.is_free() {
            return w.pad_to(end);
        }
        let has_spill = self.flags.has(DnodeFlags::SPILL_BLKPTR);
        assert_eq!(has_spill, self.spill.is_some(), "the flag says whether there is a spill pointer");
        assert!((1..=MAX_BLKPTRS).contains(&self.blkptrs.len()), "a dnode has one to three block pointers");
        self.encode_core(w);
        for pointer in &self.blkptrs {
            pointer.encode(w);
        }
        self.encode_bonus(w);
        if let Some(spill) = &self.spill {
            w.pad_to(end - BLKPTR_SIZE);
            spill.encode(w);
        }
        w.pad_to(end);
    }

    fn encode_core(&self, w: &mut Writer<'_>) {
        let end = w.position() + DNODE_CORE_SIZE;
        w.bytes(&[self.kind.0, self.indirect_shift, self.levels, self.blkptrs.len() as u8]);
        w.bytes(&[self.bonus_kind.0, self.checksum, self.compression, self.flags.0]);
        w.u16(self.data_block_sectors);
        w.u16(self.bonus.len() as u16);
        w.u8(self.extra_slots);
        w.zeros(3);
        w.u64(self.max_block_id);
        w.u64(self.used);
        w.pad_to(end);
    }

    fn encode_bonus(&self, w: &mut Writer<'_>) {
        if w.endian() == Endian::NATIVE {
            return w.bytes(&self.bonus);
        }
        let mut bonus = self.bonus.clone();
        swap_words(self.bonus_kind, &mut bonus);
        w.bytes(&bonus);
    }

    pub fn to_bytes(&self, endian: Endian) -> Vec<u8> {
        let mut bytes = vec![0; self.size()];
        self.encode(&mut Writer::new(&mut bytes, endian));
        bytes
    }
}

/// The first 64 bytes: the dnode without its tail, the count of its pointers and the length of its bonus.
fn decode_core(r: &mut Reader<'_>) -> Result<(DnodePhys, usize, usize)> {
    let [kind, indirect_shift, levels, pointers] = r.array()?;
    if kind == ObjectType::NONE.0 {
        return Ok((DnodePhys::free(), 0, 0));
    }
    let [bonus_kind, checksum, compression, flags] = r.array()?;
    let data_block_sectors = r.u16()?;
    let bonus_len = r.u16()?;
    let extra_slots = r.u8()?;
    r.skip(3)?;
    let dnode = DnodePhys {
        kind: ObjectType(kind),
        indirect_shift,
        levels,
        bonus_kind: ObjectType(bonus_kind),
        checksum,
        compression,
        flags: DnodeFlags(flags),
        data_block_sectors,
        extra_slots,
        max_block_id: r.u64()?,
        used: r.u64()?,
        ..DnodePhys::default()
    };
    check_core(r, &dnode, pointers.into())?;
    Ok((dnode, pointers.into(), bonus_len.into()))
}

fn check_core(r: &Reader<'_>, dnode: &DnodePhys, pointers: usize) -> Result<()> {
    let problem = if !dnode.kind.is_valid() {
        format!("unknown object type {}", dnode.kind.0)
    } else if !dnode.bonus_kind.is_valid() {
        format!("unknown bonus type {}", dnode.bonus_kind.0)
    } else if !(INDIRECT_SHIFT_MIN..=INDIRECT_SHIFT_MAX).contains(&dnode.indirect_shift) {
        format!("indirect blocks of 2^{} bytes", dnode.indirect_shift)
    } else if !(1..=MAX_LEVELS).contains(&dnode.levels) {
        format!("{} levels", dnode.levels)
    } else if !(1..=MAX_BLKPTRS).contains(&pointers) {
        format!("{pointers} block pointers")
    } else if dnode.slots() > DNODES_PER_BLOCK {
        format!("{} slots", dnode.slots())
    } else if dnode.max_block_id >= reach(dnode, pointers) {
        format!("last block {:#x}, which {} levels do not reach", dnode.max_block_id, dnode.levels)
    } else if !(MIN_BLOCK_SIZE..=MAX_BLOCK_SIZE).contains(&dnode.data_block_size().0) {
        format!("data blocks of {} bytes", dnode.data_block_size().0)
    } else {
        return Ok(());
    };
    Err(r.corrupt(problem))
}

/// How many data blocks `pointers` roots can lead to; an object never has more, nor more than 2^64 bytes.
fn reach(dnode: &DnodePhys, pointers: usize) -> u64 {
    let shift = dnode.pointers_shift() * u32::from(dnode.levels.saturating_sub(1));
    let blocks = (pointers as u128).checked_shl(shift).filter(|_| shift < 64).unwrap_or(u128::MAX);
    let of_bytes = u64::MAX / dnode.data_block_size().0.max(1);
    u64::try_from(blocks).unwrap_or(u64::MAX).min(of_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
