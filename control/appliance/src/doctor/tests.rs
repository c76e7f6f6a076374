//! Requests of clients and operations of devices that give reason for advice, until what was wrong is changed.

use crate::Appliance;
use crate::schedules::tests::{Lab, START, ask, make, project};
use api::shares::{ItemKind, Shares};
use api::{Class, Doctor, Layout, NewPool, NewVdevs, Reply, Request, VdevGroup};
use disk::{Held, SharedVolume};
use scsi::Reading;
use std::time::Duration;
use world::Buf;

const LUN: &str = "tank/p/lun";
const KIB: u64 = 1 << 10;

async fn make_lun(appliance: &Appliance, block: &str) -> (SharedVolume, Held) {
    let set = [("volsize", "64M"), ("volblocksize", block)].map(|(n, v)| (n.to_string(), v.to_string()));
    let create = Shares::Create { place: project().share("lun"), kind: ItemKind::Lun, set: set.into() };
    ask(appliance, Request::Shares(create)).await;
    appliance.use_volume(LUN).await.unwrap()
}

/// The rules that say something of `about`. The pool of these tests is one device: that it has no redundancy is left out.
async fn told(appliance: &Appliance, about: &str) -> Vec<String> {
    let Reply::Advice(all) = ask(appliance, Request::Doctor(Doctor::Advice)).await else {
        panic!("no advice")
    };
    assert!(all.iter().all(|a| !a.undo.is_empty() && !a.fixes.is_empty()), "{all:?}");
    let all = all.into_iter().filter(|a| a.rule != "no-redundancy" && a.about.starts_with(about));
    all.map(|advice| advice.rule).collect()
}

/// So many writes, each at a place that follows from its number.
async fn write(volume: &SharedVolume, count: u64, len: u64, durably: bool, place: impl Fn(u64) -> u64) {
    let size = volume.size();
    for i in 0..count {
        let parts = vec![Buf::copy_from(&vec![i as u8 | 1; len as usize])];
        volume.write_parts(place(i) % (size - len) / 512 * 512, parts, durably).await.unwrap();
    }
}

/// In no order, at blocks of this size.
fn scattered(block: u64) -> impl Fn(u64) -> u64 {
    move |i| (i * 7919 % 500) * block
}

async fn set(appliance: &Appliance, property: &str, value: &str) {
    let properties = vec![(property.to_string(), value.to_string())];
    ask(appliance, Request::DatasetSet { name: LUN.into(), properties }).await;
}

#[test]
fn nothing_is_said_of_a_lun_whose_clients_write_whole_blocks() {
    Lab::new("doctor-well").run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        write(&volume, 1500, 16 * KIB, false, scattered(16 * KIB)).await;
        assert_eq!(told(&appliance, "").await, [""; 0]);
    });
}

#[test]
fn writes_of_parts_of_blocks_are_seen_until_the_blocks_are_as_small() {
    Lab::new("doctor-parts").run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "64K").await;
        write(&volume, 1200, 8 * KIB, false, |i| i * 8 * KIB).await;
        assert_eq!(told(&appliance, LUN).await, [""; 0], "in a row they fill their blocks");
        write(&volume, 4000, 8 * KIB, false, scattered(40 * KIB)).await;
        assert_eq!(told(&appliance, LUN).await, ["partial-writes"]);
        set(&appliance, "volblocksize", "8K").await;
        while volume.block_size() != 8 * KIB {
            world::sleep(Duration::from_millis(10)).await;
        }
        write(&volume, 1200, 8 * KIB, false, scattered(40 * KIB)).await;
        assert_eq!(told(&appliance, LUN).await, [""; 0]);
    });
}

#[test]
fn requests_that_stop_at_half_a_block_are_seen_until_they_are_whole() {
    Lab::new("doctor-cut").run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, held) = make_lun(&appliance, "1M").await;
        write(&volume, 1100, 512 * KIB, false, |i| i * 512 * KIB).await;
        assert_eq!(told(&appliance, LUN).await, ["requests-cut"]);
        // The client leaves, is set otherwise, and comes again.
        drop((volume, held));
        assert_eq!(told(&appliance, LUN).await, ["requests-cut"], "without a client it is remembered");
        let (volume, _held) = appliance.use_volume(LUN).await.unwrap();
        write(&volume, 10, 1024 * KIB, false, |i| i << 20).await;
        assert_eq!(told(&appliance, LUN).await, [""; 0]);
    });
}

#[test]
fn a_partition_in_the_midst_of_a_block_is_seen_until_its_data_is_moved() {
    Lab::new("doctor-astray").run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        let scattered = scattered(16 * KIB);
        write(&volume, 1200, 16 * KIB, false, |i| scattered(i) + 63 * 512).await;
        assert_eq!(told(&appliance, LUN).await, ["lun-alignment"]);
        write(&volume, 1200, 16 * KIB, false, scattered).await;
        assert_eq!(told(&appliance, LUN).await, [""; 0]);
    });
}

