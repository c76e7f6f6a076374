//! Damaged and foreign blocks.

use super::{Memory, Numbers, fat, micro, now};
use crate::{Blocks, Cursor, Form, Key, Value, Zap, ZapFlags};
use units::Kind;

fn sample_fat(entries: u64) -> Zap<Memory> {
    let zap = fat(1024, ZapFlags::HASH64);
    for n in 0..entries {
        let value = if n % 3 == 0 { Value::from(n) } else { Value::text(&"v".repeat((n % 40) as usize)) };
        now(zap.insert(&(), format!("name {n}").as_str(), value)).unwrap();
    }
    zap
}

/// Does everything there is to do to a ZAP. Each step may fail, none may hang or panic.
fn exercise(zap: &Zap<Memory>) {
    let _ = now(zap.len());
    let _ = now(zap.lookup("name 7"));
    let _ = now(zap.entries());
    let _ = now(zap.page(Cursor { hash: 1 << 63, cd: 0 }, 5));
    for n in 0..20u64 {
        let _ = now(zap.update(&(), format!("name {n}").as_str(), Value::text("changed")));
        let _ = now(zap.remove(&(), format!("name {}", n + 7).as_str()));
        let _ = now(zap.insert(&(), format!("new {n}").as_str(), n));
    }
    let _ = now(zap.entries());
}

#[test]
fn random_damage_is_an_error_at_worst() {
    for seed in 0..4000 {
        let mut numbers = Numbers(seed);
        let zap = if seed % 4 == 0 { micro() } else { sample_fat(60) };
        if seed % 4 == 0 {
            now(zap.insert(&(), "name 7", seed)).unwrap();
        }
        let blocks: Vec<u64> = zap.blocks().blocks().into_keys().collect();
        for _ in 0..=numbers.below(4) {
            let blkid = blocks[numbers.below(blocks.len() as u64) as usize];
            zap.blocks().tamper(blkid, |bytes| {
                // Mostly where the structure is: the head of the block, or a whole word anywhere.
                let end = if numbers.below(2) == 0 { 104 } else { bytes.len() as u64 - 8 };
                let at = numbers.below(end) as usize;
                match numbers.below(5) {
                    // A count at its end.
                    4 => bytes[at / 8 * 8..][..8].fill(0xff),
                    0 => bytes[at] ^= 1 << numbers.below(8),
                    1 => bytes[at] = numbers.next() as u8,
                    2 => bytes[at..at + 2].fill(numbers.next() as u8),
                    _ => bytes[at..at + 8]
                        .copy_from_slice(&(numbers.next() >> numbers.below(64)).to_le_bytes()),
                }
            });
        }
        exercise(&zap);
    }
}

#[test]
fn a_change_that_meets_damage_writes_nothing() {
    let zap = sample_fat(60);
    let Form::Fat { leaves, .. } = now(zap.stats()).unwrap().form else { panic!() };
    assert!(leaves > 4);
    // The count of free chunks of every leaf is wrong.
    for blkid in zap.blocks().blocks().into_keys().filter(|b| *b != 0) {
        zap.blocks().tamper(blkid, |bytes| bytes[28] ^= 1);
    }
    let before: Vec<_> = zap.blocks().blocks().into_iter().map(|(b, data)| (b, data.to_vec())).collect();
    let error = now(zap.insert(&(), "new", 1)).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("object 7 block "), "{error}");
    let after: Vec<_> = zap.blocks().blocks().into_iter().map(|(b, data)| (b, data.to_vec())).collect();
    assert!(before == after);
    assert_eq!(now(zap.lookup_u64("name 3")).unwrap(), Some(3), "what is still legible is read");
}

