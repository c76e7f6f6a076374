//! Writing a block to a RAIDZ vdev: its data in columns, and the parity over them.
//!
//! The skip sector that may end a block's space is never read, so it is not written either.

use super::columns;
use super::map::Shape;
use crate::Priority;
use crate::node::{Node, enough};
use futures_util::future::join_all;
use std::sync::Arc;
use units::Result;
use world::Buf;

/// Good when at most as many columns failed as there is parity: the block can be read.
pub(crate) async fn write(
    shape: Shape,
    children: &[Arc<Node>],
    offset: u64,
    data: Buf,
    priority: Priority,
) -> Result<()> {
    let map = shape.map(offset, data.len());
    let columns = columns::split(&map, &data);
    let writes = map.columns.iter().zip(columns);
    let results = join_all(writes.map(|(c, buf)| children[c.child].write(c.offset, buf, priority))).await;
    enough(results, shape.parity())
}
