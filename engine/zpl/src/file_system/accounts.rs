//! What each user, group and project takes.
//!
//! Three ZAPs have the sums: `3e8` is the bytes of user 1000, dnodes included, `obj-3e8` how many files he has. They
//! change as a txg syncs, with the files that it changes; whose a file is, its attributes say.

use crate::file_system::FileSystem;
use crate::flags;
use crate::quotas::Resource;
use crate::sa::{Attr, Attributes, Tables};
use dmu::{Account, ObjSet, Owner, Sums, Tx, UserAccounting};
use ondisk::{ObjectType, ObjsetFlags};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use units::{Error, Result};
use world::sync::RwLock;
use zap::Zap;

/// Keeps the sums of one file system.
#[derive(Debug)]
pub struct Accounts {
    tables: Arc<Tables>,
    /// A sum is not looked up in the midst of a sync's changes.
    turn: RwLock<()>,
}

impl Accounts {
    pub fn new(tables: Arc<Tables>) -> Accounts {
        Accounts { tables, turn: RwLock::new(()) }
    }

    /// What somebody takes as of the last sync, under `key`; `None` where nobody counts.
    pub async fn used(&self, set: &ObjSet, account: Account, key: &str) -> Result<Option<u64>> {
        let Some(object) = set.accounting_object(account) else { return Ok(None) };
        let _turn = self.turn.read().await;
        Ok(Some(Zap::open(object.clone()).lookup_u64(key).await?.unwrap_or(0)))
    }
}

/// Whom a file with these attributes is charged to.
pub(crate) fn owner_of(attributes: &Attributes) -> Result<Owner> {
    let has_project = attributes.require(Attr::Flags)? & flags::PROJID != 0;
    let project = if has_project { attributes.word(Attr::Projid)?.unwrap_or(0) } else { 0 };
    Ok(Owner { user: attributes.require(Attr::Uid)?, group: attributes.require(Attr::Gid)?, project })
}

impl UserAccounting for Accounts {
    fn owner(&self, kind: ObjectType, bonus: &[u8]) -> Option<Owner> {
        let attributes = match kind {
            ObjectType::SA => Attributes::decode(bonus.into(), &self.tables).ok()?,
            ObjectType::ZNODE => Attributes::decode_znode(bonus).ok()?,
            _ => return None,
        };
        owner_of(&attributes).ok()
    }

    fn settle<'a>(
        &'a self,
        set: &'a ObjSet,
        tx: &'a Tx,
        sums: Sums,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            let _turn = self.turn.write().await;
            for ((account, key), delta) in sums {
                if let Some(object) = set.accounting_object(account) {
                    Zap::open(object.clone()).increment(tx, &key, delta).await?;
                }
            }
            Ok(())
        })
    }
}

impl FileSystem {
    /// The sums of users, groups or projects as of the last txg on disk, sorted: the number, its bytes, and its files when
    /// they are counted. Empty in a file system that keeps none.
    pub async fn space_of(&self, account: Account) -> Result<Vec<(u64, u64, Option<u64>)>> {
        let Some(object) = self.object_set().accounting_object(account) else { return Ok(Vec::new()) };
        let _turn = match &self.0.accounts {
            Some(accounts) => Some(accounts.turn.read().await),
            None => None,
        };
        let mut found: Vec<(u64, u64, Option<u64>)> = Vec::new();
        let zap = Zap::open(object.clone());
        for entry in zap.entries().await? {
            let name = entry.name().into_owned();
            let odd = || Error::corrupt(format!("sum '{name}' of dataset '{}'", self.name()));
            if name.starts_with("obj-") {
                continue;
            }
            let id = u64::from_str_radix(&name, 16).map_err(|_| odd())?;
            let files = zap.lookup_u64(&format!("obj-{name}")).await?;
            found.push((id, entry.value.as_u64().ok_or_else(odd)?, files));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Whether the file system keeps such sums.
pub(crate) fn counts(set: &ObjSet, account: Account, resource: Resource) -> bool {
    let flags = set.flags();
    let objects = resource == Resource::Space || flags.has(ObjsetFlags::USER_OBJECT_ACCOUNTING_COMPLETE);
    let projects = account != Account::Project || flags.has(ObjsetFlags::PROJECT_QUOTA_COMPLETE);
    flags.has(ObjsetFlags::USER_ACCOUNTING_COMPLETE) && objects && projects
}
