//! What goes is given up by the mounts that have it.

use crate::files::{FUSE, SERVE, home};
use interop::harness::{ROOT, Trial, trial};
use std::fs;
use std::os::unix::fs::FileExt;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_snapshot_is_given_up_before_it_goes_whatever_makes_it_go", &[FUSE, ROOT], given_up),
        trial("two_that_are_mounted_at_one_place_are_destroyed_together", &[FUSE, ROOT], one_place),
    ]
}

/// A snapshot that went with its last hold, or its last clone, was read on, where others wrote by then: errors of a healthy
/// device, or files of others. So was one that was entered by one name and destroyed by another.
fn given_up() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run("zfs mount tank/a");
    let at = at.join("a");
    fs::write(at.join("f"), vec![7; 1 << 20]).unwrap();
    let open = |name: &str| {
        home.run(&format!("zfs snapshot tank/a@{name}"));
        fs::File::open(at.join(format!(".zfs/snapshot/{name}/f"))).unwrap()
    };
    let gone = |name: &str, file: &fs::File| {
        home.fails(&format!("zfs list tank/a@{name}"), 1);
        // What the kernel has of it may still be shown; what it asks for is not there.
        let e = file.read_at(&mut [0; 4096], 0).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(rustix::io::Errno::STALE.raw_os_error()), "{name}: {e}");
    };
    let held = open("held");
    home.run("zfs hold k tank/a@held");
    home.run("zfs destroy -d tank/a@held");
    assert!(held.metadata().is_ok(), "it is only put off");
    home.run("zfs release k tank/a@held");
    gone("held", &held);
    let cloned = open("cloned");
    home.run("zfs clone tank/a@cloned tank/c");
    home.run("zfs destroy -d tank/a@cloned");
    assert!(cloned.metadata().is_ok(), "it is only put off");
    home.run("zfs destroy tank/c");
    gone("cloned", &cloned);
    drop(open("old"));
    home.run("zfs rename tank/a@old tank/a@new");
    let renamed = fs::File::open(at.join(".zfs/snapshot/new/f")).unwrap();
    home.run("zfs destroy tank/a@new");
    gone("new", &renamed);
    // One that is entered again and again is destroyed all the same.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::read(at.join(".zfs/snapshot/raced/f"));
                }
            });
        }
        for _ in 0..10 {
            home.run("zfs snapshot tank/a@raced");
            home.run("zfs destroy tank/a@raced");
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(home.run("zpool status tank").contains("errors: No known data errors"));
    daemon.end();
}

/// The lower one was to be unmounted first, which the other lay over.
fn one_place() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create tank/y");
    for name in ["a", "b"] {
        home.run(&format!("zfs create -o mountpoint={}/same tank/y/{name}", at.display()));
        home.run(&format!("zfs mount -O tank/y/{name}"));
    }
    home.run("zfs destroy -r tank/y");
    home.fails("zfs list tank/y", 1);
    daemon.end();
}
