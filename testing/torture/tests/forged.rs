//! A short form of the forged pools, what failed once, and that a forged structure is believed at all.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use torture::forged::{ForgedCase, ForgedRunner, Watch, names};
use torture::seeds::{Kept, kept};

/// The share of a `cargo test`.
const SHORT: Duration = Duration::from_secs(8);

fn runner() -> ForgedRunner {
    ForgedRunner::new(Watch::new(|case, why| {
        eprintln!("cargo xtask sim {case}: {why}");
        std::process::abort();
    }))
}

#[test]
fn no_forged_structure_of_today_panics_or_hangs() {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() / 86_400);
    let (first, begun) = (days << 20, Instant::now());
    let mut runner = runner();
    let mut cases = 0;
    while begun.elapsed() < SHORT {
        let case = ForgedCase::of(first + cases);
        if let Some(failure) = runner.run(&case) {
            panic!("cargo xtask sim {}: {}", failure.case, failure.why);
        }
        cases += 1;
    }
    println!("{cases} forged pools from seed {first} on");
    assert!(cases > 0);
}

#[test]
fn what_was_forged_once_does_no_harm_again() {
    let mut runner = runner();
    for case in kept().unwrap() {
        let Kept::Forged(case) = case else { continue };
        let failure = runner.run(&case);
        assert_eq!(failure, None);
    }
}

#[test]
fn an_unchanged_pool_passes_the_trial_and_a_forged_one_is_believed() {
    let told = runner().rehearse("own-raidz1").unwrap();
    assert!(told.is_empty(), "{told:#?}");
    assert!(names().iter().any(|name| name == "own-raidz1"));
}
