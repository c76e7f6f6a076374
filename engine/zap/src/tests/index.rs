//! The index of a micro ZAP is never seen: with it and without it, everything is the same.

use super::objects::Bench;
use super::{Memory, Numbers, micro, now};
use crate::index::Index;
use crate::micro::Micro;
use crate::{Blocks, Form, Key, Match, Normalization, Options, Value, Zap, ZapFlags, hash, kept};
use dmu::{NewObject, Object, Tx};
use ondisk::ObjectType;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Txg;

fn name(n: u64) -> String {
    format!("name {n:x}")
}

fn filled(entries: u64) -> Zap<Memory> {
    let zap = micro();
    (0..entries).for_each(|n| now(zap.insert(&(), name(n).as_str(), n)).unwrap());
    zap
}

fn has_index<S: Blocks>(zap: &Zap<S>) -> bool {
    zap.kept.has_index()
}

/// What an index says must be what the block says.
fn check_index<S: Blocks>(zap: &Zap<S>) {
    let bytes = now(zap.blocks().read_block(0)).unwrap();
    let (_, bytes) = crate::block::open(bytes).unwrap();
    let micro = Micro::open(bytes).unwrap();
    let Some(kept) = zap.kept.look(zap.blocks().version(), &micro) else { return };
    assert_eq!(kept.free_slot(), micro.free_slot(None));
    for slot in micro.slots().map(Result::unwrap) {
        let hash = micro.rules().hash(Key::Name(slot.name));
        assert!(kept.slots_of(hash).any(|s| s == slot.index));
        let (mut with, mut without) =
            (micro.cds_of(hash, Some(&kept)).unwrap(), micro.cds_of(hash, None).unwrap());
        with.sort_unstable();
        without.sort_unstable();
        assert_eq!(with, without);
    }
    let listed: usize = micro.sorted().unwrap().len();
    let found: usize = {
        let mut hashes: Vec<u64> = micro.sorted().unwrap().iter().map(|(at, _)| at.hash).collect();
        hashes.dedup();
        hashes.iter().map(|hash| kept.slots_of(*hash).count()).sum()
    };
    assert_eq!(found, listed, "nothing is in the index but what is in the block");
}

#[test]
fn the_second_question_makes_an_index_and_changes_keep_it() {
    let zap = Zap::open(filled(100).blocks().clone());
    assert_eq!(now(zap.require_u64("name 7")).unwrap(), 7);
    assert!(!has_index(&zap), "one question is answered from the block");
    assert_eq!(now(zap.lookup_u64("name x")).unwrap(), None);
    assert!(has_index(&zap));
    for n in 100..1500 {
        now(zap.insert(&(), name(n).as_str(), n)).unwrap();
        now(zap.update(&(), name(n - 50).as_str(), n)).unwrap();
        now(zap.remove(&(), name(n - 100).as_str())).unwrap();
        assert!(zap.kept.has_index_of(zap.blocks().version()), "at {n}");
        if n % 64 == 0 {
            check_index(&zap);
        }
    }
    check_index(&zap);
}

/// Of many names some have the same 28 bits of hash; differentiators keep their order.
#[test]
fn names_that_collide_are_told_apart() {
    let rules = hash::Rules { salt: 1, norm: Normalization::NONE, flags: ZapFlags::default() };
    let mut by_hash: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for n in 0..120_000u64 {
        let name = format!("{:x}", Numbers(n).next());
        by_hash.entry(rules.hash(Key::from(&name))).or_default().push(name);
    }
    let colliding: Vec<String> = by_hash.into_values().filter(|names| names.len() > 1).flatten().collect();
    assert!(colliding.len() > 20, "{}", colliding.len());
    let zap = Zap::format(Memory::new(512), &(), Options::default(), 1).unwrap();
    for name in &colliding {
        now(zap.insert(&(), name, 1)).unwrap();
    }
    (0..40).for_each(|n| now(zap.insert(&(), name(n).as_str(), n)).unwrap());
    assert!(has_index(&zap));
    check_index(&zap);
    for name in &colliding {
        now(zap.remove(&(), name)).unwrap();
        assert!(!now(zap.contains(name)).unwrap());
        check_index(&zap);
        now(zap.insert(&(), name, 2)).unwrap();
    }
    let entries = now(zap.entries()).unwrap();
    assert_eq!(entries, now(Zap::open(zap.blocks().clone()).entries()).unwrap());
    assert_eq!(entries.len(), colliding.len() + 40);
}

