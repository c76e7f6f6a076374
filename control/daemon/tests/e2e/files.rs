//! File systems in the machine's own tree: who mounts, when, and what a killed daemon leaves.

use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use std::fs;
use std::path::{Path, PathBuf};

pub const FUSE: Need = Need::Other("/dev/fuse", || Path::new("/dev/fuse").exists());
const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("file_systems_are_mounted_where_and_as_their_properties_say", &[FUSE, ROOT], properties),
        trial("a_daemon_that_was_killed_mounts_again_what_it_had_mounted", &[FUSE, ROOT], killed),
        trial("a_daemon_that_was_told_so_mounts_by_itself", &[FUSE, ROOT], by_itself),
        trial("without_a_daemon_nothing_is_mounted", &[], none_runs),
    ]
}

/// A pool of a home whose file systems go into a directory of the test.
fn home() -> (Home, PathBuf) {
    let home = Home::with_pool();
    let at = home.scratch.join("mnt");
    home.run(&format!("zfs set mountpoint={} tank", at.display()));
    (home, at)
}

fn properties() {
    let (home, at) = home();
    let elsewhere = home.scratch.join("elsewhere");
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run(&format!("zfs create -o mountpoint={} -o readonly=on tank/b", elsewhere.display()));
    home.run("zfs create -o canmount=off tank/off");
    home.run("zfs create -o canmount=noauto tank/later");
    home.run("zfs create -s -V 16M tank/v");
    assert_eq!(home.run("zfs mount"), "");
    home.run("zfs mount -a");
    let listed = home.run("zfs list -H -o name,mounted -t filesystem");
    assert_eq!(listed, "tank\tyes\ntank/a\tyes\ntank/b\tyes\ntank/later\tno\ntank/off\tno\n");
    fs::write(at.join("a/f"), "kept").unwrap();
    assert!(fs::write(elsewhere.join("f"), "").is_err());
    for (line, said) in [
        ("zfs mount tank/a", "cannot mount 'tank/a': filesystem already mounted"),
        ("zfs mount tank/off", "cannot mount 'tank/off': 'canmount' property is set to 'off'"),
        ("zfs mount tank/v", "cannot mount 'tank/v': it is no file system"),
        ("zfs mount tank/none", "cannot open 'tank/none': dataset does not exist"),
        ("zfs unmount tank/later", "cannot unmount 'tank/later': not currently mounted"),
        ("zfs unmount /nowhere", "cannot unmount '/nowhere': not currently mounted"),
    ] {
        assert_eq!(home.fails(line, 1), said);
    }
    home.run("zfs mount -o ro tank/later");
    assert!(fs::write(at.join("later/f"), "").is_err());
    // What is in use stays where it is, and is not taken away.
    let held = fs::File::open(at.join("a/f")).unwrap();
    let busy = format!("cannot unmount '{}': pool or dataset is busy", at.join("a").display());
    for line in ["zfs unmount tank/a", "zfs destroy tank/a", "zfs rename tank/a tank/c", "zpool export tank"]
    {
        let said = home.fails(line, 1);
        assert!(
            said.starts_with(&busy) && said.contains(&format!("process {} (", std::process::id())),
            "{said}"
        );
    }
    drop(held);
    home.run("zfs mount -a");
    home.run("zfs rename tank/a tank/c");
    assert_eq!(fs::read_to_string(at.join("c/f")).unwrap(), "kept");
    home.run("zfs set readonly=on tank/c");
    assert!(fs::write(at.join("c/f"), "").is_err());
    home.run("zfs inherit readonly tank/c");
    fs::write(at.join("c/f"), "changed").unwrap();
    home.run(&format!("zfs unmount {}", at.join("c").display()));
    assert!(!at.join("c/f").exists());
    home.run("zpool export tank");
    assert_eq!(home.run("zfs mount"), "");
    home.run("down");
    daemon.has_ended();
}

fn killed() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run("zfs mount tank");
    home.run("zfs mount tank/a");
    fs::write(at.join("a/f"), "kept").unwrap();
    fs::File::open(at.join("a/f")).unwrap().sync_all().unwrap();
    daemon.kill();
    assert!(fs::read_dir(&at).is_err(), "it is dead");
    let (mut daemon, _) = home.start(SERVE);
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    assert_eq!(fs::read_to_string(at.join("a/f")).unwrap(), "kept");
    home.run("zfs unmount tank");
    home.run("zfs mount tank/a");
    home.run("down");
    daemon.has_ended();
    assert!(!at.join("a/f").exists(), "it has unmounted");
    let (mut daemon, _) = home.start(SERVE);
    assert_eq!(fs::read_to_string(at.join("a/f")).unwrap(), "kept", "what was mounted is mounted again");
    home.run("zfs unmount -a");
    home.run("down");
    daemon.has_ended();
}

fn by_itself() {
    let (home, at) = home();
    home.run("zfs create tank/a");
    let (mut daemon, _) = home.start(&format!("{SERVE} --mount"));
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    home.run("zfs create tank/a/b");
    home.run("zfs create -u tank/not");
    fs::write(at.join("a/b/f"), "kept").unwrap();
    let mounted = home.run("zfs list -H -o name,mounted");
    assert_eq!(mounted, "tank\tyes\ntank/a\tyes\ntank/a/b\tyes\ntank/not\tno\n");
    home.run("zpool export tank");
    assert!(!at.join("a/b").exists());
    let dir = home.scratch.path().display().to_string();
    home.run(&format!("zpool import -N -d {dir} tank"));
    assert_eq!(home.run("zfs mount"), "");
    home.run("zpool export tank");
    home.run(&format!("zpool import -d {dir} tank"));
    assert_eq!(fs::read_to_string(at.join("a/b/f")).unwrap(), "kept");
    home.run("zfs destroy -r tank/a");
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    home.run("down");
    daemon.has_ended();
}

fn none_runs() {
    let (home, at) = home();
    let why = "the daemon mounts file systems, and none runs; 'cenote serve' starts one";
    assert_eq!(home.fails("zfs mount tank", 1), format!("cannot mount 'tank': {why}"));
    assert_eq!(home.fails("zfs unmount tank", 1), "cannot unmount 'tank': not currently mounted");
    assert_eq!(home.run("zfs mount"), "");
    assert!(!at.exists());
}
