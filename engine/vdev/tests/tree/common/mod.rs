//! A pool's devices in the simulated world, without a pool: blocks are put one after the other.
use ondisk::{BlockPointer, NvList, PoolState, Uberblock};
use sim::{Config, Disks, Model, Rng};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use units::{Guid, Txg, VdevId};
use vdev::{
    Bias, Commit, Device, Group, Layout, NewLeaf, OpenOptions, PoolConfig, Priority, Spec, Top, Tree, Verify,
};
use world::{Buf, IoBuf, OpenMode};

pub const POOL: Guid = Guid(0x1234);
pub const MIB: u64 = 1 << 20;

pub fn run<T: Send + 'static>(disks: &Disks, seed: u64, work: impl Future<Output = T> + Send + 'static) -> T {
    sim::run_with(disks, seed, Config::default(), work)
}

pub fn disks(n: usize) -> Disks {
    let disks = Disks::new();
    (0..n).for_each(|i| drop(disks.add(format!("/d/{i}"), 80 * MIB, Model::NVME)));
    disks
}

pub fn config(txg: u64) -> PoolConfig {
    PoolConfig {
        version: 5000,
        name: "tank".into(),
        state: PoolState::Active,
        txg: Txg(txg),
        guid: POOL,
        errata: 0,
        alloc: None,
        comment: None,
        compatibility: None,
        host: None,
        process: None,
        features_for_read: NvList::new(),
        other: NvList::new(),
    }
}

pub fn uberblock(txg: u64) -> Uberblock {
    Uberblock {
        version: 5000,
        txg: Txg(txg),
        guid_sum: 0,
        timestamp: txg,
        root: BlockPointer::HOLE,
        software_version: 5000,
        mmp: None,
        checkpoint_txg: Txg(0),
        reflow: Default::default(),
    }
}

pub fn commit(txg: u64, with_labels: bool) -> Commit {
    Commit { uberblock: uberblock(txg), config: with_labels.then(|| config(txg)), multihost: false }
}

/// Leaves on `/d/FIRST` and following.
pub fn group(layout: Layout, first: usize, n: usize) -> Group {
    let leaf = |i: usize| {
        let path = format!("/d/{i}");
        let geometry = world::open(Path::new(&path), OpenMode::ReadOnly).unwrap().geometry();
        NewLeaf { path, geometry }
    };
    Group { layout, bias: Bias::Normal, leaves: (first..first + n).map(leaf).collect() }
}

/// Makes a pool of one vdev on the first `n` disks, with labels and an uberblock of txg 4.
pub async fn create(layout: Layout, n: usize, ashift: u32) -> Arc<Tree> {
    create_of(&[group(layout, 0, n)], ashift).await
}

pub async fn create_of(groups: &[Group], ashift: u32) -> Arc<Tree> {
    let new_guid = || Guid(world::random_u64());
    let spec = Spec::create(POOL, groups, ashift, Txg::INITIAL, new_guid).unwrap();
    let tree = Tree::open(spec, OpenOptions::new(OpenMode::ReadWrite)).await.unwrap();
    tree.label_new(&config(0), Txg::INITIAL).await.unwrap();
    tree.commit(&commit(4, true)).await.unwrap();
    tree
}

/// Finds the pool again, as an import does.
pub async fn reopen(mode: OpenMode) -> Arc<Tree> {
    let found = vdev::scan::scan_dirs(&[Path::new("/d")]).await;
    let candidate = found.unwrap().into_iter().find(|c| c.guid() == POOL).expect("the pool is found");
    let mut options = OpenOptions::new(mode);
    options.pool = Some(POOL);
    options.devices = candidate.devices;
    Tree::open(candidate.tree, options).await.unwrap()
}

pub fn top(tree: &Tree) -> Arc<Top> {
    tree.top(VdevId(0)).expect("the pool has a vdev")
}

pub fn verify(block: &Buf) -> Verify {
    let block = block.clone();
    Arc::new(move |bytes: &[u8]| bytes == &block[..])
}

pub fn random_block(rng: &mut Rng, len: usize) -> Buf {
    let mut buf = IoBuf::zeroed(len);
    buf.chunks_mut(8).for_each(|c| c.copy_from_slice(&rng.next_u64().to_le_bytes()[..c.len()]));
    buf.freeze()
}

/// Blocks of all sizes, one behind the other, and where they are.
pub struct Blocks(pub Vec<(u64, Buf)>);

impl Blocks {
    pub async fn write(top: &Arc<Top>, rng: &mut Rng, n: usize) -> Blocks {
        let mut at = 0;
        let mut blocks = Vec::new();
        for _ in 0..n {
            let len = 512 << rng.below(9) as usize;
            let len = if rng.chance(300_000) { 512 * (1 + rng.below(200) as usize) } else { len };
            let block = random_block(rng, len);
            top.write(at, block.clone(), Priority::AsyncWrite).await.unwrap();
            let next = at + top.psize_to_asize(len as u64);
            blocks.push((at, block));
            at = next;
        }
        Blocks(blocks)
    }

    pub async fn read(&self, top: &Arc<Top>) {
        for (at, block) in &self.0 {
            let read = top.read(*at, block.len(), verify(block), Priority::SyncRead).await;
            assert_eq!(read.unwrap()[..], block[..], "block at {at:#x}");
        }
    }

    pub async fn scrub(&self, top: &Arc<Top>) {
        for (at, block) in &self.0 {
            top.scrub(*at, block.len(), verify(block)).await.unwrap();
        }
    }
}

/// Every layout, with how many disks it takes.
pub const LAYOUTS: [(Layout, usize); 6] = [
    (Layout::Stripe, 1),
    (Layout::Mirror, 2),
    (Layout::Mirror, 3),
    (Layout::Raidz { parity: 1 }, 3),
    (Layout::Raidz { parity: 2 }, 5),
    (Layout::Raidz { parity: 3 }, 6),
];

pub fn redundancy(layout: Layout, n: usize) -> usize {
    layout.redundancy(n)
}

pub fn checksum_errors(tree: &Tree) -> BTreeMap<String, u64> {
    let of = |l: &Arc<vdev::Leaf>| (l.device().path.display().to_string(), l.errors().checksum);
    tree.leaves().iter().map(of).filter(|(_, n)| *n > 0).collect()
}

pub fn device(i: usize) -> Device {
    Device::whole(format!("/d/{i}"))
}
