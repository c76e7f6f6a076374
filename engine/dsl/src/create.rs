//! Making datasets: directories, heads, and new file systems and volumes.

use std::sync::Arc;

use dmu::{NewObject, ObjSet, Tx};
use ondisk::mos::directory;
use ondisk::{Feature, ObjectType, ObjsetType};
use units::{Error, Guid, Kind, ObjectId, ObjsetId, Result};
use world::Boxed;
use zap::{Normalization, Options};

use crate::core::{Core, versions};
use crate::counts;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::dsl::dataset::Dataset;
use crate::name;
use crate::phys::{DatasetPhys, DirPhys};
use crate::props::{PropName, Value};
use crate::space::Reach;
use crate::zaps;

/// Blocks of the MOS that a new dataset takes: its directory, itself, their tables, a deadlist, history.
pub(crate) const CREATED: u64 = 5;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct NewDataset<'a> {
    pub name: &'a str,
    pub kind: ObjsetType,
    /// Properties to be set on it, checked already ([`crate::props::parse_setting`]).
    pub props: &'a [(PropName, Value)],
}

impl Core {
    /// Makes a directory with nothing in it. Without a parent it is the pool's.
    pub(crate) async fn make_dir(
        &self,
        tx: &Tx,
        parent: Option<(ObjectId, &str)>,
        now: u64,
    ) -> Result<ObjectId> {
        let props = zaps::create(self.mos(), tx, ObjectType::DSL_PROPS).await?;
        let children = zaps::create(self.mos(), tx, ObjectType::DSL_DIR_CHILD_MAP).await?;
        let mut phys = DirPhys {
            creation_time: now,
            parent: parent.map_or(ObjectId(0), |(id, _)| id),
            props: props.blocks().id(),
            children: children.blocks().id(),
            ..DirPhys::default()
        };
        if self.version() >= versions::USED_BREAKDOWN {
            phys.space.breakdown = Some([0; 5]);
        }
        let new = NewObject::new(ObjectType::DSL_DIR, 512).with_bonus(ObjectType::DSL_DIR, phys.encode());
        let id = self.mos().allocate(tx, new).await?.id();
        match parent {
            Some((parent, name)) => {
                let (_, parent) = self.dir(parent).await?;
                self.table(parent.children).await?.insert(tx, name, id.0).await?;
            }
            None => self.directory().insert(tx, directory::ROOT_DATASET, id.0).await?,
        }
        Ok(id)
    }

    /// Makes the head dataset of a directory that has none. It starts with what the snapshot `origin` has: nothing,
    /// if that is the pool's `$ORIGIN`.
    pub(crate) async fn make_head(
        &self,
        tx: &Tx,
        dir: ObjectId,
        origin: Option<ObjectId>,
        now: u64,
    ) -> Result<ObjectId> {
        let snapnames = NewObject::new(ObjectType::DSL_DS_SNAP_MAP, 512);
        let options = Options { normalization: Normalization::UPPER, ..Options::default() };
        let snapnames = zaps::create_with(self.mos(), tx, snapnames, options).await?;
        let mut phys = DatasetPhys {
            dir,
            fsid: random_fsid(),
            guid: Guid(world::random_u64()),
            snapnames: snapnames.blocks().id(),
            creation_time: now,
            creation_txg: Dsl::creation_txg(tx),
            ..DatasetPhys::default()
        };
        if self.version() >= versions::UNIQUE_ACCURATE {
            phys.flags |= DatasetPhys::UNIQUE_ACCURATE;
        }
        let new = NewObject::new(ObjectType::DSL_DATASET, 512);
        let new = new.with_bonus(ObjectType::DSL_DATASET, phys.encode());
        let object = self.mos().allocate(tx, new).await?;
        match origin {
            Some(origin) => {
                self.descend(tx, &mut phys, object.id(), origin).await?;
                let (origin, _) = self.dataset(origin).await?;
                for feature in self.active_in(&origin).await? {
                    self.activate(tx, &object, feature).await?;
                }
            }
            None => phys.deadlist = Deadlist::create(self, tx).await?.id(),
        }
        object.set_bonus(tx, phys.encode())?;
        self.update_dir(tx, dir, |dir| {
            dir.head = object.id();
            dir.origin = origin.unwrap_or(ObjectId(0));
        })
        .await?;
        Ok(object.id())
    }

    /// Makes a new head the successor of a snapshot, and lists it as such.
    async fn descend(&self, tx: &Tx, phys: &mut DatasetPhys, id: ObjectId, origin: ObjectId) -> Result<()> {
        let (origin_object, mut from) = self.dataset(origin).await?;
        phys.prev_snap = origin;
        phys.prev_snap_txg = from.creation_txg;
        phys.referenced = from.referenced;
        phys.compressed = from.compressed;
        phys.uncompressed = from.uncompressed;
        phys.bp = from.bp.clone();
        phys.flags |= from.flags & (DatasetPhys::INCONSISTENT | DatasetPhys::CASE_INSENSITIVE);
        let (_, from_dir) = self.dir(from.dir).await?;
        let (_, from_head) = self.dataset(from_dir.head).await?;
        let deadlist = Deadlist::open(self, from_head.deadlist).await?;
        phys.deadlist = deadlist.clone_keys(self, tx, phys.prev_snap_txg).await?.id();
        // A count from disk may be at its end: then the snapshot is one that always has clones.
        from.num_children = from.num_children.saturating_add(1);
        if self.version() >= versions::NEXT_CLONES {
            from.next_clones = self.add_to_set(tx, from.next_clones, ObjectType::NEXT_CLONES, id).await?;
        }
        origin_object.set_bonus(tx, from.encode())?;
        if self.version() >= versions::DIR_CLONES {
            let clones = self.add_to_set(tx, from_dir.clones, ObjectType::DSL_CLONES, id).await?;
            self.update_dir(tx, from.dir, |dir| dir.clones = clones).await?;
        }
        Ok(())
    }

