//! Snapshots, clones, rollbacks and holds by `zfs`, without a daemon.

use crate::home::Home;
use crate::shell::shell;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use interop::zdb;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("snapshots_are_taken_listed_cloned_promoted_and_destroyed", &[Need::Program("zdb")], life),
        trial(
            "a_snapshot_and_a_clone_serve_what_was_and_a_rollback_brings_it_back",
            &[Need::Program("nbdcopy"), Need::Program("zdb")],
            served,
        ),
        trial("what_is_in_the_way_of_a_snapshot_is_said", &[], errors),
    ]
}

fn life() {
    let home = Home::with_pool();
    home.run("zfs create tank/p");
    home.run("zfs create -s -V 16M tank/p/v");
    home.run("zfs create -s -V 16M tank/p/w");
    home.run("zfs snapshot -r -o org.cenote:why=test tank/p@mon");
    home.run("zfs snap tank/p/v@tue tank/p/w@tue");
    let names = |words: &str| home.run(&format!("zfs list -H -o name -t {words}")).replace('\n', " ");
    assert_eq!(names("snapshot -r tank/p/v"), "tank/p/v@mon tank/p/v@tue ");
    assert_eq!(names("snapshot tank/p@mon"), "tank/p@mon ");
    let get = |property: &str, of: &str| {
        home.run(&format!("zfs get -Hp -o value {property} {of}")).trim_end().to_string()
    };
    assert_eq!(get("createtxg", "tank/p/v@mon"), get("createtxg", "tank/p/w@mon"), "of one moment");
    assert_eq!(get("org.cenote:why", "tank/p/w@mon"), "test");
    assert_eq!(get("volsize", "tank/p/v@mon"), "16777216");
    assert!(get("snapshots_changed", "tank/p/v").parse::<u64>().unwrap() > 1_700_000_000);

    home.run("zfs clone -p -o compression=off tank/p/v@tue tank/c/deep/v");
    assert_eq!(
        (get("origin", "tank/c/deep/v"), get("compression", "tank/c/deep/v")),
        ("tank/p/v@tue".to_string(), "off".to_string())
    );
    assert_eq!(get("clones", "tank/p/v@tue"), "tank/c/deep/v");
    home.run("zfs clone -o refreservation=auto tank/p/w@mon tank/thick");
    assert!(get("refreservation", "tank/thick").parse::<u64>().unwrap() >= 16 << 20);
    home.run("zfs promote tank/c/deep/v");
    assert_eq!(names("snapshot -r tank/c"), "tank/c/deep/v@mon tank/c/deep/v@tue ");
    assert_eq!(get("origin", "tank/p/v"), "tank/c/deep/v@tue");
    home.run("zfs promote tank/p/v");

    home.run("zfs hold -r keep tank/p@mon");
    assert_eq!(get("userrefs", "tank/p/w@mon"), "1");
    let holds = home.run("zfs holds -r tank/p@mon");
    assert!(holds.starts_with("NAME") && holds.matches("  keep  ").count() == 3, "{holds}");
    home.run("zfs destroy -d tank/p@mon");
    assert_eq!(get("defer_destroy", "tank/p@mon"), "on");
    home.run("zfs release -r keep tank/p@mon");
    assert_eq!(home.run("zfs holds tank/p/v@mon"), "");
    assert_eq!(names("snapshot -r tank/p"), "tank/p/v@mon tank/p/v@tue tank/p/w@mon tank/p/w@tue ");

    home.run("zfs rename -r tank/p@tue tank/p@wed");
    home.run("zfs rename tank/p/w@wed @thu");
    for day in ["fri", "sat", "sun"] {
        home.run(&format!("zfs snapshot tank/p/w@{day}"));
    }
    let dry = home.run("zfs destroy -nvp tank/p/w@fri%sat,thu");
    assert!(
        dry.starts_with("destroy\ttank/p/w@thu\ndestroy\ttank/p/w@fri\ndestroy\ttank/p/w@sat\nreclaim\t"),
        "{dry}"
    );
    home.run("zfs destroy tank/p/w@fri%sat");
    assert_eq!(names("snapshot -r tank/p/w"), "tank/p/w@mon tank/p/w@thu tank/p/w@sun ");
    home.run("zfs rollback -r tank/p/w@thu");
    assert_eq!(names("snapshot -r tank/p/w"), "tank/p/w@mon tank/p/w@thu ");
    assert!(home.run("zpool history tank").contains("zfs rollback -r tank/p/w@thu"));
    assert!(home.run("zfs destroy -Rnv tank/p").contains("would destroy tank/c/deep/v\n"));
    home.run("zfs destroy -R tank/p");
    assert_eq!(names("all -r tank"), "tank tank/c tank/c/deep ");
    home.run("zfs snapshot tank/c@last");
    home.run("zpool export tank");
    zdb::assert_clean(home.scratch.path(), "tank");
}

