//! File systems mounted in the machine's own tree.
//!
//! ```text
//!   zfs mount, create, import, start ──▶ plan: where and how, by properties ──▶ fuse::mount ──▶ Mounts, by dataset
//!                                                                                                 │ kept in the home
//!   zfs unmount, export, destroy, rename, stop ◀── deepest first ◀────────────────────────────────┘
//! ```
//!
//! A daemon mounts what it is asked to. Told so at its start, it mounts by itself whatever OpenZFS would: when it starts,
//! when a pool is imported, when a file system is made. What was mounted when it ended, or was killed, is mounted again when
//! it starts; a directory that a killed one left dead is cleaned first.
//!
//! Invariants: a dataset is mounted once at most, so that there is one handle that changes its files; whoever takes a
//! dataset away unmounts it first, and is refused as long as somebody uses it.
//!
//! | file | theory |
//! |---|---|
//! | `plan.rs` | where and how a dataset is mounted, by its properties |
//! | `facts.rs` | what a mount asks of its dataset: space, snapshots |
//! | `carry_out.rs` | the requests |
//! | `follow.rs` | datasets that change or go while they are mounted |

mod carry_out;
mod facts;
mod follow;
mod plan;

use fuse::Mount;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those that are mounted, by the names of their datasets.
#[derive(Debug)]
pub(crate) struct Mounts {
    mounted: Mutex<BTreeMap<String, Arc<Mount>>>,
    /// Held while something is mounted or unmounted.
    turn: world::sync::Mutex<()>,
    /// The daemon ends: what is mounted now is remembered.
    is_ending: AtomicBool,
}

impl Default for Mounts {
    fn default() -> Mounts {
        Mounts {
            mounted: Mutex::default(),
            turn: world::sync::Mutex::new(()),
            is_ending: AtomicBool::new(false),
        }
    }
}

impl Mounts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Mount>>> {
        // An entry is whole at any time.
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a dataset is mounted, if it is.
    pub fn get(&self, dataset: &str) -> Option<Arc<Mount>> {
        self.lock().get(dataset).filter(|mount| !mount.has_ended()).cloned()
    }

    /// All, by the names of their datasets; those too that somebody else has unmounted and that are not given back yet.
    fn all(&self) -> Vec<(String, Arc<Mount>)> {
        self.lock().iter().map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }

    /// The dataset that a path is in, and the way from its root.
    pub fn below_which(&self, path: &Path) -> Option<(String, Vec<u8>)> {
        let all = self.all().into_iter().filter(|(_, mount)| !mount.has_ended());
        let within = |(name, mount): (String, Arc<Mount>)| {
            let rest = path.strip_prefix(mount.at()).ok()?.as_os_str().as_bytes().to_vec();
            Some((name, rest))
        };
        all.filter_map(within).min_by_key(|(_, rest)| rest.len())
    }

    /// Those of a dataset and of what is below it.
    pub(crate) fn below(&self, dataset: &str) -> Vec<(String, Arc<Mount>)> {
        let is_below = |name: &str| {
            name.strip_prefix(dataset).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mounted = self.lock();
        // Among them are siblings whose names begin alike.
        let alike = mounted.range(dataset.to_string()..).take_while(|(name, _)| name.starts_with(dataset));
        alike.filter(|(name, _)| is_below(name)).map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }
}
