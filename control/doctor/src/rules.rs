//! All rules, by name, in the order in which their advice is printed.

mod config;
mod dataset;
mod pool;
mod transfer;
mod waits;

use crate::lab::prediction;
use crate::{Advice, Facts};

/// A rule by its name.
pub struct Rule {
    pub name: &'static str,
    /// The properties of a dataset that it judges.
    pub properties: &'static [&'static str],
    judge: fn(&Facts) -> Vec<Advice>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn rule(name: &'static str, judge: fn(&Facts) -> Vec<Advice>) -> Rule {
    Rule { name, properties: &[], judge }
}

impl Rule {
    /// It is about these properties, and is told of where one of them is set.
    const fn of(mut self, properties: &'static [&'static str]) -> Rule {
        self.properties = properties;
        self
    }
}

pub const RULES: &[Rule] = &[
    rule("transfer-size", transfer::size),
    rule("transfer-ceiling", transfer::ceiling),
    rule("request-size", waits::request_size),
    rule("elevator", transfer::elevator),
    rule("merges", transfer::merges),
    rule("queue-depth", transfer::queue_depth),
    rule("request-queue", transfer::request_queue),
    rule("read-ahead", transfer::read_ahead),
    rule("alignment", transfer::alignment),
    rule("host-waits", waits::host_waits),
    rule("queue-full", waits::queue_full),
    rule("solaris-maxphys", transfer::maxphys),
    rule("no-flush", config::no_flush),
    rule("barriers", config::barriers),
    rule("mount-sync", config::mount_sync),
    rule("mount-discard", config::mount_discard),
    rule("access-times", config::access_times),
    rule("nfs-transfer", config::nfs_transfer),
    rule("iscsi-session", config::iscsi_session),
    rule("multipath-dated", config::multipath_dated),
    rule("multipath-policy", config::multipath_policy),
    rule("udev-dated", config::udev_dated),
    rule("kernel-elevator", config::kernel_elevator),
    rule("innodb-page", config::innodb_page),
    rule("innodb-flush", config::innodb_flush),
    rule("innodb-neighbors", config::innodb_neighbors),
    rule("innodb-io-threads", config::innodb_native_aio),
    rule("postgres-fsync", config::postgres_fsync),
    rule("postgres-read-cost", config::postgres_block),
    rule("pool-full", pool::full),
    rule("pool-fragmented", pool::fragmented),
    rule("no-redundancy", pool::no_redundancy),
    rule("mixed-vdevs", pool::mixed),
    rule("sector-size", pool::sector_size),
    rule("raidz-padding", dataset::padding).of(&["recordsize", "volblocksize"]),
    rule("sync-disabled", dataset::sync_disabled).of(&["sync"]),
    rule("no-log-device", dataset::no_log).of(&["sync", "logbias"]),
    rule("log-passed-by", dataset::log_passed_by).of(&["logbias"]),
    rule("checksum-off", dataset::checksum_off).of(&["checksum"]),
    rule("compression-off", dataset::compression_off).of(&["compression"]),
    rule("dedup-table", dataset::dedup_table).of(&["dedup"]),
    rule("file-access-times", dataset::access_times).of(&["atime", "relatime", "recordsize"]),
    rule("requests-cut", dataset::requests_cut).of(&["volblocksize"]),
    rule("lun-alignment", dataset::alignment),
    rule("partial-writes", dataset::partial_writes).of(&["recordsize", "volblocksize"]),
    rule("whole-record-reads", dataset::whole_record_reads).of(&["recordsize", "volblocksize"]),
    rule("flush-cost", pool::flush_cost),
    rule("slow-disk", pool::slow_disk),
    rule("slow-log", pool::slow_log),
    rule("cache-wear", pool::cache_wear),
    rule("cache-slow-fill", pool::cache_slow_fill),
    rule("cache-unused", pool::cache_unused),
];

/// Whether a rule judges this property of a dataset, so that it is to be asked about where it is set.
pub fn is_judged(property: &str) -> bool {
    RULES.iter().any(|rule| rule.properties.contains(&property))
}

/// What is to be changed, as far as the facts say.
pub fn examine(facts: &Facts) -> Vec<Advice> {
    let judged = |rule: &Rule| {
        let named = |advice: Advice| {
            let properties = rule.properties.iter().map(ToString::to_string).collect();
            Advice { properties, lab: prediction(rule.name), ..advice }
        };
        (rule.judge)(facts).into_iter().map(named).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(judged).collect()
}
