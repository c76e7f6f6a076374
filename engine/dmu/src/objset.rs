//! An object set: the meta-dnode's objects, opened on demand.

use crate::accounting::{Account, UserAccounting};
use crate::alloc::Search;
use crate::attrs::{DNODE_BLOCK, SLOT};
use crate::blocks::Blocks;
use crate::direct::Direct;
use crate::lock::lock;
use crate::node::Node;
use crate::object::Object;
use crate::policy::Policy;
use crate::shared::Shared;
use crate::tree::Tree;
use ondisk::{
    BlockPointer, DnodeFlags, DnodePhys, Feature, ObjectType, ObjsetFlags, ObjsetPhys, ObjsetSize, ObjsetType,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use units::{Error, HashMap, Kind, ObjectId, ObjsetId, Result, Txg};
use zio::{BlockStore, Bookmark, ReadClass};

/// An open object set. Clones are the same set.
#[derive(Clone)]
pub struct ObjSet(pub(crate) Arc<Set>);

pub(crate) struct Set {
    pub shared: Arc<Shared>,
    /// Everything of the root block but the meta-dnode, which `meta` has.
    pub phys: Mutex<ObjsetPhys>,
    pub root: Mutex<BlockPointer>,
    pub meta: Object,
    open: Mutex<Opened>,
    /// Where the search for a free object number goes on.
    pub search: Mutex<Search>,
    /// What counts what users take; nothing in an object set that has no users.
    pub user_accounting: Mutex<Option<Arc<dyn UserAccounting>>>,
    /// Users, groups, projects; none where there are no sums.
    pub accounts: [OnceLock<Object>; 3],
    /// How many there are, with what is not on disk yet.
    pub objects: AtomicU64,
    /// What a reader must know and the blocks do not tell; see [`ObjSet::use_feature`].
    pub features: Mutex<Vec<Feature>>,
}

impl Drop for Set {
    /// What is dirty holds what it shares with the set, which holds what is dirty. Nothing is left to sync it: the pool was
    /// given up, or the power is gone.
    fn drop(&mut self) {
        self.shared.forget_dirty();
    }
}

/// The objects that are in use.
#[derive(Default)]
struct Opened {
    nodes: HashMap<ObjectId, Weak<Node>>,
    /// How often dnodes have changed in the meta-dnode's blocks: what was read of those blocks before may be old.
    changes: u64,
}

impl ObjSet {
    /// Opens the object set whose root block `root` points to.
    pub async fn open(
        store: Arc<dyn BlockStore>,
        id: ObjsetId,
        root: BlockPointer,
        policy: Policy,
    ) -> Result<ObjSet> {
        let buf = match store.cached(&root) {
            Some(buf) => buf,
            None => store.read(&root, Bookmark::root(id), ReadClass::Demand).await?,
        };
        let phys = ObjsetPhys::from_bytes(&buf, root.endian()).map_err(|e| e.at(format!("objset {id}")))?;
        Ok(ObjSet::assemble(store, id, root, phys, policy))
    }

    /// A new object set with nothing in it; it is dirty at once, so that the next sync writes it.
    ///
    /// The meta-dnode of a dataset gets all its levels now, that of the MOS grows: so does OpenZFS.
    pub fn create(
        store: Arc<dyn BlockStore>,
        id: ObjsetId,
        kind: ObjsetType,
        policy: Policy,
        txg: Txg,
    ) -> ObjSet {
        let phys = ObjsetPhys::new(kind, ObjsetSize::V3, meta_dnode());
        let set = ObjSet::assemble(store, id, BlockPointer::HOLE, phys, policy);
        if id != ObjsetId::MOS {
            set.0.meta.node.deepen(META_LEVELS);
        }
        set.touch(txg);
        set
    }

    fn assemble(
        store: Arc<dyn BlockStore>,
        id: ObjsetId,
        root: BlockPointer,
        phys: ObjsetPhys,
        policy: Policy,
    ) -> ObjSet {
        let shared = Arc::new(Shared::new(Blocks::new(id, store, policy)));
        let meta = Object { node: Node::from_phys(ObjectId::META_DNODE, shared.clone(), &phys.meta_dnode) };
        let accounts = Account::ALL.map(|account| {
            let dnode = account_dnode(&phys, account);
            let object = (!dnode.is_free())
                .then(|| Object { node: Node::from_phys(account.id(), shared.clone(), dnode) });
            object.map(OnceLock::from).unwrap_or_default()
        });
        let set = Set {
            shared,
            user_accounting: Mutex::default(),
            accounts,
            objects: AtomicU64::new(root.fill()),
            features: Mutex::default(),
            phys: Mutex::new(phys),
            root: Mutex::new(root),
            meta,
            open: Mutex::default(),
            search: Mutex::new(Search::from(1)),
        };
        ObjSet(Arc::new(set))
    }

    pub fn id(&self) -> ObjsetId {
        self.0.shared.id
    }

    pub fn kind(&self) -> ObjsetType {
        lock(&self.0.phys).kind
    }

    /// The root block's content, with the meta-dnode as of the last sync.
    pub fn phys(&self) -> ObjsetPhys {
        lock(&self.0.phys).clone()
    }

    /// Its flags.
    pub fn flags(&self) -> ObjsetFlags {
        lock(&self.0.phys).flags
    }

    /// Changes what the root block says besides the meta-dnode (the log header, flags); it is written by `txg`'s sync.
    pub fn update_phys(&self, tx: &txg::Tx, change: impl FnOnce(&mut ObjsetPhys)) {
        change(&mut lock(&self.0.phys));
        self.touch(tx.txg());
    }

    /// The pointer to the root block as of the last sync.
    pub fn root(&self) -> BlockPointer {
        lock(&self.0.root).clone()
    }

    /// How many objects there are now, in open txgs too.
    pub fn objects(&self) -> u64 {
        self.0.objects.load(Ordering::Relaxed)
    }

    pub fn store(&self) -> &Arc<dyn BlockStore> {
        &self.0.shared.store
    }

    pub fn policy(&self) -> Policy {
        self.0.shared.policy()
    }

    /// The policy's word on requests past the cache.
    pub fn direct(&self) -> Direct {
        self.0.shared.direct()
    }

    /// After how many bytes in order a client's blocks are to be written behind it.
    pub fn behind_from(&self) -> u64 {
        self.0.shared.behind_from()
    }

    /// Blocks written from now on follow `policy`.
    pub fn set_policy(&self, policy: Policy) {
        self.0.shared.set_policy(policy);
    }

    pub fn is_dirty(&self, txg: Txg) -> bool {
        self.0.shared.is_dirty(txg)
    }

    /// The set is destroyed, or another takes its place: what handles of it change from now on is an error, as no sync comes
    /// for it, and what they have changed is forgotten. So is what they read of the devices, where others write by now.
    pub fn end(&self) {
        self.0.shared.end();
    }

    /// Whether this handle is the last one, no object of the set is in use, and nothing waits to be written: then the set
    /// can be closed, and the next opener finds the same.
    pub fn is_idle(&self) -> bool {
        let (set, shared) = (&self.0, &self.0.shared);
        if Arc::strong_count(set) > 1 || shared.is_dirty_at_all() {
            return false;
        }
        // It may hold objects of the set. Files are changed through a handle of the set, and a caller that opens one to
        // change them brings another user accounting.
        drop(lock(&set.user_accounting).take());
        // What a handle did before it went is seen: it may have made an object of its own, or something dirty.
        fence(Ordering::Acquire);
        let accounts = set.accounts.iter().filter_map(OnceLock::get);
        let own: Vec<&Object> = std::iter::once(&set.meta).chain(accounts).collect();
        let is_unused = own.iter().all(|object| Arc::strong_count(&object.node) == 1)
            && Arc::strong_count(shared) == 1 + own.len();
        fence(Ordering::Acquire);
        is_unused && !shared.is_dirty_at_all()
    }

    /// Makes sure that `txg` writes the root block.
    fn touch(&self, txg: Txg) {
        self.0.shared.list_dirty(&self.0.meta.node, txg);
    }

    /// The meta-dnode as an object: its data are the dnodes.
    pub fn meta_dnode(&self) -> &Object {
        &self.0.meta
    }

    /// From now on what changes is counted by `user_accounting`, if the object set keeps such sums.
    pub fn set_user_accounting(&self, user_accounting: Arc<dyn UserAccounting>) {
        *lock(&self.0.user_accounting) = Some(user_accounting);
    }

    /// The object that has the sums of users, groups or projects.
    pub fn accounting_object(&self, account: Account) -> Option<&Object> {
        self.0.accounts[account as usize].get()
    }

    /// Makes the object that will have the sums of users, groups or projects, where there is none yet.
    pub fn make_accounting_object(&self, tx: &txg::Tx, account: Account) -> Result<&Object> {
        let place = &self.0.accounts[account as usize];
        if let Some(object) = place.get() {
            return Ok(object);
        }
        let attrs = crate::NewObject::new(ObjectType::USERGROUP_USED, 512).attrs();
        let tree = Tree::empty(attrs.roots, attrs.indirect_shift);
        let node = Node::new(account.id(), self.0.shared.clone(), attrs, [].into(), tree);
        let object = place.get_or_init(|| Object { node });
        object.node.lock().dirty_record_mut(&object.node, tx)?.0.created = true;
        object.account(tx, true, 0, 0);
        Ok(object)
    }

    /// Has the sync tell the [`crate::BlockAccounting`] that readers must know this feature.
    pub fn use_feature(&self, tx: &txg::Tx, feature: Feature) {
        {
            let mut features = lock(&self.0.features);
            if !features.contains(&feature) {
                features.push(feature);
            }
        }
        self.touch(tx.txg());
    }

    /// Opens an object.
    pub async fn object(&self, id: ObjectId) -> Result<Object> {
        let missing = || Error::new(Kind::NotFound, "open object").at(format!("{}:{:x}", self.id(), id.0));
        loop {
            if let Some(node) = self.open_node(id) {
                return if node.lock().freed_in.is_some() { Err(missing()) } else { Ok(Object { node }) };
            }
            let before = self.dnode_changes();
            let phys = self.dnode_phys(id).await?;
            let mut open = lock(&self.0.open);
            // Another task may have opened, changed and left it while we read.
            if open.changes != before {
                continue;
            }
            let phys = phys.ok_or_else(missing)?;
            let node = open.adopt(Node::from_phys(id, self.0.shared.clone(), &phys));
            return Ok(Object { node });
        }
    }

    pub(crate) fn open_node(&self, id: ObjectId) -> Option<Arc<Node>> {
        lock(&self.0.open).nodes.get(&id).and_then(Weak::upgrade)
    }

    /// How often dnodes have changed in the meta-dnode's blocks.
    pub(crate) fn dnode_changes(&self) -> u64 {
        lock(&self.0.open).changes
    }

    /// Registers a node that was just made; if another task was faster, its node is the one.
    pub(crate) fn adopt(&self, node: Arc<Node>) -> Arc<Node> {
        lock(&self.0.open).adopt(node)
    }

    /// The meta-dnode's blocks have the new dnode of `id`, which is still held by the caller.
    pub(crate) fn note_dnode(&self, id: ObjectId, is_destroyed: bool) {
        let mut open = lock(&self.0.open);
        open.changes += 1;
        if is_destroyed {
            open.nodes.remove(&id);
        }
    }

    pub(crate) fn meta(&self) -> &Object {
        &self.0.meta
    }

    /// The meta-dnode's blocks that have those of these objects which are not open.
    pub(crate) fn closed_dnode_blocks(&self, ids: impl IntoIterator<Item = ObjectId>) -> BTreeSet<u64> {
        let attrs = self.0.meta.attrs();
        let per_block = u64::from(attrs.block_size) / SLOT;
        let open = lock(&self.0.open);
        let is_closed = |id: &ObjectId| open.nodes.get(id).is_none_or(|node| node.strong_count() == 0);
        let blocks = ids.into_iter().filter(is_closed).map(|id| id.0 / per_block);
        blocks.filter(|blkid| *blkid <= attrs.max_blkid).collect()
    }

    /// The dnode of `id` as the meta-dnode's blocks have it: `None` when its slot is free.
    pub async fn dnode_phys(&self, id: ObjectId) -> Result<Option<DnodePhys>> {
        let place = || format!("dnode {}:{:x}", self.id(), id.0);
        let attrs = self.0.meta.attrs();
        let per_block = u64::from(attrs.block_size) / SLOT;
        let blkid = id.0 / per_block;
        if id.0 == 0 || blkid > attrs.max_blkid {
            return Ok(None);
        }
        let block = self.0.meta.read_block(blkid).await?;
        if !is_first_slot(&block, (id.0 % per_block) as usize) {
            return Ok(None);
        }
        let at = ((id.0 % per_block) * SLOT) as usize;
        let bytes =
            block.get(at..).ok_or_else(|| Error::corrupt("block of dnodes is too short").at(place()))?;
        let phys = DnodePhys::from_bytes(bytes, self.endian()).map_err(|e| e.at(place()))?;
        Ok((phys.kind != ObjectType::NONE).then_some(phys))
    }

    /// The byte order in which this object set's own structures were last written.
    ///
    /// Each block says its order in its pointer; a set that another machine wrote is turned over block by block when
    /// we write it, and `read_block` hands dnode blocks out in our order.
    fn endian(&self) -> units::Endian {
        units::Endian::NATIVE
    }

    /// Every allocated object number from `from` on, at most `limit` of them, in order. Objects of txgs that have not
    /// synced are not seen.
    pub async fn object_ids(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let attrs = self.0.meta.attrs();
        let per_block = u64::from(attrs.block_size) / SLOT;
        let mut found = Vec::new();
        let mut id = from.0.max(1);
        while id / per_block <= attrs.max_blkid && found.len() < limit {
            let blkid = id / per_block;
            let Some(block) = self.0.meta.read_block_if_any(blkid).await? else {
                // A hole high up in the tree answers for all blocks below it.
                let (_, next) = self.0.meta.extent(blkid).await?;
                id = next.max(blkid + 1).saturating_mul(per_block);
                continue;
            };
            while id / per_block == blkid && found.len() < limit {
                let at = ((id % per_block) * SLOT) as usize;
                let (kind, extra) = (block[at], block[at + 12]);
                if kind != 0 {
                    found.push(ObjectId(id));
                }
                id += 1 + if kind != 0 { u64::from(extra) } else { 0 };
            }
        }
        Ok(found)
    }
}

impl Opened {
    fn adopt(&mut self, node: Arc<Node>) -> Arc<Node> {
        let nodes = &mut self.nodes;
        if let Some(other) = nodes.get(&node.id).and_then(Weak::upgrade) {
            return other;
        }
        if nodes.len() >= 1024 && nodes.len() == nodes.capacity() {
            nodes.retain(|_, weak| weak.strong_count() > 0);
        }
        nodes.insert(node.id, Arc::downgrade(&node));
        node
    }
}

impl std::fmt::Debug for ObjSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjSet({})", self.id())
    }
}

