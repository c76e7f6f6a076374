//! The counts beside the chain are what a walk through all of it would find, whatever happens to its blocks.

use super::*;
use ondisk::{Dva, ObjectType};
use units::{Checksum, Compression, Endian, Lsize, Psize};

fn place(number: u64, birth: Txg) -> Plain {
    Plain {
        dvas: [Dva::default(); 3],
        lsize: Lsize(8192),
        psize: Psize(8192),
        compression: Compression::Off,
        checksum_kind: Checksum::Zilog2,
        kind: ObjectType::INTENT_LOG,
        level: 0,
        birth,
        physical_birth: Txg::NONE,
        fill: 0,
        checksum: [0, 0, 0, number],
        endian: Endian::NATIVE,
        dedup: false,
        rewritten: false,
        crypt: None,
    }
}

/// As [`Blocks`] counts, block by block.
fn check(blocks: &Blocks, most: &mut u64, story: &str) {
    let durable = blocks.list.iter().take_while(|b| b.stage == Stage::Durable);
    assert_eq!(blocks.sound, durable.clone().count(), "{story}");
    if !blocks.has_gap {
        *most = durable.map(|b| b.complete).fold(*most, u64::max);
    }
    assert_eq!(blocks.durable(), *most, "{story}");
    assert_eq!(blocks.in_flight(), blocks.list.iter().filter(|b| !b.is_written()).count(), "{story}");
    assert_eq!(blocks.failed(), blocks.list.iter().filter(|b| b.stage == Stage::Failed).count(), "{story}");
}

fn run(seed: u64) {
    let mut state = seed;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut blocks, mut most, mut txg, mut next, mut id) = (Blocks::default(), 0, 1, 1, 0);
    for step in 0..300 {
        let story = format!("seed {seed}, step {step}: {blocks:?}");
        match below(10) {
            _ if blocks.is_empty() => {
                (next, txg) = (1, txg + 1);
                blocks.begin(place(1, Txg(txg)));
            }
            0..5 if blocks.last().is_some() => {
                (next, id) = (next + 1, id + 1);
                match below(40) {
                    0 => blocks.break_off(),
                    // A block that had room for nothing promises nothing.
                    _ => {
                        let complete = if below(8) > 0 { id } else { 0 };
                        blocks.issue(Txg(txg), Txg(txg), complete, place(next, Txg(txg)));
                    }
                }
            }
            5..8 => {
                let flying: Vec<u64> =
                    blocks.list.iter().filter(|b| !b.is_written()).map(Block::number).collect();
                if !flying.is_empty() {
                    let number = flying[below(flying.len() as u64) as usize];
                    blocks.written(number, below(30) > 0);
                }
            }
            8 => {
                id += 1;
                blocks.cover(id);
            }
            _ => {
                txg += 1;
                let old = Txg(txg.saturating_sub(1 + below(3)));
                if blocks.is_settled(old) {
                    blocks.retire(old);
                }
            }
        }
        check(&blocks, &mut most, &story);
    }
    assert!(id > 10, "seed {seed}: the chain was used");
}

#[test]
fn what_is_counted_is_what_a_walk_would_find() {
    (0..200).for_each(run);
}
