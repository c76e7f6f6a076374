//! What `zpool list`, `status` and `iostat` show, as plain data.

use crate::error_scrub::ErrorScrubStatus;
use crate::pool::Pool;
use crate::rebuild::RebuildStatus;
use crate::scrub::ScanStatus;
use metaslab::{Class, Usage};
use std::collections::BTreeMap;
use units::{Guid, Txg};
use vdev::{AuxKind, Health, VdevStatus};

/// A picture of a pool at one moment.
#[derive(Clone, Debug)]
pub struct PoolReport {
    pub name: String,
    pub guid: Guid,
    /// The txg that is on disk.
    pub txg: Txg,
    pub health: Health,
    /// Bytes of the devices, parity included, log devices left out.
    pub size: u64,
    pub allocated: u64,
    pub free: u64,
    /// Percent; unknown while the space maps have no histograms.
    pub fragmentation: Option<u64>,
    pub capacity: u64,
    /// In hundredths.
    pub dedup_ratio: u64,
    /// The root, with all devices and their counters.
    pub vdevs: VdevStatus,
    /// The space of the top-level vdevs, and of the cache devices in use.
    pub space: BTreeMap<Guid, TopSpace>,
    pub scan: Option<ScanStatus>,
    /// The last scrub of the error log, or the one under way.
    pub error_scrub: Option<ErrorScrubStatus>,
    /// The last sequential rebuild of each vdev that had one.
    pub rebuilds: Vec<RebuildStatus>,
    /// Why nothing can be written any more, until the pool is opened again.
    pub suspended: Option<String>,
    /// How many blocks are known to be lost; see [`Pool::data_errors`].
    pub data_errors: u64,
    /// What else was met since the pool was opened, in sentences.
    pub problems: Vec<String>,
    /// Nanoseconds of a clock that only runs forward: when the counters were read.
    pub clock_ns: u64,
}

/// The space of one top-level vdev or cache device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopSpace {
    pub size: u64,
    pub allocated: u64,
    pub fragmentation: Option<u64>,
}

impl Pool {
    pub fn report(&self) -> PoolReport {
        let usage = self.space().usage_total();
        PoolReport {
            name: self.name(),
            guid: self.guid(),
            txg: self.uberblock().txg,
            health: self.tree().health(),
            size: usage.space,
            allocated: usage.allocated,
            free: usage.free(),
            fragmentation: self.space().fragmentation(Class::Normal),
            capacity: percent(&usage),
            dedup_ratio: 100,
            vdevs: self.tree().status(),
            space: self.space_of_tops(),
            scan: self.scan_status(),
            error_scrub: self.error_scrub_status(),
            rebuilds: self.rebuilds(),
            suspended: self.0.txgs.failure(),
            data_errors: self.data_error_count(),
            problems: self.problems(),
            clock_ns: world::now().0,
        }
    }

    fn space_of_tops(&self) -> BTreeMap<Guid, TopSpace> {
        let of = |top: &vdev::Top| {
            let usage = self.space().usage_of_vdev(top.id).unwrap_or_default();
            TopSpace {
                size: usage.space,
                allocated: usage.allocated,
                fragmentation: self.space().fragmentation_of_vdev(top.id),
            }
        };
        let tops = self.tree().tops();
        let caches = self.tree().aux(AuxKind::Cache).into_iter().filter_map(|device| {
            let (allocated, size) = self.pipeline().second_level().filled(device.spec.guid)?;
            Some((device.spec.guid, TopSpace { size, allocated, fragmentation: None }))
        });
        tops.iter().map(|top| (top.guid(), of(top))).chain(caches).collect()
    }
}

pub(crate) fn percent(usage: &Usage) -> u64 {
    (u128::from(usage.allocated) * 100).checked_div(u128::from(usage.space)).unwrap_or(0) as u64
}
