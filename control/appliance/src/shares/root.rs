//! Owner, group and mode of a file system's root directory: three attributes that are kept in the directory itself.
//!
//! ```text
//!   root_user, root_group    a name that this machine knows, or a number; told as a name where there is one
//!   root_permissions         octal digits, as chmod(1) takes them
//! ```
//!
//! A client that mounts a share over the network has no right to change its root, so administrators and the drivers of
//! orchestrators set these when they make the share.

use crate::appliance::{Appliance, By};
use crate::datasets::quotas::{name_of, number_of};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::Result;
use pool::Pool;
use units::Error;
use zpl::{Account, Changes};

/// Owners that drivers name by the appliance's own tables, where this machine has no such name.
const WELL_KNOWN: [(Account, &str, u32); 3] =
    [(Account::User, "nobody", 65_534), (Account::Group, "nobody", 65_534), (Account::Group, "other", 1)];

/// What is to become of it; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RootWish {
    user: Option<u32>,
    group: Option<u32>,
    permissions: Option<u32>,
}

impl RootWish {
    /// Takes one of the three attributes; false if it is another.
    pub fn take(&mut self, name: &str, text: &str) -> units::Result<bool> {
        let wrong = |why: &str| Error::invalid(format!("invalid value \"{text}\" for \"{name}\": {why}"));
        match name {
            "root_user" => {
                let why = "this machine knows no such user; a number is understood as well";
                self.user = Some(number(Account::User, text).ok_or_else(|| wrong(why))?);
            }
            "root_group" => {
                let why = "this machine knows no such group; a number is understood as well";
                self.group = Some(number(Account::Group, text).ok_or_else(|| wrong(why))?);
            }
            "root_permissions" => {
                let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
                self.permissions = Some(mode.ok_or_else(|| wrong("it is octal digits, such as 755"))?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn number(account: Account, who: &str) -> Option<u32> {
    let known = number_of(account, who).and_then(|id| u32::try_from(id).ok());
    let well_known = || WELL_KNOWN.iter().find(|(of, name, _)| *of == account && *name == who);
    // The largest number means "nobody in particular" to chown(2).
    known.filter(|id| *id != u32::MAX).or_else(|| well_known().map(|(.., id)| *id))
}

/// The value of one of the three; nothing where the file system cannot be opened now.
pub(super) async fn shown(pool: &Pool, dataset: &str, name: &str) -> Option<String> {
    let root = pool.look_at_file_system(dataset).await.ok()?.root().await.ok()?;
    let stat = root.stat().await.ok()?;
    let named = |account, id: u32| name_of(account, id.into()).unwrap_or_else(|| id.to_string());
    Some(match name {
        "root_user" => named(Account::User, stat.uid),
        "root_group" => named(Account::Group, stat.gid),
        _ => format!("{:03o}", stat.permissions & 0o7777),
    })
}

impl Appliance {
    /// Changes the root directory, and waits until that is kept.
    pub(super) async fn change_root(&self, dataset: &str, wish: &RootWish, by: &By) -> Result<()> {
        if *wish == RootWish::default() {
            return Ok(());
        }
        let failed = |e: Error| cannot(About::Dataset, &format!("change the root of '{dataset}'"), &e);
        let open = self.pool_with(dataset, Access::Change).await?;
        change(&open.pool, dataset, wish).await.map_err(failed)?;
        if let Some(mount) = self.0.mounts.get(dataset) {
            mount.root_has_changed();
        }
        self.record(&open.pool, by).await.map_err(failed)
    }
}

async fn change(pool: &Pool, dataset: &str, wish: &RootWish) -> units::Result<()> {
    let fs = pool.open_file_system_for_writing(dataset).await?;
    let changes =
        Changes { uid: wish.user, gid: wish.group, permissions: wish.permissions, ..Changes::default() };
    fs.root().await?.change(&changes).await?;
    pool.sync().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_names_or_numbers_and_modes_are_octal() {
        let mut wish = RootWish::default();
        for (name, text) in [("root_user", "root"), ("root_group", "other"), ("root_permissions", "1777")] {
            assert!(wish.take(name, text).unwrap());
        }
        assert_eq!(wish, RootWish { user: Some(0), group: Some(1), permissions: Some(0o1777) });
        assert!(!wish.take("rstchown", "false").unwrap());
        for (name, text) in [
            ("root_user", "somebody else"),
            ("root_user", "4294967295"),
            ("root_group", "-1"),
            ("root_permissions", "rwx"),
            ("root_permissions", "888"),
            ("root_permissions", "17777"),
        ] {
            assert!(wish.take(name, text).is_err(), "{name}={text}");
        }
        assert!(wish.take("root_user", "1000").unwrap());
        assert_eq!(wish.user, Some(1000));
    }
}
