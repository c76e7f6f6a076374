//! Workloads by name, for any place.
//!
//! ```text
//!   mix          megabytes in sequence, 7 of 10 read, 128 at once on each of 16 LUNs
//!   objects      64 readers and writers of whole objects of 1 MiB, then the same at random
//!   oltp         16 KiB at random, beside a redo log: small synchronous writes, and a switch of logs now and then
//!   regular      an application's reads at even distances
//!   control      the same in bursts, with the synchronous writes of control files between
//!   backup       one reader from one end to the other, one writer the same
//!   boot         a storm of virtual machines that start: most read the same hot blocks, some write
//! ```
//!
//! What each models is said where it is made. A profile takes one place or several; what it keeps apart (data and log) it
//! keeps in parts of the same place when there is only one.

use crate::describe::{
    Arrival, Description, Flush, Lanes, Load, Part, Run, Sizes, Spread, Store, Stream, Walk,
};
use std::time::Duration;
use units::{Error, Result};

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;
const MINUTE: Duration = Duration::from_secs(60);

/// A profile: its name, what it is, and what makes it of stores.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    pub what: &'static str,
    make: fn(Vec<Store>) -> Description,
}

pub const PROFILES: &[Profile] = &[
    Profile {
        name: "mix",
        what: "1 MiB in sequence, 70 % reads, 128 at once on each LUN; published with 16 LUNs",
        make: mix,
    },
    Profile {
        name: "objects",
        what: "64 streams of 1 MiB at random: an object server with a cold cache, reads then writes",
        make: objects,
    },
    Profile {
        name: "oltp",
        what: "16 KiB at random, a redo log of small synchronous writes, switches of the log",
        make: oltp,
    },
    Profile {
        name: "regular",
        what: "8 KiB reads at even distances, 5000 in a second: the synthetic half of the elevator case",
        make: regular,
    },
    Profile {
        name: "control",
        what: "the same in bursts of 20, with synchronous writes of control files: its other half",
        make: control,
    },
    Profile {
        name: "backup",
        what: "1 MiB in sequence, one reader and one writer, 8 at once each: a streaming backup",
        make: backup,
    },
    Profile {
        name: "boot",
        what: "64 machines that start: 4 to 64 KiB, 90 % reads of hot blocks",
        make: boot,
    },
];

/// The profile of a name, on these places.
pub fn profile(name: &str, places: &[Store]) -> Result<Description> {
    let known = || PROFILES.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
    let Some(profile) = PROFILES.iter().find(|p| p.name == name) else {
        return Err(Error::invalid(format!("there is no workload '{name}'; there are {}", known())));
    };
    if places.is_empty() {
        return Err(Error::invalid(format!(
            "workload '{name}' has nothing to work on: name a path, a device or a URL"
        )));
    }
    Ok((profile.make)(places.to_vec()))
}

fn all(stores: &[Store]) -> Vec<usize> {
    (0..stores.len()).collect()
}

fn run(name: &str, streams: Vec<Stream>) -> Run {
    Run { elapsed: Some(MINUTE), streams, ..Run::new(name) }
}

fn of_length(mut stream: Stream, len: u32) -> Stream {
    (stream.read_sizes, stream.write_sizes) = (Sizes::one(len), Sizes::one(len));
    stream
}

/// Each LUN by itself, as the published run had them.
fn mix(stores: Vec<Store>) -> Description {
    let stream = |index| {
        let mut stream = of_length(Stream::new("mix", vec![index]), MIB);
        (stream.read_percent, stream.walk, stream.lanes) = (70.0, Walk::sequential(), Lanes::Each(128));
        stream
    };
    let streams = all(&stores).into_iter().map(stream).collect();
    Description { runs: vec![run("mix", streams)], stores }
}

/// Whole objects at random, each request an object: what a server of objects does whose cache holds none of them.
fn objects(stores: Vec<Store>) -> Description {
    let stream = |name: &str, read_percent| {
        let mut stream = of_length(Stream::new(name, all(&stores)), MIB);
        (stream.read_percent, stream.lanes) = (read_percent, Lanes::Together(64));
        stream
    };
    let runs = vec![run("reads", vec![stream("reads", 100.0)]), run("writes", vec![stream("writes", 0.0)])];
    Description { stores, runs }
}

