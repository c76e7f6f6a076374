//! A short form of the power-cut proof, and that it would notice: clients that believe too much, disks that lie.

use torture::power::{Case, Effort, Figures, Runner, Setup, Ways, Workload};

const FEW: Effort = Effort { fates: 1, again_every: 0, ..Effort::FULL };
/// Few moments of many workloads: each import costs some tens of milliseconds here.
const SPARSE: Effort = Effort {
    flush_every: 12,
    write_every: 250,
    fates: 1,
    again_every: 20,
    again_flush_every: 16,
    again_write_every: 80,
    rounds: 2,
    ..Effort::FULL
};

fn run(runner: &mut Runner, case: &str, effort: Effort) -> Figures {
    runner.run(&case.parse::<Case>().expect("a case"), effort)
}

#[test]
fn nothing_promised_is_lost_whatever_the_moment_of_the_cut() {
    let mut runner = Runner::default();
    let mut total = Figures::default();
    // A word for each setup: from all lengths, and every operation is in some.
    let (words, setups) = (Workload::words(3), Setup::all());
    let chosen = words.iter().step_by(words.len() / setups.len());
    for (workload, setup) in chosen.zip(setups) {
        total.add(runner.run(&Case::of(setup, workload.clone()), SPARSE));
    }
    println!("{total}");
    assert_eq!(total.failures, []);
    assert!(total.at_flush > 0 && total.again > 0 && total.without_log > 0, "{total}");
}

#[test]
fn clients_at_once_keep_what_they_were_promised() {
    let mut runner = Runner::default();
    let mut total = Figures::default();
    for (seed, setup) in (0..5).zip(Setup::all().into_iter().rev().step_by(5)) {
        let effort = Effort { flush_every: 40, write_every: 300, ..SPARSE };
        total.add(runner.run(&Case::of(setup, Workload::Random(seed)), effort));
    }
    println!("{total}");
    assert_eq!(total.failures, []);
    assert!(total.undecided.present > 0 && total.undecided.absent > 0, "{total}");
}

#[test]
fn a_disk_that_only_says_it_flushed_is_caught() {
    let deaf = vec!["/sim/disk0.img".to_string()];
    let figures = run(&mut Runner::new(Ways { deaf, ..Ways::default() }), "single/latency/16K/9:FfS", FEW);
    assert!(!figures.failures.is_empty(), "{figures}");
}

#[test]
fn a_client_that_takes_every_answer_for_a_promise_is_disappointed() {
    let mut runner = Runner::new(Ways { is_gullible: true, ..Ways::default() });
    let figures = run(&mut runner, "single/latency/4K/12:SfL", FEW);
    assert!(figures.failures.iter().all(|f| f.why.contains("too old")), "{:?}", figures.failures);
    assert!(!figures.failures.is_empty(), "{figures}");
}

#[test]
fn a_case_replays_exactly() {
    let mut runner = Runner::new(Ways { is_gullible: true, ..Ways::default() });
    let all = run(
        &mut runner,
        "single/latency/16K/12:5",
        Effort { fates: 1, again_every: 0, rounds: 1, ..Effort::SAMPLE },
    );
    let failure = all.failures.first().expect("a client that believes too much is disappointed");
    let again = run(&mut runner, &failure.case, Effort::FULL);
    assert_eq!(again.failures, std::slice::from_ref(failure));
}
