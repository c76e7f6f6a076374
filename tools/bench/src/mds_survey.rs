//! `mds-survey`: what a server of metadata does all day, by how many threads and over how many directories.
//!
//! ```text
//!   for each number of directories, for each number of threads, on a new pool or in a new directory:
//!     create all ─▶ (cold) look up all ─▶ getattr ─▶ setattr ─▶ destroy
//! ```
//!
//! The files are shared out among the threads. A directory is made by one thread alone only where there are as many of
//! one as of the other: with fewer directories threads meet in them.

use crate::metadata::args::Where;
use crate::metadata::{Op, Outcome, Place, Shape, Step, Way, run as steps, table};
use units::Result;

pub const USAGE: &str = "\
usage: cenote bench mds-survey PATH [--device NAME]... [--drop-caches] [OPTION]...   on any mounted path
       cenote bench mds-survey --pool DIR [OPTION]...   on the engine, with a pool in a file in DIR
       cenote bench mds-survey --pool sim [OPTION]...   on the engine, with 16 simulated hard disks in 8 mirrors
  --files N       in each row, all together (16384)
  --threads LIST  (1,4,16,64)                     --dirs LIST     (1,16)
  --xattr dir|sa, --dnodesize legacy|auto|1k..16k   of the engine (sa, legacy)
  --device NAME   a block device whose reads and writes are counted, as sda (that of PATH)
  --drop-caches   of the kernel before names are looked up; takes root";

const STEPS: &[Step] = &[
    Step::Run(Op::Create),
    Step::Cold,
    Step::Run(Op::Lookup),
    Step::Run(Op::GetAttr),
    Step::Run(Op::SetAttr),
    Step::Run(Op::Unlink),
];

const THREADS_MAX: usize = 4096;
const DIRECTORIES_MAX: u64 = 1 << 16;
const FILES_MAX: u64 = 1 << 28;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub place: Place,
    pub files: u64,
    pub threads: Vec<usize>,
    pub directories: Vec<u64>,
}

/// One number of directories and threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub way: Option<Way>,
    pub shape: Shape,
    pub outcome: Outcome,
}

/// Reads the words; `None` when they make no sense.
pub fn parse(words: &[&str]) -> Option<Asked> {
    let (mut files, mut threads, mut directories) = (16_384, vec![1, 4, 16, 64], vec![1, 16]);
    let mut place = Where::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--files" => files = words.next()?.parse().ok().filter(|n| (1..=FILES_MAX).contains(n))?,
            "--threads" => threads = list(words.next()?, THREADS_MAX)?,
            "--dirs" => directories = list(words.next()?, DIRECTORIES_MAX)?,
            word => place.take(word, &mut words)?,
        }
    }
    Some(Asked { place: place.finish(vec![Way::new("sa", "legacy")])?, files, threads, directories })
}

/// `a,b,c`, each at least 1.
fn list<T: std::str::FromStr + PartialOrd + Default>(words: &str, max: T) -> Option<Vec<T>> {
    let one = |word: &str| word.parse().ok().filter(|n| *n > T::default() && *n <= max);
    words.split(',').map(one).collect()
}

/// Does it, telling `progress` what comes next, and returns what is to be printed.
pub fn run(asked: &Asked, progress: impl Fn(&str)) -> Result<String> {
    Ok(render(asked, &rows(asked, progress)?))
}

