//! `cenote work`: a load on a place, and what it measures.
//!
//! ```text
//!   FILE ─▶ vdbench or fio ─┐
//!   NAME, places ─▶ profile ─┴▶ changes of the command line ─▶ drive ─▶ lines, a bar, JSON, a log of histograms
//! ```
//!
//! SIGINT ends the run that is on; its summary is printed, and no other begins. A second one ends the program.

use crate::{report, tools};
use appliance::Home;
use cli::Failure;
use cli::args::work::{Format, Work};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use workload::adjust::Changes;
use workload::describe::{Description, Run, Store};
use workload::drive::{News, Options, Summary, drive};
use workload::places::Machine;
use workload::profiles::{PROFILES, profile};
use workload::show::hdr::Log;
use workload::show::{json, table};
use workload::tally::Figures;
use world::sync::Event;

/// A file is read no further: it is refused then.
const READ_MAX: u64 = 2 << 20;
/// JSON has the last so many intervals of a run.
const INTERVALS_MAX: usize = 10_000;
/// The most threads for streams whose requests are system calls.
const THREADS_MAX: usize = 64;

/// Loads that are not descriptions, and what they are.
const OTHERS: &[(&str, &str)] = &[
    ("filesync", "small files, created and written with O_DSYNC: PATH FILES"),
    ("xattrtest", "files with an extended attribute: PATH, --files N and more"),
    ("mds-survey", "creates, lookups, destroys by threads: PATH, --files N and more"),
];

pub fn run(home: &Home, args: Work) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let words: Vec<&str> = args.places.iter().map(String::as_str).collect();
    let what = args.what.as_deref().unwrap_or_default();
    if !Path::new(what).exists() {
        match what {
            "filesync" => return tools::filesync(home, &words),
            "xattrtest" => return tools::xattrtest(&words),
            "mds-survey" => return tools::mds_survey(&words),
            _ => {}
        }
    }
    let description = describe(what, &args)?;
    let description =
        changes(&args)?.apply(description).map_err(|e| Failure::Failed(format!("work: {e}")))?;
    if args.dry_run {
        return dry_run(&description);
    }
    carry_out(description, args)
}

fn list() -> Result<(), Failure> {
    let profiles = PROFILES.iter().map(|p| (p.name, p.what));
    let lines: Vec<String> =
        profiles.chain(OTHERS.iter().copied()).map(|(name, what)| format!("{name:<12}{what}")).collect();
    report::say(&lines.join("\n"));
    Ok(())
}

/// The description of a file, or of a profile on the places that are given.
fn describe(what: &str, args: &Work) -> Result<Description, Failure> {
    let path = Path::new(what);
    if !path.exists() {
        if what.contains('/') || what.contains('.') {
            return Err(Failure::Failed(format!("work: there is no file {what}")));
        }
        let stores: Vec<Store> = args
            .places
            .iter()
            .enumerate()
            .map(|(i, place)| Store::new(format!("sd{}", i + 1), place))
            .collect();
        return profile(what, &stores).map_err(|e| Failure::Usage(format!("work: {e}")));
    }
    if !args.places.is_empty() {
        let usage = "work: a file says itself where it works; --lun NAME=PLACE puts another place in";
        return Err(Failure::Usage(usage.into()));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(READ_MAX).read_to_end(&mut bytes));
    read.map_err(|e| Failure::Failed(format!("work: cannot read {what}: {e}")))?;
    let parsed = match args.format.unwrap_or_else(|| format_of(&bytes)) {
        Format::Fio => workload::fio::parse(what, &bytes),
        Format::Vdbench => workload::vdbench::parse(what, &bytes),
    };
    parsed.map_err(|complaint| Failure::Failed(complaint.to_string()))
}

/// A job file begins with a section.
fn format_of(bytes: &[u8]) -> Format {
    let text = String::from_utf8_lossy(bytes);
    let first =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';', '*', '/']));
    if first.is_some_and(|line| line.starts_with('[')) { Format::Fio } else { Format::Vdbench }
}

fn changes(args: &Work) -> Result<Changes, Failure> {
    let time = |option: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => {
            let time = workload::time(text).ok_or_else(|| {
                Failure::Usage(format!("work: {option}: '{text}' is not a time; 30, 90s, 5m and 1h are"))
            });
            time.map(Some)
        }
    };
    Ok(Changes {
        elapsed: time("--elapsed", &args.elapsed)?,
        warmup: time("--warmup", &args.warmup)?,
        interval: time("--interval", &args.interval)?,
        rate: args.rate,
        size: args.size,
        direct: args.direct,
        verify: args.verify,
        places: args.lun.clone(),
        saturate: args.saturate,
    })
}

fn dry_run(description: &Description) -> Result<(), Failure> {
    let stores = description.stores.iter().map(|store| {
        let size = store.size.map_or("all of it".into(), units::pretty_size);
        let ways: Vec<&str> = [(store.direct, "direct"), (store.durable, "durable")]
            .iter()
            .filter(|w| w.0)
            .map(|w| w.1)
            .collect();
        format!("{}: {}, {size} {}", store.name, store.place, ways.join(" ")).trim_end().to_string()
    });
    let runs = description.runs.iter().map(|run| {
        let asked = match run.load {
            workload::describe::Load::PerSecond(rate) => Some(rate),
            _ => None,
        };
        table::title(run, asked).trim_end().to_string()
    });
    report::say(&stores.chain(runs).collect::<Vec<_>>().join("\n"));
    Ok(())
}

