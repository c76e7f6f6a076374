//! The sealed parts of a label as bytes. Pure.
//!
//! Each part ends in a checksum that is bound to the part's place on the device, so that a copy elsewhere is none. It is
//! that of the whole part, however little of it is in use; the copies of a configuration are hashed together.

use codec::checksum::sealed::{Copies, label_verifier, seal, verify};
use ondisk::label::{LABEL_PAD_SIZE, NVLIST_MAX, NVLIST_SIZE};
use ondisk::{NvList, Uberblock, Writer};
use units::{Checksum, Endian, Error, Result};
use world::{Buf, IoBuf};

/// The configuration, for the label parts at these places on the device.
pub fn encode_config(config: &NvList, places: &[u64]) -> Result<Vec<Buf>> {
    let packed = config.encode();
    if packed.len() as u64 > NVLIST_MAX {
        return Err(Error::invalid(format!(
            "the configuration of this vdev takes {} bytes; a label has room for {NVLIST_MAX}: use fewer devices per \
             vdev or shorter paths",
            packed.len()
        )));
    }
    let mut copies = Copies::default();
    let part = |&at: &u64| {
        let mut part = IoBuf::zeroed(NVLIST_SIZE as usize);
        part[..packed.len()].copy_from_slice(&packed);
        copies.seal(Endian::NATIVE, &mut part, label_verifier(at));
        part.freeze()
    };
    Ok(places.iter().map(part).collect())
}

/// The configuration in a part that was read from `at`; `copies` is the same for the parts of one device.
pub fn decode_config(part: &[u8], at: u64, copies: &mut Copies) -> Option<NvList> {
    copies.verify(part, label_verifier(at))?;
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

    fn decode(part: &[u8], at: u64) -> Option<NvList> {
        decode_config(part, at, &mut Copies::default())
    }

    #[test]
    fn a_part_is_valid_only_where_it_was_written() {
        let config = NvList::new().with("name", "tank").with("txg", 4u64);
        let parts = encode_config(&config, &[16384, 32768]).unwrap();
        assert_eq!(decode(&parts[0], 16384), Some(config.clone()));
        assert_eq!(decode(&parts[1], 32768), Some(config));
        assert_eq!(decode(&parts[0], 32768), None);
        assert_eq!(decode(&parts[0], 16384 + 512), None);
        assert_eq!(decode(&parts[0][..1000], 16384), None);
        assert_eq!(decode(&vec![0; NVLIST_SIZE as usize], 0), None);
    }

    #[test]
    fn one_changed_bit_makes_a_part_invalid() {
        let part = &encode_config(&NvList::new().with("name", "tank"), &[0]).unwrap()[0];
        for at in [0, 20, 5000, part.len() - 1] {
            let mut bytes = part.to_vec();
            bytes[at] ^= 1;
            assert_eq!(decode(&bytes, 0), None, "{at}");
        }
    }

    #[test]
    fn a_configuration_too_large_for_a_label_is_refused() {
        let large = NvList::new().with("name", "x".repeat(120 << 10));
        assert!(encode_config(&large, &[0]).unwrap_err().to_string().contains("room for"));
    }
}
