//! Pools whose power was cut, as `zdb` sees them: as the cut left them, and after their recovery.
//!
//! Of the moments that are worth a look a third is looked at, drawn by the seed of the day.

use interop::Scratch;
use interop::harness::{Need, Trial, day, trial};
use interop::zdb;
use torture::power::{Case, Effort, Runner, Ways, Zdb};

const CASES: [&str; 3] =
    ["single/latency/4K/9:LfFNS", "mirror+slog/latency/16K/9:FfUR", "raidz1/throughput/64K/12:UfTL"];

pub fn trials() -> Vec<Trial> {
    let trials = CASES.map(|case| {
        trial(format!("zdb_finds_no_leak_after_cuts_of_{case}"), &[Need::Program("zdb")], move || judge(case))
    });
    trials.into()
}

fn judge(case: &str) {
    let scratch = Scratch::new();
    let ways = || {
        let zdb = Zdb { scratch: scratch.path().to_owned(), judge: zdb::judge };
        Ways { zdb: Some(zdb), ..Ways::default() }
    };
    let mut runner = Runner::new(ways());
    let effort = Effort {
        flush_every: 6,
        write_every: 60,
        fates: 1,
        again_every: 0,
        zdb_every: 5,
        choice: day(),
        ..Effort::FULL
    };
    let case = case.parse::<Case>().expect("a case");
    let mut figures = runner.run(&case, effort);
    if figures.failures.is_empty() && figures.by_zdb == 0 {
        // Of few moments a day may choose none for zdb.
        figures = Runner::new(ways()).run(&case, Effort { zdb_every: 1, ..effort });
    }
    assert_eq!(figures.failures, []);
    assert!(figures.by_zdb > 0, "{figures}");
}
