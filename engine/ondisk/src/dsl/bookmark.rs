//! A dataset bookmark: enough of a snapshot to send from, once the snapshot itself is gone.

use units::{Error, Guid, ObjectId, Result, Txg};

/// A value of 3 or 12 words in the dataset's ZAP of bookmarks.
///
/// ```text
///   guid, creation txg, creation time                     3 words: all there was at first
///   redaction list, flags,
///   referenced, compressed, uncompressed,                 12 words: feature `bookmark_v2` and those above it
///   the same three freed before the next snapshot,
///   ivset guid
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookmarkPhys {
    /// Of the snapshot.
    pub guid: Guid,
    pub creation_txg: Txg,
    pub creation_time: u64,
    pub extension: Option<BookmarkExtension>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookmarkExtension {
    pub redaction: ObjectId,
    pub flags: BookmarkFlags,
    pub referenced: super::Space,
    pub freed_before_next: super::Space,
    pub ivset_guid: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookmarkFlags(pub u64);

impl BookmarkFlags {
    /// `freed_before_next` counts.
    pub const HAS_FREED: BookmarkFlags = BookmarkFlags(1);
    pub const SNAPSHOT_EXISTS: BookmarkFlags = BookmarkFlags(2);
}

impl BookmarkPhys {
    pub fn from_words(words: &[u64]) -> Result<BookmarkPhys> {
        let (head, rest) =
            words.split_first_chunk::<3>().ok_or_else(|| Error::corrupt("bookmark: too few words"))?;
        let &[guid, creation_txg, creation_time] = head;
        let extension = match rest.first_chunk::<9>() {
            Some(words) => Some(BookmarkExtension::from_words(words)),
            None if rest.is_empty() => None,
            None => return Err(Error::corrupt(format!("bookmark: {} words", words.len()))),
        };
        Ok(BookmarkPhys { guid: Guid(guid), creation_txg: Txg(creation_txg), creation_time, extension })
    }

    pub fn to_words(&self) -> Vec<u64> {
        let mut words = vec![self.guid.0, self.creation_txg.0, self.creation_time];
        words.extend(self.extension.into_iter().flat_map(BookmarkExtension::to_words));
        words
    }
}

impl BookmarkExtension {
    fn from_words(&[redaction, flags, r0, r1, r2, f0, f1, f2, ivset_guid]: &[u64; 9]) -> BookmarkExtension {
        let space = |used, compressed, uncompressed| super::Space { used, compressed, uncompressed };
        BookmarkExtension {
            redaction: ObjectId(redaction),
            flags: BookmarkFlags(flags),
            referenced: space(r0, r1, r2),
            freed_before_next: space(f0, f1, f2),
            ivset_guid,
        }
    }

    fn to_words(self) -> [u64; 9] {
        let (r, f) = (&self.referenced, &self.freed_before_next);
        [
            self.redaction.0,
            self.flags.0,
            r.used,
            r.compressed,
            r.uncompressed,
            f.used,
            f.compressed,
            f.uncompressed,
            self.ivset_guid,
        ]
    }
}
