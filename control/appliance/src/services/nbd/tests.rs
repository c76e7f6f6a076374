//! Volumes that clients use while they are destroyed, and copied into other blocks.

use crate::Appliance;
use crate::pools::Access;
use crate::schedules::tests::{Lab, START, ask, make, project, try_ask};
use api::shares::{ItemKind, Shares};
use api::{ErrorKind, Request};
use dsl::props::{Prop, PropName};
use sim::Disks;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LUN: &str = "tank/p/lun";

async fn make_lun(appliance: &Appliance) {
    let set = [("volsize", "16M"), ("volblocksize", "16K")].map(|(n, v)| (n.to_string(), v.to_string()));
    let create = Shares::Create { place: project().share("lun"), kind: ItemKind::Lun, set: set.into() };
    ask(appliance, Request::Shares(create)).await;
}

fn destroy() -> Request {
    Request::DatasetDestroy {
        name: LUN.into(),
        recursive: false,
        clones: false,
        defer: false,
        dry_run: false,
        force: false,
    }
}

/// To destroy a volume right after its client had hung up was refused, since the end of the connection was not read yet.
#[test]
fn a_volume_whose_client_has_just_left_is_destroyed_and_one_in_use_is_not() {
    Lab::new("farewell").run(START, |appliance| async move {
        make(&appliance).await;
        make_lun(&appliance).await;
        let (_volume, held) = appliance.use_volume(LUN).await.unwrap();
        let refused = try_ask(&appliance, destroy()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Busy, "{}", refused.message);
        assert!(appliance.0.volumes.get(LUN).is_some());
        let leaves = world::spawn(async move {
            world::sleep(Duration::from_millis(300)).await;
            drop(held);
        });
        ask(&appliance, destroy()).await;
        leaves.await;
    });
}

async fn block_size(pool: &pool::Pool) -> u64 {
    let _reading = pool.reading().await;
    let stats = pool.dsl().stats(LUN).await.unwrap();
    let shown = stats.get(&PropName::Native(Prop::VolBlockSize)).await.unwrap();
    shown.and_then(|(value, _)| value.number()).unwrap()
}

/// What a power cut leaves of it.
fn recovered(disks: &Disks) -> u64 {
    disks.power_cut(3);
    sim::run_with(disks, 11, sim::Config::default(), async {
        let found = pool::scan_dirs(&["/sim"]).await.unwrap();
        let options = pool::OpenOptions {
            read_only: false,
            name: None,
            host: Default::default(),
            force: true,
            missing_log: false,
            copy_over: false,
            cache: Arc::new(arc::Cache::new(32 << 20)),
            hub: Default::default(),
            tunables: Default::default(),
        };
        block_size(&pool::open(&found[0], options).await.unwrap()).await
    })
}

/// The block size of a LUN that had been copied was shown as soon as its txg was syncing; a kill then brought back the old.
#[test]
fn a_block_size_that_was_shown_once_is_there_after_a_power_cut() {
    let lab = Lab::new("unseen");
    let (seen, disks) = (Arc::new(Mutex::new(None)), lab.disks.clone());
    let tell = seen.clone();
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        make_lun(&appliance).await;
        let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
        let properties = vec![("volblocksize".to_string(), "8K".to_string())];
        ask(&appliance, Request::DatasetSet { name: LUN.into(), properties }).await;
        while block_size(&pool).await != 8 << 10 {
            world::sleep(Duration::from_micros(20)).await;
        }
        *tell.lock().unwrap() = Some(disks.fork());
    });
    let disks = seen.lock().unwrap().take().unwrap();
    assert_eq!(recovered(&disks), 8 << 10);
}
