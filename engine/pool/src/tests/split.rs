//! A pool that becomes two, and one that gets another guid, another name or an older state.

use super::devices::{device, look_at, made_whole, shape};
use super::{BLOCK, Rig, VOLUME, cache, fill, host, make_volume, noise, read_all, verify};
use crate::{Offline, OpenOptions, Pool};
use sim::{Disks, Model};
use std::path::Path;
use units::{Guid, Kind, Result, Txg};
use vdev::{Bias, Candidate, Group, Layout};
use world::Buf;

const SIZE: u64 = 64 * BLOCK;
const DISK: u64 = 96 << 20;

fn options(read_only: bool) -> OpenOptions {
    OpenOptions {
        read_only,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    }
}

async fn candidates() -> Vec<Candidate> {
    crate::scan_dirs(&[Path::new("/sim")]).await.unwrap()
}

async fn candidate(name: &str) -> Option<Candidate> {
    candidates().await.into_iter().find(|c| c.name() == name)
}

async fn open(name: &str) -> Pool {
    crate::open(&candidate(name).await.unwrap(), options(false)).await.unwrap()
}

async fn check(pool: &Pool, name: &str, seed: u64) {
    assert!(read_all(pool, name).await.unwrap() == noise(seed, SIZE as usize));
    verify(pool).await;
}

fn leaves(names: &[&str]) -> Vec<vdev::NewLeaf> {
    names.iter().map(|name| look_at(name)).collect()
}

/// Two mirrors and a log, and a volume that is written durably.
async fn two_mirrors(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    let more = Group { layout: Layout::Mirror, bias: Bias::Normal, leaves: leaves(&["a", "b"]) };
    let log = Group { layout: Layout::Stripe, bias: Bias::Log, leaves: leaves(&["log"]) };
    pool.add_vdevs(&[more, log], 12).await.unwrap();
    make_volume(&pool, VOLUME, SIZE).await;
    fill(&pool, VOLUME, 1).await;
    pool
}

fn rig() -> Rig {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    ["a", "b", "log"].iter().for_each(|name| drop(rig.disks.add(format!("/sim/{name}"), DISK, Model::NVME)));
    rig
}

async fn split(pool: &Pool, named: Vec<Guid>) -> Result<Pool> {
    pool.split("copy".into(), named, OpenOptions { name: Some("copy".into()), ..options(false) }).await
}

#[test]
fn a_pool_of_mirrors_becomes_two_with_the_same_content_that_both_go_on() {
    let rig = rig();
    let own = rig.clone();
    rig.run(1, async move {
        let pool = two_mirrors(&own).await;
        // Acknowledged, and not flushed.
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write(0, Buf::copy_from(&noise(9, BLOCK as usize))).await.unwrap();
        let copy = split(&pool, vec![device(&pool, "a")]).await.unwrap();
        assert_eq!(shape(&pool), "disk0 b log");
        assert_eq!(copy.name(), "copy");
        let first = |bytes: Vec<u8>| bytes[..BLOCK as usize].to_vec();
        for (pool, name) in [(&pool, VOLUME), (&copy, "copy/v")] {
            assert_eq!(first(read_all(pool, name).await.unwrap()), noise(9, BLOCK as usize));
            verify(pool).await;
        }
        let tree = copy.tree().spec();
        let paths: Vec<_> = tree.children.iter().map(|top| top.path.clone().unwrap_or_default()).collect();
        assert_eq!(paths, ["/sim/disk1", "/sim/a", ""], "a hole is where the log was");
        fill(&copy, "copy/v", 3).await;
        fill(&pool, VOLUME, 2).await;
        copy.export().await.unwrap();
        pool.export().await.unwrap();
        drop((pool, copy, volume));
        let guids: Vec<Guid> = candidates().await.iter().map(|c| c.guid()).collect();
        assert!(guids.len() == 2 && guids[0] != guids[1], "{guids:?}");
        let (pool, copy) = (open("tank").await, open("copy").await);
        check(&pool, VOLUME, 2).await;
        check(&copy, "copy/v", 3).await;
        assert_eq!(shape(&pool), "disk0 b log");
        // Each can have a mirror again.
        copy.export().await.unwrap();
        pool.attach(device(&pool, "disk0"), look_at("a"), false, 12).await.unwrap();
        made_whole(&pool).await;
        check(&pool, VOLUME, 2).await;
    });
}

