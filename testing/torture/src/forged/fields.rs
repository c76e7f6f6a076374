//! Changing fields of a structure: places that mean something, and values from the edges.

use super::index::What;
use ondisk::{BLKPTR_SIZE, DNODE_CORE_SIZE, DNODE_SIZE};
use sim::Rng;

/// A field: where it begins and how many bytes it has.
type Field = (usize, usize);

/// Type, indirect shift, levels, pointers; bonus type, checksum, compression, flags; sizes; slots; last block, space.
const DNODE: [Field; 13] = [
    (0, 1),
    (1, 1),
    (2, 1),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (7, 1),
    (8, 2),
    (10, 2),
    (12, 1),
    (16, 8),
    (24, 8),
];
/// Addresses; sizes, compression, checksum, type, level; births and fill; one word of the checksum.
const POINTER: [Field; 16] = [
    (0, 4),
    (4, 4),
    (8, 8),
    (15, 1),
    (16, 8),
    (24, 8),
    (48, 2),
    (50, 2),
    (52, 1),
    (53, 1),
    (54, 1),
    (55, 1),
    (72, 8),
    (80, 8),
    (88, 8),
    (96, 8),
];
const EDGES: [u64; 30] = [
    0,
    1,
    2,
    3,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x1ff,
    0x200,
    0x3fff,
    0x7fff,
    0x8000,
    0xffff,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    1 << 47,
    1 << 55,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
    u64::MAX - 511,
    u64::MAX - 4095,
];

/// Changes some fields of a structure; answers which, for people.
pub fn change(what: What, data: &mut [u8], objects: &[u64], random: &mut Rng) -> String {
    let edits = [1, 1, 1, 2, 2, 4][random.below(6) as usize];
    let told: Vec<String> = (0..edits).map(|_| edit(what, data, objects, random)).collect();
    told.join(", ")
}

fn edit(what: What, data: &mut [u8], objects: &[u64], random: &mut Rng) -> String {
    if data.is_empty() {
        return "nothing".into();
    }
    // Now and then as if nothing were known: a run of bytes from elsewhere in the block.
    if random.below(24) == 0 {
        return copy(data, random);
    }
    let (at, len) = place(what, data, random);
    let Some(field) = data.get_mut(at..at + len) else { return format!("nothing at {at}") };
    let old = number(field);
    let new = value(old, len, objects, random);
    field.copy_from_slice(&new.to_le_bytes()[..len]);
    format!("{len} bytes at {at:#x}: {old:#x} becomes {:#x}", number(field))
}

fn number(field: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..field.len()].copy_from_slice(field);
    u64::from_le_bytes(word)
}

fn value(old: u64, len: usize, objects: &[u64], random: &mut Rng) -> u64 {
    match random.below(12) {
        0..=3 => EDGES[random.below(EDGES.len() as u64) as usize],
        4 => old.wrapping_add(1),
        5 => old.wrapping_sub(1),
        6 => old ^ 1 << random.below(8 * len as u64),
        7 => [old << 1, old >> 1, old << 8, old << 32, old.wrapping_neg(), !old][random.below(6) as usize],
        8 | 9 if len == 8 && !objects.is_empty() => objects[random.below(objects.len() as u64) as usize],
        10 => old.swap_bytes() >> (64 - 8 * len),
        _ => random.next_u64() >> random.below(64),
    }
}

fn copy(data: &mut [u8], random: &mut Rng) -> String {
    let len = [8, 16, 64, 128, 512][random.below(5) as usize].min(data.len());
    let spot = |random: &mut Rng| random.below((data.len() - len) as u64 / 8 + 1) as usize * 8;
    let (from, to) = (spot(random), spot(random));
    data.copy_within(from..from + len, to);
    format!("{len} bytes from {from:#x} to {to:#x}")
}

fn place(what: What, data: &[u8], random: &mut Rng) -> Field {
    match what {
        What::Objset => match random.below(8) {
            0..=2 => dnode_field(0, data, random),
            3 | 4 => (512 + 8 * random.below(24) as usize, 8),
            5 => (704 + 8 * random.below(2) as usize, 8),
            _ => dnode_field([0, 1024, 1536, 2048][random.below(4) as usize], data, random),
        },
        What::Dnodes => {
            let used: Vec<usize> =
                (0..data.len() / DNODE_SIZE).map(|i| i * DNODE_SIZE).filter(|at| data[*at] != 0).collect();
            match used.len() {
                0 => word(data, 0, data.len(), random),
                n => dnode_field(used[random.below(n as u64) as usize], data, random),
            }
        }
        What::Indirect | What::Gang => {
            let used: Vec<usize> = (0..data.len() / BLKPTR_SIZE)
                .map(|i| i * BLKPTR_SIZE)
                .filter(|at| data[*at..*at + BLKPTR_SIZE].iter().any(|b| *b != 0))
                .collect();
            match used.len() {
                0 => word(data, 0, data.len(), random),
                n => pointer_field(used[random.below(n as u64) as usize], random),
            }
        }
        // Headers tell more than what follows them.
        What::Leaf(_) | What::Log => match random.below(3) {
            0 => word(data, 0, data.len().min(256), random),
            _ => word(data, 0, data.len(), random),
        },
    }
}

fn dnode_field(at: usize, data: &[u8], random: &mut Rng) -> Field {
    let Some(dnode) = data.get(at..at + DNODE_SIZE) else { return (at, 1) };
    let pointers = usize::from(dnode[3]).clamp(1, 3);
    let bonus = DNODE_CORE_SIZE + pointers * BLKPTR_SIZE;
    let bonus_len = usize::from(u16::from_le_bytes([dnode[10], dnode[11]]));
    match random.below(8) {
        0..=2 => {
            let (field, len) = DNODE[random.below(DNODE.len() as u64) as usize];
            (at + field, len)
        }
        3 => {
            let i = random.below(pointers as u64) as usize;
            pointer_field(at + DNODE_CORE_SIZE + i * BLKPTR_SIZE, random)
        }
        4 if dnode[7] & 4 != 0 => {
            let size = DNODE_SIZE * (1 + usize::from(dnode[12]));
            pointer_field(at + size - BLKPTR_SIZE, random)
        }
        _ if bonus_len > 0 => {
            let end = (at + bonus + bonus_len).min(data.len());
            word(data, at + bonus.min(DNODE_SIZE), end, random)
        }
        _ => {
            let (field, len) = DNODE[random.below(DNODE.len() as u64) as usize];
            (at + field, len)
        }
    }
}

fn pointer_field(at: usize, random: &mut Rng) -> Field {
    let (field, len) = POINTER[random.below(POINTER.len() as u64) as usize];
    (at + field, len)
}

/// A word of a part of the block, mostly one that is not zero, or a part of the word.
fn word(data: &[u8], from: usize, end: usize, random: &mut Rng) -> Field {
    let words = end.saturating_sub(from) / 8;
    if words == 0 {
        return (from.min(data.len() - 1), 1);
    }
    let used = |i: &usize| data[from + i * 8..from + i * 8 + 8].iter().any(|b| *b != 0);
    let used: Vec<usize> = if random.below(5) > 0 { (0..words).filter(used).collect() } else { Vec::new() };
    let i = match used.len() {
        0 => random.below(words as u64) as usize,
        n => used[random.below(n as u64) as usize],
    };
    let len = [8, 8, 8, 4, 4, 2, 2, 1][random.below(8) as usize];
    (from + i * 8 + random.below((8 / len) as u64) as usize * len, len)
}
