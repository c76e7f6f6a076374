//! Modes, lists, privileges and times as operations leave them.

use super::*;
use crate::{Ace, AclInherit, AclMode, AclType, Atime, Credentials, Who, Xattrs, rights};

#[test]
fn lists_are_kept_inherited_and_follow_the_mode() {
    let settings = Settings {
        acl_type: AclType::Nfs4,
        acl_mode: AclMode::Passthrough,
        acl_inherit: AclInherit::Passthrough,
        ..Settings::default()
    };
    with_settings(NewFileSystem::default(), settings, move |fs| async move {
        let root = fs.root().await.unwrap();
        let dir = root.create(b"d", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        let mut list = dir.acl().await.unwrap();
        let named =
            Ace { kind: 0, flags: 0x3, rights: rights::READ_DATA | rights::READ_ACL, who: Who::User(1000) };
        list.insert(0, named);
        dir.set_acl(&list).await.unwrap();
        assert_eq!(dir.acl().await.unwrap(), list);
        assert_eq!(dir.stat().await.unwrap().permissions, 0o755);
        let file = dir.create(b"f", &NewFile::new(FileKind::Regular, 0o600)).await.unwrap();
        let user = Credentials { uid: 1000, gid: 1000, groups: &[] };
        file.access(&user, rights::READ_DATA).await.unwrap();
        assert_eq!(why(file.access(&user, rights::WRITE_DATA).await), Some(Refusal::Denied));
        file.change(&Changes { permissions: Some(0o400), ..Changes::default() }).await.unwrap();
        file.access(&user, rights::READ_DATA).await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o400);
        fs.set_settings(Settings { acl_mode: AclMode::Restricted, ..settings }).unwrap();
        let mode = Changes { permissions: Some(0o444), ..Changes::default() };
        assert_eq!(why(file.change(&mode).await), Some(Refusal::Flagged));
        fs.set_settings(Settings { acl_mode: AclMode::Discard, ..settings }).unwrap();
        file.change(&mode).await.unwrap();
        assert!(file.acl().await.unwrap().iter().all(|ace| ace.who != Who::User(1000)));
    });
}

/// tag, permissions and id of each entry.
fn posix(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, bits, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn posix_lists_are_the_mode_and_are_given_to_what_is_made_below() {
    let settings = Settings { acl_type: AclType::Posix, ..Settings::default() };
    with_settings(NewFileSystem::default(), settings, move |fs| async move {
        const ACCESS: &[u8] = b"system.posix_acl_access";
        const DEFAULT: &[u8] = b"system.posix_acl_default";
        let root = fs.root().await.unwrap();
        let dir = root.create(b"d", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        let none = u32::MAX;
        let list = posix(&[(1, 7, none), (2, 7, 1000), (4, 5, none), (16, 7, none), (32, 0, none)]);
        dir.set_xattr(DEFAULT, &list).await.unwrap();
        assert_eq!(dir.stat().await.unwrap().permissions, 0o755, "the default list is for others");
        let new = NewFile { umask: 0o077, ..NewFile::new(FileKind::Regular, 0o664) };
        let file = dir.create(b"f", &new).await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o660, "the list counts, not the umask");
        let user = Credentials { uid: 1000, gid: 1000, groups: &[] };
        file.access(&user, rights::READ_DATA | rights::WRITE_DATA).await.unwrap();
        let below = dir.create(b"below", &NewFile::new(FileKind::Directory, 0o777)).await.unwrap();
        assert_eq!(below.xattr(DEFAULT).await.unwrap(), Some(list.clone()));
        // What the mode says is what the mask lets through.
        file.change(&Changes { permissions: Some(0o640), ..Changes::default() }).await.unwrap();
        assert_eq!(why(file.access(&user, rights::WRITE_DATA).await), Some(Refusal::Denied));
        file.access(&user, rights::READ_DATA).await.unwrap();
        // A list that is no more than a mode is none.
        file.set_xattr(ACCESS, &posix(&[(1, 6, none), (4, 4, none), (32, 4, none)])).await.unwrap();
        assert_eq!(file.xattr(ACCESS).await.unwrap(), None);
        assert_eq!(file.stat().await.unwrap().permissions, 0o644);
        assert!(file.set_xattr(ACCESS, b"nonsense").await.is_err());
        assert_eq!(why(file.set_xattr(DEFAULT, &list).await), Some(Refusal::NotDirectory));
        let plain = root.create(b"p", &new).await.unwrap();
        assert_eq!(plain.stat().await.unwrap().permissions, 0o600);
        fs.set_settings(Settings::default()).unwrap();
        assert_eq!(why(file.set_xattr(ACCESS, &list).await), Some(Refusal::SwitchedOff));
    });
}

/// A mode that was set after it left such a list as it was: others kept what the mode denied them.
#[test]
fn a_posix_list_in_the_hidden_directory_follows_the_mode_too() {
    let settings = Settings { acl_type: AclType::Posix, xattr: Xattrs::Directory, ..Settings::default() };
    with_settings(NewFileSystem::default(), settings, move |fs| async move {
        const ACCESS: &[u8] = b"system.posix_acl_access";
        let none = u32::MAX;
        let list = |mask, other| {
            posix(&[(1, 6, none), (2, 6, 1000), (4, 6, none), (16, mask, none), (32, other, none)])
        };
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o664)).await.unwrap();
        file.set_xattr(ACCESS, &list(6, 4)).await.unwrap();
        file.set_xattr(b"user.other", b"stays").await.unwrap();
        let change = |permissions, uid| Changes { permissions: Some(permissions), uid, ..Changes::default() };
        file.change(&change(0o640, None)).await.unwrap();
        assert_eq!(file.xattr(ACCESS).await.unwrap(), Some(list(4, 0)));
        let user = |uid| Credentials { uid, gid: uid, groups: &[] };
        file.access(&user(1000), rights::READ_DATA).await.unwrap();
        assert_eq!(why(file.access(&user(1000), rights::WRITE_DATA).await), Some(Refusal::Denied));
        assert_eq!(why(file.access(&user(1001), rights::READ_DATA).await), Some(Refusal::Denied));
        // The owner with it: the list is given to him as all that is hidden.
        file.change(&change(0o660, Some(7))).await.unwrap();
        assert_eq!(file.xattr(ACCESS).await.unwrap(), Some(list(6, 0)));
        let stat = file.stat().await.unwrap();
        assert_eq!((stat.uid, stat.permissions), (7, 0o660));
        assert_eq!(file.xattr(b"user.other").await.unwrap().as_deref(), Some(&b"stays"[..]));
        // With a list among the attributes that is full, new ones go there as well.
        fs.set_settings(Settings { xattr: Xattrs::Attribute, ..settings }).unwrap();
        file.change(&change(0o600, None)).await.unwrap();
        assert_eq!(file.xattr(ACCESS).await.unwrap(), Some(list(0, 0)));
    });
}

