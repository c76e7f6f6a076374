//! What users, groups and projects take, and where they are stopped.

use super::*;
use crate::Resource;
use dmu::Account;

async fn counted(fs: &FileSystem, account: Account, id: u64) -> (u64, u64) {
    fs.sync().await.unwrap();
    let all = fs.space_of(account).await.unwrap();
    let found = all.into_iter().find(|(who, ..)| *who == id);
    found.map_or((0, 0), |(_, bytes, files)| (bytes, files.unwrap_or(0)))
}

fn of(uid: u32) -> NewFile<'static> {
    NewFile { uid, gid: 20, ..NewFile::new(FileKind::Regular, 0o644) }
}

#[test]
fn everything_is_counted_from_the_first_object_on() {
    with_settings(counting(), Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &of(7)).await.unwrap();
        assert_eq!(counted(&fs, Account::User, 0).await, (512 + 512, 1), "the root directory");
        file.write(0, &[1; 100_000]).await.unwrap();
        let (bytes, files) = counted(&fs, Account::User, 7).await;
        assert_eq!(files, 1);
        assert!((100_000..120_000).contains(&bytes), "{bytes}");
        assert_eq!(counted(&fs, Account::Group, 20).await, (bytes, 1));
        assert_eq!(counted(&fs, Account::Project, 0).await.1, 2);
        file.change(&Changes { project: Some(5), uid: Some(8), ..Changes::default() }).await.unwrap();
        assert_eq!(counted(&fs, Account::User, 7).await, (0, 0));
        assert_eq!(counted(&fs, Account::Project, 5).await, (bytes, 1));
        let stat = file.stat().await.unwrap();
        assert_eq!((stat.uid, stat.project), (8, 5));
        drop(file);
        root.unlink(b"f").await.unwrap();
        assert_eq!(counted(&fs, Account::User, 8).await, (0, 0));
    });
}

/// Attributes that are files belong to whom the file belongs to, as in OpenZFS; they stayed with the one before.
#[test]
fn extended_attributes_follow_their_file_to_its_new_owner() {
    let settings = Settings { xattr: crate::Xattrs::Directory, ..Settings::default() };
    with_settings(counting(), settings, |fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &of(7)).await.unwrap();
        file.set_xattr(b"user.a", &[1; 50_000]).await.unwrap();
        file.set_xattr(b"user.b", &[2; 9000]).await.unwrap();
        assert!(file.xattr_directory().await.unwrap().is_some(), "they are files");
        let all = counted(&fs, Account::User, 7).await;
        assert_eq!(all.1, 4, "file, directory and two attributes");
        file.change(&Changes { uid: Some(8), project: Some(5), ..Changes::default() }).await.unwrap();
        assert_eq!(counted(&fs, Account::User, 8).await, all);
        assert_eq!(counted(&fs, Account::User, 7).await, (0, 0));
        assert_eq!(counted(&fs, Account::Group, 20).await, all);
        file.change(&Changes { gid: Some(21), ..Changes::default() }).await.unwrap();
        assert_eq!(counted(&fs, Account::Group, 20).await, (0, 0));
        for (account, id) in [(Account::Group, 21), (Account::User, 8), (Account::Project, 5)] {
            assert_eq!(counted(&fs, account, id).await, all, "{account:?}");
        }
        assert_eq!(file.xattr(b"user.a").await.unwrap().unwrap().len(), 50_000);
        drop(file);
        root.unlink(b"f").await.unwrap();
        assert_eq!(counted(&fs, Account::Project, 5).await, (0, 0));
    });
}

