//! How much of a file was written in order.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where the last write of a file has ended, and how many bytes were written up to there one after the other. It changes
/// under the file's lock.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    end: AtomicU64,
    len: AtomicU64,
}

impl Stream {
    /// Notes a write; answers how much was written in order just before it.
    pub fn go_on(&self, offset: u64, end: u64) -> u64 {
        let before = match self.end.swap(end, Ordering::Relaxed) == offset {
            true => self.len.load(Ordering::Relaxed),
            false => 0,
        };
        self.len.store(before.saturating_add(end - offset), Ordering::Relaxed);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_what_goes_on_where_the_last_write_has_ended() {
        let stream = Stream::default();
        let writes = [(0, 3), (3, 4), (4, 9), (20, 21), (21, 25), (21, 25), (9, 10), (10, 11)];
        let before: Vec<u64> = writes.into_iter().map(|(offset, end)| stream.go_on(offset, end)).collect();
        assert_eq!(before, [0, 3, 4, 0, 1, 0, 0, 1]);
    }
}
