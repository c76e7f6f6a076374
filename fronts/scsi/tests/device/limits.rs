//! The longest request that Linux sends to a unit, by the rules of its kernels and what our pages say.

use crate::common::{good, nexus};
use scsi::memory::MemoryUnit;
use scsi::{Device, Identity, Options};
use std::sync::Arc;

/// What a kernel reads of a unit; lengths are logical blocks of 512 bytes.
#[derive(Clone, Copy, Debug)]
struct Pages {
    granularity: u32,
    maximum: u32,
    optimal: u32,
    /// Bytes.
    physical: u64,
    /// READ(16) and WRITE(16) are used.
    sixteen: bool,
}

impl Pages {
    async fn of(device: &Arc<Device>) -> Pages {
        let path = device.attach(nexus("host", 1));
        let _ = crate::common::ask(&path, &[0; 6], &[]).await;
        let page = good(&path, &[0x12, 1, 0xb0, 0, 64, 0], &[]).await;
        let number = |at: usize| u32::from_be_bytes(page[at..at + 4].try_into().unwrap());
        let capacity = good(&path, &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &[]).await;
        let last = u64::from_be_bytes(capacity[..8].try_into().unwrap());
        Pages {
            granularity: u16::from_be_bytes([page[6], page[7]]).into(),
            maximum: number(8),
            optimal: number(12),
            physical: 512 << (capacity[13] & 0x0f),
            sixteen: last > u64::from(u32::MAX),
        }
    }

    /// The granularity is one that a kernel takes for the smallest sensible length.
    fn io_min(self) -> Option<u64> {
        let bytes = u64::from(self.granularity) * 512;
        (bytes > 0 && bytes.is_multiple_of(self.physical)).then_some(bytes)
    }

    fn most_blocks(self) -> u64 {
        let by_command = if self.sixteen { u64::from(u32::MAX) } else { 0xffff };
        if self.maximum == 0 { by_command } else { by_command.min(self.maximum.into()) }
    }

    /// The optimal length in bytes, if a kernel believes it.
    fn io_opt(self) -> Option<u64> {
        let (blocks, bytes) = (u64::from(self.optimal), u64::from(self.optimal) * 512);
        let fits = blocks > 0 && blocks <= self.most_blocks() && blocks <= 0xffff && bytes >= 4096;
        let granular = self.io_min().is_none_or(|min| bytes.is_multiple_of(min));
        (fits && granular && bytes.is_multiple_of(self.physical)).then_some(bytes)
    }
}

/// What the iSCSI initiator of Linux takes at most, bytes: its sectors, and a page in each element of its list.
const INITIATOR: u64 = if 0xffff * 512 < 4096 * 4096 { 0xffff * 512 } else { 4096 * 4096 };
/// What a kernel sends at most when nothing tells it to: 1280 KiB; since 6.15, 4 MiB.
const DEFAULTS: [u64; 2] = [1280 << 10, 4 << 20];

/// Before 6.10: the optimal length is the limit, where there is one.
fn longest_before(pages: Pages) -> u64 {
    let limit = pages.io_opt().unwrap_or((pages.most_blocks() * 512).min(DEFAULTS[0]));
    limit.min(INITIATOR)
}

/// Since 6.10: a default, which a longer optimal or smallest length raises, and the hard limits.
fn longest_since(pages: Pages, default: u64) -> u64 {
    let hard = INITIATOR.min(pages.most_blocks() * 512);
    let raised = pages.io_opt().filter(|&opt| opt > default).or(pages.io_min().filter(|&min| min > default));
    raised.unwrap_or(default).min(hard)
}

/// The optimal length was one block of the volume: a host with a kernel before 6.10 cut every request into pieces of that
/// length, 16 KiB for a volume of 16 KiB blocks. And a block of more than 1 MiB fitted no request at all.
#[test]
fn hosts_of_old_and_new_kernels_send_requests_of_a_mebibyte_and_of_whole_blocks() {
    crate::common::run(async {
        for exponent in 9..=24 {
            // A unit of each of both kinds of commands.
            for size in [1u64 << 30, 4 << 40] {
                let block = 1u32 << exponent;
                let unit = Arc::new(MemoryUnit::new(size, block));
                let kept = Arc::new(crate::common::Kept::default());
                let device = Device::new(unit, Identity::new([0x60; 16]), Options::default(), kept, "");
                let pages = Pages::of(&device).await;
                assert_eq!(pages.physical, block.into(), "the physical block is the volume's");
                assert_eq!(pages.io_min(), Some(block.into()), "{pages:?}");
                assert!(
                    pages.io_opt().is_some(),
                    "{pages:?}: a kernel says that it ignores a strange optimal length"
                );
                let longest = [longest_before(pages)]
                    .into_iter()
                    .chain(DEFAULTS.map(|default| longest_since(pages, default)));
                for longest in longest {
                    let wanted = u64::from(block).max(1 << 20);
                    assert!(longest >= wanted, "blocks of {block}: {longest} of {pages:?}");
                    assert!(longest.is_multiple_of(block.into()), "blocks of {block}: {longest}");
                }
                // What is announced is carried out.
                let path = device.attach(nexus("host", 1));
                let _ = crate::common::ask(&path, &[0; 6], &[]).await;
                let count = (pages.maximum as u16).to_be_bytes();
                let read = [0x28, 0, 0, 0, 0, 0, 0, count[0], count[1], 0];
                assert_eq!(good(&path, &read, &[]).await.len() as u32, pages.maximum * 512);
            }
        }
    });
}
