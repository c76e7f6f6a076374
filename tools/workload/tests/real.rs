//! A workload on a real file, through the real loops.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use workload::{Ledger, Limit, Spec, open, run_verified, verify};
use world::OpenMode;

#[test]
fn a_file_keeps_what_was_written_to_it() {
    let path = std::env::temp_dir().join(format!("workload-{}", std::process::id()));
    let size = 16 << 20;
    std::fs::File::create(&path).unwrap().set_len(size).unwrap();
    let spec = Spec {
        block_size: 8192,
        queue_depth: 16,
        read_percent: 40,
        limit: Limit::Requests(5000),
        flush_every: 500,
        cores: 2,
        ..Spec::default()
    };
    let ledger = Arc::new(Ledger::new(size / u64::from(spec.block_size)));
    for _ in 0..2 {
        let (path, spec, ledger) = (path.clone(), spec.clone(), ledger.clone());
        let world = linux::Config { cores: Some(2), ..linux::Config::default() };
        let report = linux::run(world, async move {
            let target = open(&path, OpenMode::ReadWrite).unwrap();
            verify(&*target, &spec, &ledger, false).await.unwrap();
            run_verified(target, &spec, ledger).await.unwrap()
        });
        assert_eq!(report.requests(), 5000);
        assert!(report.flushes.count() >= 5 && !report.cpu.is_zero() && !report.elapsed.is_zero());
    }
    std::fs::remove_file(&path).unwrap();
}