/// A database: pages at random, written behind by a page cleaner; a log of groups that are written in turn, each commit
/// synchronous; every ten seconds a switch writes a megabyte of checkpoint and header at once. With two places and more the
/// last one has the log; with one it is its last tenth.
fn oltp(stores: Vec<Store>) -> Description {
    let (data, log, data_part, log_part) = match stores.len() {
        1 => (vec![0], vec![0], Some(Part::Percent(0, 90)), Some(Part::Percent(90, 100))),
        n => ((0..n - 1).collect(), vec![n - 1], None, None),
    };
    let mut pages = of_length(Stream::new("pages", data), 16 * KIB);
    (pages.read_percent, pages.lanes) = (70.0, Lanes::Together(32));
    pages.walk = Walk { spread: Spread::Zipf(0.9), range: data_part, ..Walk::default() };
    let mut redo = Stream::new("redo", log.clone());
    redo.read_percent = 0.0;
    redo.write_sizes = Sizes::Weighted(vec![(KIB / 2, 40.0), (KIB, 30.0), (4 * KIB, 25.0), (32 * KIB, 5.0)]);
    redo.walk = Walk { range: log_part, ..Walk::sequential() };
    redo.durable = true;
    let mut switch = of_length(Stream::new("log switch", log), 128 * KIB);
    // Eight pieces of 128 KiB each ten seconds, the last one flushed.
    (switch.read_percent, switch.rate, switch.arrival) = (0.0, Some(0.8), Arrival::Bursts(8));
    (switch.flush, switch.walk) = (Flush::Every(8), Walk { range: log_part, ..Walk::sequential() });
    Description { runs: vec![run("oltp", vec![pages, redo, switch])], stores }
}

fn even_reads(stores: &[Store], arrival: Arrival) -> Stream {
    let mut stream = of_length(Stream::new("reads", all(stores)), 8 * KIB);
    (stream.rate, stream.arrival, stream.lanes) = (Some(5000.0), arrival, Lanes::Together(64));
    stream
}

fn regular(stores: Vec<Store>) -> Description {
    Description { runs: vec![run("regular", vec![even_reads(&stores, Arrival::Even)])], stores }
}

/// The same number of reads, but as an application makes them: many at once, then none; and between them the control writes
/// of a database, which an elevator that waits for more of the same holds back.
fn control(stores: Vec<Store>) -> Description {
    let mut writes = of_length(Stream::new("control writes", all(&stores)), 16 * KIB);
    (writes.read_percent, writes.durable) = (0.0, true);
    (writes.rate, writes.arrival, writes.lanes) = (Some(50.0), Arrival::Poisson, Lanes::Together(4));
    writes.walk = Walk { range: Some(Part::Percent(0, 1)), ..Walk::default() };
    Description { runs: vec![run("control", vec![even_reads(&stores, Arrival::Bursts(20)), writes])], stores }
}

/// What is saved is read in one half, what is restored is written in the other.
fn backup(stores: Vec<Store>) -> Description {
    let stream = |name: &str, read_percent, part| {
        let mut stream = of_length(Stream::new(name, all(&stores)), MIB);
        (stream.read_percent, stream.lanes) = (read_percent, Lanes::Together(8));
        stream.walk = Walk { range: Some(part), ..Walk::sequential() };
        stream
    };
    let streams =
        vec![stream("reader", 100.0, Part::Percent(0, 50)), stream("writer", 0.0, Part::Percent(50, 100))];
    Description { runs: vec![run("backup", streams)], stores }
}

/// Machines of one image: a fifth of the blocks takes four fifths of the reads; what they write is small, and scattered.
fn boot(stores: Vec<Store>) -> Description {
    let mut stream = Stream::new("machines", all(&stores));
    (stream.read_percent, stream.lanes) = (90.0, Lanes::Together(64));
    stream.read_sizes =
        Sizes::Weighted(vec![(4 * KIB, 40.0), (16 * KIB, 30.0), (32 * KIB, 20.0), (64 * KIB, 10.0)]);
    stream.write_sizes = Sizes::one(4 * KIB);
    stream.walk = Walk { seek_percent: 70.0, spread: Spread::Pareto(0.2), ..Walk::default() };
    Description { runs: vec![Run { load: Load::Max, ..run("boot", vec![stream]) }], stores }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_carried_out_on_one_place_and_on_many() {
        for profile in PROFILES {
            for count in [1, 2, 16] {
                let places: Vec<Store> =
                    (0..count).map(|i| Store::new(format!("d{i}"), format!("/d{i}"))).collect();
                let description = super::profile(profile.name, &places).unwrap();
                description.check().unwrap_or_else(|e| panic!("{}: {e}", profile.name));
                let used: std::collections::BTreeSet<usize> =
                    description.runs.iter().flat_map(|r| &r.streams).flat_map(|s| s.stores.clone()).collect();
                assert_eq!(used.len(), count, "{} uses every place", profile.name);
            }
        }
        let mixed = super::profile("mix", &vec![Store::new("d", "/d"); 16]).unwrap();
        assert_eq!(mixed.runs[0].lanes(), 16 * 128);
        assert!(
            super::profile("none", &[Store::new("d", "/d")])
                .unwrap_err()
                .to_string()
                .contains("there are mix, objects")
        );
        assert!(super::profile("mix", &[]).unwrap_err().to_string().contains("nothing to work on"));
    }
}
