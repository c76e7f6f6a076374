//! Opening file systems, and letting those that are open follow the properties of their datasets.
//!
//! A file system is changed by one handle and its clones; another opener for writing gets a clone of that one.
//!
//! ```text
//!   open_file_system_for_writing ─▶ open already? its handle : FileSystem with Settings from properties and features
//!   change (zfs set, inherit, rename …) done ─▶ follow_properties ─▶ Settings anew of each open one that it touched
//! ```

use crate::pool::{Pool, lock};
use dsl::props::Prop;
use dsl::props::effective::Chain;
use dsl::props::write::{DnodeSize, PoolCan, WritePolicy};
use dsl::{Dataset, Dsl, Found};
use ondisk::{Feature, ObjsetType};
use std::collections::{BTreeMap, BTreeSet};
use tunables::{Tunable, Tunables};
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Boxed;
use zpl::{
    Accounting, AclInherit, AclMode, AclType, Atime, FileSystem, Settings, WeakFileSystem, WriteOptions,
    Xattrs,
};

/// What `dnodesize=auto` is, in bytes: room for what is usual in extended attributes.
const AUTO_DNODE: u16 = 1024;

impl Pool {
    /// Opens a file system, or a snapshot of one, for reading.
    pub fn open_file_system<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<FileSystem>> {
        Box::pin(async move {
            let dataset = self.0.dsl.open_by_name(name).await?;
            check_kind(&dataset, name)?;
            FileSystem::open(name, dataset.objset()).await
        })
    }

    /// Opens a file system to be changed.
    pub fn open_file_system_for_writing<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<FileSystem>> {
        Box::pin(async move {
            let (found, dataset) = self.0.dsl.find_and_open(name).await?;
            let set = dataset.objset();
            let refuse = |kind| Error::new(kind, format!("open file system '{name}'"));
            check_kind(&dataset, name)?;
            if self.0.read_only || dataset.is_snapshot() {
                return Err(refuse(Kind::ReadOnly));
            }
            if set.phys().zil_header.claim_txg != Txg::NONE {
                let why = "its intent log holds writes that could not be replayed";
                return Err(refuse(Kind::Busy).because(why));
            }
            let _turn = self.0.opening.lock().await;
            if let Some(open) = self.opened_file_system(found.id) {
                return Ok(open);
            }
            let mut options = self.write_options(&found, &dataset).await?;
            options.log = self.intent_log_of(&dataset);
            let fs = FileSystem::open_for_writing(name, set, options).await?;
            lock(&self.0.file_systems).insert(found.id, fs.downgrade());
            Ok(fs)
        })
    }

    /// What writing to a file system goes by.
    pub(crate) async fn write_options(&self, found: &Found, dataset: &Dataset) -> Result<WriteOptions> {
        let levels = self.0.dsl.levels_of(found).await?;
        let settings = self.settings(&levels.chain());
        let core = self.0.dsl.core();
        let active = core.active_in(&core.dataset(found.id).await?.0).await?;
        Ok(WriteOptions {
            txgs: self.0.txgs.clone(),
            space_reservation: Some(dataset.space_reservation().clone()),
            settings,
            log: None,
            has_logged_xattrs: active.contains(&Feature::ZilSaXattr),
        })
    }

    /// To look at what a file system says of itself: as its openers see it, or as it is on disk.
    pub fn look_at_file_system<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<FileSystem>> {
        Box::pin(async move {
            let found = self.0.dsl.find(name).await?;
            match self.opened_file_system(found.id) {
                Some(open) => Ok(open),
                None => self.open_file_system(name).await,
            }
        })
    }

    fn opened_file_system(&self, id: ObjectId) -> Option<FileSystem> {
        let mut all = lock(&self.0.file_systems);
        all.retain(|_, fs| fs.upgrade().is_some());
        all.get(&id).and_then(WeakFileSystem::upgrade)
    }

