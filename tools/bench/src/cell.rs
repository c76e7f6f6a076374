//! One measured thing: the engine's figures beside the bare file's.

use workload::Report;

/// The medians of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    pub mib_per_second: f64,
    pub iops: f64,
    /// User and system time of the whole process, seconds.
    pub cpu_per_gib: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub name: String,
    pub block: u64,
    pub raw: Figure,
    pub engine: Figure,
}

impl Cell {
    pub fn new(name: &str, block: u64, raw: &[Report], engine: &[Report]) -> Cell {
        Cell { name: name.into(), block, raw: Figure::of(raw), engine: Figure::of(engine) }
    }

    /// The engine's throughput as a part of the bare file's.
    pub fn ratio(&self) -> f64 {
        if self.raw.mib_per_second == 0.0 {
            0.0
        } else {
            self.engine.mib_per_second / self.raw.mib_per_second
        }
    }
}

impl Figure {
    fn of(reports: &[Report]) -> Figure {
        let median = |of: fn(&Report) -> f64| {
            let mut values: Vec<f64> = reports.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        Figure {
            mib_per_second: median(Report::mib_per_second),
            iops: median(Report::iops),
            cpu_per_gib: median(Report::cpu_seconds_per_gib),
        }
    }
}
