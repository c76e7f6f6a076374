//! What `zpool status` says of devices: each state is made on purpose, its sentence is there, and what it advises ends it.

use crate::home::{Daemon, Home};
use interop::golden;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::run;
use rustix::fs::FlockOperation;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("each_state_of_a_device_has_its_sentence_and_the_advice_ends_it", &[], of_devices),
        trial("a_pool_that_lacks_too_much_says_so_and_goes_on_when_it_is_there", &[], of_pools),
        trial("a_device_that_was_copied_to_is_verified_by_the_scrub_that_is_advised", &[], unverified),
        trial("a_pool_whose_metadata_is_gone_is_made_anew_as_it_is_advised", &[], without_metadata),
        trial("a_pool_that_is_held_elsewhere_is_tried_again_as_it_is_advised", &[], held),
        trial("a_pool_with_too_many_faults_is_made_anew_or_cleared_as_it_is_advised", &[], faulted),
        trial("a_resilver_that_is_waited_for_ends", &[Need::Program("nbdcopy")], resilvering),
        trial("lost_data_is_restored_and_no_longer_told_of", &[Need::Program("nbdcopy")], lost),
        trial(
            "a_pool_on_a_full_host_goes_on_when_room_is_made_as_it_is_advised",
            &[ROOT, Need::Program("nbdcopy")],
            suspended,
        ),
        trial("a_pool_of_an_old_version_is_exported_to_be_upgraded", &[Need::Golden("v28")], old),
    ]
}

pub(crate) const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https";

/// `status:` and `action:` on a line each.
fn status(home: &Home) -> String {
    home.run("zpool status tank").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check(home: &Home, sentence: &str, advised: &str) {
    let said = status(home);
    assert!(said.contains(&format!("status: {sentence}")), "{sentence}: {said}");
    assert!(said.contains(advised), "{advised}: {said}");
}

fn is_well(home: &Home) {
    home.run("zpool wait -t resilver,replace tank");
    let said = status(home);
    assert!(said.contains("state: ONLINE") && !said.contains("status:"), "{said}");
}

/// Does something to the devices while the pool is not open.
pub(crate) fn meanwhile(home: &Home, daemon: Daemon, work: impl FnOnce()) -> Daemon {
    daemon.end();
    work();
    home.start(SERVE).0
}

fn zero(device: &str) {
    let len = std::fs::metadata(device).unwrap().len();
    std::fs::File::create(device).unwrap().set_len(len).unwrap();
}

fn of_devices() {
    let home = Home::new();
    let (a, b, away) = (home.disk("a.img"), home.disk("b.img"), home.scratch.join("away.img"));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    let daemon = home.start(SERVE).0;

    home.run(&format!("zpool offline tank {b}"));
    check(&home, "One or more devices has been taken offline by the administrator.", "'zpool online'");
    home.run(&format!("zpool online tank {b}"));
    is_well(&home);

    home.run(&format!("zpool offline -f tank {b}"));
    let faulted =
        "One or more devices are faulted in response to persistent errors. Sufficient replicas exist";
    check(&home, faulted, "use 'zpool clear' to mark the device repaired");
    home.run(&format!("zpool clear tank {b}"));
    is_well(&home);

    let daemon = meanwhile(&home, daemon, || std::fs::rename(&b, &away).unwrap());
    let missing = "One or more devices could not be opened. Sufficient replicas exist";
    check(&home, missing, "online it using 'zpool online'");
    std::fs::rename(&away, &b).unwrap();
    home.run(&format!("zpool online tank {b}"));
    is_well(&home);

    let daemon = meanwhile(&home, daemon, || zero(&b));
    let bad_label =
        "One or more devices could not be used because the label is missing or invalid. Sufficient replicas";
    check(&home, bad_label, "Replace the device using 'zpool replace'.");
    home.run(&format!("zpool replace -w tank {b}"));
    is_well(&home);

    // Everything that it has, from where data begins.
    let file = std::fs::File::options().write(true).open(&b).unwrap();
    let noise = vec![0x5a; 1 << 20];
    (5..200).for_each(|mib| file.write_all_at(&noise, mib << 20).unwrap());
    home.run("zpool scrub -w tank");
    check(
        &home,
        "One or more devices has experienced an unrecoverable error.",
        "clear the errors using 'zpool clear'",
    );
    home.run("zpool clear tank");
    is_well(&home);
    home.run("zpool scrub -w tank");
    is_well(&home);
    daemon.end();
}

fn of_pools() {
    let home = Home::new();
    let (a, b, away) = (home.disk("a.img"), home.disk("b.img"), home.scratch.join("away.img"));
    home.run(&format!("zpool create tank {a} {b}"));
    let daemon = home.start(SERVE).0;
    let daemon = meanwhile(&home, daemon, || std::fs::rename(&b, &away).unwrap());
    let missing = "One or more devices could not be opened. There are insufficient replicas";
    check(&home, missing, "as by 'zpool clear'");
    std::fs::rename(&away, &b).unwrap();
    home.run("zpool clear tank");
    is_well(&home);
    let daemon = meanwhile(&home, daemon, || zero(&b));
    let bad_label = "One or more devices could not be used because the label is missing or invalid. There are insufficient";
    check(&home, bad_label, "Destroy and re-create the pool from a backup source.");
    home.run("zpool export tank");
    home.run(&format!("zpool create -f tank {a} {b}"));
    is_well(&home);
    daemon.end();
}

fn unverified() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    let daemon = home.start(SERVE).0;
    home.run(&format!("zpool create tank {a}"));
    home.run("tunable set zfs_rebuild_scrub_enabled=0");
    home.run(&format!("zpool attach -s -w tank {a} {b}"));
    let sequential =
        "One or more devices have been sequentially resilvered, scrubbing the pool is recommended.";
    check(&home, sequential, "Use 'zpool scrub' to verify all data checksums.");
    home.run("zpool scrub -w tank");
    is_well(&home);
    daemon.end();
}

