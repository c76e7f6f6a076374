//! The content of a new volume.

use crate::{DATA, PROPERTIES, SIZE};
use dmu::{NewObject, ObjSet, Tx};
use ondisk::ObjectType;
use units::{Error, Result};
use zap::{Options, Value, Zap};

/// The smallest and the largest `volblocksize`.
const BLOCK_SIZES: std::ops::RangeInclusive<u64> = 512..=16 << 20;

/// Offsets of clients are signed.
const SIZE_MAX: u64 = i64::MAX as u64;

/// Whether there can be a volume of `size` bytes in blocks of `block_size`.
pub fn check(size: u64, block_size: u64) -> Result<()> {
    if !block_size.is_power_of_two() || !BLOCK_SIZES.contains(&block_size) {
        return Err(Error::invalid(format!(
            "volblocksize must be a power of two from 512 to 16M, not {block_size}"
        )));
    }
    if size == 0 || !size.is_multiple_of(block_size) {
        let unit = units::pretty_size(block_size);
        return Err(Error::invalid(format!("volsize must be a multiple of volblocksize, {unit}")));
    }
    if size > SIZE_MAX {
        return Err(Error::invalid("volsize must be less than 8E"));
    }
    Ok(())
}

/// Fills an object set that was just created with a volume of `size` bytes in blocks of `block_size`, and indirect blocks
/// of 2 to the power of `indirect_shift`.
pub async fn create(set: &ObjSet, tx: &Tx, size: u64, block_size: u64, indirect_shift: u8) -> Result<()> {
    check(size, block_size)?;
    let data = NewObject::new(ObjectType::ZVOL, block_size as u32).with_indirect_shift(indirect_shift);
    set.claim(tx, DATA, &data)?;
    let properties = set.claim(tx, PROPERTIES, &NewObject::new(ObjectType::ZVOL_PROP, 512))?;
    let properties = Zap::format(properties, tx, Options::default(), world::random_u64())?;
    properties.insert(tx, SIZE, Value::from(size)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_of_whole_blocks_and_less_than_8e() {
        let block = 16 << 10;
        for size in [block, 1 << 62, (1 << 63) - block] {
            assert!(check(size, block).is_ok(), "{size}");
        }
        for (size, block) in
            [(0, block), (block + 512, block), (1 << 63, block), (1 << 63, 512), (3000, 1000)]
        {
            assert!(check(size, block).is_err(), "{size} in {block}");
        }
    }
}
