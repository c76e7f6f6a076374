//! Changing the network.

use super::fc;
use super::names::{
    check_alias, check_group, check_identity, check_interface, check_secret, is_address, iscsi_name, new_iqn,
};
use super::records::{
    Credentials, IDENTITY, INITIATORS, InitiatorRecord, Network, SETTINGS, TARGETS, TargetRecord,
    at_most_one_number, free_port, group_table, leave_groups,
};
use crate::appliance::Appliance;
use crate::error_text::About;
use crate::error_text::why;
use crate::san::interfaces::Interfaces;
use crate::shares::{LunFacts, Luns};
use api::san::{InitiatorChange, Members, San, TargetChange};
use api::{ApiError, Reply, Secret};
use std::sync::Arc;
use store::Writer;
use units::{Error, Kind, Result};

impl Appliance {
    pub(crate) async fn san(&self, asked: San) -> api::Result<Reply> {
        let doing = doing(&asked);
        let failed = |e: Error| {
            let kind = e.kind().into();
            ApiError::new(kind, format!("cannot {doing}: {}", why(About::Dataset, &e)))
        };
        if asked == San::Show {
            let network = self.configuration().and_then(|c| c.look(Network::read));
            return Ok(Reply::San(Box::new(network.map_err(failed)?.tell())));
        }
        are_there(&asked).map_err(failed)?;
        // Numbers of LUNs are given and groups are changed in turns, or both would be right and the sum wrong.
        let _turn = self.0.san.numbering.lock().await;
        let luns = self.luns_by_claims(&self.network().map_err(failed)?).await?;
        let random = [world::random_u64(), world::random_u64()];
        let changed =
            self.configuration().and_then(|c| c.change(|writer| change(writer, asked, &luns, random)));
        changed.map_err(failed)
    }

    /// The network at this moment.
    pub(crate) fn network(&self) -> Result<Network> {
        self.configuration()?.look(Network::read)
    }
}

/// Interfaces that a target is given are there now, or the name is misspelt. Addresses may come later.
fn are_there(asked: &San) -> Result<()> {
    let (San::TargetCreate { set, .. } | San::TargetSet { set, .. }) = asked else { return Ok(()) };
    let names = set.interfaces.iter().flatten();
    let mut names = names.filter(|text| check_interface(text).is_ok() && !is_address(text)).peekable();
    if names.peek().is_none() {
        return Ok(());
    }
    let all =
        Interfaces::read().map_err(|e| Error::new(Kind::Io, "list the network interfaces").because(e))?;
    match names.find(|name| !all.has(name)) {
        Some(name) => {
            let there: Vec<&str> = all.names().collect();
            Err(Error::invalid(format!(
                "there is no network interface '{name}'; there are {}",
                there.join(", ")
            )))
        }
        None => Ok(()),
    }
}

fn doing(asked: &San) -> String {
    let groups = |of: &Members| match of {
        Members::Targets | Members::FcTargets => "target group",
        Members::Initiators | Members::FcInitiators => "initiator group",
    };
    let port = |of: &Members| match of.is_target() {
        true => "Fibre Channel target",
        false => "Fibre Channel initiator",
    };
    match asked {
        San::Show => "show targets and initiators".into(),
        San::TargetCreate { .. } => "create target".into(),
        San::TargetSet { iqn, .. } => format!("change target '{iqn}'"),
        San::TargetDestroy { iqn } => format!("destroy target '{iqn}'"),
        San::InitiatorCreate { iqn, .. } => format!("create initiator '{iqn}'"),
        San::InitiatorSet { iqn, .. } => format!("change initiator '{iqn}'"),
        San::InitiatorDestroy { iqn } => format!("destroy initiator '{iqn}'"),
        San::GroupCreate { of, name, .. } => format!("create {} '{name}'", groups(of)),
        San::GroupSet { of, name, .. } => format!("change {} '{name}'", groups(of)),
        San::GroupDestroy { of, name } => format!("destroy {} '{name}'", groups(of)),
        San::SetIdentity(_) => "change what INQUIRY says".into(),
        San::FcCreate { of, wwn, .. } => format!("create {} '{wwn}'", port(of)),
        San::FcSet { of, wwn, .. } => format!("change {} '{wwn}'", port(of)),
        San::FcDestroy { of, wwn } => format!("destroy {} '{wwn}'", port(of)),
    }
}

