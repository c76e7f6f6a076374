//! Pools that lack devices: what still works, and what is said.

use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run, said as said_by};
use interop::{golden, zdb};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const ZDB: Need = Need::Program("zdb");

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_pool_that_lacks_too_many_devices_names_each_and_what_to_do", &[], too_few),
        trial(
            "a_pool_of_features_that_are_not_there_is_listed_as_unavailable",
            &[Need::Golden("dr"), Need::Golden("rmv")],
            unsupported,
        ),
        trial("a_mirror_that_lacks_a_device_is_degraded_and_served", &[], degraded),
        trial("a_log_device_whose_removal_was_cut_short_is_added_and_cleared_again", &[], left_behind),
        trial("a_pool_whose_log_device_was_taken_away_opens_without_it", &[ZDB], log_taken_away),
        trial("a_log_device_that_was_missing_at_the_import_is_brought_back", &[ZDB], log_brought_back),
        trial(
            "a_pool_on_a_read_only_device_is_refused_for_writing_and_imported_for_reading",
            &[ROOT, crate::clients::LOOP, Need::Program("losetup")],
            read_only_device,
        ),
        trial("a_pool_that_lacks_the_newer_side_of_its_metadata_names_that", &[ZDB], older_side_of_metadata),
        trial("a_pool_with_damaged_metadata_can_be_exported", &[], damaged_metadata),
        trial("a_pool_is_found_again_where_its_devices_went", &[], moved),
        trial("halves_that_went_on_alone_are_imported_together_only_by_force", &[], estranged),
        trial("a_pool_that_a_process_has_is_refused_to_another_one_by_its_labels", &[], had_by_a_process),
        trial(
            "a_pool_has_one_writer_through_a_loop_device_too",
            &[ROOT, crate::clients::LOOP, Need::Program("losetup")],
            through_a_loop,
        ),
        trial(
            "a_pool_on_a_full_host_is_suspended_and_goes_on_when_it_is_cleared",
            &[ROOT, Need::Program("nbdcopy"), Need::Program("zdb")],
            host_full,
        ),
    ]
}

fn unsupported() {
    let home = Home::new();
    for (name, feature) in [("dr", "org.openzfs:draid"), ("rmv", "com.delphix:device_removal")] {
        let place = golden::pool(name).images[0].parent().unwrap().to_path_buf();
        let listed = home.run(&format!("zpool import -d {}", place.display()));
        let of_pool = listed.split("  pool: ").find(|part| part.starts_with(&format!("{name}\n"))).unwrap();
        for part in [" state: UNAVAIL\n", &format!("\t{feature}\n"), "  UNAVAIL  unsupported feature(s)\n"] {
            assert!(of_pool.contains(part), "{part}: {listed}");
        }
        assert!(!of_pool.contains("Additional devices"), "{listed}");
        let said = home.fails(&format!("zpool import -d {} {name}", place.display()), 1);
        assert!(said.contains("which this version cannot read"), "{said}");
    }
}

fn too_few() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank {a} {b}"));
    std::fs::rename(&b, home.scratch.join("hidden")).unwrap();
    let said = home.fails("zfs create tank/x", 1);
    let lines: Vec<&str> = said.lines().collect();
    let line = format!(
        "{b} cannot be opened (No such file or directory): attach it, or say where it is with 'zpool import -d'"
    );
    assert_eq!(
        lines,
        ["cannot open 'tank': too few of its devices can be used", &format!("\t{line}")],
        "{said}"
    );
    let status = home.run("zpool status tank");
    for part in [" state: UNAVAIL", "status: One or more devices could not be opened.", &line] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let of_b = status.lines().find(|l| l.trim_start().starts_with(&b) && l.contains("UNAVAIL"));
    assert!(of_b.is_some_and(|l| l.ends_with("cannot open")), "{status}");
    // A daemon starts all the same, says so, and serves the pool as soon as it is opened again.
    let (daemon, text) = home.start("up --listen 127.0.0.1:0");
    assert!(text.contains("  pool    tank  UNAVAIL: too few") && text.contains(&line), "{text}");
    std::fs::rename(home.scratch.join("hidden"), &b).unwrap();
    home.run("zfs create tank/x");
    daemon.end();
    // A device that was overwritten is another matter.
    home.run("zpool list");
    overwrite(&b);
    let said = home.fails("zfs create tank/y", 1);
    assert!(said.contains(&format!("\t{b} carries no valid label of this pool: ")), "{said}");
    overwrite(&a);
    let said = home.fails("zfs create tank/y", 1);
    assert_eq!(said.matches("carries no valid label").count(), 2, "{said}");
    home.run("zpool export tank");
    assert_eq!(home.run("zpool list"), "no pools available\n", "it is forgotten");
}

