//! The pools in which the power is cut, the places of datasets in them, and their names.

use crate::layout::Shape;
use dmu::SyncMode;
use std::fmt;
use std::str::FromStr;
use vdev::Layout;

/// A pool's shape, how its datasets are to be written, and where in the pool they are. Its name says all of it:
/// `raidz1+slog/latency/16K/9`, with `/always` or `/disabled` behind it for another `sync` than the standard one, and with
/// `@root`, `@nested`, `@clone` or `@elsewhere` for another place than one below the pool's own file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub shape: Shape,
    pub logbias: Logbias,
    pub sync: SyncMode,
    /// Of the first volume, bytes.
    pub block: u64,
    pub place: Place,
}

/// Where the dataset is that clients work with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Just below the pool's own file system.
    #[default]
    Child,
    /// The pool's own file system; volumes are just below it.
    Root,
    /// Below file systems that are below others.
    Nested,
    /// It begins as a snapshot of another, which has an intent log of its own.
    Clone,
    /// Its mountpoint is not the one that it would inherit; volumes are as nested ones.
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logbias {
    Latency,
    Throughput,
}

const SYNCS: [(&str, SyncMode); 3] =
    [("standard", SyncMode::Standard), ("always", SyncMode::Always), ("disabled", SyncMode::Disabled)];
const LAYOUTS: [(&str, Layout, usize); 3] = [
    ("single", Layout::Stripe, 1),
    ("mirror", Layout::Mirror, 2),
    ("raidz1", Layout::Raidz { parity: 1 }, 3),
];
const LOGS: [(&str, usize); 3] = [("", 0), ("+slog", 1), ("+slogs", 2)];
const PLACES: [(&str, Place); 5] = [
    ("", Place::Child),
    ("@root", Place::Root),
    ("@nested", Place::Nested),
    ("@clone", Place::Clone),
    ("@elsewhere", Place::Elsewhere),
];
const BLOCKS: [u64; 3] = [4 << 10, 64 << 10, 16 << 10];

impl Setup {
    /// Each layout without a log device, with one and with a mirror of two; `logbias` both ways. Block and sector
    /// sizes and places go round among them. Then each layout where every change is a promise, with and without a log
    /// device, and where none is.
    pub fn all() -> Vec<Setup> {
        let mut all = Vec::new();
        for (l, (_, layout, devices)) in LAYOUTS.into_iter().enumerate() {
            for (s, (_, logs)) in LOGS.into_iter().enumerate() {
                for (b, logbias) in [Logbias::Latency, Logbias::Throughput].into_iter().enumerate() {
                    let ashift = [9, 12][(l + s) % 2];
                    let shape = Shape { layout, devices, ashift, logs };
                    let sync = SyncMode::Standard;
                    let place = PLACES[all.len() % PLACES.len()].1;
                    all.push(Setup { shape, logbias, sync, block: BLOCKS[(l + s + b) % 3], place });
                }
            }
        }
        let standard = all.clone();
        for (i, setup) in standard.iter().enumerate() {
            // Of the six of a layout: latency alone, throughput with a log device; latency with a mirrored one.
            let sync = match i % 6 {
                0 | 3 => SyncMode::Always,
                4 => SyncMode::Disabled,
                _ => continue,
            };
            let place = PLACES[all.len() % PLACES.len()].1;
            all.push(Setup { sync, place, ..*setup });
        }
        all
    }

    /// As the property is set.
    pub fn sync_word(&self) -> &'static str {
        SYNCS.iter().find(|s| s.1 == self.sync).map_or("?", |s| s.0)
    }
}

impl Logbias {
    pub fn word(self) -> &'static str {
        match self {
            Logbias::Latency => "latency",
            Logbias::Throughput => "throughput",
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = LAYOUTS.iter().find(|l| l.1 == self.shape.layout).map_or("?", |l| l.0);
        let log = LOGS.iter().find(|l| l.1 == self.shape.logs).map_or("?", |l| l.0);
        write!(f, "{layout}{log}/{}/{}K/{}", self.logbias.word(), self.block >> 10, self.shape.ashift)?;
        if self.sync != SyncMode::Standard {
            write!(f, "/{}", self.sync_word())?;
        }
        f.write_str(PLACES.iter().find(|p| p.1 == self.place).map_or("?", |p| p.0))
    }
}

impl FromStr for Setup {
    type Err = String;

    fn from_str(text: &str) -> Result<Setup, String> {
        let bad = || {
            format!("'{text}' is no pool's name: LAYOUT[+slog|+slogs]/LOGBIAS/BLOCK/ASHIFT[/SYNC][@PLACE]")
        };
        let (text, place) = text.split_at(text.find('@').unwrap_or(text.len()));
        let place = PLACES.into_iter().find(|p| p.0 == place).ok_or_else(bad)?.1;
        let words: Vec<&str> = text.split('/').collect();
        let (pool, bias, block, ashift, sync) = match words[..] {
            [pool, bias, block, ashift] => (pool, bias, block, ashift, SYNCS[0].0),
            [pool, bias, block, ashift, sync] => (pool, bias, block, ashift, sync),
            _ => return Err(bad()),
        };
        let sync = SYNCS.into_iter().find(|s| s.0 == sync).ok_or_else(bad)?.1;
        let layout = LAYOUTS.into_iter().find(|l| pool.starts_with(l.0)).ok_or_else(bad)?;
        let log = LOGS.into_iter().find(|l| l.0 == &pool[layout.0.len()..]).ok_or_else(bad)?;
        let biases = [Logbias::Latency, Logbias::Throughput];
        let logbias = biases.into_iter().find(|b| b.word() == bias).ok_or_else(bad)?;
        let block = block.strip_suffix('K').and_then(|k| k.parse::<u64>().ok()).ok_or_else(bad)? << 10;
        let ashift = ashift.parse().map_err(|_| bad())?;
        let shape = Shape { layout: layout.1, devices: layout.2, ashift, logs: log.1 };
        Ok(Setup { shape, logbias, sync, block, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_all_of_a_setup() {
        let all = Setup::all();
        assert_eq!(all.len(), 27);
        for (_, place) in PLACES {
            let has = |sync: SyncMode| all.iter().any(|setup| setup.place == place && setup.sync == sync);
            assert!(has(SyncMode::Standard) && has(SyncMode::Always), "{place:?}");
        }
        for setup in all {
            assert_eq!(setup.to_string().parse(), Ok(setup));
        }
        assert!("mirror/latency/4K/9/never".parse::<Setup>().is_err());
        assert!("mirror+log/latency/4K/9".parse::<Setup>().is_err());
        assert!("mirror/latency/4K/9@nowhere".parse::<Setup>().is_err());
    }
}
