//! What is promised of the whole.

use super::*;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pet {
    legs: u32,
    #[serde(default)]
    name: Option<String>,
}

const PETS: Table<Pet> = Table::new("zoo.pets");
const OTHERS: Table<u64> = Table::new("zoo.others");

fn restore(store: &Store, from: &Path) -> Result<()> {
    store.restore_text(&read_backup(from)?, |_| Ok(()))
}

fn pet(legs: u32) -> Pet {
    Pet { legs, name: None }
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("cenote-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn store(&self) -> Store {
        Store::open(&self.0.join("configuration.redb")).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pets(store: &Store) -> Vec<(String, Pet)> {
    store.look(|r| r.all(&PETS)).unwrap()
}

#[test]
fn what_was_changed_is_there_in_the_order_of_keys_when_it_is_opened_again() {
    let dir = Dir::new("again");
    let store = dir.store();
    assert_eq!(pets(&store), []);
    let put = store.change(|w| {
        w.put(&PETS, "b", &pet(2))?;
        w.put(&PETS, "a", &pet(4))?;
        w.put(&PETS, "c", &pet(0))?;
        assert!(w.has(&PETS, "c")? && w.remove(&PETS, "c")? && !w.remove(&PETS, "c")?);
        w.get(&PETS, "b")
    });
    assert_eq!(put.unwrap(), Some(pet(2)), "a change sees itself");
    assert_eq!(Store::open(store.path()).unwrap_err().kind(), Kind::Busy);
    drop(store);
    assert_eq!(pets(&dir.store()), [("a".into(), pet(4)), ("b".into(), pet(2))]);
    let mode = fs::metadata(dir.0.join("configuration.redb")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "there are secrets in it");
}

#[test]
fn a_change_that_fails_leaves_nothing() {
    let dir = Dir::new("nothing");
    let store = dir.store();
    let failed: Result<()> = store.change(|w| {
        w.put(&PETS, "a", &pet(4))?;
        Err(Error::invalid("no"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    assert_eq!(pets(&store), []);
}

/// Whatever was on disk when the power went, a later start finds the last change that was said to be there.
#[test]
fn a_copy_made_at_any_moment_holds_what_was_committed() {
    let dir = Dir::new("crash");
    let store = dir.store();
    for legs in 0..5 {
        store.change(|w| w.put(&PETS, "a", &pet(legs))).unwrap();
        let copy = dir.0.join(format!("copy{legs}"));
        fs::copy(store.path(), &copy).unwrap();
        let copy = Store::open(&copy).unwrap();
        assert_eq!(pets(&copy), [("a".into(), pet(legs))]);
    }
}

#[test]
fn a_backup_brings_everything_back_and_takes_away_what_came_later() {
    let dir = Dir::new("backup");
    let store = dir.store();
    store.change(|w| w.put(&PETS, "a", &Pet { legs: 4, name: Some("\u{e9}\n".into()) })).unwrap();
    let before = pets(&store);
    let file = dir.0.join("backup");
    store.backup(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    store
        .change(|w| {
            w.put(&OTHERS, "later", &7)?;
            w.put(&PETS, "a", &pet(3))
        })
        .unwrap();
    restore(&store, &file).unwrap();
    assert_eq!(pets(&store), before);
    assert_eq!(store.look(|r| r.get(&OTHERS, "later")).unwrap(), None);
    let other = Dir::new("backup-other");
    let other = other.store();
    restore(&other, &file).unwrap();
    assert_eq!(pets(&other), before);
}

/// A device was read without end, a pipe waited for without end, and either replaced by a file.
#[test]
fn only_a_file_is_read_as_a_backup_or_replaced_by_one() {
    let dir = Dir::new("backup-of-none");
    let store = Store::open(&dir.0.join("configuration")).unwrap();
    let socket = dir.0.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let huge = dir.0.join("huge");
    std::fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    for path in [&socket, &dir.0, &huge, std::path::Path::new("/dev/zero")] {
        assert!(read_backup(path).is_err(), "{path:?}");
    }
    for path in [&socket, &dir.0, std::path::Path::new("/dev/full")] {
        assert!(store.backup(path).is_err(), "{path:?}");
        assert!(!std::fs::metadata(path).unwrap().is_file(), "{path:?}");
    }
    store.backup(&huge).unwrap();
    read_backup(&huge).unwrap();
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let dir = Dir::new("damaged");
    let store = dir.store();
    store.change(|w| w.put(&PETS, "a", &pet(4))).unwrap();
    let file = dir.0.join("backup");
    store.backup(&file).unwrap();
    let good = fs::read_to_string(&file).unwrap();
    for bad in [
        good.replace("\"legs\": 4", "\"legs\": 5"),
        good[..good.len() - 1].into(),
        good[..good.len() / 2].into(),
        "{}\n".into(),
        String::new(),
    ] {
        fs::write(&file, &bad).unwrap();
        let e = restore(&store, &file).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert_eq!(pets(&store), [("a".into(), pet(4))]);
    }
}

#[test]
fn what_a_later_version_wrote_is_refused() {
    let dir = Dir::new("later");
    let store = dir.store();
    let about: Table<u64> = Table::new("store");
    store.change(|w| w.put(&about, "schema", &(SCHEMA + 1))).unwrap();
    let file = dir.0.join("backup");
    store.backup(&file).unwrap();
    let path = store.path().to_path_buf();
    drop(store);
    let e = Store::open(&path).unwrap_err();
    assert_eq!(e.kind(), Kind::Unsupported);
    assert!(e.to_string().contains("later version of Cenote"), "{e}");
    fs::remove_file(&path).unwrap();
    let store = dir.store();
    assert_eq!(restore(&store, &file).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn a_file_of_something_else_is_named_as_damaged() {
    let dir = Dir::new("garbage");
    let path = dir.0.join("configuration.redb");
    fs::write(&path, [b'x'; 9000]).unwrap();
    let e = Store::open(&path).unwrap_err();
    assert_eq!(e.kind(), Kind::Corrupt, "{e}");
    assert!(e.to_string().contains("restore a backup"), "{e}");
    assert_eq!(fs::read(&path).unwrap(), [b'x'; 9000], "it is left as it is");
}

/// A file that a full disk had cut short was an I/O error, of which nothing said what to do, or was refused for ever though
/// nothing was in it yet.
#[test]
fn a_file_that_ends_too_early_is_named_as_damaged_and_one_that_was_never_whole_is_begun_anew() {
    let dir = Dir::new("short");
    let path = dir.0.join("configuration.redb");
    drop(dir.store());
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, 100, 511, 512, 4095, 4096, 5000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let e = Store::open(&path).map(drop).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{len} bytes: {e}");
    }
    for begun in [0, 512, 4096] {
        fs::remove_file(&path).unwrap();
        fs::write(dir.0.join("configuration.redb.new"), vec![0; begun]).unwrap();
        drop(Store::open(&path).unwrap());
        assert!(!dir.0.join("configuration.redb.new").exists());
    }
}

#[test]
fn a_record_that_makes_no_sense_is_named() {
    let dir = Dir::new("record");
    let store = dir.store();
    let text: Table<String> = Table::new("zoo.pets");
    store.change(|w| w.put(&text, "a", &"no pet".into())).unwrap();
    let e = store.look(|r| r.get(&PETS, "a")).unwrap_err();
    assert!(e.to_string().starts_with("configuration zoo.pets 'a': damaged structure"), "{e}");
}

/// Records from elsewhere were read as far as they were understood, and the rest was forgotten without a word.
#[test]
fn a_backup_that_is_refused_changes_nothing_and_what_is_lost_on_reading_is_named() {
    let dir = Dir::new("exact");
    let store = dir.store();
    store.change(|w| w.put(&PETS, "a", &pet(4))).unwrap();
    let exact = |records: &str| {
        let text = sealed(&format!("{{\"zoo.pets\": {records}, \"store\": {{\"schema\": {SCHEMA}}}}}"));
        store.restore_text(&text, |writer| {
            assert_eq!(writer.tables().unwrap().len(), 2);
            writer.exact(&PETS).map(drop)
        })
    };
    for bad in [
        r#"{"b": {"legs": 2, "wings": 2}}"#,
        r#"{"b": {"legs": 2.0}}"#,
        r#"{"b": {"legs": "2"}}"#,
        r#"{"b": {"name": "x"}}"#,
        r#"{"b": [2]}"#,
    ] {
        assert!(exact(bad).is_err(), "{bad}");
        assert_eq!(pets(&store), [("a".into(), pet(4))], "{bad}");
    }
    exact(r#"{"b": {"legs": 2}}"#).unwrap();
    assert_eq!(pets(&store), [("b".into(), pet(2))]);
}

#[test]
fn changes_are_made_again_when_there_is_room_again() {
    let dir = Dir::new("full");
    let store = dir.store();
    store.change(|w| w.put(&PETS, "a", &pet(4))).unwrap();
    for round in 0..3 {
        file::tests::IS_FULL.set(true);
        for _ in 0..2 {
            let e = store.change(|w| w.put(&PETS, "b", &pet(round))).unwrap_err();
            assert_eq!(e.kind(), Kind::NoSpace, "{e}");
        }
        file::tests::IS_FULL.set(false);
        assert_eq!(pets(&store).len(), 1 + usize::from(round > 0));
        store.change(|w| w.put(&PETS, "b", &pet(round))).unwrap();
        assert_eq!(pets(&store), [("a".into(), pet(4)), ("b".into(), pet(round))]);
    }
    drop(store);
    assert_eq!(pets(&dir.store()).len(), 2);
}
