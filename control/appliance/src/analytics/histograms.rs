//! Sizes and latencies of what clients ask for, as running totals: for programs that keep their own history.
//!
//! ```text
//!   first request ─▶ FRONT.ops[size], FRONT.ops[latency], FRONT.bytes are opened, and stay so
//!   each request  ─▶ what came since the last one, into buckets by powers of two ─▶ totals, which only grow
//! ```
//!
//! What no program asks for costs nothing. The sum of sizes is exact; that of latencies takes each at the middle of its
//! bucket, of which there are four for each power of two.

use api::analytics::{FrontHistogram, Measured};
use probe::{Hub, Key, Opened, Sample};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const FRONTS: [&str; 3] = ["iscsi", "nbd", "fs"];

/// Nothing, until they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Histograms(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    front: &'static str,
    measure: Measured,
    counts: Opened,
    /// What adds up to the sum, where it is known exactly.
    bytes: Option<Opened>,
    /// By the power of two that is above.
    totals: BTreeMap<u64, u64>,
    sum: u64,
}

impl Kept {
    fn open(hub: &Hub, front: &'static str, measure: Measured) -> Option<Kept> {
        let open = |query: String| hub.open(&query.parse().ok()?).ok();
        let counts = open(format!("{front}.ops[{}]", measure.word()))?;
        let bytes = match measure {
            Measured::Size => Some(open(format!("{front}.bytes"))?),
            Measured::Latency => None,
        };
        Some(Kept { front, measure, counts, bytes, totals: BTreeMap::new(), sum: 0 })
    }

    fn told(&mut self) -> FrontHistogram {
        let sample = self.counts.take();
        let of_bytes = self.bytes.as_ref().map(|bytes| bytes.take().value);
        self.sum += of_bytes.unwrap_or_else(|| middles(&sample));
        for (key, count) in sample.parts {
            *self.totals.entry(limit(&key)).or_default() += count;
        }
        FrontHistogram {
            front: self.front.into(),
            measure: self.measure,
            buckets: self.totals.iter().map(|(limit, count)| (*limit, *count)).collect(),
            sum: self.sum,
        }
    }
}

/// The power of two that all of a bucket lies below; the last bucket has no end.
fn limit(key: &Key) -> u64 {
    match key {
        Key::Range { to, .. } => to.checked_next_power_of_two().unwrap_or(u64::MAX),
        Key::Text(_) | Key::Other => u64::MAX,
    }
}

fn middles(sample: &Sample) -> u64 {
    let middle = |key: &Key| match key {
        Key::Range { from, to: u64::MAX } => *from,
        Key::Range { from, to } => from / 2 + to / 2,
        Key::Text(_) | Key::Other => 0,
    };
    sample.parts.iter().map(|(key, count)| middle(key).saturating_mul(*count)).fold(0, u64::saturating_add)
}

impl Histograms {
    /// What there was since they were asked for first.
    pub fn told(&self, hub: &Hub) -> Vec<FrontHistogram> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            let both = |front| Measured::ALL.into_iter().filter_map(move |m| Kept::open(hub, front, m));
            all.extend(FRONTS.into_iter().flat_map(both));
        }
        all.iter_mut().map(Kept::told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::{Breakdown, Event, Family, Op};
    use std::time::Duration;

    #[test]
    fn totals_grow_from_the_first_request_on_and_sums_agree() {
        let (hub, histograms) = (Hub::new(), Histograms::default());
        let probe = hub.probe(Family::Nbd, &[(Breakdown::Client, "c")]);
        let tell = |bytes, micros| {
            let latency = Duration::from_micros(micros);
            probe.tell(|| Event { op: Op::Read, bytes, latency, ..Event::default() });
        };
        tell(4096, 100);
        let first = histograms.told(&hub);
        assert_eq!(first.len(), 6, "each front by both");
        assert!(first.iter().all(|h| h.buckets.is_empty() && h.sum == 0), "what was before was not counted");
        for (bytes, micros) in [(4096, 100), (4096, 120), (5000, 3000), (1 << 20, 100)] {
            tell(bytes, micros);
        }
        histograms.told(&hub);
        tell(8191, 100);
        let all = histograms.told(&hub);
        let of = |measure| all.iter().find(|h| h.front == "nbd" && h.measure == measure).unwrap();
        let sizes = of(Measured::Size);
        // A size of exactly 4K lies below 8K, not below 4K.
        assert_eq!(sizes.buckets, [(8192, 4), (2 << 20, 1)]);
        assert_eq!(sizes.sum, 4096 * 2 + 5000 + (1 << 20) + 8191);
        let latencies = of(Measured::Latency);
        assert_eq!(latencies.buckets, [(1 << 17, 4), (1 << 22, 1)]);
        let exact = (100 + 120 + 3000 + 100 + 100) * 1000u64;
        assert!(latencies.sum.abs_diff(exact) < exact / 8, "{}", latencies.sum);
        assert!(all.iter().filter(|h| h.front != "nbd").all(|h| h.buckets.is_empty()));
    }
}