/// Two handles of one object, each with its own index, and changes behind the back of both.
#[test]
fn what_another_handle_has_changed_is_seen() {
    let blocks = Arc::new(filled(200).blocks().clone());
    let handles = [Zap::open(blocks.clone()), Zap::open(blocks.clone())];
    let mut oracle: BTreeMap<String, u64> = (0..200).map(|n| (name(n), n)).collect();
    let mut numbers = Numbers(5);
    for step in 0..6000 {
        let key = name(numbers.below(600));
        let zap = &handles[numbers.below(2) as usize];
        match numbers.below(4) {
            0 => {
                let removed = now(zap.remove(&(), &key));
                assert_eq!(removed.is_ok(), oracle.remove(&key).is_some(), "step {step}");
            }
            1 => {
                now(zap.update(&(), &key, step)).unwrap();
                oracle.insert(key, step);
            }
            _ => {
                assert_eq!(now(zap.lookup_u64(&key)).unwrap(), oracle.get(&key).copied(), "step {step}");
                assert_eq!(now(zap.lookup_u64(&key)).unwrap(), oracle.get(&key).copied(), "step {step}");
            }
        }
    }
    handles.iter().for_each(check_index);
    // The other handle makes it fat; then there is nothing to be had from an index.
    assert!(handles.iter().any(has_index));
    now(handles[0].update(&(), "text", Value::text("x"))).unwrap();
    for (key, value) in &oracle {
        assert_eq!(now(handles[1].require_u64(key)).unwrap(), *value);
    }
    assert!(!has_index(&handles[0]));
    now(handles[1].insert(&(), "more", 1)).unwrap();
    assert_eq!(now(handles[0].len()).unwrap() as usize, oracle.len() + 2);
}

/// Every slot may say anything: twice the same name, differentiators that are taken, names without an end.
#[test]
fn with_an_index_damage_is_met_as_without_one() {
    for seed in 0..150 {
        let mut numbers = Numbers(seed);
        let options = match seed % 3 {
            0 => Options { normalization: Normalization::UPPER, ..Options::default() },
            _ => Options::default(),
        };
        let zap = Zap::format(Memory::new(512), &(), options, seed).unwrap();
        for n in 0..60 {
            now(zap.insert(&(), name(n).as_str(), n)).unwrap();
        }
        zap.blocks().tamper(0, |bytes| {
            for _ in 0..numbers.below(6) {
                let (from, to) = (1 + numbers.below(60) as usize, 1 + numbers.below(60) as usize);
                let slot = bytes[from * 64..][..64].to_vec();
                match numbers.below(5) {
                    // The same name once more, with another value, and perhaps in capitals.
                    0 | 1 => {
                        bytes[to * 64..][..64].copy_from_slice(&slot);
                        bytes[to * 64] ^= 0x55;
                    }
                    2 => {
                        bytes[to * 64..][..64].copy_from_slice(&slot);
                        bytes[to * 64 + 14..][..50].make_ascii_uppercase();
                    }
                    3 => bytes[to * 64 + 8] = numbers.next() as u8,
                    _ => bytes[to * 64 + 14..][..50].fill(b'x'),
                }
            }
        });
        for n in 0..64 {
            let fresh = Zap::open(zap.blocks().clone());
            let key = name(n);
            let (old, new) = (now(zap.lookup_u64(&key)), now(fresh.lookup_u64(&key)));
            assert_eq!(format!("{old:?}"), format!("{new:?}"), "seed {seed}");
            if seed % 3 == 0 {
                let fresh = Zap::open(zap.blocks().clone());
                for how in [Match::Normalized, Match::NormalizedSameCase] {
                    let old = now(zap.lookup_normalized(key.as_bytes(), how));
                    let new = now(fresh.lookup_normalized(key.as_bytes(), how));
                    assert_eq!(format!("{old:?}"), format!("{new:?}"), "seed {seed}");
                }
            }
        }
        // Changed side by side, they stay the same.
        let copy = zap.blocks().clone();
        for n in 0..40 {
            let fresh = Zap::open(copy.clone());
            let key = name(numbers.below(90));
            let (old, new) = match n % 3 {
                0 => (now(zap.remove(&(), &key)), now(fresh.remove(&(), &key))),
                1 => (now(zap.insert(&(), &key, n)), now(fresh.insert(&(), &key, n))),
                _ => (now(zap.update(&(), &key, n)), now(fresh.update(&(), &key, n))),
            };
            assert_eq!(format!("{old:?}"), format!("{new:?}"), "seed {seed} step {n}");
            for (blkid, data) in fresh.blocks().blocks() {
                copy.replace(blkid, data);
            }
            assert!(zap.blocks().blocks()[&0][..] == copy.blocks()[&0][..], "seed {seed} step {n}");
        }
    }
}