/// Zeros all of a device, which stays as large as it was.
fn overwrite(device: &str) {
    let len = std::fs::metadata(device).unwrap().len();
    std::fs::File::create(device).unwrap().set_len(len).unwrap();
}

/// A kill between the txg that takes a log device out of the pool and the wiping of its labels left labels of the imported
/// pool on it, for which it could neither be added nor cleared.
fn left_behind() {
    let home = Home::new();
    let (a, log) = (home.disk("a.img"), home.disk("log.img"));
    home.run(&format!("zpool create tank {a}"));
    for daemon in [false, true] {
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        for _ in 0..2 {
            home.run(&format!("zpool add -f tank log {log}"));
            for line in [format!("zpool labelclear -f {log}"), format!("zpool add -f tank log {log}")] {
                let said = home.fails(&line, 1);
                assert!(
                    said.contains("active pool 'tank'")
                        || said.contains("imported pool 'tank'")
                        || said.contains("in use by process"),
                    "{said}"
                );
            }
            // What a kill leaves: all is as before the labels were wiped.
            let labels = label_areas(&log);
            home.run(&format!("zpool remove tank {log}"));
            let file = std::fs::File::options().write(true).open(&log).unwrap();
            labels.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
            let said = home.fails(&format!("zpool add tank log {log}"), 1);
            assert!(said.contains("is part of active pool 'tank'; use '-f' to override"), "{said}");
        }
        home.run(&format!("zpool labelclear -f {log}"));
        home.run(&format!("zpool add tank log {log}"));
        home.run(&format!("zpool remove tank {log}"));
        home.run("zpool scrub -w tank");
        assert!(home.run("zpool status tank").contains("errors: No known data errors"));
        if let Some(running) = running {
            running.end();
        }
    }
}

/// Where the labels of a device are, and what is there.
/// `zpool offline` of a log was a command after which no start opened the pool.
fn log_taken_away() {
    for mirror in ["", "mirror "] {
        let home = Home::new();
        let (a, l, m) = (home.disk("a.img"), home.disk("l.img"), home.disk("m.img"));
        let logs: Vec<&String> = if mirror.is_empty() { vec![&l] } else { vec![&l, &m] };
        let named = logs.iter().map(|log| log.as_str()).collect::<Vec<_>>().join(" ");
        home.run(&format!("zpool create tank {a} log {mirror}{named}"));
        home.run("zfs create tank/x");
        for log in &logs {
            home.run(&format!("zpool offline tank {log}"));
        }
        let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
        assert!(home.run("zpool status tank").contains("OFFLINE"), "{}", home.run("zpool status tank"));
        home.run("zfs create tank/y");
        for log in &logs {
            home.run(&format!("zpool online tank {log}"));
        }
        assert_eq!(home.run("zpool list -H -o health"), "ONLINE\n");
        home.run("zpool export tank");
        zdb::assert_clean(home.scratch.path(), "tank");
        home.run(&format!("zpool import -d {} tank", home.scratch.path().display()));
        daemon.end();
    }
}

/// It was found too small whatever its size: it had never been open beside its pool.
fn log_brought_back() {
    let home = Home::new();
    let (a, l) = (home.disk("a.img"), home.disk("l.img"));
    home.run(&format!("zpool create tank {a} log {l}"));
    home.run("zpool export tank");
    let hidden = home.scratch.join("away").join("l.img");
    std::fs::create_dir(hidden.parent().unwrap()).unwrap();
    std::fs::rename(&l, &hidden).unwrap();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    home.run(&format!("zpool import -m -d {} tank", home.scratch.path().display()));
    assert_eq!(home.run("zpool list -H -o health"), "DEGRADED\n");
    home.run("zfs create tank/x");
    std::fs::rename(&hidden, &l).unwrap();
    home.run(&format!("zpool online tank {l}"));
    assert_eq!(home.run("zpool list -H -o health"), "ONLINE\n");
    home.run("zfs create -V 16M tank/v");
    home.run("zpool scrub -w tank");
    assert!(home.run("zpool status tank").contains("with 0 errors"));
    home.run("zpool export tank");
    zdb::assert_clean(home.scratch.path(), "tank");
    daemon.end();
}

