//! The step `tests` of the check: all test programs, and at its end what was ignored and why, and what took longest.
//!
//! ```text
//!   cargo test --no-run ──messages──▶ test programs ─▶ a queue, those that take longest first
//!                                                        └─▶ run side by side, one more than there are processors
//!   each program ──both streams, in order──▶ printed whole when it ends ─▶ `finished in …` ─▶ its seconds
//!   trials of `interop::harness` ──a file──▶ seconds of each, and what it lacks
//!   cargo test --doc                         the examples, beside the programs
//! ```
//!
//! Side by side, because many trials wait: for a disk made slow on purpose, a deadline, a browser. The longest program,
//! whose trials wait most, has one more of them under way than there are processors as well: it would run alone at the end.
//! Each program has the directory and the variables that cargo would give it.
//!
//! Tests of the standard runner have no time of their own; their program's stands for them.
//!
//! What failed is said once more after everything else: a log of which only the end is kept still tells it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Failure, house, root};

/// The variable that `interop::harness` looks at.
const RECORD: &str = "CENOTE_TRIALS";
/// How many tests of a program are under way at once, if the user says so.
const THREADS: &str = "RUST_TEST_THREADS";
const SLOWEST: usize = 10;
/// The longest program takes nine minutes on two quiet cores.
const LONGEST: Duration = Duration::from_secs(50 * 60);
/// Lines that are repeated of a failed program: after each panic, of one without a panic, and in all.
const AFTER_PANIC: usize = 25;
const LAST_LINES: usize = 30;
const REASONS: usize = 120;
/// Programs that take minutes. What begins last should be short, or it runs alone at the end.
const LONG: [&str; 8] = ["e2e", "pool", "openzfs", "judged", "kill", "simulated", "lab", "bench"];

/// A test program as cargo built it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// The directory of its package, which it runs in.
    home: PathBuf,
    package: String,
    /// `unittests src/lib.rs`, `tests/kill/main.rs`.
    target: String,
}

/// Runs all tests and prints the two lists; true when every test passed.
pub fn run() -> Result<bool, Failure> {
    let record = record_file()?;
    let started = Instant::now();
    let Some(programs) = build()? else { return Ok(false) };
    println!("{} test programs were built in {:.1} s", programs.len(), started.elapsed().as_secs_f64());
    let started = Instant::now();
    let (ran, examples) = std::thread::scope(|scope| {
        let examples = scope.spawn(|| cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]).output());
        (run_side_by_side(programs, &record), examples.join())
    });
    let (took, failed) = ran?;
    let examples = examples.map_err(|_| "the thread of the examples panicked")??;
    println!("they ran in {:.1} s", started.elapsed().as_secs_f64());
    print!("{}{}", String::from_utf8_lossy(&examples.stdout), String::from_utf8_lossy(&examples.stderr));
    let trials = std::fs::read_to_string(&record).unwrap_or_default();
    print!("{}{}{}", slowest(&took, &trials), ignored(&trials), failed.concat());
    Ok(examples.status.success() && failed.is_empty())
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(house::cargo());
    cargo.current_dir(root()).args(arguments).stdin(Stdio::null());
    cargo
}

/// Builds all test programs; none when something does not compile.
fn build() -> Result<Option<Vec<Program>>, Failure> {
    let arguments = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let output = cargo(&arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Ok(None);
    }
    Ok(Some(queue(&String::from_utf8_lossy(&output.stdout))))
}

/// The test programs among cargo's messages, those that take longest first.
fn queue(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs: Vec<Program> = messages.filter_map(|message| program(&message)).collect();
    let place =
        |p: &Program| LONG.iter().position(|name| name_of(&p.executable) == *name).unwrap_or(LONG.len());
    programs.sort_by_key(place);
    programs
}

