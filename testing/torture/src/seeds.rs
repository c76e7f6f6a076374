//! Cases that failed once, kept for ever: `seeds.txt`, one in a line, with the commit's message telling its story.
//!
//! ```text
//!   work SEED OPERATIONS
//!   power SETUP:WORKLOAD[:SPOT]
//!   files files:SETUP:WORD[:SPOT]
//!   forged forged:POOL:SEED
//!   suspended suspended:SEED:STEPS
//!   devices devices:, sweeps:, splits: or rebuilds:SEED:STEPS
//!   host host:SEED:STEPS
//! ```

use crate::devices::DeviceCase;
use crate::forged::ForgedCase;
use crate::full_hosts::FullHosts;
use crate::power::Case;
use crate::power::files::FileCase;
use crate::suspended::Suspensions;
use crate::work::Work;
use std::io::Write;

const KEPT: &str = include_str!("../seeds.txt");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds.txt");

#[derive(Clone, Debug)]
pub enum Kept {
    Work(Work),
    Power(Case),
    Files(FileCase),
    Forged(ForgedCase),
    Suspended(Suspensions),
    Devices(DeviceCase),
    Host(FullHosts),
}

/// The cases in the file.
pub fn kept() -> Result<Vec<Kept>, String> {
    let lines = KEPT.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(parse).collect()
}

fn parse(line: &str) -> Result<Kept, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("seeds.txt: '{line}'"));
    match words[..] {
        ["work", seed, ops] => {
            Ok(Kept::Work(Work { seed: number(seed)?, ops: number(ops)?, is_loud: false }))
        }
        ["power", case] => Ok(Kept::Power(case.parse()?)),
        ["files", case] => Ok(Kept::Files(case.parse()?)),
        ["forged", case] => Ok(Kept::Forged(case.parse()?)),
        ["devices", case] => Ok(Kept::Devices(case.parse()?)),
        ["suspended", case] => Ok(Kept::Suspended(case.parse()?)),
        ["host", case] => Ok(Kept::Host(case.parse()?)),
        _ => Err(format!("seeds.txt: '{line}'")),
    }
}

/// Appends a case to the file, unless it is there.
pub fn remember(line: &str) {
    let known = std::fs::read_to_string(PATH).unwrap_or_default();
    if known.lines().any(|l| l.trim() == line) {
        return;
    }
    let file = std::fs::OpenOptions::new().append(true).create(true).open(PATH);
    if let Err(e) = file.and_then(|mut file| writeln!(file, "{line}")) {
        eprintln!("{PATH}: {e}; keep this case by hand: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_cases_can_be_read() {
        assert!(kept().is_ok());
        assert!(parse("work 7 4120").is_ok() && parse("power mirror/latency/16K/9:SfU").is_ok());
        assert!(parse("files files:mirror/latency/16K/9:Wf").is_ok());
        assert!(parse("forged forged:own-mirror:7").is_ok() && parse("forged own-mirror").is_err());
        assert!(parse("suspended suspended:7:250").is_ok() && parse("suspended 7").is_err());
        assert!(parse("devices devices:7:400").is_ok() && parse("devices 7").is_err());
        assert!(parse("host host:7:250").is_ok() && parse("host 7").is_err());
        assert!(parse("play 7").is_err());
    }
}