fn rows(asked: &Asked, progress: impl Fn(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &directories in &asked.directories {
        for &streams in &asked.threads {
            progress(&format!("directories {directories}, threads {streams}"));
            let shape = Shape { files: asked.files, directories, streams, value: 0 };
            let outcomes = steps(&asked.place, shape, STEPS)?;
            rows.extend(outcomes.into_iter().map(|(way, outcome)| Row { way, shape, outcome }));
        }
    }
    Ok(rows)
}

fn render(asked: &Asked, rows: &[Row]) -> String {
    let way = rows.first().and_then(|row| row.way.as_ref());
    let way = way.map_or(String::new(), |way| format!(", {}", table::way(Some(way))));
    let mut text = format!(
        "{} files, {}{way}; operations per second (device reads + writes for each)\n\n\
         | dirs | threads | creates | lookups | getattrs | setattrs | destroys | blocks in the cache |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|\n",
        asked.files,
        table::place(&asked.place),
    );
    for Row { shape, outcome, .. } in rows {
        text += &format!("| {} | {} |", shape.directories, shape.streams);
        for phase in &outcome.phases {
            let each = |n: u64| n as f64 / phase.files.max(1) as f64;
            let ios = phase
                .ios
                .map_or(String::new(), |ios| format!(" ({:.2} + {:.2})", each(ios.reads), each(ios.writes)));
            text += &format!(" {}{ios} |", table::rate(phase));
        }
        let read = outcome.phases.iter().find(|phase| phase.op == Op::GetAttr);
        text += &format!(" {} |\n", read.map_or("-".into(), table::cached));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Backing, Mounted, Phase};

    fn asked(line: &str) -> Option<Asked> {
        parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn words_say_where_and_how_much() {
        let usual = asked("/mnt").unwrap();
        assert_eq!(usual.place, Place::Path(Mounted { dir: "/mnt".into(), ..Default::default() }));
        assert_eq!(
            (usual.files, &usual.threads[..], &usual.directories[..]),
            (16_384, &[1, 4, 16, 64][..], &[1, 16][..])
        );
        let few = asked("--pool sim --files 8 --threads 2 --dirs 1,2 --dnodesize auto").unwrap();
        assert_eq!(few.place, Place::Pool(Backing::Simulated, vec![Way::new("sa", "auto")]));
        assert_eq!((few.files, few.threads, few.directories), (8, vec![2], vec![1, 2]));
        for wrong in [
            "",
            "/a --files 0",
            "/a --threads 1,",
            "/a --dirs 0",
            "/a --threads x",
            "/a --size 1",
            "/a --xattr sa",
        ] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }

    /// On a path, on simulated disks, and on a pool in a file.
    #[test]
    fn each_row_has_five_rates() {
        let dir = std::env::temp_dir().join(format!("cenote-mds-survey-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for place in [dir.display().to_string(), "--pool sim".into(), format!("--pool {}", dir.display())] {
            let asked = asked(&format!("{place} --files 64 --threads 1,4 --dirs 1,2")).unwrap();
            let rows = rows(&asked, |_| ()).unwrap();
            let text = render(&asked, &rows);
            let shapes: Vec<_> = rows.iter().map(|r| (r.shape.directories, r.shape.streams)).collect();
            assert_eq!(shapes, [(1, 1), (1, 4), (2, 1), (2, 4)]);
            let is_pool = place.starts_with("--pool");
            for row in &rows {
                let ops: Vec<Op> = row.outcome.phases.iter().map(|phase| phase.op).collect();
                assert_eq!(ops, [Op::Create, Op::Lookup, Op::GetAttr, Op::SetAttr, Op::Unlink]);
                // Names in memory took no time of simulated disks, and were 64,000,000,000 per second.
                let rates = row.outcome.phases.iter().map(Phase::per_second);
                assert!(rates.clone().flatten().all(|rate| (0.1..1e8).contains(&rate)), "{text}");
                assert!(rates.flatten().count() >= if is_pool { 2 } else { 5 }, "{text}");
                if is_pool {
                    let [create, lookup, getattr, ..] = row.outcome.phases[..] else { panic!("{text}") };
                    // What was made is written; what was forgotten is read once, and then known.
                    assert!(create.ios.is_some_and(|ios| ios.writes > 0), "{text}");
                    assert!(lookup.is_cold && lookup.ios.is_some_and(|ios| ios.reads > 0), "{text}");
                    assert!(getattr.ios.is_some_and(|ios| ios.reads == 0), "{text}");
                    assert!(getattr.cached.is_some_and(|blocks| blocks > 0), "{text}");
                }
            }
            assert_eq!(text.lines().count(), 8, "{text}");
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing is left");
        }
        std::fs::remove_dir(&dir).unwrap();
    }
}
