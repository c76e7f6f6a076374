//! Damaged and foreign blocks.

use super::{Memory, Numbers, fat, micro, now};
use crate::{Blocks, Cursor, Form, Gap, Key, Value, Zap, ZapFlags};
use std::ops::Range;
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
    let _ = salvage(zap, 5);
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

/// The names that can be salvaged, in parts of at least so many, and the gaps.
fn salvage(zap: &Zap<Memory>, at_least: usize) -> units::Result<(Vec<String>, Vec<Gap>)> {
    let (mut names, mut gaps) = (Vec::new(), Vec::new());
    let mut next = Some(0);
    while let Some(from) = next {
        let part = now(zap.salvage(from, at_least))?;
        names.extend(part.entries.iter().map(|(entry, _)| entry.name().into_owned()));
        gaps.extend(part.gaps);
        assert!(part.next.is_none_or(|next| next > from), "the way ends");
        next = part.next;
    }
    Ok((names, gaps))
}

fn names(zap: &Zap<Memory>) -> Vec<String> {
    now(zap.entries()).unwrap().iter().map(|entry| entry.name().into_owned()).collect()
}

fn is_leaf(data: &[u8]) -> bool {
    data[..8] == [0, 0, 0, 0, 0, 0, 0, 0x80]
}

/// A leaf that could not be read took all names behind it along: of a directory of 20,000, any number.
#[test]
fn a_damaged_leaf_costs_its_own_names() {
    let zap = fat(512, ZapFlags::HASH64);
    for n in 0..700u64 {
        now(zap.insert(&(), format!("name {n}").as_str(), n)).unwrap();
    }
    let all = names(&zap);
    assert!(salvage(&zap, 50).is_ok_and(|(whole, gaps)| whole == all && gaps.is_empty()));
    let blocks = zap.blocks().blocks();
    let leaves = blocks.iter().filter(|(_, data)| is_leaf(data));
    let mut lost_in_all = 0;
    for (blkid, data) in leaves {
        zap.blocks().tamper(*blkid, |bytes| bytes.fill(0xab));
        let legible: Vec<String> =
            all.iter().filter(|name| now(zap.lookup(name.as_str())).is_ok()).cloned().collect();
        lost_in_all += all.len() - legible.len();
        let before = now(zap.page(Cursor::START, 1000)).map_or(0, |page| page.entries.len());
        assert!(all[..before] == legible[..before], "what is before the damage comes with a page");
        assert!(now(zap.entries()).is_err(), "but no listing comes to an end");
        for at_least in [1, 50, 1000] {
            let (found, gaps) = salvage(&zap, at_least).unwrap();
            assert!(found == legible, "block {blkid}: {} names", found.len());
            assert_eq!(gaps.len(), 1);
            assert!(
                gaps[0].why.to_string().contains(&format!("object 7 block {blkid}")),
                "{:?}",
                gaps[0].why
            );
        }
        zap.blocks().replace(*blkid, data.clone());
    }
    assert_eq!(lost_in_all, 700, "each name was lost once");
}

/// Leaves say themselves of which hashes they are.
#[test]
fn a_damaged_header_or_table_costs_no_name() {
    let zap = fat(512, ZapFlags::HASH64);
    for n in 0..3000u64 {
        now(zap.insert(&(), format!("name {n}").as_str(), n)).unwrap();
    }
    let all = names(&zap);
    let blocks = zap.blocks().blocks();
    let word = |i: usize| u64::from_le_bytes(blocks[&0][8 * i..][..8].try_into().unwrap());
    let (first, count) = (word(2), word(3));
    assert!(count > 1, "the table has blocks of its own");
    // The header, any part of the table, all of it, and a table that leads to one leaf only or to nothing.
    let mut cases: Vec<(Range<u64>, [u8; 8])> = vec![(0..1, [0xab; 8]), (first..first + count, [0xab; 8])];
    cases.extend((first..first + count).map(|blkid| (blkid..blkid + 1, [0xab; 8])));
    cases.push((first..first + count, blocks[&first][..8].try_into().unwrap()));
    cases.push((first..first + count, [0; 8]));
    for (spoiled, word) in cases {
        for blkid in spoiled.clone() {
            zap.blocks()
                .tamper(blkid, |bytes| bytes.chunks_exact_mut(8).for_each(|w| w.copy_from_slice(&word)));
        }
        for at_least in [1, 100, 5000] {
            let (found, gaps) = salvage(&zap, at_least).unwrap();
            assert!(found == all && gaps.len() == 1, "{spoiled:?}: {} names, {gaps:?}", found.len());
        }
        spoiled.for_each(|blkid| zap.blocks().replace(blkid, blocks[&blkid].clone()));
    }
    // With all leaves gone there is one gap.
    for (blkid, _) in blocks.iter().filter(|(_, data)| is_leaf(data)) {
        zap.blocks().tamper(*blkid, |bytes| bytes.fill(0xab));
    }
    let (found, gaps) = salvage(&zap, 100).unwrap();
    let leaves = blocks.values().filter(|data| is_leaf(data)).count() as u64;
    assert_eq!((found.len(), gaps.len(), gaps[0].more), (0, 1, leaves - 1));
    // With the header too there is nothing to go by.
    zap.blocks().tamper(0, |bytes| bytes.fill(0xab));
    assert!(salvage(&zap, 100).is_err());
}

#[test]
fn an_entry_that_is_damaged_costs_itself() {
    let zap = fat(1024, ZapFlags::HASH64);
    for n in 0..8u64 {
        now(zap.insert(&(), format!("name {n}").as_str(), n)).unwrap();
    }
    // A leaf of 1024 bytes has 32 buckets; entries are the chunks of kind 252, and where their names begin is at 4.
    zap.blocks().tamper(1, |bytes| {
        let chunk = bytes[48 + 64..].chunks_exact_mut(24).find(|chunk| chunk[0] == 252).unwrap();
        chunk[4..6].fill(0xfe);
    });
    let (found, gaps) = salvage(&zap, 100).unwrap();
    assert_eq!((found.len(), gaps.len(), gaps[0].more), (7, 1, 0));
    assert!(now(zap.entries()).is_err());
    // One that is none any more is counted, and one that no bucket leads to is there.
    zap.blocks().tamper(1, |bytes| {
        bytes[48..48 + 64].fill(0xff);
        bytes[48 + 64..].chunks_exact_mut(24).find(|chunk| chunk[0] == 252).unwrap()[0] = 253;
    });
    let (found, gaps) = salvage(&zap, 100).unwrap();
    assert_eq!((found.len(), gaps.len(), gaps[0].more), (7, 1, 0));
    assert!(gaps[0].why.to_string().contains("7 of 8 entries"), "{:?}", gaps[0].why);
}

#[test]
fn a_slot_of_a_micro_zap_that_is_damaged_costs_itself() {
    let zap = micro();
    for n in 0..5u64 {
        now(zap.insert(&(), format!("name {n}").as_str(), n)).unwrap();
    }
    zap.blocks().tamper(0, |bytes| bytes[64 + 14..128].fill(b'x'));
    let (found, gaps) = salvage(&zap, 100).unwrap();
    assert_eq!((found.len(), gaps.len()), (4, 1));
    assert!(found.iter().all(|name| name != "name 0"));
}
