//! Long runs at a desk, and replays: `cargo xtask torture` and `cargo xtask sim` start this program.
//!
//! ```text
//!   work   random operations, reopening, power cuts, one model        a seed is a case
//!   power  the power-cut proof: all short words, then random ones      SETUP:WORKLOAD[:SPOT] is a case
//!   files  the same over files                                         files:SETUP:WORD[:SPOT]
//!   forged structures of pools changed, sealed and believed              forged:POOL:SEED
//!   suspended  devices that fail and come back under clients             suspended:SEED:STEPS
//!   devices  devices that come and go, hurt or not             devices:, sweeps:, splits: or rebuilds:SEED:STEPS
//!   hosts  pools whose host fills up, under clients and kills             host:SEED:STEPS
//!   replay one case, everything printed
//! ```
//!
//! The cases of a proof are shared out among some threads: the world of each has one thread and nothing in common with
//! others.
//!
//! A failing case is appended to `seeds.txt`, which the tests replay.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::ops::AddAssign;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use torture::forged::{ForgedCase, ForgedRunner, Watch};
use torture::power::files::{self, FileCase, FileRunner};
use torture::power::{Case, Effort, Failure, Figures, Runner, Setup, Ways, Workload, Zdb};
use torture::{DeviceCase, DeviceDeeds, DeviceFigures, FullHosts, Suspensions, Work, WorkFigures, seeds};

const USAGE: &str = "\
torture work [--seeds N] [--from SEED] [--ops N] [--minutes N]
torture power [--letters N] [--seeds N] [--from SEED] [--every-setup] [--zdb-every N]
              [--cuts full|flushes] [--fates N] [--jobs N] [--minutes N]
torture files, with the options of power, over files alone [--with LETTERS]
torture forged [POOL] [--seeds N] [--from SEED] [--minutes N]
torture suspended|hosts [--seeds N] [--from SEED] [--ops N] [--minutes N]
torture devices [--sweeps|--splits|--rebuilds] [--seeds N] [--from SEED] [--ops N] [--minutes N] [--jobs N] [--zdb-every N]
torture rehearse POOL
torture replay CASE [--ops N]
";

