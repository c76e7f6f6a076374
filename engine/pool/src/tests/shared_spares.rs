//! Spares that several pools have, and the next spare of one that fails.

use super::devices::{back, check, device, gone, look_at, prepare, reopened, rig, settled, shape};
use super::{Rig, VOLUME, fill};
use crate::{Offline, Pool};
use sim::Model;
use std::path::Path;
use std::time::Duration;
use vdev::{Aux, AuxKind, Health, Layout, State, VdevStatus};

const DISK: u64 = 96 << 20;

/// It was given up for ever, and the pool was said to have lost data.
#[test]
fn a_spare_that_another_pool_has_is_taken_when_that_gives_it_back() {
    let rig = Rig::new(Layout::Mirror, 4, DISK);
    rig.disks.add("/sim/spare", DISK, Model::NVME);
    let own = rig.clone();
    rig.run(16, async move {
        let first = own.create_on("tank", 0..2, super::cache(), |_| true).await;
        let second = own.create_on("lake", 2..4, super::cache(), |_| true).await;
        first.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        second.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        first.offline(device(&first, "disk1"), Offline::FaultedTemporary).await.unwrap();
        settled(&first, "mirror(disk0 spare(disk1 spare))").await;
        second.offline(device(&second, "disk3"), Offline::FaultedTemporary).await.unwrap();
        for _ in 0..20 {
            second.change("pass", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
            world::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!((shape(&second), second.problems()), ("mirror(disk2 disk3)".into(), Vec::new()));
        first.clear(Some(device(&first, "disk1"))).await.unwrap();
        first.online(device(&first, "disk1")).await.unwrap();
        settled(&first, "mirror(disk0 disk1)").await;
        // Nothing is written to it meanwhile.
        settled(&second, "mirror(disk2 spare(disk3 spare))").await;
        first.export().await.unwrap();
        second.export().await.unwrap();
    });
}

async fn open(name: &str) -> Pool {
    let found = crate::scan_dirs(&[Path::new("/sim")]).await.unwrap();
    let candidate = found.iter().find(|found| found.config.name == name).unwrap();
    crate::open(candidate, super::plainly()).await.unwrap()
}

fn spare(pool: &Pool) -> VdevStatus {
    pool.tree().status().spares.remove(0)
}

/// It was said to have corrupted data, and was never used again.
#[test]
fn a_spare_that_another_pool_has_when_this_one_is_opened_is_in_use_and_free_when_it_is_given_back() {
    let rig = Rig::new(Layout::Mirror, 4, DISK);
    rig.disks.add("/sim/spare", DISK, Model::NVME);
    let own = rig.clone();
    rig.run(17, async move {
        let first = own.create_on("tank", 0..2, super::cache(), |_| true).await;
        let second = own.create_on("lake", 2..4, super::cache(), |_| true).await;
        first.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        second.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        first.offline(device(&first, "disk1"), Offline::FaultedTemporary).await.unwrap();
        settled(&first, "mirror(disk0 spare(disk1 spare))").await;
        second.export().await.unwrap();
        drop(second);
        let second = open("lake").await;
        let taken = Health::new(State::CannotOpen, Aux::Spared);
        assert_eq!(spare(&second).health, taken);
        assert_eq!(spare(&second).detail.as_deref(), Some("in use by pool 'tank'"));
        world::sleep(Duration::from_secs(30)).await;
        assert_eq!((spare(&second).health, second.problems()), (taken, Vec::new()));
        // It is free again, and nothing is written to the pool meanwhile.
        first.clear(Some(device(&first, "disk1"))).await.unwrap();
        first.online(device(&first, "disk1")).await.unwrap();
        settled(&first, "mirror(disk0 disk1)").await;
        world::sleep(Duration::from_secs(15)).await;
        assert_eq!(spare(&second).health, Health::ONLINE);
        second.offline(device(&second, "disk3"), Offline::FaultedTemporary).await.unwrap();
        settled(&second, "mirror(disk2 spare(disk3 spare))").await;
        first.export().await.unwrap();
        second.export().await.unwrap();
    });
}

/// The mirror had one side for ever, with another spare at hand.
#[test]
fn a_spare_that_fails_while_it_stands_in_is_replaced_by_the_next_one() {
    let rig = rig(Layout::Mirror, 2, &["spare", "next"]);
    let own = rig.clone();
    rig.run(14, async move {
        let pool = prepare(&own).await;
        let spares = ["spare", "next"].map(look_at);
        pool.add_side_devices(vdev::AuxKind::Spare, &spares).await.unwrap();
        pool.offline(device(&pool, "disk1"), Offline::FaultedTemporary).await.unwrap();
        settled(&pool, "mirror(disk0 spare(disk1 spare))").await;
        gone(&own, "spare");
        fill(&pool, VOLUME, 2).await;
        settled(&pool, "mirror(disk0 spare(disk1 next))").await;
        check(&pool, 2).await;
        back(&own, "spare");
        let pool = reopened(pool).await;
        // Nothing joins beside what works.
        fill(&pool, VOLUME, 3).await;
        settled(&pool, "mirror(disk0 spare(disk1 next))").await;
        pool.clear(Some(device(&pool, "disk1"))).await.unwrap();
        pool.online(device(&pool, "disk1")).await.unwrap();
        settled(&pool, "mirror(disk0 disk1)").await;
        assert!(pool.tree().status().spares.iter().all(|spare| spare.health == vdev::Health::ONLINE));
        check(&pool, 3).await;
        pool.export().await.unwrap();
    });
}