fn program(message: &Value) -> Option<Program> {
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let home = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(&home).unwrap_or(source).display().to_string();
    let is_of_tests = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    Some(Program {
        executable: message["executable"].as_str()?.into(),
        package: home.file_name()?.to_string_lossy().into_owned(),
        home,
        target: if is_of_tests { source } else { format!("unittests {source}") },
    })
}

/// One more than there are processors.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 1
}

/// The seconds of each program, and why each of those failed that did.
fn run_side_by_side(
    programs: Vec<Program>,
    record: &Path,
) -> Result<(Vec<(f64, String)>, Vec<String>), Failure> {
    let workers = workers();
    let queue = Mutex::new(VecDeque::from(programs));
    let done = Mutex::new((Programs::default(), Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        let work = || {
            while let Some(program) = next() {
                let ran = run_one(&program, record, LONGEST);
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                let heading = format!("     Running {} ({})", program.target, program.executable.display());
                let (output, passed) =
                    ran.unwrap_or_else(|e| (format!("it cannot be run: {e}").into(), false));
                // Under the lock: one program's lines stand together.
                let mut out = std::io::stdout().lock();
                _ = writeln!(out, "{heading}").and_then(|()| out.write_all(&output));
                done.0.hear(&heading);
                let output = String::from_utf8_lossy(&output);
                output.lines().for_each(|line| done.0.hear(line));
                if !passed {
                    let error = format!("error: test failed: {} of {}\n", program.target, program.package);
                    _ = out.write_all(error.as_bytes());
                    done.1.push(format!("\n{error}{}", reasons(&output)));
                }
            }
        };
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let (programs, failed) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((programs.took, failed))
}

/// Of what a failed program said: the names of its failed tests, and each panic with what follows it. A program that
/// names none ended by a signal or at its start: then the last lines.
fn reasons(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let panicked = |line: &str| line.starts_with("thread '") && line.contains(" panicked at ");
    let mut kept: Vec<&str> = lines.iter().copied().filter(|line| line.ends_with("... FAILED")).collect();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| panicked(line)) {
        let follows = |line: &&&str| !panicked(line) && !line.starts_with("test ");
        kept.push(lines[at]);
        kept.extend(lines[at + 1..].iter().take(AFTER_PANIC).take_while(follows));
    }
    if kept.is_empty() {
        kept.extend(&lines[lines.len().saturating_sub(LAST_LINES)..]);
    }
    kept.truncate(REASONS);
    kept.iter().map(|line| format!("  {line}\n")).collect()
}

/// What a program says on both streams, in order, and whether it passed. One that has not ended by `longest` is killed: a
/// test that hangs is a failure, with what was said until then.
fn run_one(program: &Program, record: &Path, longest: Duration) -> std::io::Result<(Vec<u8>, bool)> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.home).env("CARGO_MANIFEST_DIR", &program.home).env(RECORD, record);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    if name_of(&program.executable) == LONG[0] && std::env::var_os(THREADS).is_none() {
        command.env(THREADS, workers().to_string());
    }
    let mut child = command.spawn()?;
    // `command` holds the writing end as long as it is there: without it the reader would not see the end.
    drop(command);
    let said = Arc::new(Mutex::new(Vec::new()));
    let (ended, end) = mpsc::channel::<()>();
    let heard = said.clone();
    // Not joined: what the program has started may keep the stream open after it was killed.
    std::thread::spawn(move || {
        let _ended = ended;
        let mut piece = vec![0; 64 << 10];
        while let Ok(n @ 1..) = reader.read(&mut piece) {
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..n]);
        }
    });
    let is_in_time = end.recv_timeout(longest) != Err(RecvTimeoutError::Timeout);
    if !is_in_time {
        child.kill()?;
    }
    let passed = child.wait()?.success() && is_in_time;
    let mut output = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
    if !is_in_time {
        output.extend_from_slice(format!("it did not end within {} s\n", longest.as_secs()).as_bytes());
    }
    Ok((output, passed))
}

