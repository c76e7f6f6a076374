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
    let zdb = Zdb { scratch: scratch.path().to_owned(), judge: zdb::judge };
    let mut runner = Runner::new(Ways { zdb: Some(zdb), ..Ways::default() });
    let effort = Effort {
        flush_every: 6,
        write_every: 60,
        fates: 1,
        again_every: 0,
        zdb_every: 5,
        choice: day(),
        ..Effort::FULL
    };
    let figures = runner.run(&case.parse::<Case>().expect("a case"), effort);
    assert_eq!(figures.failures, []);
    assert!(figures.by_zdb > 0, "{figures}");
}
