//! What a block takes on a raidz group: data, parity, and the padding that keeps holes usable.

/// Sectors that `block` bytes take on `disks` disks with `parity`, in sectors of `1 << ashift` bytes: data, parity,
/// padding. None where
/// such a group cannot be.
pub fn sectors(block: u64, disks: u64, parity: u64, ashift: u32) -> Option<(u64, u64, u64)> {
    let columns = disks.checked_sub(parity).filter(|data| *data > 0 && (1..=3).contains(&parity))?;
    let sector = 1u64.checked_shl(ashift).filter(|_| (9..=16).contains(&ashift))?;
    let data = block.div_ceil(sector).max(1);
    let parities = data.div_ceil(columns).checked_mul(parity)?;
    let whole = (data + parities).next_multiple_of(parity + 1);
    Some((data, parities, whole - data - parities))
}

/// How much more is taken than with blocks so large that nothing is lost: 1.0 is nothing.
pub fn excess(block: u64, disks: u64, parity: u64, ashift: u32) -> Option<f64> {
    let (data, parities, padding) = sectors(block, disks, parity, ashift)?;
    let best = disks as f64 / (disks - parity) as f64;
    Some((data + parities + padding) as f64 / data as f64 / best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that are known of OpenZFS: 8K on five disks of raidz1 in 4K sectors takes 16K.
    #[test]
    fn small_blocks_take_what_is_known_of_them() {
        for (block, disks, parity, expected) in [
            (8, 5, 1, (2, 1, 1)),
            (16, 5, 1, (4, 1, 1)),
            (8, 6, 2, (2, 2, 2)),
            (128, 6, 2, (32, 16, 0)),
            (4, 3, 1, (1, 1, 0)),
        ] {
            assert_eq!(
                sectors(block << 10, disks, parity, 12),
                Some(expected),
                "{block}K on {disks}, parity {parity}"
            );
        }
        assert!((excess(8 << 10, 5, 1, 12).unwrap() - 1.6).abs() < 1e-9);
        assert!((excess(1 << 20, 10, 2, 12).unwrap() - 1.0).abs() < 0.01);
        assert_eq!((sectors(8192, 2, 2, 12), sectors(8192, 5, 1, 99)), (None, None));
    }
}