#[test]
fn what_has_no_whole_side_to_give_is_not_split() {
    let rig = rig();
    let own = rig.clone();
    rig.run(2, async move {
        let pool = two_mirrors(&own).await;
        let refused = |named: Vec<Guid>| pool.plan_split(&named).map_err(|e| e.to_string());
        let (a, b) = (device(&pool, "a"), device(&pool, "b"));
        assert!(refused(vec![a, b]).unwrap_err().contains("more than one device of a mirror"));
        assert_eq!(pool.plan_split(&[Guid(77)]).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(refused(vec![]).unwrap(), [device(&pool, "disk1"), b], "the last of each");
        assert!(split(&pool, vec![a, b]).await.is_err());
        pool.offline(a, Offline::Lasting).await.unwrap();
        assert!(refused(vec![a]).unwrap_err().contains("is not ONLINE"));
        assert!(refused(vec![]).unwrap_err().contains("the only one of its mirror"));
        pool.online(a).await.unwrap();
        made_whole(&pool).await;
        own.disks.add("/sim/single", DISK, Model::NVME);
        let single = Group { layout: Layout::Stripe, bias: Bias::Normal, leaves: leaves(&["single"]) };
        pool.add_vdevs(&[single], 12).await.unwrap();
        assert!(refused(vec![]).unwrap_err().contains("must be composed only of mirrors"));
        check(&pool, VOLUME, 1).await;
    });
}

#[test]
fn a_power_cut_while_a_pool_is_split_leaves_the_old_one_whole_and_the_new_one_whole_or_absent() {
    let rig = rig();
    let own = rig.clone();
    rig.run(3, async move {
        let pool = two_mirrors(&own).await;
        pool.close().await.unwrap();
    });
    let before = rig.disks.fork();
    let run = |disks: &Disks| {
        sim::run_until_cut(disks, 7, Default::default(), async {
            let pool = open("tank").await;
            let copy = split(&pool, Vec::new()).await.unwrap();
            copy.export().await.unwrap();
            fill(&pool, VOLUME, 1).await;
        })
    };
    let whole = before.fork();
    let start = whole.flushes();
    run(&whole);
    let flushes = whole.flushes() - start;
    let (mut with, mut without, mut last) = (0, 0, false);
    for cut in 1..=flushes {
        let disks = before.fork();
        disks.cut_at_flush(cut);
        run(&disks);
        disks.power_cut(cut);
        let is_split = sim::run_with(&disks, cut, Default::default(), async move {
            let pool = open("tank").await;
            check(&pool, VOLUME, 1).await;
            let copy = match candidate("copy").await {
                Some(found) => match crate::open(&found, options(false)).await {
                    Ok(copy) => Some(copy),
                    // Its labels come before its first state, and not all of them have come.
                    Err(e) => {
                        assert!(e.to_string().contains("was cut short") || e.kind() == Kind::Io, "{e}");
                        None
                    }
                },
                None => None,
            };
            if let Some(copy) = &copy {
                check(copy, "copy/v", 1).await;
                copy.export().await.unwrap();
            }
            pool.export().await.unwrap();
            copy.is_some()
        });
        if is_split {
            with += 1
        } else {
            without += 1
        }
        last = is_split;
    }
    assert!(with > 0 && without > 0 && last, "{with} {without}");
}

#[test]
fn a_pool_gets_another_guid_and_a_power_cut_leaves_it_with_one_or_the_other() {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    let own = rig.clone();
    let former = rig.run(4, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        let taken = pool.tree().leaves()[0].guid();
        assert_eq!(pool.reguid(taken).await.unwrap_err().kind(), Kind::Invalid);
        assert_eq!(pool.reguid(Guid(0)).await.unwrap_err().kind(), Kind::Invalid);
        let away = device(&pool, "disk1");
        pool.offline(away, Offline::Temporary).await.unwrap();
        let refused = pool.reguid(Guid(4711)).await.unwrap_err();
        assert!(refused.to_string().contains("must be there and ONLINE"), "{refused}");
        pool.online(away).await.unwrap();
        made_whole(&pool).await;
        // A disk that was pulled, and was not missed yet: it kept the former guid, and never came back.
        let pulled = own.disks.get("/sim/disk1").unwrap();
        pulled.unplug();
        assert!(pool.tree().leaves().iter().all(|leaf| leaf.health() == vdev::Health::ONLINE));
        assert!(pool.reguid(Guid(4711)).await.is_err());
        pulled.set_fault(sim::Fault::default());
        pool.clear(None).await.unwrap();
        made_whole(&pool).await;
        pool.close().await.unwrap();
        pool.guid()
    });
    let before = rig.disks.fork();
    let run = |disks: &Disks| {
        sim::run_until_cut(disks, 7, Default::default(), async {
            let pool = open("tank").await;
            pool.reguid(Guid(4711)).await.unwrap();
            fill(&pool, VOLUME, 1).await;
        })
    };
    let whole = before.fork();
    let start = whole.flushes();
    run(&whole);
    let flushes = whole.flushes() - start;
    let mut halves = 0;
    let mut seen = Vec::new();
    // Fates in which one device has the new labels and the other not are rare.
    for (cut, fate) in (1..=flushes).flat_map(|cut| (0..4).map(move |fate| (cut, fate))) {
        let disks = before.fork();
        disks.cut_at_flush(cut);
        run(&disks);
        disks.power_cut(fate * 1000 + cut);
        let (guid, was_half) = sim::run_with(&disks, cut, Default::default(), async move {
            let found = candidates().await;
            assert_eq!(found.len(), 1, "it is one pool: {found:?}");
            let pool = open("tank").await;
            assert!(pool.tree().leaves().iter().all(|leaf| leaf.health() == vdev::Health::ONLINE));
            check(&pool, VOLUME, 1).await;
            pool.export().await.unwrap();
            let again = candidates().await;
            assert_eq!((again.len(), again[0].guid(), again[0].former), (1, pool.guid(), None));
            (pool.guid(), found[0].former.is_some())
        });
        halves += u64::from(was_half);
        assert!(guid == former || guid == Guid(4711), "{guid}");
        seen.push(guid);
    }
    assert!(seen.contains(&former) && seen.contains(&Guid(4711)) && halves > 0, "{halves} {seen:?}");
}

