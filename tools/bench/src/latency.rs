//! How long requests take at their worst, and when writers stop.
//!
//! A client that waits for a slow reply asks nothing meanwhile, so a closed loop counts a stop of a second as one slow
//! request. Here requests are *due*, whatever became of those before:
//!
//! ```text
//!   due       │  │  │  │  │  │  │  │  │        at a fixed rate
//!   lanes     ├─▶├─▶├──────────▶├─▶            the next that is free takes it
//!                      └───────┘ latency: from when it was due, so that those that wait for a lane count too
//! ```
//!
//! Each subject is first asked for all it can take, which is its rate; then for half of that, and nine tenths. What asks
//! for more than is taken would wait ever longer, so there latencies count from when a request was made.
//!
//! ```text
//!   subject ─┬─ cenote       a volume of 16K blocks, by NBD over a Unix socket ┐ one session for each lane
//!            ├─ nbdkit file  a file                                            ┘
//!            ├─ cenote       the same by iSCSI over TCP                        ┐ with --iscsi
//!            ├─ tgtd         a file                                            ┘
//!            ├─ a file       on any mounted path
//!            └─ the model    the engine on a disk of 60 MiB/s, in simulated time: the same in every run
//! ```

mod doors;
mod initiator;
mod modelled;
mod outcome;
mod pace;
mod picture;

use crate::Progress;
use crate::servers::Scratch;
use doors::Subject;
pub(crate) use initiator::Session;
use outcome::Outcome;
use pace::{Asked, Plan, Rate};
use std::path::PathBuf;
use std::time::Duration;
use units::{Error, Kind, Result, parse_size};

pub const USAGE: &str = "\
usage: cenote bench latency [DIR] [--seconds S] [--size BYTES] [--svg FILE]    NBD, beside nbdkit, with files in DIR
       cenote bench latency --iscsi [DIR] [--seconds S] [--size BYTES] [--svg FILE]    iSCSI, beside tgtd
       cenote bench latency --path FILE [--seconds S] [--size BYTES] [--svg FILE]    a file, which is overwritten
       cenote bench latency --model [--seconds S] [--svg FILE]                 a disk of 60 MiB/s, in simulated time";

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    place: Place,
    /// Of each row.
    seconds: f64,
    size: u64,
    svg: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Servers(PathBuf),
    Targets(PathBuf),
    Path(PathBuf),
    Model,
}

/// What was measured.
#[derive(Debug)]
struct Row {
    subject: String,
    what: &'static str,
    /// Of what the subject can take.
    at: String,
    outcome: Outcome,
    /// Bytes of a request.
    block: u64,
    /// What the server used.
    cpu: Option<Duration>,
}

impl Row {
    /// Writes of 16K, as for databases.
    const WRITES: &'static str = "16K random writes";
    const READS: &'static str = "16K random reads";
    const BESIDE: &'static str = "4K reads beside 1M writes";
    const DURABLE: &'static str = "4K durable writes beside 1M writes";
}

/// Shares of what a subject can take, after all of it.
const SHARES: [f64; 2] = [0.5, 0.9];
const BLOCK: u32 = 16 << 10;
/// Of the reader that has a writer for a neighbour.
const SMALL: u32 = 4 << 10;
const READS_A_SECOND: f64 = 500.0;

/// `None` when the words make no sense: then [`USAGE`] does.
pub fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options { place: Place::Model, seconds: 15.0, size: 1 << 30, svg: None };
    let (mut place, mut by_iscsi) = (None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let before = place.is_some();
        match *word {
            "--seconds" => options.seconds = words.next()?.parse().ok().filter(|s| (0.1..1e6).contains(s))?,
            "--size" => options.size = parse_size(words.next()?).ok().filter(|n| *n >= 16 << 20)?,
            "--svg" => options.svg = Some(words.next()?.into()),
            "--iscsi" => by_iscsi = true,
            "--model" => place = Some(Place::Model).filter(|_| !before),
            "--path" => place = Some(Place::Path(words.next()?.into())).filter(|_| !before),
            other if other.starts_with("--") => return None,
            other => place = Some(Place::Servers(other.into())).filter(|_| !before),
        }
        if before && place.is_none() {
            return None;
        }
    }
    options.place = match (place.unwrap_or_else(|| Place::Servers(std::env::temp_dir())), by_iscsi) {
        (Place::Servers(dir), true) => Place::Targets(dir),
        (_, true) => return None,
        (place, false) => place,
    };
    Some(options)
}