/// The options; each command uses its own.
struct Options {
    seeds: Option<u64>,
    from: u64,
    ops: Option<u64>,
    letters: usize,
    /// Of the words over files, those with one of these letters; all if there are none.
    with: String,
    every_setup: bool,
    /// What is done to devices.
    deeds: DeviceDeeds,
    zdb_every: u64,
    /// Of the words.
    effort: Effort,
    fates: Option<u64>,
    jobs: usize,
    /// No case is begun later.
    minutes: Option<u64>,
    words: Vec<String>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            seeds: None,
            from: 0,
            ops: None,
            letters: 3,
            with: String::new(),
            every_setup: false,
            deeds: DeviceDeeds::default(),
            zdb_every: 0,
            effort: Effort::FULL,
            fates: None,
            jobs: std::thread::available_parallelism().map_or(1, |n| n.get()),
            minutes: None,
            words: Vec::new(),
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            if argument == "--cuts" {
                options.effort = match arguments.next().as_deref() {
                    Some("full") => Effort::FULL,
                    Some("flushes") => Effort::FLUSHES,
                    _ => return Err("--cuts wants full or flushes".into()),
                };
                continue;
            }
            if argument == "--with" {
                options.with = arguments.next().unwrap_or_default();
                continue;
            }
            let mut number = || {
                let value = arguments.next().unwrap_or_default();
                value.replace('_', "").parse::<u64>().map_err(|_| format!("{argument} wants a number"))
            };
            match argument.as_str() {
                "--seeds" => options.seeds = Some(number()?),
                "--from" => options.from = number()?,
                "--ops" => options.ops = Some(number()?),
                "--letters" => options.letters = number()? as usize,
                "--zdb-every" => options.zdb_every = number()?,
                "--fates" => options.fates = Some(number()?),
                "--jobs" => options.jobs = number()?.max(1) as usize,
                "--minutes" => options.minutes = Some(number()?),
                "--every-setup" => options.every_setup = true,
                "--sweeps" => options.deeds = DeviceDeeds::Sweeps,
                "--splits" => options.deeds = DeviceDeeds::Splits,
                "--rebuilds" => options.deeds = DeviceDeeds::Rebuilds,
                word if word.starts_with('-') => return Err(format!("{word}: no such option")),
                word => options.words.push(word.to_string()),
            }
        }
        Ok(options)
    }

    fn work_ops(&self) -> u64 {
        self.ops.unwrap_or(100_000)
    }

    /// When no case is begun any more.
    fn end(&self, start: Instant) -> Option<Instant> {
        self.minutes.map(|minutes| start + Duration::from_secs(60 * minutes))
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(e) => {
            eprintln!("torture: {e}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    let failures = match words[..] {
        ["work"] => work(&options),
        ["power"] => [power(&options), over_files(&options)].concat(),
        ["files"] => over_files(&options),
        ["suspended"] => suspended(&options),
        ["devices"] => devices(&options),
        ["hosts"] => hosts(&options),
        ["forged"] => forged(&options, None),
        ["forged", pool] => forged(&options, Some(pool)),
        ["rehearse", pool] => rehearse(pool),
        ["forged-worker"] => return worker(&options, None),
        ["forged-worker", pool] => return worker(&options, Some(pool)),
        ["replay", case] => replay(case, &options),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    for failure in &failures {
        println!("FAILED  cargo xtask sim {}\n        {}", failure.case, failure.why);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn work(options: &Options) -> Vec<Failure> {
    let (mut failures, mut total, start) = (Vec::new(), WorkFigures::default(), Instant::now());
    // With a limit of time, as many as there is time for.
    let count = options.seeds.unwrap_or(if options.minutes.is_some() { 1000 } else { 1 });
    let mut cases = 0;
    for seed in options.from..options.from + count {
        if options.end(start).is_some_and(|end| Instant::now() >= end) {
            break;
        }
        cases += 1;
        let work = Work { seed, ops: options.work_ops(), is_loud: false };
        let mut progress = Progress::new();
        let begun = Instant::now();
        let done = work.run(|f| {
            progress.tell(|| format!("seed {seed}: {} of {} operations, {} cuts", f.ops, work.ops, f.cuts));
        });
        progress.end();
        match done {
            Ok(WorkFigures { ops, cuts }) => {
                let (shape, took) = (work.shape(), begun.elapsed().as_secs_f64());
                let (layout, ashift) = (shape.layout, shape.ashift);
                println!(
                    "seed {seed}: {layout:?}, ashift {ashift}: {ops} operations, {cuts} cuts, {took:.0} s"
                );
                total.ops += ops;
                total.cuts += cuts;
            }
            Err(why) => {
                println!("seed {seed}: {why}");
                seeds::remember(&format!("work {seed} {}", work.ops));
                failures.push(Failure { case: format!("{seed} --ops {}", work.ops), why });
            }
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "seeds {cases}, operations {}, power cuts {}, failures {}, {took:.0} s",
        total.ops,
        total.cuts,
        failures.len()
    );
    failures
}

fn suspended(options: &Options) -> Vec<Failure> {
    by_seeds(options, "suspended", 250, |seed, steps| {
        let case = Suspensions { seed, steps };
        (case.to_string(), case.run())
    })
}

fn hosts(options: &Options) -> Vec<Failure> {
    by_seeds(options, "host", 400, |seed, steps| {
        let case = FullHosts { seed, steps };
        (case.to_string(), case.run())
    })
}

/// Runs a kind of case with one seed after another; a case answers its name, and what it has done.
fn by_seeds<F: Default + AddAssign + Display>(
    options: &Options,
    kind: &str,
    steps: u64,
    run: impl Fn(u64, u64) -> (String, Result<F, String>),
) -> Vec<Failure> {
    let (mut failures, mut total, start) = (Vec::new(), F::default(), Instant::now());
    let (mut progress, mut cases) = (Progress::new(), 0);
    for seed in seeds_of(options) {
        if options.end(start).is_some_and(|end| Instant::now() >= end) {
            break;
        }
        cases += 1;
        match run(seed, options.ops.unwrap_or(steps)) {
            (_, Ok(figures)) => total += figures,
            (case, Err(why)) => {
                progress.end();
                println!("{case}: {why}");
                seeds::remember(&format!("{kind} {case}"));
                failures.push(Failure { case, why });
            }
        }
        progress.tell(|| format!("{kind}: seed {seed}, {total}, {} failures", failures.len()));
    }
    progress.end();
    let took = start.elapsed().as_secs();
    println!("{kind}: seeds {cases}, {total}, failures {}, {took} s", failures.len());
    failures
}

/// Several runs at once; every so many are given to `zdb` when they are over.
fn devices(options: &Options) -> Vec<Failure> {
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    let (seeds, end, steps) = (seeds_of(options), options.end(start), options.ops.unwrap_or(600));
    let (sender, done) = mpsc::channel();
    let job = |sender: mpsc::Sender<_>, number: usize| {
        with_zdb(options.zdb_every > 0, number, |ways| {
            while end.is_none_or(|end| Instant::now() < end) {
                let seed = seeds.start + next.fetch_add(1, Ordering::Relaxed) as u64;
                if seed >= seeds.end {
                    return;
                }
                let zdb = ways.zdb.as_ref().filter(|_| seed.is_multiple_of(options.zdb_every.max(1)));
                let case = DeviceCase { seed, steps, deeds: options.deeds };
                _ = sender.send((case, zdb.is_some(), case.run_and_judge(false, zdb)));
            }
        });
    };
    let (mut failures, mut total, mut progress) = (Vec::new(), DeviceFigures::default(), Progress::new());
    let (mut cases, mut judged) = (0, 0);
    std::thread::scope(|threads| {
        for number in 0..options.jobs {
            let (job, sender) = (&job, sender.clone());
            threads.spawn(move || job(sender, number));
        }
        drop(sender);
        for (case, by_zdb, outcome) in done {
            (cases, judged) = (cases + 1, judged + u64::from(by_zdb));
            match outcome {
                Ok(figures) => total += figures,
                Err(why) => {
                    progress.end();
                    println!("FAILED  {case}\n        {why}");
                    seeds::remember(&format!("devices {case}"));
                    failures.push(Failure { case: case.to_string(), why });
                }
            }
            progress.tell(|| format!("devices: {cases} runs, {total}, {} failures", failures.len()));
        }
    });
    progress.end();
    let (took, failed) = (start.elapsed().as_secs(), failures.len());
    println!(
        "devices: {cases} runs of {steps} steps, {total}, {judged} judged by zdb, {failed} failures, {took} s"
    );
    failures
}

fn seeds_of(options: &Options) -> std::ops::Range<u64> {
    options.from..options.from + options.seeds.unwrap_or(1000)
}

fn forged(options: &Options, pool: Option<&str>) -> Vec<Failure> {
    let (mut progress, start, seeds) = (Progress::new(), Instant::now(), seeds_of(options));
    let limit = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let done = torture::forged::campaign(seeds.clone(), pool, limit, |so_far, failure| {
        if let Some(failure) = failure {
            progress.end();
            println!("FAILED  {}\n        {}", failure.case, failure.why);
            seeds::remember(&format!("forged {}", failure.case));
        }
        let (cases, failures) = (so_far.cases, so_far.failures.len());
        progress
            .tell(|| format!("forged: {cases} of {} pools, {failures} failures", seeds.end - seeds.start));
    });
    progress.end();
    let done = match done {
        Ok(done) => done,
        Err(e) => return vec![Failure { case: "forged".into(), why: e.to_string() }],
    };
    let (took, failures) = (start.elapsed().as_secs(), done.failures.len());
    let end = seeds.start + done.cases;
    println!("forged: seeds {} to {end}, cases {}, failures {failures}, {took} s", seeds.start, done.cases);
    done.failures
}

/// Does with a pool as it is what is done with forged ones, and tells what it meets: nothing, where all is well.
fn rehearse(pool: &str) -> Vec<Failure> {
    let found = ForgedRunner::new(Watch::new(|case, why| println!("{case}: {why}"))).rehearse(pool);
    let told = found.unwrap_or_else(|why| vec![why]);
    told.into_iter().map(|why| Failure { case: pool.to_string(), why }).collect()
}

/// The process that a campaign watches.
fn worker(options: &Options, pool: Option<&str>) -> ExitCode {
    torture::forged::worker(seeds_of(options), pool);
    ExitCode::SUCCESS
}

fn power(options: &Options) -> Vec<Failure> {
    let of = |setup, workload: &Workload| Case::of(setup, workload.clone());
    let cases = spread(options, Workload::words(options.letters), Workload::Random, of);
    prove("power", options, &cases, Runner::new, Runner::run)
}

fn over_files(options: &Options) -> Vec<Failure> {
    let of = |setup, word: &String| FileCase::of(setup, word);
    let mut words = files::words(options.letters);
    words.retain(|word| options.with.is_empty() || word.contains(|c| options.with.contains(c)));
    let cases = spread(options, words, files::random_word, of);
    prove("files", options, &cases, FileRunner::new, FileRunner::run)
}

/// The words, each in one of the setups by turns or in every one, and then random workloads by their seeds.
fn spread<W, C>(
    options: &Options,
    words: Vec<W>,
    random: impl Fn(u64) -> W,
    of: impl Fn(Setup, &W) -> C,
) -> Vec<(C, Effort)> {
    let setups = Setup::all();
    let mut cases = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let own =
            if options.every_setup { &setups[..] } else { std::slice::from_ref(&setups[i % setups.len()]) };
        cases.extend(own.iter().map(|setup| (of(*setup, word), options.effort)));
    }
    for seed in options.from..options.from + options.seeds.unwrap_or(0) {
        let setup = setups[(seed % setups.len() as u64) as usize];
        cases.push((of(setup, &random(seed)), Effort::SAMPLE));
    }
    cases
}

/// Runs the cases of one kind in their order, several at once, each job with a runner of its own. What fails is printed at
/// once, and remembered by the kind's word.
fn prove<C: Sync, R>(
    kind: &str,
    options: &Options,
    cases: &[(C, Effort)],
    runner: impl Fn(Ways) -> R + Sync,
    run: impl Fn(&mut R, &C, Effort) -> Figures + Sync,
) -> Vec<Failure> {
    let (mut figures, mut progress, start) = (Figures::default(), Progress::new(), Instant::now());
    let end = options.end(start);
    let (next, (sender, done)) = (AtomicUsize::new(0), mpsc::channel());
    let job = |sender: mpsc::Sender<Figures>, number: usize| {
        with_zdb(options.zdb_every > 0, number, |ways| {
            let mut own = runner(ways);
            while end.is_none_or(|end| Instant::now() < end) {
                let Some((case, effort)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let fates = options.fates.unwrap_or(effort.fates);
                let effort = Effort { zdb_every: options.zdb_every, fates, ..*effort };
                _ = sender.send(run(&mut own, case, effort));
            }
        });
    };
    std::thread::scope(|threads| {
        for number in 0..options.jobs {
            let (job, sender) = (&job, sender.clone());
            threads.spawn(move || job(sender, number));
        }
        drop(sender);
        for own in done {
            for failure in &own.failures {
                progress.end();
                println!("FAILED  {}\n        {}", failure.case, failure.why);
                seeds::remember(&format!("{kind} {}", failure.case));
            }
            figures.add(own);
            let (done, cuts, failures) = (figures.workloads, figures.cuts, figures.failures.len());
            progress.tell(|| {
                format!("{kind}: {done} of {} workloads, {cuts} cuts, {failures} failures", cases.len())
            });
        }
    });
    progress.end();
    figures.took = start.elapsed();
    println!("{kind}\n{figures}");
    let left = cases.len() as u64 - figures.workloads.min(cases.len() as u64);
    if left > 0 {
        println!("not run                      {left:>9} of {} workloads", cases.len());
    }
    figures.failures
}

/// Runs the work of a job with the judge, if it is wanted, and with a place for the disks that the judge is shown.
fn with_zdb<T>(is_wanted: bool, job: usize, work: impl FnOnce(Ways) -> T) -> T {
    let scratch = std::env::temp_dir().join(format!("cenote-power-{}-{job}", std::process::id()));
    let zdb = Zdb { scratch: scratch.clone(), judge: interop::zdb::judge };
    let done = work(Ways { zdb: is_wanted.then_some(zdb), ..Ways::default() });
    _ = std::fs::remove_dir_all(scratch);
    done
}

/// A number is a seed of the random work; anything else is a forged pool, or a case of the power-cut proof.
fn replay(case: &str, options: &Options) -> Vec<Failure> {
    if let Ok(seed) = case.parse() {
        let work = Work { seed, ops: options.work_ops(), is_loud: true };
        let done = work.run(|f| println!("{} operations, {} cuts", f.ops, f.cuts));
        return match done {
            Ok(_) => Vec::new(),
            Err(why) => vec![Failure { case: case.to_string(), why }],
        };
    }
    if let Ok(case) = case.parse::<Suspensions>() {
        let done = case.run().map(|figures| println!("{figures}"));
        return done.err().map(|why| Failure { case: case.to_string(), why }).into_iter().collect();
    }
    if let Ok(case) = case.parse::<DeviceCase>() {
        let done = with_zdb(true, 0, |ways| case.run_and_judge(true, ways.zdb.as_ref()));
        let done = done.map(|figures| println!("{figures}"));
        return done.err().map(|why| Failure { case: case.to_string(), why }).into_iter().collect();
    }
    if let Ok(case) = case.parse::<FullHosts>() {
        let done = case.run().map(|figures| println!("{figures}"));
        return done.err().map(|why| Failure { case: case.to_string(), why }).into_iter().collect();
    }
    if let Ok(case) = case.parse::<ForgedCase>() {
        let mut runner = ForgedRunner::new(Watch::new(|case, why| {
            println!("FAILED  {case}\n        {why}");
            std::process::exit(3);
        }));
        runner.is_loud = true;
        return runner.run(&case).into_iter().collect();
    }
    let done = with_zdb(true, 0, |ways| {
        let ways = Ways { is_loud: true, ..ways };
        match case.starts_with("files:") {
            true => case.parse::<FileCase>().map(|case| FileRunner::new(ways).run(&case, Effort::FULL)),
            false => case.parse::<Case>().map(|case| Runner::new(ways).run(&case, Effort::FULL)),
        }
    });
    match done {
        Ok(figures) => {
            println!("{figures}");
            figures.failures
        }
        Err(why) => vec![Failure { case: case.to_string(), why }],
    }
}

/// Tells how far it is: in one line of a terminal, or a line from time to time elsewhere.
struct Progress {
    told: Instant,
    is_terminal: bool,
    is_open: bool,
}

impl Progress {
    fn new() -> Progress {
        let is_terminal = std::io::stdout().is_terminal();
        Progress { told: Instant::now(), is_terminal, is_open: false }
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let pause = if self.is_terminal { Duration::from_millis(200) } else { Duration::from_secs(30) };
        if self.told.elapsed() < pause {
            return;
        }
        self.told = Instant::now();
        if self.is_terminal {
            print!("\r\x1b[K{}", line());
            _ = std::io::stdout().flush();
            self.is_open = true;
        } else {
            println!("{}", line());
        }
    }

    /// The line is free for others.
    fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            print!("\r\x1b[K");
        }
    }
}
