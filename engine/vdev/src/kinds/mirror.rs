//! Mirrors: the same bytes on every child.
//!
//! A read goes to the child that would answer first, and to one that was much slower than the others lately only when they
//! do not have it ([`crate::pace`]); when what it returns is not the block, to the next, until one
//! has it. The children that failed get it written again. A scrub asks all of them at once.
//!
//! Replacing and spare vdevs are mirrors too. Their first child is the one that has been there longer, so it is asked
//! first when there is no check to tell a stale copy from a good one.

use crate::node::{Ask, ChildRange, Node, Part, VdevOps, enough};
use crate::pace::is_slow;
use crate::{Priority, Spec};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::Buf;

#[derive(Debug)]
struct Mirror;

pub(super) fn open(_: &Spec, _ashift: u64) -> Result<Arc<dyn VdevOps>> {
    Ok(Arc::new(Mirror))
}

impl VdevOps for Mirror {
    fn read<'a>(&'a self, children: &'a [Arc<Node>], ask: Ask) -> BoxFuture<'a, Result<Buf>> {
        async move { read(children, &ask).await }.boxed()
    }

    fn write<'a>(
        &'a self,
        children: &'a [Arc<Node>],
        offset: u64,
        data: Buf,
        priority: Priority,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let writes = children.iter().map(|c| c.write(offset, data.clone(), priority));
            enough(join_all(writes).await, children.len() - 1)
        }
        .boxed()
    }

    fn ranges(&self, children: usize, offset: u64, len: u64) -> Vec<ChildRange> {
        (0..children).map(|child| ChildRange { child, offset, len }).collect()
    }

    fn parts(&self, children: usize, offset: u64, len: usize) -> Vec<Part> {
        (0..children).map(|child| Part { child, offset, bytes: 0..len, is_parity: false }).collect()
    }
}

async fn read(children: &[Arc<Node>], ask: &Ask) -> Result<Buf> {
    let (found, failed) =
        if ask.everything { read_all(children, ask).await } else { read_one(children, ask).await };
    let block = found?;
    ask.note_bad(failed.len());
    if ask.repair && ask.check.is_some() {
        let failed = failed.iter().filter(|c| c.is_usable());
        join_all(failed.map(|c| c.repair(ask.offset, block.clone()))).await;
    }
    Ok(block)
}

type Failed<'a> = Vec<&'a Arc<Node>>;

async fn read_one<'a>(children: &'a [Arc<Node>], ask: &Ask) -> (Result<Buf>, Failed<'a>) {
    let mut failed = Vec::new();
    let mut error = Error::new(Kind::Io, "read from a mirror none of whose devices is usable");
    for child in by_preference(children, ask) {
        match child.read(ask.clone()).await {
            Ok(block) => return (Ok(block), failed),
            Err(e) => error = worse(error, e),
        }
        failed.push(child);
    }
    (Err(error), failed)
}

async fn read_all<'a>(children: &'a [Arc<Node>], ask: &Ask) -> (Result<Buf>, Failed<'a>) {
    let usable: Vec<&Arc<Node>> = children.iter().filter(|c| c.is_usable()).collect();
    let results = join_all(usable.iter().map(|c| c.read(ask.clone()))).await;
    let mut found = Err(Error::new(Kind::Io, "read from a mirror none of whose devices is usable"));
    let mut failed = Vec::new();
    for (child, result) in usable.into_iter().zip(results) {
        match (result, &found) {
            (Ok(block), Err(_)) => found = Ok(block),
            (Ok(_), Ok(_)) => {}
            (Err(e), _) => {
                failed.push(child);
                found = found.map_err(|so_far| worse(so_far, e));
            }
        }
    }
    (found, failed)
}

/// The usable children, the one that answers soonest first; without a check, in their own order.
fn by_preference<'a>(children: &'a [Arc<Node>], ask: &Ask) -> Vec<&'a Arc<Node>> {
    let mut usable: Vec<&Arc<Node>> = children.iter().filter(|c| c.is_usable()).collect();
    if ask.check.is_some() {
        // Among equals the place on the device decides, so that idle children share the work and yet each
        // serves long runs: 2 MiB at a time.
        let turn = (ask.offset >> 21) as usize;
        let n = usable.len().max(1);
        usable.rotate_left(turn % n);
        usable.sort_by_key(|c| c.cost_of_read(ask.offset));
        let quickest = usable.iter().filter_map(|c| c.typical_read()).min();
        usable.sort_by_key(|c| is_slow(c.typical_read(), quickest));
    }
    // A child that may miss the block comes last.
    usable.sort_by_key(|c| c.misses(ask.born));
    usable
}

/// Wrong bytes say more than an operation that failed: somewhere a block is lost, not just unreachable.
fn worse(a: Error, b: Error) -> Error {
    if a.kind() == Kind::Checksum { a } else { b }
}