    /// Lets the file systems that are open for writing follow their properties: those at and below what was touched since
    /// the last time. A caller that comes while another does so waits, so that what it has set is in force.
    pub(crate) async fn follow_properties(&self) {
        let mut followed = self.0.followed.lock().await;
        let open: BTreeMap<ObjectId, FileSystem> = {
            let mut all = lock(&self.0.file_systems);
            all.retain(|_, fs| fs.upgrade().is_some());
            all.iter().filter_map(|(id, fs)| Some((*id, fs.upgrade()?))).collect()
        };
        if open.is_empty() || self.0.dsl.touched_since(*followed).1.is_some_and(|touched| touched.is_empty())
        {
            return;
        }
        let _reading = self.reading().await;
        let (now, touched) = self.0.dsl.touched_since(*followed);
        let tops: BTreeSet<String> = match touched {
            Some(touched) => touched.into_iter().map(|touch| touch.name).collect(),
            None => BTreeSet::from([self.0.dsl.pool_name()]),
        };
        for top in tops {
            match self.0.dsl.heads_below(&top).await {
                Ok(heads) => {
                    for (fs, name) in heads.iter().filter_map(|(id, name)| Some((open.get(id)?, name))) {
                        if let Err(e) = self.follow(name, fs).await {
                            self.not_in_force(name, &e);
                        }
                    }
                }
                // It has gone, or has another name by now.
                Err(e) if e.kind() == Kind::NotFound => {}
                Err(e) => self.not_in_force(&top, &e),
            }
        }
        *followed = Some(now);
    }

    fn not_in_force(&self, name: &str, why: &Error) {
        self.0.note_problem(format!("properties of '{name}' are not in force: {why}"));
    }

    async fn follow(&self, name: &str, fs: &FileSystem) -> Result<()> {
        let levels = self.0.dsl.levels_of(&self.0.dsl.find(name).await?).await?;
        fs.set_settings(self.settings(&levels.chain()))
    }

    fn settings(&self, chain: &Chain<'_>) -> Settings {
        let features = self.0.dsl.features();
        let n = |prop| chain.number(prop);
        let policy = WritePolicy::of(chain, PoolCan { lz4: true });
        let dnode_size = match policy.dnode_size {
            _ if !features.is_enabled(Feature::LargeDnode) => 512,
            DnodeSize::Legacy => 512,
            DnodeSize::Auto => AUTO_DNODE,
            DnodeSize::Bytes(n) => n,
        };
        let quotas = |props: [Prop; 3]| props.map(n);
        Settings {
            record_size: policy.record_size,
            xattr: match n(Prop::Xattr) {
                0 => Xattrs::Off,
                1 => Xattrs::Directory,
                _ => Xattrs::Attribute,
            },
            dnode_size,
            indirect_shift: default_indirect_shift(&self.0.tunables),
            logs_xattrs: features.is_enabled(Feature::ZilSaXattr),
            long_names: n(Prop::LongName) != 0 && features.is_enabled(Feature::Longname),
            atime: match (n(Prop::Atime), n(Prop::Relatime)) {
                (0, _) => Atime::Off,
                (_, 0) => Atime::On,
                _ => Atime::Relative,
            },
            acl_type: match n(Prop::AclType) {
                1 => AclType::Posix,
                2 => AclType::Nfs4,
                _ => AclType::Off,
            },
            acl_mode: match n(Prop::AclMode) {
                2 => AclMode::GroupMask,
                3 => AclMode::Passthrough,
                4 => AclMode::Restricted,
                _ => AclMode::Discard,
            },
            acl_inherit: match n(Prop::AclInherit) {
                0 => AclInherit::Discard,
                1 => AclInherit::NoAllow,
                3 => AclInherit::Passthrough,
                5 => AclInherit::PassthroughExecute,
                _ => AclInherit::Restricted,
            },
            default_quotas: [
                quotas([Prop::DefaultUserQuota, Prop::DefaultGroupQuota, Prop::DefaultProjectQuota]),
                quotas([Prop::DefaultUserObjQuota, Prop::DefaultGroupObjQuota, Prop::DefaultProjectObjQuota]),
            ],
        }
    }
}

/// `zfs_default_ibs`.
pub(crate) fn default_indirect_shift(tunables: &Tunables) -> u8 {
    tunables.get(Tunable::DefaultIndirectShift) as u8
}

/// What a new file system counts, by what the pool can.
pub(crate) fn accounting(dsl: &Dsl) -> Accounting {
    let has = |feature| dsl.features().is_enabled(feature);
    match has(Feature::UserobjAccounting) {
        true if has(Feature::ProjectQuota) => Accounting::Projects,
        true => Accounting::Objects,
        false => Accounting::Space,
    }
}

fn check_kind(dataset: &Dataset, name: &str) -> Result<()> {
    if dataset.objset().kind() != ObjsetType::Zfs {
        return Err(Error::invalid(format!("'{name}' is not a file system")));
    }
    if dataset.is_encrypted() {
        return Err(Error::new(Kind::Encrypted, format!("open file system '{name}'")));
    }
    Ok(())
}
