//! Pools that another host, or another process, may have.

use super::{Rig, VOLUME, cache, fill, host, make_volume, verify};
use crate::{Host, OpenOptions, Pool};
use sim::Fault;
use std::time::Duration;
use units::{Kind, Result};
use vdev::Layout;

const SIZE: u64 = 1 << 20;

/// As `-f` opens it, by a host with this number.
async fn open_by_force(rig: &Rig, id: u64) -> Result<Pool> {
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: Host::new(id, "other"),
        force: true,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    };
    crate::open(&rig.candidate().await, options).await
}

async fn shared(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE).await;
    pool.set_property("multihost", "on").await.unwrap();
    fill(&pool, VOLUME, 1).await;
    pool
}

/// A pool with `multihost=on` was opened with `-f` while another host wrote to it: nothing looked for signs of life, and
/// nothing gave any, so that OpenZFS on the other host would have taken it as well. An idle owner counts, too.
#[test]
fn a_pool_with_multihost_is_refused_by_force_while_another_host_has_it() {
    for rig in [Rig::new(Layout::Stripe, 1, 96 << 20), Rig::new(Layout::Mirror, 2, 96 << 20)] {
        let own = rig.clone();
        rig.run(1, async move {
            let pool = shared(&own).await;
            pool.sync().await.unwrap();
            for idle in [0, 100] {
                world::sleep(Duration::from_secs(idle)).await;
                let error = open_by_force(&own, 8).await.unwrap_err();
                assert_eq!(error.kind(), Kind::Busy, "{error}");
                assert!(error.to_string().contains("in use on 'sim' (multihost=on)"), "{error}");
            }
            pool.export().await.unwrap();
            let began = world::now();
            let pool = open_by_force(&own, 8).await.unwrap();
            assert!(world::now().since(began) < Duration::from_secs(1), "an exported pool is not watched");
            // Still on: the new owner gives signs as well.
            let error = open_by_force(&own, 7).await.unwrap_err();
            assert!(error.to_string().contains("in use on 'other'"), "{error}");
            pool.set_property("multihost", "off").await.unwrap();
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_pool_with_multihost_whose_owner_died_is_opened_after_its_patience() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move { drop(shared(&own).await) });
    let own = rig.clone();
    rig.run(2, async move {
        let began = world::now();
        let pool = own.open(false).await.unwrap();
        assert!(world::now().since(began) < Duration::from_secs(1), "the same host does not wait for itself");
        drop(pool);
    });
    let own = rig.clone();
    rig.run(3, async move {
        let began = world::now();
        let pool = open_by_force(&own, 8).await.unwrap();
        let waited = world::now().since(began);
        assert!(waited >= Duration::from_secs(20), "ten intervals of a second, twice: {waited:?}");
        pool.export().await.unwrap();
    });
}

#[test]
fn an_owner_that_cannot_give_signs_gives_the_pool_up() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = shared(&own).await;
        pool.sync().await.unwrap();
        let fault = Fault { write_errors_ppm: 1_000_000, ..Fault::default() };
        own.disks.get(own.path(0)).unwrap().set_fault(fault);
        world::sleep(Duration::from_secs(5)).await;
        assert_eq!(pool.txgs().failure(), None, "not yet: others wait for longer");
        world::sleep(Duration::from_secs(10)).await;
        assert!(pool.txgs().failure().is_some_and(|why| why.contains("tell other hosts")));
    });
}

/// A suspended pool gave no signs, so that another host could take it, and went on after `clear` beside that host.
#[test]
fn a_suspended_pool_gives_signs_for_as_long_as_it_can_and_goes_on() {
    let rig = Rig::new(Layout::Stripe, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = shared(&own).await;
        pool.sync().await.unwrap();
        let disk = own.disks.get(own.path(0)).unwrap();
        disk.set_fault(Fault { write_errors_ppm: 1_000_000, ..Fault::default() });
        let writing = pool.clone();
        let written = world::spawn(async move {
            fill(&writing, VOLUME, 2).await;
            writing.sync().await
        });
        world::sleep(Duration::from_secs(100)).await;
        assert!(pool.suspended().is_some_and(|why| !why.contains("tell other hosts")));
        let error = open_by_force(&own, 8).await.unwrap_err();
        assert!(error.to_string().contains("in use on 'sim' (multihost=on)"), "{error}");
        disk.set_fault(Fault::default());
        pool.clear(None).await.unwrap();
        written.await.unwrap();
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn a_host_without_a_number_cannot_protect_a_pool() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        own.create().await.export().await.unwrap();
        let pool = open_by_force(&own, 0).await.unwrap();
        let error = pool.set_property("multihost", "on").await.unwrap_err();
        assert!(error.to_string().contains("/etc/hostid"), "{error}");
        pool.export().await.unwrap();
        let pool = own.open(false).await.unwrap();
        pool.set_property("multihost", "on").await.unwrap();
        pool.export().await.unwrap();
        let error = open_by_force(&own, 0).await.unwrap_err();
        assert!(error.to_string().contains("/etc/hostid"), "{error}");
    });
}

/// A pool without `multihost` that another process has is seen by what it writes.
#[test]
fn a_writer_is_seen_by_its_uberblocks() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        assert_eq!(host().id, 7);
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let patience = Duration::from_secs(6);
        let candidate = own.candidate().await;
        assert!(!crate::is_active(&candidate, patience).await.unwrap(), "it is idle");
        let writer = pool.clone();
        let task = world::spawn(async move {
            world::sleep(Duration::from_secs(2)).await;
            fill(&writer, VOLUME, 2).await;
        });
        assert!(crate::is_active(&candidate, patience * 2).await.unwrap(), "a txg comes of what was written");
        task.await;
        pool.export().await.unwrap();
    });
}
