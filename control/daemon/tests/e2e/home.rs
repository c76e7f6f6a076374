//! A home of a test's own, and the daemon in it.

use interop::Scratch;
use interop::programs::said;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

pub const CENOTE: &str = env!("CARGO_BIN_EXE_cenote");

pub struct Home {
    pub scratch: Scratch,
}

impl Home {
    pub fn new() -> Home {
        Home { scratch: Scratch::new() }
    }

    pub fn dir(&self) -> PathBuf {
        self.scratch.join("home")
    }

    pub fn cenote(&self, words: &[&str]) -> Command {
        let mut command = Command::new(CENOTE);
        command.arg("--home").arg(self.dir()).args(words).current_dir(self.scratch.path());
        command
    }

    pub fn output(&self, line: &str) -> Output {
        self.cenote(&line.split_whitespace().collect::<Vec<_>>()).output().unwrap()
    }

    /// What a command prints; it must succeed. The words are those between blanks.
    pub fn run(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "{line}: {}", said(&output));
        said(&output)
    }

    /// What a command says when it fails; it must, with this exit code.
    pub fn fails(&self, line: &str, code: i32) -> String {
        let output = self.output(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{line}: errors go to the standard error: {}", said(&output));
        String::from_utf8_lossy(&output.stderr).trim_end().to_string()
    }

    /// A file of 512 MiB to make a pool on, beside the home.
    pub fn disk(&self, name: &str) -> String {
        let path = self.scratch.join(name);
        std::fs::File::create(&path).unwrap().set_len(512 << 20).unwrap();
        path.display().to_string()
    }

    /// A small pool `tank` without a daemon.
    pub fn with_pool() -> Home {
        let home = Home::new();
        let disk = home.disk("a.img");
        home.run(&format!("zpool create tank {disk}"));
        home
    }

    /// Starts the daemon with these words and waits until it says that it is ready: what it says up to there.
    pub fn start(&self, line: &str) -> (Daemon, String) {
        self.start_logging(line, Stdio::inherit())
    }

    /// As [`Home::start`]; what it logs goes there.
    pub fn start_logging(&self, line: &str, log: impl Into<Stdio>) -> (Daemon, String) {
        let words: Vec<&str> = line.split_whitespace().collect();
        Daemon::started_by(self.cenote(&words).stderr(log))
    }

    /// `up` with small things; also the URI of its first volume.
    pub fn up(&self, volume: &str) -> (Daemon, String) {
        let (daemon, text) =
            self.start(&format!("up --listen 127.0.0.1:0 --size 1G --volume {volume} --arc-max 64M"));
        let uri = text.split_whitespace().find(|w| w.starts_with("nbd://")).map(String::from);
        (daemon, uri.unwrap_or_else(|| panic!("it says where the volume is served: {text}")))
    }
}

pub struct Daemon {
    child: Child,
    _lines: BufReader<std::process::ChildStdout>,
}

impl Daemon {
    /// Started by this command: it, and what it says until it is ready.
    pub fn started_by(command: &mut Command) -> (Daemon, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // The last line of `up`, and the only one of `serve`.
        while !text.contains("Ctrl-C stops it") && !text.contains("cenote serves ") {
            assert!(lines.read_line(&mut text).unwrap() > 0, "it ended instead of getting ready: {text}");
        }
        (Daemon { child, _lines: lines }, text)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// As Ctrl-C does.
    pub fn end(mut self) {
        self.signal(Signal::INT);
        self.has_ended();
    }

    /// Tells it to end, which it must within the time that its help states; how well is another matter.
    pub fn end_somehow(mut self) {
        let began = std::time::Instant::now();
        self.signal(Signal::INT);
        self.child.wait().unwrap();
        let took = began.elapsed();
        assert!(took.as_secs() <= 65, "{took:?}");
    }

    /// It was told to end, and does so in peace.
    pub fn has_ended(&mut self) {
        assert!(self.child.wait().unwrap().success(), "it ends in peace when it is told to");
    }

    /// As nobody would wish.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
