//! What a command line changes in a description: for how long, at what rate, where.

use crate::describe::{Description, Load, Store};
use crate::knee;
use std::time::Duration;
use units::{Error, Result};

/// Nothing, by default.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub elapsed: Option<Duration>,
    pub warmup: Option<Duration>,
    pub interval: Option<Duration>,
    /// Of every run, in requests per second.
    pub rate: Option<f64>,
    /// Of every store.
    pub size: Option<u64>,
    pub direct: bool,
    pub verify: bool,
    /// Other places: for the store of a name, or for a place.
    pub places: Vec<(String, String)>,
    /// The deepest point of a curve.
    pub saturate: Option<u64>,
}

/// What a point of a curve measures, and what it does before, unless it is said otherwise.
const POINT: Duration = Duration::from_secs(5);
const POINT_WARMUP: Duration = Duration::from_secs(1);

impl Changes {
    /// # Errors
    /// A place to be put in that is nowhere in the description; a result that cannot be carried out.
    pub fn apply(&self, mut description: Description) -> Result<Description> {
        for (from, to) in &self.places {
            put(&mut description.stores, from, to)?;
        }
        for store in &mut description.stores {
            store.size = self.size.or(store.size);
            store.direct |= self.direct;
        }
        let mut description = match self.saturate {
            Some(depth) => knee::at_all_depths(&description, depth),
            None => description,
        };
        for run in &mut description.runs {
            if let Some(elapsed) = self.elapsed.or(self.saturate.map(|_| POINT)) {
                run.elapsed = Some(elapsed);
                // A stream that would end before does not; one that moves an amount is over when it has.
                run.streams.iter_mut().for_each(|s| s.elapsed = s.elapsed.map(|_| elapsed));
                if self.saturate.is_some() {
                    run.streams.iter_mut().for_each(|s| (s.amount, s.walk.wraps) = (None, true));
                }
            }
            run.warmup = self.warmup.or(self.saturate.map(|_| POINT_WARMUP)).unwrap_or(run.warmup);
            run.interval = self.interval.unwrap_or(run.interval);
            run.load = self.rate.map_or(run.load, Load::PerSecond);
            run.streams.iter_mut().for_each(|s| s.verify |= self.verify);
        }
        description.check()?;
        Ok(description)
    }
}

fn put(stores: &mut [Store], from: &str, to: &str) -> Result<()> {
    let mut is_found = false;
    for store in stores.iter_mut().filter(|s| s.name == from || s.place == from) {
        store.place = to.into();
        is_found = true;
    }
    if is_found {
        return Ok(());
    }
    let names: Vec<&str> = stores.iter().map(|s| s.name.as_str()).take(8).collect();
    Err(Error::invalid(format!("there is no place '{from}' in the workload; there are {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Description {
        let text = "sd=sd1,lun=/dev/mapper/mpatha,threads=8\nwd=w,sd=sd*\nrd=r,wd=w,elapsed=999h,warmup=9\n";
        crate::vdbench::parse("t", text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_said_wins_over_the_file() {
        let changes = Changes {
            elapsed: Some(Duration::from_secs(2)),
            rate: Some(100.0),
            size: Some(1 << 20),
            direct: true,
            verify: true,
            places: vec![("sd1".into(), "/tmp/a".into())],
            ..Changes::default()
        };
        let changed = changes.apply(published()).unwrap();
        let (run, store) = (&changed.runs[0], &changed.stores[0]);
        assert_eq!((run.elapsed, run.load), (Some(Duration::from_secs(2)), Load::PerSecond(100.0)));
        assert_eq!(run.warmup, Duration::from_secs(9));
        assert_eq!((store.place.as_str(), store.size, store.direct), ("/tmp/a", Some(1 << 20), true));
        assert!(run.streams[0].verify);
        let by_place =
            Changes { places: vec![("/dev/mapper/mpatha".into(), "b".into())], ..Changes::default() };
        assert_eq!(by_place.apply(published()).unwrap().stores[0].place, "b");
        let wrong = Changes { places: vec![("sd9".into(), "b".into())], ..Changes::default() };
        assert!(wrong.apply(published()).unwrap_err().to_string().contains("no place 'sd9'"));
    }

    #[test]
    fn a_curve_has_short_points_unless_it_is_said_otherwise() {
        let curve = Changes { saturate: Some(8), ..Changes::default() }.apply(published()).unwrap();
        let depths: Vec<u64> = curve.runs.iter().map(crate::describe::Run::lanes).collect();
        assert_eq!(depths, [1, 2, 4, 8]);
        assert!(curve.runs.iter().all(|run| run.elapsed == Some(POINT) && run.warmup == POINT_WARMUP));
    }
}
