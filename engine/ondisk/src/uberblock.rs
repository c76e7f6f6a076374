//! The uberblock: the root of one state of the pool. The one with the highest txg that verifies is the pool.
//!
//! It fills the start of a slot in the ring of each label; the last 40 bytes of the slot are its trailer.
//!
//! ```text
//!     0  magic                8  pool version       16  txg          24  sum of all vdev guids
//!    32  time, seconds       40  block pointer to the MOS (128 bytes)
//!   168  version of the writer                       176  mmp magic   184  mmp delay, nanoseconds
//!   192  mmp: |63 fails 48|47 sequence 32|31 interval, ms 8|7 valid 0|
//!   200  checkpoint txg     208  raidz expansion: |63 scratch 55|54 offset in sectors 0|
//! ```
//!
//! The order of the magic's bytes tells the byte order of the rest.

use crate::blkptr::BlockPointer;
use crate::bytes::{Reader, Writer, bits, place};
use units::{Endian, Result, SECTOR_SHIFT, Txg};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uberblock {
    /// 1 to 28, or 5000 for pools whose features say more.
    pub version: u64,
    pub txg: Txg,
    /// Of the whole tree: if a vdev is missing from a configuration, its sum differs.
    pub guid_sum: u64,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// The MOS.
    pub root: BlockPointer,
    pub software_version: u64,
    /// Absent in uberblocks of software without multihost protection.
    pub mmp: Option<Mmp>,
    /// In a checkpoint: the txg the uberblock had when it was taken.
    pub checkpoint_txg: Txg,
    pub reflow: RaidzReflow,
}

/// What other hosts need to judge whether the pool is in use (multihost protection).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mmp {
    /// Time since the last such write; 0 when the protection is off.
    pub delay_ns: u64,
    /// Milliseconds between writes, 24 bits.
    pub interval_ms: Option<u32>,
    /// Distinguishes writes within one second.
    pub sequence: Option<u16>,
    /// Missed intervals after which the owner gives the pool up.
    pub fail_intervals: Option<u16>,
}

/// How far the expansion of a raidz has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaidzReflow {
    /// One of the constants here: whether the area in front of the data holds the only copy of the first rows.
    pub scratch: u16,
    /// Everything before this offset, in bytes, is already in the new geometry.
    pub offset: u64,
}

impl RaidzReflow {
    pub const SCRATCH_NOT_IN_USE: u16 = 0;
    pub const SCRATCH_VALID: u16 = 1;
    pub const SCRATCH_INVALID_SYNCED: u16 = 2;
    pub const SCRATCH_INVALID_SYNCED_ON_IMPORT: u16 = 3;
    pub const SCRATCH_INVALID_SYNCED_REFLOW: u16 = 4;

    fn from_word(word: u64) -> RaidzReflow {
        RaidzReflow { scratch: bits(word, 55, 9) as u16, offset: bits(word, 0, 55) << SECTOR_SHIFT }
    }

    fn to_word(self) -> u64 {
        place(self.scratch.into(), 55, 9) | place(self.offset >> SECTOR_SHIFT, 0, 55)
    }
}

const MMP_MAGIC: u64 = 0xa11c_ea11;
const INTERVAL_VALID: u64 = 1;
const SEQUENCE_VALID: u64 = 2;
const FAILS_VALID: u64 = 4;

impl Mmp {
    fn from_words(delay_ns: u64, config: u64) -> Mmp {
        let if_valid = |flag: u64, value: u64| (config & flag != 0).then_some(value);
        Mmp {
            delay_ns,
            interval_ms: if_valid(INTERVAL_VALID, bits(config, 8, 24)).map(|v| v as u32),
            sequence: if_valid(SEQUENCE_VALID, bits(config, 32, 16)).map(|v| v as u16),
            fail_intervals: if_valid(FAILS_VALID, bits(config, 48, 16)).map(|v| v as u16),
        }
    }

    fn config_word(&self) -> u64 {
        let interval = self.interval_ms.map_or(0, |v| place(v.into(), 8, 24) | INTERVAL_VALID);
        let sequence = self.sequence.map_or(0, |v| place(v.into(), 32, 16) | SEQUENCE_VALID);
        let fails = self.fail_intervals.map_or(0, |v| place(v.into(), 48, 16) | FAILS_VALID);
        interval | sequence | fails
    }
}

impl Uberblock {
    /// What is decoded; the slot is larger.
    pub const SIZE: usize = 216;
    pub const MAGIC: u64 = 0x00ba_b10c;

