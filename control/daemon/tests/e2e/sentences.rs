//! What `zpool status` says of devices: each state is made on purpose, its sentence is there, and what it advises ends it.

use crate::home::{Daemon, Home};
use interop::harness::{Trial, trial};
use std::os::unix::fs::FileExt;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("each_state_of_a_device_has_its_sentence_and_the_advice_ends_it", &[], of_devices),
        trial("a_pool_that_lacks_too_much_says_so_and_goes_on_when_it_is_there", &[], of_pools),
        trial("a_device_that_was_copied_to_is_verified_by_the_scrub_that_is_advised", &[], unverified),
        trial("a_pool_whose_metadata_is_gone_is_made_anew_as_it_is_advised", &[], without_metadata),
    ]
}

const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https";

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
fn meanwhile(home: &Home, daemon: Daemon, work: impl FnOnce()) -> Daemon {
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
