//! Files below vdevs that the host lets down: no space for them, or cut short.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use sim::Fault;
use units::Kind;
use vdev::{Layout, State};
use world::Buf;

const SIZE: usize = 2 << 20;

async fn prepare(rig: &Rig) {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, 1).await;
    pool.export().await.unwrap();
}

/// Sparse files promise more than the host has. Then writing fails, and what was flushed before is there afterwards.
#[test]
fn a_full_host_stops_a_pool_and_loses_nothing_that_was_flushed() {
    for rig in Rig::all() {
        let own = rig.clone();
        rig.run(1, async move { prepare(&own).await });
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            pool.set_property("failmode", "continue").await.unwrap();
            pool.sync().await.unwrap();
            for i in 0..own.count {
                let full = Fault { full: true, ..Fault::default() };
                own.disks.get(own.path(i)).unwrap().set_fault(full);
            }
            let volume = pool.open_volume(VOLUME).await.unwrap();
            let data = Buf::copy_from(&noise(2, SIZE));
            let written = volume.write(0, data).await;
            let error = match written {
                Ok(()) => volume.flush().await.unwrap_err(),
                Err(e) => e,
            };
            assert_eq!(error.kind(), Kind::Io, "{error}");
            assert!(
                pool.suspended().is_some_and(|why| why.contains("/sim/disk")),
                "the file is named: {error}"
            );
            assert!(volume.read(0, BLOCK).await.is_ok(), "what is there can be read");
            assert!(pool.tree().leaves().iter().all(|l| l.errors().write == 0), "the device is not to blame");
            drop(volume);
            // Its last txg is the one that is on disk.
            _ = pool.close().await;
        });
        (0..rig.count).for_each(|i| rig.disks.get(rig.path(i)).unwrap().set_fault(Fault::default()));
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.open(false).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            fill(&pool, VOLUME, 3).await;
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_vdev_that_shrank_is_not_used_and_said_to_have_shrunk() {
    for rig in [Rig::new(Layout::Stripe, 1, 96 << 20), Rig::new(Layout::Mirror, 2, 96 << 20)] {
        let own = rig.clone();
        rig.run(1, async move { prepare(&own).await });
        rig.disks.get(rig.path(0)).unwrap().resize(72 << 20);
        let own = rig.clone();
        rig.run(2, async move {
            let opened = own.open(false).await;
            if own.redundancy() == 0 {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("/sim/disk0") && error.contains("shrank"), "{error}");
                return;
            }
            let pool = opened.unwrap();
            let status = pool.report().vdevs.children[0].clone();
            assert_eq!(
                (status.health.state, status.children[0].health.state),
                (State::Degraded, State::CannotOpen)
            );
            assert!(status.children[0].detail.as_ref().is_some_and(|d| d.contains("shrank")), "{status:?}");
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            pool.export().await.unwrap();
        });
    }
}
