//! The keys of job files, and what each does.

use super::job::{Engine, Job};
use crate::describe::{Arrival, Flush, Sizes, Spread};
use crate::words::{Parsed, Place, shown};
use std::time::Duration;

/// What is understood, and how.
pub const KEYS: &[(&str, &str)] = &[
    ("bs, blocksize", "bytes of a request; with a comma, of reads and of writes"),
    ("bsrange", "smallest and longest request, in steps of the smallest"),
    ("bssplit", "lengths with percentages, as in 4k/60:64k/40; with a comma, of reads and of writes"),
    ("buffered", "the opposite of direct"),
    ("description", "a comment"),
    ("direct", "past the cache of this machine"),
    ("directory", "where files are made that filename does not name"),
    ("end_fsync", "a flush when the job has ended"),
    ("fdatasync, fsync", "a flush after so many writes; the data, and what is needed to find it"),
    ("fadvise_hint", "0 or 1: whether the kernel is told that a job is random or in sequence; 1 unless said"),
    ("filename", "paths or URLs, separated by colons"),
    ("group_reporting", "the copies of a job are one row"),
    (
        "invalidate",
        "0 or 1: whether the job's pages are dropped from this machine's memory each time that it begins; 1 unless said",
    ),
    (
        "ioengine",
        "sync, psync, vsync, pvsync, pvsync2: one request at a time, a system call each; io_uring, libaio, posixaio: iodepth, \
         through a ring; nbd with uri; libiscsi with filename",
    ),
    ("io_size", "how much is moved, instead of size"),
    ("iodepth", "requests under way at once"),
    ("loops", "how often size is moved"),
    (
        "norandommap",
        "0 or 1: whether a block of a random job may come twice before all have come; always with lengths that differ",
    ),
    ("nrfiles", "into how many files of its own the job divides its size"),
    ("numjobs", "how many copies of the job"),
    ("offset", "where the part that is used begins"),
    ("offset_increment", "and how much further for each copy"),
    ("percentage_random", "how many of 100 requests of a random job go elsewhere"),
    ("ramp_time", "before anything is counted"),
    ("random_distribution", "random, zipf:theta, pareto:h"),
    ("rate_iops", "requests per second of each copy"),
    ("rate_process", "linear or poisson"),
    ("runtime", "for how long"),
    ("rw, readwrite", "read, write, rw, randread, randwrite, randrw"),
    ("rwmixread, rwmixwrite", "percentages of a mixed job"),
    ("size", "how much of the place is used, and moved"),
    ("stonewall, wait_for_previous", "begins when the jobs before it have ended"),
    ("sync", "0, 1, none, sync, dsync: each write is durable when it is answered"),
    ("thinktime", "between an answer and the next request, in microseconds"),
    ("thread", "always so"),
    ("time_based", "for the runtime, however much is moved"),
    ("uri", "nbd://… or nbd+unix://…, of ioengine=nbd"),
    (
        "verify",
        "any method, or 0: blocks say what they are, and are checked when they are read and at the end",
    ),
];

pub fn take(job: &mut Job, key: &str, value: &str, place: &Place) -> Parsed<()> {
    let second = Duration::from_secs(1);
    match key {
        "bs" | "blocksize" => job.lengths = both(value, |text| Ok(Sizes::one(place.length(text)?)))?,
        "bsrange" => job.lengths = both(value, |text| range(text, place))?,
        "bssplit" => job.lengths = both(value, |text| split(text, place))?,
        "buffered" => job.direct = !place.is_yes(value)?,
        "description" => {}
        "direct" => job.direct = place.is_yes(value)?,
        "directory" => job.directory = some(value, place)?.into(),
        "end_fsync" => {
            if place.is_yes(value)? {
                job.flush = Flush::AtEnd;
            }
        }
        "fdatasync" | "fsync" => {
            job.flush = match place.number_in(value, 0, u64::from(u32::MAX))? {
                0 => Flush::Never,
                n => Flush::Every(n as u32),
            }
        }
        "fadvise_hint" => job.tells_order = place.is_yes(value)?,
        "filename" => job.files = files(some(value, place)?),
        "group_reporting" => job.is_one_row = place.is_yes(value)?,
        "ioengine" => job.engine = engine(value, place)?,
        "invalidate" => job.is_cold = place.is_yes(value)?,
        "io_size" => job.moved = Some(place.size(value)?),
        "iodepth" => job.depth = place.number_in(value, 1, 65_536)? as u32,
        "loops" => job.loops = place.number_in(value, 1, 1 << 32)?,
        "norandommap" => job.repeats = place.is_yes(value)?,
        "thread" => {
            if !place.is_yes(value)? {
                return place.complain("it cannot be switched off");
            }
        }
        "nrfiles" => job.file_count = place.number_in(value, 1, 10_000)? as u32,
        "numjobs" => job.copies = place.number_in(value, 1, 10_000)? as u32,
        "offset" => job.offset = place.size(value)?,
        "offset_increment" => job.offset_increment = place.size(value)?,
        "percentage_random" => job.random_percent = place.percent(value)?,
        "ramp_time" => job.warmup = place.time(value, second)?,
        "random_distribution" => job.spread = spread(value, place)?,
        "rate_iops" => job.rate = Some(place.positive(value)?),
        "rate_process" => {
            job.arrival = match value {
                "linear" => Arrival::Even,
                "poisson" => Arrival::Poisson,
                _ => return place.complain(format!("'{}' is neither linear nor poisson", shown(value))),
            }
        }
        "runtime" => job.runtime = Some(place.time(value, second)?),
        "rw" | "readwrite" => direction(job, value, place)?,
        "rwmixread" => job.mix_read = place.percent(value)?,
        "rwmixwrite" => job.mix_read = 100.0 - place.percent(value)?,
        "size" => job.size = Some(place.size(value)?),
        "stonewall" | "wait_for_previous" => job.waits = place.is_yes(value)?,
        "sync" => {
            job.durable = match value {
                "none" => false,
                "sync" | "dsync" => true,
                other => place.is_yes(other)?,
            }
        }
        "thinktime" => job.think = place.time(value, Duration::from_micros(1))?,
        "time_based" => job.is_time_based = place.is_yes(value)?,
        "uri" => job.uri = some(value, place)?.into(),
        "verify" => job.verify = !matches!(value, "0" | "none" | ""),
        _ => return place.complain("not supported; docs/work.md lists the keys that are"),
    }
    Ok(())
}

