//! What users, groups and projects take and may take: `userused@alice`, `groupquota@1000`, `projectobjquota@7`.
//!
//! They are properties by name only: values are in the file system, under numbers. A name is looked up in the user
//! database of the machine that serves the pool, as `zfs` does; a number stands for itself.

use api::{Property, Source};
use dsl::props::{self, Prop, Types, user};
use pool::Pool;
use units::{Error, Result};
use zpl::Account;
use zpl::Resource;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    account: Account,
    resource: Resource,
    /// Else it is what is taken.
    is_limit: bool,
    id: u64,
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

impl Quota {
    /// Reads a property's name; `None` when it is no such property.
    pub fn parse(name: &str) -> Result<Option<Quota>> {
        if !user::is_quota_property(name) {
            return Ok(None);
        }
        let (family, who) = name.split_once('@').unwrap_or((name, ""));
        let (account, rest) = if let Some(rest) = family.strip_prefix("user") {
            (Account::User, rest)
        } else if let Some(rest) = family.strip_prefix("group") {
            (Account::Group, rest)
        } else {
            (Account::Project, family.trim_start_matches("project"))
        };
        let (resource, rest) = match rest.strip_prefix("obj") {
            Some(rest) => (Resource::Objects, rest),
            None => (Resource::Space, rest),
        };
        let id = number_of(account, who)
            .ok_or_else(|| Error::invalid(format!("invalid property '{name}': '{who}' is nobody here")))?;
        Ok(Some(Quota { account, resource, is_limit: rest == "quota", id }))
    }

    /// Limits what may be taken; 0 and `none` take the limit away.
    pub async fn set(&self, pool: &Pool, dataset: &str, name: &str, text: &str) -> Result<()> {
        let limit = self.limit(name, text)?;
        let fs = pool.open_file_system_for_writing(dataset).await?;
        fs.set_quota(self.account, self.resource, self.id, Some(limit)).await?;
        pool.sync().await
    }

    /// Reads what it is to be set to.
    pub fn limit(&self, name: &str, text: &str) -> Result<u64> {
        if !self.is_limit {
            return Err(Error::invalid(format!("'{name}' is readonly")));
        }
        if text == "0" {
            return Ok(0);
        }
        let value = props::parse_value(Prop::RefQuota.row(), text, Types::FILESYSTEM)?;
        Ok(value.number().unwrap_or(0))
    }

    /// The property with its value; without one where the file system does not count or nothing is set.
    pub async fn property(&self, pool: &Pool, dataset: &str, name: &str) -> Result<Property> {
        let fs = pool.look_at_file_system(dataset).await?;
        let value = if self.is_limit {
            let all = fs.quotas(self.account, self.resource).await?;
            all.into_iter().find(|(id, _)| *id == self.id).map_or(0, |(_, limit)| limit)
        } else {
            let all = fs.space_of(self.account).await?;
            let own = all.into_iter().find(|(id, ..)| *id == self.id);
            own.map_or(0, |(_, bytes, objects)| match self.resource {
                Resource::Space => bytes,
                Resource::Objects => objects.unwrap_or(0),
            })
        };
        let (value, source) = match (self.is_limit, value) {
            (true, 0) => (api::Value::Text("none".into()), Source::None),
            (true, limit) => (api::Value::Number(limit), Source::Local),
            (false, used) => (api::Value::Number(used), Source::None),
        };
        Ok(Property::new(name, Some(value), source))
    }
}

/// The number of a user or group that the machine knows by name; a number stands for itself.
pub(crate) fn number_of(account: Account, who: &str) -> Option<u64> {
    if let Ok(id) = who.parse::<u32>() {
        return Some(id.into());
    }
    let path = match account {
        Account::User => PASSWD,
        Account::Group => GROUP,
        Account::Project => return None,
    };
    find(&std::fs::read_to_string(path).ok()?, who)
}

/// The name that the machine knows a user or group by.
pub(crate) fn name_of(account: Account, id: u64) -> Option<String> {
    let path = match account {
        Account::User => PASSWD,
        Account::Group => GROUP,
        Account::Project => return None,
    };
    named(&std::fs::read_to_string(path).ok()?, id)
}

fn named(table: &str, id: u64) -> Option<String> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let is_it = fields.nth(1)?.parse() == Ok(id) && !name.is_empty();
        is_it.then(|| name.to_string())
    })
}

/// The number beside a name in a table as `/etc/passwd` and `/etc/group` are.
fn find(table: &str, who: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(who) && !who.is_empty();
        fields.nth(1).filter(|_| is_it)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whose_and_what() {
        let parse = |name| Quota::parse(name).unwrap().unwrap();
        let quota = |account, resource, is_limit, id| Quota { account, resource, is_limit, id };
        assert_eq!(parse("userquota@1000"), quota(Account::User, Resource::Space, true, 1000));
        assert_eq!(parse("groupobjused@5"), quota(Account::Group, Resource::Objects, false, 5));
        assert_eq!(parse("projectobjquota@7"), quota(Account::Project, Resource::Objects, true, 7));
        assert_eq!(parse("userused@root"), quota(Account::User, Resource::Space, false, 0));
        assert_eq!(Quota::parse("quota").unwrap(), None);
        assert!(Quota::parse("userquota@").is_err());
        assert!(Quota::parse("projectquota@name").is_err());
        assert!(Quota::parse("userquota@nobody we know").is_err());
    }

    #[test]
    fn tables_of_users_are_read_by_name() {
        let table = "root:x:0:0:root:/root:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\nodd\n";
        assert_eq!((find(table, "bob"), find(table, "bo"), find(table, "")), (Some(1001), None, None));
        assert_eq!((named(table, 1001).as_deref(), named(table, 7)), (Some("bob"), None));
    }
}
