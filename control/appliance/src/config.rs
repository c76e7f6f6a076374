//! What an appliance is started with.

use crate::home::Home;
use tunables::Tunable;

/// How an appliance works.
#[derive(Clone, Debug)]
pub struct Config {
    pub home: Home,
    /// It goes on after the command that started it: pools are opened at once, and kept.
    pub is_daemon: bool,
    /// It mounts file systems by itself, as OpenZFS does; only a daemon can.
    pub mounts: bool,
    /// Tunables that hold until it ends, whatever the home remembers.
    pub system: Vec<(Tunable, u64)>,
    /// What the home remembers of tunables does not hold.
    pub is_safe: bool,
}
