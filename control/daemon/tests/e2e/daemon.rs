//! The daemon: how it starts, what it says of itself, how it ends.

use crate::api::{post_through_the_socket, through_the_socket};
use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("status_shows_what_the_daemon_has_and_down_ends_it", &[], status_and_down),
        trial("a_second_daemon_is_told_about_the_first", &[], second),
        trial("a_daemon_that_was_killed_is_started_again_at_once", &[Need::Program("nbdcopy")], killed),
        trial("the_cache_takes_no_more_than_it_may", &[], memory),
        trial("a_volume_is_served_by_a_command_alone", &[], one_shot),
        trial("pools_are_served_whatever_became_of_the_certificate", &[], damaged_certificate),
        trial("commands_are_answered_again_after_descriptors_had_run_out", &[], no_descriptors),
        trial("a_daemon_goes_on_when_its_log_has_no_place_any_more", &[], no_log),
        trial("a_terminal_that_goes_ends_the_daemon_in_peace", &[], hangup),
        trial("a_command_that_waits_for_the_home_finds_a_daemon_that_begins_to_answer", &[], late_daemon),
        trial("a_home_without_room_is_whole_when_there_is_room_again", &[ROOT], no_room),
    ]
}

fn status_and_down() {
    let home = Home::new();
    assert!(home.fails("status", 1).starts_with("no daemon runs in "));
    assert!(home.run("down").starts_with("no daemon runs in "));
    let (mut daemon, uri) = home.up("64M");
    let status = home.run("status");
    for part in [
        &format!("process {}, with its home in {}", daemon.pid(), home.dir().display()),
        "in the cache, of at most 64M (zfs_arc_max)",
        "  pool    tank  960M, ",
        "  volume  tank/vol1  64M, in blocks of 16K",
        &uri,
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let json = home.run("status -j");
    assert!(json.contains("\"arc_max\":67108864") && json.contains(&uri), "{json}");
    assert_eq!(home.run("down"), "");
    daemon.has_ended();
    assert!(home.fails("status", 1).ends_with("'cenote up' or 'cenote serve' starts one"));
    assert_eq!(home.run("zpool list -H -o name"), "tank\n", "the pool is there without it");
}

/// The page and the API over HTTPS need it; clients of volumes do not, nor does the owner's socket.
fn damaged_certificate() {
    let home = Home::with_pool();
    home.run("zfs create -V 16M tank/vol");
    let line = "serve --listen 127.0.0.1:0 --export tank/vol --https 127.0.0.1:0 --arc-max 64M";
    let (daemon, said) = home.start(line);
    assert!(said.contains("https://"), "{said}");
    daemon.end();
    let tls = home.dir().join("tls");
    let whole = std::fs::read(tls.join("key.pem")).unwrap();
    for damaged in [&whole[..whole.len() / 2], b""] {
        std::fs::write(tls.join("key.pem"), damaged).unwrap();
        let log = home.scratch.join("log");
        let (daemon, said) = home.start_logging(line, std::fs::File::create(&log).unwrap());
        assert!(said.contains("NBD on 127.0.0.1:") && !said.contains("https://"), "{said}");
        let complaint = std::fs::read_to_string(&log).unwrap();
        let expected = "WARNING: the API is not served over HTTPS: cannot use ";
        assert!(complaint.contains(expected) && complaint.contains("key.pem: it "), "{complaint}");
        assert!(home.run("status").contains("tank/vol"));
        daemon.end();
    }
    for file in ["key.pem", "cert.pem"] {
        std::fs::remove_file(tls.join(file)).unwrap();
    }
    let (daemon, said) = home.start(line);
    assert!(said.contains("https://"), "as the warning says: {said}");
    daemon.end();
}

fn second() {
    let home = Home::new();
    let (daemon, _) = home.up("64M");
    for line in ["up", "serve"] {
        let said = home.fails(line, 1);
        let process = format!("a daemon (process {}) serves it already", daemon.pid());
        assert!(said.contains(&process) && said.contains("'cenote down' ends it"), "{said}");
    }
    daemon.end();
}

fn killed() {
    let home = Home::new();
    let (daemon, uri) = home.up("64M");
    let (source, back) = (home.scratch.join("source"), home.scratch.join("back"));
    let bytes: Vec<u8> = (0..4u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    std::fs::write(&source, &bytes).unwrap();
    run(command("nbdcopy").arg("--flush").arg(&source).arg(&uri));
    daemon.kill();
    let (daemon, text) = home.start("serve --listen 127.0.0.1:0");
    assert!(text.starts_with("cenote serves "), "{text}");
    assert!(home.run("zpool status -x").contains("all pools are healthy"));
    let status = home.run("status");
    let uri = status.split_whitespace().find(|w| w.starts_with("nbd://")).unwrap();
    run(command("nbdcopy").arg(uri).arg(&back));
    assert!(std::fs::read(&back).unwrap()[..bytes.len()] == bytes, "what was flushed is there");
    daemon.kill();
    // The next command opens the pool by itself, though the killed one may not be gone yet.
    assert_eq!(home.run("zpool list -H -o name,health"), "tank\tONLINE\n");
}

fn memory() {
    let home = Home::new();
    assert!(home.fails("up --arc-max 1M", 2).contains("the cache needs at least 64M"));
    let (daemon, _) = home.start("up --listen 127.0.0.1:0 --size 1G --volume 64M");
    let json = home.run("status -j");
    let max: u64 =
        json.split("\"arc_max\":").nth(1).unwrap().split(['}', ',']).next().unwrap().parse().unwrap();
    let total = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(max <= total << 9, "half of the machine's memory at most: {max} of {total} KiB");
    daemon.end();
}

fn one_shot() {
    let home = Home::with_pool();
    home.run("zfs create -s -V 32M tank/v");
    let socket = home.scratch.join("nbd.sock");
    assert!(home.fails("nbd tank/nothing", 1).starts_with("cannot serve 'tank/nothing': "));
    assert!(home.fails("nbd tank", 1).starts_with("cannot serve 'tank': "));
    let mut child = home
        .cenote(&["nbd", "tank/v", "--socket", &socket.display().to_string()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line.trim(), format!("nbd+unix:///tank/v?socket={}", socket.display()));
    assert!(socket.exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists(), "it takes its socket away");
}

/// Strangers who say nothing are enough for that; the command that came then was the last that was answered.
fn no_descriptors() {
    let home = Home::new();
    let (daemon, _) = home.up("64M");
    let of_daemon = Pid::from_raw(daemon.pid() as i32);
    let usual = getrlimit(Resource::Nofile);
    prlimit(of_daemon, Resource::Nofile, Rlimit { current: Some(3), ..usual }).unwrap();
    let socket = home.dir().join("cenote.sock");
    let waiting: Vec<_> = (0..3).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    // Until it has tried to take them in.
    std::thread::sleep(Duration::from_millis(500));
    prlimit(of_daemon, Resource::Nofile, usual).unwrap();
    assert_eq!(home.run("zpool list -H -o name"), "tank\n");
    drop(waiting);
    assert_eq!(home.run("down"), "");
}

/// What a request over the API had to say went nowhere, and took the request with it.
fn no_log() {
    let home = Home::with_pool();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (daemon, _) = home.start_logging("serve --listen 127.0.0.1:0 --arc-max 64M", full);
    let made = post_through_the_socket(&home, "/api/storage/v1/pools/tank/projects", "{\"name\":\"p\"}");
    assert!(made.contains("\"p\""), "{made}");
    let there = through_the_socket(&home, "/api/storage/v1/pools/tank/projects");
    assert!(there.to_string().contains("\"p\""), "{there}");
    daemon.end();
}

fn hangup() {
    let home = Home::new();
    let (mut daemon, _) = home.up("64M");
    for _ in 0..2 {
        kill_process(Pid::from_raw(daemon.pid() as i32).unwrap(), Signal::HUP).unwrap();
    }
    daemon.has_ended();
    assert_eq!(home.run("zpool list -H -o name,health"), "tank\tONLINE\n");
}

/// A file system of its own for a home, with a file that takes all its room but some KiB.
struct SmallHome(Home);

impl SmallHome {
    fn new() -> SmallHome {
        let home = Home::new();
        std::fs::create_dir(home.dir()).unwrap();
        run(command("mount").args(["-t", "tmpfs", "-o", "size=8M,mode=700", "tmpfs"]).arg(home.dir()));
        SmallHome(home)
    }

    fn leave(&self, kib: usize) {
        let free = rustix::fs::statvfs(self.0.dir()).unwrap();
        let bytes = (free.f_bavail * free.f_frsize) as usize;
        std::fs::write(self.0.dir().join("filler"), vec![1; bytes - (kib << 10)]).unwrap();
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.dir().join("filler")).unwrap();
    }
}

impl Drop for SmallHome {
    fn drop(&mut self) {
        let _ = command("umount").arg("--lazy").arg(self.0.dir()).status();
    }
}

/// A first start on a full disk left half a configuration, and every later one said that it was damaged. A pool that was
/// exported while the home was full was opened again by the next start.
fn no_room() {
    let line = "serve --listen 127.0.0.1:0 --https 127.0.0.1:0 --arc-max 64M";
    for kib in [0, 4, 8, 16, 24, 32, 40] {
        let small = SmallHome::new();
        small.leave(kib);
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut daemon = small.0.cenote(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut said).unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        small.make_room();
        let (daemon, _) = small.0.start(line);
        daemon.end();
        let left = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("damaged");
        assert!(!std::fs::read_dir(small.0.dir()).unwrap().any(|e| left(&e.unwrap())), "with {kib} KiB");
    }
    let small = SmallHome::new();
    let home = &small.0;
    let disk = home.disk("a.img");
    let (daemon, _) = home.start(line);
    home.run(&format!("zpool create tank {disk}"));
    small.leave(0);
    let said = home.fails("zpool export tank", 1);
    assert!(said.starts_with("'tank' is exported, but the next start does not know it: "), "{said}");
    assert_eq!(home.run("zpool list -H"), "");
    small.make_room();
    daemon.end();
    let (daemon, _) = home.start(line);
    assert_eq!(home.run("zpool list -H"), "");
    home.run(&format!("zpool import -d {} tank", home.scratch.path().display()));
    daemon.end();
    // A host whose home has filled up serves its pools after a reboot all the same.
    small.leave(0);
    let (daemon, _) = home.start(line);
    assert!(home.run("zpool list -H").starts_with("tank"), "it is served");
    daemon.end();
}

/// A command that came while a daemon started waited for the lock which that keeps for life, and failed after ten seconds.
fn late_daemon() {
    let home = Home::new();
    std::fs::create_dir_all(home.dir()).unwrap();
    let lock = std::fs::File::create(home.dir().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = home.cenote(&["zpool", "list"]).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let daemon = UnixListener::bind(home.dir().join("cenote.sock")).unwrap();
    let asked = std::thread::spawn(move || daemon.accept().unwrap());
    // It has asked at the socket when it ends early, too: then nothing would accept it.
    let until = Instant::now() + Duration::from_secs(60);
    while !asked.is_finished() && Instant::now() < until && waiting.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(asked.is_finished(), "the command asks no daemon: {:?}", waiting.wait_with_output());
    drop(asked.join());
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
