//! The ledger of changes: whatever sets something leaves a row, with a way back that leads there.

use crate::api::through_the_socket;
use crate::browser::{self, in_browser};
use crate::home::Home;
use interop::harness::{Trial, trial};
use interop::programs::said;
use serde_json::Value;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what_is_set_is_noted_marked_on_the_page_and_taken_back", &browser::NEEDS, noted),
        trial("services_targets_and_masks_are_noted_and_taken_back", &[], served),
    ]
}

fn ledger(home: &Home) -> Vec<Value> {
    let document: Value = serde_json::from_str(&home.run("changes -j")).unwrap();
    document["ledger"]["changes"].as_array().unwrap().clone()
}

/// Number, subject, setting, before and after of each.
fn rows(changes: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    let row = |change: &Value| {
        ["number", "subject", "setting", "before", "after"].map(|name| text(&change[name])).join(" ")
    };
    changes.iter().map(row).collect()
}

/// Waits until the newest change is that.
fn until(home: &Home, wanted: &str) {
    let begun = Instant::now();
    loop {
        let rows = rows(&ledger(home));
        if rows.last().is_some_and(|row| row == wanted) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted}: {rows:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn noted() {
    let home = Home::new();
    let (daemon, text) = home.start(
        "up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 1G --volume 64M --log error",
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let page = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
    let pools = home.run("zpool list -H -o name");
    let pool = pools.trim();
    home.run(&format!("zfs create {pool}/db"));
    assert_eq!(ledger(&home), [] as [Value; 0], "what is made is no change of a setting");
    assert_eq!(home.run("changes"), "no setting was changed\n");

    home.run(&format!("zfs set recordsize=16K compression=zstd {pool}/db"));
    home.run(&format!("zfs set recordsize=16K {pool}/db"));
    home.fails(&format!("zfs set recordsize=17 {pool}/db"), 1);
    home.run(&format!("zfs inherit compression {pool}/db"));
    home.run(&format!("zpool set comment=night {pool}"));
    home.run("tunable set zfs_txg_timeout=7");
    let changes = ledger(&home);
    let db = format!("{pool}/db");
    assert_eq!(
        rows(&changes),
        [
            format!("1 {db} compression on zstd"),
            format!("2 {db} recordsize 131072 16384"),
            format!("3 {db} compression zstd on"),
            format!("4 {pool} comment null night"),
            "5  zfs_txg_timeout 5 7".into(),
        ]
    );
    // All say the same.
    assert_eq!(
        through_the_socket(&home, "/api/analytics/v1/changes")["changes"],
        Value::Array(changes.clone())
    );
    let shell = said(&home.cenote(&["shell", "-c", "analytics changes"]).output().unwrap());
    assert!(shell.contains("recordsize") && shell.contains("zfs_txg_timeout"), "{shell}");
    let one = home.run("changes 2");
    for part in [
        format!(
            "    before: 128K (not set here)\n     after: 16K\n   command: zfs set recordsize=16K compression=zstd {db}\n"
        ),
        format!("  way back: cenote zfs inherit recordsize {db}\n"),
    ] {
        assert!(one.contains(&part), "{part}: {one}");
    }

    let second = changes[1]["time"].to_string();
    let wanted = format!("recordsize of {db}: 128K \u{2192} 16K");
    let seen = in_browser("marks.mjs", &[words[page], words[page + 2]], &[&second, &wanted]);
    let seen: Value = serde_json::from_str(seen.trim()).unwrap();
    assert_eq!(seen["marked"], serde_json::json!([true, true]));
    let list = seen["list"].as_str().unwrap();
    assert!(list.contains(&wanted) && list.contains("cenote tunable set zfs_txg_timeout=5"), "{list}");

    assert_eq!(home.run("changes undo 2"), format!("cenote zfs inherit recordsize {db}\n"));
    assert_eq!(home.run(&format!("zfs get -H -o value,source recordsize {db}")), "128K\tdefault\n");
    let refused = home.fails("changes undo 1", 1);
    assert!(refused.contains("'compression' was set again by change 3; take that back"), "{refused}");
    assert!(home.fails("changes undo 4", 1).contains("had no value before"));
    let shell = said(&home.cenote(&["shell", "-c", "analytics undo 5"]).output().unwrap());
    assert!(shell.contains("cenote tunable set zfs_txg_timeout=5"), "{shell}");
    assert_eq!(home.run("tunable get -Hp zfs_txg_timeout").split_whitespace().nth(1), Some("5"));
    assert!(home.fails("changes 99", 1).contains("there is no change 99"));
    assert_eq!(ledger(&home).len(), 7);
    // A quota of a user is inherited from nothing, and a block size holds when all blocks have it.
    home.run(&format!("zfs set userquota@root=10M {db}"));
    assert_eq!(home.run("changes undo 8"), format!("cenote zfs set userquota@root=none {db}\n"));
    home.run(&format!("zfs create -s -V 16M -b 16K {pool}/blocks"));
    home.run(&format!("zfs set volblocksize=32K {pool}/blocks"));
    until(&home, &format!("10 {pool}/blocks volblocksize 16384 32768"));
    home.run("changes undo 10");
    until(&home, &format!("11 {pool}/blocks volblocksize 32768 16384"));
    let before = rows(&ledger(&home));
    assert_eq!(before.len(), 11, "{before:?}");
    daemon.end();

    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --log error");
    assert_eq!(rows(&ledger(&home)), before, "they are kept");
    home.run(&format!("zfs set atime=off {db}"));
    assert!(rows(&ledger(&home))[11].starts_with("12 "));
    daemon.end();
    home.fails("changes", 1);
}

fn served() {
    let home = Home::with_pool();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https --log error");
    let target = "iqn.2001-04.com.example:a";
    let shell = |script: &str| {
        let output = interop::programs::feed(&mut home.cenote(&["shell"]), script);
        assert!(output.status.success(), "{script}: {}", said(&output));
        said(&output)
    };
    shell(&format!(
        "configuration san targets iscsi create\nset iqn={target}\ncommit\n\
         configuration san initiators iscsi create\nset initiator=iqn.1998-01.org:one\ncommit\n\
         configuration san initiators iscsi groups create\nset name=hosts\nset initiators=iqn.1998-01.org:one\ncommit\n\
         shares project p\ncommit\nshares select p lun l\nset volsize=16M\ncommit\n"
    ));
    assert_eq!(ledger(&home), [] as [Value; 0], "what is made is no change of a setting");
    shell(&format!("configuration san targets iscsi select {target}\nset alias=left\ncommit\n"));
    shell("configuration services iscsi disable\n");
    shell("shares select p select l set initiatorgroup=hosts\n");
    let changes = ledger(&home);
    let own = rows(&changes);
    assert!(own[2].starts_with("3 tank/p/l cenote:initiatorgroup ") && own[2].ends_with(" hosts"), "{own:?}");
    assert_eq!(own[..2], [format!("1 {target} alias  left"), "2 iscsi enabled true false".into(),]);
    let kinds: Vec<&str> = changes.iter().map(|change| change["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["target", "service", "dataset"]);
    assert!(home.run("changes").contains("iscsi"));
    for number in 1..=3 {
        home.run(&format!("changes undo {number}"));
    }
    let own = rows(&ledger(&home));
    assert!(own[5].starts_with("6 tank/p/l cenote:initiatorgroup hosts "), "{own:?}");
    assert_eq!(own[3..5], [format!("4 {target} alias left "), "5 iscsi enabled false true".into(),]);
    daemon.end();
}
