//! All fronts at once for as long as it is asked for, in a control group of a gibibyte, under pressure.
//!
//! ```text
//!   fio over NBD ──┐                                         ┌── tmpfs of the same group: grows to 256 MiB, goes, again
//!   fio in a mount ┼─▶ daemon: mirror + cache device ◀───────┤
//!   qemu, iSCSI ───┘   resident ≤ the bound                  └── snapshots, taken and destroyed
//! ```
//!
//! Twenty seconds, or `CENOTE_SOAK` minutes. Clients verify what they wrote. The bound is that of `memory`: what the cache
//! and written data may have, with a fifth for what lies around them, and what requests and the program take.

use crate::files::FUSE;
use crate::group::{GROUPS, Group, Pieces, limit};
use crate::home::{CENOTE, Daemon, Home};
use crate::iscsi::{QEMU, free_port, shell};
use crate::memory::Peak;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const GROUP: u64 = 1024 * MIB;
/// What requests may hold, over six connections and a mount.
const REQUESTS: u64 = 96 * MIB;
/// The program, its small things, and buffers that are kept for those to come.
const REST: u64 = 64 * MIB;
const TARGET: &str = "iqn.2001-04.com.example:soak";

pub fn trials() -> Vec<Trial> {
    let needs = [FUSE, ROOT, GROUPS, QEMU, Need::Program("fio"), Need::Program("timeout")];
    vec![trial("all_fronts_share_a_gibibyte_with_others_and_keep_within_their_bound", &needs, soak)]
}

fn how_long() -> Duration {
    let minutes = std::env::var("CENOTE_SOAK").ok().map(|minutes| minutes.parse::<u64>().unwrap());
    minutes.map_or(Duration::from_secs(20), |minutes| Duration::from_secs(60 * minutes))
}

fn figure(home: &Home, name: &str) -> u64 {
    let said = home.run(&format!("tunable get -Hp {name}"));
    said.split('\t').nth(1).unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap()
}

/// Writes at random for so long, and verifies on the way.
fn fio(seconds: u64, options: &[String]) {
    let common = [
        "--rw=randwrite",
        "--iodepth=16",
        "--verify=crc32c",
        "--verify_backlog=256",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--time_based",
        "--group_reporting",
        "--output-format=terse",
    ];
    run(command("fio").args(common).arg(format!("--runtime={seconds}")).args(options));
}

fn over_iscsi(url: &str, until: Instant) -> u64 {
    let mut rounds = 0;
    while Instant::now() < until {
        let bench = |words: &[&str]| {
            let words = [&["300", "qemu-img", "bench", "-f", "raw", "-t", "none", "-d", "16"], words, &[url]]
                .concat();
            run(command("timeout").args(words));
        };
        // What is verified lies before what is only loaded.
        let pattern = format!("{}", rounds % 250 + 1);
        let (write, read) = (format!("write -P {pattern} 0 16M"), format!("read -P {pattern} 0 16M"));
        bench(&["-w", "-c", "2000", "-s", "65536", "-o", "33554432"]);
        let said =
            run(command("timeout").args(["300", "qemu-io", "-f", "raw", "-c", &write, "-c", "flush", url]));
        assert!(!said.contains("error"), "{said}");
        bench(&["-c", "2000", "-s", "65536", "-o", "33554432"]);
        let said = run(command("timeout").args(["300", "qemu-io", "-f", "raw", "-c", &read, url]));
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
        rounds += 1;
    }
    rounds
}

/// Takes a quarter of the group, gives it back, and again.
fn others(group: &Group, until: Instant) {
    let pieces = Pieces(PathBuf::from(format!("/dev/shm/cenote-soak-{}", std::process::id())));
    std::fs::create_dir(&pieces.0).unwrap();
    let dir = pieces.0.display();
    let grow = format!(
        "for n in $(seq 64); do head -c 4194304 /dev/zero > {dir}/$n || exit 1; sleep .05; done; sleep 1; rm {dir}/*"
    );
    while Instant::now() < until {
        assert!(group.shell(&grow).status().unwrap().success(), "there was room for the others");
        std::thread::sleep(Duration::from_secs(2));
    }
}