#[test]
fn a_temporary_name_is_not_on_disk() {
    let rig = Rig::new(Layout::Stripe, 1, DISK);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        pool.export().await.unwrap();
        drop(pool);
        let found = candidate("tank").await.unwrap();
        let pool = crate::open_as(&found, options(false), "guest".into()).await.unwrap();
        assert_eq!((pool.name().as_str(), pool.name_on_disk().as_deref()), ("guest", Some("tank")));
        fill(&pool, "guest/v", 2).await;
        pool.set_property("comment", "visited").await.unwrap();
        pool.export().await.unwrap();
        drop(pool);
        let pool = open("tank").await;
        assert_eq!((pool.name().as_str(), pool.name_on_disk()), ("tank", None));
        check(&pool, VOLUME, 2).await;
    });
}

/// Writes noise over every copy of a block.
fn destroy(disks: &Disks, block: &ondisk::BlockPointer) {
    for dva in block.as_plain().unwrap().copies() {
        let at = (4 << 20) + dva.offset.bytes();
        disks.get("/sim/disk0").unwrap().poke(at, &noise(3, 4096));
    }
}

#[test]
fn a_pool_whose_newest_state_is_damaged_is_read_as_it_was_before() {
    let rig = Rig::new(Layout::Stripe, 1, DISK);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let mut roots = Vec::new();
        for seed in 1..=5 {
            fill(&pool, VOLUME, seed).await;
            pool.sync().await.unwrap();
            let uberblock = pool.uberblock();
            roots.push((uberblock.txg, uberblock.root));
        }
        pool.export().await.unwrap();
        let last = pool.uberblock();
        drop(pool);
        let found = candidate("tank").await.unwrap();
        let read = |_| options(true);
        let (pool, back) = crate::open_back(&found, read, false).await.unwrap();
        assert_eq!(back, None, "its newest state can be read");
        pool.close().await.unwrap();
        destroy(&own.disks, &last.root);
        assert!(crate::open(&found, options(true)).await.is_err());
        let (pool, back) = crate::open_back(&found, read, false).await.unwrap();
        let back = back.unwrap();
        assert!(back.txg < last.txg && back.txg >= Txg(last.txg.0 - 2), "{back:?} {:?}", last.txg);
        assert!(pool.is_read_only() && read_all(&pool, VOLUME).await.is_ok());
        pool.close().await.unwrap();
        // Everything of the last three txgs, and what is only reached by looking further back.
        let near = crate::txgs_of(&found).await.unwrap();
        let first = roots[0].0;
        for (txg, _) in near.iter().filter(|(txg, _)| *txg > first) {
            let old = crate::open_at(&found, options(true), Some(*txg)).await;
            if let Ok(old) = old {
                let root = old.uberblock().root;
                old.close().await.unwrap();
                destroy(&own.disks, &root);
            }
        }
        let refused = crate::open_back(&found, read, false).await.unwrap_err();
        assert!(refused.to_string().contains("-X goes on"), "{refused}");
        let (pool, back) = crate::open_back(&found, read, true).await.unwrap();
        assert!(back.unwrap().txg <= first);
        pool.close().await.unwrap();
    });
}
