//! What stands in the way of a mount, or of all: pools that are suspended, and paths that lead back into the daemon itself.

use crate::files::FUSE;
use crate::home::{CENOTE, Daemon, Home};
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run, said};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https --arc-max 64M";
/// In seconds; what does not wait for itself takes a moment, on a busy machine some.
const PATIENCE: &str = "120";
const ROOM: &str = "size=48M";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_daemon_does_not_wait_for_files_that_it_serves_itself", &[FUSE, ROOT], itself),
        trial(
            "a_suspended_pool_holds_up_no_mounts_of_others_and_is_unmounted_by_force",
            &[FUSE, ROOT, Need::Program("timeout")],
            suspended,
        ),
        trial("a_half_of_a_mirror_whose_host_is_full_is_said_to_be_behind", &[FUSE, ROOT], half_full),
        trial(
            "a_device_on_a_server_that_does_not_answer_holds_up_nothing_else",
            &[FUSE, ROOT, Need::Program("timeout")],
            unanswered,
        ),
        trial(
            "what_waits_for_a_device_of_one_pool_holds_up_no_other_pool",
            &[FUSE, ROOT, Need::Program("timeout"), Need::Program("qemu-img")],
            waiting,
        ),
        trial("what_was_mounted_over_others_is_unmounted_first", &[FUSE, ROOT], hidden),
    ]
}

/// A command that must come to an end: a daemon that waits for itself answers none.
fn bounded(home: &Home, line: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", PATIENCE, CENOTE, "--home"]).arg(home.dir()).args(line.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.code().is_some_and(|code| code <= 2), "{line} does not end: {}", said(&output));
    output
}

fn refused(home: &Home, line: &str) -> String {
    let output = bounded(home, line);
    assert!(!output.status.success(), "{line}: {}", said(&output));
    said(&output)
}

/// `zpool import -d` of a directory below a mount stopped a loop in a call that the same loop was to answer: the daemon
/// served nothing any more. A pool made there went on until its first sync, and then the daemon could not even be killed.
fn itself() {
    let home = Home::with_pool();
    let at = home.scratch.join("mnt");
    home.run(&format!("zfs set mountpoint={} tank", at.display()));
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    for i in 0..40 {
        std::fs::create_dir_all(at.join(format!("d{i}"))).unwrap();
        std::fs::write(at.join(format!("d{i}/x.img")), vec![1; 100_000]).unwrap();
    }
    std::fs::File::create(at.join("in.img")).unwrap().set_len(128 << 20).unwrap();
    let link = home.scratch.join("link");
    symlink(at.join("d1"), &link).unwrap();
    daemon.end();
    // Nothing is in memory each time, so that each question has to wait for the devices.
    let cold = |each: &dyn Fn()| {
        let (daemon, _) = home.start(SERVE);
        each();
        assert!(said(&bounded(&home, "zpool list -H -o name")).contains("tank"));
        daemon.end();
    };
    for path in [at.clone(), at.join("d2"), at.join("in.img"), link.clone(), link.join("x.img")] {
        cold(&|| drop(bounded(&home, &format!("zpool import -d {}", path.display()))));
    }
    let real = at.canonicalize().unwrap();
    for path in [at.join("in.img"), link.join("../in.img"), link.join("x.img")] {
        cold(&|| {
            let text = refused(&home, &format!("zpool create inner {}", path.display()));
            let why = format!("it lies in '{}', whose files this process serves itself", real.display());
            assert!(text.contains(&why), "{text}");
        });
    }
    cold(&|| drop(refused(&home, &format!("zpool labelclear {}", at.join("d3/x.img").display()))));
    // Once it is unmounted it is a directory as any other.
    let (daemon, _) = home.start(SERVE);
    home.run("zfs unmount tank");
    let beside = at.join("beside.img");
    std::fs::File::create(&beside).unwrap().set_len(128 << 20).unwrap();
    home.run(&format!("zpool create inner {}", beside.display()));
    daemon.end();
}

/// A host that has no room, as long as there is one of these.
struct Host(PathBuf);

