//! Which file answers in which context: the table that a new context is added to.

use crate::context::Context;
use crate::draft;
use crate::shell::Shell;
use crate::vocabulary::{Result, Settable, Shown};

impl Shell<'_> {
    /// Goes into the context that the first words name, if they name one: how many they were.
    pub(crate) fn enter(&mut self, words: &[String]) -> Result<Option<usize>> {
        match self.here() {
            Context::Root => Ok(self.enter_menu(&words[0])),
            Context::Shares if words[0] == "schema" => {
                self.push(Context::Schema);
                Ok(Some(1))
            }
            Context::Snapshots { place } if words[0] == "automatic" => {
                let place = place.clone();
                self.push(Context::Automatics { place });
                Ok(Some(1))
            }
            Context::Automatics { .. } | Context::Automatic { .. } => self.enter_automatic(words),
            Context::Schema | Context::SchemaProperty { .. } => self.enter_schema(words),
            Context::Shares | Context::Item { .. } if words[0] != "snapshots" => self.enter_shares(words),
            Context::Item { .. } | Context::Shares | Context::Snapshots { .. } | Context::Snapshot { .. } => {
                self.enter_snapshots(words)
            }
            Context::Configuration if words[0] == "services" => {
                self.push(Context::Services);
                Ok(Some(1))
            }
            Context::Configuration if words[0] == "alerts" => {
                self.push(Context::Alerts { draft: draft::Draft::default() });
                Ok(Some(1))
            }
            Context::Alerts { .. } | Context::Receiver { .. } => self.enter_alerts(words),
            Context::Services | Context::Service { .. } => self.enter_services(words),
            Context::Configuration
            | Context::San
            | Context::Side(_)
            | Context::Objects(_)
            | Context::Groups(_)
            | Context::Object { .. }
            | Context::Group { .. }
            | Context::Inquiry { .. } => self.enter_san(words),
            Context::Analytics
            | Context::Datasets
            | Context::Dataset { .. }
            | Context::Worksheets
            | Context::Worksheet { .. }
            | Context::Graph { .. }
            | Context::AnalyticsSettings { .. }
            | Context::AnalyticsExport { .. } => self.enter_analytics(words),
            Context::Maintenance | Context::Hardware | Context::System | Context::Updates => {
                Ok(self.enter_maintenance(&words[0]))
            }
        }
    }

    fn enter_menu(&mut self, word: &str) -> Option<usize> {
        let context = match word {
            "shares" => Context::Shares,
            "configuration" => Context::Configuration,
            "maintenance" => Context::Maintenance,
            "analytics" => Context::Analytics,
            _ => return None,
        };
        self.push(context);
        Some(1)
    }

    /// Every property there is here, and its value.
    pub(crate) fn properties(&mut self) -> Result<Vec<Shown>> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.properties_shares(),
            Context::Snapshot { .. } => self.properties_snapshots(),
            Context::SchemaProperty { .. } => self.properties_schema(),
            Context::Service { .. } => self.properties_services(),
            Context::Alerts { .. } | Context::Receiver { .. } => self.properties_alerts(),
            Context::Automatic { .. } => self.properties_automatic(),
            Context::Dataset { .. }
            | Context::Worksheet { .. }
            | Context::Graph { .. }
            | Context::AnalyticsSettings { .. }
            | Context::AnalyticsExport { .. } => self.properties_analytics(),
            Context::Object { .. } | Context::Group { .. } | Context::Inquiry { .. } => self.properties_san(),
            _ => Ok(Vec::new()),
        }
    }

    /// What can be set here.
    pub(crate) fn settable(&self) -> Vec<Settable> {
        match self.here() {
            Context::Item { kind, .. } => crate::shares::settable(*kind),
            Context::SchemaProperty { .. } => crate::schema::settable(),
            Context::Service { .. } => crate::services::settable(),
            Context::Alerts { .. } | Context::Receiver { .. } => crate::alerts::settable(self.here()),
            Context::Automatic { .. } => crate::automatic::settable(),
            Context::Dataset { .. }
            | Context::Worksheet { .. }
            | Context::Graph { .. }
            | Context::AnalyticsSettings { .. }
            | Context::AnalyticsExport { .. } => crate::analytics::settable(self.here()),
            Context::Object { .. } | Context::Group { .. } | Context::Inquiry { .. } => {
                crate::san::settable(self.here())
            }
            _ => Vec::new(),
        }
    }

    /// What there is to select here, in tables.
    pub(crate) fn lists(&mut self) -> Result<Vec<String>> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.lists_shares(),
            Context::Snapshots { .. } => self.lists_snapshots(),
            Context::Schema => self.lists_schema(),
            Context::Services => self.lists_services(),
            Context::Alerts { .. } => self.lists_alerts(),
            Context::Automatics { .. } => self.lists_automatic(),
            Context::Objects(_) | Context::Groups(_) => self.lists_san(),
            Context::Hardware => self.lists_hardware(),
            Context::Updates => self.lists_maintenance(),
            Context::Datasets | Context::Worksheets | Context::Worksheet { .. } => self.lists_analytics(),
            _ => Ok(Vec::new()),
        }
    }

    /// What can be selected here, for completion.
    pub(crate) fn names(&mut self) -> Vec<String> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.names_shares(),
            Context::Snapshots { .. } => self.names_snapshots(),
            Context::Schema => self.names_schema(),
            Context::Services => self.names_services(),
            Context::Alerts { .. } => self.names_alerts(),
            Context::Automatics { .. } => self.names_automatic(),
            Context::Datasets | Context::Worksheets | Context::Worksheet { .. } => self.names_analytics(),
            Context::Objects(_) | Context::Groups(_) => self.names_san(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn commit(&mut self) -> Result {
        let was_new = self.here().is_new();
        match self.here() {
            Context::Item { .. } => self.commit_item()?,
            Context::SchemaProperty { .. } => self.commit_schema()?,
            Context::Service { .. } => self.commit_services()?,
            Context::Alerts { .. } | Context::Receiver { .. } => self.commit_alerts()?,
            Context::Automatic { .. } => self.commit_automatic()?,
            Context::Dataset { .. }
            | Context::Worksheet { .. }
            | Context::Graph { .. }
            | Context::AnalyticsSettings { .. }
            | Context::AnalyticsExport { .. } => self.commit_analytics()?,
            _ => self.commit_san()?,
        }
        if was_new {
            self.leave();
        } else if let Some(draft) = self.here_mut().draft_mut() {
            *draft = draft::Draft::default();
        }
        Ok(())
    }

    /// A command that this context alone has; whether there is one.
    pub(crate) fn command_here(&mut self, words: &[String]) -> Result<bool> {
        if self.command_said(words)? {
            return Ok(true);
        }
        match self.here() {
            Context::Shares | Context::Item { .. } => self.command_shares(words),
            Context::Snapshots { .. } | Context::Snapshot { .. } => self.command_snapshots(words),
            Context::Objects(_) | Context::Groups(_) | Context::Object { .. } | Context::Group { .. } => {
                self.command_san(words)
            }
            Context::Automatics { .. } | Context::Automatic { .. } => self.command_automatic(words),
            Context::Services | Context::Service { .. } => self.command_services(words),
            Context::Alerts { .. } | Context::Receiver { .. } => self.command_alerts(words),
            Context::Schema | Context::SchemaProperty { .. } => self.command_schema(words),
            Context::Hardware => self.command_hardware(words),
            Context::Maintenance | Context::System | Context::Updates => self.command_maintenance(words),
            Context::Analytics
            | Context::Datasets
            | Context::Dataset { .. }
            | Context::Worksheets
            | Context::Worksheet { .. }
            | Context::Graph { .. } => self.command_analytics(words),
            _ => Ok(false),
        }
    }
}
