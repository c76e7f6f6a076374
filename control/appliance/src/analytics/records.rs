//! Worksheets and settings of analytics as they are kept: in the configuration, since people made them.

use api::Secret;
use api::analytics::{ExportChange, Graph, Settings, Worksheet};
use metrics::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Look, Table, Writer};
use units::{Error, Result};

/// By their UUIDs.
pub(super) const WORKSHEETS: Table<Worksheet> = Table::new("analytics.worksheets");
pub(super) const SETTINGS: Table<Settings> = Table::new("analytics.settings");
pub(super) const SETTINGS_KEY: &str = "settings";
pub(super) const EXPORT: Table<ExportRecord> = Table::new("analytics.export");
pub(super) const EXPORT_KEY: &str = "export";

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

/// Seconds from one document to the next.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=3_600;
const ATTRIBUTES_MAX: usize = 32;
const TEXT_MAX: usize = 4_096;

/// Where the appliance's figures are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ExportRecord {
    pub enabled: bool,
    pub endpoint: String,
    #[serde(with = "api::secret::revealed")]
    pub headers: Option<Secret>,
    pub interval: u64,
    pub attributes: String,
}

impl Default for ExportRecord {
    fn default() -> ExportRecord {
        let text = String::new;
        ExportRecord { enabled: false, endpoint: text(), headers: None, interval: 60, attributes: text() }
    }
}

impl ExportRecord {
    /// # Errors
    /// The headers, which may hold a key, are sent where they were told for: another place needs them again, or none.
    pub fn change(&mut self, set: ExportChange) -> Result<()> {
        let (before, are_told) = (self.endpoint.clone(), set.headers.is_some());
        self.set(set);
        check_export(self)?;
        if self.headers.is_some() && !are_told && self.endpoint != before {
            return Err(Error::invalid("the headers were told for another place: give them again, or none"));
        }
        Ok(())
    }

    fn set(&mut self, set: ExportChange) {
        let ExportChange { enabled, endpoint, headers, interval, attributes } = set;
        let text = |of: &mut String, to: Option<String>| *of = to.unwrap_or_else(|| std::mem::take(of));
        text(&mut self.endpoint, endpoint);
        text(&mut self.attributes, attributes);
        self.enabled = enabled.unwrap_or(self.enabled);
        self.interval = interval.unwrap_or(self.interval);
        if let Some(headers) = headers {
            self.headers = (!headers.reveal().is_empty()).then_some(headers);
        }
    }

    pub fn target(&self) -> Option<Target> {
        let target = || Target { endpoint: self.endpoint.clone(), headers: self.headers.clone() };
        self.enabled.then(target)
    }

    /// Its attributes, one by one.
    pub fn resource(&self) -> Result<Vec<(String, String)>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let one = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (name.trim(), value.trim());
            match !name.is_empty() && name.chars().all(is_name) && !value.is_empty() {
                true => Ok((name.to_string(), value.to_string())),
                false => Err(Error::invalid(format!(
                    "'{pair}' is no attribute: name=value, with commas between several"
                ))),
            }
        };
        self.attributes.split(',').filter(|pair| !pair.trim().is_empty()).map(one).collect()
    }
}

pub(super) fn check_export(record: &ExportRecord) -> Result<()> {
    let headers = record.headers.as_ref().map_or("", |headers| headers.reveal());
    let texts = [record.endpoint.as_str(), record.attributes.as_str(), headers];
    if texts.iter().any(|text| text.len() > TEXT_MAX || text.chars().any(char::is_control)) {
        return Err(Error::invalid(format!("a value is one line of at most {TEXT_MAX} bytes")));
    }
    if !INTERVALS.contains(&record.interval) {
        return Err(Error::invalid(format!(
            "interval is {} to {} seconds",
            INTERVALS.start(),
            INTERVALS.end()
        )));
    }
    if record.resource()?.len() > ATTRIBUTES_MAX {
        return Err(Error::invalid(format!("there are {ATTRIBUTES_MAX} attributes at most")));
    }
    let is_set = record.enabled || !record.endpoint.is_empty() || record.headers.is_some();
    match is_set {
        true => Target { endpoint: record.endpoint.clone(), headers: record.headers.clone() }
            .check()
            .map_err(Error::invalid),
        false => Ok(()),
    }
}

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
    for (_, export) in writer.exact(&EXPORT)? {
        check_export(&export).map_err(|e| Error::invalid(format!("where figures are sent: {e}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_figures_are_sent_is_checked_as_a_whole() {
        let of = |set: ExportChange| {
            let mut record = ExportRecord::default();
            record.change(set).and_then(|()| check_export(&record)).map_err(|e| e.to_string())
        };
        let text = |text: &str| Some(text.to_string());
        let on = || ExportChange {
            enabled: Some(true),
            endpoint: text("https://otel:4318"),
            ..Default::default()
        };
        of(ExportChange::default()).unwrap();
        of(on()).unwrap();
        of(ExportChange { attributes: text("rack=7, deployment.environment=a b"), ..on() }).unwrap();
        for wrong in [
            ExportChange { enabled: Some(true), ..Default::default() },
            ExportChange { endpoint: text("otel:4318"), ..on() },
            ExportChange { interval: Some(0), ..on() },
            ExportChange { interval: Some(3_601), ..on() },
            ExportChange { attributes: text("rack"), ..on() },
            ExportChange { attributes: text("a b=c"), ..on() },
            ExportChange { attributes: text("a=b\nc"), ..on() },
            ExportChange { headers: Some(Secret::new("hidden")), ..on() },
        ] {
            let why = of(wrong.clone()).unwrap_err();
            assert!(!why.contains("hidden"), "{wrong:?}: {why}");
        }
        let mut record = ExportRecord::default();
        record.change(ExportChange { headers: Some(Secret::new("a=b")), ..on() }).unwrap();
        let elsewhere = || ExportChange { endpoint: text("https://other:4318"), ..Default::default() };
        assert!(record.clone().change(elsewhere()).is_err(), "the headers were not told for that");
        record.clone().change(ExportChange { headers: Some(Secret::new("c=d")), ..elsewhere() }).unwrap();
        record.change(ExportChange { headers: Some(Secret::new("")), ..Default::default() }).unwrap();
        assert!(record.headers.is_none() && record.endpoint == "https://otel:4318");
    }
}