/// What was proven, or written by us, is proven again when it was somewhere else meanwhile.
#[test]
fn a_leaf_that_comes_back_from_a_device_is_proven_again() {
    let zap = sample_fat(60);
    now(zap.insert(&(), "new", 1)).unwrap();
    let leaves: Vec<u64> = zap.blocks().blocks().into_keys().filter(|b| *b != 0).collect();
    let sound = leaves.iter().filter(|b| zap.kept.is_sound(zap.blocks().version(), **b)).count();
    assert!(sound > 0, "it remembers");
    // Its free chunks are counted wrong; no write has touched it.
    leaves.iter().for_each(|blkid| zap.blocks().rot(*blkid, |bytes| bytes[28] ^= 1));
    assert_eq!(now(zap.remove(&(), "new")).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(now(zap.insert(&(), "newer", 1)).unwrap_err().kind(), Kind::Corrupt);
    leaves.iter().for_each(|blkid| zap.blocks().rot(*blkid, |bytes| bytes[28] ^= 1));
    now(zap.remove(&(), "new")).unwrap();
}

/// A pointer that leads to the wrong leaf could make a listing go round for ever.
#[test]
fn a_pointer_table_that_leads_to_one_leaf_only_is_noticed() {
    let zap = sample_fat(60);
    zap.blocks().tamper(0, |bytes| {
        let first: [u8; 8] = bytes[512..520].try_into().unwrap();
        bytes[512..].chunks_exact_mut(8).for_each(|p| p.copy_from_slice(&first));
    });
    assert_eq!(now(zap.entries()).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn a_loop_of_chunks_is_noticed() {
    let zap = fat(1024, ZapFlags::HASH64);
    now(zap.insert(&(), "a", 1)).unwrap();
    // Chunks start behind 48 bytes of header and 32 buckets; the entry is chunk 0, and its `next` is at 2.
    zap.blocks().tamper(1, |bytes| bytes[48 + 64 + 2..][..2].fill(0));
    assert_eq!(now(zap.entries()).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(now(zap.insert(&(), "b", 1)).unwrap_err().kind(), Kind::Corrupt);
}

/// Turns a block as a machine of the other byte order would have written it.
pub(super) fn foreign(blkid: u64, bytes: &mut [u8]) {
    match u64::from_le_bytes(bytes[..8].try_into().unwrap()) & 0xff {
        _ if bytes[7] != 0x80 => bytes.chunks_exact_mut(8).for_each(<[u8]>::reverse),
        0 => crate::leaf::turn(bytes),
        1 => bytes.chunks_exact_mut(8).for_each(<[u8]>::reverse),
        3 => crate::micro::turn(bytes),
        kind => panic!("block {blkid} is of kind {kind}"),
    }
}

#[test]
fn a_zap_of_the_other_byte_order_is_read_and_changed() {
    for entries in [5, 800] {
        let zap = if entries == 5 { micro() } else { sample_fat(entries) };
        now(zap.insert(&(), "one", 1)).unwrap();
        let expected = now(zap.entries()).unwrap();
        for blkid in zap.blocks().blocks().into_keys() {
            zap.blocks().tamper(blkid, |bytes| foreign(blkid, bytes));
        }
        assert_eq!(now(zap.entries()).unwrap(), expected);
        // Changes turn some blocks, and leave the others foreign.
        for n in 0..300u64 {
            now(zap.insert(&(), format!("more {n}").as_str(), n)).unwrap();
        }
        assert_eq!(now(zap.entries()).unwrap().len(), expected.len() + 300);
        for n in 0..300u64 {
            now(zap.remove(&(), format!("more {n}").as_str())).unwrap();
        }
        assert_eq!(now(zap.entries()).unwrap(), expected);
    }
}

#[test]
fn a_half_grown_table_is_read_and_finished() {
    let zap = fat(512, ZapFlags::HASH64);
    let half_grown = |zap: &Zap<Memory>| {
        let word = |i: usize| u64::from_le_bytes(zap.blocks().blocks()[&0][8 * i..][..8].try_into().unwrap());
        (word(5) != 0, word(6))
    };
    let mut seen = 0;
    for n in 0..3000u64 {
        now(zap.insert(&(), format!("{n}").as_str(), n)).unwrap();
        if let (true, 1..) = half_grown(&zap) {
            seen += 1;
            for back in n.saturating_sub(20)..=n {
                assert_eq!(now(zap.require_u64(format!("{back}").as_str())).unwrap(), back);
            }
        }
    }
    assert!(seen > 20, "tables were met half grown {seen} times");
    assert_eq!(now(zap.entries()).unwrap().len(), 3000);
}

#[test]
fn a_lookup_reads_three_blocks_at_most() {
    let zap = sample_fat(800);
    let before = zap.blocks().reads();
    assert!(now(zap.contains("name 700")).unwrap());
    assert_eq!(zap.blocks().reads() - before, 3, "header, table, leaf");
    assert_eq!(now(zap.lookup(Key::from("absent"))).unwrap(), None);
}
