//! Workloads on simulated disks: the numbers are those of the model, and every lie is found.
#![allow(clippy::unwrap_used)]

use nbd::memory::MemoryVolume;
use sim::{Disks, Fault, Model};
use std::sync::Arc;
use std::time::Duration;
use units::Kind;
use workload::{Ledger, Limit, Pattern, Spec, VolumeTarget, open, run, run_verified, verify};
use world::OpenMode;

const SIZE: u64 = 8 << 20;
const PATH: &str = "disk0";

fn spec() -> Spec {
    Spec {
        block_size: 4096,
        queue_depth: 8,
        read_percent: 50,
        limit: Limit::Requests(2000),
        ..Spec::default()
    }
}

fn ledger(spec: &Spec) -> Arc<Ledger> {
    Arc::new(Ledger::new(SIZE / u64::from(spec.block_size)))
}

fn disks(model: Model) -> Disks {
    let disks = Disks::new();
    disks.add(PATH, SIZE, model);
    disks
}

#[test]
fn what_is_reported_is_what_the_disk_takes() {
    let model = Model { per_mib: Duration::ZERO, ..Model::NVME };
    for (queue_depth, read_percent, iops) in [(1, 100, 12_500.0), (8, 100, 100_000.0), (4, 0, 200_000.0)] {
        let spec = Spec { queue_depth, read_percent, ..spec() };
        let report = sim::run_with(&disks(model), 1, sim::Config::default(), async move {
            let target = open(PATH.as_ref(), OpenMode::ReadWrite).unwrap();
            run(target, &spec).await.unwrap()
        });
        assert_eq!(report.requests(), 2000);
        assert_eq!(report.bytes(), 2000 * 4096);
        let took = report.iops() / iops;
        assert!((0.9..1.01).contains(&took), "{} IOPS at depth {queue_depth}", report.iops());
        let (latencies, latency) =
            if read_percent == 100 { (&report.reads, model.read) } else { (&report.writes, model.write) };
        assert_eq!(latencies.max(), latency);
    }
}

#[test]
fn a_run_may_be_limited_by_time() {
    let spec = Spec { limit: Limit::Time(Duration::from_millis(10)), pattern: Pattern::Sequential, ..spec() };
    let report = sim::run_with(&disks(Model::NVME), 1, sim::Config::default(), async move {
        run(open(PATH.as_ref(), OpenMode::ReadWrite).unwrap(), &spec).await.unwrap()
    });
    assert!((10..11).contains(&report.elapsed.as_millis()), "{:?}", report.elapsed);
}

#[test]
fn a_volume_that_keeps_its_word_verifies() {
    sim::run(3, sim::Config::default(), async {
        let spec = Spec { flush_every: 50, cores: 2, compressible_percent: 40, ..spec() };
        let target = Arc::new(VolumeTarget(Arc::new(MemoryVolume::new(SIZE, 16 << 10))));
        let ledger = ledger(&spec);
        for _ in 0..2 {
            let report = run_verified(target.clone(), &spec, ledger.clone()).await.unwrap();
            assert!(report.flushes.count() > 10);
        }
        verify(&*target, &spec, &ledger, false).await.unwrap();
    });
}

#[test]
fn lies_of_a_disk_are_found() {
    for fault in
        [Fault { rot_ppm: 20_000, ..Fault::default() }, Fault { lost_writes_ppm: 20_000, ..Fault::default() }]
    {
        let disks = disks(Model::NVME);
        disks.get(PATH).unwrap().set_fault(fault);
        let spec = spec();
        let found = sim::run_with(&disks, 5, sim::Config::default(), async move {
            let target = open(PATH.as_ref(), OpenMode::ReadWrite).unwrap();
            let ledger = ledger(&spec);
            run_verified(target.clone(), &spec, ledger.clone()).await?;
            verify(&*target, &spec, &ledger, false).await
        });
        assert_eq!(found.map_err(|e| e.kind()), Err(Kind::Corrupt), "{fault:?}");
    }
}

/// What was flushed survives a power cut on an honest disk; the ledger outlives the world.
#[test]
fn a_power_cut_loses_only_what_was_not_flushed() {
    for seed in 1..=20 {
        let disks = disks(Model::NVME);
        let spec = Spec { block_size: 512, flush_every: 20, read_percent: 30, seed, ..spec() };
        let ledger = ledger(&spec);
        disks.cut_at_flush(5 + seed);
        let (running, known) = (spec.clone(), ledger.clone());
        let ended = sim::run_until_cut(&disks, seed, sim::Config::default(), async move {
            let target = open(PATH.as_ref(), OpenMode::ReadWrite).unwrap();
            run_verified(target, &running, known).await.map(|_| ())
        });
        assert!(ended.is_none(), "the power was cut");
        disks.power_cut(seed);
        sim::run_with(&disks, seed, sim::Config::default(), async move {
            let target = open(PATH.as_ref(), OpenMode::ReadWrite).unwrap();
            verify(&*target, &spec, &ledger, true).await.unwrap();
            run_verified(target.clone(), &spec, ledger.clone()).await.unwrap();
            verify(&*target, &spec, &ledger, false).await.unwrap();
        });
    }
}

/// The same, on a disk that forgets writes it has confirmed: the check above can fail.
#[test]
fn a_flushed_write_that_is_lost_is_found_after_the_cut() {
    let disks = disks(Model::NVME);
    disks.get(PATH).unwrap().set_fault(Fault { lost_writes_ppm: 50_000, ..Fault::default() });
    let spec = Spec { read_percent: 0, flush_every: 20, ..spec() };
    let ledger = ledger(&spec);
    sim::run_with(&disks, 1, sim::Config::default(), async move {
        let target = open(PATH.as_ref(), OpenMode::ReadWrite).unwrap();
        run_verified(target.clone(), &spec, ledger.clone()).await.unwrap();
        let lost = verify(&*target, &spec, &ledger, true).await.unwrap_err();
        assert!(lost.to_string().contains("lost write"), "{lost}");
    });
}
