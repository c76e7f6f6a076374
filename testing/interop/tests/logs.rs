//! Pools whose kernel was stopped in the midst of synchronous writes: their intent logs are claimed, those of volumes
//! are replayed to the byte, those of file systems are kept.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::process::ExitCode;

use common::{digest, open, open_without_log, verify};
use interop::harness::{self, Need, trial};
use interop::{Scratch, golden, zdb};

/// Without and with a log device.
const POOLS: [&str; 2] = ["zila", "zilb"];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for name in POOLS {
        let needs = [Need::Golden(name)];
        trials.push(trial(
            format!("{name}_has_its_volumes_replayed_and_its_file_systems_kept"),
            &needs,
            move || {
                replayed(name);
            },
        ));
        trials.push(trial(
            format!("{name}_read_only_shows_its_last_txg_and_what_waits"),
            &needs,
            move || {
                looked_at(name);
            },
        ));
        let needs = [Need::Golden(name), zdb::OF_2_3];
        trials
            .push(trial(format!("{name}_without_its_file_systems_passes_zdb"), &needs, move || judged(name)));
    }
    trials.push(trial(
        "zilb_needs_its_log_device_or_leave_to_lose_what_is_on_it",
        &[Need::Golden("zilb")],
        || {
            without_log_device();
        },
    ));
    trials.push(trial("zilc_is_for_reading_only_because_it_is_encrypted", &[Need::Golden("zilc")], || {
        encrypted();
    }));
    harness::main(trials)
}

/// What the kernel read from the volumes after it had replayed the log itself.
fn check_volumes(images: Vec<PathBuf>, name: &'static str) {
    linux::block_on(async move {
        let pool = open(images, name, false).await.unwrap();
        for wanted in golden::volumes(name) {
            let volume = pool.open_volume(&wanted.name).await.unwrap();
            assert_eq!(volume.size(), wanted.size);
            assert_eq!(digest(&volume).await, wanted.sha256, "{}", wanted.name);
        }
        let report = verify(&pool).await;
        assert!(report.log_records > 0, "the file systems' logs are still there");
        let waiting = pool.waiting_logs();
        assert!(waiting.iter().all(|log| log.records > 0 && log.why.is_none()), "{waiting:?}");
        let named: Vec<String> = waiting.into_iter().map(|log| log.dataset).collect();
        assert!(named.contains(&format!("{name}/fs")), "{named:?}");
        assert!(!named.contains(&format!("{name}/vol")), "{named:?}");
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
}

fn replayed(name: &'static str) {
    assert!(!golden::volumes(name).is_empty());
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    check_volumes(images.clone(), name);
    // Once more: what was replayed stays, what was kept waits on.
    check_volumes(images, name);
}

fn looked_at(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    linux::block_on({
        let images = images.clone();
        async move {
            let pool = open(images, name, true).await.unwrap();
            let waiting = pool.waiting_logs();
            assert!(waiting.iter().any(|log| log.dataset == format!("{name}/vol")), "{waiting:?}");
            for wanted in golden::volumes(name) {
                let volume = pool.open_volume(&wanted.name).await.unwrap();
                assert_ne!(digest(&volume).await, wanted.sha256, "the last txg is older than the log");
            }
            verify(&pool).await;
            pool.close().await.unwrap();
        }
    });
    // Nothing was written: the log is still there to be replayed.
    check_volumes(images, name);
}

/// Destroys the file systems, whose logs make OpenZFS's judge count their claimed blocks, and lets it judge the rest.
fn judged(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    check_volumes(images, name);
    zdb::assert_clean(scratch.path(), name);
}

fn without_log_device() {
    let scratch = Scratch::new();
    let images = golden::pool("zilb").copy(&scratch, &["zilb-log"]);
    linux::block_on(async move {
        let refused = open(images.clone(), "zilb", false).await.map(drop).unwrap_err().to_string();
        for word in ["log device missing", "'zilb/vol'", "would be lost", "-m"] {
            assert!(refused.contains(word), "{refused}");
        }
        let pool = open_without_log(images.clone(), "zilb").await.unwrap();
        let problems = pool.problems();
        assert!(problems.iter().any(|p| p.contains("'zilb/vol'") && p.contains("are lost")), "{problems:?}");
        let wanted = &golden::volumes("zilb")[0];
        let volume = pool.open_volume(&wanted.name).await.unwrap();
        assert_ne!(digest(&volume).await, wanted.sha256, "the log was what it lacks");
        drop(volume);
        verify(&pool).await;
        pool.export().await.unwrap();
        // The logs are gone, so the device is not missed any more than as a device.
        let pool = open_without_log(images, "zilb").await.unwrap();
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
}

fn encrypted() {
    let images = golden::pool("zilc").images;
    let refusal = linux::block_on(async move { open(images, "zilc", false).await.map(drop) });
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("encryption") && refusal.contains("readonly=on"), "{refusal}");
}
