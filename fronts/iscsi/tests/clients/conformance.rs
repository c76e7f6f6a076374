//! libiscsi's conformance suite on units in memory.

use crate::real::Real;
use interop::conformance::{Place, Suite};
use iscsi::memory::{MemoryDirectory, device};
use scsi::memory::MemoryUnit;
use std::sync::Arc;

/// Tests that run at a time, each on a target of its own.
const AT_ONCE: usize = 4;

pub fn every_conformance_test_ends_as_expected() {
    let target = |n: usize| format!("iqn.2026-11.org.example:suite{n}");
    let server = Real::serve("conformance", 1, move || {
        let mut directory = MemoryDirectory::default();
        for n in 0..AT_ONCE {
            let unit = |block| Arc::new(MemoryUnit::new(2 << 30, block));
            directory = directory.with(&target(n), 0, device(unit(16 << 10), 2 * n as u8));
            directory = directory.with(&target(n), 1, device(unit(512), 2 * n as u8 + 1));
        }
        directory
    });
    let place = |n| Place { usual: server.unit(&target(n), 0), small: server.unit(&target(n), 1) };
    let places = (0..AT_ONCE).map(place).collect();
    let suite = Suite { places, own: "", one_of: 1, dir: &server.dir };
    interop::conformance::every_test_ends_as_expected(&suite);
}