impl Node {
    /// Gives an object that has no block yet a tree of `levels`.
    pub(crate) fn deepen(&self, levels: u8) {
        let mut state = self.lock();
        let mut tree = Tree::empty(state.attrs.roots, state.attrs.indirect_shift);
        tree.levels = levels;
        state.replace_tree(tree);
    }
}

/// Whether a dnode may begin at this slot: the further slots of large dnodes hold what users wrote, and a caller that asks
/// for an object by a number from outside must not get that as a dnode.
fn is_first_slot(block: &[u8], slot: usize) -> bool {
    let mut at = 0;
    while at < slot {
        let bytes = &block[at * SLOT as usize..];
        at += 1 + if bytes[0] == 0 { 0 } else { usize::from(bytes[12]) };
    }
    at == slot
}

fn account_dnode(phys: &ObjsetPhys, account: Account) -> &DnodePhys {
    match account {
        Account::User => &phys.user_used,
        Account::Group => &phys.group_used,
        Account::Project => &phys.project_used,
    }
}

/// Indirect blocks of 16K, as ZFS made them first; OpenZFS makes them of 128K. A txg changes one pointer in a few of them,
/// and each of these is compressed and written in each pass. Of a new dataset six are written, and kept in memory.
const META_INDIRECT_SHIFT: u8 = 14;

/// As deep as is needed for all object numbers that the format has, which are of 48 bits.
const META_LEVELS: u8 = 7;

/// The meta-dnode of an empty set.
fn meta_dnode() -> DnodePhys {
    DnodePhys {
        kind: ObjectType::DNODE,
        indirect_shift: META_INDIRECT_SHIFT,
        levels: 1,
        flags: DnodeFlags::USED_BYTES,
        data_block_sectors: (u64::from(DNODE_BLOCK) / SLOT) as u16,
        blkptrs: vec![BlockPointer::HOLE; 3],
        ..DnodePhys::free()
    }
}
