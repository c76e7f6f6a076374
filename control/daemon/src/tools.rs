//! Commands that need no appliance: they look at devices, or make pools of their own.

use crate::{promises, report};
use appliance::Home;
use cli::Failure;
use cli::args::tools::{Bench, BenchWhat, Inspect, InspectWhat};
use inspect::{InspectArgs, What};
use std::io::Write;
use std::sync::Arc;
use units::ObjectId;

/// `cenote inspect`: what is on devices, read without changing them.
pub fn inspect(args: Inspect) -> Result<(), Failure> {
    let what = match (args.what, args.pool) {
        (Some(what), _) => asked(what),
        (None, Some(pool)) => What::Verify { pool },
        (None, None) => {
            let usage = "what is to be inspected? 'cenote help inspect' says what there is";
            return Err(Failure::Usage(usage.into()));
        }
    };
    let args = InspectArgs { what, dirs: args.view.dirs, json: args.view.json, exact: args.view.exact };
    let output = linux::block_on(inspect::run_with(args, Arc::new(report::progress("verify"))));
    report::end_progress();
    let output = output.map_err(|e| Failure::Failed(e.to_string()))?;
    print(&output.text)?;
    if output.is_sound { Ok(()) } else { Err(Failure::Told) }
}

fn asked(what: InspectWhat) -> What {
    match what {
        InspectWhat::Labels { device } => What::Labels { device },
        InspectWhat::Uberblocks { device } => What::Uberblocks { device },
        InspectWhat::Cache { device } => What::Cache { device },
        InspectWhat::Mos { pool } => What::Mos { pool },
        InspectWhat::Objects { dataset } => What::Objects { dataset },
        InspectWhat::Block { dataset, object, block } => {
            let object = ObjectId(object);
            match block {
                None => What::Blocks { dataset, object },
                Some((level, blkid)) => What::Block { dataset, object, level, blkid },
            }
        }
        InspectWhat::Log { dataset } => What::Log { dataset },
        InspectWhat::Verify { pool } => What::Verify { pool },
    }
}

/// `cenote bench engine`: what the engine costs, beside the bare file and other servers.
/// The others: what it costs to keep promises, and to work on names and attributes.
pub fn bench(home: &Home, args: Bench) -> Result<(), Failure> {
    if !matches!(args.what, BenchWhat::Serve { .. }) {
        report::complain(&format!("bench: built with the profile {}", bench::PROFILE));
    }
    let command = match args.what {
        BenchWhat::Engine { dirs, size, seconds, rounds, sustained, only } => {
            let default = bench::Options::default();
            bench::Command::Engine(bench::Options {
                dirs: if dirs.is_empty() { default.dirs } else { dirs },
                size: size.unwrap_or(default.size),
                seconds: seconds.unwrap_or(default.seconds),
                rounds: rounds.unwrap_or(default.rounds).max(1),
                sustained,
                only: only.as_deref().and_then(bench::Part::parse),
            })
        }
        BenchWhat::Filesync { words } => return filesync(home, &as_strs(&words)),
        BenchWhat::Sync { words } => return print(&promises::sync(&as_strs(&words))?),
        BenchWhat::Xattrtest { words } => return xattrtest(&as_strs(&words)),
        BenchWhat::MdsSurvey { words } => return mds_survey(&as_strs(&words)),
        BenchWhat::Iscsi { words } => return iscsi(&as_strs(&words)),
        BenchWhat::Latency { words } => return latency(&as_strs(&words)),
        BenchWhat::Growth { words } => return growth(&as_strs(&words)),
        BenchWhat::Caches { words } => return caches(&as_strs(&words)),
        BenchWhat::Hits { words } => return hits(&as_strs(&words)),
        BenchWhat::Files { words } => return files(&as_strs(&words)),
        BenchWhat::Serve { socket, dir, size, block } => {
            bench::Command::Serve(bench::Served { socket, dir, size, block })
        }
    };
    let text = command.run(&["bench"], report::complain);
    print(&text.map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench filesync`: what it costs to make small files durable.
pub fn filesync(home: &Home, words: &[&str]) -> Result<(), Failure> {
    print(&promises::filesync(home, words)?)
}

/// `cenote bench iscsi`: what iSCSI costs, beside another server.
fn iscsi(words: &[&str]) -> Result<(), Failure> {
    let done = bench::iscsi::run(words, &["bench"], report::complain);
    let text = done.ok_or_else(|| Failure::Usage(bench::iscsi::USAGE.into()))?;
    print(&text.map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench latency`: how long requests take at their worst.
fn latency(words: &[&str]) -> Result<(), Failure> {
    let asked = bench::latency::parse(words).ok_or_else(|| Failure::Usage(bench::latency::USAGE.into()))?;
    let done = bench::latency::run(&asked, &["bench"], report::complain);
    print(&done.map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench growth`: what one of many costs.
fn growth(words: &[&str]) -> Result<(), Failure> {
    let asked = bench::growth::parse(words).ok_or_else(|| Failure::Usage(bench::growth::USAGE.into()))?;
    print(&bench::growth::run(&asked, report::complain).map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench caches`: what reads from memory and from cache devices cost.
fn caches(words: &[&str]) -> Result<(), Failure> {
    let asked = bench::caches::parse(words).ok_or_else(|| Failure::Usage(bench::caches::USAGE.into()))?;
    print(&bench::caches::run(&asked, report::complain).map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench hits`: how often a block is in memory.
fn hits(words: &[&str]) -> Result<(), Failure> {
    let asked = hits::parse(words).ok_or_else(|| Failure::Usage(hits::USAGE.into()))?;
    let rows = hits::run(&asked, report::complain).map_err(|e| Failure::Failed(e.to_string()))?;
    print(&if asked.json { hits::render_json(&rows) } else { hits::render(&rows) })
}

/// `cenote bench xattrtest`: what extended attributes cost.
pub fn xattrtest(words: &[&str]) -> Result<(), Failure> {
    let asked =
        bench::xattrtest::parse(words).ok_or_else(|| Failure::Usage(bench::xattrtest::USAGE.into()))?;
    print(&bench::xattrtest::run(&asked).map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench mds-survey`: what names and attributes cost.
pub fn mds_survey(words: &[&str]) -> Result<(), Failure> {
    let asked =
        bench::mds_survey::parse(words).ok_or_else(|| Failure::Usage(bench::mds_survey::USAGE.into()))?;
    print(&bench::mds_survey::run(&asked, report::complain).map_err(|e| Failure::Failed(e.to_string()))?)
}

/// `cenote bench files`: what files cost, beside other file systems.
fn files(words: &[&str]) -> Result<(), Failure> {
    let asked = bench::files::parse(words).ok_or_else(|| Failure::Usage(bench::files::USAGE.into()))?;
    print(&bench::files::run(&asked, report::complain).map_err(|e| Failure::Failed(e.to_string()))?)
}

fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Prints, and ends quietly when the reader is gone.
fn print(text: &str) -> Result<(), Failure> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
}
