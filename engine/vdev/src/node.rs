//! A vdev of the open tree: a leaf, or a group of others that share blocks.
//!
//! ```text
//!   Top ── raidz ─┬─ leaf
//!                 ├─ replacing ─┬─ leaf       every node reads, writes, flushes and trims by asking its children;
//!                 └─ leaf       └─ leaf       only leaves have devices
//! ```
//!
//! How a group of some kind holds blocks on its children is said by its [`VdevOps`] (`kinds`); what all groups have in
//! common is here: how many children they can be without, and what follows from that for health, flushes and what was
//! missed.
//!
//! A read may carry a [`Check`]. It is applied where the whole block is at hand: by a leaf or a mirror. RAIDZ reads its
//! columns without one and applies it to what it put together.

mod ops;

pub(crate) use ops::{ChildRange, Part, VdevOps};

use crate::diagnosis::Fault;
use crate::leaf::Leaf;
use crate::pace;
use crate::{Aux, Errors, Health, Priority, State, VdevType};
use futures_util::future::{BoxFuture, FutureExt, join_all, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use units::{Error, Guid, Kind, Result, Txg};
use world::Buf;

/// Decides whether bytes are the block that was asked for: its checksum agrees.
pub type Verify = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// How to recognise a block in what was read, which may be longer.
#[derive(Clone)]
pub(crate) struct Check {
    pub verify: Verify,
    pub psize: usize,
}

impl Check {
    pub fn passes(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.psize).is_some_and(|block| (self.verify)(block))
    }
}

/// What is asked of a node.
#[derive(Clone)]
pub(crate) struct Ask {
    pub offset: u64,
    pub len: usize,
    pub priority: Priority,
    pub check: Option<Check>,
    /// The txg that the block was born in, if it is known.
    pub born: Option<Txg>,
    /// A device that may miss it counts as one that failed, and is not asked.
    pub avoid_stale: bool,
    /// What was found bad is written again.
    pub repair: bool,
    /// Read every copy and all parity, as a scrub does, even when the first is good.
    pub everything: bool,
    /// Counts what usable children gave back wrong or not at all, although the block was found.
    pub bad: Option<Arc<AtomicU64>>,
    /// Wrong bytes count as an error.
    pub blame: bool,
}

