//! Worksheets and settings of analytics as they are kept: in the configuration, since people made them.

use api::analytics::{Graph, Settings, Worksheet};
use std::collections::BTreeSet;
use store::{Look, Table, Writer};
use units::{Error, Result};

/// By their UUIDs.
pub(super) const WORKSHEETS: Table<Worksheet> = Table::new("analytics.worksheets");
pub(super) const SETTINGS: Table<Settings> = Table::new("analytics.settings");
pub(super) const SETTINGS_KEY: &str = "settings";

pub(super) const WORKSHEETS_MAX: usize = 1_000;
const GRAPHS_MAX: usize = 64;
const NAME_MAX: usize = 255;
const DRILLDOWNS_MAX: usize = 64;
/// A month of the coarsest graph that a page draws, twice over.
const SECONDS_MAX: u64 = 10 * 366 * 86_400;
/// Hours: of seconds and of all others.
const RETENTION_MAX: u64 = 100 * 366 * 24;
/// A store that has less room keeps nothing.
const DISK_MIN: u64 = 1 << 20;

pub(super) fn check_name(name: &str) -> Result<()> {
    let is_name = !name.trim().is_empty() && name.len() <= NAME_MAX && !name.chars().any(char::is_control);
    match is_name {
        true => Ok(()),
        false => Err(Error::invalid(format!("a name has 1 to {NAME_MAX} bytes and no control characters"))),
    }
}

pub(super) fn check_graph(graph: &Graph) -> Result<()> {
    let too_much =
        graph.drilldowns.len() > DRILLDOWNS_MAX || graph.drilldowns.iter().any(|d| d.len() > 4_096);
    match () {
        () if too_much => Err(Error::invalid(format!("a graph highlights at most {DRILLDOWNS_MAX} values"))),
        () if graph.seconds > SECONDS_MAX => Err(Error::invalid("a graph shows ten years at most")),
        () => Ok(()),
    }
}

pub(super) fn check_worksheet(worksheet: &Worksheet) -> Result<()> {
    check_name(&worksheet.name)?;
    if worksheet.graphs.len() > GRAPHS_MAX {
        return Err(Error::invalid(format!("a worksheet has at most {GRAPHS_MAX} graphs")));
    }
    worksheet.graphs.iter().try_for_each(check_graph)
}

pub(super) fn check_settings(settings: &Settings) -> Result<()> {
    let hours = [settings.retain_second_data, settings.retain_minute_data, settings.retain_hour_data];
    if hours.iter().any(|hours| !(1..=RETENTION_MAX).contains(hours)) {
        return Err(Error::invalid(format!("samples are kept for 1 to {RETENTION_MAX} hours")));
    }
    match settings.disk_limit >= DISK_MIN {
        true => Ok(()),
        false => Err(Error::invalid(format!("disk_limit is at least {}", units::pretty_size(DISK_MIN)))),
    }
}

/// Of a configuration that came from elsewhere.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    let mut names = BTreeSet::new();
    for (uuid, worksheet) in writer.exact(&WORKSHEETS)? {
        let wrong = |what: &str| Error::invalid(format!("worksheet '{}': {what}", worksheet.name));
        check_worksheet(&worksheet).map_err(|e| wrong(&e.to_string()))?;
        if uuid != worksheet.uuid || !names.insert(worksheet.name.clone()) {
            return Err(wrong("it is there twice"));
        }
    }
    for (_, settings) in writer.exact(&SETTINGS)? {
        check_settings(&settings)?;
    }
    Ok(())
}