fn without_metadata() {
    let home = Home::new();
    let a = home.disk("a.img");
    home.run(&format!("zpool create tank {a}"));
    let daemon = home.start(SERVE).0;
    let daemon = meanwhile(&home, daemon, || {
        // All that lies between the labels.
        let file = std::fs::File::options().write(true).open(&a).unwrap();
        let (zeros, mib) = (vec![0; 1 << 20], file.metadata().unwrap().len() >> 20);
        (4..mib - 1).for_each(|at| file.write_all_at(&zeros, at << 20).unwrap());
    });
    let corrupt = "The pool metadata is incomplete or corrupted and the pool cannot be opened.";
    check(&home, corrupt, "Destroy and re-create the pool from a backup source.");
    home.run("zpool export tank");
    home.run(&format!("zpool create -f tank {a}"));
    is_well(&home);
    daemon.end();
}

/// No process that is not the appliance's may have a device: it is tried again when that is so.
fn held() {
    let home = Home::new();
    let a = home.disk("a.img");
    home.run(&format!("zpool create tank {a}"));
    let file = std::fs::File::options().write(true).open(&a).unwrap();
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let daemon = home.start(SERVE).0;
    check(&home, "The pool could not be opened. Its devices are there", "then run 'zpool clear'");
    assert!(status(&home).contains("errors: The pool is not open: pool is in use by process"));
    assert!(home.fails("zpool clear tank", 1).contains("in use"), "what stands in the way is still there");
    drop(file);
    home.run("zpool clear tank");
    is_well(&home);
    daemon.end();
}

fn faulted() {
    let home = Home::new();
    let [a, b, c] = ["a.img", "b.img", "c.img"].map(|name| home.disk(name));
    home.run(&format!("zpool create tank raidz {a} {b} {c}"));
    home.run(&format!("zpool offline -f tank {b}"));
    let away = home.scratch.join("away.img");
    std::fs::rename(&a, &away).unwrap();
    let daemon = home.start(SERVE).0;
    let sentence =
        "One or more devices are faulted in response to persistent errors. There are insufficient replicas";
    check(&home, sentence, "using 'zpool clear' may allow some data to be recovered");
    // Without the other one it does not help, and nothing is changed by trying.
    assert!(home.fails("zpool clear tank", 1).contains("too few of its devices can be used"));
    check(&home, sentence, "Destroy and re-create the pool from a backup source.");
    std::fs::rename(&away, &a).unwrap();
    home.run("zpool clear tank");
    home.run("zpool wait -t resilver tank");
    home.run("zpool clear tank");
    is_well(&home);
    home.run("zpool scrub -w tank");
    is_well(&home);
    // The other advice.
    home.run(&format!("zpool offline -f tank {b}"));
    let daemon = meanwhile(&home, daemon, || std::fs::rename(&a, &away).unwrap());
    check(&home, sentence, "Destroy and re-create the pool from a backup source.");
    home.run("zpool export -f tank");
    std::fs::rename(&away, &a).unwrap();
    home.run(&format!("zpool create -f tank raidz {a} {b} {c}"));
    is_well(&home);
    daemon.end();
}

