//! Who may do what: the mode, a list, the flags, and the superuser.
//!
//! ```text
//!   flags       immutable, append only, no unlink, read-only: nobody, not even root, until they are taken away
//!   superuser   else anything, but execute what nobody may execute
//!   acltype     off: the mode      posix: the POSIX list, if there is one, else the mode      nfsv4: the list
//! ```
//!
//! Fronts ask before they act; nothing else in this crate knows who asks. The decision is pure, see [`Permissions`].

use crate::acl::{Ace, Who};
use crate::acl_rules::{missing, rights::*};
use crate::file_system::node::Node;
use crate::flags;
use crate::posix_acl::{self, PosixAcl};
use crate::refusal::Refusal;
use crate::settings::AclType;
use crate::stat::Stat;
use units::Result;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials<'a> {
    pub uid: u32,
    pub gid: u32,
    /// The other groups that he is in.
    pub groups: &'a [u32],
}

impl Credentials<'_> {
    pub const ROOT: Credentials<'static> = Credentials { uid: 0, gid: 0, groups: &[] };

    pub fn is_superuser(&self) -> bool {
        self.uid == 0
    }

    pub fn is_member(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// What everybody may: look at attributes and at the list.
const ALWAYS: u32 = READ_NAMED_ATTRS | READ_ATTRIBUTES | READ_ACL | SYNCHRONIZE;
/// What the owner may besides, whatever the mode.
const OWNERS: u32 = WRITE_NAMED_ATTRS | WRITE_ATTRIBUTES | WRITE_ACL | WRITE_OWNER;
const DATA_WRITES: u32 = WRITE_DATA | APPEND_DATA;

/// All that decides about one file.
#[derive(Clone, Debug)]
pub struct Permissions {
    pub stat: Stat,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Mode,
    Posix(PosixAcl),
    Nfs4(Vec<Ace>),
}

impl Permissions {
    /// Refuses when `who` may not do all that is `wanted`, of [`crate::rights`].
    pub fn check(&self, who: &Credentials<'_>, wanted: u32) -> std::result::Result<(), Refusal> {
        let flags = self.stat.flags;
        let is_directory = self.stat.kind == crate::FileKind::Directory;
        let all_writes =
            DATA_WRITES | WRITE_NAMED_ATTRS | WRITE_ATTRIBUTES | WRITE_ACL | WRITE_OWNER | DELETE;
        if flags & flags::IMMUTABLE != 0 && wanted & (all_writes | DELETE_CHILD) != 0
            || flags & flags::APPENDONLY != 0 && wanted & (DELETE | DELETE_CHILD) != 0
            || flags & flags::NOUNLINK != 0 && wanted & (DELETE | DELETE_CHILD) != 0
            || flags & flags::READONLY != 0 && !is_directory && wanted & DATA_WRITES != 0
        {
            return Err(Refusal::Flagged);
        }
        if who.is_superuser() {
            let cannot = wanted & EXECUTE != 0 && !is_directory && !self.anybody_executes();
            return if cannot { Err(Refusal::Denied) } else { Ok(()) };
        }
        let missing = match &self.rule {
            Rule::Nfs4(list) => {
                let is_one = |one: Who| match one {
                    Who::Owner => who.uid == self.stat.uid,
                    Who::Group => who.is_member(self.stat.gid),
                    Who::Everyone => true,
                    Who::User(id) => id == u64::from(who.uid),
                    Who::NamedGroup(id) => u32::try_from(id).is_ok_and(|id| who.is_member(id)),
                };
                let missing = missing(list, is_one, is_directory, wanted);
                // The owner always sees the list, and can always change it.
                let own = if who.uid == self.stat.uid { READ_ACL | READ_ATTRIBUTES | WRITE_ACL } else { 0 };
                missing & !own
            }
            Rule::Mode | Rule::Posix(_) => wanted & !self.by_bits(who, is_directory, wanted),
        };
        if missing == 0 { Ok(()) } else { Err(Refusal::Denied) }
    }

    /// The rights of somebody for whom mode or POSIX list count.
    fn by_bits(&self, who: &Credentials<'_>, is_directory: bool, wanted: u32) -> u32 {
        let writes = DATA_WRITES | if is_directory { DELETE_CHILD } else { 0 };
        let needs = |bit: u16, rights: u32| if wanted & rights != 0 { bit } else { 0 };
        let bits_wanted = needs(4, READ_DATA) | needs(2, writes) | needs(1, EXECUTE);
        let is_owner = who.uid == self.stat.uid;
        let is_group = who.is_member(self.stat.gid);
        let bits = match &self.rule {
            Rule::Posix(list) => {
                list.allows(who.uid, is_owner, is_group, |gid| who.is_member(gid), bits_wanted)
            }
            _ => {
                let shift = if is_owner {
                    6
                } else if is_group {
                    3
                } else {
                    0
                };
                (self.stat.permissions >> shift & 7) as u16
            }
        };
        let pick = |bit, rights| if bits & bit != 0 { rights } else { 0 };
        let owners = if is_owner { OWNERS } else { 0 };
        ALWAYS | owners | pick(4, READ_DATA) | pick(2, writes) | pick(1, EXECUTE)
    }

    fn anybody_executes(&self) -> bool {
        let by_list = match &self.rule {
            Rule::Nfs4(list) => list.iter().any(|ace| ace.kind == 0 && ace.rights & EXECUTE != 0),
            _ => false,
        };
        by_list || self.stat.permissions & 0o111 != 0
    }

    /// Whether `who` may take a name of `child` out of this directory, as far as the sticky bit goes.
    pub fn check_sticky(&self, who: &Credentials<'_>, child: &Stat) -> std::result::Result<(), Refusal> {
        let is_free = self.stat.permissions & 0o1000 == 0
            || who.is_superuser()
            || who.uid == child.uid
            || who.uid == self.stat.uid;
        if is_free { Ok(()) } else { Err(Refusal::Denied) }
    }
}

impl Node {
    /// What decides about the file, by its dataset's `acltype`.
    pub async fn permissions(&self) -> Result<Permissions> {
        let stat = self.stat().await?;
        let rule = match self.file_system().settings().acl_type {
            AclType::Off => Rule::Mode,
            AclType::Posix => match self.xattr(posix_acl::ACCESS).await? {
                Some(list) => Rule::Posix(PosixAcl::decode(&list).map_err(|e| self.place(e))?),
                None => Rule::Mode,
            },
            AclType::Nfs4 => Rule::Nfs4(self.acl().await?),
        };
        Ok(Permissions { stat, rule })
    }

    /// Refuses when `who` may not do all that is `wanted`, of [`crate::rights`].
    pub async fn access(&self, who: &Credentials<'_>, wanted: u32) -> Result<()> {
        let permissions = self.permissions().await?;
        permissions.check(who, wanted).map_err(|why| self.refuse(why, "have access to"))
    }

    /// Refuses when `who` may not take a name of `child` out of this directory: he must be allowed to delete the one or
    /// to write the other, and the sticky bit must let him.
    pub async fn access_removal(&self, who: &Credentials<'_>, child: &Node) -> Result<()> {
        let (directory, child) = (self.permissions().await?, child.permissions().await?);
        let refuse = |why| self.refuse(why, "remove a name from");
        directory.check_sticky(who, &child.stat).map_err(refuse)?;
        let by_child = matches!(&child.rule, Rule::Nfs4(_)) && child.check(who, DELETE).is_ok();
        if by_child {
            return Ok(());
        }
        directory.check(who, WRITE_DATA | EXECUTE).map_err(refuse)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{FileKind, Time};
    use units::ObjectId;

    pub fn stat_at(atime: Time, mtime: Time) -> Stat {
        Stat { atime, mtime, ctime: mtime, ..file(0o644, 0).stat }
    }

    fn file(permissions: u32, flags: u64) -> Permissions {
        let time = Time::default();
        let stat = Stat {
            object: ObjectId(7),
            generation: 1,
            kind: FileKind::Regular,
            permissions,
            uid: 1000,
            gid: 100,
            links: 1,
            size: 0,
            blocks: 0,
            block_size: 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            rdev: (0, 0),
            flags,
            project: 0,
            parent: ObjectId(34),
            xattr_dir: None,
        };
        Permissions { stat, rule: Rule::Mode }
    }

    const OWNER: Credentials<'static> = Credentials { uid: 1000, gid: 1000, groups: &[] };
    const MEMBER: Credentials<'static> = Credentials { uid: 7, gid: 7, groups: &[100] };
    const OTHER: Credentials<'static> = Credentials { uid: 8, gid: 8, groups: &[] };

    #[test]
    fn the_class_nearest_to_the_file_decides() {
        let may =
            |who: &Credentials<'_>, permissions, wanted| file(permissions, 0).check(who, wanted).is_ok();
        assert!(may(&OWNER, 0o400, READ_DATA) && !may(&OWNER, 0o077, READ_DATA));
        assert!(may(&MEMBER, 0o040, READ_DATA) && !may(&MEMBER, 0o707, READ_DATA));
        assert!(may(&OTHER, 0o004, READ_DATA) && !may(&OTHER, 0o770, READ_DATA));
        assert!(may(&OWNER, 0, WRITE_ACL) && !may(&MEMBER, 0o777, WRITE_ACL));
        assert!(may(&Credentials::ROOT, 0, READ_DATA | WRITE_DATA));
        assert!(!may(&Credentials::ROOT, 0o666, EXECUTE) && may(&Credentials::ROOT, 0o010, EXECUTE));
    }

    #[test]
    fn flags_stop_everybody() {
        for (flag, wanted) in [
            (flags::IMMUTABLE, WRITE_DATA),
            (flags::IMMUTABLE, WRITE_ATTRIBUTES),
            (flags::APPENDONLY, DELETE),
            (flags::NOUNLINK, DELETE),
            (flags::READONLY, APPEND_DATA),
        ] {
            let file = file(0o777, flag);
            assert_eq!(file.check(&Credentials::ROOT, wanted), Err(Refusal::Flagged));
            assert_eq!(file.check(&OWNER, READ_DATA), Ok(()));
        }
    }

    #[test]
    fn lists_decide_where_they_are_in_force() {
        let mut file = file(0o000, 0);
        let entry = |kind, who, rights| Ace { kind, flags: 0, rights, who };
        file.rule = Rule::Nfs4(vec![
            entry(1, Who::User(8), READ_DATA),
            entry(0, Who::NamedGroup(100), READ_DATA),
            entry(0, Who::Everyone, READ_DATA | READ_ATTRIBUTES),
        ]);
        assert_eq!(file.check(&OTHER, READ_DATA), Err(Refusal::Denied));
        assert_eq!(file.check(&MEMBER, READ_DATA), Ok(()));
        assert_eq!(file.check(&MEMBER, WRITE_DATA), Err(Refusal::Denied));
        assert_eq!(file.check(&OWNER, WRITE_ACL), Ok(()));
        assert_eq!(file.check(&MEMBER, WRITE_ACL), Err(Refusal::Denied));
    }

    #[test]
    fn the_sticky_bit_leaves_names_to_owners() {
        let (mut directory, child) = (file(0o1777, 0), file(0o644, 0).stat);
        directory.stat.uid = 5;
        let owner_of_directory = Credentials { uid: 5, ..OTHER };
        assert_eq!(directory.check_sticky(&OTHER, &child), Err(Refusal::Denied));
        for who in [OWNER, owner_of_directory, Credentials::ROOT] {
            assert_eq!(directory.check_sticky(&who, &child), Ok(()));
        }
    }
}
