//! A test runner like the standard one, that can skip a test because of the machine it runs on.
//!
//! ```text
//!   test zvol_volumes_are_equal ... ok
//!   test pools_pass_zdb ... ignored, needs zdb
//!
//!   test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 2.05s
//! ```
//!
//! It understands those arguments of the standard runner that people use: filters, `--exact`, `--skip`, `--list` and
//! `--test-threads`. Output is not captured; a panic names the test, because its thread has the test's name.
//!
//! With [`RECORD`] in the environment each trial adds a line to that file, from which `cargo xtask check` says at its end
//! which were ignored, why, and which took longest: `seconds TAB test program TAB trial TAB what is lacking`.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use crate::{golden, programs};

/// The environment variable with the number that [`day`] is to give.
pub const DAY: &str = "CENOTE_DAY";

/// The environment variable with the file to which each trial is added as it ends.
pub const RECORD: &str = "CENOTE_TRIALS";

/// The seed of the day, for trials that look at another part of what is worth a look on each: days since 1970, or what
/// [`DAY`] says, to have a failure again. It is printed as such a trial asks for it.
pub fn day() -> u64 {
    let today = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        since.as_secs() / 86_400
    };
    let day = std::env::var(DAY).ok().and_then(|day| day.parse().ok()).unwrap_or_else(today);
    println!("the seed of the day is {day}: {DAY}={day} has it again");
    day
}

