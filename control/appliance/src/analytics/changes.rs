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
use api::san::{Members, San};
use api::{DatasetQuery, Reply, Services};
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

/// Which settings a request about the network is about. None of what is made, destroyed or given another name, and no
/// secret.
pub(crate) fn settings_of_san(asked: &San) -> Option<(Kind, String, Vec<String>)> {
    let (kind, subject, names): (_, _, &[&str]) = match asked {
        San::TargetSet { iqn, .. } => (Kind::Target, iqn, &["alias", "auth", "interfaces"]),
        San::InitiatorSet { iqn, .. } => (Kind::Initiator, iqn, &["alias"]),
        San::GroupSet { of: Members::Targets, name, new_name: None, .. } => {
            (Kind::TargetGroup, name, &["members"])
        }
        San::GroupSet { of: Members::Initiators, name, new_name: None, .. } => {
            (Kind::InitiatorGroup, name, &["members"])
        }
        _ => return None,
    };
    Some((kind, subject.to_ascii_lowercase(), names.iter().map(ToString::to_string).collect()))
}

/// The same of one about what serves clients.
pub(crate) fn settings_of_services(asked: &Services) -> Option<(Kind, String, Vec<String>)> {
    let (name, setting) = match asked {
        Services::Show => return None,
        Services::Switch { name, .. } => (name, "enabled"),
        Services::Listen { name, .. } => (name, "listen"),
    };
    Some((Kind::Service, name.clone(), vec![setting.into()]))
}

impl Appliance {
    /// As [`Appliance::about_to_set`], where a request is about a setting.
    pub(crate) async fn about_to(&self, settings: Option<(Kind, String, Vec<String>)>) -> Option<Before> {
        let (kind, subject, names) = settings?;
        self.about_to_set(kind, &subject, names).await
    }

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
                    // Its own values, and not those of what is below it.
                    depth: Some(0),
                    properties: names.to_vec(),
                    ..DatasetQuery::default()
                };
                // What is put back is set again, so that it is without the altroot.
                let all = self.kept_datasets(query).await.unwrap_or_default();
                all.into_iter().flat_map(|dataset| dataset.properties).collect()
            }
            Kind::Pool => match self.describe_pools(&[subject.into()]).await {
                Ok(Reply::Pools(all)) => all.into_iter().flat_map(|pool| pool.properties).collect(),
                _ => Vec::new(),
            },
            Kind::Tunables => return self.tunable_values(names),
            Kind::Service | Kind::Target | Kind::Initiator | Kind::TargetGroup | Kind::InitiatorGroup => {
                let all = self.served_values(kind, subject).await;
                let named = all.into_iter().filter(|(name, _)| names.iter().any(|own| own == name));
                let own = |value| Setting { value, is_own: true };
                return named.map(|(name, value)| (name.to_string(), own(value))).collect();
            }
        };
        let wanted = properties.iter().filter(|property| names.contains(&property.name));
        wanted.filter_map(|p| Some((p.name.clone(), Setting::of(p)?))).collect()
    }

    /// Of what serves clients, and of whom it serves; lists with commas between.
    async fn served_values(&self, kind: Kind, subject: &str) -> Vec<(&'static str, String)> {
        if kind == Kind::Service {
            let Ok(Reply::Services(all)) = self.services(Services::Show).await else { return Vec::new() };
            let found = all.into_iter().find(|service| service.name == subject);
            return found.map_or(Vec::new(), |service| {
                vec![("enabled", service.enabled.to_string()), ("listen", service.listen.join(","))]
            });
        }
        let Ok(network) = self.network() else { return Vec::new() };
        let network = network.tell();
        let is_it = |name: &str| name.eq_ignore_ascii_case(subject);
        let members = |all: Vec<api::san::Group>| {
            let found = all.into_iter().find(|group| is_it(&group.name));
            found.map_or(Vec::new(), |group| vec![("members", group.members.join(","))])
        };
        match kind {
            Kind::TargetGroup => members(network.target_groups),
            Kind::InitiatorGroup => members(network.initiator_groups),
            Kind::Initiator => {
                let found = network.initiators.into_iter().find(|initiator| is_it(&initiator.iqn));
                found.map_or(Vec::new(), |initiator| vec![("alias", initiator.alias)])
            }
            _ => {
                let found = network.targets.into_iter().find(|target| is_it(&target.iqn));
                found.map_or(Vec::new(), |target| {
                    let (auth, interfaces) = (target.auth.word().to_string(), target.interfaces.join(","));
                    vec![("alias", target.alias), ("auth", auth), ("interfaces", interfaces)]
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::san::TargetChange;

    #[test]
    fn what_is_made_or_renamed_is_no_change_of_a_setting() {
        let set = TargetChange::default;
        let target = San::TargetSet { iqn: "IQN.a".into(), set: set() };
        let (kind, subject, names) = settings_of_san(&target).unwrap();
        assert_eq!((kind, subject.as_str(), names.len()), (Kind::Target, "iqn.a", 3));
        let group = |new_name: Option<&str>| San::GroupSet {
            of: Members::Initiators,
            name: "g".into(),
            new_name: new_name.map(String::from),
            members: None,
        };
        assert_eq!(settings_of_san(&group(None)).unwrap().0, Kind::InitiatorGroup);
        for asked in [group(Some("h")), San::Show, San::TargetCreate { iqn: None, set: set() }] {
            assert!(settings_of_san(&asked).is_none(), "{asked:?}");
        }
        assert!(settings_of_services(&Services::Show).is_none());
    }
}