#[test]
fn groups_are_inherited_and_privileges_are_lost() {
    with_files(|fs| async move {
        let root = fs.root().await.unwrap();
        let dir = NewFile { gid: 50, ..NewFile::new(FileKind::Directory, 0o2775) };
        let dir = root.create(b"d", &dir).await.unwrap();
        let below = dir.create(b"below", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
        let stat = below.stat().await.unwrap();
        assert_eq!((stat.gid, stat.permissions), (50, 0o2755));
        let file = dir.create(b"f", &NewFile::new(FileKind::Regular, 0o6755)).await.unwrap();
        assert_eq!(file.stat().await.unwrap().gid, 50);
        file.write(0, b"root writes").await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o6755);
        assert!(file.drop_privileges(true).await.unwrap());
        assert!(!file.drop_privileges(false).await.unwrap(), "there is nothing more to take");
        assert_eq!(file.stat().await.unwrap().permissions, 0o755);
        // Without execution by the group the bit means mandatory locking, and stays.
        file.change(&Changes { permissions: Some(0o6745), ..Changes::default() }).await.unwrap();
        file.change(&Changes { uid: Some(7), ..Changes::default() }).await.unwrap();
        assert_eq!(file.stat().await.unwrap().permissions, 0o2745);
        assert!(!file.drop_privileges(true).await.unwrap());
        assert!(file.drop_privileges(false).await.unwrap(), "but not by somebody who is not of the group");
        assert_eq!(file.stat().await.unwrap().permissions, 0o745);
    });
}

#[test]
fn the_time_of_reading_waits_for_a_change_or_for_the_last_handle() {
    let settings = Settings { atime: Atime::On, ..Settings::default() };
    with_settings(NewFileSystem::default(), settings, move |fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        let stored = async || file.bonus_attributes().unwrap().words::<2>(Attr::Atime).unwrap().unwrap();
        let first = stored().await;
        world::sleep(std::time::Duration::from_secs(3)).await;
        file.accessed().await.unwrap();
        let seen = file.stat().await.unwrap().atime;
        assert!(seen.seconds as u64 >= first[0] + 3);
        assert_eq!(stored().await, first, "it is in memory alone");
        let id = file.id();
        let again = file.clone();
        again.release().await.unwrap();
        assert_eq!(stored().await, first, "somebody has it open");
        file.release().await.unwrap();
        let file = fs.node(id).await.unwrap();
        let kept = file.bonus_attributes().unwrap().words::<2>(Attr::Atime).unwrap().unwrap();
        assert_eq!((kept[0], kept[1]), (seen.seconds as u64, u64::from(seen.nanos)));
        // By relatime, one that is newer than the file stays as it is.
        fs.set_settings(Settings { atime: Atime::Relative, ..settings }).unwrap();
        world::sleep(std::time::Duration::from_secs(3)).await;
        file.accessed().await.unwrap();
        assert_eq!(file.stat().await.unwrap().atime, seen);
        file.write(0, b"x").await.unwrap();
        file.accessed().await.unwrap();
        assert!(file.stat().await.unwrap().atime > seen);
        file.write(0, b"y").await.unwrap();
        assert_eq!(file.pending_atime().take(), None, "it was stored with the write");
    });
}