/// Bytes that nothing can compress, in a file.
pub(crate) fn noise(path: &Path, mib: usize) {
    let mut bytes = vec![0; mib << 20];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Where a volume is served.
fn uri(home: &Home, volume: &str) -> String {
    let text = home.run("status");
    let of = |word: &&str| word.starts_with("nbd://") && word.ends_with(volume);
    text.split_whitespace().find(of).unwrap_or_else(|| panic!("{volume}: {text}")).to_string()
}

pub(crate) fn copy(home: &Home, from: &Path, volume: &str) -> Child {
    Command::new("nbdcopy").arg("--flush").arg(from).arg(uri(home, volume)).spawn().unwrap()
}

fn resilvering() {
    let home = Home::new();
    let (a, b, bytes) = (home.disk("a.img"), home.disk("b.img"), home.scratch.join("bytes"));
    home.run(&format!("zpool create tank {a}"));
    home.run("zfs create -s -V 256M tank/v");
    let daemon = home.start(SERVE).0;
    home.run("tunable set zfs_rebuild_scrub_enabled=0");
    noise(&bytes, 200);
    assert!(copy(&home, &bytes, "tank/v").wait().unwrap().success());
    for how in ["", "-s "] {
        // It may be over before it is looked at; then it is made again.
        let seen = (0..50).any(|_| {
            home.run(&format!("zpool attach {how}tank {a} {b}"));
            let said = status(&home);
            let is_told = said.contains(
                "status: One or more devices is currently being resilvered. The pool will continue to function, possibly \
                 in a degraded state. action: Wait for the resilver to complete. scan: resilver ",
            );
            if is_told {
                assert!(said.contains("(resilvering)"), "{said}");
            } else {
                home.run(&format!("zpool detach tank {b}"));
            }
            is_told
        });
        assert!(seen, "a resilver of 200M is over each time before it can be seen: '{how}'");
        home.run("zpool wait -t resilver tank");
        if how == "-s " {
            home.run("zpool scrub -w tank");
        }
        is_well(&home);
        home.run(&format!("zpool detach tank {b}"));
    }
    daemon.end();
}

fn lost() {
    let home = Home::new();
    let (a, bytes) = (home.disk("a.img"), home.scratch.join("bytes"));
    home.run(&format!("zpool create tank {a}"));
    home.run("zfs create -s -V 16M -b 16K tank/v");
    let daemon = home.start(SERVE).0;
    noise(&bytes, 1);
    assert!(copy(&home, &bytes, "tank/v").wait().unwrap().success());
    home.run("zpool sync tank");
    let wanted = std::fs::read(&bytes).unwrap();
    let daemon = meanwhile(&home, daemon, || {
        let disk = std::fs::read(&a).unwrap();
        let at = (0..disk.len() / 512).map(|n| n * 512).find(|at| disk[*at..][..512] == wanted[..512]);
        let file = std::fs::File::options().write(true).open(&a).unwrap();
        file.write_all_at(&[0x5a; 512], at.expect("the block is on the disk") as u64).unwrap();
    });
    assert!(home.fails("zpool scrub -w tank", 1).contains("found 1 errors that could not be repaired"));
    let sentence = "One or more devices has experienced an error resulting in data corruption. Applications may be affected.";
    check(&home, sentence, "Restore the file in question if possible.");
    assert!(home.run("zpool status -v tank").contains("        tank/v:<0x1>"), "it is named");
    assert!(copy(&home, &bytes, "tank/v").wait().unwrap().success());
    home.run("zpool clear tank");
    home.run("zpool scrub -w tank");
    is_well(&home);
    daemon.end();
}

fn suspended() {
    let home = Home::new();
    let host = home.scratch.join("host");
    std::fs::create_dir(&host).unwrap();
    let mount = |options: &str| {
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&host));
    };
    mount("size=64M");
    let (file, bytes) = (host.join("a.img"), home.scratch.join("bytes"));
    std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    home.run(&format!("zpool create tank {}", file.display()));
    home.run("zfs create -s -V 256M tank/v");
    let daemon = home.start(&format!("{SERVE} --arc-max 64M")).0;
    noise(&bytes, 128);
    let mut copying = copy(&home, &bytes, "tank/v");
    let sentence = "status: One or more devices are faulted in response to IO failures.";
    let began = Instant::now();
    while !status(&home).contains(sentence) {
        assert!(began.elapsed() < Duration::from_secs(120), "{}", status(&home));
        std::thread::sleep(Duration::from_millis(50));
    }
    check(&home, &sentence["status: ".len()..], "that files have room to grow, then run 'zpool clear'.");
    mount("remount,size=1G");
    home.run("zpool clear tank");
    assert!(copying.wait().unwrap().success(), "it waited for room");
    is_well(&home);
    daemon.end();
    let mut umount = Command::new("umount");
    run(umount.arg(&host));
}

/// What upgrades it is OpenZFS: the advice begins with the export.
fn old() {
    let home = Home::new();
    let images = golden::pool("v28").images;
    let copies: Vec<String> = images
        .iter()
        .map(|image| {
            let copy = home.scratch.join(Path::new(image).file_name().unwrap());
            std::fs::copy(image, &copy).unwrap();
            copy.display().to_string()
        })
        .collect();
    let search: String = copies.iter().map(|copy| format!(" -d {copy}")).collect();
    home.run(&format!("zpool import -f -N{search} v28 tank"));
    check(
        &home,
        "The pool is formatted using a legacy on-disk format.",
        "Upgrade the pool with OpenZFS, after 'zpool export'.",
    );
    assert!(
        home.run("zpool status -x").contains("all pools are healthy"),
        "it is nothing to be alarmed about"
    );
    home.run("zpool export tank");
    assert!(home.run(&format!("zpool import{search}")).contains("  pool: tank"), "OpenZFS finds it");
}
