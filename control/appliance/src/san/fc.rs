//! Fibre Channel: targets and initiators by the WWNs of their ports, as they are configured.
//!
//! They are kept beside those of iSCSI and never among them, so that nothing of that front meets a name that it cannot
//! serve. Groups of either have one name on their side, since a LUN names a group and not its transport.
//!
//! No front serves a port: each target is told to have none (`records`).

use super::names::check_alias;
use super::records::{FC_INITIATORS, FC_TARGETS, Network, PortRecord, leave_groups};
use api::san::{Members, wwn};
use store::{Look as _, Table, Writer};
use units::{Error, Kind, Result};

/// The name in its one spelling.
pub(crate) fn port_name(text: &str) -> Result<String> {
    wwn(text).ok_or_else(|| {
        Error::invalid(format!(
            "'{text}' is no world-wide name of a port: 16 hexadecimal digits, such as 21:00:00:e0:8b:05:05:04"
        ))
    })
}

fn table(of: Members) -> Result<&'static Table<PortRecord>> {
    match of {
        Members::FcTargets => Ok(&FC_TARGETS),
        Members::FcInitiators => Ok(&FC_INITIATORS),
        Members::Targets | Members::Initiators => Err(Error::invalid("that is no side of Fibre Channel")),
    }
}

fn word(of: Members) -> &'static str {
    if of.is_target() { "target" } else { "initiator" }
}

pub(crate) fn create(
    writer: &mut Writer,
    before: &Network,
    of: Members,
    wwn: &str,
    alias: Option<String>,
) -> Result<String> {
    let (table, name) = (table(of)?, port_name(wwn)?);
    if before.ports(of).contains_key(&name) {
        return Err(
            Error::new(Kind::Exists, "create").because(format!("there is such a {} already", word(of)))
        );
    }
    writer.put(table, &name, &changed(PortRecord::default(), alias)?)?;
    Ok(name)
}

pub(crate) fn set(
    writer: &mut Writer,
    before: &Network,
    of: Members,
    wwn: &str,
    alias: Option<String>,
) -> Result<()> {
    let (table, name) = (table(of)?, port_name(wwn)?);
    let record = before.ports(of).get(&name).ok_or_else(|| missing(of))?;
    writer.put(table, &name, &changed(record.clone(), alias)?)
}

pub(crate) fn destroy(writer: &mut Writer, before: &Network, of: Members, wwn: &str) -> Result<()> {
    let (table, name) = (table(of)?, port_name(wwn)?);
    if !writer.remove(table, &name)? {
        return Err(missing(of));
    }
    leave_groups(writer, of, before, &name)
}

fn changed(mut record: PortRecord, alias: Option<String>) -> Result<PortRecord> {
    if let Some(alias) = alias {
        check_alias(&alias)?;
        record.alias = alias;
    }
    Ok(record)
}

fn missing(of: Members) -> Error {
    Error::new(Kind::NotFound, "find").because(format!("there is no such {}", word(of)))
}

/// Of a configuration that came from elsewhere: whether changes here could have made it.
pub(crate) fn check(writer: &Writer) -> Result<()> {
    for table in [&FC_TARGETS, &FC_INITIATORS] {
        for (name, record) in writer.exact(table)? {
            check_name(&name)?;
            check_alias(&record.alias)?;
        }
    }
    Ok(())
}

/// Names are kept as they are compared.
pub(crate) fn check_name(name: &str) -> Result<()> {
    match port_name(name)? == name {
        true => Ok(()),
        false => Err(Error::invalid(format!("'{name}' is not spelt as names of ports are"))),
    }
}
