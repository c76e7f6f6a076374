//! What a trace comes to: counted as it is read, in memory that does not grow with it.

use crate::header::Place;
use crate::request::{Op, Request};
use std::collections::BTreeMap;
use std::time::Duration;
use workload::Histogram;

/// Sizes of an operation that are told apart; further ones are together.
const SIZES_MAX: usize = 256;
const SECOND: u64 = 1_000_000_000;

/// One operation.
#[derive(Clone, Debug, Default)]
pub struct OfOp {
    pub bytes: u64,
    pub durable: u64,
    pub failed: u64,
    pub latencies: Histogram,
    /// How many of each size.
    pub sizes: BTreeMap<u64, u64>,
    /// Of sizes beyond as many as are told apart.
    pub others: u64,
}

#[derive(Clone, Debug)]
pub struct OfPlace {
    pub place: Place,
    pub requests: u64,
    /// From the first byte that was read or written to the end of the last.
    pub span: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub requests: u64,
    pub ops: BTreeMap<Op, OfOp>,
    pub places: Vec<OfPlace>,
    /// When the last answer was, in nanoseconds.
    pub last: u64,
    /// How many came in each second; a week at most.
    seconds: Vec<u32>,
    /// Nanoseconds of all requests together.
    under_way: u128,
}

impl Summary {
    pub fn place(&mut self, place: Place) {
        self.places.push(OfPlace { place, requests: 0, span: None });
    }

    pub fn request(&mut self, request: &Request) {
        self.requests += 1;
        let op = self.ops.entry(request.op).or_default();
        op.bytes = op.bytes.saturating_add(request.bytes);
        op.durable += u64::from(request.durable);
        op.failed += u64::from(request.failed);
        op.latencies.record(Duration::from_nanos(request.latency));
        let sizes = op.sizes.len();
        match op.sizes.get_mut(&request.bytes) {
            Some(count) => *count += 1,
            None if sizes < SIZES_MAX => drop(op.sizes.insert(request.bytes, 1)),
            None => op.others += 1,
        }
        if let Some(of) = self.places.get_mut(request.place as usize) {
            of.requests += 1;
            if request.op.moves_bytes() {
                let (first, end) = of.span.unwrap_or((u64::MAX, 0));
                of.span = Some((first.min(request.offset), end.max(request.end())));
            }
        }
        self.last = self.last.max(request.at.saturating_add(request.latency));
        self.under_way += u128::from(request.latency);
        let second = (request.at / SECOND) as usize;
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, 0);
        }
        self.seconds[second] = self.seconds[second].saturating_add(1);
    }

    /// Requests in the busiest second.
    pub fn peak(&self) -> u64 {
        self.seconds.iter().copied().max().unwrap_or(0).into()
    }

    /// How many were under way at once, in the mean of `length` nanoseconds.
    pub fn concurrency(&self, length: u64) -> f64 {
        self.under_way as f64 / length.max(1) as f64
    }
}

/// How many requests were under way at once at most.
pub fn most_at_once(requests: &[Request]) -> usize {
    let begins = requests.iter().map(|r| (r.at, true));
    let ends = requests.iter().map(|r| (r.at.saturating_add(r.latency.max(1)), false));
    let mut changes: Vec<(u64, bool)> = begins.chain(ends).collect();
    // At one moment those that end go first.
    changes.sort_unstable();
    let (mut now, mut most) = (0usize, 0);
    for (_, begins) in changes {
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::place;

    fn request(at: u64, latency: u64, op: Op, offset: u64, bytes: u64) -> Request {
        Request { at, latency, place: 0, op, object: 0, offset, bytes, durable: false, failed: false }
    }

    #[test]
    fn requests_are_counted_by_operation_and_size() {
        let mut summary = Summary::default();
        summary.place(place());
        summary.request(&request(0, 1000, Op::Read, 4096, 512));
        summary.request(&request(SECOND, 3000, Op::Read, 0, 512));
        summary.request(&request(SECOND + 5, 1000, Op::Write, 1 << 20, 8192));
        summary.request(&request(SECOND + 6, 1000, Op::Flush, 1 << 40, 0));
        let reads = &summary.ops[&Op::Read];
        assert_eq!((reads.bytes, reads.sizes[&512], reads.latencies.count()), (1024, 2, 2));
        assert_eq!((summary.requests, summary.peak()), (4, 3));
        assert_eq!(summary.places[0].span, Some((0, (1 << 20) + 8192)), "a flush has no offset");
        assert!((summary.concurrency(6000) - 1.0).abs() < 1e-9);
        for size in 0..1000 {
            summary.request(&request(0, 0, Op::Write, 0, size));
        }
        let writes = &summary.ops[&Op::Write];
        assert_eq!((writes.sizes.len(), writes.others), (SIZES_MAX, 1001 - SIZES_MAX as u64));
    }

    #[test]
    fn requests_are_at_once_while_none_is_answered() {
        let all =
            [(0, 10), (5, 10), (10, 1), (40, 0)].map(|(at, latency)| request(at, latency, Op::Read, 0, 0));
        assert_eq!((most_at_once(&all), most_at_once(&[])), (2, 0));
    }
}
