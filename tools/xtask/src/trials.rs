//! The step `tests` of the check: cargo's own, and at its end what was ignored and why, and what took longest.
//!
//! ```text
//!   cargo test ──both streams, in order──▶ terminal
//!                                     └──▶ `Running …`, `Doc-tests …`, `finished in …`  ─▶ seconds of each test program
//!   trials of `interop::harness` ──a file──▶ seconds of each, and what it lacks
//! ```
//!
//! Tests of the standard runner have no time of their own; their program's stands for them.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, house, root};

/// The variable that `interop::harness` looks at.
const RECORD: &str = "CENOTE_TRIALS";
const SLOWEST: usize = 10;

/// Runs all tests and prints the two lists; true when every test passed.
pub fn run() -> Result<bool, Failure> {
    let record = record_file()?;
    let (mut reader, writer) = std::io::pipe()?;
    let mut cargo = Command::new(house::cargo());
    cargo.current_dir(root()).args(["test", "--workspace", "--no-fail-fast"]).env(RECORD, &record);
    cargo.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = cargo.spawn()?;
    // `cargo` holds the writing end as long as it is there: without it the loop below would not end.
    drop(cargo);
    let mut programs = Programs::default();
    let mut lines = BufReader::new(&mut reader);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        programs.hear(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let passed = child.wait()?.success();
    let trials = std::fs::read_to_string(&record).unwrap_or_default();
    print!("{}{}", slowest(&programs.took, &trials), ignored(&trials));
    Ok(passed)
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
            let file =
                Path::new(file.trim_end_matches(')')).file_name().unwrap_or_default().to_string_lossy();
            let program = file.rsplit_once('-').map_or("", |(name, _)| name);
            self.current = format!("{program} ({})", target.trim_start_matches("unittests "));
        } else if let Some(name) = line.strip_prefix("Doc-tests ") {
            self.current = format!("{name} (examples)");
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
            "   Doc-tests zio",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            programs.hear(line);
        }
        let expected =
            [(2.05, "arc (src/lib.rs)"), (12.0, "e2e (tests/e2e/main.rs)"), (0.0, "zio (examples)")];
        assert_eq!(programs.took, expected.map(|(took, name)| (took, name.to_owned())));
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