#[test]
fn small_reads_that_miss_the_cache_are_seen_until_they_hit_it() {
    let lab = Lab::new("doctor-reads");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "64K").await;
        write(&volume, 1000, 64 * KIB, false, |i| i * 64 * KIB).await;
        volume.flush().await.unwrap();
    });
    // Started again, nothing of it is in memory.
    lab.run(START + 3600, |appliance| async move {
        let (volume, _held) = appliance.use_volume(LUN).await.unwrap();
        for i in 0..1000 {
            volume.read(i * 64 * KIB, 4096).await.unwrap();
        }
        assert_eq!(told(&appliance, LUN).await, ["whole-record-reads"]);
        for i in 0..8000 {
            if let Reading::Waits(reading) = volume.begin_read(i % 900 * 64 * KIB, 4096, &mut Vec::new()) {
                reading.await.unwrap();
            }
        }
        assert_eq!(told(&appliance, LUN).await, [""; 0]);
    });
}

#[test]
fn synchronous_writes_are_seen_until_there_is_a_log_device() {
    let lab = Lab::new("doctor-log");
    lab.disks.add("/sim/log", 128 << 20, sim::Model::NVME);
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        let began = world::now();
        while world::now().since(began) < Duration::from_secs(11) {
            write(&volume, 50, 16 * KIB, true, scattered(16 * KIB)).await;
        }
        assert_eq!(told(&appliance, LUN).await, ["no-log-device"]);
        add(&appliance, Class::Log, "/sim/log").await;
        assert_eq!(told(&appliance, LUN).await, [""; 0]);
    });
}

async fn add(appliance: &Appliance, class: Class, device: &str) {
    let group = VdevGroup { class, layout: Layout::Stripe, devices: vec![device.into()] };
    let add = NewVdevs {
        pool: "tank".into(),
        vdevs: vec![group],
        dry_run: false,
        allow_in_use: false,
        allow_replication_mismatch: true,
        allow_ashift_mismatch: true,
        ashift: None,
    };
    ask(appliance, Request::PoolAdd(add)).await;
}

async fn say(appliance: &Appliance, vdev: &str, property: &str, value: &str) {
    let (vdev, property, value) = (Some(vdev.into()), property.into(), value.into());
    ask(appliance, Request::PoolSet { name: "tank".into(), vdev, property, value }).await;
}

/// A device that takes a while to be sure, and little to write.
fn slow_to_flush() -> sim::Model {
    sim::Model { flush_dirty: Duration::from_millis(6), ..sim::Model::NVME }
}

#[test]
fn a_protected_cache_that_is_emptied_all_the_same_is_seen_until_it_is_flushed_no_more() {
    let lab = Lab::new("doctor-flush");
    lab.disks.add("/sim/a", 256 << 20, slow_to_flush());
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        write(&volume, 1100, 16 * KIB, true, scattered(16 * KIB)).await;
        assert_eq!(told(&appliance, "tank").await, [""; 0], "that its cache is protected was not said");
        say(&appliance, "/sim/a", "cenote:cache", "protected").await;
        assert_eq!(told(&appliance, "tank").await, ["flush-cost"]);
        say(&appliance, "/sim/a", "cenote:nocacheflush", "on").await;
        assert_eq!(told(&appliance, "tank").await, [""; 0]);
    });
}

#[test]
fn a_log_device_that_is_slower_than_the_disks_is_seen_until_it_is_removed() {
    let lab = Lab::new("doctor-slow-log");
    lab.disks.add("/sim/log", 128 << 20, slow_to_flush());
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        add(&appliance, Class::Log, "/sim/log").await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        write(&volume, 300, 16 * KIB, true, scattered(16 * KIB)).await;
        // The pool's own disks are flushed at the end of each txg.
        for _ in 0..110 {
            write(&volume, 1, 16 * KIB, false, scattered(16 * KIB)).await;
            ask(&appliance, Request::PoolSync { names: Vec::new() }).await;
        }
        assert_eq!(told(&appliance, "tank").await, ["slow-log"]);
        let Reply::Pools(pools) = ask(&appliance, Request::Pools { names: Vec::new() }).await else {
            panic!()
        };
        let all = pools[0].vdevs.as_ref().unwrap().walk();
        let guid = all.iter().find(|v| v.path.as_deref() == Some("/sim/log")).unwrap().guid;
        let remove = Request::PoolRemove { name: "tank".into(), guid, device: "/sim/log".into() };
        ask(&appliance, remove).await;
        assert_eq!(told(&appliance, "tank").await, [""; 0]);
    });
}

async fn add_project(appliance: &Appliance) {
    let project = Shares::Create { place: project(), kind: ItemKind::Project, set: Vec::new() };
    ask(appliance, Request::Shares(project)).await;
}

