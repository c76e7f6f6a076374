//! Keeps the shares of streams when none of them has a rate: one that is ahead of its share waits for the others.

use std::sync::Mutex;
use std::sync::PoisonError;

/// How many requests, by its share, a row may be ahead.
const SLACK: f64 = 16.0;

#[derive(Debug)]
pub struct Gate(Mutex<Vec<Row>>);

#[derive(Clone, Copy, Debug)]
struct Row {
    share: f64,
    made: f64,
    /// How many streams of it are not over.
    streams: usize,
}

impl Gate {
    /// The share and the number of streams of each row.
    pub fn new(rows: impl Iterator<Item = (f64, usize)>) -> Gate {
        Gate(Mutex::new(rows.map(|(share, streams)| Row { share, made: 0.0, streams }).collect()))
    }

    /// Whether the row may make a request now, which counts then.
    pub fn enter(&self, row: usize) -> bool {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = |row: &Row| row.made / row.share;
        let least = rows.iter().filter(|r| r.streams > 0).map(turn).fold(f64::INFINITY, f64::min);
        let Some(own) = rows.get_mut(row) else { return true };
        let may = turn(own) <= least + SLACK / own.share;
        if may {
            own.made += 1.0;
        }
        may
    }

    /// A stream of the row is over: the others do not wait for it.
    pub fn leave(&self, row: usize) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = rows.get_mut(row) {
            row.streams = row.streams.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_whoever_asks_more() {
        let gate = Gate::new([(75.0, 1), (25.0, 1)].into_iter());
        let mut made = [0u32; 2];
        for turn in 0..10_000 {
            // The second asks ten times as often.
            let row = usize::from(turn % 11 != 0);
            made[row] += u32::from(gate.enter(row));
        }
        let part = f64::from(made[0]) / f64::from(made[0] + made[1]);
        assert!((part - 0.75).abs() < 0.02, "{made:?}");
        gate.leave(0);
        assert!((0..100).all(|_| gate.enter(1)), "those that are over are not waited for");
    }
}
