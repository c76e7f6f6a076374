//! A home whose file system is full, while pools are on others: statistics are not kept, and say so; volumes are served as
//! before, and what was not kept is when there is room again.

use crate::api::through_the_socket;
use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, feed, find, output, run, said};
use std::process::Command;
use std::time::{Duration, Instant};

/// One that is kept from the first start on.
const STATISTIC: &str = "nbd.ops";
/// More than the 256 MiB that samples leave to others.
const ROOM: &str = "size=400M";
/// Samples are brought to disk once a minute.
const PATIENCE: Duration = Duration::from_secs(300);

pub fn trials() -> Vec<Trial> {
    let needs = [ROOT, Need::Program("qemu-io"), Need::Program("curl")];
    vec![trial("a_full_disk_below_the_samples_is_told_and_stops_no_volume", &needs, full)]
}

/// A home on a file system of its own.
struct Mounted(Home);

impl Mounted {
    fn new() -> Mounted {
        let home = Home::new();
        std::fs::create_dir(home.dir()).unwrap();
        run(command("mount").args(["-t", "tmpfs", "-o", ROOM, "tmpfs"]).arg(home.dir()));
        Mounted(home)
    }

    fn remount(&self, options: &str) -> bool {
        let remount = format!("remount,{options}");
        output(command("mount").args(["-o", &remount]).arg(self.0.dir())).status.success()
    }

    /// The file system ends where it is filled to now.
    fn fill(&self) {
        let began = Instant::now();
        loop {
            let of = rustix::fs::statvfs(self.0.dir()).unwrap();
            let used = (of.f_blocks - of.f_bfree) * of.f_frsize;
            // It may have grown meanwhile, and then is not made smaller.
            if self.remount(&format!("size={used}")) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "it is filled faster than it can be bounded");
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = command("umount").arg("--lazy").arg(self.0.dir()).status();
    }
}

/// What is wrong with keeping samples, as the settings of analytics say.
fn problem(home: &Home) -> Option<String> {
    let settings = through_the_socket(home, "/api/analytics/v1/settings");
    settings["settings"]["problem"].as_str().map(String::from)
}

/// Does something else until `is_so`, now and then: others have the processors meanwhile.
fn until(what: &str, is_so: impl Fn() -> bool, mut meanwhile: impl FnMut()) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        meanwhile();
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn full() {
    let mounted = Mounted::new();
    let home = &mounted.0;
    let log = home.scratch.join("log");
    let line = "serve --https 127.0.0.1:0 --arc-max 64M";
    let (daemon, _) = home.start_logging(line, std::fs::File::create(&log).unwrap());
    home.run(&format!("zpool create tank {}", home.disk("a.img")));
    home.run("zfs create -V 64M tank/v");
    let uri = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());
    let mut writes = 0u64;
    // What is written is on disk and read again, whatever becomes of samples.
    let mut works = || {
        let (pattern, at) = (writes % 250 + 1, writes % 1000 * 64);
        let script = format!("write -P {pattern} {at}k 64k\nflush\nread -P {pattern} {at}k 64k\n");
        let output = feed(Command::new(find("qemu-io").unwrap()).args(["-f", "raw", &uri]), &script);
        let text = said(&output);
        assert!(output.status.success() && !text.contains("verification failed"), "{text}");
        writes += 1;
    };
    works();
    let shell = |line: &str| said(&home.cenote(&["shell", "-c", line]).output().unwrap());
    assert_eq!(problem(home), None);
    assert!(!home.run("status").contains("samples"));

    mounted.fill();
    until("a full disk is not told", || problem(home).is_some(), &mut works);
    let why = problem(home).unwrap();
    assert!(why.contains("keep samples") && why.contains("left"), "{why}");
    let settings = shell("analytics settings show");
    assert!(settings.contains(&why), "{settings}");
    let status = home.run("status");
    assert!(status.contains(&format!("  samples  are in memory alone: {why}\n")), "{status}");
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains(&format!("samples are not kept on disk: {why}")), "{logged}");
    // They are taken all the same, and asked for.
    let path = format!("/api/analytics/v1/datasets/{STATISTIC}/data?start=now&seconds=1");
    let during = through_the_socket(home, &path)["data"][0]["sample"].as_u64().unwrap();
    (0..20).for_each(|_| works());

    assert!(mounted.remount(ROOM));
    until("there is room again, and it is not told", || problem(home).is_none(), &mut works);
    assert!(!home.run("status").contains("samples"));
    // What was in memory alone is on disk now.
    daemon.kill();
    let (daemon, _) = home.start(line);
    let path = format!("/api/analytics/v1/datasets/{STATISTIC}/data?start={during}&seconds=1");
    let kept = through_the_socket(home, &path);
    assert_eq!(kept["data"][0]["sample"].as_u64(), Some(during), "{kept}");
    daemon.end();
}
