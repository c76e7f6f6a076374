//! What each user, group and project takes.
//!
//! Three ZAPs have the sums: `3e8` is the bytes of user 1000, dnodes included, `obj-3e8` how many files he has. They
//! change as a txg syncs, with the files that it changes; whose a file is, its attributes say.

use crate::file_system::FileSystem;
use crate::sa::{Attr, Attributes, Tables};
use crate::stat::flags;
use dmu::{Account, Census, ObjSet, Owner, Sums, Tx};
use ondisk::ObjectType;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use units::{Error, Result};
use zap::Zap;

/// Keeps the sums of one file system.
#[derive(Debug)]
pub struct Accounts {
    tables: Arc<Tables>,
}

impl Accounts {
    pub fn new(tables: Arc<Tables>) -> Accounts {
        Accounts { tables }
    }
}

impl Census for Accounts {
    fn owner(&self, kind: ObjectType, bonus: &[u8]) -> Option<Owner> {
        let attributes = match kind {
            ObjectType::SA => Attributes::decode(bonus, &self.tables).ok()?,
            ObjectType::ZNODE => Attributes::decode_znode(bonus).ok()?,
            _ => return None,
        };
        let word = |attr| attributes.word(attr).ok().flatten();
        let has_project = word(Attr::Flags)? & flags::PROJID != 0;
        let project = if has_project { word(Attr::Projid).unwrap_or(0) } else { 0 };
        Some(Owner { user: word(Attr::Uid)?, group: word(Attr::Gid)?, project })
    }

    fn settle<'a>(
        &'a self,
        set: &'a ObjSet,
        tx: &'a Tx,
        sums: Sums,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
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