#[test]
fn who_is_at_a_quota_gets_nothing_new_and_can_give_back() {
    with_settings(counting(), Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        let file = root.create(b"f", &of(7)).await.unwrap();
        fs.set_quota(Account::User, Resource::Space, 7, Some(50_000)).await.unwrap();
        file.write(0, &[1; 60_000]).await.unwrap();
        fs.sync().await.unwrap();
        let before = tree(&fs).await;
        let over = Some(Refusal::OverQuota);
        assert_eq!(why(file.write(0, b"x").await), over);
        assert_eq!(why(root.create(b"g", &of(7)).await), over);
        assert_eq!(why(file.set_xattr(b"user.x", b"x").await), over);
        let link = NewFile { target: b"t", kind: FileKind::Symlink, ..of(7) };
        assert_eq!(why(root.create(b"l", &link).await), over);
        assert_eq!(why(root.create(b"d", &NewFile { kind: FileKind::Directory, ..of(7) }).await), over);
        let other = root.create(b"other", &of(8)).await.unwrap();
        assert_eq!(
            why(other.change(&Changes { uid: Some(7), ..Changes::default() }).await),
            over,
            "a file cannot be given to him"
        );
        drop(other);
        root.unlink(b"other").await.unwrap();
        fs.sync().await.unwrap();
        let after = tree(&fs).await;
        for ((path, _, data), (path_after, _, data_after)) in before.iter().zip(&after) {
            assert_eq!((path, data), (path_after, data_after), "nothing was half done");
        }
        assert_eq!(before.len(), after.len());
        // There are ways out.
        root.rename(b"f", &root, b"renamed", Renaming::Replace).await.unwrap();
        file.truncate(0).await.unwrap();
        fs.sync().await.unwrap();
        file.write(0, b"x").await.unwrap();
        fs.set_quota(Account::User, Resource::Space, 7, None).await.unwrap();
        file.write(0, &[2; 90_000]).await.unwrap();
        fs.sync().await.unwrap();
        file.write(0, b"x").await.unwrap();
    });
}

#[test]
fn objects_groups_projects_and_defaults_have_quotas_too() {
    with_settings(counting(), Settings::default(), |fs| async move {
        let root = fs.root().await.unwrap();
        fs.set_quota(Account::User, Resource::Objects, 7, Some(2)).await.unwrap();
        fs.set_quota(Account::Group, Resource::Objects, 20, Some(3)).await.unwrap();
        for n in 0..2 {
            root.create(format!("{n}").as_bytes(), &of(7)).await.unwrap();
        }
        fs.sync().await.unwrap();
        let over = Some(Refusal::OverQuota);
        assert_eq!(why(root.create(b"2", &of(7)).await), over);
        root.lookup(b"0").await.unwrap().write(0, b"bytes are not counted").await.unwrap();
        root.create(b"2", &of(8)).await.unwrap();
        fs.sync().await.unwrap();
        assert_eq!(why(root.create(b"3", &of(9)).await), over, "the group has three");
        assert_eq!(fs.quotas(Account::Group, Resource::Objects).await.unwrap(), [(20, 3)]);
        let elsewhere = NewFile { gid: 21, ..of(9) };
        fs.set_settings(Settings { default_quotas: [[0; 3], [1, 0, 0]], ..Settings::default() }).unwrap();
        root.create(b"3", &elsewhere).await.unwrap();
        fs.sync().await.unwrap();
        assert_eq!(why(root.create(b"4", &elsewhere).await), over, "everybody has one file");
        fs.set_settings(Settings::default()).unwrap();
        // A directory that gives its project away.
        let dir = root
            .create(b"d", &NewFile { gid: 21, ..NewFile::new(FileKind::Directory, 0o755) })
            .await
            .unwrap();
        let give = Changes { project: Some(5), flags: Some(crate::flags::PROJINHERIT), ..Changes::default() };
        dir.change(&give).await.unwrap();
        let below = dir.create(b"below", &elsewhere).await.unwrap();
        assert_eq!(below.stat().await.unwrap().project, 5);
        assert_eq!(why(root.rename(b"3", &dir, b"3", Renaming::Replace).await), Some(Refusal::OtherProject));
        assert_eq!(why(dir.link(b"3", &root.lookup(b"3").await.unwrap()).await), Some(Refusal::OtherProject));
        dir.rename(b"below", &root, b"above", Renaming::Replace).await.unwrap();
        fs.set_quota(Account::Project, Resource::Space, 5, Some(1)).await.unwrap();
        fs.sync().await.unwrap();
        assert_eq!(why(below.write(0, b"x").await), over);
        assert_eq!(why(dir.create(b"more", &elsewhere).await), over);
    });
}
