//! `xattrtest`: many processes, each with its directory of files, each file with one extended attribute.
//!
//! ```text
//!   create all ─▶ set all ─▶ (cold) single values ─▶ (cold) get all, verified ─▶ unlink all
//! ```
//!
//! The published run had 64 processes with 4096 files each and values of 512 bytes, on sixteen disks in mirrors. It was made
//! to show what a value costs by where it is kept: three reads in a hidden directory, two in a spill block, one in the
//! dnode itself. So the engine, unless asked for one way, runs all three.

use crate::metadata::args::Where;
use crate::metadata::{Op, Outcome, Place, Shape, Step, Way, run as steps, table};
use units::Result;

pub const USAGE: &str = "\
usage: cenote bench xattrtest PATH [--device NAME]... [--drop-caches] [OPTION]...   on any mounted path
       cenote bench xattrtest --pool DIR [OPTION]...    on the engine, with a pool in a file in DIR
       cenote bench xattrtest --pool sim [OPTION]...    on the engine, with 16 simulated hard disks in 8 mirrors
  --files N       of each stream (4096)           --streams N     at once (64)
  --size BYTES    of a value (512)
  --xattr dir|sa, --dnodesize legacy|auto|1k..16k   of the engine (three ways, one after the other)
  --device NAME   a block device whose reads and writes are counted, as sda (that of PATH)
  --drop-caches   of the kernel before values are read; takes root";

const STEPS: &[Step] = &[
    Step::Run(Op::Create),
    Step::Run(Op::SetXattr),
    Step::Cold,
    Step::Single,
    Step::Cold,
    Step::Run(Op::GetXattr),
    Step::Run(Op::Unlink),
];

/// More streams than this tell nothing more; a value may not be longer than Linux allows.
const STREAMS_MAX: usize = 4096;
const VALUE_MAX: u64 = 64 << 10;
/// Of all streams together.
const FILES_MAX: u64 = 1 << 28;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub place: Place,
    pub shape: Shape,
}

/// Reads the words; `None` when they make no sense.
pub fn parse(words: &[&str]) -> Option<Asked> {
    let (mut files, mut streams, mut value) = (4096u64, 64usize, 512);
    let mut place = Where::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--files" => files = words.next()?.parse().ok().filter(|n| *n > 0)?,
            "--streams" => streams = words.next()?.parse().ok().filter(|n| (1..=STREAMS_MAX).contains(n))?,
            "--size" => {
                value = units::parse_size(words.next()?).ok().filter(|n| (1..=VALUE_MAX).contains(n))?;
            }
            word => place.take(word, &mut words)?,
        }
    }
    let directories = streams as u64;
    let files = files.checked_mul(directories).filter(|n| *n <= FILES_MAX)?;
    let ways = vec![Way::new("dir", "legacy"), Way::new("sa", "legacy"), Way::new("sa", "1k")];
    let shape = Shape { files, directories, streams, value: value as usize };
    Some(Asked { place: place.finish(ways)?, shape })
}

/// Does it, and returns what is to be printed.
pub fn run(asked: &Asked) -> Result<String> {
    Ok(render(asked, &steps(&asked.place, asked.shape, STEPS)?))
}