fn errors() {
    let home = Home::with_pool();
    home.run("zfs create -s -V 16M tank/v");
    home.run("zfs snapshot tank/v@a");
    home.run("zfs snapshot tank/v@b");
    home.run("zfs clone tank/v@b tank/c");
    home.run("zfs hold h tank/v@a");
    for (line, said) in [
        ("zfs snapshot tank/v", "cannot create snapshot 'tank/v': a snapshot is called 'dataset@name'"),
        ("zfs snapshot tank/x@a", "cannot open 'tank/x': dataset does not exist"),
        ("zfs snapshot tank/v@a", "cannot create snapshot 'tank/v@a': dataset already exists"),
        ("zfs snapshot tank/v@c!", "cannot create snapshot 'tank/v@c!': invalid character '!'"),
        ("zfs snapshot -o compression=off tank/v@c", "cannot create snapshot 'tank/v@c': "),
        (
            "zfs rollback tank/v@a",
            "cannot roll back to 'tank/v@a': more recent snapshots exist: tank/v@b; use -r to destroy them",
        ),
        (
            "zfs rollback -r tank/v@a",
            "cannot roll back to 'tank/v@a': it has clones: tank/c; destroy them first, or use -R",
        ),
        ("zfs rollback tank/v@x", "cannot roll back to 'tank/v@x': snapshot does not exist"),
        ("zfs clone tank/v@x tank/d", "cannot create 'tank/d': there is no snapshot 'tank/v@x'"),
        ("zfs clone tank/v@a tank/c", "cannot create 'tank/c': dataset already exists"),
        ("zfs clone tank/v@a tank/d/e", "cannot create 'tank/d/e': parent does not exist; use -p to make it"),
        ("zfs clone tank/v tank/d", "cannot create 'tank/d': a snapshot is called 'dataset@name'"),
        ("zfs clone -o volsize=1G tank/v@a tank/d", "cannot create 'tank/d': 'volsize' is the origin's"),
        ("zfs promote tank/v", "cannot promote 'tank/v': it is not a clone"),
        (
            "zfs destroy tank/v@b",
            "cannot destroy 'tank/v@b': it has clones: tank/c; destroy them first, or use -R",
        ),
        ("zfs destroy tank/v@a", "cannot destroy 'tank/v@a': it is held; release the holds first"),
        ("zfs destroy tank/v@x", "cannot destroy 'tank/v@x': snapshot 'tank/v@x' does not exist"),
        ("zfs destroy -r tank/v", "cannot destroy 'tank/v': it "),
        ("zfs destroy -d tank/c", "cannot destroy 'tank/c': '-d' is for snapshots"),
        ("zfs hold h tank/v@a", "cannot hold snapshot 'tank/v@a': tag 'h' already exists on it"),
        ("zfs release x tank/v@a", "cannot release snapshot 'tank/v@a': there is no tag 'x' on it"),
        ("zfs rename tank/v@a tank/c@a", "cannot rename 'tank/v@a': snapshots must be part of same dataset"),
        ("zfs rename tank/v@a b", "cannot rename 'tank/v@a': dataset already exists"),
    ] {
        let heard = home.fails(line, 1);
        assert!(heard.starts_with(said), "{line}: {heard}");
        assert_eq!(heard.lines().count(), 1, "{line}: {heard}");
    }
}

fn served() {
    let home = Home::new();
    let (daemon, uri) = home.up("64M");
    let names = home.run("zfs list -H -o name -t volume");
    let volume = names.trim_end();
    let bytes = |seed: u8| (0..8u32 << 20).map(|i| (i >> 9) as u8 ^ seed).collect::<Vec<u8>>();
    let write = |seed: u8| {
        let source = home.scratch.join("source");
        std::fs::write(&source, bytes(seed)).unwrap();
        run(command("nbdcopy").arg(&source).arg(&uri));
    };
    let holds = |uri: &str, seed: u8| {
        let back = home.scratch.join("back");
        let _ = std::fs::remove_file(&back);
        run(command("nbdcopy").arg(uri).arg(&back));
        assert!(std::fs::read(&back).unwrap()[..8 << 20] == bytes(seed), "{uri} holds {seed}");
    };
    // What was acknowledged is in the snapshot, flushed or not.
    write(1);
    home.run(&format!("zfs snapshot {volume}@one"));
    write(2);
    let pool = volume.split('/').next().unwrap();
    home.run(&format!("zfs clone {volume}@one {pool}/copy"));
    holds(&uri, 2);
    holds(&uri.replace(volume, &format!("{volume}@one")), 1);
    holds(&uri.replace(volume, &format!("{pool}/copy")), 1);
    home.run(&format!("zfs rollback {volume}@one"));
    holds(&uri, 1);
    write(3);
    holds(&uri.replace(volume, &format!("{volume}@one")), 1);
    // The same by the shell.
    let share = volume.split('/').next_back().unwrap();
    let script = format!(
        "shares select default select {share} snapshots\nsnapshot two\nlist\nselect one\nclone other\nlist dependents\n"
    );
    let said = shell(&home, &[], &script, 0);
    assert!(said.contains("two") && said.contains("default/other"), "{said}");
    holds(&uri.replace(volume, &format!("{pool}/other")), 1);
    let at = format!("shares select default select {share} snapshots");
    assert!(shell(&home, &[], &format!("{at} rollback one\n"), 1).contains("newer snapshots two"));
    assert!(shell(&home, &[], &format!("{at} destroy one\n"), 1).contains("confirm"));
    shell(&home, &[], &format!("{at}\nconfirm rollback one\nrename one kept\n"), 0);
    holds(&uri, 1);
    assert_eq!(home.run("zfs list -H -o name -t snapshot"), format!("{volume}@kept\n"));
    daemon.end();
    home.run(&format!("zpool export {pool}"));
    zdb::assert_clean(&home.dir().join("disks"), pool);
}
