//! The day a disk is gone: the commands of that day, in their order, and what is said when they are misused.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::zdb;

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "a_disk_that_is_gone_is_replaced_and_what_is_under_way_can_be_waited_for",
            &[Need::Program("zdb")],
            replaced,
        ),
        trial("a_device_that_is_back_is_found_by_reopen_and_gets_what_it_missed", &[], back),
        trial("what_is_told_to_be_over_is_no_hindrance_to_what_comes_next", &[], one_after_another),
        trial("device_commands_say_why_they_are_refused", &[], refused),
        trial("features_are_listed_and_enabled_by_upgrade", &[Need::Program("zdb")], upgraded),
        trial(
            "free_space_is_trimmed_and_initialized_and_status_says_how_far",
            &[Need::Program("zdb")],
            swept,
        ),
    ]
}

fn mirror(home: &Home) -> [String; 3] {
    let disks = ["a.img", "b.img", "c.img"].map(|name| home.disk(name));
    home.run(&format!("zpool create tank mirror {} {}", disks[0], disks[1]));
    home.run("zfs create -s -V 16M tank/v");
    disks
}

fn replaced() {
    for daemon in [false, true] {
        let home = Home::new();
        let [_, b, c] = mirror(&home);
        home.run("zpool export tank");
        std::fs::remove_file(&b).unwrap();
        home.run(&format!("zpool import -d {} tank", home.scratch.path().display()));
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        let status = home.run("zpool status tank");
        assert!(status.contains(" state: DEGRADED") && status.contains("UNAVAIL"), "{status}");
        home.run(&format!("zpool replace tank {b} {c}"));
        home.run("zpool wait -t resilver,replace tank");
        let status = home.run("zpool status tank");
        assert!(status.contains(" state: ONLINE") && status.contains(&c) && !status.contains(&b), "{status}");
        assert!(status.contains("resilvered") && status.contains("with 0 errors"), "{status}");
        home.run("zpool scrub tank");
        home.run("zpool wait tank");
        let table = home.run("zpool wait -t scrub,free tank 1");
        assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["free", "scrub", "-", "-"], "{table}");
        assert_eq!(home.run("zpool wait -Hp -t scrub tank 1"), "0\n");
        running.into_iter().for_each(|daemon| daemon.end());
        home.run("zpool export tank");
        zdb::assert_clean(home.scratch.path(), "tank");
    }
}

/// One command at once after the other, in an order by chance: each waits for its end, or is known by what it says to be
/// done. A device that had left a mirror was wiped and closed a moment later, and until then it was "in use".
fn one_after_another() {
    let seed = std::env::var("CENOTE_SEED").map_or(0xce07_e2e5, |seed| seed.parse::<u64>().unwrap());
    println!("CENOTE_SEED={seed} chooses the same commands");
    let mut rng = sim::Rng::new(seed);
    let home = Home::new();
    let [a, b, c] = mirror(&home);
    let daemon = home.start("serve --listen 127.0.0.1:0 --no-https").0;
    // The second one of the mirror, and the one that is free.
    let (mut second, mut free) = (b, c);
    for _ in 0..48 {
        match rng.below(10) {
            0 => _ = home.run("zpool scrub -w tank"),
            1 => {
                home.run("zpool scrub tank");
                home.run("zpool wait tank");
            }
            2 => _ = home.run("zpool initialize -w tank"),
            3 => _ = home.run("zpool trim -w tank"),
            4 => {
                home.run(&format!("zpool attach -w tank {a} {free}"));
                home.run(&format!("zpool detach tank {second}"));
                std::mem::swap(&mut second, &mut free);
            }
            5 => {
                home.run(&format!("zpool offline tank {second}"));
                home.run(&format!("zpool online tank {second}"));
                home.run("zpool wait -t resilver tank");
            }
            6 => {
                let class = ["log", "cache", "spare"][rng.below(3) as usize];
                home.run(&format!("zpool add tank {class} {free}"));
                home.run(&format!("zpool remove -w tank {free}"));
            }
            7 => {
                home.run("zpool export tank");
                home.run(&format!("zpool import -d {} tank", home.scratch.path().display()));
            }
            _ => {
                home.run(&format!("zpool replace -w tank {second} {free}"));
                std::mem::swap(&mut second, &mut free);
            }
        }
    }
    assert!(home.run("zpool status tank").contains("errors: No known data errors"));
    daemon.end();
}