    /// Adds a number to a set that is made when it is first needed; answers where it is.
    pub(crate) async fn add_to_set(
        &self,
        tx: &Tx,
        set: ObjectId,
        kind: ObjectType,
        member: ObjectId,
    ) -> Result<ObjectId> {
        let table = match set.some() {
            Some(id) => self.table(id).await?,
            None => zaps::create(self.mos(), tx, kind).await?,
        };
        zaps::add_number(&table, tx, member.0).await?;
        Ok(table.blocks().id())
    }
}

/// 56 random bits: what a file system is known by to those who mount it.
pub(crate) fn random_fsid() -> u64 {
    (world::random_u64() >> 8).max(1)
}

impl Dsl {
    /// Checks all that can be checked of a new dataset before a txg is begun for it, and again within it.
    pub async fn check_create(&self, new: &NewDataset<'_>) -> Result<()> {
        name::check_dataset(new.name)?;
        let doing = || format!("create dataset '{}'", new.name);
        if self.find_dir(new.name).await.is_ok() {
            return Err(Error::new(Kind::Exists, doing()));
        }
        let Some((parent_name, _)) = name::split_parent(new.name) else {
            return Err(Error::invalid(format!("'{}': a pool is made with 'zpool create'", new.name)));
        };
        let parent = self.find(parent_name).await.map_err(|e| {
            if e.kind() == Kind::NotFound {
                return Error::new(Kind::NotFound, doing())
                    .because("parent does not exist; use -p to make it");
            }
            e
        })?;
        if self.objset_type(&parent).await? != ObjsetType::Zfs {
            return Err(Error::invalid(format!("{}: parent is not a filesystem", doing())));
        }
        if self.is_encrypted(parent.dir_id).await? {
            return Err(Error::unsupported(format!("{}: encrypted datasets cannot be made yet", doing())));
        }
        for (prop, value) in new.props {
            self.check_features(prop, value)?;
        }
        if self.available_in(parent.dir_id).await? == 0 {
            return Err(Error::new(Kind::NoSpace, doing()));
        }
        Ok(())
    }

    /// Makes a dataset. Its object set is open, empty and dirty: the caller fills it in the same txg, which the next
    /// pass then writes.
    pub fn create<'a>(&'a self, tx: &'a Tx, new: &'a NewDataset<'a>) -> Boxed<'a, Result<Arc<Dataset>>> {
        Box::pin(async move {
            self.check_create(new).await?;
            self.admit(Reach::Normal, CREATED, || format!("create dataset '{}'", new.name)).await?;
            let (parent_name, last) = name::split_parent(new.name).expect("checked: it has a parent");
            let (parent, _) = self.find_dir(parent_name).await?;
            let dir = self.core.make_dir(tx, Some((parent, last)), self.now()).await?;
            let id = self.core.make_head(tx, dir, self.origin, self.now()).await?;
            self.start_counts(tx, dir).await?;
            self.adjust_count(tx, parent, counts::FILESYSTEMS, 1).await?;
            for (prop, value) in new.props {
                self.store_setting(tx, dir, prop, value).await?;
            }
            let dataset = self.empty_objset(tx, id, new.kind).await?;
            self.touch(new.name, None);
            self.record_event(tx, "create", " ", Some((new.name, id))).await?;
            Ok(dataset)
        })
    }

    /// Gives a head dataset that has no contents a new object set.
    pub(crate) async fn empty_objset(&self, tx: &Tx, id: ObjectId, kind: ObjsetType) -> Result<Arc<Dataset>> {
        let (_, phys) = self.core.dataset(id).await?;
        let policy = self.policy_of(phys.dir).await?;
        let objset = ObjSet::create(self.core.store().clone(), ObjsetId(id.0), kind, policy, tx.txg());
        Ok(self.adopt(id, &phys, objset, false))
    }

    /// Refuses values that need a feature which the pool does not have, or this program cannot write.
    pub fn check_features(&self, prop: &PropName, value: &Value) -> Result<()> {
        use crate::props::Prop;
        let (PropName::Native(prop), Some(n)) = (prop, value.number()) else { return Ok(()) };
        let needed = match (prop, n) {
            (Prop::Compression, 15) => Feature::Lz4Compress,
            (Prop::Compression, n) if n & 0x7f == 16 => Feature::ZstdCompress,
            (Prop::Checksum, code) => match crate::props::write::feature_of_checksum(code) {
                Some(feature) => feature,
                None => return Ok(()),
            },
            (Prop::RecordSize | Prop::VolBlockSize, n) if n > ondisk::OLD_MAX_BLOCK_SIZE => {
                Feature::LargeBlocks
            }
            (Prop::DnodeSize, 1..) => Feature::LargeDnode,
            (Prop::LongName, 1) => Feature::Longname,
            (Prop::Dedup, n) if n != 2 => {
                return Err(Error::unsupported("'dedup' cannot be switched on yet"));
            }
            (Prop::Encryption, n) if n != crate::props::index::ENCRYPTION_OFF => {
                return Err(Error::unsupported("'encryption' cannot be switched on yet"));
            }
            (Prop::FilesystemLimit | Prop::SnapshotLimit, n) if n != u64::MAX => {
                return Err(Error::unsupported(format!("'{}' cannot be set yet", prop.name())));
            }
            _ => return Ok(()),
        };
        if self.features().is_enabled(needed) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "'{}' needs the feature {}, which is not enabled in this pool",
            prop.name(),
            needed.name()
        )))
    }
}
