//! Keys of the persistent error log: which block could not be had from anywhere.
//!
//! ```text
//!   object directory   errlog_last   what the last whole scrub, and reads since then, have met
//!                      errlog_scrub  what the scrub under way has met, and reads meanwhile
//!
//!   without head_errlog   one ZAP    "objset:object:level:blkid"                   ─▶ an empty text      
//!   with head_errlog      one ZAP    "head dataset" ─▶ ZAP  "object:level:blkid:birth" ─▶ the same
//! ```
//!
//! All numbers are hexadecimal without leading zeros; the level is a 64-bit integer with a sign, so that of a root block is
//! `ffffffffffffffff`. Head 0 is the MOS. A birth of 0 is not known.
//!
//! A key comes from disk: whatever is not exactly of one of these forms is refused.

use crate::bookmark::BlockBookmark;
use units::{Error, ObjectId, ObjsetId, Result, Txg};

/// A block by its place below a head dataset, and the txg it was born in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadKey {
    pub object: ObjectId,
    pub level: i64,
    pub block: u64,
    /// The physical birth; none when it is not known.
    pub birth: Txg,
}

impl HeadKey {
    pub fn parse(name: &[u8]) -> Result<HeadKey> {
        let [object, level, block, birth] = numbers(name)?;
        Ok(HeadKey { object: ObjectId(object), level: level_of(name, level)?, block, birth: Txg(birth) })
    }

    pub fn name(&self) -> String {
        let HeadKey { object, level, block, birth } = self;
        format!("{:x}:{:x}:{:x}:{:x}", object.0, level, block, birth.0)
    }
}

/// The key of a block in a log without `head_errlog`.
pub fn bookmark_name(at: &BlockBookmark) -> String {
    format!("{:x}:{:x}:{:x}:{:x}", at.objset.0, at.object.0, at.level, at.block)
}

/// # Errors
/// `Corrupt` when it is no such key.
pub fn parse_bookmark(name: &[u8]) -> Result<BlockBookmark> {
    let [objset, object, level, block] = numbers(name)?;
    let level = level_of(name, level)?;
    Ok(BlockBookmark { objset: ObjsetId(objset), object: ObjectId(object), level, block })
}

/// The head dataset that a ZAP of blocks belongs to.
///
/// # Errors
/// `Corrupt` when it is no such key.
pub fn parse_head(name: &[u8]) -> Result<ObjsetId> {
    number(name).map(ObjsetId).ok_or_else(|| wrong(name))
}

fn numbers(name: &[u8]) -> Result<[u64; 4]> {
    let mut fields = name.split(|b| *b == b':').map(number);
    let four = [fields.next(), fields.next(), fields.next(), fields.next()];
    match (four, fields.next()) {
        ([Some(Some(a)), Some(Some(b)), Some(Some(c)), Some(Some(d))], None) => Ok([a, b, c, d]),
        _ => Err(wrong(name)),
    }
}

/// Levels go from a log block's -2 up to the deepest tree there can be.
fn level_of(name: &[u8], level: u64) -> Result<i64> {
    let level = level as i64;
    if (BlockBookmark::LEVEL_ZIL..i64::from(i8::MAX)).contains(&level) { Ok(level) } else { Err(wrong(name)) }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_canonical = digits == b"0" || digits.first().is_some_and(|d| *d != b'0');
    let is_hex = digits.iter().all(|d| d.is_ascii_digit() || (b'a'..=b'f').contains(d));
    if !is_canonical || !is_hex || digits.len() > 16 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn wrong(name: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(name).chars().take(80).collect();
    Error::corrupt(format!("error log: {shown:?} names no block"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_openzfs_writes() {
        let at = BlockBookmark { objset: ObjsetId(0x36), object: ObjectId(2), level: 0, block: 0x1f };
        assert_eq!(bookmark_name(&at), "36:2:0:1f");
        let root = BlockBookmark { level: -1, object: ObjectId(0), block: 0, ..at };
        assert_eq!(bookmark_name(&root), "36:0:ffffffffffffffff:0");
        for at in [at, root] {
            assert_eq!(parse_bookmark(bookmark_name(&at).as_bytes()).unwrap(), at);
        }
        let key = HeadKey { object: ObjectId(2), level: 1, block: 7, birth: Txg(0xabc) };
        assert_eq!(key.name(), "2:1:7:abc");
        assert_eq!(HeadKey::parse(b"2:1:7:abc").unwrap(), key);
        assert_eq!(parse_head(b"36").unwrap(), ObjsetId(0x36));
    }

    #[test]
    fn a_key_that_names_no_block_is_refused() {
        let long = "1".repeat(255);
        let hostile = [
            "",
            ":",
            ":::",
            "1:2:3",
            "1:2:3:4:5",
            "01:2:0:4",
            "1:2:0:G",
            "1:2:0:A",
            " 1:2:0:4",
            "+1:2:0:4",
            "-1:2:0:4",
            "1:2:0:10000000000000000",
            "1:2:0:4:",
            &long,
        ];
        for name in hostile {
            assert!(HeadKey::parse(name.as_bytes()).is_err(), "{name}");
            assert!(parse_bookmark(name.as_bytes()).is_err(), "{name}");
        }
        // The level is the third of the one, and the second of the other.
        for level in ["7f", "fffffffffffffffd"] {
            assert!(HeadKey::parse(format!("1:{level}:0:4").as_bytes()).is_err(), "{level}");
            assert!(parse_bookmark(format!("1:2:{level}:4").as_bytes()).is_err(), "{level}");
        }
        assert!(HeadKey::parse(&[0xff, b':', 0, b':']).is_err());
        assert!(
            ["", "g", "012", "11111111111111111", "1:2"].iter().all(|n| parse_head(n.as_bytes()).is_err())
        );
    }
}