    /// The byte order of the uberblock in this slot, or `None` if there is none.
    pub fn endian_of(slot: &[u8]) -> Option<Endian> {
        let magic = *slot.first_chunk::<8>()?;
        [Endian::Little, Endian::Big].into_iter().find(|endian| match endian {
            Endian::Little => u64::from_le_bytes(magic) == Uberblock::MAGIC,
            Endian::Big => u64::from_be_bytes(magic) == Uberblock::MAGIC,
        })
    }

    /// `slot` is a slot of the ring, or at least its start. Its trailer is verified by `codec`.
    pub fn from_slot(slot: &[u8]) -> Result<Uberblock> {
        // Without a magic the order does not matter: decoding will say what is wrong.
        let endian = Uberblock::endian_of(slot).unwrap_or(Endian::NATIVE);
        Uberblock::decode(&mut Reader::new(slot, endian, "uberblock"))
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<Uberblock> {
        let magic = r.u64()?;
        if magic != Uberblock::MAGIC {
            return Err(r.corrupt(format_args!("magic {magic:#x}")));
        }
        let [version, txg, guid_sum, timestamp] = r.u64s()?;
        let root = BlockPointer::decode(r)?;
        let [software_version, mmp_magic, mmp_delay, mmp_config, checkpoint_txg, reflow] = r.u64s()?;
        Ok(Uberblock {
            version,
            txg: Txg(txg),
            guid_sum,
            timestamp,
            root,
            software_version,
            mmp: (mmp_magic == MMP_MAGIC).then(|| Mmp::from_words(mmp_delay, mmp_config)),
            checkpoint_txg: Txg(checkpoint_txg),
            reflow: RaidzReflow::from_word(reflow),
        })
    }

    /// Writes [`Uberblock::SIZE`] bytes; the rest of the slot up to the trailer is zero.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[Uberblock::MAGIC, self.version, self.txg.0, self.guid_sum, self.timestamp]);
        self.root.encode(w);
        w.u64(self.software_version);
        match &self.mmp {
            Some(mmp) => w.u64s(&[MMP_MAGIC, mmp.delay_ns, mmp.config_word()]),
            None => w.zeros(24),
        }
        w.u64s(&[self.checkpoint_txg.0, self.reflow.to_word()]);
    }

    /// Later wins; among equal txgs the later time, then the later multihost sequence.
    pub fn is_newer_than(&self, other: &Uberblock) -> bool {
        let rank = |u: &Uberblock| (u.txg, u.timestamp, u.mmp.and_then(|m| m.sequence));
        rank(self) > rank(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blkptr::tests::any_pointer;
    use crate::testing::{Numbers, ORDERS, assault, check_round_trip};

    fn any_uberblock(n: &mut Numbers) -> Uberblock {
        Uberblock {
            version: 5000,
            txg: Txg(n.bits(64)),
            guid_sum: n.next(),
            timestamp: n.bits(40),
            root: any_pointer(n),
            software_version: 5000,
            mmp: n.flag().then(|| Mmp {
                delay_ns: n.bits(40),
                interval_ms: n.flag().then(|| n.bits(24) as u32),
                sequence: n.flag().then(|| n.bits(16) as u16),
                fail_intervals: n.flag().then(|| n.bits(16) as u16),
            }),
            checkpoint_txg: Txg(n.bits(30)),
            reflow: RaidzReflow { scratch: n.bits(9) as u16, offset: n.bits(55) << 9 },
        }
    }

    #[test]
    fn every_uberblock_survives_the_round_trip_in_both_orders() {
        let mut n = Numbers(20);
        for _ in 0..300 {
            check_round_trip(&any_uberblock(&mut n), Uberblock::SIZE, Uberblock::encode, Uberblock::decode);
        }
    }

    #[test]
    fn the_magic_tells_the_byte_order() {
        let uberblock = any_uberblock(&mut Numbers(21));
        for endian in ORDERS {
            let mut slot = [0; 1024];
            uberblock.encode(&mut Writer::new(&mut slot, endian));
            assert_eq!(Uberblock::endian_of(&slot), Some(endian));
            assert_eq!(Uberblock::from_slot(&slot).unwrap(), uberblock);
        }
        assert_eq!(Uberblock::endian_of(&[0; 1024]), None);
        let e = Uberblock::from_slot(&[0; 1024]).unwrap_err().to_string();
        assert!(e.contains("uberblock: magic 0x0"), "{e}");
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut slot = [0; 1024];
        any_uberblock(&mut Numbers(22)).encode(&mut Writer::new(&mut slot, Endian::Little));
        assault(&slot, |bytes, _| {
            if let Ok(uberblock) = Uberblock::from_slot(bytes) {
                uberblock.encode(&mut Writer::new(&mut [0; Uberblock::SIZE], Endian::Big));
            }
        });
    }
}
