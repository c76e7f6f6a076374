//! What no event says yet: a pool's health as a whole, how full it is, and transaction groups that took long.
//!
//! Space is told when it passes the threshold, and again when it is [`GAP`] percent below. How long transaction groups took
//! is counted by the statistic that counts it for everybody, opened with the threshold as its filter.

use api::alerts::Thresholds;
use pool::PoolReport;
use probe::{Hub, Key, Opened};
use std::collections::BTreeMap;
use units::Guid;

/// So far below the threshold space is said to be there again.
const GAP: u64 = 2;

type Told = (String, Vec<(String, String)>);

#[derive(Debug, Default)]
pub(super) struct Watch {
    pools: BTreeMap<Guid, Seen>,
    /// The threshold that it was opened with.
    slow: Option<(u64, Opened)>,
}

#[derive(Debug)]
struct Seen {
    health: &'static str,
    is_above: bool,
}

fn told(class: &str, fields: &[(&str, String)]) -> Told {
    let fields = fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    (format!("sysevent.cenote.{class}"), fields)
}

impl Watch {
    /// What is new of the pools. Pure. One that is seen for the first time is told of if it is not well.
    pub fn note_pools(&mut self, reports: &[PoolReport], thresholds: &Thresholds) -> Vec<Told> {
        self.pools.retain(|guid, _| reports.iter().any(|report| report.guid == *guid));
        reports
            .iter()
            .flat_map(|r| self.note(&r.name, r.guid, r.health.word(), r.capacity, thresholds))
            .collect()
    }

    fn note(
        &mut self,
        name: &str,
        guid: Guid,
        health: &'static str,
        percent: u64,
        thresholds: &Thresholds,
    ) -> Vec<Told> {
        let seen = self.pools.entry(guid).or_insert(Seen { health: "ONLINE", is_above: false });
        let pool = || [("pool", name.to_string()), ("pool_guid", format!("{:#x}", guid.0))];
        let mut all = Vec::new();
        let was = std::mem::replace(&mut seen.health, health);
        if was != health {
            let [pool, guid] = pool();
            all.push(told("pool_health", &[pool, guid, ("health", health.into()), ("was", was.into())]));
        }
        let limit = thresholds.space_percent;
        let is_above = match seen.is_above {
            _ if limit == 0 => false,
            true => percent + GAP > limit,
            false => percent >= limit,
        };
        if is_above != std::mem::replace(&mut seen.is_above, is_above) && limit > 0 {
            let [pool, guid] = pool();
            let is = if is_above { "above" } else { "below" };
            let numbers = [("percent", percent.to_string()), ("limit", limit.to_string())];
            let [percent, limit] = numbers;
            all.push(told("pool_space", &[pool, guid, ("is", is.into()), percent, limit]));
        }
        all
    }

    /// The pools of which transaction groups took longer than the threshold since the last look.
    pub fn note_syncs(&mut self, hub: &Hub, thresholds: &Thresholds) -> Vec<Told> {
        let limit = thresholds.sync_seconds;
        if self.slow.as_ref().is_none_or(|(with, _)| *with != limit) {
            let query = format!("txg.ops[component=sync][latency>={limit}s][pool]");
            let opened = (limit > 0).then(|| query.parse().and_then(|query| hub.open(&query)));
            self.slow = opened.and_then(|opened| opened.ok()).map(|opened| (limit, opened));
        }
        let Some((_, opened)) = &self.slow else { return Vec::new() };
        let slow = |(key, count): (Key, u64)| {
            let fields =
                [("pool", key.to_string()), ("count", count.to_string()), ("limit", limit.to_string())];
            told("sync_slow", &fields)
        };
        opened.take().parts.into_iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::{Breakdown, Event, Family, Op};
    use std::time::Duration;

    #[test]
    fn a_pool_that_gets_ill_and_well_again_is_told_once_each() {
        let (mut watch, limits) = (Watch::default(), Thresholds::default());
        let mut note = |health| {
            let all = watch.note("tank", Guid(1), health, 10, &limits);
            all.iter().map(|(class, fields)| format!("{class} {}", fields[2].1)).collect::<Vec<_>>()
        };
        assert!(note("ONLINE").is_empty());
        assert_eq!(note("DEGRADED"), ["sysevent.cenote.pool_health DEGRADED"]);
        assert!(note("DEGRADED").is_empty());
        assert_eq!(note("ONLINE"), ["sysevent.cenote.pool_health ONLINE"]);
        let mut begun = Watch::default();
        assert_eq!(begun.note("tank", Guid(1), "DEGRADED", 10, &limits).len(), 1, "it was so from the start");
    }

    #[test]
    fn space_is_told_when_it_passes_the_threshold_and_not_at_each_block() {
        let mut watch = Watch::default();
        let mut limits = Thresholds { space_percent: 90, ..Thresholds::default() };
        let mut note = |percent, limits: &Thresholds| {
            let all = watch.note("tank", Guid(1), "ONLINE", percent, limits);
            all.iter().map(|(_, fields)| fields[2].1.clone()).collect::<Vec<_>>()
        };
        assert!(note(89, &limits).is_empty());
        assert_eq!(note(90, &limits), ["above"]);
        assert!(note(89, &limits).is_empty() && note(95, &limits).is_empty());
        assert_eq!(note(88, &limits), ["below"]);
        limits.space_percent = 0;
        assert!(note(100, &limits).is_empty());
    }

    #[test]
    fn transaction_groups_that_take_too_long_are_counted_by_their_pool() {
        let (hub, mut watch) = (Hub::new(), Watch::default());
        let limits = Thresholds { sync_seconds: 10, ..Thresholds::default() };
        assert!(watch.note_syncs(&hub, &limits).is_empty());
        let probe = hub.probe(Family::Txg, &[(Breakdown::Pool, "tank")]);
        for (kind, seconds) in [("sync", 9), ("sync", 11), ("open", 30), ("sync", 12)] {
            let latency = Duration::from_secs(seconds);
            probe.tell(|| Event { op: Op::Phase, kind, latency, ..Event::default() });
        }
        let all = watch.note_syncs(&hub, &limits);
        let expected = [("pool", "tank"), ("count", "2"), ("limit", "10")];
        let expected = expected.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
        assert_eq!(all, [("sysevent.cenote.sync_slow".to_string(), expected)]);
        assert!(watch.note_syncs(&hub, &limits).is_empty());
    }
}
