//! When a ZAP changes its shape, and what it refuses.

use super::{Memory, fat, micro, now};
use crate::{Blocks, Cursor, Form, Key, Match, Normalization, Options, Value, Zap, ZapFlags};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use units::{Kind, Result};
use world::Buf;

fn form(zap: &Zap<Memory>) -> Form {
    now(zap.stats()).unwrap().form
}

fn is_fat(zap: &Zap<Memory>) -> bool {
    form(zap) != Form::Micro
}

#[test]
fn a_micro_zap_grows_by_sectors_to_128k_and_then_becomes_fat() {
    let zap = micro();
    for n in 0..7u64 {
        now(zap.insert(&(), format!("{n}").as_str(), n)).unwrap();
    }
    assert_eq!(now(zap.stats()).unwrap().block_size, 512);
    now(zap.insert(&(), "7", 7)).unwrap();
    assert_eq!(now(zap.stats()).unwrap().block_size, 1024);
    for n in 8..2047u64 {
        now(zap.insert(&(), format!("{n}").as_str(), n)).unwrap();
    }
    assert_eq!(now(zap.stats()).unwrap().block_size, 128 << 10);
    assert!(!is_fat(&zap));
    now(zap.insert(&(), "2047", 2047)).unwrap();
    assert!(is_fat(&zap));
    assert_eq!(now(zap.stats()).unwrap().block_size, 16 << 10);
    for n in 0..2048u64 {
        assert_eq!(now(zap.require_u64(format!("{n}").as_str())).unwrap(), n);
    }
}

#[test]
fn what_is_no_short_name_with_one_integer_makes_a_zap_fat() {
    let long = "n".repeat(50);
    for (name, value, becomes_fat) in [
        (&long[..49], Value::from(1), false),
        (&long[..], Value::from(1), true),
        ("a", Value::U64(vec![1, 2]), true),
        ("a", Value::U64(vec![]), true),
        ("a", Value::U32(vec![1]), true),
        ("a", Value::text("text"), true),
    ] {
        let zap = micro();
        now(zap.insert(&(), "before", 5)).unwrap();
        now(zap.insert(&(), name, value.clone())).unwrap();
        assert_eq!(is_fat(&zap), becomes_fat, "{name} {value:?}");
        assert_eq!(now(zap.lookup(name)).unwrap(), Some(value));
        assert_eq!(now(zap.require_u64("before")).unwrap(), 5);
    }
}

#[test]
fn replacing_an_integer_by_a_text_makes_a_zap_fat_too() {
    let zap = micro();
    now(zap.insert(&(), "a", 1)).unwrap();
    assert_eq!(now(zap.insert(&(), "a", Value::text("x"))).unwrap_err().kind(), Kind::Exists);
    now(zap.update(&(), "a", Value::text("x"))).unwrap();
    assert!(is_fat(&zap));
    assert_eq!(now(zap.lookup("a")).unwrap().unwrap().as_text(), Some("x"));
    assert_eq!(now(zap.len()).unwrap(), 1);
}

#[test]
fn a_value_that_no_longer_fits_its_leaf_splits_it() {
    let zap = fat(1024, ZapFlags::HASH64);
    for n in 0..8u64 {
        now(zap.insert(&(), format!("{n}").as_str(), n)).unwrap();
    }
    for n in 0..8u64 {
        let long = Value::U64((0..30).map(|i| n + i).collect());
        now(zap.update(&(), format!("{n}").as_str(), long.clone())).unwrap();
        assert_eq!(now(zap.lookup(format!("{n}").as_str())).unwrap(), Some(long));
    }
    assert!(matches!(form(&zap), Form::Fat { leaves, .. } if leaves > 1));
}

#[test]
fn a_counter_is_gone_when_it_comes_to_zero() {
    let zap = micro();
    for (delta, left) in [(5, Some(5)), (-2, Some(3)), (-3, None), (0, None), (-1, Some(u64::MAX)), (1, None)]
    {
        now(zap.increment(&(), "count", delta)).unwrap();
        assert_eq!(now(zap.lookup_u64("count")).unwrap(), left);
    }
}

