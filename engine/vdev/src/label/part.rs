//! The sealed parts of a label as bytes. Pure.
//!
//! Each part ends in a checksum that is bound to the part's place on the device, so that a copy elsewhere is none.

use codec::checksum::sealed::{label_verifier, seal, verify};
use ondisk::label::{LABEL_PAD_SIZE, NVLIST_MAX, NVLIST_SIZE};
use ondisk::{NvList, Uberblock, Writer};
use units::{Checksum, Endian, Error, Result};
use world::{Buf, IoBuf};

/// The configuration, for the label part at `at` on the device.
pub fn encode_config(config: &NvList, at: u64) -> Result<Buf> {
    let packed = config.encode();
    if packed.len() as u64 > NVLIST_MAX {
        return Err(Error::invalid(format!(
            "the configuration of this vdev takes {} bytes; a label has room for {NVLIST_MAX}: use fewer devices per \
             vdev or shorter paths",
            packed.len()
        )));
    }
    let mut part = IoBuf::zeroed(NVLIST_SIZE as usize);
    part[..packed.len()].copy_from_slice(&packed);
    Ok(sealed(part, at))
}

pub fn decode_config(part: &[u8], at: u64) -> Option<NvList> {
    verify(Checksum::Label, part, label_verifier(at), false)?;
    NvList::decode(part).ok()
}

/// The uberblock, for the slot of `size` bytes at `at` on the device.
pub fn encode_uberblock(uberblock: &Uberblock, size: u64, at: u64) -> Buf {
    let mut slot = IoBuf::zeroed(size as usize);
    uberblock.encode(&mut Writer::new(&mut slot[..Uberblock::SIZE], Endian::NATIVE));
    sealed(slot, at)
}

pub fn decode_uberblock(slot: &[u8], at: u64) -> Option<Uberblock> {
    verify(Checksum::Label, slot, label_verifier(at), false)?;
    Uberblock::from_slot(slot).ok()
}

/// An empty boot header.
pub fn encode_boot_header(at: u64) -> Buf {
    sealed(IoBuf::zeroed(LABEL_PAD_SIZE as usize), at)
}

fn sealed(mut part: IoBuf, at: u64) -> Buf {
    seal(Checksum::Label, Endian::NATIVE, &mut part, label_verifier(at), None);
    part.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_valid_only_where_it_was_written() {
        let config = NvList::new().with("name", "tank").with("txg", 4u64);
        let part = encode_config(&config, 16384).unwrap();
        assert_eq!(decode_config(&part, 16384), Some(config));
        assert_eq!(decode_config(&part, 16384 + 512), None);
        assert_eq!(decode_config(&part[..1000], 16384), None);
        assert_eq!(decode_config(&vec![0; NVLIST_SIZE as usize], 0), None);
    }

    #[test]
    fn one_changed_bit_makes_a_part_invalid() {
        let part = encode_config(&NvList::new().with("name", "tank"), 0).unwrap();
        for at in [0, 20, 5000, part.len() - 1] {
            let mut bytes = part.to_vec();
            bytes[at] ^= 1;
            assert_eq!(decode_config(&bytes, 0), None, "{at}");
        }
    }

    #[test]
    fn a_configuration_too_large_for_a_label_is_refused() {
        let large = NvList::new().with("name", "x".repeat(120 << 10));
        assert!(encode_config(&large, 0).unwrap_err().to_string().contains("room for"));
    }
}