fn back() {
    let home = Home::new();
    let [_, b, _] = mirror(&home);
    home.run("zpool export tank");
    // Elsewhere: under another name in the same place it would be found.
    let elsewhere = home.scratch.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let hidden = elsewhere.join("b.img");
    std::fs::rename(&b, &hidden).unwrap();
    home.run(&format!("zpool import -d {} tank", home.scratch.path().display()));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    home.run("zfs create -s -V 16M tank/w");
    home.run("zpool reopen tank");
    assert!(home.run("zpool status tank").contains("UNAVAIL"), "it is not there yet");
    std::fs::rename(&hidden, &b).unwrap();
    home.run("zpool reopen");
    home.run("zpool wait -t resilver tank");
    let status = home.run("zpool status tank");
    assert!(status.contains(" state: ONLINE") && !status.contains("UNAVAIL"), "{status}");
    // Where no device misses anything nothing is to be done.
    home.run("zpool resilver tank");
    home.run("zpool wait tank");
    let events = home.run("zpool history -i tank");
    assert!(events.contains("zpool reopen") && events.contains("zpool resilver tank"), "{events}");
    daemon.end();
}

fn swept() {
    for daemon in [false, true] {
        let home = Home::new();
        let [a, _, _] = mirror(&home);
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        for (word, flag, done) in [("trim", "-t", "trimmed"), ("initialize", "-i", "initialized")] {
            let status = home.run(&format!("zpool status {flag} tank"));
            assert_eq!(status.matches(&format!("  (un{done})")).count(), 2, "{status}");
            home.run(&format!("zpool {word} -w tank {a}"));
            let status = home.run(&format!("zpool status {flag} tank"));
            assert_eq!(status.matches(&format!("  (100% {done}, completed at ")).count(), 1, "{status}");
            home.run(&format!("zpool {word} tank"));
            home.run(&format!("zpool wait -t {word} tank"));
            let status = home.run(&format!("zpool status {flag} tank"));
            assert_eq!(status.matches(&format!("  (100% {done}, completed at ")).count(), 2, "{status}");
            for (line, code, part) in [
                (format!("zpool {word} -s tank"), 1, "there is no active"),
                (format!("zpool {word} -c tank {a}"), 1, "there is no active"),
                (format!("zpool {word} -s -c tank"), 2, "cannot be used with"),
                (format!("zpool {word} nowhere"), 1, "nowhere"),
                (format!("zpool {word} tank nodisk"), 1, "no such device"),
            ] {
                let said = home.fails(&line, code);
                assert!(said.contains(part), "{line}: {said}");
            }
        }
        let said = home.fails("zpool trim -r 0 tank", 2);
        assert!(said.contains("no rate"), "{said}");
        home.run("zpool initialize -u tank");
        assert_eq!(home.run("zpool status -i tank").matches("  (uninitialized)").count(), 2);
        assert!(home.run("zpool history tank").contains("zpool trim -w tank"));
        running.into_iter().for_each(|daemon| daemon.end());
        home.run("zpool export tank");
        zdb::assert_clean(home.scratch.path(), "tank");
    }
}

fn refused() {
    let home = Home::new();
    mirror(&home);
    for (line, code, part) in [
        ("zpool wait tank -t nonsense", 2, "nonsense"),
        ("zpool wait tank 0", 2, "no number of seconds"),
        ("zpool wait nowhere", 1, "nowhere"),
        ("zpool resilver nowhere", 1, "nowhere"),
        ("zpool reopen nowhere", 1, "nowhere"),
        ("zpool resilver", 2, "required"),
    ] {
        let said = home.fails(line, code);
        assert!(said.contains(part), "{line}: {said}");
    }
    let d = home.disk("d.img");
    home.run(&format!("zpool create -d old {d}"));
    let said = home.fails("zpool resilver old", 1);
    assert!(said.contains("zpool set feature@resilver_defer=enabled old"), "{said}");
}

fn upgraded() {
    let home = Home::new();
    let disk = home.disk("a.img");
    home.run(&format!("zpool create -d -o compatibility=openzfs-2.0-linux tank {disk}"));
    let listed = home.run("zpool upgrade");
    assert!(listed.contains("tank\n") && listed.contains("      lz4_compress\n"), "{listed}");
    assert!(!listed.contains("draid"), "compatibility does not allow it: {listed}");
    assert_eq!(
        home.run("zpool get -Ho value feature@lz4_compress tank"),
        "disabled\n",
        "a list changes nothing"
    );
    let said = home.run("zpool upgrade tank");
    assert!(
        said.contains("Enabled the following features on 'tank':\n") && said.contains("  lz4_compress\n"),
        "{said}"
    );
    assert_ne!(home.run("zpool get -Ho value feature@lz4_compress tank"), "disabled\n");
    assert!(
        home.run("zpool upgrade tank").contains("already has all supported and requested features enabled")
    );
    assert!(home.run("zpool upgrade -a").contains("already has all supported"));
    assert!(home.fails("zpool upgrade nowhere", 1).contains("nowhere"));
    home.fails("zpool upgrade -a tank", 2);
    home.run("zpool export tank");
    zdb::assert_clean(home.scratch.path(), "tank");
}
