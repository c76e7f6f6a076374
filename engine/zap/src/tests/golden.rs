//! ZAPs that OpenZFS wrote, against what its own debugger lists. `tests/golden/README.md` says where they are from.

use super::{Memory, damage::foreign, now};
use crate::{Entry, Form, Key, Match, Normalization, OwnedKey, Value, Zap, ZapFlags};
use world::Buf;

macro_rules! golden {
    ($name:literal, $block_size:expr) => {
        (
            load(include_bytes!(concat!("../../tests/golden/", $name, ".blocks")), $block_size),
            include_str!(concat!("../../tests/golden/", $name, ".txt")),
        )
    };
}

fn load(bytes: &[u8], block_size: usize) -> Zap<Memory> {
    Zap::open(Memory::of((0..).zip(bytes.chunks(block_size).map(Buf::copy_from))))
}

/// An entry as the text files write it.
fn line(entry: &Entry) -> String {
    let key = match &entry.key {
        OwnedKey::Name(name) => String::from_utf8(name.clone()).unwrap(),
        OwnedKey::Words(words) => words.iter().map(|w| format!("{w:x}")).collect::<Vec<_>>().join(" "),
    };
    let integers: Vec<String> = match &entry.value {
        Value::U8(v) => v.iter().map(u8::to_string).collect(),
        Value::U16(v) => v.iter().map(u16::to_string).collect(),
        Value::U32(v) => v.iter().map(u32::to_string).collect(),
        Value::U64(v) => v.iter().map(u64::to_string).collect(),
    };
    format!("{key} = {}: {}\n", entry.value.int_size(), integers.join(" "))
}

fn listing(zap: &Zap<Memory>) -> String {
    now(zap.entries()).unwrap().iter().map(line).collect()
}

fn check((zap, expected): &(Zap<Memory>, &str)) {
    assert_eq!(listing(zap), **expected);
    assert_eq!(now(zap.len()).unwrap(), expected.lines().count() as u64);
    for entry in now(zap.entries()).unwrap() {
        assert_eq!(now(zap.lookup(&entry.key)).unwrap(), Some(entry.value), "{}", Key::from(&entry.key));
    }
}

/// A leaf must be proven sound before it changes: so our proof accepts what OpenZFS writes.
fn check_change((zap, expected): &(Zap<Memory>, &str)) {
    let is_words = now(zap.stats()).unwrap().flags.has(ZapFlags::UINT64_KEY);
    for n in 0..400u64 {
        let words = [n.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        let name = format!("new {n}");
        let key = if is_words { Key::Words(&words) } else { Key::from(&name) };
        now(zap.insert(&(), key, n)).unwrap();
    }
    assert_eq!(listing(zap).lines().filter(|l| expected.contains(*l)).count(), expected.lines().count());
    for n in 0..400u64 {
        let words = [n.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        let name = format!("new {n}");
        let key = if is_words { Key::Words(&words) } else { Key::from(&name) };
        now(zap.remove(&(), key)).unwrap();
    }
    assert_eq!(listing(zap), **expected);
}

fn check_all(golden: (Zap<Memory>, &str)) {
    check(&golden);
    let turned = (golden.0.clone(), golden.1);
    for blkid in turned.0.blocks().blocks().into_keys() {
        turned.0.blocks().tamper(blkid, |bytes| foreign(blkid, bytes));
    }
    check(&turned);
    check_change(&golden);
    check_change(&turned);
}

#[test]
fn the_object_directory_of_a_pool() {
    let golden = golden!("object-directory", 16 << 10);
    assert!(matches!(
        now(golden.0.stats()).unwrap().form,
        Form::Fat { leaves: 1, blocks: 2, table_shift: 10 }
    ));
    check_all(golden);
}

#[test]
fn a_directory_whose_names_are_compared_decomposed() {
    let golden = golden!("directory-form-d", 4096);
    let stats = now(golden.0.stats()).unwrap();
    assert_eq!((stats.form, stats.normalization), (Form::Micro, Normalization::FORM_D));
    check(&golden);
    for name in ["\u{fc}32", "u\u{308}32"] {
        let found = now(golden.0.lookup_normalized(name.as_bytes(), Match::Normalized)).unwrap().unwrap();
        assert_eq!(found.value, Value::from(42 | 8 << 60));
    }
    check_all(golden);
}

#[test]
fn a_directory_without_letter_case() {
    let golden = golden!("directory-insensitive", 4096);
    assert_eq!(now(golden.0.stats()).unwrap().normalization, Normalization::UPPER);
    let found = now(golden.0.lookup_normalized(b"fILE21", Match::Normalized)).unwrap().unwrap();
    assert_eq!(found.name, b"File21");
    check_all(golden);
}

#[test]
fn a_directory_of_three_leaves() {
    let golden = golden!("directory-split", 16 << 10);
    assert!(matches!(now(golden.0.stats()).unwrap().form, Form::Fat { leaves: 3, blocks: 4, .. }));
    check_all(golden);
}

#[test]
fn a_block_clone_table() {
    let golden = golden!("block-clones", 4096);
    let flags = ZapFlags::HASH64.with(ZapFlags::UINT64_KEY);
    assert_eq!(now(golden.0.stats()).unwrap().flags, flags);
    check_all(golden);
}

#[test]
fn a_dedup_table() {
    let (zap, checksums) = golden!("dedup-table", 32 << 10);
    let flags = ZapFlags::HASH64.with(ZapFlags::UINT64_KEY).with(ZapFlags::PRE_HASHED_KEY);
    assert_eq!(now(zap.stats()).unwrap().flags, flags);
    let listed = now(zap.entries()).unwrap();
    let keys: String = listed
        .iter()
        .map(|e| match &e.key {
            OwnedKey::Words(w) => format!("{:016x} {:016x} {:016x} {:016x}\n", w[0], w[1], w[2], w[3]),
            OwnedKey::Name(_) => panic!("a dedup table is keyed by checksums"),
        })
        .collect();
    assert_eq!(keys, checksums);
    for entry in listed {
        assert_eq!(now(zap.lookup(&entry.key)).unwrap(), Some(entry.value));
    }
}
