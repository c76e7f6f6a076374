//! A top-level vdev: what a block pointer names, with its own address space.
//!
//! Here sizes are rounded to what the vdev can address, addresses from block pointers are checked, and leaves that had
//! errors are examined: a device that no longer answers, or that failed too often ([`crate::Thresholds`]), is FAULTED if the
//! others can do without it, else DEGRADED and used on, for it has the only copy.

use crate::diagnosis::Verdict;
use crate::leaf::{Leaf, Suspicion};
use crate::node::{Ask, Body, Check, Group, Node, Part, Verify, read_leaf};
use crate::turns::Turns;
use crate::{Aux, Bias, Device, Health, OpenOptions, Priority, Spec, State, geometry};
use futures_util::future::join_all;
use ondisk::MAX_BLOCK_SIZE;
use ondisk::label::DATA_OFFSET;
use probe::{Breakdown, Event, Family, Op, Probe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use units::{Error, Guid, Kind, Result, Txg, VdevId};
use world::{Buf, Instant, IoBuf, OpenMode};

/// How thoroughly a block is read.
#[derive(Clone, Debug)]
pub struct Care {
    pub priority: Priority,
    /// Every copy and all parity, although the first is good.
    pub everything: bool,
    /// What is bad is written again, unless the tree is read-only. Only for callers that know that no other block can have
    /// been given the place since: a reader with an old pointer would destroy what is there now.
    pub repair: bool,
    /// The txg that the block was born in: devices that missed it are asked last.
    pub born: Option<Txg>,
    /// The block has a checksum; without one, devices that missed its txg are not asked at all.
    pub is_proven: bool,
    /// Counts the devices that had something wrong, of blocks that were found all the same.
    pub bad: Option<Arc<AtomicU64>>,
    /// Wrong bytes count as an error of the device that returned them.
    pub blame: bool,
}

impl Care {
    /// A plain read of the block. What is bad stays so.
    pub fn usual(priority: Priority) -> Care {
        Care {
            priority,
            everything: false,
            repair: false,
            born: None,
            is_proven: true,
            bad: None,
            blame: true,
        }
    }

    /// As one reads who does not know whether the block was ever written, like the next of a log: nobody is to blame
    /// when it was not.
    pub fn hopeful(priority: Priority) -> Care {
        Care { blame: false, ..Care::usual(priority) }
    }

    /// As a scrub looks.
    pub fn check(bad: Arc<AtomicU64>) -> Care {
        Care { everything: true, bad: Some(bad), ..Care::usual(Priority::Scrub) }
    }

    /// Everything, and what is bad is written again.
    pub fn scrub() -> Care {
        Care { everything: true, repair: true, ..Care::usual(Priority::Scrub) }
    }

    /// As [`Care::scrub`], of a block of which a read has met something bad, which was counted then.
    pub fn repair() -> Care {
        Care { blame: false, ..Care::scrub() }
    }
}

/// Where a part of a block is on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub device: Device,
    pub health: Health,
    /// In bytes, from the start of the device.
    pub offset: u64,
    pub len: u64,
    /// Which bytes of the block these are; none for parity.
    pub bytes: Option<std::ops::Range<usize>>,
}

/// See the module.
#[derive(Debug)]
pub struct Top {
    pub id: VdevId,
    guid: AtomicU64,
    /// The smallest unit of space, as a power of two.
    pub ashift: u32,
    asize: AtomicU64,
    /// The size of its metaslabs, as a power of two.
    pub metaslab_shift: u32,
    pub is_log: bool,
    bias: Mutex<Bias>,
    node: RwLock<Arc<Node>>,
    mode: OpenMode,
    /// Set by a leaf that had an error.
    alarm: Arc<AtomicBool>,
    turns: Turns,
    probe: Probe,
}

