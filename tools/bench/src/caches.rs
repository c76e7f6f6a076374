//! What the cache costs with one core and with two, and what a hit on a cache device costs beside a read of the pool.
//!
//! ```text
//!   cores     reader on loop 0, or one on each ─┬─ blocks of one volume, or of one each, all in memory
//!                                               └─ shared buffers with a count each: a program without the engine
//!   devices   the same pool, the same readers  ─┬─ its cache device asked
//!                                               └─ its cache device offline
//! ```
//!
//! A rate needs cores that nothing else wants, which cannot be had everywhere; so the table tells as well how many
//! cores the readers had, and the reads for each second of CPU time. Readers never sleep: where they had all cores, what
//! they did not use they waited for, on a lock.
//!
//! Not here: how often a block is in memory (`cenote bench hits`).

mod cores;
mod devices;

use crate::rig::{Files, Rig};
use crate::{Options, Progress, place};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use units::{Result, parse_size, pretty_size};
use vdev::Layout;

pub const USAGE: &str = "\
bench caches [DIR] [--size BYTES] [--seconds S] [--rounds R]
  warm reads by one core and by two, and hits on a cache device beside reads of the pool; files are made in DIR";

/// `None` when the words make no sense: then [`USAGE`] does.
pub fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options { size: 128 << 20, ..Options::default() };
    options.dirs.truncate(1);
    let mut is_named = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--size" => options.size = parse_size(words.next()?).ok().filter(|n| *n >= 16 << 20)?,
            "--seconds" => options.seconds = words.next()?.parse().ok().filter(|n| *n > 0)?,
            "--rounds" => options.rounds = words.next()?.parse().ok().filter(|n| *n > 0)?,
            other if other.starts_with("--") || is_named => return None,
            other => {
                options.dirs = vec![PathBuf::from(other)];
                is_named = true;
            }
        }
    }
    Some(options)
}

/// Measures both and returns them as Markdown.
pub fn run(options: &Options, progress: Progress) -> Result<String> {
    let mut text = place::machine(options);
    for dir in options.dirs.clone() {
        let warm = Rig::new(&dir, options, Layout::Stripe, 16 << 10, "off");
        let rows = linux::run(two_cores(), async move {
            let _files = Files(&warm);
            cores::measure(&warm, progress).await
        })?;
        let _ = write!(text, "\n**Warm reads, {}**\n\n{}", place::title(&dir), cores::render(&rows));
        let mut rows = Vec::new();
        for block in [16 << 10, 128 << 10] {
            progress(&format!("  cache device, {}", pretty_size(block)));
            let rig = Rig::new(&dir, options, Layout::Stripe, block, "off");
            rows.extend(linux::block_on(async move {
                let _files = Files(&rig);
                devices::measure(&rig, progress).await
            })?);
        }
        let title = place::title(&dir);
        let _ = write!(text, "\n**Cache device beside pool, {title}**\n\n{}", devices::render(&rows));
    }
    Ok(text)
}

fn two_cores() -> linux::Config {
    linux::Config { cores: Some(2), ..linux::Config::default() }
}

/// What readers did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ran {
    reads: u64,
    elapsed: Duration,
    /// User and system time of the whole process.
    cpu: Duration,
}

impl Ran {
    fn per_second(&self) -> f64 {
        self.reads as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn cpu_per_read(&self) -> f64 {
        self.cpu.as_secs_f64() / self.reads.max(1) as f64
    }

    /// How many cores the process had.
    fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Of several runs, by a figure of each.
fn median(runs: &[Ran], of: impl Fn(&Ran) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_a_directory_and_how_long() {
        let asked = parse(&["/d", "--size", "64M", "--seconds", "2", "--rounds", "1"]).unwrap();
        assert_eq!(
            asked,
            Options { dirs: vec!["/d".into()], size: 64 << 20, seconds: 2, rounds: 1, ..Options::default() }
        );
        assert_eq!(parse(&[]).unwrap().dirs.len(), 1);
        for nonsense in [&["--size", "1M"][..], &["--rounds", "0"], &["a", "b"], &["--more"], &["--seconds"]]
        {
            assert_eq!(parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn both_tables_are_measured_and_most_of_what_is_not_in_memory_comes_from_the_cache_device() {
        let dir = tempfile_dir();
        let options =
            Options { dirs: vec![dir.clone()], size: 32 << 20, seconds: 1, rounds: 1, ..Options::default() };
        let text = run(&options, |_| ()).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let rows = |of: &str| text.lines().filter(|line| line.starts_with(&format!("| {of}"))).count();
        assert_eq!((rows("4K "), rows("16K, qd"), rows("128K, qd")), (2, 2, 2), "{text}");
    }

    fn tempfile_dir() -> PathBuf {
        let dir = std::env::temp_dir().join(format!("cenote-test-caches-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }
}
