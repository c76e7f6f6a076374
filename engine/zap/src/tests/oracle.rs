//! Random changes, checked against a map.

use super::{Memory, Numbers, fat, micro, now};
use crate::{Cursor, Form, Key, OwnedKey, Value, Zap, ZapFlags};
use std::collections::BTreeMap;
use units::Kind;

type Oracle = BTreeMap<OwnedKey, Value>;

/// What a run of random changes does.
struct Run {
    seed: u64,
    steps: u64,
    /// From how many different keys each step picks.
    keys: u64,
    /// Of 100 steps, how many remove.
    removals: u64,
    rich_values: bool,
    words: bool,
}

impl Run {
    fn key(&self, n: u64) -> OwnedKey {
        if self.words {
            return OwnedKey::Words(vec![Numbers(n).next(), n, self.seed]);
        }
        // Most names are short; some are too long for a micro ZAP, if rich values are allowed at all.
        let tail = if self.rich_values && n.is_multiple_of(50) {
            "x".repeat(60 + (n % 180) as usize)
        } else {
            String::new()
        };
        OwnedKey::Name(format!("name-{n:x}{tail}").into_bytes())
    }

    fn value(&self, numbers: &mut Numbers) -> Value {
        if !self.rich_values {
            return numbers.next().into();
        }
        let len = if numbers.below(50) == 0 { numbers.below(300) } else { numbers.below(12) } as usize;
        match numbers.below(5) {
            0 => Value::U8((0..len).map(|_| numbers.next() as u8).collect()),
            1 => Value::U16((0..len).map(|_| numbers.next() as u16).collect()),
            2 => Value::U32((0..len).map(|_| numbers.next() as u32).collect()),
            3 => Value::U64((0..len).map(|_| numbers.next()).collect()),
            _ => numbers.next().into(),
        }
    }

    fn go(&self, zap: &Zap<Memory>) -> Oracle {
        let mut oracle = Oracle::new();
        let mut numbers = Numbers(self.seed);
        for step in 0..self.steps {
            let key = self.key(numbers.below(self.keys));
            let present = oracle.contains_key(&key);
            let value = self.value(&mut numbers);
            match numbers.below(100) {
                n if n < self.removals => {
                    let removed = now(zap.remove(&(), &key));
                    assert_eq!(removed.is_ok(), oracle.remove(&key).is_some(), "step {step}");
                    assert!(removed.is_ok() || removed.unwrap_err().kind() == Kind::NotFound);
                }
                n if n % 2 == 0 => {
                    let inserted = now(zap.insert(&(), &key, value.clone()));
                    assert_eq!(inserted.is_ok(), !present, "step {step}: {inserted:?}");
                    if !present {
                        oracle.insert(key, value);
                    }
                }
                _ => {
                    now(zap.update(&(), &key, value.clone())).unwrap();
                    oracle.insert(key, value);
                }
            }
            if step % (self.steps / 5 + 1) == 0 {
                compare(zap, &oracle);
            }
        }
        compare(zap, &oracle);
        oracle
    }
}

/// Every way of reading must show the same as the map.
fn compare(zap: &Zap<Memory>, oracle: &Oracle) {
    assert_eq!(now(zap.len()).unwrap(), oracle.len() as u64);
    let listed: Oracle = now(zap.entries()).unwrap().into_iter().map(|e| (e.key, e.value)).collect();
    assert_eq!(&listed, oracle);
    assert_eq!(pages(zap, 7), *oracle);
    for (key, value) in oracle {
        assert_eq!(now(zap.lookup(key)).unwrap().as_ref(), Some(value), "{}", Key::from(key));
    }
}

