//! The pool's history: every command that changed it, in a ring of nvlists packed in native form.
//!
//! ```text
//!   object   | record of the creation | record | record | ...      the ring begins after the first record, which stays
//!            0                        create_len                   max_offset
//!
//!   record   | length, u64, little endian always | packed nvlist |       may go around the end of the ring
//! ```
//!
//! Offsets in the header are logical: they only grow, and [`HistoryPhys::physical`] folds them into the ring.

use crate::bytes::{Reader, Writer, bonus};
use crate::nvlist::NvList;
use units::{Error, Result};

/// Bonus of the history object, 40 bytes.
///
/// ```text
///   0  end of the first record   8  size of the object   16  begin   24  end   32  records overwritten
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryPhys {
    pub create_len: u64,
    pub max_offset: u64,
    /// Logical offset of the oldest record in the ring.
    pub begin: u64,
    /// Logical offset at which the next record goes.
    pub end: u64,
    pub records_lost: u64,
}

/// Bytes of the length in front of each record.
pub const RECORD_HEADER_SIZE: usize = 8;
/// No record OpenZFS writes is longer.
pub const RECORD_MAX: u64 = 1 << 20;

impl HistoryPhys {
    pub const SIZE: usize = 40;

    pub fn decode(r: &mut Reader<'_>) -> Result<HistoryPhys> {
        let [create_len, max_offset, begin, end, records_lost] = r.u64s()?;
        if create_len >= max_offset && max_offset != 0 || begin > end {
            return Err(r.corrupt(format_args!(
                "records from {begin} to {end} in a ring from {create_len} to {max_offset}"
            )));
        }
        Ok(HistoryPhys { create_len, max_offset, begin, end, records_lost })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.create_len, self.max_offset, self.begin, self.end, self.records_lost]);
    }

    /// Where in the object a logical offset is.
    pub fn physical(&self, logical: u64) -> u64 {
        if logical < self.create_len {
            return logical;
        }
        let ring = self.max_offset.saturating_sub(self.create_len).max(1);
        (logical - self.create_len) % ring + self.create_len
    }
}

bonus!(HistoryPhys, "history");

/// The record at the start of `bytes`, and how many of them it takes. `None` at the end, and when it is cut off.
pub fn decode_record(bytes: &[u8]) -> Result<Option<(NvList, usize)>> {
    let Some((len, rest)) = bytes.split_first_chunk::<RECORD_HEADER_SIZE>() else { return Ok(None) };
    let len = u64::from_le_bytes(*len);
    if len == 0 {
        return Ok(None);
    }
    if len > RECORD_MAX {
        return Err(Error::corrupt(format!("history: a record of {len} bytes")));
    }
    let len = len as usize;
    let Some(packed) = rest.get(..len) else { return Ok(None) };
    Ok(Some((NvList::decode(packed)?, RECORD_HEADER_SIZE + len)))
}

pub fn encode_record(record: &NvList) -> Vec<u8> {
    let packed = record.encode_native();
    [(packed.len() as u64).to_le_bytes().as_slice(), &packed].concat()
}

/// Names of the pairs in a record.
pub mod key {
    pub const TIME: &str = "history time";
    pub const COMMAND: &str = "history command";
    pub const WHO: &str = "history who";
    pub const ZONE: &str = "history zone";
    pub const HOST: &str = "history hostname";
    pub const TXG: &str = "history txg";
    pub const INTERNAL_EVENT: &str = "history internal event";
    pub const INTERNAL_TEXT: &str = "history internal str";
    pub const INTERNAL_NAME: &str = "internal_name";
    pub const IOCTL: &str = "ioctl";
    pub const INPUT: &str = "in_nvl";
    pub const OUTPUT: &str = "out_nvl";
    pub const OUTPUT_SIZE: &str = "out_size";
    pub const DATASET_NAME: &str = "dsname";
    pub const DATASET_ID: &str = "dsid";
    pub const ERRNO: &str = "errno";
    pub const ELAPSED_NS: &str = "elapsed_ns";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assault, check_round_trip};

    fn phys() -> HistoryPhys {
        HistoryPhys { create_len: 100, max_offset: 1100, begin: 2000, end: 2900, records_lost: 9 }
    }

    #[test]
    fn the_header_survives_the_round_trip_in_both_orders() {
        check_round_trip(&phys(), HistoryPhys::SIZE, HistoryPhys::encode, HistoryPhys::decode);
        assert_eq!(HistoryPhys::from_bonus(&phys().to_bonus()).unwrap(), phys());
    }

    #[test]
    fn logical_offsets_fold_into_the_ring_behind_the_first_record() {
        let at = |logical| phys().physical(logical);
        assert_eq!((at(50), at(100), at(1099), at(1100), at(2900)), (50, 100, 1099, 100, 900));
    }

    #[test]
    fn records_follow_one_another() {
        let record = NvList::new().with(key::COMMAND, "zpool create tank sda").with(key::TIME, 1u64);
        let bytes = [encode_record(&record), encode_record(&record), vec![0; 16]].concat();
        let (first, used) = decode_record(&bytes).unwrap().unwrap();
        assert_eq!((&first, used * 2), (&record, bytes.len() - 16));
        assert_eq!(decode_record(&bytes[used..]).unwrap().unwrap().0, record);
        assert_eq!(decode_record(&bytes[2 * used..]).unwrap(), None);
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let good = encode_record(&NvList::new().with(key::TIME, 1u64));
        assault(&good, |bytes, _| {
            let _ = decode_record(bytes);
            if let Ok(phys) = HistoryPhys::from_bonus(bytes) {
                phys.physical(u64::MAX);
            }
        });
    }
}
