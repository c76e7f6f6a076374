//! The index against what asking every dataset answers, and what changes cost in a pool that holds much else.

use super::LunIndex;
use crate::{Appliance, Config, Home};
use api::san::{San, TargetChange};
use api::shares::{ItemKind, Place, Shares};
use api::{Call, Layout, NewDataset, NewKind, NewPool, Reply, Request, Service, ShareDeed, Snapshots};
use std::future::Future;

async fn ask(appliance: &Appliance, request: Request) -> api::Result<Reply> {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await
}

fn words(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn place(project: &str, share: &str) -> Place {
    Place::project("tank", project).share(share)
}

fn lun(place: Place) -> Request {
    let set = words(&[("volsize", "16M"), ("sparse", "true")]);
    Request::Shares(Shares::Create { place, kind: ItemKind::Lun, set })
}

fn project(name: &str) -> Request {
    let place = Place::project("tank", name);
    Request::Shares(Shares::Create { place, kind: ItemKind::Project, set: Vec::new() })
}

fn file_system(name: String) -> Request {
    Request::DatasetCreate(NewDataset {
        name,
        kind: NewKind::Filesystem,
        properties: Vec::new(),
        parents: false,
        dry_run: false,
        unmounted: false,
    })
}

fn set(name: &str, property: &str, value: &str) -> Request {
    Request::DatasetSet { name: name.into(), properties: words(&[(property, value)]) }
}

fn inherit(name: &str, property: &str) -> Request {
    Request::DatasetInherit { name: name.into(), property: property.into(), received: false }
}

fn rename(from: &str, to: &str) -> Request {
    Request::DatasetRename {
        from: from.into(),
        to: to.into(),
        parents: false,
        recursive: false,
        force: false,
    }
}

fn snapshot(name: &str) -> Request {
    let names = vec![name.to_string()];
    Request::Snapshots(Snapshots::Take { names, recursive: false, properties: Vec::new() })
}

fn destroy(name: &str) -> Request {
    let (name, recursive) = (name.to_string(), true);
    Request::DatasetDestroy { name, recursive, clones: false, defer: false, force: false, dry_run: false }
}

/// With a pool and a target.
fn run<W: Future<Output = ()> + Send + 'static>(
    name: &str,
    work: impl FnOnce(Appliance) -> W + Send + 'static,
) {
    let dir = std::env::temp_dir().join(format!("cenote-luns-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let disks = sim::Disks::new();
    disks.add("/sim/a", 512 << 20, sim::Model::NVME);
    let home = Home::find(Some(&dir)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        let config = Config { home, is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let appliance = Appliance::start(config).await.unwrap();
        let new = NewPool::of("tank", Layout::Stripe, &["/sim/a"]);
        ask(&appliance, Request::PoolCreate(new)).await.unwrap();
        let target = San::TargetCreate { iqn: None, set: TargetChange::default() };
        ask(&appliance, Request::San(target)).await.unwrap();
        work(appliance.clone()).await;
        appliance.stop().await.unwrap();
    });
    let _ = std::fs::remove_dir_all(&dir);
}

async fn pool(appliance: &Appliance) -> pool::Pool {
    appliance.0.pools.lock().await.opened().next().unwrap().clone()
}

#[test]
fn the_index_knows_what_asking_every_dataset_would_tell() {
    run("index", |appliance| async move {
        let pool = pool(&appliance).await;
        let clone = ShareDeed::Clone { project: Some("b".into()), share: "clone".into(), set: Vec::new() };
        let roll_back =
            Snapshots::Rollback { snapshot: "tank/a/l1@s".into(), newer: true, clones: false, force: false };
        let group = ("cenote:targetgroup", "x");
        let mut told = Vec::new();
        for (step, luns) in [
            (project("a"), 0),
            (project("a-b"), 0),
            (project("b"), 0),
            (lun(place("a", "l1")), 1),
            (lun(place("a", "l2")), 2),
            (lun(place("a-b", "l1")), 3),
            (lun(place("default", "l0")), 4),
            (file_system("tank/a/fs".into()), 4),
            (set("tank/a/l1", "volsize", "32M"), 4),
            (snapshot("tank/a/l1@s"), 4),
            (set("tank/a/l1", "volsize", "64M"), 4),
            (Request::Snapshots(roll_back), 4),
            (set("tank/a/l1", "refreservation", "auto"), 4),
            (set("tank/a/l1", "refreservation", "none"), 4),
            // Inherited by those below it, and by no neighbour.
            (set("tank/a", group.0, group.1), 4),
            (set("tank/a", "readonly", "on"), 4),
            (set("tank/a", "compression", "off"), 4),
            (inherit("tank/a", "readonly"), 4),
            (set("tank", "cenote:writecache", "true"), 4),
            (set("tank/a/l2", "cenote:status", "offline"), 4),
            (Request::Shares(Shares::Snapshot { place: place("a", "l1"), name: "s".into(), deed: clone }), 5),
            (rename("tank/a/l2", "tank/b/l2"), 5),
            (rename("tank/b", "tank/c"), 5),
            (inherit("tank/a", group.0), 5),
            // It takes its settings along, as another volume.
            (set("tank/c/l2", "volblocksize", "8K"), 5),
            (inherit("tank/c/l2", "cenote:lunguid"), 4),
            (Request::Snapshots(Snapshots::Promote { name: "tank/c/clone".into() }), 4),
            (destroy("tank/a-b"), 3),
            (destroy("tank/a"), 2),
            (destroy("tank/l0"), 1),
        ] {
            let said = format!("{step:?}");
            ask(&appliance, step).await.unwrap_or_else(|e| panic!("{said}: {e}"));
            while appliance.0.migrations.text("tank/c/l2").is_some_and(|text| text.contains('%')) {
                world::sleep(std::time::Duration::from_millis(10)).await;
            }
            let kept = appliance.luns().await.unwrap();
            assert_eq!(kept, LunIndex::default().luns(&pool).await.unwrap(), "after {said}");
            assert_eq!(kept.len(), luns, "after {said}");
            told.push(kept);
        }
        told.dedup();
        assert!(told.len() > 15, "nearly each step is told of: {}", told.len());
    });
}

/// Each change asked about all datasets of the pool, once for the network's view of its LUNs and once in each txg for what
/// may still be written to any that was ever made: with 10,000 of them a create took forty times as long as with 100.
#[test]
fn a_change_costs_the_same_however_many_datasets_there_are() {
    run("costs", |appliance| async move {
        let pool = pool(&appliance).await;
        ask(&appliance, project("p")).await.unwrap();
        let mut costs = Vec::new();
        let mut made = 0;
        for size in [50, 500] {
            while made < size {
                let request = match made % 10 {
                    0 => lun(place("p", &format!("d{made}"))),
                    _ => file_system(format!("tank/p/d{made}")),
                };
                ask(&appliance, request).await.unwrap();
                made += 1;
            }
            let mut cost = Vec::new();
            for (what, request) in [
                ("create", file_system("tank/p/new".into())),
                ("create LUN", lun(place("p", "lun"))),
                ("set", set("tank/p/d1", "compression", "off")),
                ("set of a LUN", set("tank/p/d10", "cenote:writecache", "true")),
                ("inherit", inherit("tank/p/d1", "compression")),
                ("snapshot", snapshot("tank/p/d1@s")),
                ("rename", rename("tank/p/new", "tank/p/renamed")),
                ("destroy snapshot", destroy("tank/p/d1@s")),
                ("destroy", destroy("tank/p/renamed")),
                ("destroy LUN", destroy("tank/p/lun")),
            ] {
                let before = pool.dsl().core().asked();
                ask(&appliance, request).await.unwrap();
                // As the iSCSI service does.
                appliance.san_view().await.unwrap();
                pool.sync().await.unwrap();
                cost.push((what, pool.dsl().core().asked() - before));
            }
            costs.push(cost);
        }
        for ((what, few), (_, many)) in costs[0].iter().zip(&costs[1]) {
            // A txg more or less may pass meanwhile, and each asks about the pool itself.
            assert!(*many <= few + 20, "{what}: {few} beside 50 datasets, {many} beside 500");
        }
    });
}
