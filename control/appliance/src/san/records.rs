//! What is kept of the network, and what its parts mean to one another.

use crate::shares::LunFacts;
use api::san::{
    Auth, DEFAULT_GROUP, FcPort, Group, Identity, Initiator, Members, NO_PORT, NOBODY, SanState, Target,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Look, Table, Writer};
use units::{Error, Kind, Result};

pub(crate) const TARGETS: Table<TargetRecord> = Table::new("san.targets");
pub(crate) const INITIATORS: Table<InitiatorRecord> = Table::new("san.initiators");
pub(crate) const TARGET_GROUPS: Table<Vec<String>> = Table::new("san.target_groups");
pub(crate) const INITIATOR_GROUPS: Table<Vec<String>> = Table::new("san.initiator_groups");
pub(crate) const FC_TARGETS: Table<PortRecord> = Table::new("san.fc_targets");
pub(crate) const FC_INITIATORS: Table<PortRecord> = Table::new("san.fc_initiators");
pub(crate) const FC_TARGET_GROUPS: Table<Vec<String>> = Table::new("san.fc_target_groups");
pub(crate) const FC_INITIATOR_GROUPS: Table<Vec<String>> = Table::new("san.fc_initiator_groups");
pub(crate) const SETTINGS: Table<Identity> = Table::new("san.settings");
pub(crate) const IDENTITY: &str = "identity";

/// The name of one side, and the secret by which it is proved. Never printed whole.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    pub user: String,
    pub secret: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, ***)", self.user)
    }
}

/// By its IQN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetRecord {
    pub alias: String,
    pub auth: Auth,
    pub chap: Credentials,
    pub interfaces: Vec<String>,
    /// The relative port identifier that SCSI tells; given once, and for ever.
    pub port: u16,
}

/// By its IQN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InitiatorRecord {
    pub alias: String,
    pub chap: Credentials,
}

/// By its WWN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PortRecord {
    pub alias: String,
}

pub(crate) type Ports = BTreeMap<String, PortRecord>;

/// Groups by their names.
pub(crate) type Groups = BTreeMap<String, BTreeSet<String>>;

/// All of the records, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub targets: BTreeMap<String, TargetRecord>,
    pub initiators: BTreeMap<String, InitiatorRecord>,
    pub target_groups: Groups,
    pub initiator_groups: Groups,
    pub identity: Identity,
    pub fc_targets: Ports,
    pub fc_initiators: Ports,
    pub fc_target_groups: Groups,
    pub fc_initiator_groups: Groups,
}

impl Network {
    pub fn read(look: &impl Look) -> Result<Network> {
        let groups = |table| -> Result<Groups> {
            let all: Vec<(String, Vec<String>)> = look.all(table)?;
            Ok(all.into_iter().map(|(name, members)| (name, members.into_iter().collect())).collect())
        };
        Ok(Network {
            targets: look.all(&TARGETS)?.into_iter().collect(),
            initiators: look.all(&INITIATORS)?.into_iter().collect(),
            target_groups: groups(&TARGET_GROUPS)?,
            initiator_groups: groups(&INITIATOR_GROUPS)?,
            identity: look.get(&SETTINGS, IDENTITY)?.unwrap_or_default(),
            fc_targets: look.all(&FC_TARGETS)?.into_iter().collect(),
            fc_initiators: look.all(&FC_INITIATORS)?.into_iter().collect(),
            fc_target_groups: groups(&FC_TARGET_GROUPS)?,
            fc_initiator_groups: groups(&FC_INITIATOR_GROUPS)?,
        })
    }

    /// Whether [`Network::meet`] says the same with both.
    pub fn has_groups_of(&self, other: &Network) -> bool {
        self.target_groups == other.target_groups
            && self.initiator_groups == other.initiator_groups
            && self.fc_target_groups == other.fc_target_groups
            && self.fc_initiator_groups == other.fc_initiator_groups
    }

    pub fn groups(&self, of: Members) -> &Groups {
        match of {
            Members::Targets => &self.target_groups,
            Members::Initiators => &self.initiator_groups,
            Members::FcTargets => &self.fc_target_groups,
            Members::FcInitiators => &self.fc_initiator_groups,
        }
    }

    /// Of Fibre Channel.
    pub fn ports(&self, of: Members) -> &Ports {
        if of.is_target() { &self.fc_targets } else { &self.fc_initiators }
    }

    /// Whether a target was entered.
    pub fn has_target(&self, of: Members, name: &str) -> bool {
        if of.is_fc() { self.ports(of).contains_key(name) } else { self.targets.contains_key(name) }
    }

    /// Of either transport: a LUN names a group alone.
    pub fn has_group(&self, of: Members, name: &str) -> bool {
        let always = name == DEFAULT_GROUP || (!of.is_target() && name == NOBODY);
        always || self.groups(of).contains_key(name) || self.groups(of.other()).contains_key(name)
    }

    /// Whether a target or initiator belongs to a group. A group that is gone has no members.
    pub fn is_in(&self, of: Members, group: &str, member: &str) -> bool {
        group == DEFAULT_GROUP || self.groups(of).get(group).is_some_and(|all| all.contains(member))
    }