#[test]
fn a_block_with_more_slots_than_a_sound_one_has_no_index() {
    let bytes = crate::micro::format(
        8 << 20,
        &hash::Rules { salt: 1, norm: Normalization::NONE, flags: ZapFlags::default() },
    );
    assert!(Index::of(&Micro::open(bytes.freeze()).unwrap()).is_none());
}

#[test]
fn indexes_take_so_much_memory_and_no_more() {
    let zap = filled(2000);
    let many: Vec<Zap<Memory>> = (0..1200).map(|_| Zap::open(zap.blocks().clone())).collect();
    for zap in &many {
        for n in [3, 4] {
            assert_eq!(now(zap.require_u64(name(n).as_str())).unwrap(), n);
        }
        // Other tests make some beside ours, and one has been made before another goes.
        assert!(crate::index::bytes() <= kept::BYTES_MAX + (1 << 20));
    }
    let with = many.iter().filter(|zap| has_index(zap)).count();
    assert!(with > 300 && with < 1000, "{with} of 1200 have one");
    assert!(has_index(&many[1199]), "those made first go first");
    for zap in &many[..10] {
        now(zap.insert(&(), "one more", 1)).unwrap();
        assert_eq!(now(zap.require_u64("one more")).unwrap(), 1);
        check_index(zap);
    }
}

fn in_object(bench: &Bench, entries: u64) -> Zap<Object> {
    let new = NewObject::new(ObjectType::ZAP_METADATA, 512);
    let object = now(bench.set.allocate(&bench.tx(), new)).unwrap();
    let zap = Zap::format(object, &bench.tx(), Options::default(), 5).unwrap();
    (0..entries).for_each(|n| now(zap.insert(&bench.tx(), name(n).as_str(), n)).unwrap());
    zap
}

fn place_of(zap: &Zap<Object>, tx: &Tx) -> *const u8 {
    zap.blocks().dirty_block(tx, 0).unwrap().as_ptr()
}

#[test]
fn a_block_is_changed_in_place_unless_somebody_holds_it() {
    let mut bench = Bench::new();
    let zap = in_object(&bench, 100);
    let place = place_of(&zap, &bench.tx());
    now(zap.remove(&bench.tx(), "name 9")).unwrap();
    now(zap.insert(&bench.tx(), "another", 1)).unwrap();
    assert_eq!(place_of(&zap, &bench.tx()), place);
    // A reader's copy is his.
    let held = now(zap.blocks().read_block(0)).unwrap();
    let before = held.to_vec();
    now(zap.insert(&bench.tx(), "name 9", 2)).unwrap();
    now(zap.remove(&bench.tx(), "name 3")).unwrap();
    assert!(held[..] == before[..]);
    assert_ne!(place_of(&zap, &bench.tx()), held.as_ptr());
    let place = place_of(&zap, &bench.tx());
    drop(held);
    now(zap.insert(&bench.tx(), "name 3", 3)).unwrap();
    assert_eq!(place_of(&zap, &bench.tx()), place);
    // The txg that is on its way to disk keeps what it has.
    let on_its_way = bench.tx();
    let held = zap.blocks().dirty_block(&on_its_way, 0).unwrap();
    let before = held.to_vec();
    let next = Tx::syncing(bench.txg.next());
    now(zap.insert(&next, "of the next txg", 4)).unwrap();
    assert!(zap.blocks().dirty_block(&on_its_way, 0).unwrap()[..] == before[..]);
    bench.sync();
    assert!(has_index(&zap));
    assert_eq!(now(zap.require_u64("of the next txg")).unwrap(), 4);
    check_index(&zap);
}

