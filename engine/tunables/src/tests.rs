use crate::{Tunable, Tunables, Unit, Watcher, system};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn the_table_is_sound() {
    let mut names: Vec<_> = Tunable::ALL.iter().map(|t| t.name()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), Tunable::ALL.len(), "names are unique");
    for tunable in Tunable::ALL {
        let d = tunable.definition();
        assert!((d.min..=d.max).contains(&d.default), "{tunable}");
        assert!(d.about.ends_with('.') && !d.about.contains('\n'), "{tunable}");
        assert_eq!(d.unit == Unit::Switch, (d.min, d.max) == (0, 1), "{tunable}");
        assert_eq!(Tunable::find(d.name).unwrap(), *tunable);
        assert_eq!(d.parse(&d.default.to_string()).unwrap(), d.default, "{tunable}");
    }
}

#[test]
fn values_are_read_as_people_write_them() {
    let parse = |t: Tunable, text: &str| t.definition().parse(text).map_err(|e| e.to_string());
    for (tunable, text, value) in [
        (Tunable::NoCacheFlush, "1", 1),
        (Tunable::NoCacheFlush, "on", 1),
        (Tunable::NoCacheFlush, "off", 0),
        (Tunable::NoCacheFlush, "0x1", 1),
        (Tunable::ImmediateWriteSize, "32K", 32768),
        (Tunable::ImmediateWriteSize, " 0x8000 ", 32768),
        (Tunable::ZilSlogBulk, "18446744073709551615", u64::MAX),
        (Tunable::TxgTimeout, "30", 30),
    ] {
        assert_eq!(parse(tunable, text), Ok(value), "{tunable} {text}");
    }
    for (tunable, text, why) in [
        (Tunable::NoCacheFlush, "2", "bad value '2' for zfs_nocacheflush: it is 0 or 1"),
        (Tunable::NoCacheFlush, "yes", "bad value 'yes' for zfs_nocacheflush: it is no whole number"),
        (Tunable::NoCacheFlush, "", "bad value '' for zfs_nocacheflush: it is no whole number"),
        (Tunable::TxgTimeout, "+5", "bad value '+5' for zfs_txg_timeout: it is no whole number"),
        (Tunable::TxgTimeout, "0", "bad value '0' for zfs_txg_timeout: it is between 1 and 86400"),
        (Tunable::VdevTrimMaxActive, "0", "it is between 1 and 4294967295"),
        (Tunable::ZilMaxBlockSize, "1M", "it is between 4K and 128K"),
        (Tunable::ZilSlogBulk, "0x+1", "it is no hexadecimal number"),
        (Tunable::ZilSlogBulk, "12Q", "'Q' is no unit"),
    ] {
        let found = parse(tunable, text).unwrap_err();
        assert!(found.contains(why), "{tunable} {text}: {found}");
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<u64>>, AtomicU64);

impl Watcher for Seen {
    fn retuned(self: Arc<Self>, tunables: &Tunables) {
        self.0.lock().unwrap().push(tunables.get(Tunable::TxgTimeout));
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_watcher_is_told_at_once_and_after_each_change_while_it_lives() {
    let tunables = Tunables::new();
    let (seen, gone) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
    tunables.watch(&seen);
    tunables.watch(&gone);
    drop(gone);
    tunables.set(Tunable::TxgTimeout, 7).unwrap();
    assert!(tunables.set(Tunable::TxgTimeout, 0).is_err());
    assert_eq!(tunables.get(Tunable::TxgTimeout), 7, "a refused value changes nothing");
    tunables.set(Tunable::TxgTimeout, 5).unwrap();
    assert_eq!(*seen.0.lock().unwrap(), [5, 7, 5]);
    assert_eq!(tunables.lock().len(), 1, "those who are gone are forgotten");
    assert_eq!(format!("{tunables:?}"), "{}");
}

/// One name that this program does not have refused the whole file of a machine, with settings that were meant.
#[test]
fn what_a_system_file_names_that_is_not_here_is_named_and_passed_over() {
    let text = "set ip:ip_forwarding = 1\nset zfs:zfs_txg_timeout=30\nset zfs:zfs_arc_maximum = 1\n\
                set zfs:zfs_prefetch_disabled = 1\n";
    let read = system::parse("system", text).unwrap();
    assert_eq!(
        read.known,
        [(Tunable::TxgTimeout, 30), (Tunable::PrefetchDisable, 1)],
        "the latter by its usual misspelling"
    );
    assert_eq!(
        read.skipped,
        [
            "system:1: module 'ip' is skipped: only 'zfs' is set here",
            "system:3: 'zfs_arc_maximum' is skipped: there is no such tunable",
        ]
    );
    assert!(system::parse("system", &format!("{text}set zfs_txg_timeout = 0\n")).is_err(), "a bad value");
}

#[test]
fn a_system_file_is_read_or_refused_by_line() {
    let text = "* flushes\n\nset zfs:zfs_nocacheflush = 1\n# ours\n  set zil_slog_bulk=0x4000000\nset\tzfs:zfs_txg_timeout=30\n";
    let expected =
        vec![(Tunable::NoCacheFlush, 1), (Tunable::ZilSlogBulk, 64 << 20), (Tunable::TxgTimeout, 30)];
    assert_eq!(system::parse("/etc/system", text).unwrap().known, expected);
    for (line, why) in [
        (
            "zfs_nocacheflush = 1",
            "system:2: 'zfs_nocacheflush = 1' is not of the form 'set zfs:NAME = VALUE'",
        ),
        ("set zfs:zfs_nocacheflush", "is not of the form"),
        ("settle zfs:zfs_nocacheflush = 1", "is not of the form"),
        ("set zfs:zfs_txg_timeout = 5 5", "bad value '5 5' for zfs_txg_timeout: it is no whole number"),
    ] {
        let text = format!("* comment\n{line}\n");
        let found = system::parse("system", &text).unwrap_err().to_string();
        assert!(found.contains(why), "{line}: {found}");
    }
}

#[test]
fn a_machine_may_have_defaults_of_its_own() {
    let of = |value| Tunables::with_defaults(&[(Tunable::DirtyDataMax, value)]);
    let tunables = of(40 << 20).unwrap();
    assert_eq!(tunables.get(Tunable::DirtyDataMax), 40 << 20);
    tunables.set(Tunable::DirtyDataMax, 1 << 30).unwrap();
    assert_eq!(tunables.default_of(Tunable::DirtyDataMax), 40 << 20);
    assert_eq!(tunables.default_of(Tunable::TxgTimeout), 5);
    assert!(of(1).is_err(), "out of its range");
}
