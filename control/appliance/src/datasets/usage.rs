//! What everybody takes of a file system, and may take: `zfs userspace` and its kin.

use crate::appliance::Appliance;
use crate::datasets::quotas::name_of;
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{ObjectUsage, Reply, Result, Usage, Whose};
use dsl::props::{Prop, PropName};
use pool::Pool;
use std::collections::BTreeMap;
use zpl::{Account, Resource};

impl Appliance {
    pub(crate) async fn usage(&self, dataset: &str, whose: Whose) -> Result<Reply> {
        let open = self.pool_of(dataset, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let found = usage(&open.pool, dataset, account(whose)).await;
        found.map(Reply::Usage).map_err(|e| cannot(About::Dataset, &format!("open '{dataset}'"), &e))
    }
}

fn account(whose: Whose) -> Account {
    match whose {
        Whose::Users => Account::User,
        Whose::Groups => Account::Group,
        Whose::Projects => Account::Project,
    }
}

async fn usage(pool: &Pool, dataset: &str, account: Account) -> units::Result<Vec<Usage>> {
    let fs = pool.look_at_file_system(dataset).await?;
    let stats = pool.dsl().stats(dataset).await?;
    let default = async |resource| {
        let shown = stats.get(&PropName::Native(default_of(account, resource))).await?;
        Ok::<u64, units::Error>(shown.and_then(|(value, _)| value.number()).unwrap_or(0))
    };
    let defaults = (default(Resource::Space).await?, default(Resource::Objects).await?);
    let mut all: BTreeMap<u64, Usage> = BTreeMap::new();
    let new = |id| Usage { id, name: name_of(account, id), used: 0, quota: defaults.0, objects: None };
    for (id, used, objects) in fs.space_of(account).await? {
        let own = all.entry(id).or_insert_with(|| new(id));
        own.used = used;
        own.objects = objects.map(|used| ObjectUsage { used, quota: defaults.1 });
    }
    for (id, quota) in fs.quotas(account, Resource::Space).await? {
        all.entry(id).or_insert_with(|| new(id)).quota = quota;
    }
    for (id, quota) in fs.quotas(account, Resource::Objects).await? {
        let objects = &mut all.entry(id).or_insert_with(|| new(id)).objects;
        *objects = Some(ObjectUsage { used: objects.map_or(0, |objects| objects.used), quota });
    }
    Ok(all.into_values().collect())
}

fn default_of(account: Account, resource: Resource) -> Prop {
    match (account, resource) {
        (Account::User, Resource::Space) => Prop::DefaultUserQuota,
        (Account::Group, Resource::Space) => Prop::DefaultGroupQuota,
        (Account::Project, Resource::Space) => Prop::DefaultProjectQuota,
        (Account::User, Resource::Objects) => Prop::DefaultUserObjQuota,
        (Account::Group, Resource::Objects) => Prop::DefaultGroupObjQuota,
        (Account::Project, Resource::Objects) => Prop::DefaultProjectObjQuota,
    }
}
