//! When a file was last read.
//!
//! Reading would be writing if each read stored its time. So the time stays in memory, where every handle of the file sees
//! it, and is stored with the next change of the file, or in a transaction of its own when its last handle is released. A
//! crash loses what was not stored: OpenZFS does the same.

use crate::file_system::node::Node;
use crate::settings::Atime;
use crate::stat::{Stat, Time};
use units::Result;

/// After this long `relatime` stores the time anyway, in seconds.
const DAY: i64 = 24 * 60 * 60;

/// Whether a file with these times, read at `now`, was read at a time worth to be kept.
fn is_due(how: Atime, stat: &Stat, now: Time) -> bool {
    match how {
        Atime::Off => false,
        Atime::On => stat.atime != now,
        Atime::Relative => {
            stat.atime <= stat.mtime || stat.atime <= stat.ctime || now.seconds - stat.atime.seconds >= DAY
        }
    }
}

impl Node {
    /// Somebody has read the file, or listed the directory.
    pub async fn accessed(&self) -> Result<()> {
        let how = self.file_system().settings().atime;
        if how == Atime::Off || self.file_system().0.writer.is_none() {
            return Ok(());
        }
        let now = world::wall_clock();
        let now = Time { seconds: now.seconds as i64, nanos: now.nanos };
        if is_due(how, &self.stat().await?, now) {
            *self.pending_atime() = Some(now);
        }
        Ok(())
    }

    /// Somebody has set the time himself.
    pub(crate) fn forget_atime(&self) {
        *self.pending_atime() = None;
    }

    /// Stores the time of the last read, if it is in memory alone.
    pub(crate) async fn store_atime(&self) -> Result<()> {
        if self.pending_atime().is_none() {
            return Ok(());
        }
        let file = self.load().await?;
        let tx = self.file_system().begin_freeing().await?;
        // It was not promised to any client.
        tx.needs_no_record();
        file.store(&tx).await
    }

    /// The words of the time that is to be stored with the next change.
    pub(crate) fn take_atime(&self) -> Option<[u64; 2]> {
        self.pending_atime().take().map(|time| [time.seconds as u64, time.nanos.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relatime_keeps_the_first_read_after_a_change_and_one_a_day() {
        let at = |seconds| Time { seconds, nanos: 0 };
        let due = |how, atime, mtime, now| {
            let stat = crate::access::tests::stat_at(at(atime), at(mtime));
            is_due(how, &stat, at(now))
        };
        assert!(due(Atime::Relative, 5, 5, 6));
        assert!(due(Atime::Relative, 4, 5, 6));
        assert!(!due(Atime::Relative, 6, 5, 7));
        assert!(due(Atime::Relative, 6, 5, 6 + DAY));
        assert!(due(Atime::On, 6, 5, 7));
        assert!(!due(Atime::Off, 4, 5, 6));
    }
}
