//! Job files of fio: sections of keys become a [`Description`].
//!
//! ```text
//!   [global]       what follows holds for the jobs after it
//!   [name]         a job: a stream for each of its numjobs, with iodepth requests under way
//!   stonewall      a run of its own, and with the jobs after it, when all before have ended
//! ```
//!
//! A job ends when it has moved its size, or after its runtime; `time_based` leaves only the second. A random job of one
//! length has each block once before any comes again, as fio's map of them does; of several lengths, or with
//! `norandommap`, one may come twice, and one not at all. [`KEYS`] is what is understood; any other key is refused by name,
//! with its line.

mod job;
mod keys;

use crate::describe::{Description, Run, STREAMS_MAX};
use crate::words::{Parsed, Place, shown, text};
use job::{Job, Stores};
pub use keys::KEYS;
use std::time::Duration;

const JOBS_MAX: usize = 10_000;

/// Reads a file's bytes; `file` is how complaints name it.
pub fn parse(file: &str, bytes: &[u8]) -> Parsed<Description> {
    let jobs = jobs(file, text(file, bytes)?)?;
    let place = jobs.last().map_or_else(|| Place::new(file, 1, ""), |job| job.place.clone());
    let (mut stores, mut groups): (Stores, Vec<Vec<&Job>>) = (Stores::default(), Vec::new());
    for job in &jobs {
        match groups.last_mut() {
            Some(group) if !job.waits => group.push(job),
            _ => groups.push(vec![job]),
        }
    }
    let copies: u64 = jobs.iter().map(|job| u64::from(job.copies)).sum();
    if copies > STREAMS_MAX as u64 {
        return place.complain(format!("{copies} jobs with their copies; {STREAMS_MAX} is the most"));
    }
    let runs = groups.iter().map(|group| run(group, &mut stores)).collect::<Parsed<Vec<Run>>>()?;
    if runs.is_empty() {
        return place.complain("there is no job");
    }
    let description = Description { stores: stores.all, runs };
    match description.check() {
        Ok(()) => Ok(description),
        Err(e) => place.complain(e.to_string()),
    }
}

fn jobs(file: &str, text: &str) -> Parsed<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut global = Job::default();
    let mut is_global = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        let place = Place::new(file, number + 1, "");
        if let Some(name) = line.strip_prefix('[') {
            let Some(name) = name.strip_suffix(']').map(str::trim).filter(|n| !n.is_empty()) else {
                return place.complain("a section is [name]");
            };
            is_global = Some(name == "global");
            if name != "global" {
                jobs.push(Job { name: name.into(), place, ..global.clone() });
            }
            if jobs.len() > JOBS_MAX {
                return Place::new(file, number + 1, "").complain(format!("more than {JOBS_MAX} jobs"));
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        let place = Place::new(file, number + 1, key);
        if value.contains('$') {
            return place.complain(format!("'{}': variables are not put in", shown(value)));
        }
        match is_global {
            None => return place.complain("a key before the first section"),
            Some(true) => keys::take(&mut global, key, value, &place)?,
            Some(false) => {
                if let Some(job) = jobs.last_mut() {
                    keys::take(job, key, value, &place)?;
                }
            }
        }
    }
    Ok(jobs)
}

/// The jobs that run side by side.
fn run(group: &[&Job], stores: &mut Stores) -> Parsed<Run> {
    let names: Vec<&str> = group.iter().map(|job| job.name.as_str()).collect();
    let mut run = Run::new(names.join("+"));
    let warmups = group.iter().map(|job| job.warmup);
    run.warmup = warmups.max().unwrap_or(Duration::ZERO);
    for job in group {
        run.streams.extend(job.streams(stores)?);
    }
    let elapsed: Option<Vec<Duration>> = run.streams.iter().map(|s| s.elapsed).collect();
    run.elapsed = elapsed.and_then(|all| all.into_iter().max());
    Ok(run)
}

#[cfg(test)]
mod tests;
