//! The name of a block by its place in the tree: object set, object, level and number.

use std::fmt;
use units::{ObjectId, ObjsetId};

/// Where a block stands, whatever its address on disk: 32 bytes.
///
/// ```text
///   0  object set   8  object   16  level (signed)   24  block
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockBookmark {
    pub objset: ObjsetId,
    pub object: ObjectId,
    /// 0 for data, more for indirect blocks; -1 the root of an object set, -2 a log block.
    pub level: i64,
    pub block: u64,
}

impl BlockBookmark {
    pub const SIZE: usize = 32;
    pub const LEVEL_ROOT: i64 = -1;
    pub const LEVEL_ZIL: i64 = -2;

    pub fn from_words([objset, object, level, block]: [u64; 4]) -> BlockBookmark {
        BlockBookmark { objset: ObjsetId(objset), object: ObjectId(object), level: level as i64, block }
    }

    pub fn to_words(&self) -> [u64; 4] {
        [self.objset.0, self.object.0, self.level as u64, self.block]
    }
}

/// As zdb writes it: hexadecimal but for the level.
impl fmt::Display for BlockBookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}:{}:{:x}", self.objset.0, self.object.0, self.level, self.block)
    }
}