/// `kill` of `target/debug/deps/kill-12ab`.
fn name_of(executable: &Path) -> String {
    let file = executable.file_name().unwrap_or_default().to_string_lossy();
    file.rsplit_once('-').map_or_else(|| file.to_string(), |(name, _)| name.to_owned())
}

/// An empty file in the target directory.
fn record_file() -> Result<PathBuf, Failure> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d));
    std::fs::create_dir_all(&target)?;
    let file = target.join("trials.tsv");
    std::fs::write(&file, "")?;
    Ok(file)
}

/// The test programs, with the seconds that each says it took.
#[derive(Debug, Default)]
struct Programs {
    current: String,
    took: Vec<(f64, String)>,
}

impl Programs {
    fn hear(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("Running ") {
            let (target, file) = rest.split_once(" (").unwrap_or((rest, ""));
            let program = name_of(Path::new(file.trim_end_matches(')')));
            self.current = format!("{program} ({})", target.trim_start_matches("unittests "));
        } else if let Some((_, took)) = line.split_once("; finished in ")
            && line.starts_with("test result: ")
            && let Ok(seconds) = took.trim_end_matches('s').parse()
        {
            self.took.push((seconds, self.current.clone()));
        }
    }
}

/// One line of the record: seconds, test program, trial, what is lacking.
fn fields(line: &str) -> Option<(f64, &str, &str, &str)> {
    let mut fields = line.split('\t');
    Some((fields.next()?.parse().ok()?, fields.next()?, fields.next()?, fields.next()?))
}

fn slowest(programs: &[(f64, String)], trials: &str) -> String {
    let trials = trials.lines().filter_map(fields);
    let trials: Vec<_> =
        trials.map(|(took, program, name, _)| (took, format!("{program}: {name}"))).collect();
    let mut text = String::new();
    for (what, mut all) in [("test programs", programs.to_vec()), ("trials", trials)] {
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        _ = writeln!(text, "\nthe slowest of {} {what}, seconds:", all.len());
        for (took, name) in all.iter().take(SLOWEST) {
            _ = writeln!(text, "{took:>8.1}  {name}");
        }
    }
    text
}