fn read_only_device() {
    let home = Home::new();
    let a = home.disk("a.img");
    home.run(&format!("zpool create tank {a}"));
    home.run("zpool export tank");
    let device = run(command("losetup").args(["--find", "--show", "--read-only", &a]));
    let device = device.trim();
    let refused = home.fails(&format!("zpool import -d {device} tank"), 1);
    let listed = home.run("zpool list -H -o name");
    let imported = home.run(&format!("zpool import -o readonly=on -d {device} tank"));
    let health = home.run("zpool list -H -o health");
    home.run("zpool export tank");
    run(command("losetup").args(["--detach", device]));
    assert!(refused.contains("read-only"), "{refused}");
    assert_eq!((listed.as_str(), imported.as_str(), health.as_str()), ("", "", "ONLINE\n"));
}

/// It was said to be lost, to destroy it and create it again, and no word of the device that has all of it.
fn older_side_of_metadata() {
    let home = Home::new();
    let (a, s, t) = (home.disk("a.img"), home.disk("s.img"), home.disk("t.img"));
    let away = home.scratch.join("away");
    std::fs::create_dir(&away).unwrap();
    let moved = |from: &str| away.join(from.rsplit('/').next().unwrap());
    home.run(&format!("zpool create -f tank {a} special mirror {s} {t}"));
    std::fs::rename(&s, moved(&s)).unwrap();
    for i in 0..8 {
        home.run(&format!("zfs create tank/x{i}"));
    }
    std::fs::rename(&t, moved(&t)).unwrap();
    std::fs::rename(moved(&s), &s).unwrap();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let status = home.run("zpool status tank");
    assert!(status.contains("UNAVAIL") && status.contains(&t), "{status}");
    assert!(!status.contains("Destroy and re-create"), "{status}");
    std::fs::rename(moved(&t), &t).unwrap();
    home.run("zpool clear tank");
    home.run("zpool wait -t resilver tank");
    home.run("zpool scrub -w tank");
    assert_eq!(home.run("zpool list -H -o health"), "ONLINE\n");
    assert_eq!(home.run("zfs list -H -o name").lines().count(), 9);
    home.run("zpool export tank");
    zdb::assert_clean(home.scratch.path(), "tank");
    daemon.end();
}

/// The note of it in the history had no place, and the pool was there for ever.
fn damaged_metadata() {
    let home = Home::new();
    let a = home.disk("a.img");
    home.run(&format!("zpool create tank {a}"));
    home.run("zfs create -V 16M tank/v");
    let file = std::fs::OpenOptions::new().write(true).open(&a).unwrap();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let end = file.metadata().unwrap().len();
    // Of three copies of metadata each is somewhere else: what is spared is the labels.
    let rubbish = vec![0x5a; 1 << 20];
    (40 << 20..end - (1 << 20)).step_by(1 << 20).for_each(|at| file.write_all_at(&rubbish, at).unwrap());
    let outcome = home.cenote(&["zpool", "export", "-f", "tank"]).output().unwrap();
    assert_eq!(home.run("zpool list -H -o name"), "", "{outcome:?}");
    daemon.end();
}

fn label_areas(device: &str) -> Vec<(u64, Vec<u8>)> {
    const AREA: u64 = 512 << 10;
    let file = std::fs::File::open(device).unwrap();
    let last = file.metadata().unwrap().len() - AREA;
    let area = |at| {
        let mut bytes = vec![0; AREA as usize];
        file.read_exact_at(&mut bytes, at).unwrap();
        (at, bytes)
    };
    [0, last].map(area).into()
}

fn degraded() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    home.run("zpool export tank");
    std::fs::remove_file(&a).unwrap();
    let dir = home.scratch.path().display().to_string();
    let found = home.run(&format!("zpool import -d {dir}"));
    for part in [" state: DEGRADED", "despite missing or damaged devices", "UNAVAIL  cannot open"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    home.run(&format!("zpool import -d {dir} tank"));
    home.run("zfs create -s -V 16M tank/v");
    let status = home.run("zpool status");
    for part in [" state: DEGRADED", "Sufficient replicas exist", "UNAVAIL      0     0     0  cannot open"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let (daemon, text) = home.start("up --listen 127.0.0.1:0");
    assert!(text.contains(&format!("{a} cannot be opened (No such file or directory): attach it")), "{text}");
    daemon.end();
}

fn moved() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank {a} {b}"));
    let elsewhere = home.scratch.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for disk in [&a, &b] {
        std::fs::rename(disk, elsewhere.join(disk.rsplit('/').next().unwrap())).unwrap();
    }
    let said = home.fails("zfs create tank/x", 1);
    assert_eq!(said.matches("say where it is with 'zpool import -d'").count(), 2, "{said}");
    home.run("zpool export tank");
    home.run(&format!("zpool import -d {} tank", elsewhere.display()));
    home.run("zfs create tank/x");
    assert!(home.run("zpool status").contains(&elsewhere.join("b.img").display().to_string()));
}