/// Measures, and returns a table, with what happened over time below it. `own` are the words that make this program run a
/// command of its bench.
pub fn run(options: &Options, own: &[&str], progress: Progress) -> Result<String> {
    let rows = match &options.place {
        Place::Model => modelled::rows(options.seconds, progress)?,
        Place::Path(path) => measure(&mut doors::of_file(path, options.size)?, options, progress)?,
        Place::Servers(dir) => measure_all(doors::servers(dir, options.size, own)?, options, progress)?,
        Place::Targets(dir) => measure_all(doors::targets(dir, options.size, own)?, options, progress)?,
    };
    if let Some(svg) = &options.svg {
        let written = std::fs::write(svg, picture::svg(&rows));
        written.map_err(|e| Error::new(Kind::Io, "write the picture").at(svg.display()).because(e))?;
    }
    Ok(picture::table(&rows))
}

/// One after the other; their files go with the directory.
fn measure_all(
    (_dir, subjects): (Scratch, Vec<Subject>),
    options: &Options,
    progress: Progress,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for mut subject in subjects {
        rows.extend(measure(&mut subject, options, progress)?);
    }
    Ok(rows)
}

fn measure(subject: &mut Subject, options: &Options, progress: Progress) -> Result<Vec<Row>> {
    let failed = |e: std::io::Error| Error::new(Kind::Io, "measure latencies").because(e);
    progress(&format!("{}: filling", subject.name));
    subject.fill().map_err(failed)?;
    let length = Duration::from_secs_f64(options.seconds);
    let mut rows = Vec::new();
    for (what, reads) in [(Row::WRITES, false), (Row::READS, true)] {
        let mut row = |subject: &mut Subject, at: String, rate| -> Result<f64> {
            progress(&format!("{}: {what}, {at}", subject.name));
            let plan = Plan { asked: Asked { reads, block: BLOCK }, rate, length };
            let (outcome, cpu) = subject.run(plan).map_err(failed)?;
            let speed = outcome.per_second();
            rows.push(Row { subject: subject.name.clone(), what, at, outcome, block: BLOCK.into(), cpu });
            Ok(speed)
        };
        let speed = row(subject, "all it takes".into(), Rate::AllItTakes)?;
        for share in SHARES {
            row(subject, format!("{share:.1}x"), Rate::Fixed(speed * share))?;
        }
    }
    progress(&format!("{}: {}", subject.name, Row::BESIDE));
    let asked = Asked { reads: true, block: SMALL };
    let plan = Plan { asked, rate: Rate::Fixed(READS_A_SECOND), length };
    let outcome = subject.run_beside_writer(plan).map_err(failed)?;
    let at = format!("{READS_A_SECOND:.0}/s");
    let (subject, what) = (subject.name.clone(), Row::BESIDE);
    rows.push(Row { subject, what, at, outcome, block: SMALL.into(), cpu: None });
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options_or_nothing() {
        let parsed = |line: &str| parse(&line.split_whitespace().collect::<Vec<_>>());
        let of = |place| Options { place, seconds: 15.0, size: 1 << 30, svg: None };
        assert_eq!(parsed("/d"), Some(of(Place::Servers("/d".into()))));
        assert_eq!(parsed("--path /mnt/f"), Some(of(Place::Path("/mnt/f".into()))));
        assert_eq!(parsed("--iscsi /d"), Some(of(Place::Targets("/d".into()))));
        let model = Options { seconds: 2.5, svg: Some("a.svg".into()), ..of(Place::Model) };
        assert_eq!(parsed("--model --seconds 2.5 --svg a.svg"), Some(model));
        assert_eq!(parsed("/d --size 64M").map(|o| o.size), Some(64 << 20));
        for line in [
            "/d /e",
            "--model /d",
            "--seconds 0",
            "--seconds x",
            "--size 1M",
            "--what",
            "--path",
            "--iscsi --model",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
