//! Clients that die, and unmounting what is in use.

use crate::bench::{Bench, NEEDS};
use interop::harness::{Need, Trial, trial};
use interop::programs::command;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let namespaces = [&NEEDS[..], &[Need::Program("unshare")]].concat();
    vec![
        trial("a_client_that_is_killed_while_it_writes_leaves_a_good_file_system", &NEEDS, killed),
        trial("what_is_in_use_is_unmounted_by_force_alone", &NEEDS, busy),
        trial("by_force_no_other_mount_is_ended", &NEEDS, others),
        trial("requests_that_wait_for_ever_do_not_keep_it_mounted", &NEEDS, stuck),
        trial("somebody_else_may_unmount_it", &NEEDS, elsewhere),
        trial("what_another_namespace_has_stays_and_is_ended_by_force", &namespaces, other_namespace),
        trial("what_is_bound_elsewhere_stays_and_is_ended_by_force", &NEEDS, bound),
        trial("what_was_moved_is_said_to_be_and_is_ended_by_force", &NEEDS, moved),
        trial("what_hides_a_mount_is_named_and_stays", &NEEDS, covered),
        trial("a_mount_by_a_symbolic_link_can_be_taken_away", &NEEDS, by_link),
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

/// The kernel gave the number of a connection that had just ended to the next mount, of any program, which was ended in its
/// place.
fn others() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    let is_over = AtomicBool::new(false);
    let at = ["a", "b"].map(|name| bench.beside(name));
    let ended: usize = std::thread::scope(|scope| {
        let others = at.each_ref().map(|at| scope.spawn(|| mount_and_unmount(at, &is_over)));
        for _ in 0..150 {
            bench.unmount(true).unwrap();
            bench.mount();
            assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
        }
        is_over.store(true, Ordering::SeqCst);
        others.map(|other| other.join().unwrap()).iter().sum()
    });
    assert_eq!(ended, 0, "mounts of other programs were ended");
}

/// Another program that mounts and unmounts: how many of its connections were ended while they were mounted.
fn mount_and_unmount(at: &Path, is_over: &AtomicBool) -> usize {
    std::fs::create_dir(at).unwrap();
    let mut ended = 0;
    while !is_over.load(Ordering::SeqCst) {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("other", at, "fuse", MountFlags::empty(), &*options).unwrap();
        std::thread::sleep(Duration::from_micros(200));
        let mut asked = [PollFd::new(&device, PollFlags::empty())];
        ended += rustix::event::poll(&mut asked, Some(&Timespec::default())).unwrap();
        rustix::mount::unmount(at, UnmountFlags::DETACH).unwrap();
    }
    ended
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

/// As a container has it that was made while it was mounted: unmounting takes it away here, and not there. Then writes went
/// to the directory below.
fn other_namespace() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    // What other tests have mounted does not live on there.
    let script = "awk -v own=\"$0\" '$3 == \"fuse\" && $2 != own { print $2 }' /proc/mounts | xargs -r umount -l; exec sleep 100";
    let mut container = command("unshare");
    container.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(bench.root());
    let mut container = container.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let process = format!("mount namespace of process {} (", container.id());
    stays(&bench, units::Kind::Busy, &process);
    container.kill().unwrap();
    container.wait().unwrap();
}

fn mount(words: &[&str], paths: [&std::path::Path; 2]) {
    interop::programs::run(command("mount").args(words).args(paths));
}

/// It is refused, and nothing has changed; by force it ends.
fn stays(bench: &Bench, kind: units::Kind, why: &str) {
    for _ in 0..2 {
        let said = bench.unmount(false).unwrap_err();
        assert_eq!(said.kind(), kind, "{said}");
        let cause = said.cause().map_or_else(String::new, |why| why.to_string());
        assert!(cause.contains(why), "{said}: {cause}");
        assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
    }
    bench.unmount(true).unwrap();
    assert!(!bench.root().join("f").exists());
    bench.mount();
    assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
}

