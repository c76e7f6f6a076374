//! The daemon with its default settings in a control group that has little memory, beside others that take more of it.
//!
//! It writes and reads twice what the group has. Then files in tmpfs, charged to the same group, grow by 80 MiB in a
//! second at most, until less is left than the cache alone had: the cache gives way, else the kernel ends a process. When
//! they go, the cache gets back what it had.

use crate::home::{CENOTE, Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const GROUP: u64 = 400 * MIB;
/// The files in tmpfs, and how many there are.
const PIECE: u64 = 4 * MIB;
const PIECES: u64 = 68;
const VOLUME: u64 = 768 * MIB;
const PATIENCE: Duration = Duration::from_secs(60);

pub const GROUPS: Need =
    Need::Other("a control group for memory that can be made", || Group::make("probe", GROUP).is_some());

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "a_small_control_group_is_shared_with_others",
        &[Need::Program("nbdcopy"), GROUPS],
        shared_with_others,
    )]
}

/// Gone when it is dropped, if it has no process any more.
pub struct Group(PathBuf);

impl Group {
    /// Of version 2 or 1, with a limit in bytes.
    pub fn make(name: &str, bytes: u64) -> Option<Group> {
        let trees = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        trees.into_iter().find_map(|(tree, limit)| {
            let group = Group(Path::new(tree).join(format!("cenote-{name}-{}", std::process::id())));
            std::fs::create_dir(&group.0).ok()?;
            // Elsewhere it is a folder like any other.
            let is_group = group.0.join("cgroup.procs").exists();
            (is_group && std::fs::write(group.0.join(limit), bytes.to_string()).is_ok()).then_some(group)
        })
    }

    /// A shell in the group that does this.
    pub fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("echo $$ > '{}' && {script}", self.0.join("cgroup.procs").display()));
        shell
    }

    /// What the kernel says of its memory, by kind.
    fn statistics(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.0.join(name)).unwrap_or_default();
        ["memory.current", "memory.usage_in_bytes", "memory.stat"].map(read).concat()
    }

    /// The most that it held, in bytes, and how many of its processes the kernel ended for want of memory.
    pub fn account(&self) -> (u64, u64) {
        let read = |name: &str| std::fs::read_to_string(self.0.join(name)).unwrap_or_default();
        let peak = [read("memory.peak"), read("memory.max_usage_in_bytes")].concat();
        let events = [read("memory.events"), read("memory.oom_control")].concat();
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        (peak.trim().parse().unwrap(), killed.unwrap_or_else(|| panic!("{events}")).trim().parse().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Files in tmpfs, gone when it is dropped.
pub struct Pieces(pub PathBuf);

impl Drop for Pieces {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the cache may have now, in bytes.
pub fn limit(home: &Home) -> u64 {
    let status = home.run("status -j");
    let limit = status.split("\"arc_limit\":").nth(1).unwrap_or_else(|| panic!("{status}"));
    limit.split(',').next().unwrap().parse().unwrap()
}

fn wait_for(home: &Home, group: &Group, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
    let begun = Instant::now();
    loop {
        let limit = limit(home);
        if is_so(limit) {
            return limit;
        }
        if begun.elapsed() > PATIENCE {
            panic!(
                "{what}: the cache may have {limit} bytes\n{}\n{}",
                home.run("status -j"),
                group.statistics()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn shared_with_others() {
    let group = Group::make("shared", GROUP).unwrap();
    let home = Home::new();
    let disk = home.scratch.join("disk");
    std::fs::File::create(&disk).unwrap().set_len(2 << 30).unwrap();
    let mut start = group.shell(r#"exec "$0" "$@""#);
    start.arg(CENOTE).arg("--home").arg(home.dir()).args(["serve", "--listen", "127.0.0.1:0"]);
    let (daemon, _) = Daemon::started_by(start.current_dir(home.scratch.path()));
    let all = limit(&home);
    assert!(all <= GROUP / 2, "{all} bytes for the cache of a group that has {GROUP}");
    home.run(&format!("zpool create tank {}", disk.display()));
    home.run(&format!("zfs create -s -V {VOLUME} -b 64K tank/v"));
    let uri = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());

    let source = home.scratch.join("source");
    let mut noise = sim::Rng::new(2);
    let bytes: Vec<u8> = (0..VOLUME / 8).flat_map(|_| noise.next_u64().to_le_bytes()).collect();
    std::fs::write(&source, bytes).unwrap();
    run(command("nbdcopy").arg(&source).arg(&uri));
    run(command("nbdcopy").arg(&uri).arg("null:"));

    let pieces = Pieces(PathBuf::from(format!("/dev/shm/cenote-group-{}", std::process::id())));
    std::fs::create_dir(&pieces.0).unwrap();
    let grow = format!(
        "for n in $(seq {PIECES}); do head -c {PIECE} /dev/zero > {}/$n || exit 1; sleep .05; done",
        pieces.0.display()
    );
    let mut others = group.shell(&grow).spawn().unwrap();
    let mut reader = command("nbdcopy").arg(&uri).arg("null:").stdout(Stdio::null()).spawn().unwrap();
    assert!(others.wait().unwrap().success(), "there was room for the others");
    assert!(reader.wait().unwrap().success(), "the daemon served meanwhile");
    let less = wait_for(&home, &group, "beside others", |limit| limit < all / 4 * 3);
    drop(pieces);
    wait_for(&home, &group, "alone again", |limit| limit == all);
    println!("the cache may have {} MiB, beside others {} MiB", all / MIB, less / MIB);
    run(command("nbdcopy").arg(&uri).arg("null:"));
    daemon.end();
}