#[test]
fn a_disk_slower_than_its_neighbours_is_seen_until_it_is_replaced() {
    let lab = Lab::new("doctor-slow-disk");
    let slow =
        sim::Model { read: Duration::from_millis(9), write: Duration::from_millis(9), ..sim::Model::NVME };
    for (disk, model) in [("b", sim::Model::NVME), ("c", slow), ("d", sim::Model::NVME)] {
        lab.disks.add(format!("/sim/{disk}"), 256 << 20, model);
    }
    lab.run(START, |appliance| async move {
        let new = NewPool::of("tank", Layout::Mirror, &["/sim/a", "/sim/b", "/sim/c"]);
        ask(&appliance, Request::PoolCreate(new)).await;
        add_project(&appliance).await;
        let (volume, _held) = make_lun(&appliance, "16K").await;
        for i in 0..4 {
            write(&volume, 1000, 16 * KIB, false, |n| scattered(128 * KIB)(n + i)).await;
            volume.flush().await.unwrap();
        }
        assert_eq!(told(&appliance, "tank").await, ["slow-disk"]);
        let action = api::DeviceAction::Detach;
        let detach = Request::PoolDevice { name: "tank".into(), device: "/sim/c".into(), action };
        ask(&appliance, detach).await;
        assert_eq!(told(&appliance, "tank").await, [""; 0]);
    });
}

/// Writes of a device since the pool was opened, and how many of them are of parts of its sectors of 4096.
async fn writes_of_parts(appliance: &Appliance) -> (u64, u64) {
    let Reply::Pools(pools) = ask(appliance, Request::Pools { names: Vec::new() }).await else { panic!() };
    let all = pools[0].vdevs.as_ref().unwrap().walk();
    let stats = &all.iter().find(|vdev| vdev.is_leaf()).unwrap().stats;
    let queues = [&stats.sync_write, &stats.async_write];
    let sizes: Vec<&[u64]> = queues.iter().flat_map(|q| [&q.individual[..], &q.aggregated[..]]).collect();
    let sum = |until: usize| sizes.iter().flat_map(|sizes| sizes.iter().take(until)).sum();
    (sum(usize::MAX), sum(12))
}

/// That the device has such sectors is what its simulation says of it; the writes are the engine's.
#[test]
fn parts_of_sectors_are_written_until_the_pool_is_made_anew_as_it_is_advised() {
    let lab = Lab::new("doctor-sectors");
    lab.disks.add("/sim/4k", 256 << 20, sim::Model::SSD);
    lab.run(START, |appliance| async move {
        let mut ashift = "9".to_string();
        for is_mended in [false, true] {
            let new = NewPool {
                properties: vec![("ashift".into(), ashift.clone())],
                ..NewPool::of("tank", Layout::Stripe, &["/sim/4k"])
            };
            ask(&appliance, Request::PoolCreate(new)).await;
            add_project(&appliance).await;
            let (volume, held) = make_lun(&appliance, "16K").await;
            for _ in 0..20 {
                write(&volume, 20, 16 * KIB, false, scattered(16 * KIB)).await;
                ask(&appliance, Request::PoolSync { names: Vec::new() }).await;
            }
            let (all, parts) = writes_of_parts(&appliance).await;
            if is_mended {
                assert_eq!((all > 0, parts), (true, 0), "of {all} writes");
                assert_eq!(told(&appliance, "tank").await, [""; 0]);
                return;
            }
            assert!(parts > all / 4, "{parts} of {all} writes");
            let Reply::Advice(advice) = ask(&appliance, Request::Doctor(Doctor::Advice)).await else {
                panic!("no advice")
            };
            let advice = advice.iter().find(|advice| advice.rule == "sector-size").expect("it is told of");
            let fix = advice.fixes[0].text.split("-o ashift=").nth(1).unwrap();
            ashift = fix.split(' ').next().unwrap().into();
            drop((volume, held));
            ask(&appliance, Request::PoolDestroy { name: "tank".into(), force: true }).await;
        }
    });
}

#[test]
fn a_setting_is_judged_by_itself_with_the_pool_it_is_in() {
    Lab::new("doctor-setting").run(START, |appliance| async move {
        make(&appliance).await;
        let (_volume, _held) = make_lun(&appliance, "16K").await;
        for (property, bad, good, rule) in [
            ("sync", "disabled", "standard", "sync-disabled"),
            ("sync", "always", "standard", "no-log-device"),
            ("compression", "off", "on", "compression-off"),
            ("checksum", "off", "on", "checksum-off"),
        ] {
            for (value, rules) in [(bad, &[rule][..]), (good, &[])] {
                set(&appliance, property, value).await;
                let asked = Request::Doctor(Doctor::Dataset { name: LUN.into() });
                let Reply::Advice(all) = ask(&appliance, asked).await else { panic!("no advice") };
                let told: Vec<&str> = all.iter().map(|advice| advice.rule.as_str()).collect();
                assert_eq!(told, rules, "{property}={value}");
                assert!(all.iter().all(|advice| advice.properties.iter().any(|p| p == property)));
            }
        }
    });
}
