//! Capacity by pool, project and share, as sources of statistics.
//!
//! To find out what each share takes is to read datasets, which waits for the disk, and a source may not. So a source tells
//! what was found last, and that it was asked; a task looks again, every [`PAUSE`], while it is asked.
//!
//! A pool's bytes are told apart without gap: those of each share, those of a project beside its shares, and those of a pool
//! beside its projects are readings of their own, so that each breakdown adds up to the same.

use crate::appliance::Appliance;
use ::analytics::Recorder;
use api::{DatasetKind, DatasetQuery, Property, Reply, Value};
use probe::{Breakdown, Hub, Mark, Reading, Registration};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Capacity {
    found: Mutex<(Vec<Reading>, Vec<Reading>)>,
    is_asked: AtomicBool,
}

/// A dataset as it is reckoned with.
struct Space {
    name: String,
    used: u64,
    available: u64,
}

impl Capacity {
    pub fn register(self: &Arc<Capacity>, hub: &Hub) -> Vec<Registration> {
        let tell = |of: fn(&(Vec<Reading>, Vec<Reading>)) -> &Vec<Reading>| {
            let own = self.clone();
            Arc::new(move || {
                own.is_asked.store(true, Ordering::Relaxed);
                of(&own.found.lock().unwrap_or_else(PoisonError::into_inner)).clone()
            })
        };
        vec![
            hub.readings("metacap.bytesused", tell(|(bytes, _)| bytes)),
            hub.readings("metacap.percentused", tell(|(_, percent)| percent)),
        ]
    }

    /// Looks, while it is asked, until the recorder ends.
    pub async fn follow(self: Arc<Capacity>, appliance: Appliance, recorder: Recorder) {
        loop {
            if self.is_asked.swap(false, Ordering::Relaxed)
                && let Some(spaces) = appliance.spaces().await
            {
                *self.found.lock().unwrap_or_else(PoisonError::into_inner) = readings(&spaces);
            }
            if world::timeout(PAUSE, recorder.ended()).await.is_some() {
                return;
            }
        }
    }
}

impl Appliance {
    async fn spaces(&self) -> Option<Vec<Space>> {
        let query = DatasetQuery {
            kinds: vec![DatasetKind::Filesystem, DatasetKind::Volume],
            properties: vec!["used".into(), "available".into()],
            ..DatasetQuery::default()
        };
        let Ok(Reply::Datasets(all)) = self.query_datasets(query).await else { return None };
        let number =
            |property: Option<&Property>| property.and_then(|p| p.value.as_ref()).and_then(Value::number);
        let space = |dataset: api::Dataset| Space {
            used: number(dataset.property("used")).unwrap_or(0),
            available: number(dataset.property("available")).unwrap_or(0),
            name: dataset.name,
        };
        Some(all.into_iter().map(space).collect())
    }
}

/// Bytes, and percent of what the pool gives to datasets.
fn readings(spaces: &[Space]) -> (Vec<Reading>, Vec<Reading>) {
    let used: BTreeMap<&str, u64> = spaces.iter().map(|space| (space.name.as_str(), space.used)).collect();
    let (mut bytes, mut percent) = (Vec::new(), Vec::new());
    for space in spaces {
        let mut parts = space.name.splitn(4, '/');
        let (pool, project, share) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        // What lies deeper is in the share.
        if parts.next().is_some() {
            continue;
        }
        let below = |name: &&str| {
            name.strip_prefix(space.name.as_str())
                .is_some_and(|rest| rest.starts_with('/') && !rest[1..].contains('/'))
        };
        let inner: u64 = if share.is_some() {
            0
        } else {
            used.iter().filter(|(name, _)| below(name)).map(|(_, used)| used).sum()
        };
        let own = space.used.saturating_sub(inner);
        let mark = |by, text: &str| (by, Mark::Word(text.into()));
        let place = |text: Option<&str>| text.unwrap_or("-").to_string();
        let marks = vec![
            mark(Breakdown::Pool, pool),
            mark(Breakdown::Project, &place(project)),
            mark(Breakdown::Share, &share.map_or("-".into(), |share| format!("{}/{share}", place(project)))),
        ];
        let whole = used.get(pool).copied().unwrap_or(0);
        let root = spaces.iter().find(|space| space.name == pool);
        let whole = whole.saturating_add(root.map_or(0, |root| root.available)).max(1);
        percent.push(Reading { marks: marks.clone(), value: own.saturating_mul(100) / whole });
        bytes.push(Reading { marks, value: own });
    }
    (bytes, percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_breakdown_adds_up_to_what_the_pools_take() {
        let space = |name: &str, used, available| Space { name: name.into(), used, available };
        let spaces = [
            space("tank", 600, 400),
            space("tank/mysql", 500, 400),
            space("tank/mysql/data", 300, 400),
            space("tank/mysql/data/deep", 100, 400),
            space("tank/mysql/log", 150, 400),
            space("tank/web", 10, 400),
            space("lake", 7, 93),
        ];
        let (bytes, percent) = readings(&spaces);
        assert_eq!(bytes.iter().map(|reading| reading.value).sum::<u64>(), 607);
        let by = |readings: &[Reading], by: Breakdown| {
            let mut sums: BTreeMap<String, u64> = BTreeMap::new();
            for reading in readings {
                let Some((_, Mark::Word(word))) = reading.marks.iter().find(|(b, _)| *b == by) else {
                    panic!()
                };
                *sums.entry(word.to_string()).or_default() += reading.value;
            }
            sums.into_iter().collect::<Vec<_>>()
        };
        let named = |all: &[(&str, u64)]| all.iter().map(|(n, v)| (n.to_string(), *v)).collect::<Vec<_>>();
        assert_eq!(by(&bytes, Breakdown::Pool), named(&[("lake", 7), ("tank", 600)]));
        assert_eq!(by(&bytes, Breakdown::Project), named(&[("-", 97), ("mysql", 500), ("web", 10)]));
        let shares = named(&[("-", 157), ("mysql/data", 300), ("mysql/log", 150)]);
        assert_eq!(by(&bytes, Breakdown::Share), shares);
        assert_eq!(
            by(&percent, Breakdown::Share),
            named(&[("-", 22), ("mysql/data", 30), ("mysql/log", 15)])
        );
    }
}
