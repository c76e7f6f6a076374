//! The steps as lines of a table.

use super::{Backing, Ios, Outcome, Phase, Place, Way};

/// Where it was done, in a few words.
pub fn place(place: &Place) -> String {
    match place {
        Place::Path(mounted) => format!("in {}", mounted.dir.display()),
        Place::Pool(Backing::File(dir), _) => format!("on a pool in a file in {}", dir.display()),
        Place::Pool(Backing::Simulated, _) => {
            "on a pool of 16 simulated hard disks in 8 mirrors, in simulated time".into()
        }
    }
}

/// `xattr=sa, dnodesize=1k`; nothing of a path.
pub fn way(way: Option<&Way>) -> String {
    way.map_or(String::new(), |way| format!("xattr={}, dnodesize={}", way.xattr, way.dnode_size))
}

/// A line for each step.
pub fn phases(outcome: &Outcome) -> String {
    let mut text = String::from(
        "| step | files | seconds | files/s | device reads/file | device writes/file | blocks in the cache |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for phase in &outcome.phases {
        let per_file = |of: fn(Ios) -> u64| {
            phase.ios.map_or("-".into(), |ios| format!("{:.3}", of(ios) as f64 / phase.files.max(1) as f64))
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            name(phase),
            phase.files,
            phase.per_second().map_or("-".into(), |_| format!("{:.2}", phase.elapsed.as_secs_f64())),
            rate(phase),
            per_file(|ios| ios.reads),
            per_file(|ios| ios.writes),
            cached(phase),
        );
    }
    text
}

/// Files per second; `-` where no time passed.
pub fn rate(phase: &Phase) -> String {
    phase.per_second().map_or("-".into(), |rate| format!("{rate:.0}"))
}

pub fn name(phase: &Phase) -> String {
    format!("{}{}", phase.op.name(), if phase.is_cold { ", cold" } else { "" })
}

pub fn cached(phase: &Phase) -> String {
    phase.cached.map_or("-".into(), |blocks| blocks.to_string())
}