/// `random` is for the name of a new target.
fn change(writer: &mut Writer, asked: San, luns: &Luns, random: [u64; 2]) -> Result<Reply> {
    let before = Network::read(writer)?;
    let name = match asked {
        San::Show => None,
        San::TargetCreate { iqn, set } => Some(create_target(writer, &before, iqn, set, random)?),
        San::TargetSet { iqn, set } => {
            let iqn = iscsi_name(&iqn)?;
            let record = before.targets.get(&iqn).ok_or_else(|| missing("target"))?;
            writer.put(&TARGETS, &iqn, &set_target(record.clone(), set)?)?;
            None
        }
        San::TargetDestroy { iqn } => {
            let iqn = iscsi_name(&iqn)?;
            if !writer.remove(&TARGETS, &iqn)? {
                return Err(missing("target"));
            }
            leave_groups(writer, Members::Targets, &before, &iqn)?;
            None
        }
        San::InitiatorCreate { iqn, set } => {
            let iqn = iscsi_name(&iqn)?;
            if before.initiators.contains_key(&iqn) {
                return Err(taken("initiator"));
            }
            writer.put(&INITIATORS, &iqn, &set_initiator(InitiatorRecord::default(), set)?)?;
            Some(iqn)
        }
        San::InitiatorSet { iqn, set } => {
            let iqn = iscsi_name(&iqn)?;
            let record = before.initiators.get(&iqn).ok_or_else(|| missing("initiator"))?;
            writer.put(&INITIATORS, &iqn, &set_initiator(record.clone(), set)?)?;
            None
        }
        San::InitiatorDestroy { iqn } => {
            let iqn = iscsi_name(&iqn)?;
            if !writer.remove(&INITIATORS, &iqn)? {
                return Err(missing("initiator"));
            }
            leave_groups(writer, Members::Initiators, &before, &iqn)?;
            None
        }
        San::GroupCreate { of, name, members } => {
            check_group(&name)?;
            if before.has_group(of, &name) {
                return Err(taken("group"));
            }
            writer.put(group_table(of), &name, &known_members(&before, of, members)?)?;
            Some(name)
        }
        San::GroupSet { of, name, new_name, members } => {
            set_group(writer, &before, luns, of, &name, new_name, members)?;
            None
        }
        San::GroupDestroy { of, name } => {
            check_group(&name)?;
            not_used(luns, of, &name)?;
            if !writer.remove(group_table(of), &name)? {
                return Err(missing("group"));
            }
            None
        }
        San::SetIdentity(identity) => {
            check_identity("vendor", &identity.vendor, 8)?;
            check_identity("product", &identity.product, 16)?;
            writer.put(&SETTINGS, IDENTITY, &identity)?;
            None
        }
        San::FcCreate { of, wwn, alias } => Some(fc::create(writer, &before, of, &wwn, alias)?),
        San::FcSet { of, wwn, alias } => {
            fc::set(writer, &before, of, &wwn, alias)?;
            None
        }
        San::FcDestroy { of, wwn } => {
            fc::destroy(writer, &before, of, &wwn)?;
            None
        }
    };
    // Those that are left out already keep nothing from being changed.
    at_most_one_number(&Network::read(writer)?, &luns.held)?;
    Ok(name.map_or(Reply::Done, |name| Reply::Named { name }))
}

