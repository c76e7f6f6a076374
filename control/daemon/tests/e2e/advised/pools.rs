//! Pools that are nearly full, whose free space is in pieces, or whose vdevs are not alike; and blocks without checksums.
//!
//! ```text
//!   a disk beside a mirror     ── attach ───▶  two mirrors              reads of the busiest device
//!   nearly full, all in pieces ── add ──────▶  room in one piece        device writes for each MiB
//!   no checksums               ── set ──────▶  damage is found          bytes that a scrub repairs
//! ```

use super::{Place, SHARE, Size, found, volume};
use interop::harness::{Trial, trial};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("no_device_does_half_of_the_reads_when_the_advice_is_followed", &[], mixed),
        trial("writes_in_a_row_are_rows_again_when_a_full_pool_gets_what_is_advised", &[], full),
        trial("damage_is_found_when_the_advice_is_followed", &[], checksum_off),
    ]
}

/// What the busiest device does of all reads.
fn busiest(place: &mut Place) -> f64 {
    place.home.run("zpool wait -t resilver tank");
    place.start();
    let devices: Vec<String> = ["A0", "B0", "C0", "NEW-DEVICE0"]
        .into_iter()
        .map(|name| place.home.scratch.join(name))
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    let reads = |place: &Place| devices.iter().map(|path| place.moved(path)[0]).collect::<Vec<f64>>();
    let before = reads(place);
    place.load("rw=randread bs=64k size=128m io_size=96m");
    let own: Vec<f64> = reads(place).iter().zip(before).map(|(after, before)| after - before).collect();
    own.iter().copied().fold(0.0, f64::max) / own.iter().sum::<f64>()
}

fn mixed() {
    let mut place = Place::new(
        "mirror A B",
        // What is measured is how blocks are laid out, and not which device was slow for a while.
        &["zpool add -f tank C", "tunable set vdev_read_sit_out_secs=0", &volume("64K", "128M")],
    );
    place.load("rw=write bs=1m size=128m");
    let (before, after) = place.mended("mixed-vdevs", busiest);
    assert!(before > 0.4 && after < before * 0.8, "{before} and {after} of all reads by one device");
    place.end();
}

/// Device writes of 16K or more for each MiB that is written over in a row: what is smaller is metadata.
fn pieces(place: &mut Place) -> f64 {
    let count = |place: &Place| {
        place.home.run("zpool sync tank");
        let told = place.json("zpool iostat -v -j tank");
        let queue = &found(&told, "tank").unwrap()["stats"]["queues"]["async_write"];
        let sizes = ["individual", "aggregated"].map(|kind| queue[kind].as_array().unwrap());
        sizes.iter().flat_map(|sizes| &sizes[14..]).map(|count| count.as_f64().unwrap()).sum::<f64>()
    };
    let before = count(place);
    let bytes = place.load("rw=write bs=1m size=600m io_size=32m");
    (count(place) - before) / (bytes / f64::from(1 << 20))
}

fn full() {
    let mut place = Place::sized(
        // Of a smaller one more than a tenth is kept back, and it never gets as full.
        Size { device: 1800 << 20, memory: "512M" },
        "A",
        &[&volume("16K", "600M"), "zfs create -s -V 1016M -b 1M -o compression=off tank/large"],
    );
    // All but what is kept back; large blocks are the cheapest to fill it with.
    place.load_on("tank/large", "rw=write bs=1m size=1016m");
    place.load("rw=write bs=1m size=600m");
    // A metaslab that second copies of metadata are written to would be left as it is: the first one to be chosen is it
    // that has most room.
    place.start();
    // Small blocks leave small holes, which may be written to some txgs later.
    for _ in 0..2 {
        place.load("rw=randwrite bs=16k iodepth=64 size=600m io_size=100m");
        (0..4).for_each(|_| drop(place.home.run("zpool sync tank")));
    }
    assert!(place.told("pool-fragmented").is_some(), "{:#?}", place.advice());
    let (before, after) = place.mended("pool-full", pieces);
    assert!(before > after * 2.0, "{before} and {after} device writes for each MiB");
    assert_eq!(place.told("pool-fragmented"), None, "what was added is in one piece");
    place.end();
}

/// Writes over a page here and there in what a device holds.
fn damage(disk: &Path) {
    let file = std::fs::File::options().read(true).write(true).open(disk).unwrap();
    let mut bytes = vec![0; 4096];
    let is_taken = |at: &u64| {
        file.read_exact_at(&mut bytes, *at).unwrap();
        bytes.iter().any(|byte| *byte != 0)
    };
    // Past the labels, and before those at the end.
    let all: Vec<u64> = (8..1016).map(|at| at << 20).filter(is_taken).collect();
    assert!(all.len() >= 32, "{} MiB hold something", all.len());
    all.iter().for_each(|at| file.write_all_at(&[0xA5; 4096], *at).unwrap());
}

fn checksum_off() {
    let create = format!("zfs create -s -V 64M -b 64K -o compression=off -o checksum=off {SHARE}");
    let mut place = Place::new("mirror A B", &[&create]);
    let disk = place.home.scratch.join("A0");
    let (before, after) = place.mended("checksum-off", |place| {
        place.load("rw=write bs=1m size=64m");
        place.home.run("zpool sync tank");
        damage(&disk);
        place.start();
        place.home.run("zpool scrub -w tank");
        let told = place.json("zpool status -j --json-int tank");
        told["pools"]["tank"]["scan_stats"]["processed"].as_f64().unwrap()
    });
    assert!(after >= 1e6 && before < after / 4.0, "{before} and {after} bytes repaired");
    place.end();
}
