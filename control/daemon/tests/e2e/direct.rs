//! Files of a mount that are read and written past the cache: what the cache holds then, and what is counted.

use crate::files::FUSE;
use crate::home::Home;
use crate::sums::{next_second, open, samples};
use interop::harness::{Need, ROOT, Trial, trial};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 32 * MIB;
const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https --arc-max 256M";
/// What else the cache takes in meanwhile: indirect blocks, dnodes, blocks of the pool itself.
const ELSE: u64 = 8 * MIB;

pub fn trials() -> Vec<Trial> {
    let needs = [FUSE, ROOT, Need::Program("curl")];
    vec![trial("direct_files_stay_out_of_the_cache_and_are_counted", &needs, direct)]
}

/// Memory that begins where a page does.
struct Aligned(Vec<u8>, usize);

impl Aligned {
    fn new(len: u64) -> Aligned {
        let room = vec![0; len as usize + 4096];
        let from = room.as_ptr().align_offset(4096);
        Aligned(room, from)
    }

    fn bytes(&mut self, len: u64) -> &mut [u8] {
        &mut self.0[self.1..][..len as usize]
    }
}

fn file(at: &Path, flags: OFlags) -> File {
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false).custom_flags(flags.bits() as i32);
    how.open(at).unwrap()
}

fn fill(i: u64) -> u8 {
    (i % 251) as u8 + 1
}

/// A mebibyte at a time, with bytes that tell where they are; zeros and the like would leave nothing to be cached.
fn content(i: u64, piece: &mut [u8]) {
    let mut noise = sim::Rng::new(i);
    piece.chunks_mut(8).for_each(|bytes| bytes.copy_from_slice(&noise.next_u64().to_le_bytes()));
    piece[0] = fill(i);
}

fn write(file: &File, size: u64) {
    let mut room = Aligned::new(MIB);
    for i in 0..size / MIB {
        content(i, room.bytes(MIB));
        file.write_all_at(room.bytes(MIB), i * MIB).unwrap();
    }
}

fn read(file: &File, size: u64) {
    let (mut room, mut expected) = (Aligned::new(MIB), vec![0; MIB as usize]);
    for i in 0..size / MIB {
        file.read_exact_at(room.bytes(MIB), i * MIB).unwrap();
        content(i, &mut expected);
        assert!(room.bytes(MIB) == expected, "mebibyte {i}");
    }
}

fn cache_size(home: &Home) -> u64 {
    let status = home.run("status -j");
    let size = status.split("\"arc_size\":").nth(1).unwrap_or_else(|| panic!("{status}"));
    size.split(',').next().unwrap().parse().unwrap()
}

/// What of a statistic was counted since `start`, by operation.
fn counted(home: &Home, name: &str, start: u64) -> BTreeMap<String, u64> {
    let seconds = next_second(home, name) - start + 1;
    let mut sums = BTreeMap::new();
    for sample in samples(home, name, &start.to_string(), seconds) {
        for part in sample["data"]["data"].as_array().into_iter().flatten() {
            let op = part["key"].as_str().unwrap().to_string();
            *sums.entry(op).or_insert(0) += part["value"].as_u64().unwrap();
        }
    }
    sums
}

fn direct() {
    let home = Home::with_pool();
    let (daemon, _) = home.start(SERVE);
    let at = home.scratch.join("db");
    home.run(&format!(
        "zfs create -o mountpoint={} -o recordsize=64K -o compression=off tank/db",
        at.display()
    ));
    home.run("zfs mount tank/db");
    assert_eq!(home.run("zfs get -H -o value,source direct tank/db"), "standard\tdefault\n");
    let names = ["fs.direct_bytes[op]", "fs.direct_ops[op]"].map(|statistic| open(&home, statistic));
    let start = next_second(&home, &names[0]);
    let told = |what: &[(&str, u64)]| {
        let expected: BTreeMap<String, u64> = what.iter().map(|(op, n)| (op.to_string(), n * MIB)).collect();
        assert_eq!(counted(&home, &names[0], start), expected);
        assert_eq!(counted(&home, &names[1], start).len(), expected.len());
    };

    // Written and read twice with O_DIRECT: nothing of it is in the cache.
    let before = cache_size(&home);
    let own = file(&at.join("own"), OFlags::DIRECT);
    write(&own, SIZE);
    home.run("zpool sync tank");
    (0..2).for_each(|_| read(&own, SIZE));
    let after = cache_size(&home);
    assert!(after < before + ELSE, "{before} bytes were in the cache, and then {after}");
    told(&[("write", SIZE / MIB), ("read", 2 * SIZE / MIB)]);

    // As any other, when it is switched off.
    home.run("zfs set direct=disabled tank/db");
    (0..2).for_each(|_| read(&own, SIZE));
    let kept = cache_size(&home);
    assert!(kept >= after + SIZE / 2, "{after} bytes were in the cache, and then {kept}");
    told(&[("write", SIZE / MIB), ("read", 2 * SIZE / MIB)]);

    // And without the flag, when it is always so.
    home.run("zfs set direct=always tank/db");
    assert_eq!(home.run("zfs get -H -o value,source direct tank/db"), "always\tlocal\n");
    let other = file(&at.join("other"), OFlags::empty());
    write(&other, SIZE / 2);
    other.sync_all().unwrap();
    let after = cache_size(&home);
    assert!(after < kept + ELSE, "{kept} bytes were in the cache, and then {after}");
    told(&[("write", SIZE * 3 / 2 / MIB), ("read", 2 * SIZE / MIB)]);
    drop((own, other));
    // It is what the devices have.
    home.run("zfs unmount tank/db");
    home.run("zfs mount tank/db");
    read(&file(&at.join("other"), OFlags::empty()), SIZE / 2);
    home.run("zfs unmount tank/db");
    daemon.end();
}
