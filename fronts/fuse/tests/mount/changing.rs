//! Options that change while a mount is used.

use crate::bench::{Bench, NEEDS};
use fuse::{Options, Snapshots};
use interop::harness::{Trial, trial};
use interop::programs::command;
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("options_change_in_place_while_files_are_open_and_others_are_mounted_below", &NEEDS, in_place),
        trial("what_is_written_to_is_not_made_read_only_and_all_else_is_in_force", &NEEDS, written_to),
        trial("a_mount_that_was_begun_read_only_comes_to_be_written", &NEEDS, made_writable),
    ]
}

/// The options of the mount at a place, as the kernel has them.
fn flags(at: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == at.to_str()).unwrap();
    line.split(' ').nth(3).unwrap().split(",user_id").next().unwrap().into()
}

fn in_place() {
    let bench = Bench::new();
    let root = bench.root();
    fs::write(root.join("f"), "kept").unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    let bound = bench.beside("bound");
    fs::create_dir(&bound).unwrap();
    interop::programs::run(command("mount").args(["-t", "tmpfs", "none"]).arg(root.join("sub")));
    interop::programs::run(command("mount").arg("--bind").args([&root, &bound]));
    let held = File::open(root.join("f")).unwrap();
    let number = fs::metadata(&root).unwrap().dev();
    assert_eq!(flags(&root), "rw,nosuid,nodev,relatime");
    let steps: [(fn(&mut Options), &str); 6] = [
        (|o| o.exec = false, "rw,nosuid,nodev,noexec,relatime"),
        (|o| o.atime = false, "rw,nosuid,nodev,noexec,noatime"),
        (|o| (o.setuid, o.devices, o.atime) = (true, true, true), "rw,noexec,relatime"),
        (|o| o.read_only = true, "ro,noexec,relatime"),
        (|o| (o.exec, o.setuid, o.devices) = (true, false, false), "ro,nosuid,nodev,relatime"),
        (|o| o.read_only = false, "rw,nosuid,nodev,relatime"),
    ];
    for (change, expected) in steps {
        bench.change(change).unwrap();
        assert_eq!(flags(&root), expected);
        let writes = fs::write(root.join("g"), "x").map_err(|e| Errno::from_io_error(&e).unwrap());
        let there = fs::write(bound.join("g"), "x").map_err(|e| Errno::from_io_error(&e).unwrap());
        let is_read_only = expected.starts_with("ro");
        assert_eq!(
            (writes, there),
            if is_read_only { (Err(Errno::ROFS), Err(Errno::ROFS)) } else { (Ok(()), Ok(())) }
        );
    }
    // What is listed changes too.
    let lists = || fs::read_dir(&root).unwrap().any(|item| item.unwrap().file_name() == ".zfs");
    assert!(!lists() && root.join(".zfs/snapshot").exists());
    let inside = File::open(root.join(".zfs/snapshot")).unwrap();
    bench.change(|o| o.snapshots = Snapshots::Visible).unwrap();
    assert!(lists());
    bench.change(|o| o.snapshots = Snapshots::Disabled).unwrap();
    assert!(!lists());
    // The kernel believes for a second what it was told.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(!root.join(".zfs").exists() && !root.join(".zfs/snapshot").exists());
    assert!(rustix::fs::statat(&inside, "none", rustix::fs::AtFlags::empty()).is_err());
    bench.change(|o| o.snapshots = Snapshots::Hidden).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(root.join(".zfs/snapshot").exists());
    drop(inside);
    assert_eq!(fs::metadata(&root).unwrap().dev(), number, "it is the same mount");
    drop(held);
    for at in [&root.join("sub"), &bound] {
        interop::programs::run(command("umount").arg(at));
    }
    bench.unmount(false).unwrap();
}

fn written_to() {
    let bench = Bench::new();
    let root = bench.root();
    let held = File::create(root.join("f")).unwrap();
    let said = bench.change(|o| (o.read_only, o.exec) = (true, false)).unwrap_err();
    assert_eq!(said.kind(), units::Kind::Busy, "{said}");
    assert_eq!(flags(&root), "rw,nosuid,nodev,noexec,relatime");
    fs::write(root.join("g"), "x").unwrap();
    drop(held);
    bench.change(|o| (o.read_only, o.exec) = (true, false)).unwrap();
    assert_eq!(flags(&root), "ro,nosuid,nodev,noexec,relatime");
}

/// Its files were opened to be read alone, also those that the kernel remembers and that programs have open.
fn made_writable() {
    let bench = Bench::new();
    let root = bench.root();
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/f"), "kept").unwrap();
    fs::write(root.join("dir/held"), "held").unwrap();
    bench.unmount(false).unwrap();
    bench.mount_as(|o| o.read_only = true);
    assert!(fs::write(root.join("dir/f"), "").is_err());
    let held = File::open(root.join("dir/held")).unwrap();
    bench.change(|o| o.read_only = false).unwrap();
    fs::write(root.join("dir/f"), "changed").unwrap();
    fs::write(root.join("new"), "new").unwrap();
    assert_eq!(fs::read_to_string(root.join("dir/f")).unwrap(), "changed");
    // It lives until it is closed.
    fs::remove_file(root.join("dir/held")).unwrap();
    command("sync").status().unwrap();
    let mut bytes = [0; 4];
    rustix::io::pread(&held, &mut bytes, 0).unwrap();
    assert_eq!((&bytes, held.metadata().unwrap().nlink()), (b"held", 0));
    drop(held);
    bench.unmount(false).unwrap();
    bench.mount_as(|o| o.read_only = false);
    assert_eq!(fs::read_to_string(root.join("dir/f")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(root.join("new")).unwrap(), "new");
}