impl Ask {
    pub fn note_bad(&self, n: usize) {
        if let Some(bad) = &self.bad {
            bad.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
}

#[derive(Debug)]
pub struct Node {
    pub guid: Guid,
    pub vdev_type: VdevType,
    pub(crate) body: Body,
    /// Blocks that the group as a whole could not give back.
    errors: [AtomicU64; 3],
}

#[derive(Debug)]
pub(crate) enum Body {
    Leaf(Arc<Leaf>),
    Group(Group),
    /// Nothing is there, for this reason.
    Absent(Health),
}

/// Children that share blocks.
#[derive(Debug)]
pub(crate) struct Group {
    pub ops: Arc<dyn VdevOps>,
    /// So many children may fail.
    pub redundancy: usize,
    pub children: Vec<Arc<Node>>,
}

impl Node {
    pub(crate) fn new(guid: Guid, vdev_type: VdevType, body: Body) -> Arc<Node> {
        Arc::new(Node { guid, vdev_type, body, errors: Default::default() })
    }

    /// Goes on counting where `before` stopped.
    pub(crate) fn keep_errors_of(&self, before: &Node) {
        for (to, from) in self.errors.iter().zip(&before.errors) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    pub(crate) fn find(&self, guid: Guid) -> Option<&Node> {
        if self.guid == guid {
            return Some(self);
        }
        self.children().iter().find_map(|child| child.find(guid))
    }

    pub fn children(&self) -> &[Arc<Node>] {
        match &self.body {
            Body::Group(group) => &group.children,
            Body::Leaf(_) | Body::Absent(_) => &[],
        }
    }

    pub fn leaf(&self) -> Option<&Arc<Leaf>> {
        match &self.body {
            Body::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// All leaves below, in order.
    pub fn leaves(&self) -> Vec<Arc<Leaf>> {
        match &self.body {
            Body::Leaf(leaf) => vec![leaf.clone()],
            _ => self.children().iter().flat_map(|c| c.leaves()).collect(),
        }
    }

    pub fn health(&self) -> Health {
        self.health_without(None)
    }

    /// How well the group would be if one leaf were gone. Then those that miss something are no replacement.
    pub(crate) fn health_without(&self, lost: Option<Guid>) -> Health {
        match &self.body {
            Body::Leaf(leaf) if lost == Some(leaf.guid()) => Health::new(State::Faulted, Aux::ErrorsExceeded),
            Body::Leaf(leaf) if lost.is_some() && leaf.missing().is_any() => {
                Health::new(State::CannotOpen, Aux::None)
            }
            Body::Leaf(leaf) => leaf.health(),
            Body::Group(group) => {
                let states = group.children.iter().map(|c| c.health_without(lost).state);
                let (state, aux) = State::of_group(group.redundancy, states);
                Health { state, aux }
            }
            Body::Absent(health) => *health,
        }
    }

    pub fn is_usable(&self) -> bool {
        self.health().state.is_usable()
    }

    /// The allocatable bytes that its devices have room for now. One that is not there has none, for it may come back as
    /// small as it was.
    pub(crate) fn asize_now(&self) -> u64 {
        match &self.body {
            Body::Leaf(leaf) if leaf.is_usable() => leaf.asize_now(),
            Body::Leaf(_) | Body::Absent(_) => 0,
            Body::Group(Group { ops, children, .. }) => {
                let least = children.iter().map(|c| c.asize_now()).min().unwrap_or(0);
                ops.capacity(children.len(), least)
            }
        }
    }

    /// Its own errors: a leaf's, or blocks that were lost to the group as a whole.
    pub fn errors(&self) -> Errors {
        if let Some(leaf) = self.leaf() {
            return leaf.errors();
        }
        let [read, write, checksum] = [0, 1, 2].map(|i| self.errors[i].load(Ordering::Relaxed));
        Errors { read, write, checksum }
    }

    /// Forgets the errors of the groups from here down; [`Leaf::revive`] does more for a leaf.
    pub(crate) fn clear(&self) {
        self.errors.iter().for_each(|e| e.store(0, Ordering::Relaxed));
        self.children().iter().for_each(|c| c.clear());
    }

    pub(crate) fn read(&self, ask: Ask) -> Reading<'_> {
        // A block that devices which may miss it were not asked for is not lost yet.
        let told = Told { checksum: !ask.avoid_stale && ask.blame, other: !ask.avoid_stale };
        let (group, read) = match &self.body {
            Body::Leaf(leaf) => (None, async move { read_leaf(leaf, &ask).await }.boxed()),
            Body::Group(group) => (Some((self, told)), group.ops.read(&group.children, ask)),
            Body::Absent(health) => (None, ready(Err(absent(*health))).boxed()),
        };
        Reading { read, group }
    }

    /// What each device has where several hold the same bytes: one that is being replaced, one that has a spare, a mirror.
    /// Those that cannot be read are left out, and any other node has none.
    pub(crate) fn versions<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Vec<(Arc<Leaf>, Buf)>> {
        let leaves = if self.vdev_type.is_mirror() { self.leaves() } else { Vec::new() };
        async move {
            let read =
                |leaf: Arc<Leaf>| async move { read_leaf(&leaf, ask).await.ok().map(|buf| (leaf, buf)) };
            join_all(leaves.into_iter().map(read)).await.into_iter().flatten().collect()
        }
        .boxed()
    }

    pub(crate) fn write(&self, offset: u64, data: Buf, priority: Priority) -> BoxFuture<'_, Result<()>> {
        match &self.body {
            Body::Leaf(leaf) => leaf.write(offset, data, priority).boxed(),
            Body::Group(Group { ops, children, .. }) => {
                let write = ops.write(children, offset, data, priority);
                async move { write.await.inspect_err(|e| self.note(e, Fault::Write)) }.boxed()
            }
            Body::Absent(health) => {
                let error = absent(*health);
                self.note(&error, Fault::Write);
                ready(Err(error)).boxed()
            }
        }
    }

    /// Makes durable what was written; good when enough children did.
    pub(crate) fn flush(&self) -> BoxFuture<'_, Result<()>> {
        match &self.body {
            Body::Leaf(leaf) => leaf.flush().boxed(),
            Body::Group(group) => flush_all(&group.children, group.redundancy).boxed(),
            Body::Absent(health) => ready(Err(absent(*health))).boxed(),
        }
    }

    /// Tells the devices that the range is free. A hint: what a device refuses is no error.
    pub(crate) fn trim(&self, offset: u64, asize: u64) -> BoxFuture<'_, ()> {
        async move {
            match &self.body {
                Body::Leaf(leaf) => drop(leaf.trim(offset, asize).await),
                Body::Group(Group { ops, children, .. }) => {
                    let ranges = ops.ranges(children.len(), offset, asize);
                    let trims = ranges.iter().map(|r| children[r.child].trim(r.offset, r.len));
                    join_all(trims).await;
                }
                Body::Absent(_) => {}
            }
        }
        .boxed()
    }

    /// How long a read here would wait, in comparable units.
    pub(crate) fn cost_of_read(&self, offset: u64) -> usize {
        match &self.body {
            Body::Leaf(leaf) => leaf.cost_of_read(offset),
            _ => self.children().iter().map(|c| c.cost_of_read(offset)).min().unwrap_or(usize::MAX),
        }
    }

    /// How long a read here typically takes, as far as it was asked lately: of several devices that share it, the quickest.
    pub(crate) fn typical_read(&self) -> Option<Duration> {
        match &self.body {
            Body::Leaf(leaf) => leaf.typical_read(),
            _ => self.children().iter().filter(|c| c.is_usable()).filter_map(|c| c.typical_read()).min(),
        }
    }

    /// What a read of a child is compared with to tell whether it is slow: of what has the same bytes the quickest, else the
    /// one in the middle.
    pub(crate) fn usual_read(&self) -> Option<Duration> {
        let mut known = self.children().iter().filter(|c| c.is_usable()).filter_map(|c| c.typical_read());
        if self.vdev_type.is_mirror() { known.min() } else { pace::median(&mut known) }
    }

    /// Whether some usable device may miss what was born in this txg.
    pub(crate) fn misses(&self, born: Option<Txg>) -> bool {
        match &self.body {
            Body::Leaf(leaf) => leaf.missing().contains(born) && leaf.is_usable(),
            _ => self.children().iter().any(|c| c.misses(born)),
        }
    }

    /// Whether a block of the txg being synced may be nowhere in it. A group that has as many devices as it needs which
    /// missed nothing has all of it, whatever the others have.
    fn missed_now(&self) -> bool {
        let may_miss = match &self.body {
            Body::Leaf(leaf) => return leaf.missed_now(),
            Body::Group(group) => group.redundancy,
            Body::Absent(_) => 0,
        };
        self.children().iter().filter(|c| c.missed_now()).count() > may_miss
    }

    /// Counts the error on each leaf that returned the wrong bytes.
    pub(crate) fn count_checksum_error(&self, ask: &Ask) {
        if ask.blame {
            self.leaves().iter().filter(|l| l.is_usable()).for_each(|l| l.count(Fault::Checksum));
        }
    }

    /// Counts on each leaf what was written again.
    pub(crate) fn count_healed(&self, bytes: u64) {
        self.leaves().iter().filter(|l| l.is_usable()).for_each(|l| l.stats.healed(bytes));
    }

    /// Writes again what was bad here. What cannot be written is counted where it failed; the read has succeeded.
    pub(crate) async fn repair(&self, offset: u64, data: Buf) {
        let len = data.len() as u64;
        if self.write(offset, data, Priority::AsyncWrite).await.is_ok() {
            self.count_healed(len);
        }
    }

    fn note(&self, error: &Error, fault: Fault) {
        if self.leaf().is_some() {
            return;
        }
        let fault = if error.kind() == Kind::Checksum { Fault::Checksum } else { fault };
        self.errors[fault as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A read under way. The group that it is of counts it when the block is lost to it as a whole: told here, and not in a
/// future around that of the group, which would be one more allocation for each block.
pub(crate) struct Reading<'a> {
    read: BoxFuture<'a, Result<Buf>>,
    group: Option<(&'a Node, Told)>,
}

/// Which errors the group counts.
#[derive(Clone, Copy)]
struct Told {
    checksum: bool,
    other: bool,
}

impl Future for Reading<'_> {
    type Output = Result<Buf>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Buf>> {
        let done = self.read.as_mut().poll(context);
        if let (Poll::Ready(Err(e)), Some((node, told))) = (&done, self.group) {
            let is_told = if e.kind() == Kind::Checksum { told.checksum } else { told.other };
            if is_told {
                node.note(e, Fault::Read);
            }
        }
        done
    }
}

pub(crate) async fn read_leaf(leaf: &Leaf, ask: &Ask) -> Result<Buf> {
    if ask.avoid_stale && leaf.missing().contains(ask.born) {
        return Err(Error::new(Kind::Io, "read")
            .at(leaf.device())
            .because("the device missed the block's txg"));
    }
    let buf = leaf.read(ask.offset, ask.len, ask.priority).await?;
    match &ask.check {
        Some(check) if !check.passes(&buf) => {
            if ask.blame {
                leaf.count(Fault::Checksum);
            }
            Err(Error::new(Kind::Checksum, "read").at(leaf.device()))
        }
        _ => Ok(buf),
    }
}

/// Flushes all children, of which `redundancy` may fail.
///
/// Each block of this txg was written to enough of them. But when one of them cannot make its writes durable, the blocks
/// that another one missed may have been only there: that one counts as failed then, too.
async fn flush_all(children: &[Arc<Node>], redundancy: usize) -> Result<()> {
    let usable: Vec<bool> = children.iter().map(|c| c.is_usable()).collect();
    let mut results = join_all(children.iter().map(|c| c.flush())).await;
    let lost_writes = usable.iter().zip(&results).any(|(usable, result)| *usable && result.is_err());
    if lost_writes {
        let missing =
            children.iter().zip(&mut results).filter(|(c, result)| result.is_ok() && c.missed_now());
        missing.for_each(|(_, result)| {
            *result = Err(Error::new(Kind::Io, "flush").because("it missed writes that another one lost"));
        });
    }
    enough(results, redundancy)
}

/// Good when at most `redundancy` of the results are errors; else the worst of them.
pub(crate) fn enough(results: Vec<Result<()>>, redundancy: usize) -> Result<()> {
    let failures = results.iter().filter(|r| r.is_err()).count();
    if failures <= redundancy {
        return Ok(());
    }
    // The host's lack of space is something the caller can do something about: it is told first.
    let errors = results.into_iter().filter_map(Result::err);
    match errors.min_by_key(|e| e.kind() != Kind::NoSpace) {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

fn absent(health: Health) -> Error {
    Error::new(Kind::Io, "use vdev").because(health.aux.phrase())
}
