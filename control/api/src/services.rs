//! What serves clients, whether it does, and where.

use serde::{Deserialize, Serialize};

/// What may be asked and changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Services {
    Show,
    /// At once, and from the next start on.
    Switch {
        name: String,
        to: Switch,
    },
    /// Where it lets clients in, at once and from the next start on: addresses with ports. None: where it does when nobody
    /// says, on this machine alone.
    Listen {
        name: String,
        addresses: Vec<String>,
    },
}

impl Services {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(self, Services::Show)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    Enable,
    /// Clients are ended, after what they have in flight.
    Disable,
    /// Clients are ended likewise, and may come again. One that is disabled stays so.
    Restart,
}

impl Switch {
    pub fn word(self) -> &'static str {
        match self {
            Switch::Enable => "enable",
            Switch::Disable => "disable",
            Switch::Restart => "restart",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    pub name: String,
    pub enabled: bool,
    /// Where clients reach it now.
    pub addresses: Vec<String>,
    /// Where it was set to let them in; none: where it does by default.
    pub listen: Vec<String>,
    pub clients: u64,
    /// No daemon runs: nothing is served, whatever is switched on.
    #[serde(default)]
    pub offline: bool,
}

impl ServiceState {
    /// As appliances say it.
    pub fn status(&self) -> &'static str {
        match (self.enabled, self.offline) {
            (true, false) => "online",
            (true, true) => "offline",
            (false, _) => "disabled",
        }
    }
}
