//! Other programs: run to their end, or ended when the whole is to end.
//!
//! ```text
//!   Ctrl-C, SIGTERM ─┐
//!                    ├─▶ Stop ─▶ asked at every step ─▶ an error ─▶ guards of mounts, loop devices and files drop them
//!   the time is up ──┘
//! ```
//!
//! Programs run in process groups of their own: what ends them is we, after what they use is not needed any more.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{Error, Kind, Result};

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// How long a program that was told to end may take.
const GOODBYE: Duration = Duration::from_secs(20);

/// When to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    /// From now on signals do not end the process at once.
    pub fn watch(limit: Duration) -> Stop {
        linux::expect_shutdown();
        let stop = Stop::after(limit);
        let asked = stop.asked.clone();
        // It ends with the process.
        std::thread::spawn(move || {
            linux::run(linux::Config { cores: Some(1), io_uring: false }, linux::shutdown_signal());
            asked.store(true, Ordering::Relaxed);
        });
        stop
    }

    pub fn after(limit: Duration) -> Stop {
        Stop { asked: Arc::default(), deadline: Instant::now() + limit }
    }

    /// A signal or the deadline asks the run to end.
    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn is_over(&self) -> bool {
        self.was_asked() || Instant::now() >= self.deadline
    }

    pub fn check(&self) -> Result<()> {
        match (self.was_asked(), self.is_over()) {
            (true, _) => Err(Error::new(Kind::Io, "measure").because("it was interrupted")),
            (_, true) => Err(Error::new(Kind::Io, "measure").because("the time is up")),
            _ => Ok(()),
        }
    }
}

/// Runs a program to its end and returns what it printed; its complaint when it fails.
pub(crate) fn run(stop: &Stop, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |e: std::io::Error| Error::new(Kind::Io, "run").at(program).because(e);
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    let (mut out, mut complaint) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let said = scope.spawn(move || text(&mut out));
        let complained = scope.spawn(move || text(&mut complaint));
        let ended = loop {
            match child.try_wait() {
                Ok(None) if stop.is_over() => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break stop.check().map(|()| false);
                }
                Ok(None) => std::thread::sleep(LOOK),
                Ok(Some(status)) => break Ok(status.success()),
                Err(e) => break Err(failed(e)),
            }
        };
        let (said, complained) = (said.join().unwrap_or_default(), complained.join().unwrap_or_default());
        match ended? {
            true => Ok(said),
            false => Err(failed(std::io::Error::other(first_line(&complained).to_string()))),
        }
    })
}

fn text(from: &mut Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // A pipe that breaks has said what it had to.
    let _ = from.as_mut().map(|from| from.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What a program says on its standard output; its complaint when it fails.
pub(crate) fn said(program: &str, arguments: &[&str]) -> std::result::Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} failed: {}", first_line(&complaint)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A server of ours, told to end when it goes.
#[derive(Debug)]
pub(crate) struct Daemon(pub Child);

impl Daemon {
    pub fn start(command: &mut Command) -> std::io::Result<Daemon> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn().map(Daemon)
    }

    /// User and system time of all its threads.
    pub fn cpu(&self) -> Option<Duration> {
        crate::servers::cpu_of(self.0.id()).ok()
    }

    /// Waits until `is_ready`, or says that it has ended or is too slow.
    pub fn wait(&mut self, patience: Duration, mut is_ready: impl FnMut() -> bool) -> Result<(), String> {
        let until = Instant::now() + patience;
        while !is_ready() {
            match self.0.try_wait() {
                Ok(Some(status)) => return Err(format!("it ended: {status}")),
                _ if Instant::now() > until => return Err("it does not begin to serve".into()),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            // A process that has ended already cannot be signalled.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let until = Instant::now() + GOODBYE;
        while Instant::now() < until {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_heard_or_its_complaint_is() {
        let stop = Stop::after(Duration::from_secs(60));
        assert_eq!(run(&stop, "sh", &["-c", "echo a; echo b"]).unwrap(), "a\nb\n");
        let failure = run(&stop, "sh", &["-c", "echo no such disk >&2; exit 3"]).unwrap_err().to_string();
        assert!(failure.contains("no such disk"), "{failure}");
        assert!(run(&stop, "no-such-program", &[]).unwrap_err().to_string().contains("no-such-program"));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let begun = Instant::now();
        let stop = Stop::after(Duration::from_millis(50));
        let failure = run(&stop, "sleep", &["60"]).unwrap_err().to_string();
        assert!(failure.contains("the time is up"), "{failure}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
