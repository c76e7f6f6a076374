//! What may be asked of the copy manager at once, as clients are told: by page 8Fh and by RECEIVE COPY RESULTS.

use crate::BLOCK;

/// Units and segments of one EXTENDED COPY, and their bytes.
pub(super) const MAX_TARGETS: usize = 16;
pub(super) const MAX_SEGMENTS: usize = 256;
pub(super) const TARGET: usize = 32;
pub(super) const SEGMENT: usize = 28;
pub(super) const MAX_DESCRIPTORS: usize = MAX_TARGETS * TARGET + MAX_SEGMENTS * SEGMENT;
/// Ranges of one token, and of one write that uses it.
pub(super) const MAX_RANGES: usize = 256;
pub(super) const RANGE: usize = 16;
/// Bytes that one token stands for. More would be under way for longer than clients wait for an answer.
pub(super) const MAX_TOKEN_BYTES: u64 = 16 << 30;
/// What a client does best to copy by one command, bytes: it takes well under a second.
const BEST_BYTES: u64 = 64 << 20;
/// Seconds for which a token is kept that is not used.
pub(super) const DEFAULT_TIMEOUT: u32 = 60;
pub(super) const MAX_TIMEOUT: u32 = 600;
/// Copies under way by one path.
pub(super) const MAX_RUNNING: usize = 8;

/// The parameters of the commands, bytes.
pub(super) const COPY_HEAD: usize = 16;
pub(super) const POPULATE_HEAD: usize = 16;
pub(super) const WRITE_HEAD: usize = 536;
pub(crate) const MAX_COPY_LIST: usize = COPY_HEAD + MAX_DESCRIPTORS;
pub(crate) const MAX_POPULATE_LIST: usize = POPULATE_HEAD + MAX_RANGES * RANGE;
pub(crate) const MAX_WRITE_LIST: usize = WRITE_HEAD + MAX_RANGES * RANGE;

/// From block device to block device; and a unit by its designator.
pub(super) const BLOCKS_TO_BLOCKS: u8 = 0x02;
pub(super) const BY_DESIGNATOR: u8 = 0xe4;
const DESCRIPTORS: [u8; 2] = [BLOCKS_TO_BLOCKS, BY_DESIGNATOR];
/// The unit that the command came to, without a descriptor.
pub(super) const THIS_UNIT: u16 = 0xffff;

/// Point-in-time copies: as we like, gone when the data change, and whatever there is; and zeros.
pub(super) const TYPE_DEFAULT: u32 = 0x0080_0000;
pub(super) const TYPE_VULNERABLE: u32 = 0x0080_0001;
pub(super) const TYPE_ANY: u32 = 0x0080_ffff;
pub(super) const TYPE_ZEROS: u32 = 0xffff_0001;

fn descriptor(page: &mut Vec<u8>, kind: u16, body: &[&[u8]]) {
    let body = body.concat();
    let len = body.len().next_multiple_of(4);
    page.extend(kind.to_be_bytes());
    page.extend((len as u16).to_be_bytes());
    page.extend(&body);
    page.resize(page.len() + len - body.len(), 0);
}

