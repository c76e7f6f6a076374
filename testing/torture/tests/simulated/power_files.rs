//! A short form of the power-cut proof over files, and that it would notice.

use torture::power::files::{FileCase, FileRunner, random_word, words};
use torture::power::{Effort, Figures, Setup, Ways};

const SPARSE: Effort = Effort {
    flush_every: 10,
    write_every: 120,
    fates: 1,
    again_every: 20,
    again_flush_every: 16,
    again_write_every: 80,
    rounds: 1,
    ..Effort::FULL
};

#[test]
fn what_was_synced_of_files_is_there_whatever_the_moment_of_the_cut() {
    let mut runner = FileRunner::default();
    let mut total = Figures::default();
    let (words, setups) = (words(3), Setup::all());
    let chosen = words.iter().rev().step_by(words.len() / setups.len());
    for (word, setup) in chosen.zip(setups) {
        total.add(runner.run(&FileCase::of(setup, word), SPARSE));
    }
    for (seed, setup) in (0..3).zip(Setup::all().into_iter().step_by(7)) {
        total.add(runner.run(&FileCase::of(setup, &random_word(seed)), Effort { flush_every: 30, ..SPARSE }));
    }
    println!("{total}");
    assert_eq!(total.failures, []);
    assert!(total.at_flush > 0 && total.undecided.present > 0 && total.undecided.absent > 0, "{total}");
}

/// Such blocks are on their devices before the log names them, and are flushed with it.
#[test]
fn what_went_past_the_cache_and_was_synced_is_there_whatever_the_moment_of_the_cut() {
    let mut runner = FileRunner::default();
    let mut total = Figures::default();
    let words = ["DfDs", "CDfWD", "DTDfD", "ADPfDs", "DSDRDf", "DfUDs", "DYDDf", "DEDfX", "WDsDL", "DDdDT"];
    for (word, setup) in words.into_iter().cycle().zip(Setup::all()) {
        total.add(
            runner.run(&FileCase::of(setup, word), Effort { flush_every: 4, write_every: 30, ..SPARSE }),
        );
    }
    println!("{total}");
    assert_eq!(total.failures, []);
    assert!(total.at_flush > 0 && total.undecided.present > 0 && total.undecided.absent > 0, "{total}");
}

#[test]
fn disks_that_lie_and_clients_that_believe_too_much_are_noticed() {
    let run = |ways: Ways, case: &str| {
        let effort = Effort { fates: 2, again_every: 0, ..Effort::FULL };
        FileRunner::new(ways).run(&case.parse::<FileCase>().expect("a case"), effort)
    };
    let deaf = vec!["/sim/disk0.img".to_string()];
    for word in ["CWfA", "DfA"] {
        let ways = Ways { deaf: deaf.clone(), ..Ways::default() };
        let figures = run(ways, &format!("files:single/latency/16K/9:{word}"));
        assert!(!figures.failures.is_empty(), "{word}: {figures}");
    }
    let figures = run(Ways { is_gullible: true, ..Ways::default() }, "files:single/latency/16K/9:WfCW");
    assert!(!figures.failures.is_empty(), "{figures}");
}