/// Each half of a mirror took changes without the other. The newer one was copied over the older, and nothing was said.
fn estranged() {
    let home = Home::new();
    let disks = [home.disk("a.img"), home.disk("b.img")];
    home.run(&format!("zpool create tank mirror {}", disks.join(" ")));
    home.run("zpool export tank");
    let halves = ["left", "right"].map(|name| home.scratch.join(name));
    for (disk, half) in disks.iter().zip(&halves) {
        std::fs::create_dir(half).unwrap();
        std::fs::rename(disk, half.join(disk.rsplit('/').next().unwrap())).unwrap();
    }
    for (half, names) in halves.iter().zip([&["x", "y"][..], &["p", "q", "r", "s", "t"]]) {
        home.run(&format!("zpool import -d {} tank", half.display()));
        names.iter().for_each(|name| drop(home.run(&format!("zfs create tank/{name}"))));
        home.run("zpool export tank");
    }
    let import = format!("zpool import -d {} -d {} tank", halves[0].display(), halves[1].display());
    let said = home.fails(&import, 1);
    let old = halves[0].join("a.img").display().to_string();
    assert!(said.starts_with("cannot import 'tank': its devices went on without one another; "), "{said}");
    assert!(said.contains(&format!("\n\t{old}: from txg ")) && said.contains("with '-d'"), "{said}");
    // As it is advised: one of them alone is as it was left.
    home.run(&format!("zpool import -o readonly=on -d {} tank", halves[0].display()));
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/x\ntank/y\n");
    home.run("zpool export tank");
    home.run(&import.replace("import", "import -f"));
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/p\ntank/q\ntank/r\ntank/s\ntank/t\n");
    home.run("zpool wait -t resilver tank");
    home.run("zpool scrub -w tank");
    assert_eq!(home.run("zpool status -x"), "all pools are healthy\n");
}

/// A copy has no lock in common with what it was copied from, as a copy that an overlay makes has none. What its labels
/// say of the process that has the pool was not asked: two had it.
fn had_by_a_process() {
    let (home, other) = (Home::with_pool(), Home::new());
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0");
    home.run("zfs create tank/x");
    let copies = other.scratch.join("copies");
    std::fs::create_dir(&copies).unwrap();
    std::fs::copy(home.scratch.join("a.img"), copies.join("a.img")).unwrap();
    let import = format!("zpool import -d {} tank", copies.display());
    let said = other.fails(&import, 1);
    let who = format!("cannot import 'tank': the pool is in use by process {}; only if", daemon.pid());
    assert!(said.starts_with(&who) && said.contains("'zpool import -f'"), "{said}");
    // What a process changes meanwhile looks damaged to one that reads: that takes `-f` too.
    let look = import.replace("import", "import -o readonly=on");
    let said = other.fails(&look, 1);
    assert!(said.starts_with(&who) && said.contains("'zpool import -f'"), "{said}");
    for import in [&look, &import] {
        other.run(&import.replace("import", "import -f"));
        other.run("zpool export tank");
    }
    daemon.kill();
    // That process has ended: nothing is in the way of the pool it left.
    let import = format!("zpool import -d {} tank", home.scratch.path().display());
    for import in [import.replace("import", "import -o readonly=on"), import] {
        other.run(&import);
        other.run("zpool export tank");
    }
}

fn through_a_loop() {
    let (home, other) = (Home::with_pool(), Home::new());
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0");
    let file = home.scratch.join("a.img");
    let device = run(command("losetup").args(["--find", "--show"]).arg(&file)).trim().to_string();
    for force in ["", "-f "] {
        let said = other.fails(&format!("zpool import {force}-d {device} tank"), 1);
        assert!(said.contains("in use"), "{said}");
    }
    home.run("zfs create tank/x");
    daemon.end();
    other.run(&format!("zpool import -d {device} tank"));
    assert!(other.run("zfs list -H -o name").contains("tank/x"));
    other.run("zpool export tank");
    run(command("losetup").args(["--detach", &device]));
}