fn render(asked: &Asked, outcomes: &[(Option<Way>, Outcome)]) -> String {
    let Shape { files, streams, value, .. } = asked.shape;
    let mut text = format!(
        "{streams} streams, {} files each, values of {value} bytes, {}\n",
        files / streams as u64,
        table::place(&asked.place)
    );
    for (way, outcome) in outcomes {
        let title = table::way(way.as_ref());
        text += &format!("\n{title}{}{}", if title.is_empty() { "" } else { "\n" }, table::phases(outcome));
    }
    if !matches!(asked.place, Place::Pool(..)) {
        return text;
    }
    text += "\n| way | device reads of a single cold value | blocks in the cache for all | files for each block |\n\
             |---|---:|---:|---:|\n";
    for (way, outcome) in outcomes {
        let single = outcome.singles.filter(|single| single.values > 0);
        let reads = single.map_or("-".into(), |s| format!("{:.2}", s.reads as f64 / s.values as f64));
        let cached =
            outcome.phases.iter().find(|phase| phase.op == Op::GetXattr).and_then(|phase| phase.cached);
        let (blocks, each) = cached.map_or(("-".into(), "-".into()), |blocks| {
            (blocks.to_string(), format!("{:.1}", files as f64 / blocks.max(1) as f64))
        });
        text += &format!("| {} | {reads} | {blocks} | {each} |\n", table::way(way.as_ref()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Backing, Mounted};

    fn asked(line: &str) -> Option<Asked> {
        parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn words_say_where_and_how_much() {
        let usual = Shape { files: 64 * 4096, directories: 64, streams: 64, value: 512 };
        let path = asked("/mnt").unwrap();
        assert_eq!(
            path,
            Asked { place: Place::Path(Mounted { dir: "/mnt".into(), ..Default::default() }), shape: usual }
        );
        let counted = asked("--device sda --drop-caches /mnt --device sdb").unwrap().place;
        assert!(matches!(counted, Place::Path(m) if m.devices == ["sda", "sdb"] && m.drops_caches));
        let three = asked("--pool sim").unwrap().place;
        assert!(matches!(three, Place::Pool(Backing::Simulated, ways) if ways.len() == 3));
        let one = asked("--pool /tmp --dnodesize 2k --files 8 --streams 2 --size 1K").unwrap();
        assert_eq!(one.place, Place::Pool(Backing::File("/tmp".into()), vec![Way::new("sa", "2k")]));
        assert_eq!(one.shape, Shape { files: 16, directories: 2, streams: 2, value: 1024 });
        for wrong in [
            "",
            "/a /b",
            "/a --pool sim",
            "/a --xattr sa",
            "--pool sim --device sda",
            "--pool sim --xattr off",
            "--pool sim --dnodesize 3k",
            "/a --files 0",
            "/a --streams 0",
            "/a --size 65K",
            "/a --device ../x",
            "/a --pool",
            "/a --files 99999999999",
        ] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_goes_through_every_step() {
        let exe = std::env::current_exe().unwrap();
        let line = format!("{} --files 16 --streams 4 --size 100", exe.parent().unwrap().display());
        let text = run(&asked(&line).unwrap()).unwrap();
        for step in ["| create | 64 |", "| set | 64 |", "| get, verified | 64 |", "| unlink | 64 |"] {
            assert!(text.contains(step), "{text}");
        }
        assert!(!text.contains("single cold"), "{text}");
    }

    /// The published counts, in the published run made small: single values, and what all of them take in the cache.
    #[test]
    fn values_in_the_dnode_cost_one_read_and_a_part_of_the_cache() {
        let asked = asked("--pool sim --files 256 --streams 4").unwrap();
        let outcomes = steps(&asked.place, asked.shape, STEPS).unwrap();
        let text = render(&asked, &outcomes);
        let reads = |i: usize| outcomes[i].1.singles.map(|s| s.reads as f64 / s.values as f64).unwrap();
        let (directory, spill, dnode) = (reads(0), reads(1), reads(2));
        // The first of the few values may share a block of dnodes with what was read before.
        assert_eq!([directory, spill, dnode].map(f64::round), [3.0, 2.0, 1.0], "{text}");
        let get = |i: usize| outcomes[i].1.phases[2];
        assert!(get(0).is_cold && get(0).op == Op::GetXattr);
        let cached = |i: usize| get(i).cached.unwrap();
        assert!(cached(1) > 1024 && cached(2) < cached(1) / 8, "{text}");
        let ios = |i: usize| get(i).ios.unwrap().reads;
        assert!(ios(0) > ios(1) && ios(1) > ios(2), "{text}");
        assert!(text.contains("| xattr=sa, dnodesize=1k | 1.00 |"), "{text}");
    }
}