impl Host {
    fn new(at: PathBuf) -> Host {
        std::fs::create_dir(&at).unwrap();
        run(command("mount").args(["-t", "tmpfs", "-o", ROOM, "tmpfs"]).arg(&at));
        Host(at)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = command("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Writes what does not compress until it is killed, or refused.
struct Writer(Child);

impl Writer {
    fn new(into: &Path) -> Writer {
        let mut command = Command::new("dd");
        command.arg("if=/dev/urandom").arg(format!("of={}", into.display())).args(["bs=1M", "count=400"]);
        Writer(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn ends(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `zfs unmount -f` waited for requests that waited for the pool, and with it each mount of each other pool.
fn suspended() {
    let home = Home::new();
    let host = Host::new(home.scratch.join("host"));
    let full = host.0.join("a.img");
    std::fs::File::create(&full).unwrap().set_len(1 << 30).unwrap();
    let (ill, well) = (home.scratch.join("ill"), home.scratch.join("well"));
    home.run(&format!("zpool create -O mountpoint={} ill {}", ill.display(), full.display()));
    home.run(&format!("zpool create -O mountpoint={} well {}", well.display(), home.disk("b.img")));
    for name in ["ill/f", "ill/g", "well/f"] {
        home.run(&format!("zfs create {name}"));
    }
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount ill");
    home.run("zfs mount ill/f");
    let writer = Writer::new(&ill.join("f/x"));
    let began = Instant::now();
    while !home.run("zpool list -H -o health ill").contains("SUSPENDED") {
        assert!(began.elapsed() < Duration::from_secs(300), "the host has room");
        std::thread::sleep(Duration::from_millis(100));
    }
    // What has to wait for the pool waits for nothing else's sake.
    let why = refused(&home, "zfs mount ill/g");
    assert!(why.starts_with("cannot mount 'ill/g': pool is suspended: "), "{why}");
    let mut force = home.cenote(&["zfs", "unmount", "-f", "ill/f"]).spawn().unwrap();
    for line in ["zfs mount well", "zfs mount well/f", "zfs unmount well"] {
        let output = bounded(&home, line);
        assert!(output.status.success(), "{line}: {}", said(&output));
    }
    assert!(force.wait().unwrap().success(), "by force it is unmounted");
    assert!(!home.run("zfs mount").contains("ill/f"));
    writer.ends();
    // With room the rest of it ends, and the file system can be had again.
    run(command("mount").args(["-o", "remount,size=900M"]).arg(&host.0));
    bounded(&home, "zpool clear ill");
    bounded(&home, "zpool sync ill");
    let output = bounded(&home, "zfs mount ill/f");
    assert!(output.status.success(), "{}", said(&output));
    assert!(std::fs::metadata(ill.join("f/x")).is_ok());
    daemon.end();
}

/// The pool was healthy by all that was said, and had one copy of what was written.
fn half_full() {
    let home = Home::new();
    let host = Host::new(home.scratch.join("host"));
    let (full, at) = (host.0.join("b.img"), home.scratch.join("mnt"));
    std::fs::File::create(&full).unwrap().set_len(512 << 20).unwrap();
    let [at_dir, full] = [&at, &full].map(|path| path.display().to_string());
    home.run(&format!("zpool create -O mountpoint={at_dir} tank mirror {} {full}", home.disk("a.img")));
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    let noise: Vec<u8> = (0..80u32 << 18)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 31).to_le_bytes())
        .collect();
    std::fs::write(at.join("f"), &noise).unwrap();
    home.run("zpool sync tank");
    let becomes = |wanted: &str| {
        let began = Instant::now();
        while !home.run("zpool status -x").contains(wanted) {
            assert!(began.elapsed() < Duration::from_secs(120), "{wanted}: {}", home.run("zpool status -v"));
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    becomes("status: One or more devices did not take all that was written, which the others");
    run(command("mount").args(["-o", "remount,size=900M"]).arg(&host.0));
    home.run("zpool clear tank");
    becomes("all pools are healthy");
    daemon.end();
}

/// A server that stands still until this is dropped.
struct Stopped(u32);

impl Stopped {
    fn new(daemon: &Daemon) -> Stopped {
        run(command("kill").arg("-STOP").arg(daemon.pid().to_string()));
        Stopped(daemon.pid())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = command("kill").arg("-CONT").arg(self.0.to_string()).status();
    }
}

/// Opening a file of a FUSE server that stood still was a call of a loop: no pool was served until the server went on.
fn unanswered() {
    let (home, other) = (Home::with_pool(), Home::with_pool());
    let at = other.scratch.join("mnt");
    other.run(&format!("zfs set mountpoint={} tank", at.display()));
    let (server, _) = other.start(SERVE);
    other.run("zfs mount tank");
    for name in ["far.img", "new.img"] {
        std::fs::File::create(at.join(name)).unwrap().set_len(128 << 20).unwrap();
    }
    let (daemon, _) = home.start(SERVE);
    home.run(&format!("zpool create far {}", at.join("far.img").display()));
    home.run("zfs create far/f");
    let stopped = Stopped::new(&server);
    let create = format!("zpool create new {}", at.join("new.img").display());
    let search = format!("zpool import -d {}", at.display());
    for line in [create.as_str(), &search, "zfs create far/g"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut asked = home.cenote(&words).stderr(Stdio::piped()).spawn().unwrap();
        // The other pool answers while this one is waited for, as long as the file system is given.
        for i in 0..3 {
            let name = format!("tank/{}{}{i}", words[0], words[1]);
            for line in [format!("zfs create {name}"), format!("zfs destroy {name}"), "zpool list -H".into()]
            {
                let output = bounded(&home, &line);
                assert!(output.status.success(), "{line}: {}", said(&output));
            }
        }
        assert!(asked.try_wait().unwrap().is_none(), "{line}: what is waited for here is not there any more");
        if line.starts_with("zfs") {
            // It goes on with the server.
            drop(stopped);
            assert!(asked.wait().unwrap().success());
            break;
        }
        let output = asked.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("the file system that it is in does not answer"), "{line}: {text}");
        // Another one does not wait in vain once more.
        let text = refused(&home, line);
        assert!(text.contains("does not answer"), "{line}: {text}");
    }
    let output = bounded(&home, &create);
    assert!(output.status.success(), "the server is there again: {}", said(&output));
    for line in ["zpool destroy new", "zpool destroy far"] {
        let output = bounded(&home, line);
        assert!(output.status.success(), "{line}: {}", said(&output));
    }
    daemon.end();
    server.end();
}

/// What may wait for a device of the pool `far`, of which one side of the mirror is silent. Each is begun while those before
/// it wait.
const WAITING: [&str; 14] = [
    "zpool offline far SILENT",
    "zpool detach far SILENT",
    "zpool attach far SILENT NEW",
    "zpool replace far SILENT NEW",
    "zpool add -f far log NEW",
    "zpool set comment=x far",
    "zpool reguid far",
    "zpool scrub far",
    "zpool sync far",
    "zpool clear far",
    "zpool export far",
    "zfs snapshot far/v@s",
    "zfs set volblocksize=32K far/v",
    "zfs destroy -r far/f",
];

/// Commands that took a device of a pool out of use, which is what is done when one does not answer, held the lock of all
/// pools while they waited for it: nothing could be asked for or done, and no client could begin.
fn waiting() {
    // The first of them held up the others; each is to be the first now and then.
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let first = seed as usize % WAITING.len();
    println!("beginning with {first}");
    let (home, other) = (Home::with_pool(), Home::with_pool());
    let at = other.scratch.join("mnt");
    other.run(&format!("zfs set mountpoint={} tank", at.display()));
    let (server, _) = other.start(SERVE);
    other.run("zfs mount tank");
    let silent = at.join("far.img");
    std::fs::File::create(&silent).unwrap().set_len(512 << 20).unwrap();
    home.run(&format!("zpool create far mirror {} {}", silent.display(), home.disk("near.img")));
    for line in ["zfs create far/f", "zfs create -s -V 16M far/v", "zfs create -s -V 16M tank/v"] {
        home.run(line);
    }
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create far/g");
    let client = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());
    let stopped = Stopped::new(&server);
    let mut asked: Vec<(String, Child)> = Vec::new();
    // Something is on its way to the silent side from the start.
    let order = (0..WAITING.len()).map(|i| WAITING[(first + i) % WAITING.len()]);
    for (i, line) in std::iter::once("zfs create far/h").chain(order).enumerate() {
        let new = home.disk(&format!("new{i}.img"));
        let line = line.replace("SILENT", &silent.display().to_string()).replace("NEW", &new);
        let words: Vec<&str> = line.split_whitespace().collect();
        let child = home.cenote(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        asked.push((line.clone(), child));
        let spare = home.disk(&format!("own{i}.img"));
        for other in [
            "zpool list -H -o name".into(),
            "zpool status tank".into(),
            format!("zfs create tank/{i}"),
            format!("zpool create own{i} {spare}"),
            format!("zpool export own{i}"),
        ] {
            let output = bounded(&home, &other);
            assert!(output.status.success(), "beside '{line}', '{other}': {}", said(&output));
        }
        run(command("timeout").args([PATIENCE, "qemu-img", "info", &client]));
    }
    let waits = |child: &mut Child| child.try_wait().unwrap().is_none();
    let left = asked.iter_mut().filter_map(|(_, child)| waits(child).then_some(())).count();
    let mut outcomes = Vec::new();
    drop(stopped);
    for (line, child) in asked {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{line}: {text}");
        assert!(!text.contains("panicked"), "{line}: {text}");
        outcomes.push(format!("{line}: {text}"));
    }
    assert!(left > 0, "nothing waits here any more: {outcomes:#?}");
    assert!(bounded(&home, "zpool list -H -o name").status.success());
    daemon.end();
    server.end();
}

/// A parent that was mounted after its child hid it, and neither could be unmounted: "pool or dataset is busy".
fn hidden() {
    let home = Home::with_pool();
    let at = home.scratch.join("mnt");
    home.run(&format!("zfs set mountpoint={} tank", at.display()));
    home.run("zfs create tank/f");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank/f");
    home.run("zfs mount -O tank");
    let why = refused(&home, "zfs unmount tank/f");
    assert!(why.contains("another file system is mounted over it"), "{why}");
    home.run("zfs unmount tank");
    assert_eq!(home.run("zfs mount"), "");
    daemon.end();
}