/// Nothing here takes a minute, on a machine that has much else to do either.
fn wait_until(there: impl Fn() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(120), "it does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A pool on a sparse file, and a host that has less room than the file is long.
fn host_full() {
    let home = Home::new();
    let host = home.scratch.join("host");
    std::fs::create_dir(&host).unwrap();
    let mount =
        |options: &str| run(command("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&host));
    mount("size=128M");
    let file = host.join("a.img");
    std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    home.run(&format!("zpool create tank {}", file.display()));
    for volume in ["kept", "large"] {
        home.run(&format!("zfs create -s -V 512M tank/{volume}"));
    }
    let log = home.scratch.join("log");
    let logged = std::fs::File::create(&log).unwrap();
    let (daemon, _) = home.start_logging("serve --listen 127.0.0.1:0 --arc-max 64M", logged);
    let says = |line: &str| std::fs::read_to_string(&log).unwrap().matches(line).count();
    let goes_on = || says("the pool goes on");
    let uri = |volume: &str| {
        let status = home.run("status");
        status
            .split_whitespace()
            .find(|w| w.starts_with("nbd://") && w.ends_with(volume))
            .unwrap()
            .to_string()
    };
    let (kept, large, back) =
        (home.scratch.join("kept"), home.scratch.join("large"), home.scratch.join("back"));
    // Nothing can compress it.
    let noise = |len: usize| {
        let mut bytes = vec![0; len];
        std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
        bytes
    };
    let bytes = noise(8 << 20);
    std::fs::write(&kept, &bytes).unwrap();
    std::fs::write(&large, noise(256 << 20)).unwrap();
    run(command("nbdcopy").arg("--flush").arg(&kept).arg(uri("kept")));
    let is_back = || {
        run(command("nbdcopy").arg(uri("kept")).arg(&back));
        assert!(std::fs::read(&back).unwrap()[..8 << 20] == bytes, "what was flushed is there");
    };
    // With failmode=wait, as pools are made, it waits for room.
    let mut copy = command("nbdcopy").arg("--flush").arg(&large).arg(uri("large")).spawn().unwrap();
    let suspended = |text: &str| {
        wait_until(|| home.run("zpool status").contains(" state: SUSPENDED"));
        let status = home.run("zpool status");
        for part in ["zpool clear", "out of space", text] {
            assert!(status.contains(part), "{part}: {status}");
        }
    };
    suspended("room to grow");
    is_back();
    assert!(home.fails("zpool clear tank", 1).contains("suspended again"));
    let said = home.fails("zpool export tank", 1);
    assert!(said.contains("pool is suspended") && said.contains("zpool clear tank"), "{said}");
    assert!(home.fails("zfs create tank/x", 1).contains("suspended"));
    assert!(copy.try_wait().unwrap().is_none(), "it waits");
    assert!(says("nothing is written any more") > 0 && goes_on() == 0, "it was cleared, and did not go on");
    // Room is made, and all goes on.
    mount("remount,size=512M");
    home.run("zpool clear tank");
    assert!(copy.wait().unwrap().success());
    assert!(home.run("zpool status").contains(" state: ONLINE"));
    wait_until(|| goes_on() > 0);
    assert_eq!(goes_on(), 1);
    is_back();
    // With failmode=continue it is told; and nothing keeps the daemon from ending.
    home.run("zpool set failmode=continue tank");
    mount("remount,size=400M");
    home.run("zfs create -s -V 512M tank/more");
    let output = command("nbdcopy").arg("--flush").arg(&large).arg(uri("more")).output().unwrap();
    let heard = said_by(&output);
    assert!(!output.status.success() && heard.contains("Input/output error"), "{heard}");
    suspended("room to grow");
    is_back();
    let said = home.fails("down", 1);
    assert!(said.contains("cannot close 'tank'") && said.contains("out of space"), "{said}");
    daemon.end_somehow();
    // There is still no room: no message advises to destroy a pool that is whole.
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let status = home.run("zpool status");
    assert!(!status.contains("Destroy") && !status.contains("re-create"), "{status}");
    mount("remount,size=1G");
    home.run("zpool clear tank");
    is_back();
    run(command("nbdcopy").arg("--flush").arg(&large).arg(uri("more")));
    daemon.end();
    home.run("zpool export tank");
    zdb::assert_clean(&host, "tank");
    run(command("umount").arg(&host));
}