fn pages(zap: &Zap<Memory>, limit: usize) -> Oracle {
    let mut all = Oracle::new();
    let (mut next, mut last) = (Some(Cursor::START), None);
    while let Some(from) = next {
        let cookie = now(zap.cookie(from)).unwrap();
        assert!(Some(cookie) > last, "cookies grow");
        last = Some(cookie);
        assert_eq!(now(zap.from_cookie(cookie)).unwrap(), from);
        let page = now(zap.page(from, limit)).unwrap();
        assert!(page.entries.len() <= limit);
        for entry in page.entries {
            assert_eq!(all.insert(entry.key, entry.value), None, "each entry is listed once");
        }
        next = page.next;
    }
    all
}

#[test]
fn a_micro_zap_is_a_map() {
    let zap = micro();
    Run { seed: 1, steps: 4000, keys: 1500, removals: 40, rich_values: false, words: false }.go(&zap);
    assert_eq!(now(zap.stats()).unwrap().form, Form::Micro);
}

#[test]
fn a_zap_that_outgrows_its_micro_form_is_still_the_same_map() {
    let zap = micro();
    Run { seed: 2, steps: 12_000, keys: 6000, removals: 10, rich_values: false, words: false }.go(&zap);
    assert!(matches!(now(zap.stats()).unwrap().form, Form::Fat { .. }));
}

#[test]
fn a_fat_zap_with_values_of_every_kind_is_a_map() {
    for seed in 3..6 {
        let zap = micro();
        Run { seed, steps: 8000, keys: 3000, removals: 35, rich_values: true, words: false }.go(&zap);
    }
}

#[test]
fn small_blocks_with_many_splits_and_table_growth_hold_a_map() {
    for seed in 6..9 {
        let zap = fat(1024, ZapFlags::HASH64);
        Run { seed, steps: 12_000, keys: 5000, removals: 20, rich_values: false, words: false }.go(&zap);
        let Form::Fat { table_shift, .. } = now(zap.stats()).unwrap().form else { panic!() };
        assert!(table_shift > 9, "the table has left the header and doubled, shift {table_shift}");
    }
}

#[test]
fn a_zap_keyed_by_integers_is_a_map() {
    for flags in [ZapFlags::UINT64_KEY, ZapFlags::UINT64_KEY.with(ZapFlags::PRE_HASHED_KEY)] {
        let zap = fat(4096, ZapFlags::HASH64.with(flags));
        Run { seed: 10, steps: 6000, keys: 2500, removals: 25, rich_values: true, words: true }.go(&zap);
    }
}

#[test]
fn what_was_filled_can_be_emptied_and_filled_again() {
    let zap = fat(1024, ZapFlags::HASH64);
    let run = Run { seed: 11, steps: 6000, keys: 6000, removals: 0, rich_values: false, words: false };
    for round in 0..3 {
        let oracle = run.go(&zap);
        let before = now(zap.stats()).unwrap();
        for key in oracle.keys() {
            now(zap.remove(&(), key)).unwrap();
        }
        compare(&zap, &Oracle::new());
        let Form::Fat { leaves, .. } = now(zap.stats()).unwrap().form else { panic!() };
        assert!(matches!(before.form, Form::Fat { leaves: many, .. } if many > 100));
        assert_eq!(leaves, 1, "round {round}: empty leaves were given back");
    }
}

#[test]
fn a_hundred_thousand_entries_are_all_found() {
    let zap = micro();
    let count = 120_000u64;
    let name = |n: u64| format!("an entry whose name takes four chunks of its leaf, number {n:010x}");
    for n in 0..count {
        now(zap.insert(&(), name(n).as_str(), n)).unwrap();
    }
    assert_eq!(now(zap.len()).unwrap(), count);
    for n in 0..count {
        assert_eq!(now(zap.lookup_u64(name(n).as_str())).unwrap(), Some(n));
    }
    assert_eq!(now(zap.entries()).unwrap().len() as u64, count);
    let Form::Fat { table_shift, leaves, .. } = now(zap.stats()).unwrap().form else { panic!() };
    assert!(table_shift > 10 && leaves > 1000, "shift {table_shift}, {leaves} leaves");
}