fn some<'a>(value: &'a str, place: &Place) -> Parsed<&'a str> {
    if value.is_empty() { place.complain("it has a value") } else { Ok(value) }
}

/// Of reads, and of writes; the first alone holds for both.
fn both(text: &str, read: impl Fn(&str) -> Parsed<Sizes>) -> Parsed<(Sizes, Sizes)> {
    match text.split_once(',') {
        // What follows a second comma is of requests that there are none of here.
        Some((reads, writes)) if !writes.contains(',') => Ok((read(reads)?, read(writes)?)),
        _ => Ok((read(text)?, read(text)?)),
    }
}

fn range(text: &str, place: &Place) -> Parsed<Sizes> {
    let Some((min, max)) = text.split_once('-') else {
        return place.complain("smallest and longest, as in 4k-64k");
    };
    let (min, max) = (place.length(min)?, place.length(max)?);
    match min <= max {
        true => Ok(Sizes::Range { min, max, unit: min }),
        false => place.complain("the smallest request is not larger than the longest"),
    }
}

/// `4k/60:64k/40`; those without a percentage divide what is left.
fn split(text: &str, place: &Place) -> Parsed<Sizes> {
    let mut sizes = Vec::new();
    for part in text.split(':') {
        let (len, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = if percent.is_empty() { None } else { Some(place.percent(percent)?) };
        sizes.push((place.length(len)?, percent));
    }
    let said: f64 = sizes.iter().filter_map(|(_, p)| *p).sum();
    let silent = sizes.iter().filter(|(_, p)| p.is_none()).count();
    if said > 100.01 || silent == 0 && said < 99.99 {
        return place.complain(format!("the percentages sum up to {said}, not to 100"));
    }
    let rest = (100.0 - said).max(0.0) / silent.max(1) as f64;
    let weighted = sizes.into_iter().map(|(len, percent)| (len, percent.unwrap_or(rest))).collect();
    Ok(Sizes::Weighted(weighted))
}

/// Separated by colons; a backslash before one takes it as it is. A URL is one name.
fn files(text: &str) -> Vec<String> {
    if text.contains("://") {
        return vec![text.replace("\\:", ":")];
    }
    let mut names = vec![String::new()];
    let mut is_escaped = false;
    for c in text.chars() {
        match (c, is_escaped) {
            ('\\', false) => is_escaped = true,
            (':', false) => names.push(String::new()),
            (c, _) => {
                is_escaped = false;
                if let Some(name) = names.last_mut() {
                    name.push(c);
                }
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn engine(value: &str, place: &Place) -> Parsed<Engine> {
    match value {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(Engine::OneAtATime),
        "io_uring" | "libaio" | "posixaio" => Ok(Engine::Deep),
        "nbd" => Ok(Engine::Nbd),
        "libiscsi" => Ok(Engine::Iscsi),
        _ => {
            place.complain(format!("'{}' is not supported; docs/work.md lists those that are", shown(value)))
        }
    }
}

fn spread(value: &str, place: &Place) -> Parsed<Spread> {
    let wrong = || place.complaint(format!("'{}' is none of random, zipf:theta, pareto:h", shown(value)));
    match value.split_once(':') {
        None if value == "random" => Ok(Spread::Uniform),
        Some(("zipf", theta)) => Ok(Spread::Zipf(place.positive(theta)?)),
        Some(("pareto", h)) => Ok(Spread::Pareto(place.positive(h)?)),
        _ => Err(wrong()),
    }
}

fn direction(job: &mut Job, value: &str, place: &Place) -> Parsed<()> {
    let (is_random, reads, writes) = match value {
        "read" => (false, true, false),
        "write" => (false, false, true),
        "rw" | "readwrite" => (false, true, true),
        "randread" => (true, true, false),
        "randwrite" => (true, false, true),
        "randrw" => (true, true, true),
        _ => return place.complain(format!("'{}' is not supported", shown(value))),
    };
    (job.is_random, job.reads, job.writes) = (is_random, reads, writes);
    Ok(())
}