#[test]
fn an_entry_is_found_by_its_value() {
    let zap = micro();
    for n in 0..3000u64 {
        now(zap.insert(&(), format!("dir {n}").as_str(), n | 4 << 60)).unwrap();
    }
    let found = now(zap.find_by_value(2500, u64::MAX >> 4)).unwrap().unwrap();
    assert_eq!(found.name(), "dir 2500");
    assert_eq!(now(zap.find_by_value(2500, u64::MAX)).unwrap(), None);
}

#[test]
fn impossible_keys_and_values_are_refused_and_change_nothing() {
    let zap = micro();
    let before = zap.blocks().blocks()[&0].to_vec();
    let huge = Value::U8(vec![0; crate::VALUE_MAX + 1]);
    let long = "n".repeat(256);
    for (key, value) in [
        (Key::from(""), Value::from(1)),
        (Key::Name(b"a\0b"), Value::from(1)),
        (Key::Words(&[1]), Value::from(1)),
        (Key::from(long.as_str()), Value::from(1)),
        (Key::from("a"), huge),
    ] {
        assert_eq!(now(zap.insert(&(), key, value)).unwrap_err().kind(), Kind::Invalid, "{key}");
    }
    assert_eq!(zap.blocks().blocks()[&0].to_vec(), before);
    let too_large_for_the_block = Value::U8(vec![0; 2000]);
    let small = fat(1024, ZapFlags::HASH64);
    assert_eq!(now(small.insert(&(), "a", too_large_for_the_block)).unwrap_err().kind(), Kind::Invalid);
    let zap = fat(512, ZapFlags::UINT64_KEY);
    assert_eq!(now(zap.insert(&(), "name", 1)).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn long_names_need_a_directory_that_allows_them() {
    let name = "n".repeat(1023);
    let zap = micro().with_long_names();
    now(zap.insert(&(), name.as_str(), 1)).unwrap();
    assert_eq!(now(zap.lookup_u64(name.as_str())).unwrap(), Some(1));
    assert_eq!(now(zap.insert(&(), "n".repeat(1024).as_str(), 1)).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn too_many_keys_of_one_hash_end_in_an_error_and_not_in_an_endless_table() {
    let flags = ZapFlags::HASH64.with(ZapFlags::UINT64_KEY).with(ZapFlags::PRE_HASHED_KEY);
    let zap = fat(4096, flags);
    let refused =
        (0..1000u64).find_map(|n| now(zap.insert(&(), Key::Words(&[42, n]), n)).err().map(|e| (n, e)));
    let (count, error) = refused.unwrap();
    assert_eq!(error.kind(), Kind::NoSpace);
    assert_eq!(now(zap.entries()).unwrap().len() as u64, count);
    assert!(zap.blocks().blocks().len() < 10);
    now(zap.remove(&(), Key::Words(&[42, 0]))).unwrap();
    now(zap.insert(&(), Key::Words(&[42, 5000]), 1)).unwrap();
}

#[test]
fn a_position_stays_good_when_the_zap_becomes_fat() {
    let zap = micro();
    for n in 0..500u64 {
        now(zap.insert(&(), format!("{n}").as_str(), n)).unwrap();
    }
    let first = now(zap.page(Cursor::START, 200)).unwrap();
    now(zap.insert(&(), "turns it fat", Value::text("text"))).unwrap();
    let mut seen: Vec<u64> = first.entries.iter().filter_map(|e| e.value.as_u64()).collect();
    let rest = now(zap.page(first.next.unwrap(), 1000)).unwrap();
    assert_eq!(rest.next, None);
    seen.extend(rest.entries.iter().filter_map(|e| e.value.as_u64()));
    seen.sort_unstable();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
}

#[test]
fn names_that_people_take_for_the_same_are_found_in_either_form() {
    let norm = Normalization::FORM_D.with(Normalization::UPPER);
    let options = Options { normalization: norm, flags: ZapFlags::default() };
    let zap = Zap::format(Memory::new(512), &(), options, 99).unwrap();
    now(zap.insert(&(), "Caf\u{e9}", 1)).unwrap();
    now(zap.insert(&(), "caf\u{e9}", 2)).unwrap();
    now(zap.insert(&(), "other", 3)).unwrap();
    for round in 0..2 {
        let found = now(zap.lookup_normalized("CAFE\u{301}".as_bytes(), Match::Normalized)).unwrap().unwrap();
        assert_eq!((found.name.as_slice(), found.is_ambiguous), ("Caf\u{e9}".as_bytes(), true), "{round}");
        let same_case = Match::NormalizedSameCase;
        assert_eq!(now(zap.lookup_normalized("CAFE\u{301}".as_bytes(), same_case)).unwrap(), None);
        let found = now(zap.lookup_normalized("cafe\u{301}".as_bytes(), same_case)).unwrap().unwrap();
        assert_eq!((found.value.as_u64(), found.is_ambiguous), (Some(2), false));
        assert_eq!(now(zap.lookup("cafe\u{301}")).unwrap(), None, "an exact lookup compares bytes");
        assert_eq!(is_fat(&zap), round == 1);
        now(zap.update(&(), "makes it fat", Value::text(""))).unwrap();
    }
    now(zap.remove_normalized(&(), b"OTHER", Match::Normalized)).unwrap();
    assert_eq!(now(zap.lookup("other")).unwrap(), None);
    let plain = micro();
    assert_eq!(now(plain.lookup_normalized(b"a", Match::Normalized)).unwrap_err().kind(), Kind::Unsupported);
}

/// Two changes that each read the header before the other wrote it would lose an entry.
#[test]
fn changes_through_clones_of_a_handle_take_turns() {
    let zap = Zap::open(Slow(Arc::new(fat(1024, ZapFlags::HASH64).blocks().clone())));
    let names: Vec<String> = (0..200).map(|n| format!("name {n}")).collect();
    let handles: Vec<_> = names.iter().map(|_| zap.clone()).collect();
    let mut changes: Vec<_> =
        names.iter().zip(&handles).map(|(name, zap)| Box::pin(zap.insert(&(), name, 1))).collect();
    let mut context = Context::from_waker(Waker::noop());
    while !changes.is_empty() {
        changes.retain_mut(|change| match change.as_mut().poll(&mut context) {
            Poll::Ready(done) => {
                done.unwrap();
                false
            }
            Poll::Pending => true,
        });
    }
    drop(changes);
    let zap = Zap::open(zap.blocks().0.as_ref().clone());
    assert_eq!(now(zap.entries()).unwrap().len(), 200);
}

/// Blocks that are never there at the first asking. Clones are the same blocks.
#[derive(Clone)]
struct Slow(Arc<Memory>);

impl Blocks for Slow {
    type Tx = ();

    fn name(&self) -> String {
        self.0.name()
    }

    fn block_size(&self) -> usize {
        self.0.block_size()
    }

    fn block_count(&self) -> u64 {
        self.0.block_count()
    }

    async fn read_block(&self, blkid: u64) -> Result<Buf> {
        world::yield_now().await;
        self.0.read_block(blkid).await
    }

    async fn read_versioned(&self, blkid: u64) -> Result<(Buf, u64)> {
        world::yield_now().await;
        self.0.read_versioned(blkid).await
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn write_block(&self, tx: &(), blkid: u64, data: Buf) -> Result<()> {
        self.0.write_block(tx, blkid, data)
    }

    fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool {
        self.0.is_dirty_block(blkid, data)
    }

    async fn patch_block(&self, tx: &(), blkid: u64, within: usize, part: &[u8]) -> Result<()> {
        world::yield_now().await;
        self.0.patch_block(tx, blkid, within, part).await
    }

    async fn set_block_size(&self, tx: &(), size: usize) -> Result<()> {
        self.0.set_block_size(tx, size).await
    }

    fn free_blocks(&self, tx: &(), blocks: Range<u64>) -> Result<()> {
        self.0.free_blocks(tx, blocks)
    }
}
