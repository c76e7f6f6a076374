//! What goes wrong below, and what programs do side by side: a full pool, damaged blocks, mappings, appending.

use crate::bench::{Bench, NEEDS};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

const SMALL: u64 = 128 << 20;
const BLOCK: usize = 128 << 10;

pub fn trials() -> Vec<Trial> {
    let fio = [&NEEDS[..], &[Need::Program("fio")]].concat();
    vec![
        trial("a_full_pool_is_told_to_who_writes_and_removing_helps", &NEEDS, full),
        trial("a_damaged_block_is_an_error_for_its_range_alone", &NEEDS, damaged),
        trial("what_is_written_through_a_mapping_is_read_in_whatever_way", &fio, mapped),
        trial("two_programs_that_append_lose_nothing_of_each_other", &NEEDS, appended),
    ]
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut at = seed;
    let mut next = || {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (at >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn full() {
    let bench = Bench::sized(SMALL, |_| ());
    let (path, kept) = (bench.root().join("f"), bench.root().join("kept"));
    std::fs::write(&kept, "kept").unwrap();
    let fill = |path: &std::path::Path, most: usize| -> std::io::Result<()> {
        let mut file = File::create(path)?;
        (0..most).try_for_each(|i| file.write_all(&noise(i as u64, 1 << 20)))?;
        file.sync_all()
    };
    let refused = fill(&path, SMALL as usize >> 20).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::NOSPC));
    let written = std::fs::metadata(&path).unwrap().len();
    assert!(written > SMALL / 4, "{written} bytes only");
    // What could be written is there, and all else is as before.
    let mut first = vec![0; 1 << 20];
    File::open(&path).unwrap().read_exact_at(&mut first, 0).unwrap();
    assert!(first == noise(0, 1 << 20));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    std::fs::remove_file(&path).unwrap();
    // The space comes back when the removal is on disk.
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(e) = fill(&path, 8) {
        assert!(Instant::now() < until, "{e}");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 8 << 20);
}

fn damaged() {
    let bench = Bench::sized(SMALL, |_| ());
    let path = bench.root().join("f");
    let bytes = noise(1, 8 * BLOCK);
    std::fs::write(&path, &bytes).unwrap();
    bench.leave();
    // Where the fourth block lies on the device.
    let device = OpenOptions::new().read(true).write(true).open(bench.device()).unwrap();
    let image = std::fs::read(bench.device()).unwrap();
    let wanted = &bytes[3 * BLOCK..3 * BLOCK + 512];
    let places: Vec<u64> = (0..image.len())
        .step_by(512)
        .filter(|at| &image[*at..*at + 512] == wanted)
        .map(|at| at as u64)
        .collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| device.write_all_at(&noise(2, 4096), *at + 4096).unwrap());
    bench.mount();
    let file = File::open(&path).unwrap();
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&path)
        .unwrap();
    let mut part = vec![0; BLOCK];
    for i in [0, 7, 3, 2, 4, 3, 1, 5, 6] {
        let read = file.read_exact_at(&mut part, (i * BLOCK) as u64);
        match i {
            3 => assert_eq!(Errno::from_io_error(&read.unwrap_err()), Some(Errno::IO)),
            _ => assert!(read.is_ok() && part == bytes[i * BLOCK..(i + 1) * BLOCK], "block {i}"),
        }
    }
    let mut room = vec![0; 4 * BLOCK + 4096];
    let at = room.as_ptr().align_offset(4096);
    let page = &mut room[at..at + 4 * BLOCK];
    assert_eq!(direct.read_at(page, 0).unwrap(), 3 * BLOCK, "as far as it is good");
    assert!(page[..3 * BLOCK] == bytes[..3 * BLOCK]);
    // Who writes all of the block mends it.
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&part, (3 * BLOCK) as u64).unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), 8 * BLOCK);
}

fn mapped() {
    let bench = Bench::new();
    let fio = |words: &[&str]| {
        let common =
            ["--name=m", "--filename=f", "--size=6m", "--bs=4k", "--verify=crc32c", "--output=/dev/null"];
        run(command("fio").args(common).args(words).current_dir(bench.root()));
    };
    fio(&["--ioengine=mmap", "--rw=randwrite", "--do_verify=0"]);
    // The same places in the same order, read past the cache, and again after they were on disk.
    fio(&["--ioengine=psync", "--direct=1", "--rw=randwrite", "--verify_only=1"]);
    bench.unmount(false).unwrap();
    bench.mount();
    fio(&["--ioengine=mmap", "--rw=randwrite", "--verify_only=1"]);
    fio(&["--ioengine=psync", "--direct=1", "--rw=randwrite", "--do_verify=0", "--randseed=7"]);
    fio(&["--ioengine=mmap", "--rw=randwrite", "--verify_only=1", "--randseed=7"]);
}

fn appended() {
    const LINES: usize = 1500;
    let bench = Bench::new();
    let script =
        format!("i=0; while [ $i -lt {LINES} ]; do echo \"$0 $i and no more\"; i=$((i+1)); done >> log");
    let start =
        |name: &str| command("sh").args(["-c", &script, name]).current_dir(bench.root()).spawn().unwrap();
    let both = [start("one"), start("two")];
    both.into_iter().for_each(|mut client| assert!(client.wait().unwrap().success()));
    let log = std::fs::read_to_string(bench.root().join("log")).unwrap();
    assert_eq!(log.lines().count(), 2 * LINES);
    for name in ["one", "two"] {
        let own: Vec<_> = log.lines().filter(|line| line.starts_with(name)).collect();
        let expected: Vec<_> = (0..LINES).map(|i| format!("{name} {i} and no more")).collect();
        assert_eq!(own, expected);
    }
}