impl Top {
    pub(crate) fn new(
        id: VdevId,
        spec: &Spec,
        node: Arc<Node>,
        options: &OpenOptions,
        alarm: Arc<AtomicBool>,
    ) -> Result<Top> {
        let place = || format!("vdev {id}");
        let field = |name: &str, value: Option<u64>| {
            value.ok_or_else(|| Error::corrupt(format!("no pair '{name}'")).at(place()))
        };
        let (ashift, shift) = match node.body {
            Body::Absent(_) => (spec.ashift.unwrap_or(9), spec.metaslab_shift.unwrap_or(0)),
            _ => (field("ashift", spec.ashift)?, field("metaslab_shift", spec.metaslab_shift)?),
        };
        let range = u64::from(geometry::ASHIFT_MIN)..=u64::from(geometry::ASHIFT_MAX);
        if !range.contains(&ashift) {
            return Err(Error::corrupt(format!("ashift {ashift}")).at(place()));
        }
        if shift > 63 {
            return Err(Error::corrupt(format!("metaslab_shift {shift}")).at(place()));
        }
        Ok(Top {
            id,
            guid: AtomicU64::new(spec.guid.0),
            ashift: ashift as u32,
            asize: AtomicU64::new(spec.asize.unwrap_or(0)),
            metaslab_shift: shift as u32,
            is_log: spec.is_log(),
            bias: Mutex::new(spec.bias),
            node: RwLock::new(node),
            mode: options.mode,
            alarm,
            turns: Turns::default(),
            probe: options.hub.probe(Family::Zfs, &[(Breakdown::Pool, &options.pool_name)]),
        })
    }

    /// It changes when a device is attached to one that stood alone.
    pub fn guid(&self) -> Guid {
        Guid(self.guid.load(Ordering::Relaxed))
    }

    /// The allocatable bytes, parity included.
    pub fn asize(&self) -> u64 {
        self.asize.load(Ordering::Relaxed)
    }

    pub(crate) fn set_asize(&self, asize: u64) {
        self.asize.store(asize, Ordering::Relaxed);
    }

    /// How many bytes more it would have if it took all that its devices have now, in whole metaslabs.
    pub fn expandable(&self) -> u64 {
        let whole = |asize: u64| if self.metaslab_shift == 0 { 0 } else { asize >> self.metaslab_shift };
        let more = whole(self.node().asize_now()).saturating_sub(whole(self.asize()));
        more << self.metaslab_shift
    }

