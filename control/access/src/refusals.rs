//! How many refused requests of one user the audit log takes: it is of a certain length, and a user without any right could
//! fill it with attempts, until nothing was left of what was changed before. Pure.
//!
//! Each user has [`LOGGED`] a minute. Further ones are counted, and the count is a record of its own when the minute is
//! over, before the next record that there is. Not here: what was allowed, which is always in the log.

use crate::Record;
use std::collections::BTreeMap;

/// Refused requests of one user in one minute.
const LOGGED: u64 = 10;
const MINUTE: u64 = 60;
/// What is answered to them.
const REFUSED: u16 = 403;

/// Those of this minute, by user.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    minute: u64,
    by_user: BTreeMap<String, u64>,
}

impl Refusals {
    /// Whether this refusal is to be written.
    pub fn takes(&mut self, record: &Record) -> bool {
        let count = self.by_user.entry(record.user.clone()).or_default();
        *count += 1;
        *count <= LOGGED
    }

    /// What is to be written before a record of this time: how many were left out of a minute that is over.
    pub fn left_out(&mut self, time: u64) -> Vec<Record> {
        // A clock that was set back begins another minute too.
        if time / MINUTE == self.minute {
            return Vec::new();
        }
        self.minute = time / MINUTE;
        let counted = std::mem::take(&mut self.by_user).into_iter();
        let more = counted.filter_map(|(user, count)| Some((user, count.checked_sub(LOGGED)?)));
        more.filter(|(_, more)| *more > 0)
            .map(|(user, more)| Record {
                time,
                user,
                address: String::new(),
                session: String::new(),
                action: format!("{more} more requests were refused within a minute"),
                detail: String::new(),
                status: REFUSED,
            })
            .collect()
    }
}