fn prepare(home: &Home, at: &Path) {
    let disks: Vec<String> = ["a", "b", "cache"]
        .iter()
        .map(|name| {
            let disk = home.scratch.join(name);
            std::fs::File::create(&disk).unwrap().set_len(3 << 30).unwrap();
            disk.display().to_string()
        })
        .collect();
    home.run(&format!("zpool create tank mirror {} {} cache {}", disks[0], disks[1], disks[2]));
    home.run(&format!("zfs create -o mountpoint={} tank/files", at.display()));
    home.run("zfs mount tank/files");
    for name in ["one", "two"] {
        home.run(&format!("zfs create -s -V 512M -b 16K tank/{name}"));
    }
    shell(
        home,
        &format!(
            "configuration san targets iscsi create\nset iqn={TARGET}\ncommit\n\
             configuration san targets iscsi groups create\nset name=soak targets={TARGET}\ncommit\n\
             shares project luns\ncommit\nshares select luns lun data\n\
             set volsize=512M volblocksize=64K sparse=true targetgroup=soak\ncommit\n"
        ),
    );
}

fn soak() {
    let group = Group::make("soak", GROUP).unwrap();
    let home = Home::new();
    let (at, port) = (home.scratch.join("mnt"), free_port());
    let iscsi = format!("127.0.0.1:{port}");
    let mut start = group.shell(r#"exec "$0" "$@""#);
    start.arg(CENOTE).arg("--home").arg(home.dir());
    start.args(["serve", "--listen", "127.0.0.1:0", "--iscsi", &iscsi]);
    let (daemon, _) = Daemon::started_by(start.current_dir(home.scratch.path()));
    prepare(&home, &at);
    let (cache, dirty) = (limit(&home), figure(&home, "zfs_dirty_data_max"));
    let bound = (cache + dirty) / 10 * 12 + REQUESTS + REST;
    assert!(bound < GROUP, "the bound of {bound} bytes is below what the group has");

    let peak = Peak::watch(daemon.pid());
    let (lasts, rounds) = (how_long(), AtomicU64::new(0));
    let until = Instant::now() + lasts;
    let uri =
        |name: &str| format!("nbd+unix:///tank/{name}?socket={}", home.dir().join("nbd.sock").display());
    std::thread::scope(|scope| {
        for name in ["one", "two"] {
            let options = [
                "--name=nbd".to_string(),
                "--ioengine=nbd".into(),
                format!("--uri={}", uri(name)),
                "--bs=16k".into(),
                "--size=512m".into(),
            ];
            scope.spawn(move || fio(lasts.as_secs(), &options));
        }
        let options = [
            "--name=files".to_string(),
            "--ioengine=psync".into(),
            format!("--directory={}", at.display()),
            "--bssplit=4k/50:128k/50".into(),
            "--size=256m".into(),
            "--fsync=64".into(),
            "--numjobs=2".into(),
        ];
        scope.spawn(move || fio(lasts.as_secs(), &options));
        scope.spawn(|| {
            rounds.store(over_iscsi(&format!("iscsi://{iscsi}/{TARGET}/0"), until), Ordering::Relaxed)
        });
        scope.spawn(|| others(&group, until));
        while Instant::now() < until {
            home.run("zfs snapshot -r tank@soak");
            std::thread::sleep(Duration::from_secs(3));
            home.run("zfs destroy -r tank@soak");
        }
    });
    let (largest, (most, killed)) = (peak.take(), group.account());
    println!(
        "{} s: {} MiB resident at most, of {} (cache {}, written data {}); the group held {} MiB at most; {} rounds over iSCSI",
        lasts.as_secs(),
        largest / MIB,
        bound / MIB,
        cache / MIB,
        dirty / MIB,
        most / MIB,
        rounds.into_inner()
    );
    assert_eq!(killed, 0, "processes of the group were ended for want of memory");
    assert!(largest <= bound, "{largest} bytes were resident, of {bound}");
    home.run("zfs unmount tank/files");
    home.run("zpool scrub -w tank");
    assert!(home.run("zpool status tank").contains("No known data errors"));
    daemon.end();
}
