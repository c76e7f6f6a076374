//! Where a long range is cut that is to be freed in pieces.
//!
//! ```text
//!   level 1   [    ] [    ]  hole   [    ] [    ]   hole …
//!   level 0   ....|        |                |
//!              from                          end of a piece of three: holes cost nothing, high up in the tree one look
//! ```
//!
//! A piece ends where a level-1 block ends, so that no block is walked to twice. What only open txgs have written is not
//! looked for: it is in memory, and the dirty data have a limit of their own.

use crate::object::Object;
use crate::tree::Tree;
use std::ops::Range;
use std::sync::Arc;
use units::Result;

/// What can be freed in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceToFree {
    pub blocks: Range<u64>,
    /// Bytes of the indirect blocks that lead to them: for [`txg::Tx::empties`].
    pub indirect: u64,
}

impl Object {
    /// The first of the pieces of `blocks`, which is all that is left when it ends where they do. It leads through at most
    /// `most` bytes of indirect blocks of level 1, and at least one.
    pub async fn piece_to_free(&self, blocks: Range<u64>, most: u64) -> Result<PieceToFree> {
        loop {
            let tree = self.node.lock().stable.clone();
            match self.piece_in(&tree, blocks.clone(), most).await {
                Err(_) if self.is_replaced(&tree) => continue,
                piece => return piece,
            }
        }
    }

    async fn piece_in(&self, tree: &Arc<Tree>, blocks: Range<u64>, most: u64) -> Result<PieceToFree> {
        let whole = |indirect| PieceToFree { blocks: blocks.clone(), indirect };
        if tree.levels < 2 {
            return Ok(whole(0));
        }
        let shift = tree.fan_out_shift();
        let end = blocks.end.min(self.attrs().max_blkid.saturating_add(1));
        let mut indirect = 0;
        let mut group = blocks.start >> shift;
        while let Some(first) = group.checked_mul(1 << shift).filter(|first| *first < end) {
            let (bp, run) = tree.find_run(&self.node.shared, self.node.id, 1, group).await?;
            if bp.is_hole() {
                group = run;
                continue;
            }
            let more = indirect + (1 << tree.indirect_shift);
            if indirect > 0 && more > most {
                return Ok(PieceToFree { blocks: blocks.start..first.max(blocks.start), indirect });
            }
            indirect = more;
            group += 1;
            world::breathe().await;
        }
        Ok(whole(indirect))
    }
}
