//! RAIDZ: single, double and triple parity with no write hole.
//!
//! A block is laid across the children as its own stripe, as wide as the block needs. Because a stripe is never updated
//! in place, a crash leaves the old block or the new one.
//!
//! ```text
//!   4 children, 1 parity, a block of 5 sectors          P parity, D data, X skip
//!   c0  c1  c2  c3
//!    .  P0  D0  D2        one parity sector per row; the whole rounded up to a multiple of parity + 1, so that
//!   D4  P1  D1  D3        no hole is left that nothing fits into
//!    X
//! ```
//!
//! [`map`] says where each sector lies, [`columns`] splits a block into them and puts it together again, `suspect` lists
//! which columns not to believe; all three are pure. `read` and `write` carry it out. The arithmetic of parity is in
//! `codec`.
//!
//! Invariants: no child holds two columns of one block; a block that was rebuilt is returned only after its checksum
//! agreed.
//!
//! Not here: vdevs that were expanded, whose older blocks are narrower; they are refused when the tree is opened.

mod columns;
mod map;
mod read;
mod suspect;
mod write;

use super::unsupported;
use crate::node::{Ask, ChildRange, Node, Part, VdevOps};
use crate::{Priority, Spec, geometry};
use futures_util::future::{BoxFuture, FutureExt};
use map::Shape;
use std::sync::Arc;
use units::{Error, Result};
use world::Buf;

pub(super) fn open(spec: &Spec, ashift: u64) -> Result<Arc<dyn VdevOps>> {
    if spec.other.has("raidz_expanding") || spec.other.has("raidz_expand_txgs") {
        return Err(unsupported("raidz expansion", spec));
    }
    let range = u64::from(geometry::ASHIFT_MIN)..=u64::from(geometry::ASHIFT_MAX);
    if !range.contains(&ashift) {
        return Err(Error::corrupt(format!("ashift {ashift}")).at(spec.name()));
    }
    // Pools older than double parity did not say.
    let shape = Shape::new(spec.children.len(), spec.nparity.unwrap_or(1), ashift as u32);
    Ok(Arc::new(shape.map_err(|e| e.at(spec.name()))?))
}

impl VdevOps for Shape {
    fn asize(&self, psize: u64, _min_alloc: u64) -> u64 {
        Shape::asize(self, psize)
    }

    fn data_disks(&self, children: usize) -> usize {
        children.saturating_sub(self.parity()).max(1)
    }

    fn capacity(&self, children: usize, child_asize: u64) -> u64 {
        child_asize * children as u64
    }

    fn child_asize(&self, children: usize, asize: u64) -> u64 {
        asize.div_ceil(children.max(1) as u64)
    }

    fn read<'a>(&'a self, children: &'a [Arc<Node>], ask: Ask) -> BoxFuture<'a, Result<Buf>> {
        async move { read::read(*self, children, &ask).await }.boxed()
    }

    fn write<'a>(
        &'a self,
        children: &'a [Arc<Node>],
        offset: u64,
        data: Buf,
        priority: Priority,
    ) -> BoxFuture<'a, Result<()>> {
        write::write(*self, children, offset, data, priority).boxed()
    }

    fn ranges(&self, _children: usize, offset: u64, asize: u64) -> Vec<ChildRange> {
        Shape::ranges(self, offset, asize)
    }

    fn parts(&self, _children: usize, offset: u64, len: usize) -> Vec<Part> {
        let map = self.map(offset, len);
        let of_column = |(i, column): (usize, &map::Column)| Part {
            child: column.child,
            offset: column.offset,
            bytes: column.bytes.clone(),
            is_parity: i < map.parity,
        };
        map.columns.iter().enumerate().map(of_column).collect()
    }
}
