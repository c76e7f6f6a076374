//! Which volumes and files a trace needs, and which parts of them must be there before.

use super::ByName;
use super::settings::Setup;
use std::collections::BTreeMap;
use trace::Op;
use trace::read::Contents;
use units::{Error, Result, pretty_size};

/// A lab fills no more than this: more takes longer than anybody waits, and memory.
const TOUCHED_MAX: u64 = 16 << 30;
/// What does not compress is kept in memory as it is.
const TOUCHED_REAL_MAX: u64 = 2 << 30;
/// So many files a lab makes.
const FILES_MAX: usize = 100_000;
/// Beginning and end of what is there lie on whole blocks, however large they are in either column.
const UNIT: u64 = 128 << 10;

/// A volume, or a file system with the files that the trace reads and writes.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// By which settings are looked up.
    pub name: String,
    pub is_volume: bool,
    /// Of a volume its only part, the object 0.
    pub parts: Vec<Part>,
}

/// Something with offsets.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its number in the trace.
    pub object: u64,
    /// Of a file: as far as the trace goes.
    pub size: u64,
    pub touched: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub datasets: Vec<Dataset>,
    /// Of each place of the trace its dataset; `None` of one that no request is for.
    pub places: Vec<Option<usize>>,
    /// Bytes, of all datasets.
    pub touched: u64,
    /// Nanoseconds.
    pub length: u64,
    /// What is left out.
    pub remarks: Vec<String>,
}

#[derive(Default)]
struct Reach {
    end: u64,
    touched: BTreeMap<u64, u64>,
}

impl Plan {
    pub fn of(trace: &Contents, setups: &[&Setup]) -> Result<Plan> {
        let mut by_name = ByName::new();
        let (mut datasets, mut places) = (Vec::<Dataset>::new(), Vec::new());
        let is_used: Vec<bool> = {
            let mut used = vec![false; trace.places.len()];
            trace.requests.iter().for_each(|request| used[request.place as usize] = true);
            used
        };
        for (place, is_used) in trace.places.iter().zip(&is_used) {
            if !is_used {
                places.push(None);
                continue;
            }
            let next = by_name.len();
            let number = *by_name.entry(place.name().to_string()).or_insert(next);
            if number == next {
                let name = place.name().to_string();
                let is_volume = setups[0].is_volume(&name);
                datasets.push(Dataset { name, is_volume, parts: Vec::new() });
            }
            places.push(Some(number));
        }
        let blocks =
            |dataset: &Dataset| setups.iter().map(|setup| setup.block_of(dataset)).collect::<Vec<_>>();
        let unit = datasets.iter().flat_map(blocks).fold(UNIT, u64::max);
        let mut reached: BTreeMap<(usize, u64), Reach> = BTreeMap::new();
        for request in &trace.requests {
            let Some(number) = places[request.place as usize] else { continue };
            if !matches!(request.op, Op::Read | Op::Write | Op::Prefetch) || request.bytes == 0 {
                continue;
            }
            let object = if datasets[number].is_volume { 0 } else { request.object };
            let reach = reached.entry((number, object)).or_default();
            reach.end = reach.end.max(request.end());
            let (from, to) = (request.offset / unit * unit, request.end().next_multiple_of(unit));
            add(&mut reach.touched, from, to);
        }
        if reached.len() > FILES_MAX {
            let why = format!(
                "the trace reads and writes {} files, and a lab makes {FILES_MAX}: record for a shorter time",
                reached.len()
            );
            return Err(Error::invalid(why));
        }
        for ((number, object), Reach { end, touched }) in reached {
            let dataset = &mut datasets[number];
            let size = match dataset.is_volume {
                true => setups[0].size_of_name(&dataset.name).unwrap_or(0).max(end).next_multiple_of(unit),
                false => end,
            };
            let touched = touched.into_iter().map(|(from, to)| (from, to.min(size))).collect();
            dataset.parts.push(Part { object, size, touched });
        }
        // A volume that is only flushed is there as well.
        for dataset in datasets.iter_mut().filter(|dataset| dataset.is_volume && dataset.parts.is_empty()) {
            let size = setups[0].size_of_name(&dataset.name).unwrap_or(0).max(unit).next_multiple_of(unit);
            dataset.parts.push(Part { object: 0, size, touched: Vec::new() });
        }
        let parts = datasets.iter().flat_map(|dataset| &dataset.parts);
        let sum: u64 = parts.flat_map(|part| &part.touched).map(|(from, to)| to - from).sum();
        let is_real = setups.iter().any(|setup| setup.ratio.is_some());
        let most = if is_real { TOUCHED_REAL_MAX } else { TOUCHED_MAX };
        if sum > most {
            let why = format!(
                "the trace touches {}, and a lab holds {}: record for a shorter time, or one LUN",
                pretty_size(sum),
                pretty_size(most)
            );
            return Err(Error::invalid(why));
        }
        let last = trace.requests.iter().map(|r| r.at.saturating_add(r.latency)).max().unwrap_or(0);
        let length = trace.end.map_or(last, |end| end.length);
        let remarks = remarks(trace, setups, &datasets);
        Ok(Plan { datasets, places, touched: sum, length, remarks })
    }
}

fn remarks(trace: &Contents, setups: &[&Setup], datasets: &[Dataset]) -> Vec<String> {
    let mut remarks = Vec::new();
    if trace.end.is_none() {
        remarks.push("the trace was cut: this is what its whole pieces have".to_string());
    }
    if let Some(dropped) = trace.end.map(|end| end.dropped).filter(|dropped| *dropped > 0) {
        remarks.push(format!("{dropped} requests are not in the trace: the recorder had no room for them"));
    }
    let mut presents = trace.places.iter().filter_map(|place| place.present.as_ref());
    if presents.any(|present| present.has_log) && !setups[0].has_log() {
        let what =
            "the pool has devices for the intent log, and the model has none: '--present log=ssd' has one";
        remarks.push(what.to_string());
    }
    let files: usize = datasets.iter().filter(|d| !d.is_volume).map(|d| d.parts.len()).sum();
    if files > 0 {
        remarks.push(format!(
            "{files} files, each as long as the trace reaches; reads, writes and fsyncs are made again, names and attributes are not"
        ));
    }
    remarks
}

/// Adds a range; those that touch become one.
fn add(ranges: &mut BTreeMap<u64, u64>, from: u64, to: u64) {
    let (mut from, mut to) = (from, to);
    if let Some((&first, &end)) = ranges.range(..=from).next_back()
        && end >= from
    {
        if end >= to {
            return;
        }
        from = first;
    }
    while let Some((&first, &end)) = ranges.range(from..=to).next() {
        to = to.max(end);
        ranges.remove(&first);
    }
    ranges.insert(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut random = sim::Rng::new(3);
        for _ in 0..200 {
            let (mut ranges, mut plain) = (BTreeMap::new(), [false; 64]);
            for _ in 0..random.below(20) {
                let from = random.below(60);
                let to = from + 1 + random.below(63 - from);
                add(&mut ranges, from, to);
                plain[from as usize..to as usize].fill(true);
            }
            let mut marked = [false; 64];
            ranges.iter().for_each(|(from, to)| marked[*from as usize..*to as usize].fill(true));
            assert_eq!(marked, plain);
            let all: Vec<(u64, u64)> = ranges.into_iter().collect();
            assert!(all.windows(2).all(|two| two[0].1 < two[1].0), "{all:?}");
        }
    }
}