/// What a test needs of the machine.
#[derive(Clone, Debug)]
pub enum Need {
    /// A program, somewhere in the path.
    Program(&'static str),
    /// The images of a golden pool: most are committed, the rest must be provided.
    Golden(&'static str),
    /// Anything else: what it is, and whether the machine has it.
    Other(&'static str, fn() -> bool),
}

impl Need {
    /// What is lacking, if it is.
    fn lacking(&self) -> Option<String> {
        match self {
            Need::Program(program) => programs::find(program).is_none().then(|| (*program).to_owned()),
            Need::Golden(pool) => {
                (!golden::is_available(pool)).then(|| format!("{} with {pool}", golden::FULL_SET))
            }
            Need::Other(what, is_there) => (!is_there()).then(|| (*what).to_owned()),
        }
    }
}

/// The user who may mount and install.
pub const ROOT: Need = Need::Other("root", is_root);

fn is_root() -> bool {
    programs::find("id").is_some_and(|_| programs::run(programs::command("id").arg("-u")) == "0\n")
}

/// One test: its name is the sentence it proves.
#[allow(missing_debug_implementations)]
pub struct Trial {
    name: String,
    needs: Vec<Need>,
    is_alone: bool,
    run: Box<dyn Fn() + Send + Sync>,
}

impl Trial {
    /// No other trial of its program runs meanwhile, for it measures the process that they share.
    pub fn alone(self) -> Trial {
        Trial { is_alone: true, ..self }
    }

    /// The same in another way, which the end of its name tells it, and which needs this.
    pub fn also(self, way: &str, need: Need) -> Trial {
        let needs = [self.needs, vec![need]].concat();
        Trial { name: self.name + way, needs, ..self }
    }
}

/// A test of this name, that needs this and does that; it fails by panicking.
pub fn trial(name: impl Into<String>, needs: &[Need], run: impl Fn() + Send + Sync + 'static) -> Trial {
    Trial { name: name.into(), needs: needs.to_vec(), is_alone: false, run: Box::new(run) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Ignored(String),
}

/// Runs the trials that the command line asks for. The exit code is the standard runner's.
pub fn main(trials: Vec<Trial>) -> ExitCode {
    let start = Instant::now();
    let options = Options::parse(std::env::args().skip(1));
    let all = trials.len();
    let chosen: Vec<Trial> = trials.into_iter().filter(|trial| options.wants(&trial.name)).collect();
    if options.list {
        for trial in &chosen {
            println!("{}: test", trial.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let outcomes = run(&chosen, options.threads);
    let summary = summary(&outcomes, all - chosen.len());
    println!("\n{summary}; finished in {:.2}s\n", start.elapsed().as_secs_f64());
    // 101 is what the standard runner and a panicking process exit with.
    if outcomes.contains(&Outcome::Failed) { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

fn run(trials: &[Trial], threads: usize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let place = RwLock::new(());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(trials.len()) {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let whole = trial.is_alone.then(|| place.write());
                    let shared = (!trial.is_alone).then(|| place.read());
                    let start = Instant::now();
                    let outcome = run_one(trial);
                    drop((whole, shared));
                    record(&trial.name, &outcome, start.elapsed());
                    println!("{}", line(&trial.name, &outcome));
                    outcomes.lock().expect("no trial panics while it holds the list").push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().expect("no trial panics while it holds the list")
}

fn run_one(trial: &Trial) -> Outcome {
    let lacking: Vec<String> = trial.needs.iter().filter_map(Need::lacking).collect();
    if !lacking.is_empty() {
        return Outcome::Ignored(lacking.join(", "));
    }
    // A thread of its own, for its name: a panic prints it.
    let done = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name(trial.name.clone());
        let run = || catch_unwind(AssertUnwindSafe(&trial.run)).is_ok();
        builder.spawn_scoped(scope, run).is_ok_and(|thread| thread.join().unwrap_or(false))
    });
    if done { Outcome::Passed } else { Outcome::Failed }
}

/// Adds a line to the file that [`RECORD`] names. Programs run side by side, so a line is written in one piece.
fn record(name: &str, outcome: &Outcome, took: Duration) {
    let Some(file) = std::env::var_os(RECORD) else { return };
    let program = std::env::current_exe().unwrap_or_default();
    let line = recorded(&program, name, outcome, took);
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    if let Err(failure) = opened.and_then(|mut opened| opened.write_all(line.as_bytes())) {
        eprintln!("the trial is not recorded in {}: {failure}", Path::new(&file).display());
    }
}

fn recorded(program: &Path, name: &str, outcome: &Outcome, took: Duration) -> String {
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash: `e2e-5f0c9b3a1d2e4f60`.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let lacking = if let Outcome::Ignored(lacking) = outcome { lacking } else { "" };
    format!("{:.2}\t{program}\t{name}\t{lacking}\n", took.as_secs_f64())
}

fn line(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => format!("test {name} ... ok"),
        Outcome::Failed => format!("test {name} ... FAILED"),
        Outcome::Ignored(lacking) => format!("test {name} ... ignored, needs {lacking}"),
    }
}

fn summary(outcomes: &[Outcome], filtered: usize) -> String {
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    let passed = count(|outcome| *outcome == Outcome::Passed);
    let failed = count(|outcome| *outcome == Outcome::Failed);
    let ignored = outcomes.len() - passed - failed;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         {filtered} filtered out"
    )
}

#[derive(Debug, Default)]
struct Options {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    list: bool,
    /// Only those that are ignored at compile time: we have none.
    ignored: bool,
    threads: usize,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Options {
        let from_environment = std::env::var("RUST_TEST_THREADS").ok().and_then(|n| n.parse().ok());
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut options = Options { threads: from_environment.unwrap_or_else(cores), ..Options::default() };
        let mut arguments = arguments.flat_map(|argument| match argument.split_once('=') {
            Some((key, value)) if key.starts_with("--") => vec![key.to_owned(), value.to_owned()],
            _ => vec![argument],
        });
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => options.exact = true,
                "--list" => options.list = true,
                "--ignored" => options.ignored = true,
                "--skip" => options.skips.extend(arguments.next()),
                "--test-threads" => {
                    options.threads = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
                }
                "--format" | "--color" | "--logfile" => _ = arguments.next(),
                flag if flag.starts_with('-') => {}
                filter => options.filters.push(filter.to_owned()),
            }
        }
        options.threads = options.threads.max(1);
        options
    }

    fn wants(&self, name: &str) -> bool {
        let matches =
            |wanted: &String| if self.exact { name == wanted } else { name.contains(wanted.as_str()) };
        let is_asked = self.filters.is_empty() || self.filters.iter().any(matches);
        !self.ignored && is_asked && !self.skips.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn trials_pass_fail_or_are_ignored_and_are_counted_as_such() {
        let trials = [
            trial("good", &[], || {}),
            trial("bad", &[], || panic!("on purpose")),
            trial("homeless", &[Need::Program("no-such-program")], || panic!("never run")),
        ];
        let outcomes = run(&trials, 1);
        assert_eq!(
            outcomes,
            [Outcome::Passed, Outcome::Failed, Outcome::Ignored("no-such-program".to_owned())]
        );
        assert_eq!(line("homeless", &outcomes[2]), "test homeless ... ignored, needs no-such-program");
        assert_eq!(
            summary(&outcomes, 4),
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out"
        );
    }

    #[test]
    fn nothing_runs_beside_a_trial_that_is_to_be_alone() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let beside = |at_most: usize| {
            move || {
                let now = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
                std::thread::sleep(Duration::from_millis(2));
                let later = RUNNING.fetch_sub(1, Ordering::SeqCst);
                assert!(now.max(later) <= at_most, "{now} and {later} at once");
            }
        };
        let some = |n: usize| trial(format!("{n}"), &[], beside(4));
        let alone = |n: usize| trial(format!("alone {n}"), &[], beside(1)).alone();
        let trials: Vec<Trial> = (0..40).map(|n| if n % 5 == 3 { alone(n) } else { some(n) }).collect();
        assert!(run(&trials, 4).iter().all(|outcome| *outcome == Outcome::Passed));
    }

    #[test]
    fn a_trial_is_recorded_with_its_time_and_what_it_lacks() {
        let program = Path::new("/target/debug/deps/e2e-5f0c9b3a1d2e4f60");
        let (took, lacking) = (Duration::from_millis(1234), Outcome::Ignored("zdb".to_owned()));
        assert_eq!(recorded(program, "a", &Outcome::Passed, took), "1.23\te2e\ta\t\n");
        assert_eq!(recorded(program, "a", &lacking, took), "1.23\te2e\ta\tzdb\n");
    }

    #[test]
    fn filters_and_skips_choose_trials() {
        assert!(options("").wants("abc"));
        assert!(options("b x").wants("abc") && !options("x").wants("abc"));
        assert!(!options("ab --exact").wants("abc") && options("--exact abc").wants("abc"));
        assert!(!options("--skip=c").wants("abc") && !options("--ignored").wants("abc"));
        assert_eq!(options("--test-threads=3").threads, 3);
        assert_eq!(options("--test-threads 0").threads, 1);
    }
}
