//! Tunables through the program: live in the daemon, kept over restarts, loud when they are dangerous.

#![allow(clippy::unwrap_used, reason = "a failure of these helpers is a failure of the test")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A home of its own, removed at the end.
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Home {
    fn cenote(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cenote"));
        command.arg("--home").arg(self.0.join("home")).args(words);
        command
    }

    /// The exit code, what a command prints, and what it complains.
    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = self.cenote(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn get(&self, name: &str) -> String {
        let (code, out, err) = self.run(&["tunable", "get", "-Hp", name]);
        assert_eq!(code, Some(0), "{err}");
        out.split('\t').nth(1).unwrap().to_string()
    }

    /// Starts the daemon and waits until it serves.
    fn serve(&self, more: &[&str]) -> Child {
        let words = [&["serve", "--listen", "127.0.0.1:0", "--iscsi", "127.0.0.1:0"], more].concat();
        let mut daemon = self.cenote(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("cenote serves"), "{line}");
        daemon
    }
}

/// Ends the daemon as an administrator does; the answer is what it complained of.
fn stop(mut daemon: Child) -> String {
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    daemon.wait().unwrap();
    let mut said = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

#[test]
fn what_is_set_holds_at_once_and_after_a_restart() {
    let home = Home(std::env::temp_dir().join(format!("cenote-tunables-{}", std::process::id())));
    std::fs::create_dir_all(&home.0).unwrap();
    // Without a daemon it is kept for the next one.
    assert_eq!(home.run(&["tunable", "set", "zil_slog_bulk=0x2000000"]).0, Some(0));
    let daemon = home.serve(&[]);
    assert_eq!(home.get("zil_slog_bulk"), "33554432");
    let (code, _, said) = home.run(&["tunable", "set", "zfs_nocacheflush=1", "zfs_txg_timeout=10"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("WARNING: zfs_nocacheflush is 1: ") && said.lines().count() == 1, "{said}");
    assert_eq!(home.get("zfs_nocacheflush"), "1");
    for (words, why) in [
        (["set", "zfs_txg_timeout=0"], "it is between 1 and 86400"),
        (["set", "zfs_txg_timeot=7"], "cannot set 'zfs_txg_timeot': no such tunable"),
        (["get", "zfs_txg_timeot"], "cannot get 'zfs_txg_timeot': no such tunable"),
    ] {
        let (code, _, said) = home.run(&["tunable", words[0], words[1]]);
        assert!(code == Some(1) && said.contains(why), "{words:?}: {said}");
    }
    assert_eq!(stop(daemon), "", "nothing was dangerous when it started");

    // The system file wins for this run; what was set before is kept beside it.
    let system = home.0.join("system");
    std::fs::write(&system, "* this array has a battery\nset zfs:zfs_txg_timeout = 30\n").unwrap();
    let system = system.display().to_string();
    let daemon = home.serve(&["--system", &system]);
    assert_eq!((home.get("zfs_txg_timeout"), home.get("zfs_nocacheflush")), ("30".into(), "1".into()));
    assert_eq!(home.run(&["tunable", "set", "zfs_nocacheflush=0"]), (Some(0), String::new(), String::new()));
    let said = stop(daemon);
    assert!(said.contains("WARNING: zfs_nocacheflush is 1"), "{said}");

    // Loaded once, it is kept; with a mistake in it, nothing of it is.
    assert_eq!(home.get("zfs_txg_timeout"), "10");
    std::fs::write(&system, "set zfs:zfs_txg_timeout = 40\nset zfs:zfs_txg_timeout = 0\n").unwrap();
    let (code, _, said) = home.run(&["tunable", "load", &system]);
    assert!(code == Some(1) && said.contains("system:2:"), "{said}");
    assert_eq!(home.get("zfs_txg_timeout"), "10");
    std::fs::write(&system, "set zfs:zfs_txg_timeout = 40\n").unwrap();
    assert_eq!(home.run(&["tunable", "load", &system]).0, Some(0));
    let (_, list, _) = home.run(&["tunable", "list"]);
    assert!(list.starts_with("NAME ") && list.contains("40s"), "{list}");
}

/// A value with which nothing worked was kept over `kill -9` and every start after it.
#[test]
fn a_safe_start_passes_over_what_is_kept_and_keeps_it() {
    let home = Home(std::env::temp_dir().join(format!("cenote-safe-{}", std::process::id())));
    std::fs::create_dir_all(&home.0).unwrap();
    assert_eq!(
        home.run(&["tunable", "set", "zfs_dirty_data_sync_percent=0", "zfs_txg_timeout=10"]).0,
        Some(0)
    );
    let disk = home.0.join("a.img");
    std::fs::File::create(&disk).unwrap().set_len(128 << 20).unwrap();

    // Nothing stands still with it any more.
    let daemon = home.serve(&[]);
    assert_eq!(home.get("zfs_dirty_data_sync_percent"), "0");
    let (code, _, said) = home.run(&["zpool", "create", "tank", &disk.display().to_string()]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(home.run(&["zfs", "create", "-s", "-V", "16M", "tank/v"]).0, Some(0));
    stop(daemon);

    let daemon = home.serve(&["--safe"]);
    assert_eq!(
        (home.get("zfs_dirty_data_sync_percent"), home.get("zfs_txg_timeout")),
        ("20".into(), "5".into())
    );
    assert_eq!(home.run(&["tunable", "set", "zfs_dirty_data_sync_percent=20"]).0, Some(0));
    stop(daemon);
    let daemon = home.serve(&[]);
    assert_eq!(
        (home.get("zfs_dirty_data_sync_percent"), home.get("zfs_txg_timeout")),
        ("20".into(), "10".into())
    );
    stop(daemon);

    // What is kept makes no sense at all: the way out is named, and is one.
    std::fs::write(home.0.join("home/tunables.json"), "{\"zfs_nonsense\": 1}").unwrap();
    let (code, _, said) = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(1) && said.contains("start with --safe"), "{said}");
    stop(home.serve(&["--safe"]));
}
