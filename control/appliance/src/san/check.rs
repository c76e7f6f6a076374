//! The network of a configuration that came from elsewhere: whether changes here could have made it.

use super::fc;
use super::names::{check_alias, check_group, check_identity, check_interface, check_secret, iscsi_name};
use super::records::{Credentials, IDENTITY, INITIATORS, Network, SETTINGS, TARGETS, group_table};
use api::san::Members;
use std::collections::BTreeSet;
use store::{Look, Writer};
use units::{Error, Result};

/// Looks at all of its tables together: groups name targets.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    let mut ports = BTreeSet::new();
    for (iqn, target) in writer.exact(&TARGETS)? {
        check_name(&iqn)?;
        check_alias(&target.alias)?;
        check_credentials(&target.chap)?;
        target.interfaces.iter().try_for_each(|interface| check_interface(interface))?;
        if target.port == 0 || !ports.insert(target.port) {
            return Err(Error::invalid(format!("the target '{iqn}' has the port number of another")));
        }
    }
    for (iqn, initiator) in writer.exact(&INITIATORS)? {
        check_name(&iqn)?;
        check_alias(&initiator.alias)?;
        check_credentials(&initiator.chap)?;
    }
    let network = Network::read(writer)?;
    fc::check(writer)?;
    for of in Members::ALL {
        for (name, members) in writer.exact(group_table(of))? {
            check_group(&name)?;
            members.iter().try_for_each(|member| {
                if of.is_fc() { fc::check_name(member) } else { check_name(member) }
            })?;
            if network.groups(of.other()).contains_key(&name) {
                return Err(Error::invalid(format!(
                    "the group '{name}' is one of iSCSI and of Fibre Channel"
                )));
            }
            let distinct: BTreeSet<&String> = members.iter().collect();
            let is_there = |member: &&String| !of.is_target() || network.has_target(of, member);
            if distinct.len() != members.len() || !members.iter().all(|iqn| is_there(&iqn)) {
                return Err(Error::invalid(format!(
                    "the group '{name}' names a target that is not there, or one twice"
                )));
            }
        }
    }
    for (key, identity) in writer.exact(&SETTINGS)? {
        if key != IDENTITY {
            return Err(Error::invalid(format!("there is no setting '{key}' of the network")));
        }
        check_identity("vendor", &identity.vendor, 8)?;
        check_identity("product", &identity.product, 16)?;
    }
    Ok(())
}

/// Names are kept as they are compared.
fn check_name(name: &str) -> Result<()> {
    match iscsi_name(name)? == name {
        true => Ok(()),
        false => Err(Error::invalid(format!("'{name}' has upper case letters"))),
    }
}

fn check_credentials(chap: &Credentials) -> Result<()> {
    check_alias(&chap.user)?;
    if chap.secret.is_empty() { Ok(()) } else { check_secret(&chap.secret) }
}