    /// Whether something may be in both groups, now or, of initiators that are not entered yet, some day.
    fn overlap(&self, of: Members, a: &str, b: &str) -> bool {
        if [a, b].contains(&NOBODY) {
            return false;
        }
        if a == b || a == DEFAULT_GROUP || b == DEFAULT_GROUP {
            return true;
        }
        let group = |name: &str| self.groups(of).get(name).or_else(|| self.groups(of.other()).get(name));
        matches!((group(a), group(b)), (Some(a), Some(b)) if !a.is_disjoint(b))
    }

    /// Whether one initiator could see both LUNs through one target: then their numbers differ.
    pub fn meet(&self, a: &LunFacts, b: &LunFacts) -> bool {
        let initiators = |a: &str| b.initiator_groups.iter().any(|b| self.overlap(Members::Initiators, a, b));
        self.overlap(Members::Targets, &a.target_group, &b.target_group)
            && a.initiator_groups.iter().any(|a| initiators(a))
    }

    /// As it is told: without secrets.
    pub fn tell(&self) -> SanState {
        let target = |(iqn, t): (&String, &TargetRecord)| Target {
            iqn: iqn.clone(),
            alias: t.alias.clone(),
            auth: t.auth,
            chap_user: t.chap.user.clone(),
            has_chap_secret: !t.chap.secret.is_empty(),
            interfaces: t.interfaces.clone(),
        };
        let initiator = |(iqn, i): (&String, &InitiatorRecord)| Initiator {
            iqn: iqn.clone(),
            alias: i.alias.clone(),
            chap_user: i.chap.user.clone(),
            has_chap_secret: !i.chap.secret.is_empty(),
        };
        let groups = |groups: &Groups, all: Vec<String>| {
            let default = Group { name: DEFAULT_GROUP.into(), members: all };
            let others = groups.iter().map(|(name, members)| Group {
                name: name.clone(),
                members: members.iter().cloned().collect(),
            });
            std::iter::once(default).chain(others).collect()
        };
        let ports = |ports: &Ports, status: &str| {
            let one = |(wwn, record): (&String, &PortRecord)| FcPort {
                wwn: wwn.clone(),
                alias: record.alias.clone(),
                status: status.into(),
            };
            ports.iter().map(one).collect()
        };
        SanState {
            targets: self.targets.iter().map(target).collect(),
            target_groups: groups(&self.target_groups, self.targets.keys().cloned().collect()),
            initiators: self.initiators.iter().map(initiator).collect(),
            // Drivers look for the groups that name an initiator, and give each of them the LUN: the group that holds
            // every initiator names none.
            initiator_groups: groups(&self.initiator_groups, Vec::new()),
            identity: self.identity.clone(),
            // A front for an adapter would know which of them are ports of this machine; there is none.
            fc_targets: ports(&self.fc_targets, NO_PORT),
            fc_target_groups: groups(&self.fc_target_groups, self.fc_targets.keys().cloned().collect()),
            fc_initiators: ports(&self.fc_initiators, ""),
            fc_initiator_groups: groups(&self.fc_initiator_groups, Vec::new()),
        }
    }
}

/// No initiator may come to see two LUNs under one number: called with the network as it would be.
pub(crate) fn at_most_one_number(network: &Network, luns: &[Arc<LunFacts>]) -> Result<()> {
    let mut by_number: BTreeMap<u16, Vec<&LunFacts>> = BTreeMap::new();
    for b in luns {
        let Some(number) = b.number else { continue };
        let same = by_number.entry(number).or_default();
        let clash = same.iter().find(|a| network.meet(a, b));
        if let Some(a) = clash {
            return Err(Error::new(Kind::Busy, "change groups").because(format!(
                "LUNs '{}' and '{}' both have the number {number}, and one initiator would see both; give one of them \
                 another",
                a.dataset, b.dataset
            )));
        }
        same.push(b);
    }
    Ok(())
}

/// The lowest relative port identifier that no target has.
pub(crate) fn free_port(network: &Network) -> u16 {
    let taken: BTreeSet<u16> = network.targets.values().map(|t| t.port).collect();
    (1..=u16::MAX).find(|port| !taken.contains(port)).unwrap_or(u16::MAX)
}

pub(crate) fn group_table(of: Members) -> &'static Table<Vec<String>> {
    match of {
        Members::Targets => &TARGET_GROUPS,
        Members::Initiators => &INITIATOR_GROUPS,
        Members::FcTargets => &FC_TARGET_GROUPS,
        Members::FcInitiators => &FC_INITIATOR_GROUPS,
    }
}

/// Takes a member out of every group that has it.
pub(crate) fn leave_groups(writer: &mut Writer, of: Members, network: &Network, member: &str) -> Result<()> {
    for (name, members) in network.groups(of).iter().filter(|(_, members)| members.contains(member)) {
        let rest: Vec<String> = members.iter().filter(|m| *m != member).cloned().collect();
        writer.put(group_table(of), name, &rest)?;
    }
    Ok(())
}