fn create_target(
    writer: &mut Writer,
    before: &Network,
    iqn: Option<String>,
    set: TargetChange,
    random: [u64; 2],
) -> Result<String> {
    let iqn = match iqn.filter(|iqn| !iqn.is_empty()) {
        Some(iqn) => iscsi_name(&iqn)?,
        None => new_iqn(random),
    };
    if before.targets.contains_key(&iqn) {
        return Err(taken("target"));
    }
    let new = TargetRecord { port: free_port(before), ..TargetRecord::default() };
    writer.put(&TARGETS, &iqn, &set_target(new, set)?)?;
    Ok(iqn)
}

fn set_target(mut record: TargetRecord, set: TargetChange) -> Result<TargetRecord> {
    set_alias(&mut record.alias, set.alias)?;
    record.auth = set.auth.unwrap_or(record.auth);
    set_credentials(&mut record.chap, set.chap_user, set.chap_secret)?;
    if let Some(interfaces) = set.interfaces {
        interfaces.iter().try_for_each(|i| check_interface(i))?;
        record.interfaces = interfaces;
    }
    Ok(record)
}

fn set_initiator(mut record: InitiatorRecord, set: InitiatorChange) -> Result<InitiatorRecord> {
    set_alias(&mut record.alias, set.alias)?;
    set_credentials(&mut record.chap, set.chap_user, set.chap_secret)?;
    Ok(record)
}

fn set_alias(alias: &mut String, to: Option<String>) -> Result<()> {
    if let Some(to) = to {
        check_alias(&to)?;
        *alias = to;
    }
    Ok(())
}

fn set_credentials(chap: &mut Credentials, user: Option<String>, secret: Option<Secret>) -> Result<()> {
    if let Some(user) = user {
        check_alias(&user)?;
        chap.user = user;
    }
    if let Some(secret) = secret {
        if !secret.reveal().is_empty() {
            check_secret(secret.reveal())?;
        }
        chap.secret = secret.reveal().into();
    }
    Ok(())
}

fn set_group(
    writer: &mut Writer,
    before: &Network,
    luns: &Luns,
    of: Members,
    name: &str,
    new_name: Option<String>,
    members: Option<Vec<String>>,
) -> Result<()> {
    check_group(name)?;
    let old = before.groups(of).get(name).ok_or_else(|| missing("group"))?;
    let members = match members {
        Some(members) => known_members(before, of, members)?,
        None => old.iter().cloned().collect(),
    };
    let new_name = new_name.filter(|new| new != name);
    if let Some(new) = &new_name {
        check_group(new)?;
        // LUNs know their groups by name.
        not_used(luns, of, name)?;
        if before.has_group(of, new) {
            return Err(taken("group"));
        }
        writer.remove(group_table(of), name)?;
    }
    writer.put(group_table(of), new_name.as_deref().unwrap_or(name), &members)
}

/// Targets must be there. An initiator may be named before anybody has entered it.
fn known_members(network: &Network, of: Members, members: Vec<String>) -> Result<Vec<String>> {
    let mut known = Vec::new();
    for member in members {
        let name = if of.is_fc() { fc::port_name(&member)? } else { iscsi_name(&member)? };
        if of.is_target() && !network.has_target(of, &name) {
            return Err(Error::invalid(format!("there is no target '{member}'")));
        }
        if !known.contains(&name) {
            known.push(name);
        }
    }
    Ok(known)
}

fn not_used(luns: &Luns, of: Members, name: &str) -> Result<()> {
    let uses = |lun: &&Arc<LunFacts>| match of.is_target() {
        true => lun.target_group == name,
        false => lun.initiator_groups.iter().any(|g| g == name),
    };
    match luns.all().find(uses) {
        Some(lun) => {
            Err(Error::new(Kind::Busy, "group").because(format!("the LUN '{}' uses the group", lun.dataset)))
        }
        None => Ok(()),
    }
}

fn missing(what: &str) -> Error {
    Error::new(Kind::NotFound, "find").because(format!("there is no such {what}"))
}

fn taken(what: &str) -> Error {
    Error::new(Kind::Exists, "create").because(format!("there is such a {what} already"))
}

#[cfg(test)]
mod tests;