/// A block grows by sectors, and moves only when its memory is full.
#[test]
fn a_block_that_grows_is_rarely_copied() {
    let bench = Bench::new();
    let zap = in_object(&bench, 1000);
    let mut places = std::collections::BTreeSet::new();
    for n in 1000..2000 {
        now(zap.insert(&bench.tx(), name(n).as_str(), n)).unwrap();
        places.insert(place_of(&zap, &bench.tx()));
    }
    assert!(places.len() <= 3, "{} places", places.len());
    assert_eq!(now(zap.stats()).unwrap().form, Form::Micro);
    (0..2000).for_each(|n| assert_eq!(now(zap.require_u64(name(n).as_str())).unwrap(), n));
}

#[test]
fn an_index_stays_good_from_txg_to_txg_and_is_of_no_other_tree() {
    let mut bench = Bench::new();
    let zap = in_object(&bench, 60);
    let id = zap.blocks().id();
    bench.sync();
    let kept_root = bench.set.root();
    let other = Zap::open(now(bench.set.object(id)).unwrap());
    let mut oracle: BTreeMap<String, u64> = (0..60).map(|n| (name(n), n)).collect();
    let mut numbers = Numbers(77);
    for step in 0..3000 {
        let key = name(numbers.below(400));
        let zap = if numbers.below(8) == 0 { &other } else { &zap };
        if numbers.below(3) == 0 {
            assert_eq!(now(zap.remove(&bench.tx(), &key)).is_ok(), oracle.remove(&key).is_some());
        } else {
            now(zap.update(&bench.tx(), &key, step)).unwrap();
            oracle.insert(key.clone(), step);
        }
        if numbers.below(40) == 0 {
            bench.sync();
        }
        assert_eq!(now(zap.lookup_u64(&key)).unwrap(), oracle.get(&key).copied());
    }
    check_index(&zap);
    check_index(&other);
    bench.sync();
    // Back to what it was: the old handles go on with their tree, the new one shows the old names.
    let set =
        now(dmu::ObjSet::open(bench.store.clone(), bench.set.id(), kept_root, bench.set.policy())).unwrap();
    let back = Zap::open(now(set.object(id)).unwrap());
    for n in 0..400 {
        let expected = (n < 60).then_some(n);
        assert_eq!(now(back.lookup_u64(name(n).as_str())).unwrap(), expected);
        assert_eq!(now(zap.lookup_u64(name(n).as_str())).unwrap(), oracle.get(&name(n)).copied());
    }
}

/// A change in a txg before the newest is not what is read afterwards: the index must not show it either.
#[test]
fn a_change_in_an_older_txg_does_not_make_an_index_lie() {
    let bench = Bench::new();
    let zap = in_object(&bench, 60);
    let (older, newer) = (bench.tx(), Tx::syncing(Txg(bench.txg.0 + 1)));
    now(zap.insert(&newer, "newer", 1)).unwrap();
    now(zap.insert(&older, "older", 2)).unwrap();
    for key in ["newer", "older", "name 5"] {
        let fresh = Zap::open(zap.blocks().clone());
        assert_eq!(now(zap.lookup_u64(key)).unwrap(), now(fresh.lookup_u64(key)).unwrap(), "{key}");
        assert_eq!(now(zap.lookup_u64(key)).unwrap(), now(fresh.lookup_u64(key)).unwrap(), "{key}");
    }
    check_index(&zap);
}

/// An object that was freed and made again is another one, under the same number.
#[test]
fn a_new_object_of_the_same_number_has_nothing_of_the_old_one() {
    let mut bench = Bench::new();
    let zap = in_object(&bench, 60);
    let id = zap.blocks().id();
    bench.sync();
    now(zap.clone().destroy(&bench.set, &bench.tx())).unwrap();
    bench.sync();
    let object = bench.set.claim(&bench.tx(), id, &NewObject::new(ObjectType::ZAP_METADATA, 512)).unwrap();
    let again = Zap::format(object, &bench.tx(), Options::default(), 5).unwrap();
    (0..30).for_each(|n| now(again.insert(&bench.tx(), name(n + 100).as_str(), n)).unwrap());
    assert_eq!(now(again.lookup_u64("name 5")).unwrap(), None);
    assert!(now(zap.insert(&bench.tx(), "x", 1)).is_err(), "who has the old one open cannot change it");
    assert_eq!(now(again.len()).unwrap(), 30);
}
