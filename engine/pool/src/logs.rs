//! Intent logs that other implementations have left: finding out whether there is anything in them.
//!
//! The header of a head dataset names the first block of its log. A file system that was in use and then unmounted still
//! has one, which nobody has written to yet: the log is *empty*, and the block is kept allocated for it. A log that is
//! not empty holds writes that were promised and are not in the tree: they must be replayed before anything is changed,
//! which this program cannot do yet.
//!
//! ```text
//!   header ─▶ block ─▶ block ─▶ (allocated, not written)      the chain ends where a block does not carry it on
//! ```

use crate::pool::Pool;
use ondisk::{Reader, ZilChain, ZilHeader};
use units::{Checksum, ObjectId, ObjsetId, Txg};
use zio::{Bookmark, Verified};

/// A chain longer than this leads in a circle.
const BLOCKS_MAX: u64 = 1 << 24;

impl Pool {
    /// How many blocks the chain of a log has.
    pub(crate) async fn log_blocks(&self, objset: ObjsetId, header: &ZilHeader) -> u64 {
        let (mut next, mut count) = (header.log.clone(), 0);
        while let Some(plain) = next.as_plain().filter(|_| count < BLOCKS_MAX) {
            // The last word of a log block's checksum counts the blocks.
            let at = Bookmark { objset, object: ObjectId(0), level: -2, blkid: plain.checksum[3] };
            let Ok(Verified(block)) = self.pipeline().read_raw(&next, at).await else { break };
            let chain = match plain.checksum_kind {
                Checksum::Zilog2 => block.get(..ZilChain::SIZE),
                _ => block.len().checked_sub(ZilChain::SIZE).and_then(|start| block.get(start..)),
            };
            let decode = |bytes| ZilChain::decode(&mut Reader::new(bytes, plain.endian, "log block"));
            let Some(Ok(chain)) = chain.map(decode) else { break };
            count += 1;
            next = chain.next;
        }
        count
    }

    /// Whether a log can be left as it is: nothing is in it, and its first block belongs to it in the state of `synced`.
    pub(crate) async fn is_log_idle(&self, objset: ObjsetId, header: &ZilHeader, synced: Txg) -> bool {
        if header.log.is_hole() {
            return true;
        }
        // After a crash the first block may be younger than the pool's state: then its space is not its own.
        let is_own = header.log.birth() <= synced;
        is_own && header.claim_block_seq == 0 && self.log_blocks(objset, header).await == 0
    }
}
