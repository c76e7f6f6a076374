//! Where more requests at once bring no more of them done.
//!
//! ```text
//!   requests/s │        ....---───  beyond the knee the queue only grows: response time rises with it
//!              │     .·
//!              │   x  ◀── the knee: the most requests per second for each second of waiting
//!              │ /
//!              └──────────────────── requests at once
//! ```

use crate::describe::{Description, Lanes, Run};
use std::time::Duration;

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests at once.
    pub depth: u64,
    /// Requests per second.
    pub rate: f64,
    /// The mean response time.
    pub response: Duration,
}

/// The point with the most power, requests per second divided by response time: before it more depth pays, behind it the
/// queue only grows. `None` when nothing was measured.
pub fn knee(points: &[Point]) -> Option<usize> {
    let power = |p: &Point| p.rate / p.response.as_secs_f64().max(1e-9);
    let is_measured = |p: &&(usize, &Point)| p.1.rate > 0.0 && p.1.response > Duration::ZERO;
    let numbered: Vec<(usize, &Point)> = points.iter().enumerate().collect();
    // Figures waver: of points that are within a hundredth of the best, the deeper has the higher rate.
    let best = numbered.iter().filter(is_measured).map(|(_, p)| power(p)).fold(0.0, f64::max);
    let near = |p: &Point| power(p) >= best * 0.99;
    numbered.iter().filter(is_measured).filter(|(_, p)| near(p)).map(|(i, _)| *i).max()
}

/// Each run at depths 1, 2, 4 … `max` in its place, at the maximum rate: lanes are divided as they were.
pub fn at_all_depths(description: &Description, max: u64) -> Description {
    let depths: Vec<u64> = std::iter::successors(Some(1u64), |d| Some(d * 2))
        .take_while(|d| *d < max)
        .chain([max.max(1)])
        .collect();
    let runs = description.runs.iter().flat_map(|run| depths.iter().map(|depth| at_depth(run, *depth)));
    Description { stores: description.stores.clone(), runs: runs.collect() }
}

fn at_depth(run: &Run, depth: u64) -> Run {
    let mut run = run.clone();
    run.name = format!("{} (depth={depth})", run.name);
    run.load = crate::describe::Load::Max;
    let whole = run.lanes().max(1);
    // Rounded up where the sum so far falls behind, so that the parts sum up to the whole.
    let (mut seen, mut given) = (0u64, 0u64);
    for stream in &mut run.streams {
        seen += stream.lane_count();
        let until_here = (u128::from(seen) * u128::from(depth)).div_ceil(u128::from(whole)) as u64;
        stream.lanes = Lanes::Together((until_here - given) as u32);
        given = until_here;
    }
    run.streams.retain(|stream| stream.lane_count() > 0);
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{Store, Stream};

    #[test]
    fn the_knee_is_where_the_queue_begins() {
        // A device with 8 servers of 1 ms each.
        let point = |depth: u64| {
            let rate = depth.min(8) as f64 * 1000.0;
            Point { depth, rate, response: Duration::from_secs_f64(depth as f64 / rate) }
        };
        let points: Vec<Point> = [1, 2, 4, 8, 16, 32].map(point).to_vec();
        assert_eq!(knee(&points), Some(3));
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&[Point { depth: 1, rate: 0.0, response: Duration::ZERO }]), None);
    }

    #[test]
    fn depths_double_and_are_divided_as_lanes_were() {
        let mut run = Run::new("r");
        for lanes in [3, 1] {
            let mut stream = Stream::new("s", vec![0, 1]);
            stream.lanes = Lanes::Each(lanes);
            run.streams.push(stream);
        }
        let stores = vec![Store::new("a", "/a"), Store::new("b", "/b")];
        let all = at_all_depths(&Description { stores, runs: vec![run] }, 24);
        let depths: Vec<u64> = all.runs.iter().map(Run::lanes).collect();
        assert_eq!(depths, [1, 2, 4, 8, 16, 24]);
        let divided: Vec<u64> = all.runs[5].streams.iter().map(Stream::lane_count).collect();
        assert_eq!(divided, [18, 6]);
        all.check().unwrap();
    }
}
