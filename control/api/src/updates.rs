//! Deferred updates: features of pools that are not enabled yet.

use serde::{Deserialize, Serialize};

/// A feature that a pool could have. Once it is enabled it stays so, and other implementations must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredUpdate {
    pub pool: String,
    /// By its short name: `large_blocks`.
    pub feature: String,
    pub description: String,
    /// Others that come with it.
    pub needs: Vec<String>,
    /// Programs that do not know it can still read the pool.
    pub read_only_compatible: bool,
}
