//! What was set, for the ledger of changes: the values before and after a request, whatever became of it.
//!
//! ```text
//!   let setting = self.about_to_set(subject, names).await;    values before
//!   ... the request: it may end half-way ...
//!   self.was_set(setting, by).await;                          values after: what differs is noted
//! ```
//!
//! What was set in between by another request is noted by both, at worst. Nothing is noted without a daemon, nor of a pool
//! that does not answer, as a suspended one may.

use crate::appliance::{Appliance, By};
use ::analytics::NewChange;
use api::changes::{Kind, Setting};
use api::{DatasetQuery, Reply};
use std::collections::BTreeMap;
use std::time::Duration;

/// A pool that does not answer is no reason for a request to wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// Settings that a request is about.
pub(crate) struct Before {
    kind: Kind,
    subject: String,
    names: Vec<String>,
    values: BTreeMap<String, Setting>,
}

impl Appliance {
    /// `None` where nothing is noted.
    pub(crate) async fn about_to_set(&self, kind: Kind, subject: &str, names: Vec<String>) -> Option<Before> {
        self.0.analytics.recorder()?;
        let values = world::timeout(PATIENCE, self.values_of(kind, subject, &names)).await?;
        Some(Before { kind, subject: subject.into(), names, values })
    }

    pub(crate) async fn was_set(&self, before: Option<Before>, by: &By) {
        let (Some(Before { kind, subject, mut names, values: mut before }), Some(recorder)) =
            (before, self.0.analytics.recorder())
        else {
            return;
        };
        let values = self.values_of(kind, &subject, &names);
        let Some(mut after) = world::timeout(PATIENCE, values).await else { return };
        names.sort();
        names.dedup();
        let changes = names.into_iter().filter_map(|setting| {
            let (before, after) = (before.remove(&setting), after.remove(&setting));
            (before != after).then(|| NewChange {
                kind,
                subject: subject.clone(),
                setting,
                before,
                after,
                command: by.command.clone(),
                uid: by.uid,
            })
        });
        recorder.note(changes);
    }

    /// Notes a setting that holds only now, long after the request: the block size of a volume whose blocks were copied.
    pub(crate) fn was_set_late(&self, dataset: &str, setting: &str, (before, after): (u64, u64), by: &By) {
        let Some(recorder) = self.0.analytics.recorder() else { return };
        let value = |value: u64| Some(Setting { value: value.to_string(), is_own: true });
        recorder.note([NewChange {
            kind: Kind::Dataset,
            subject: dataset.into(),
            setting: setting.into(),
            before: value(before),
            after: value(after),
            command: by.command.clone(),
            uid: by.uid,
        }]);
    }

    /// What cannot be asked has no value: the request itself says why.
    async fn values_of(&self, kind: Kind, subject: &str, names: &[String]) -> BTreeMap<String, Setting> {
        let properties = match kind {
            Kind::Dataset => {
                let query = DatasetQuery {
                    names: vec![subject.into()],
                    properties: names.to_vec(),
                    ..DatasetQuery::default()
                };
                match self.query_datasets(query).await {
                    Ok(Reply::Datasets(all)) => all.into_iter().flat_map(|d| d.properties).collect(),
                    _ => Vec::new(),
                }
            }
            Kind::Pool => match self.describe_pools(&[subject.into()]).await {
                Ok(Reply::Pools(all)) => all.into_iter().flat_map(|pool| pool.properties).collect(),
                _ => Vec::new(),
            },
            Kind::Tunables => return self.tunable_values(names),
        };
        let wanted = properties.iter().filter(|property| names.contains(&property.name));
        wanted.filter_map(|p| Some((p.name.clone(), Setting::of(p)?))).collect()
    }
}
