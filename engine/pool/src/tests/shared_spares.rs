//! Spares that several pools have.

use super::Rig;
use super::devices::{device, look_at, settled, shape};
use crate::Offline;
use sim::Model;
use std::time::Duration;
use vdev::Layout;

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
