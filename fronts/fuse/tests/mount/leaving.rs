//! Clients that die, and unmounting what is in use.

use crate::bench::{Bench, NEEDS};
use interop::harness::{Need, Trial, trial};
use interop::programs::command;
use rustix::io::Errno;
use std::fs::File;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let namespaces = [&NEEDS[..], &[Need::Program("unshare")]].concat();
    vec![
        trial("a_client_that_is_killed_while_it_writes_leaves_a_good_file_system", &NEEDS, killed),
        trial("what_is_in_use_is_unmounted_by_force_alone", &NEEDS, busy),
        trial("requests_that_wait_for_ever_do_not_keep_it_mounted", &NEEDS, stuck),
        trial("somebody_else_may_unmount_it", &NEEDS, elsewhere),
        trial("what_lives_on_in_another_namespace_is_ended_by_force", &namespaces, other_namespace),
        trial("what_lives_on_while_a_file_is_open_is_ended_by_force", &NEEDS, detached),
        trial("a_directory_with_something_in_it_is_mounted_over_only_if_that_is_allowed", &NEEDS, overlay),
    ]
}

fn killed() {
    let bench = Bench::new();
    for _ in 0..3 {
        let script = "i=0; while :; do i=$((i+1)); head -c 300000 /dev/zero | tr '\\0' x > f$((i % 5)); mv f$((i % 5)) g; done";
        let mut client = command("sh").arg("-c").arg(script).current_dir(bench.root()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        client.kill().unwrap();
        client.wait().unwrap();
    }
    std::fs::write(bench.root().join("after"), "good").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    bench.unmount(false).unwrap();
    bench.mount();
    assert_eq!(std::fs::read_to_string(bench.root().join("after")).unwrap(), "good");
    let whole = std::fs::read(bench.root().join("g")).unwrap();
    assert!(whole.iter().all(|b| *b == b'x'));
}

/// More than a mount has room for, none of which is answered: the kernel has nothing left to say the end in.
fn stuck() {
    let bench = Bench::new();
    bench.is_stuck.store(true, Ordering::SeqCst);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let root = bench.root();
            std::thread::spawn(move || rustix::fs::statfs(root).err())
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    bench.unmount(true).unwrap();
    for waits in waiting {
        assert_eq!(waits.join().unwrap(), Some(Errno::CONNABORTED));
    }
    bench.is_stuck.store(false, Ordering::SeqCst);
    bench.mount();
    assert!(rustix::fs::statfs(bench.root()).is_ok());
}

fn busy() {
    let bench = Bench::new();
    let path = bench.root().join("f");
    std::fs::write(&path, "before").unwrap();
    let held = File::open(&path).unwrap();
    assert_eq!(bench.unmount(false).unwrap_err().kind(), units::Kind::Busy);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before", "it goes on as before");
    let script = "while :; do echo x >> load || exit 1; done";
    let mut client =
        command("sh").arg("-c").arg(script).current_dir(bench.root()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    bench.unmount(true).unwrap();
    assert!(!path.exists());
    // What the kernel has of a file may still be read; anything more is an error.
    let error = held.sync_all().unwrap_err();
    assert!(
        matches!(Errno::from_io_error(&error), Some(Errno::NOTCONN | Errno::CONNABORTED | Errno::IO)),
        "{error}"
    );
    assert!(!client.wait().unwrap().success(), "who uses it gets errors, and does not hang");
    drop(held);
    bench.mount();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert!(bench.root().join("load").exists());
}

fn elsewhere() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    interop::programs::run(command("umount").arg(bench.root()));
    assert!(!bench.root().join("f").exists());
    // The program notices, and gives everything back.
    assert!(!bench.stays());
    bench.unmount(false).unwrap();
    bench.mount();
    assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
}

/// As a container has it that was made while it was mounted: unmounting takes it away here, and not there.
fn other_namespace() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    // What other tests have mounted does not live on there.
    let script = "awk -v own=\"$0\" '$3 == \"fuse\" && $2 != own { print $2 }' /proc/mounts | xargs -r umount -l; exec sleep 100";
    let mut container = command("unshare");
    container.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(bench.root());
    let mut container = container.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    lives_on(&bench);
    container.kill().unwrap();
    container.wait().unwrap();
}

fn detached() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    let held = File::open(bench.root().join("f")).unwrap();
    interop::programs::run(command("umount").arg("-l").arg(bench.root()));
    lives_on(&bench);
    drop(held);
}

/// It is unmounted, and has not ended; what says so names the way out, which is one.
fn lives_on(bench: &Bench) {
    for _ in 0..2 {
        let said = bench.unmount(false).unwrap_err();
        let why = said.cause().map_or_else(String::new, |why| why.to_string());
        assert!(why.contains("lives on") && why.contains("'zfs unmount -f' ends it there"), "{said}: {why}");
        assert!(!bench.root().join("f").exists());
    }
    bench.unmount(true).unwrap();
    bench.mount();
    assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
}

fn overlay() {
    let bench = Bench::new();
    bench.unmount(false).unwrap();
    std::fs::write(bench.root().join("below"), "").unwrap();
    bench.mount();
    assert!(!bench.root().join("below").exists(), "it is hidden");
    bench.unmount(false).unwrap();
    assert!(bench.root().join("below").exists());
}
