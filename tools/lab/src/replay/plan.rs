//! Which volumes a trace needs, and which parts of them must be there before.

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
/// Beginning and end of what is there lie on whole blocks, however large they are in either column.
const UNIT: u64 = 128 << 10;

#[derive(Clone, Debug)]
pub struct Volume {
    /// By which settings are looked up.
    pub name: String,
    pub size: u64,
    pub touched: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub volumes: Vec<Volume>,
    /// Of each place of the trace its volume; `None` of one that no request is for.
    pub places: Vec<Option<usize>>,
    /// Bytes, of all volumes.
    pub touched: u64,
    /// Nanoseconds.
    pub length: u64,
    /// What is left out.
    pub remarks: Vec<String>,
}

impl Plan {
    pub fn of(trace: &Contents, setups: &[&Setup]) -> Result<Plan> {
        let mut by_name = ByName::new();
        let (mut names, mut places) = (Vec::new(), Vec::new());
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
            if place.present.as_ref().is_some_and(|present| !present.is_volume)
                || trace.header.statistic.starts_with("fs.")
            {
                let why =
                    format!("'{}' is a file system: volumes are replayed, over NBD and iSCSI", place.name());
                return Err(Error::unsupported(why));
            }
            let next = by_name.len();
            let number = *by_name.entry(place.name().to_string()).or_insert(next);
            if number == next {
                names.push(place.name().to_string());
            }
            places.push(Some(number));
        }
        let unit = setups
            .iter()
            .flat_map(|setup| names.iter().map(|name| setup.block_of_name(name)))
            .fold(UNIT, u64::max);
        let mut touched: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); names.len()];
        let mut ends = vec![0u64; names.len()];
        for request in &trace.requests {
            let Some(number) = places[request.place as usize] else { continue };
            if !matches!(request.op, Op::Read | Op::Write | Op::Prefetch) || request.bytes == 0 {
                continue;
            }
            ends[number] = ends[number].max(request.end());
            add(&mut touched[number], request.offset / unit * unit, request.end().next_multiple_of(unit));
        }
        let volumes: Vec<Volume> = names
            .into_iter()
            .zip(ends)
            .zip(touched)
            .map(|((name, end), touched)| {
                let size = setups[0].size_of_name(&name).unwrap_or(0).max(end).max(unit);
                let size = size.next_multiple_of(unit);
                Volume { name, size, touched: touched.into_iter().collect() }
            })
            .collect();
        let sum: u64 = volumes.iter().flat_map(|volume| &volume.touched).map(|(from, to)| to - from).sum();
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
        Ok(Plan { volumes, places, touched: sum, length, remarks: remarks(trace) })
    }
}

fn remarks(trace: &Contents) -> Vec<String> {
    let mut remarks = Vec::new();
    if trace.end.is_none() {
        remarks.push("the trace was cut: this is what its whole pieces have".to_string());
    }
    if let Some(dropped) = trace.end.map(|end| end.dropped).filter(|dropped| *dropped > 0) {
        remarks.push(format!("{dropped} requests are not in the trace: the recorder had no room for them"));
    }
    if trace.places.iter().filter_map(|place| place.present.as_ref()).any(|present| present.has_log) {
        remarks.push("the pool has devices for the intent log, and the model has none".to_string());
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
