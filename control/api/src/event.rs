//! What happened to pools.

use serde::{Deserialize, Serialize};

/// One of the stream of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up from 1 for as long as the daemon runs.
    pub id: u64,
    /// When it was seen: seconds since 1970, and nanoseconds.
    pub seconds: u64,
    pub nanos: u32,
    /// By the names of OpenZFS: `sysevent.fs.zfs.scrub_start`, `ereport.fs.zfs.checksum`, ...
    pub class: String,
    /// Names and values; guids are hexadecimal with `0x` before.
    pub fields: Vec<(String, String)>,
}

impl Event {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}
