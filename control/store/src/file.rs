//! The file of the configuration, with room for changes while its file system is full.
//!
//! The database cuts its file when it is closed, and lets it grow when it is opened: on a file system that has filled up
//! meanwhile the daemon would not start. So blocks behind the end of the file are kept for it, which no other file gets.
//! Where the file system has no such thing (`FALLOC_FL_KEEP_SIZE`) the file is as any other.

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::ops::Bound;

/// The least that is kept, and in what steps: what an empty database grows to is a little more than a mebibyte.
const ROOM: u64 = 2 << 20;

#[derive(Debug)]
pub(crate) struct Roomy {
    inner: FileBackend,
    file: File,
}

impl Roomy {
    /// # Errors
    /// That the file cannot be shared. Want of room is none here: what there is may be enough.
    pub fn new(file: File) -> Result<Roomy, redb::Error> {
        let roomy = Roomy { file: file.try_clone()?, inner: FileBackend::new(file)? };
        let _ = keep_room(&roomy.file);
        Ok(roomy)
    }
}

/// Keeps blocks for what the file holds, and for more.
pub(crate) fn keep_room(file: &File) -> io::Result<()> {
    let len = (file.metadata()?.len() + 1).next_multiple_of(ROOM);
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        kept => kept.map_err(Into::into),
    }
}

impl StorageBackend for Roomy {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)?;
        // Cutting a file gives back what lies behind its end, too.
        let _ = keep_room(&self.file);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        tests::fail()?;
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::fs::MetadataExt;

    thread_local! {
        /// Writes of this thread find no room.
        pub static IS_FULL: Cell<bool> = const { Cell::new(false) };
    }

    pub fn fail() -> io::Result<()> {
        if IS_FULL.get() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    #[test]
    fn blocks_are_kept_behind_the_end_of_the_file() {
        let path = std::env::temp_dir().join(format!("cenote-roomy-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let roomy = Roomy::new(file).unwrap();
        for len in [0, 100, ROOM + 1, 100] {
            roomy.set_len(len).unwrap();
            let found = std::fs::metadata(&path).unwrap();
            assert_eq!(found.len(), len);
            assert!(found.blocks() * 512 >= (len + 1).next_multiple_of(ROOM), "{} blocks", found.blocks());
        }
        std::fs::remove_file(path).unwrap();
    }
}