fn carry_out(description: Description, args: Work) -> Result<(), Failure> {
    let options = Options { seed: args.seed };
    let is_curve = args.saturate.is_some();
    let (outcome, mut screen) = linux::run(loops(&description), async move {
        let stop = Arc::new(Event::new());
        drop(world::spawn({
            let stop = stop.clone();
            async move {
                linux::shutdown_signal().await;
                stop.set();
            }
        }));
        let machine = Machine::new(Arc::new(|what: &str| report::complain(what)));
        let mut screen = match Screen::new(&args, stop.clone()) {
            Ok(screen) => screen,
            Err(failure) => return (Err(failure), None),
        };
        let mut tell = |news: News<'_>| screen.show(news);
        let done = drive(&description, &machine, options, stop, &mut tell).await;
        (done.map_err(|e| Failure::Failed(format!("work: {e}"))), Some(screen))
    });
    if let Some(screen) = &mut screen {
        screen.finish(options.seed, is_curve)?;
    }
    outcome.map(drop)
}

/// A loop for each processor, or for each stream that keeps one waiting: a job of its own thread, as others have it.
fn loops(description: &Description) -> linux::Config {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = description.streams_in_place().min(THREADS_MAX).max(processors);
    linux::Config { cores: Some(cores), ..linux::Config::default() }
}

/// Where figures are shown as they come.
struct Screen {
    is_json: bool,
    /// Whether a bar is drawn between the lines.
    has_bar: bool,
    stop: Arc<Event>,
    log: Option<Log<BufWriter<File>>>,
    failure: Option<Failure>,
    run: Option<Run>,
    done: Duration,
    lines: u64,
    summaries: Vec<Summary>,
    intervals: Vec<Vec<serde_json::Value>>,
}

impl Screen {
    fn new(args: &Work, stop: Arc<Event>) -> Result<Screen, Failure> {
        let log = match &args.hdr {
            None => None,
            Some(path) => {
                let cannot = |e: &dyn std::fmt::Display| {
                    Failure::Failed(format!("work: cannot write {}: {e}", path.display()))
                };
                let file = File::create(path).map_err(|e| cannot(&e))?;
                Some(Log::new(BufWriter::new(file), world::wall_clock()).map_err(|e| cannot(&e))?)
            }
        };
        Ok(Screen {
            is_json: args.json,
            has_bar: std::io::stderr().is_terminal(),
            stop,
            log,
            failure: None,
            run: None,
            done: Duration::ZERO,
            lines: 0,
            summaries: Vec::new(),
            intervals: Vec::new(),
        })
    }

    fn show(&mut self, news: News<'_>) {
        match news {
            News::Begins { run, asked } => {
                (self.run, self.done, self.lines) = (Some(run.clone()), Duration::ZERO, 0);
                self.intervals.push(Vec::new());
                self.print(&table::title(run, asked));
            }
            News::Interval { number, is_warmup, figures } => self.interval(number, is_warmup, figures),
            News::Rows { .. } => {}
            News::Ends(summary) => {
                self.clear_bar();
                self.print(&table::summary(summary));
                self.summaries.push(summary.clone());
            }
        }
    }

    fn interval(&mut self, number: u64, is_warmup: bool, figures: &Figures) {
        self.clear_bar();
        if !self.is_json {
            if self.lines.is_multiple_of(table::HEAD_EVERY) {
                self.print(&table::head());
            }
            self.lines += 1;
            let name = if is_warmup { format!("warm {number}") } else { number.to_string() };
            self.print(&table::line(&name, figures));
        } else if let Some(intervals) = self.intervals.last_mut() {
            if intervals.len() == INTERVALS_MAX {
                intervals.remove(0);
            }
            intervals.push(json::interval(number, is_warmup, figures));
        }
        let Some(run) = &self.run else { return };
        if let Some(log) = &mut self.log
            && let Err(e) = log.add(&run.name, figures)
        {
            self.failure = Some(Failure::Failed(format!("work: {e}")));
            self.log = None;
            self.stop.set();
        }
        self.done += figures.elapsed;
        if self.has_bar {
            let whole = run.elapsed.map(|elapsed| elapsed.saturating_add(run.warmup));
            let line = format!("\r{}\x1b[K", table::bar(self.done, whole, figures));
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    fn clear_bar(&self) {
        if self.has_bar {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }

    /// Prints, unless JSON is printed at the end; a reader that is gone ends the run.
    fn print(&mut self, text: &str) {
        if self.is_json {
            return;
        }
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.failure = Some(Failure::Told);
            self.stop.set();
        }
    }

    fn finish(&mut self, seed: u64, is_curve: bool) -> Result<(), Failure> {
        self.clear_bar();
        if let Some(log) = self.log.take() {
            log.finish().map_err(|e| Failure::Failed(format!("work: {e}")))?;
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_json {
            let report = json::report(seed, &self.summaries, &self.intervals, is_curve);
            report::say(&format!("{report:#}"));
        } else if is_curve && !self.summaries.is_empty() {
            self.print(&table::curve(&self.summaries));
        }
        Ok(())
    }
}