/// It was unmounted here, lived on there, and was still called mounted.
fn bound() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    std::fs::create_dir(bench.root().join("sub")).unwrap();
    let there = bench.beside("bound");
    std::fs::create_dir(&there).unwrap();
    for from in [bench.root(), bench.root().join("sub")] {
        mount(&["--bind"], [&from, &there]);
        stays(&bench, units::Kind::Busy, &format!("mounted at '{}' as well", there.display()));
        interop::programs::run(command("umount").arg(&there));
    }
    bench.unmount(false).unwrap();
    bench.mount();
    // What goes along with it does not keep it: a copy in a directory that shows the same mounts.
    let (above, copy) = (bench.beside("above"), bench.beside("copy"));
    for dir in [&above, &copy] {
        std::fs::create_dir(dir).unwrap();
    }
    mount(&["--bind"], [&above, &above]);
    interop::programs::run(command("mount").arg("--make-shared").arg(&above));
    std::fs::create_dir(above.join("mnt")).unwrap();
    mount(&["--bind"], [&above, &copy]);
    mount(&["--bind"], [&bench.root(), &above.join("mnt")]);
    assert!(copy.join("mnt/f").exists());
    interop::programs::run(command("umount").arg(above.join("mnt")));
    assert!(!copy.join("mnt/f").exists());
    for dir in [&copy, &above] {
        interop::programs::run(command("umount").arg(dir));
    }
    bench.unmount(false).unwrap();
}

/// It was said that another file system was mounted over it, by force too.
fn moved() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    let there = bench.beside("moved");
    std::fs::create_dir(&there).unwrap();
    // As `mount --move` has it, which a shared directory above does not let pass.
    mount(&["--bind"], [&bench.root(), &there]);
    interop::programs::run(command("umount").arg(bench.root()));
    let said = bench.unmount(false).unwrap_err();
    let cause = said.cause().map_or_else(String::new, |why| why.to_string());
    assert!(cause.contains(&format!("mounted at '{}', and at", there.display())), "{said}: {cause}");
    assert!(bench.stays() && there.join("f").exists());
    bench.unmount(true).unwrap();
    assert!(std::fs::read_dir(&there).is_err(), "its users get errors");
    interop::programs::run(command("umount").arg(&there));
    bench.mount();
    assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
}

fn covered() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    interop::programs::run(command("mount").args(["-t", "tmpfs", "none"]).arg(bench.root()));
    for force in [false, true] {
        let said = bench.unmount(force).unwrap_err();
        let cause = said.cause().map_or_else(String::new, |why| why.to_string());
        assert!(cause.starts_with("another file system is mounted over it"), "{cause}");
    }
    interop::programs::run(command("umount").arg(bench.root()));
    assert_eq!(std::fs::read_to_string(bench.root().join("f")).unwrap(), "kept");
    std::fs::create_dir(bench.root().join("sub")).unwrap();
    interop::programs::run(command("mount").args(["-t", "tmpfs", "none"]).arg(bench.root().join("sub")));
    let said = bench.unmount(false).unwrap_err();
    let cause = said.cause().map_or_else(String::new, |why| why.to_string());
    let below = format!("'{}' is mounted below it", bench.root().join("sub").display());
    assert_eq!((said.kind(), cause), (units::Kind::Busy, below));
    interop::programs::run(command("umount").arg(bench.root().join("sub")));
    bench.unmount(false).unwrap();
}

/// The number of its device was that of the link, so that it counted as hidden, and could not be unmounted.
fn by_link() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("f"), "kept").unwrap();
    bench.unmount(false).unwrap();
    let real = bench.beside("real");
    std::fs::rename(bench.root(), &real).unwrap();
    std::os::unix::fs::symlink(&real, bench.root()).unwrap();
    bench.mount();
    assert!(real.join("f").exists() && bench.stays());
    bench.unmount(false).unwrap();
    assert!(!real.join("f").exists());
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