fn ignored(trials: &str) -> String {
    let ignored: Vec<_> =
        trials.lines().filter_map(fields).filter(|(.., lacking)| !lacking.is_empty()).collect();
    let mut text = format!("\n{} trials were ignored\n", ignored.len());
    for (_, program, name, lacking) in ignored {
        _ = writeln!(text, "  {program}: {name}: needs {lacking}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_timed_by_what_they_print() {
        let mut programs = Programs::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/arc-12ab)",
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.05s",
            "     Running tests/e2e/main.rs (target/debug/deps/e2e-34cd)",
            "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.00s",
        ] {
            programs.hear(line);
        }
        let expected = [(2.05, "arc (src/lib.rs)"), (12.0, "e2e (tests/e2e/main.rs)")];
        assert_eq!(programs.took, expected.map(|(took, name)| (took, name.to_owned())));
    }

    #[test]
    fn test_programs_are_found_among_cargos_messages_and_long_ones_begin() {
        let built = |name: &str, kind: &str, source: &str, is_test: bool| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/engine/arc/Cargo.toml\",\"target\":{{\"kind\":[\"{kind}\"],\
                 \"src_path\":\"/w/engine/arc/{source}\"}},\"profile\":{{\"test\":{is_test}}},\"executable\":\"/t/{name}\"}}\n"
            )
        };
        let messages = built("arc-1a", "lib", "src/lib.rs", true)
            + "{\"reason\":\"build-finished\",\"success\":true}\nnot json\n"
            + &built("cenote", "bin", "src/main.rs", false)
            + &built("kill-2b", "test", "tests/kill/main.rs", true);
        let found = queue(&messages);
        let program = |executable: &str, target: &str| Program {
            executable: executable.into(),
            home: "/w/engine/arc".into(),
            package: "arc".into(),
            target: target.into(),
        };
        assert_eq!(
            found,
            [program("/t/kill-2b", "tests/kill/main.rs"), program("/t/arc-1a", "unittests src/lib.rs")]
        );
    }

    #[test]
    fn programs_run_in_their_own_directories_and_one_that_fails_is_heard() {
        let home = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let program = |executable: &str| Program {
            executable: executable.into(),
            home: home.clone(),
            package: "p".into(),
            target: "t".into(),
        };
        let record = home.join("record");
        let hour = Duration::from_secs(3600);
        let (output, passed) = run_one(&program("/bin/pwd"), &record, hour).unwrap();
        assert_eq!((String::from_utf8_lossy(&output).trim(), passed), (home.to_str().unwrap(), true));
        let all =
            |names: &[&str]| run_side_by_side(names.iter().map(|n| program(n)).collect(), &record).unwrap().1;
        assert!(all(&["/bin/true", "/bin/cat", "/bin/pwd", "/bin/true"]).is_empty());
        let failed = all(&["/bin/true", "/bin/false", "/bin/true", "/bin/true", "/bin/true"]);
        assert_eq!(failed, ["\nerror: test failed: t of p\n"]);
        assert!(all(&["/no/such/program"])[0].contains("it cannot be run: "));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_heard() {
        let home = std::env::temp_dir().join(format!("cenote-hangs-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let hangs = home.join("hangs");
        // What it has started keeps the stream open. Written by another process: a file that this one has open for
        // writing, as a child forked meanwhile would, is not executed.
        let write = "printf '#!/bin/sh\\necho begun\\nsleep 20 &\\nwait\\n' > hangs && chmod +x hangs";
        assert!(Command::new("sh").current_dir(&home).args(["-c", write]).status().unwrap().success());
        let program =
            Program { executable: hangs, home: home.clone(), package: "p".into(), target: "t".into() };
        let begun = Instant::now();
        let (output, passed) = run_one(&program, &home.join("record"), Duration::from_secs(3)).unwrap();
        assert!(!passed && begun.elapsed() < Duration::from_secs(15));
        assert_eq!(String::from_utf8_lossy(&output), "begun\nit did not end within 3 s\n");
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn why_a_program_failed_is_found_in_what_it_said() {
        let output = "running 3 tests\ntest good ... ok\n\nthread 'bad' (7) panicked at src/a.rs:3:5:\nleft: 1\n\
                      test bad ... FAILED\nthread 'worse' panicked at src/b.rs:9:1:\nno room\ntest worse ... FAILED\n\
                      test result: FAILED. 1 passed; 2 failed\n";
        let expected = "  test bad ... FAILED\n  test worse ... FAILED\n  thread 'bad' (7) panicked at src/a.rs:3:5:\n  left: 1\n  \
                        thread 'worse' panicked at src/b.rs:9:1:\n  no room\n";
        assert_eq!(reasons(output), expected);
        assert_eq!(reasons("a\nkilled\n"), "  a\n  killed\n", "a crash has no panic");
        let many = "thread 'x' panicked at y\n".repeat(1000) + &"line\n".repeat(1000);
        assert_eq!(reasons(&many).lines().count(), REASONS);
    }

    #[test]
    fn what_is_slow_and_what_is_ignored_is_listed() {
        let trials = "1.50\te2e\tfast\t\n60.00\te2e\tslow\t\n0.00\tmount\tquiet\tsetfacl, root\n";
        let text = slowest(&[(61.5, "e2e (tests/e2e/main.rs)".to_owned())], trials);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..3],
            ["the slowest of 1 test programs, seconds:", "    61.5  e2e (tests/e2e/main.rs)"]
        );
        assert_eq!(lines[4..6], ["the slowest of 3 trials, seconds:", "    60.0  e2e: slow"]);
        assert_eq!(ignored(trials), "\n1 trials were ignored\n  mount: quiet: needs setfacl, root\n");
    }
}
