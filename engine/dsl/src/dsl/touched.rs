//! What changes have touched: for layers above that keep something of many datasets, and ask again about what was touched
//! instead of about all.
//!
//! ```text
//!   create clone destroy rename set inherit rollback ── touch(name) ──▶ log, numbered ──▶ touched_since(where one was)
//!                                                                                          └ None: ask about everything
//! ```
//!
//! Noted is whatever may change which file systems and volumes there are, what they hold that is told as a property, and
//! what is set on them; what they use of the pool is not, for that changes all the time. A change concerns a dataset and
//! those below it, since they inherit.
//!
//! Invariant: a caller that reads the log and then the datasets while no sync task runs has missed nothing. It may be told
//! of more than there was: a task that fails half-way has touched what it began with.

use crate::dsl::Dsl;
use crate::props::PropName;
use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

/// A reader further behind than this asks about everything; that is rarely slower by then.
const KEPT_MAX: usize = 1024;

/// One change: of a dataset and all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    pub name: String,
    /// Nothing but this property, or what follows from it.
    pub property: Option<PropName>,
}

/// The log. Its first entry has the number `dropped`.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    dropped: u64,
    kept: VecDeque<Touch>,
}

impl Dsl {
    fn log_of_touches(&self) -> MutexGuard<'_, Touched> {
        // Under this lock entries come and go whole.
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a dataset has changed, in syncing context. Changes of the DSL do so themselves; what is changed inside of
    /// a dataset, such as the size of a volume, is said by what changes it.
    pub fn touch(&self, name: &str, property: Option<&PropName>) {
        let mut log = self.log_of_touches();
        if log.kept.len() >= KEPT_MAX {
            log.kept.pop_front();
            log.dropped += 1;
        }
        log.kept.push_back(Touch { name: name.into(), property: property.cloned() });
    }

    /// Where the log is now, and what was touched since it was at `seen`; `None` where it does not go back as far.
    pub fn touched_since(&self, seen: Option<u64>) -> (u64, Option<Vec<Touch>>) {
        let log = self.log_of_touches();
        let now = log.dropped + log.kept.len() as u64;
        let first = seen.and_then(|seen| seen.checked_sub(log.dropped));
        (now, first.map(|first| log.kept.iter().skip(first as usize).cloned().collect()))
    }
}