/// What the page of third-party copies says, behind its head.
pub(crate) fn page(block_size: u32) -> Vec<u8> {
    let mut page = Vec::new();
    // What block devices say of tokens.
    descriptor(
        &mut page,
        0x0000,
        &[
            &[0; 6],
            &(MAX_RANGES as u16).to_be_bytes(),
            &MAX_TIMEOUT.to_be_bytes(),
            &DEFAULT_TIMEOUT.to_be_bytes(),
            &(MAX_TOKEN_BYTES / BLOCK).to_be_bytes(),
            &(BEST_BYTES / BLOCK).to_be_bytes(),
        ],
    );
    let commands = [0x83, 4, 0x00, 0x10, 0x11, 0x1c, 0x84, 3, 0x00, 0x03, 0x07];
    descriptor(&mut page, 0x0001, &[&[commands.len() as u8], &commands]);
    descriptor(
        &mut page,
        0x0004,
        &[
            &[0; 4],
            &(MAX_TARGETS as u16).to_be_bytes(),
            &(MAX_SEGMENTS as u16).to_be_bytes(),
            &(MAX_DESCRIPTORS as u32).to_be_bytes(),
            &[0; 16],
        ],
    );
    descriptor(&mut page, 0x0008, &[&[DESCRIPTORS.len() as u8], &DESCRIPTORS]);
    descriptor(&mut page, 0x000c, &[&[0, 2], &THIS_UNIT.to_be_bytes()]);
    let block = u16::try_from(u64::from(block_size) / BLOCK).unwrap_or(u16::MAX);
    let of_blocks = [
        &[0x00, 0, 0, 0x2c, 0, 0][..],
        &block.to_be_bytes(),
        &MAX_TOKEN_BYTES.to_be_bytes(),
        &BEST_BYTES.to_be_bytes(),
        // A token is made at once, however long its ranges are.
        &u64::MAX.to_be_bytes(),
        &BEST_BYTES.to_be_bytes(),
        &[0; 8],
    ]
    .concat();
    descriptor(
        &mut page,
        0x0106,
        &[
            // Tokens of this target only.
            &[0; 12],
            &1u32.to_be_bytes(),
            &u32::MAX.to_be_bytes(),
            &MAX_TIMEOUT.to_be_bytes(),
            &[0; 18],
            &(of_blocks.len() as u16).to_be_bytes(),
            &of_blocks,
        ],
    );
    let types = |kind: u32, flags: u8| [&kind.to_be_bytes()[..], &[flags, 0, 0, 0]].concat();
    // In and out; but no initiator is given a token of zeros.
    let types = [types(TYPE_VULNERABLE, 0x03), types(TYPE_ZEROS, 0x02)].concat();
    descriptor(&mut page, 0x0108, &[&[0, 0], &(types.len() as u16).to_be_bytes(), &types]);
    let running = (MAX_RUNNING as u32).to_be_bytes();
    descriptor(&mut page, 0x8001, &[&running, &running, &[0; 4], &[BLOCK.ilog2() as u8, 0], &[0; 18]]);
    page
}

/// What RECEIVE COPY RESULTS says of them.
pub(crate) fn parameters() -> Vec<u8> {
    let mut bytes = vec![0; 44];
    // A copy need not have an identifier.
    bytes[4] = 0x01;
    bytes[8..10].copy_from_slice(&(MAX_TARGETS as u16).to_be_bytes());
    bytes[10..12].copy_from_slice(&(MAX_SEGMENTS as u16).to_be_bytes());
    bytes[12..16].copy_from_slice(&(MAX_DESCRIPTORS as u32).to_be_bytes());
    bytes[34..36].copy_from_slice(&(MAX_RUNNING as u16).to_be_bytes());
    bytes[36] = MAX_RUNNING as u8;
    bytes[37] = BLOCK.ilog2() as u8;
    bytes[43] = DESCRIPTORS.len() as u8;
    bytes.extend(DESCRIPTORS);
    let len = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&len.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_descriptors_in_order_and_nothing_else() {
        let page = page(16 << 10);
        let (mut rest, mut kinds) = (&page[..], Vec::new());
        while let [a, b, c, d, behind @ ..] = rest {
            kinds.push((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
            rest = &behind[usize::from(u16::from_be_bytes([*c, *d]))..];
        }
        let lengths = [0x20, 12, 0x1c, 4, 4, 0x5c, 20, 0x20];
        let known = [0x0000, 0x0001, 0x0004, 0x0008, 0x000c, 0x0106, 0x0108, 0x8001];
        assert_eq!(kinds, known.into_iter().zip(lengths).collect::<Vec<_>>());
        assert_eq!(parameters()[..4], [0, 0, 0, 42]);
    }
}
