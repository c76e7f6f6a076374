//! How much users, groups and projects may take.
//!
//! ```text
//!   master node ── userquota@, groupobjquota@, … ──▶ ZAP: number in hexadecimal → bytes, or objects
//! ```
//!
//! They are held against the sums as of the last sync, as OpenZFS does: what the open txgs take on top of them is let
//! through. Who is at the limit or beyond it can read, remove and truncate, but gets nothing new.

use crate::MASTER_NODE;
use crate::file_system::FileSystem;
use crate::refusal::Refusal;
use dmu::{Account, NewObject, ObjSet, Owner, Tx};
use ondisk::ObjectType;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Error, ObjectId, Result};
use zap::Zap;

/// What a quota limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Bytes, dnodes included.
    Space = 0,
    /// Files, directories and extended attributes that are files.
    Objects = 1,
}

impl Resource {
    pub const ALL: [Resource; 2] = [Resource::Space, Resource::Objects];
}

type Limits = BTreeMap<(Account, Resource, u64), u64>;

/// Those of a file system that is open for writing, so that a file system without any does not pay for them.
#[derive(Debug, Default)]
pub(crate) struct Quotas(Mutex<Limits>);

impl Quotas {
    /// Reads all of them.
    pub async fn open(set: &ObjSet) -> Result<Quotas> {
        let mut limits = Limits::new();
        for account in Account::ALL {
            for resource in Resource::ALL {
                let listed = list(set, account, resource).await?;
                limits.extend(listed.into_iter().map(|(id, limit)| ((account, resource, id), limit)));
            }
        }
        Ok(Quotas(Mutex::new(limits)))
    }

    fn lock(&self) -> MutexGuard<'_, Limits> {
        // Under this lock there is a lookup, an insert or a remove.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The master node's name of the table of limits.
fn table_name(account: Account, resource: Resource) -> &'static str {
    match (account, resource) {
        (Account::User, Resource::Space) => "userquota@",
        (Account::Group, Resource::Space) => "groupquota@",
        (Account::Project, Resource::Space) => "projectquota@",
        (Account::User, Resource::Objects) => "userobjquota@",
        (Account::Group, Resource::Objects) => "groupobjquota@",
        (Account::Project, Resource::Objects) => "projectobjquota@",
    }
}

async fn list(set: &ObjSet, account: Account, resource: Resource) -> Result<Vec<(u64, u64)>> {
    let name = table_name(account, resource);
    let master = Zap::open(set.object(MASTER_NODE).await?);
    let Some(table) = master.lookup_u64(name).await? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in Zap::open(set.object(ObjectId(table)).await?).entries().await? {
        let key = entry.name().into_owned();
        // With a dash it is the number of a user of another system's domain, who owns nothing here.
        if key.contains('-') {
            continue;
        }
        let odd = || Error::corrupt(format!("{name}{key}: {:?}", entry.value));
        let id = u64::from_str_radix(&key, 16).map_err(|_| odd())?;
        found.push((id, entry.value.as_u64().ok_or_else(odd)?));
    }
    found.sort_unstable();
    Ok(found)
}

impl FileSystem {
    /// The quotas of users, groups or projects, sorted by number.
    pub async fn quotas(&self, account: Account, resource: Resource) -> Result<Vec<(u64, u64)>> {
        match &self.0.writer {
            Some(writer) => {
                let from = (account, resource, 0)..=(account, resource, u64::MAX);
                Ok(writer.quotas.lock().range(from).map(|((.., id), limit)| (*id, *limit)).collect())
            }
            None => {
                let place = |e: Error| e.at(format!("dataset '{}'", self.name()));
                list(self.object_set(), account, resource).await.map_err(place)
            }
        }
    }

    /// Limits what a user, group or project may take; `None` takes the limit away.
    pub async fn set_quota(
        &self,
        account: Account,
        resource: Resource,
        id: u64,
        limit: Option<u64>,
    ) -> Result<()> {
        let writer = self.writer()?;
        let counts = crate::file_system::accounts::counts(self.object_set(), account, resource);
        if !counts {
            let what = format!("the file system does not count {}", table_name(account, resource));
            return Err(Error::unsupported(what.trim_end_matches("quota@")));
        }
        let limit = limit.filter(|limit| *limit != 0);
        // One at a time, so that the table is made once.
        let _names = self.0.names.lock().await;
        let tx = self.begin_freeing().await?;
        let table = self.quota_table(&tx, account, resource).await?;
        let key = format!("{id:x}");
        match limit {
            Some(limit) => {
                table.update(&tx, &key, limit).await?;
                writer.quotas.lock().insert((account, resource, id), limit);
            }
            None => {
                if table.contains(&key).await? {
                    table.remove(&tx, &key).await?;
                }
                writer.quotas.lock().remove(&(account, resource, id));
            }
        }
        Ok(())
    }

    async fn quota_table(&self, tx: &Tx, account: Account, resource: Resource) -> Result<Zap<dmu::Object>> {
        let set = self.object_set();
        let master = Zap::open(set.object(MASTER_NODE).await?);
        let name = table_name(account, resource);
        if let Some(table) = master.lookup_u64(name).await? {
            return Ok(Zap::open(set.object(ObjectId(table)).await?));
        }
        let new = NewObject::new(ObjectType::USERGROUP_QUOTA, 512);
        let table = Zap::create(set, tx, new, zap::Options::default()).await?;
        master.insert(tx, name, table.blocks().id().0).await?;
        Ok(table)
    }

    /// Refuses what would take more, when the owner or his group or project is at the limit.
    pub(crate) async fn check_quota(&self, owner: Owner, of: &[Resource], doing: &str) -> Result<()> {
        let (Some(writer), Some(accounts)) = (&self.0.writer, &self.0.accounts) else { return Ok(()) };
        if writer.replaying_in().is_some() {
            return Ok(());
        }
        let defaults = self.settings().default_quotas;
        for (account, id) in
            [(Account::User, owner.user), (Account::Group, owner.group), (Account::Project, owner.project)]
        {
            for &resource in of {
                let own = writer.quotas.lock().get(&(account, resource, id)).copied();
                let limit = own.unwrap_or(defaults[resource as usize][account as usize]);
                if limit == 0 {
                    continue;
                }
                let key = match resource {
                    Resource::Space => format!("{id:x}"),
                    Resource::Objects => format!("obj-{id:x}"),
                };
                let used = accounts.used(self.object_set(), account, &key).await?;
                if used.is_some_and(|used| used >= limit) {
                    let at = format!("dataset '{}' {}{id}", self.name(), table_name(account, resource));
                    return Err(Refusal::OverQuota.when(doing).at(at));
                }
            }
        }
        Ok(())
    }
}
