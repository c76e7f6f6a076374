//! How much a volume must reserve so that every block of it can be written once: thick volumes.
//!
//! ```text
//!   data      volsize, scaled by what raidz takes for blocks of this size compared with blocks of 128K: space is
//!             accounted as if every block were of 128K, so small blocks on wide raidz are charged more than they hold
//!   metadata  one indirect block of 128K for each 1024 pointers, level by level, and seven for the meta-dnode
//!   copies    data as often as asked; metadata once more, three at most
//! ```

/// A raidz or draid vdev, as far as the size of a block depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityGroup {
    /// Children of a raidz; data and parity columns of a draid group.
    pub width: u64,
    pub parity: u64,
    pub ashift: u32,
    /// draid fills its last row with zeros.
    pub whole_rows: bool,
}

const TYPICAL: u64 = 128 << 10;
/// Pointers in an indirect block.
const FAN_OUT: u64 = 1024;
const INDIRECT: u64 = 128 << 10;

impl ParityGroup {
    /// Bytes of the devices that a block of `psize` bytes takes.
    fn asize(&self, psize: u64) -> u64 {
        let data_columns = self.width.saturating_sub(self.parity).max(1);
        let sectors = psize.saturating_sub(1) / (1 << self.ashift) + 1;
        let rows = sectors.div_ceil(data_columns);
        let total = if self.whole_rows {
            rows * (data_columns + self.parity)
        } else {
            (sectors + self.parity * rows).next_multiple_of(self.parity + 1)
        };
        total << self.ashift
    }

    /// What `blocks` blocks of `size` bytes are charged.
    fn charged(&self, blocks: u64, size: u64) -> u64 {
        let (this, typical) = (u128::from(self.asize(size)), u128::from(self.asize(TYPICAL)));
        let charged = u128::from(blocks) * this / (typical >> 9) * u128::from(TYPICAL >> 9);
        u64::try_from(charged).unwrap_or(u64::MAX)
    }
}

/// The refreservation of a thick volume; `groups` are the pool's raidz and draid vdevs.
pub fn reservation_for(volsize: u64, volblocksize: u64, copies: u64, groups: &[ParityGroup]) -> u64 {
    let copies = copies.clamp(1, 3);
    let mut blocks = volsize / volblocksize.max(1);
    let scaled = groups.iter().map(|group| group.charged(blocks, volblocksize)).max();
    let data = scaled.filter(|n| *n > 0).unwrap_or(blocks * volblocksize);
    let mut metadata = 7;
    while blocks > 1 {
        blocks = blocks.div_ceil(FAN_OUT);
        metadata += blocks;
    }
    data.saturating_mul(copies).saturating_add(metadata * (copies + 1).min(3) * INDIRECT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// What `zfs create -V` of OpenZFS sets on a plain or mirrored pool.
    #[test]
    fn a_plain_pool_reserves_the_volume_and_its_pointers() {
        // 1 GiB of 16K: 65536 blocks, 64 + 1 indirect blocks and 7, twice, 128K each.
        assert_eq!(reservation_for(GIB, 16 << 10, 1, &[]), GIB + (7 + 64 + 1) * 2 * INDIRECT);
        // 8K: 131072 blocks, 128 + 1 + 7.
        assert_eq!(reservation_for(GIB, 8 << 10, 1, &[]), GIB + 136 * 2 * INDIRECT);
        assert_eq!(reservation_for(GIB, 16 << 10, 2, &[]), 2 * GIB + 72 * 3 * INDIRECT);
    }

    #[test]
    fn small_blocks_on_raidz_reserve_what_they_take() {
        let raidz2 = ParityGroup { width: 5, parity: 2, ashift: 12, whole_rows: false };
        assert_eq!(raidz2.asize(4096), 3 * 4096);
        assert_eq!(raidz2.asize(8192), 6 * 4096, "2 data + 2 parity, rounded up to a multiple of 3");
        let at_128k = raidz2.asize(TYPICAL);
        assert_eq!(at_128k, 54 * 4096);
        let charged = reservation_for(GIB, 8 << 10, 1, &[raidz2]) - 136 * 2 * INDIRECT;
        let blocks = GIB / 8192;
        assert_eq!(charged, blocks * 6 * 4096 / (at_128k >> 9) * 256);
        assert!(charged > GIB);
        let large = reservation_for(GIB, TYPICAL, 1, &[raidz2]);
        assert!(large - GIB < GIB / 100, "blocks of the typical size cost what they hold");
    }

    #[test]
    fn sizes_without_sense_do_not_overflow() {
        let group = ParityGroup { width: 3, parity: 1, ashift: 9, whole_rows: true };
        assert_eq!(reservation_for(u64::MAX, 512, 3, &[group]), u64::MAX);
        assert!(reservation_for(0, 0, 0, &[]) > 0);
    }
}
