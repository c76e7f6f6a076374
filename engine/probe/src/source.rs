//! Statistics that are asked, not told: a source says what is so now, or what it has come to.

use crate::breakdown::Breakdown;
use crate::counter::lock;
use crate::query::Query;
use crate::sample::{Mark, Reading, Sample};
use crate::statistics::{StatUnit, Taken};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{Error, Result};
use world::Instant;

/// What can be asked.
#[derive(Clone)]
pub(crate) enum Source {
    Samples(Arc<dyn Fn(Option<Breakdown>) -> Sample + Send + Sync>),
    Readings(Arc<dyn Fn() -> Vec<Reading> + Send + Sync>),
}

/// All sources, by the statistic that asks them.
#[derive(Default)]
pub(crate) struct Sources(Mutex<Registered>);

#[derive(Default)]
struct Registered {
    next_id: u64,
    all: Vec<(u64, &'static str, Source)>,
}

impl Sources {
    pub fn add(&self, statistic: &'static str, source: Source) -> u64 {
        let mut registered = lock(&self.0);
        registered.next_id += 1;
        let id = registered.next_id;
        registered.all.push((id, statistic, source));
        id
    }

    pub fn remove(&self, id: u64) {
        let mut registered = lock(&self.0);
        let at = registered.all.iter().position(|(other, ..)| *other == id);
        let removed = at.map(|at| registered.all.remove(at));
        // Its last user may have sources of its own, which leave through this lock.
        drop(registered);
        drop(removed);
    }

    pub fn has(&self, statistic: &str) -> bool {
        lock(&self.0).all.iter().any(|(_, name, _)| *name == statistic)
    }

    fn of(&self, statistic: &str) -> Vec<(u64, Source)> {
        let registered = lock(&self.0);
        let of = registered.all.iter().filter(|(_, name, _)| *name == statistic);
        of.map(|(id, _, source)| (*id, source.clone())).collect()
    }
}

/// A statistic that is open and asked.
pub(crate) struct Asked {
    query: Query,
    sources: Arc<Sources>,
    last: Mutex<Last>,
}

/// What the sources had come to when they were asked last.
#[derive(Default)]
struct Last {
    at: Instant,
    totals: BTreeMap<Total, u64>,
}

/// Which of a source's running totals.
type Total = (u64, Vec<(Breakdown, Mark)>);

impl Asked {
    pub fn new(query: Query, sources: Arc<Sources>) -> Result<Asked> {
        let is_plain = |(_, source): &(u64, Source)| matches!(source, Source::Samples(_));
        if sources.of(query.statistic.name).iter().any(is_plain) && to_ask(&query).is_none() {
            let name = query.statistic.name;
            return Err(Error::invalid(format!(
                "{query}: {name} takes only filters of what it is broken down by"
            )));
        }
        let asked = Asked { query, sources, last: Mutex::default() };
        // What was counted before it was opened is not told.
        asked.take();
        Ok(asked)
    }

    pub fn take(&self) -> Sample {
        let query = &self.query;
        let mut readings = self.ask();
        match query.statistic.taken {
            Taken::Counter => self.differences(&mut readings),
            Taken::Busy => self.utilizations(&mut readings),
            Taken::Gauge | Taken::Told(..) => {}
        }
        let readings = readings.into_iter().map(|(_, reading)| reading).filter(|r| r.passes(&query.filters));
        match query.breakdown {
            Some(by) => Sample::of(readings.map(|r| (r.key(by), r.value))),
            None => Sample::whole(readings.map(|r| r.value).sum()),
        }
    }

    /// All that the sources say, each with the number of its source.
    fn ask(&self) -> Vec<(u64, Reading)> {
        let mut all = Vec::new();
        for (id, source) in self.sources.of(self.query.statistic.name) {
            match source {
                Source::Readings(readings) => all.extend(readings().into_iter().map(|r| (id, r))),
                Source::Samples(sample) => {
                    // Registered after this was opened, it may not tell apart what is asked for.
                    let Some(by) = to_ask(&self.query) else { continue };
                    all.extend(readings_of(sample(by), by).into_iter().map(|r| (id, r)));
                }
            }
        }
        all
    }

    /// Makes of each total what it has more than when it was asked last; in percent, the part of the time.
    fn differences(&self, readings: &mut [(u64, Reading)]) {
        let in_percent = self.query.statistic.unit == StatUnit::Percent;
        let elapsed = self.since_last(readings, in_percent);
        if in_percent {
            readings.iter_mut().for_each(|(_, r)| r.value = percent(r.value, elapsed));
        }
    }

    /// Makes of each total of time one thing, and how much of the time it had work.
    fn utilizations(&self, readings: &mut [(u64, Reading)]) {
        let elapsed = self.since_last(readings, true);
        for (_, reading) in readings {
            let utilization = percent(reading.value, elapsed).min(100);
            reading.marks.push((Breakdown::Utilization, Mark::Number(utilization)));
            reading.value = 1;
        }
    }

    /// The differences to the last look, and the nanoseconds since then. One that is new counts from nothing.
    fn since_last(&self, readings: &mut [(u64, Reading)], timed: bool) -> u64 {
        let now = if timed { world::now() } else { Instant::default() };
        let mut last = lock(&self.last);
        let mut totals = BTreeMap::new();
        for (id, reading) in readings {
            let total = (*id, reading.marks.clone());
            let before = last.totals.get(&total).copied().unwrap_or(0);
            *totals.entry(total).or_default() += reading.value;
            reading.value = reading.value.saturating_sub(before);
        }
        let elapsed = u64::try_from(now.since(last.at).as_nanos()).unwrap_or(u64::MAX);
        *last = Last { at: now, totals };
        elapsed
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// What a source that breaks down by one thing must be asked by, so that the query can be answered.
fn to_ask(query: &Query) -> Option<Option<Breakdown>> {
    let by = query.breakdown.or(query.filters.first().map(|filter| filter.by));
    query.filters.iter().all(|filter| Some(filter.by) == by).then_some(by)
}

fn readings_of(sample: Sample, by: Option<Breakdown>) -> Vec<Reading> {
    let Some(by) = by else { return vec![Reading { marks: Vec::new(), value: sample.value }] };
    let parts = sample.parts.into_iter();
    parts.map(|(key, value)| Reading { marks: vec![(by, Mark::from(key))], value }).collect()
}

#[cfg(test)]
mod tests;