    /// The devices as they are grouped now. An operation keeps to those that it began with.
    pub(crate) fn node(&self) -> Arc<Node> {
        self.node.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Groups the devices anew. What is under way goes on with the old group.
    pub(crate) fn regroup(&self, node: Arc<Node>) {
        self.guid.store(node.guid.0, Ordering::Relaxed);
        *self.node.write().unwrap_or_else(PoisonError::into_inner) = node;
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) fn alarm(&self) -> Arc<AtomicBool> {
        self.alarm.clone()
    }

    pub fn bias(&self) -> Bias {
        *self.bias.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The class, once the pool has read it from the vdev's ZAP.
    pub fn set_bias(&self, bias: Bias) {
        *self.bias.lock().unwrap_or_else(PoisonError::into_inner) = bias;
    }

    pub fn health(&self) -> Health {
        self.node().health()
    }

    pub fn is_usable(&self) -> bool {
        self.health().state.is_usable()
    }

    pub fn leaves(&self) -> Vec<Arc<Leaf>> {
        self.node().leaves()
    }

    /// How many devices may fail: copies beyond the first, or parity.
    pub fn redundancy(&self) -> usize {
        match &self.node().body {
            Body::Leaf(_) | Body::Absent(_) => 0,
            Body::Group(group) => group.redundancy,
        }
    }

    /// The allocatable bytes that each of its leaves must have. One that stands alone is opened later than its pool where
    /// that was opened without its log.
    pub(crate) fn least_of_a_leaf(&self) -> u64 {
        match &self.node().body {
            Body::Leaf(_) | Body::Absent(_) => self.least_asize(),
            Body::Group(Group { ops, children, .. }) => ops.child_asize(children.len(), self.asize()),
        }
    }

    /// The allocatable bytes that a device must have to join it: whole metaslabs are what counts.
    pub(crate) fn least_asize(&self) -> u64 {
        let whole = self.metaslabs() << self.metaslab_shift;
        match &self.node().body {
            Body::Group(Group { ops, children, .. }) => ops.child_asize(children.len(), whole),
            Body::Leaf(_) | Body::Absent(_) => whole,
        }
    }

    /// Whether enough of its devices give a sign of life for its blocks to be read.
    pub async fn answers(&self) -> bool {
        let leaves = self.leaves();
        let probes = join_all(leaves.iter().map(|leaf| leaf.probe(OpenMode::ReadOnly))).await;
        probes.iter().filter(|probe| probe.is_err()).count() <= self.redundancy()
    }

    /// The smallest allocation.
    pub fn min_alloc(&self) -> u64 {
        1 << self.ashift
    }

    pub fn metaslabs(&self) -> u64 {
        if self.metaslab_shift == 0 { 0 } else { self.asize() >> self.metaslab_shift }
    }

    /// The space that a block of `psize` bytes takes.
    pub fn psize_to_asize(&self, psize: u64) -> u64 {
        match &self.node().body {
            Body::Group(group) => group.ops.asize(psize, self.min_alloc()),
            Body::Leaf(_) | Body::Absent(_) => psize.next_multiple_of(self.min_alloc()),
        }
    }

    /// How many disks take data at the same time: the children of a raidz without parity, else 1.
    pub fn data_disks(&self) -> usize {
        match &self.node().body {
            Body::Group(Group { ops, children, .. }) => ops.data_disks(children.len()),
            Body::Leaf(_) | Body::Absent(_) => 1,
        }
    }

    /// By what part of 512 its allocated space counts as space for data; see [`geometry::deflate_ratio`].
    pub fn deflate_ratio(&self) -> u64 {
        geometry::deflate_ratio(self.psize_to_asize(128 << 10))
    }

    /// Where the block of `psize` bytes at `offset` is on the devices, without asking any of them.
    pub fn places(&self, offset: u64, psize: usize) -> Result<Vec<Place>> {
        let len = self.check(offset, psize)?;
        Ok(places(&self.node(), offset, 0..len))
    }

    /// Reads the block of `psize` bytes at `offset`. Whatever is bad on the way is done without, and stays as it is.
    pub async fn read(
        self: &Arc<Top>,
        offset: u64,
        psize: usize,
        verify: Verify,
        priority: Priority,
    ) -> Result<Buf> {
        self.read_with(offset, psize, verify, &Care::usual(priority)).await
    }

    /// Reads every copy and all parity of a block and repairs what is bad: a scrub's view of it.
    pub async fn scrub(self: &Arc<Top>, offset: u64, psize: usize, verify: Verify) -> Result<Buf> {
        self.read_with(offset, psize, verify, &Care::scrub()).await
    }

    /// Writes again a block that was bad here as a whole. What cannot be written is counted where it failed.
    pub async fn heal(self: &Arc<Top>, offset: u64, data: Buf) {
        let len = data.len() as u64;
        if self.write(offset, data, Priority::AsyncWrite).await.is_ok() {
            self.node().count_healed(len);
        }
    }

    /// Writes a block at an address that was allocated for its size.
    pub async fn write(self: &Arc<Top>, offset: u64, data: Buf, priority: Priority) -> Result<()> {
        self.check_writable()?;
        let len = self.check(offset, data.len())?;
        let data = if len == data.len() { data } else { padded(&data, len) };
        let _turn = self.turns.write(offset..offset + len as u64).await;
        let began = self.look();
        let result = match &self.node().body {
            Body::Leaf(leaf) => leaf.write(offset, data, priority).await,
            _ => self.node().write(offset, data, priority).await,
        };
        self.completed(Op::Write, (offset, len), priority, began, result.is_err());
        result.map_err(|e| e.at(self.place(offset)))
    }

    /// Makes durable all writes that completed before, on as many devices as are needed to read them again. It asks only
    /// devices that were written since they were last asked; see [`crate::Leaf::flush`].
    pub async fn flush(self: &Arc<Top>) -> Result<()> {
        let result = self.node().flush().await;
        self.answer_alarm();
        result.map_err(|e| e.at(format!("vdev {}", self.id)))
    }

    /// Refuses I/O from now on, waits for what is under way, and closes the devices.
    pub async fn close(&self) {
        join_all(self.leaves().iter().map(|leaf| leaf.close())).await;
    }

    /// Tells the devices that space is free. Only a hint.
    pub async fn trim(self: &Arc<Top>, offset: u64, asize: u64) -> Result<()> {
        self.check_writable()?;
        let unit = self.min_alloc();
        let inside = offset.checked_add(asize).is_some_and(|end| end <= self.asize());
        if !inside || !offset.is_multiple_of(unit) || !asize.is_multiple_of(unit) {
            return Err(Error::invalid(format!("trim of {asize} bytes")).at(self.place(offset)));
        }
        self.node().trim(offset, asize).await;
        Ok(())
    }

    /// Reads the block of `psize` bytes at `offset` as thoroughly as asked.
    pub async fn read_with(
        self: &Arc<Top>,
        offset: u64,
        psize: usize,
        verify: Verify,
        care: &Care,
    ) -> Result<Buf> {
        let len = self.check(offset, psize)?;
        let is_stale = self.node().misses(care.born);
        let mut ask = Ask {
            offset,
            len,
            priority: care.priority,
            check: Some(Check { verify, psize }),
            repair: care.repair && self.mode == OpenMode::ReadWrite,
            everything: care.everything,
            bad: care.bad.clone(),
            blame: care.blame,
            born: care.born,
            avoid_stale: is_stale,
        };
        // What is repaired on the way is written.
        let _turn = match ask.repair {
            true => self.turns.write(offset..offset + len as u64).await,
            false => None,
        };
        let began = self.look();
        let mut result = self.read_node(&ask).await;
        if result.is_err() && is_stale && care.is_proven {
            ask.avoid_stale = false;
            result = self.read_node(&ask).await;
        }
        self.completed(Op::Read, (offset, len), care.priority, began, result.is_err());
        let buf = result.map_err(|e| e.at(self.place(offset)))?;
        Ok(if len == psize { buf } else { buf.slice(0..psize) })
    }

    /// How many bytes of neighbouring blocks [`Top::read_together`] reads at most; `None` where it reads none.
    pub fn together_max(&self) -> Option<u64> {
        match &self.node().body {
            Body::Leaf(leaf) => Some(leaf.together_max()),
            Body::Group(_) | Body::Absent(_) => None,
        }
    }

    /// Reads blocks of `psizes` bytes, the first at `offset` and each where the sectors of the one before it end, with one
    /// operation of the device, each into memory of its own. What is read is not verified. `None` when each is to be read by
    /// itself: by a group of devices, or since the device refused.
    pub async fn read_together(
        self: &Arc<Top>,
        offset: u64,
        psizes: &[usize],
        priority: Priority,
    ) -> Option<Vec<Buf>> {
        let (mut lens, mut end) = (Vec::with_capacity(psizes.len()), offset);
        for psize in psizes {
            let len = self.check(end, *psize).ok()?;
            lens.push(len);
            end += len as u64;
        }
        let node = self.node();
        let Body::Leaf(leaf) = &node.body else { return None };
        let began = self.look();
        let mut bufs = leaf.read_neighbours(offset, &lens, priority).await?;
        let mut at = offset;
        for (buf, (len, psize)) in bufs.iter_mut().zip(lens.into_iter().zip(psizes)) {
            self.completed(Op::Read, (at, len), priority, began, false);
            at += len as u64;
            // Without its padding to whole sectors.
            buf.resize(*psize);
        }
        Some(bufs)
    }

    async fn read_node(&self, ask: &Ask) -> Result<Buf> {
        match &self.node().body {
            // The plainest case, spared the detour that groups need.
            Body::Leaf(leaf) => read_leaf(leaf, ask).await,
            _ => self.node().read(ask.clone()).await,
        }
    }

    /// Whether some usable device may miss what was born in this txg.
    pub fn misses(&self, born: Txg) -> bool {
        self.node().misses(Some(born))
    }

    /// The length to ask the devices for. Addresses come from block pointers, so they are checked, not believed.
    fn check(&self, offset: u64, psize: usize) -> Result<usize> {
        let size = psize as u64;
        if size == 0 || size > MAX_BLOCK_SIZE || !offset.is_multiple_of(self.min_alloc()) {
            return Err(Error::corrupt(format!("block of {size} bytes")).at(self.place(offset)));
        }
        let end = offset.checked_add(self.psize_to_asize(size));
        if end.is_none_or(|end| end > self.asize()) {
            return Err(Error::corrupt("block beyond the end of its vdev").at(self.place(offset)));
        }
        Ok(size.next_multiple_of(self.min_alloc()) as usize)
    }

    fn check_writable(&self) -> Result<()> {
        match self.mode {
            OpenMode::ReadWrite => Ok(()),
            OpenMode::ReadOnly => Err(Error::new(Kind::ReadOnly, "write").at(format!("vdev {}", self.id))),
        }
    }

    fn place(&self, offset: u64) -> String {
        format!("vdev {} offset {offset:#x}", self.id)
    }

    /// Now, if it is of use to anything.
    fn look(&self) -> Option<Instant> {
        self.probe.is_open().then(world::now)
    }

    fn completed(
        self: &Arc<Top>,
        op: Op,
        (offset, len): (u64, usize),
        priority: Priority,
        began: Option<Instant>,
        failed: bool,
    ) {
        self.answer_alarm();
        let Some(began) = began else { return };
        self.probe.tell(|| {
            let latency = world::now().since(began);
            let kind = priority.name();
            Event { op, kind, offset, bytes: len as u64, latency, failed, ..Event::default() }
        });
    }

    /// Looks into errors that leaves have reported, in a task of its own.
    fn answer_alarm(self: &Arc<Top>) {
        if self.alarm.load(Ordering::Relaxed) && self.alarm.swap(false, Ordering::Relaxed) {
            let top = self.clone();
            world::spawn(async move { top.examine().await });
        }
    }

    async fn examine(&self) {
        for leaf in self.leaves() {
            let Some(Suspicion { failed_io, verdict }) = leaf.take_suspicion() else { continue };
            let has_vanished = failed_io && leaf.has_vanished().await;
            match verdict {
                _ if has_vanished => self.condemn(&leaf, State::Removed, Aux::None),
                Verdict::TooManyErrors => self.condemn(&leaf, State::Faulted, Aux::ErrorsExceeded),
                _ if failed_io && leaf.probe(self.mode).await.is_err() => {
                    self.condemn(&leaf, State::Faulted, Aux::ErrorsExceeded);
                }
                Verdict::Ailing if leaf.health().state == State::Online => {
                    leaf.set_health(Health::new(State::Degraded, Aux::ErrorsExceeded));
                }
                Verdict::Ailing | Verdict::Bearable => {}
            }
        }
    }

    /// Gives a leaf up, if the others can do without it.
    fn condemn(&self, leaf: &Leaf, state: State, aux: Aux) {
        if !leaf.is_usable() {
            return;
        }
        let dispensable = self.node().health_without(Some(leaf.guid())).state.is_usable();
        let health = Health::new(state, aux);
        leaf.set_health(if dispensable { health } else { Health::new(State::Degraded, Aux::ErrorsExceeded) });
    }
}

fn places(node: &Node, offset: u64, bytes: std::ops::Range<usize>) -> Vec<Place> {
    match &node.body {
        Body::Leaf(leaf) => vec![Place {
            device: leaf.device(),
            health: leaf.health(),
            offset: DATA_OFFSET + offset,
            len: bytes.len() as u64,
            bytes: Some(bytes),
        }],
        Body::Group(Group { ops, children, .. }) => {
            let of_part = |part: Part| {
                let inside = bytes.start + part.bytes.start..bytes.start + part.bytes.end;
                let mut found = places(&children[part.child], part.offset, inside);
                if part.is_parity {
                    found.iter_mut().for_each(|place| place.bytes = None);
                }
                found
            };
            ops.parts(children.len(), offset, bytes.len()).into_iter().flat_map(of_part).collect()
        }
        Body::Absent(_) => Vec::new(),
    }
}

fn padded(data: &Buf, len: usize) -> Buf {
    let mut buf = IoBuf::zeroed(len);
    buf[..data.len()].copy_from_slice(data);
    buf.freeze()
}
