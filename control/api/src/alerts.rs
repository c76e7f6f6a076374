//! Alerts: events that a person should know of, and where they are sent.

use crate::Secret;
use serde::{Deserialize, Serialize};

/// How bad it is; an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    #[default]
    Warning,
    Error,
}

impl Severity {
    pub const ALL: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Error];

    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| severity.word() == text)
    }
}

/// How a receiver takes alerts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    #[default]
    Syslog,
    Webhook,
    Mail,
}

impl Handler {
    pub const ALL: [Handler; 3] = [Handler::Syslog, Handler::Webhook, Handler::Mail];

    pub fn word(self) -> &'static str {
        match self {
            Handler::Syslog => "syslog",
            Handler::Webhook => "webhook",
            Handler::Mail => "mail",
        }
    }

    pub fn parse(text: &str) -> Option<Handler> {
        Handler::ALL.into_iter().find(|handler| handler.word() == text)
    }
}

/// Where alerts are sent, as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receiver {
    pub name: String,
    pub handler: Handler,
    /// Of syslog: `local`, a socket's path or `HOST[:PORT]`; of a webhook its URL; of mail the addresses.
    pub to: String,
    /// The least that is sent.
    pub severity: Severity,
    pub enabled: bool,
    /// Of mail: by which server, as whom.
    pub server: String,
    pub from: String,
    pub user: String,
    pub has_secret: bool,
    /// Since the daemon began.
    pub sent: u64,
    pub dropped: u64,
    pub waiting: u64,
    /// Why the last try failed.
    pub problem: Option<String>,
}

/// What is set of a receiver; nothing: as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverChange {
    pub to: Option<String>,
    pub severity: Option<Severity>,
    pub enabled: Option<bool>,
    pub server: Option<String>,
    pub from: Option<String>,
    pub user: Option<String>,
    /// Empty: none.
    #[serde(with = "crate::secret::revealed")]
    pub secret: Option<Secret>,
}

/// From where on something is an alert; 0: never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thresholds {
    /// Of a pool, allocated.
    pub space_percent: u64,
    /// For which a transaction group is written to disk.
    pub sync_seconds: u64,
    /// Within a minute.
    pub failed_logins: u64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { space_percent: 85, sync_seconds: 30, failed_logins: 5 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdsChange {
    pub space_percent: Option<u64>,
    pub sync_seconds: Option<u64>,
    pub failed_logins: Option<u64>,
}

/// What may be asked and changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alerts {
    Receivers,
    Create {
        name: String,
        handler: Handler,
        set: ReceiverChange,
    },
    Change {
        name: String,
        set: ReceiverChange,
    },
    Destroy {
        name: String,
    },
    /// Sends an alert that says that it is a test, and waits for what comes of it.
    Test {
        name: String,
    },
    Thresholds,
    SetThresholds(ThresholdsChange),
    /// A login to the API was refused: an event.
    LoginFailed {
        user: String,
        address: String,
    },
}

impl Alerts {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Alerts::Receivers | Alerts::Test { .. } | Alerts::Thresholds | Alerts::LoginFailed { .. }
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertsTold {
    Receivers(Vec<Receiver>),
    Thresholds(Thresholds),
}
