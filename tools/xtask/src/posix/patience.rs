//! A test that does not end is ended, or the tests behind it would never be run.
//!
//! ```text
//!   check ── bash tests/generic/NNN ─┬─ programs ── more     too old: killed, with all below it;
//!                                    └─ ...                  check calls it failed, and goes on
//! ```

use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Some tests run for 200 seconds by design.
pub const LIMIT: Duration = Duration::from_secs(600);
const EVERY: Duration = Duration::from_secs(5);

/// Watches until it is dropped.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Over the tests that the process `check` runs.
    pub fn begin(check: u32) -> Watch {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let all = processes();
                if let Some((name, ids)) = too_old(&all, check, LIMIT.as_secs()) {
                    println!("{name} does not end in {} s and is ended; there are:", LIMIT.as_secs());
                    for process in all.iter().filter(|process| ids.contains(&process.id)) {
                        println!("    {} {}", process.id, process.command);
                    }
                    let _ = Command::new("kill").arg("-9").args(ids.iter().map(|id| id.to_string())).status();
                }
            }
        });
        Watch { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    age_s: u64,
    command: String,
}

fn processes() -> Vec<Process> {
    let output = Command::new("ps").args(["-e", "-ww", "-o", "pid=,ppid=,etimes=,args="]).output();
    output.map_or_else(|_| Vec::new(), |output| parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(text: &str) -> Vec<Process> {
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let age_s = words.next()?.parse().ok()?;
        Some(Process { id, parent, age_s, command: words.collect::<Vec<_>>().join(" ") })
    };
    text.lines().filter_map(one).collect()
}

/// The test that takes longer than it may, with its processes, the test itself last.
fn too_old(all: &[Process], check: u32, limit_s: u64) -> Option<(&str, Vec<u32>)> {
    let is_test = |process: &&Process| process.parent == check && process.command.contains("/generic/");
    let test = all.iter().filter(is_test).find(|process| process.age_s > limit_s)?;
    let name = test.command.find("generic/").and_then(|at| test.command.get(at..)).unwrap_or(&test.command);
    let mut ids = vec![test.id];
    // Children are found until there are no more: a process with a parent among these is one of them.
    while let Some(child) = all.iter().find(|p| ids.contains(&p.parent) && !ids.contains(&p.id)) {
        ids.insert(0, child.id);
    }
    Some((name, ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_too_old_goes_with_all_below_it() {
        let all = parse(
            "   10   1  900 /bin/bash ./check generic/001\n  20  10  301 /bin/bash ./tests/generic/001\n  21  20  300 fsstress -d x\n\
             22 21 299 fsstress -d x\n 30 1 900 other\n 40 10 900 sed s/a/b/\nnonsense\n",
        );
        assert_eq!(all.len(), 6);
        assert_eq!(too_old(&all, 10, 300), Some(("generic/001", vec![22, 21, 20])));
        assert_eq!(too_old(&all, 10, 301), None, "it has time");
        assert_eq!(too_old(&all, 30, 300), None, "that of another check");
    }
}
