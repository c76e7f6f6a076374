//! `cargo xtask check`: what CI does, at a desk.
//!
//! ```text
//!   tools: packages for the tests, in a process beside ────────────────────────┐
//!   format ─▶ layers ─▶ tidy ─▶ licences ─▶ lints ─▶ documentation ─▶ (both) ─▶ scripts ─▶ tests ─▶ tree ─▶ the table
//!   seconds, and they fail first            minutes; one target directory, shared         nothing was left in it
//! ```
//!
//! Packages are waited for, the compiler is not: nothing before the scripts wants them, so they come beside it. What their
//! installation says is printed whole once it is over.
//!
//! Every step runs whatever became of those before it, so that one run tells everything there is to mend. Cargo's
//! own output is passed through: the closing lines of the test runners (`test result: ok. …`) are among it.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Failure, debian, house, layers, licences, npm, report, root, tidy, trials};

/// A step's name and what it does; it says whether it passed.
type Step = (&'static str, fn() -> Result<bool, Failure>);

/// Those that want nothing but git and the toolchain.
const BESIDE_TOOLS: &[Step] = &[
    ("format", || cargo(&["fmt", "--all", "--check"], &[])),
    ("layers", || report("layers", layers::check())),
    ("tidy", || report("tidy", tidy::check())),
    ("licences", || report("licences", licences::check())),
    ("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])),
    ("documentation", documentation),
];
const WITH_TOOLS: &[Step] = &[("scripts", npm::scripts), ("tests", trials::run)];

/// What became of a step.
struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

pub fn run() -> Result<bool, Failure> {
    let before = changed();
    println!("=== tools, beside what follows");
    let tools = thread::spawn(tools);
    let mut outcomes: Vec<Outcome> = BESIDE_TOOLS.iter().map(step).collect();
    let (tools, said) = tools.join().map_err(|_| "the step `tools` panicked")?;
    std::io::stdout().write_all(&said)?;
    outcomes.insert(0, tools);
    // Where git came with the packages.
    let before = before.or_else(changed);
    outcomes.extend(WITH_TOOLS.iter().map(step));
    outcomes.push(tree(before));
    print!("{}", table(&outcomes, &debian::missing()));
    Ok(outcomes.iter().all(|outcome| outcome.passed))
}

/// What `cargo xtask tools` does, and what it says. What is missing after it is named below the table.
fn tools() -> (Outcome, Vec<u8>) {
    let start = Instant::now();
    let mut said = Vec::new();
    let passed = provide(&mut said).inspect_err(|e| said.extend(format!("tools: {e}\n").bytes())).is_ok();
    (Outcome { name: "tools", passed, took: start.elapsed() }, said)
}

fn provide(said: &mut Vec<u8>) -> std::io::Result<()> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("tools").stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It holds the writing end: without it the reader sees the end.
    drop(command);
    reader.read_to_end(said)?;
    child.wait().map(drop)
}

fn step((name, action): &Step) -> Outcome {
    println!("=== {name}");
    let start = Instant::now();
    let passed = action().unwrap_or_else(|failure| {
        println!("{name}: {failure}");
        false
    });
    Outcome { name, passed, took: start.elapsed() }
}

/// What is not as it was committed, a file to a line; nothing outside of a checkout, none without git.
fn changed() -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["status", "--porcelain", "--untracked-files=all"]);
    let said = git.output().ok()?.stdout;
    Some(String::from_utf8_lossy(&said).lines().map(str::to_owned).collect())
}

/// A test that leaves files among the sources has them committed with the next change.
fn tree(before: Option<Vec<String>>) -> Outcome {
    let start = Instant::now();
    let before = before.unwrap_or_default();
    let left: Vec<String> = changed().into_iter().flatten().filter(|line| !before.contains(line)).collect();
    left.iter().for_each(|line| println!("error: a step of the check has left: {line}"));
    Outcome { name: "tree", passed: left.is_empty(), took: start.elapsed() }
}

fn table(outcomes: &[Outcome], missing: &[&str]) -> String {
    let mut table = String::from("\n");
    for Outcome { name, passed, took } in outcomes {
        let word = if *passed { "ok" } else { "FAILED" };
        _ = writeln!(table, "{name:<14} {word:<6} {:>7.1} s", took.as_secs_f64());
    }
    if !missing.is_empty() {
        _ = writeln!(table, "\ntests that need {} were skipped", missing.join(", "));
    }
    table
}

/// Private items are documented too: the theory of an inner module is for those that work on it.
fn documentation() -> Result<bool, Failure> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    cargo(&arguments, &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")])
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<bool, Failure> {
    let status = Command::new(house::cargo())
        .current_dir(root())
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .status()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_failed_and_what_was_skipped() {
        let outcome = |name, passed| Outcome { name, passed, took: Duration::from_millis(1500) };
        let table = table(&[outcome("format", true), outcome("lints", false)], &["zdb"]);
        assert!(table.contains("format         ok         1.5 s\nlints          FAILED     1.5 s\n"));
        assert!(table.ends_with("tests that need zdb were skipped\n"));
    }
}
