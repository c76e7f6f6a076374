//! The halves of a mirror that were each used without the other, and meet again: what an administrator is told, and that
//! what is advised works.

use crate::home::Home;
use interop::harness::{Trial, trial};
use std::fs;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_half_that_was_used_alone_is_not_put_back", &[], put_back),
        trial("halves_that_were_used_alone_are_not_opened_together", &[], together),
    ]
}

/// A mirror of two files, of which this is one.
struct Half {
    place: String,
    drawer: String,
}

impl Half {
    fn take(&self) {
        fs::rename(&self.place, &self.drawer).unwrap();
    }

    fn give(&self) {
        fs::rename(&self.drawer, &self.place).unwrap();
    }
}

/// Each half has a property of the pool that the other has not.
fn forked() -> (Home, [Half; 2]) {
    let home = Home::new();
    let drawer = home.scratch.join("drawer");
    fs::create_dir(&drawer).unwrap();
    let halves = ["a", "b"].map(|name| Half {
        place: home.disk(&format!("{name}.img")),
        drawer: drawer.join(name).display().to_string(),
    });
    home.run(&format!("zpool create tank mirror {} {}", halves[0].place, halves[1].place));
    for (own, other) in [("a", &halves[1]), ("b", &halves[0])] {
        other.take();
        for txg in 0..if own == "a" { 6 } else { 2 } {
            home.run(&format!("zfs set x:half={own}{txg} tank"));
        }
        other.give();
    }
    halves[0].take();
    (home, halves)
}

fn half(home: &Home) -> String {
    home.run("zfs get -H -o value x:half tank").trim().to_string()
}

fn is_whole(home: &Home, halves: &[Half; 2]) {
    for line in ["zpool wait -t resilver tank", "zpool scrub -w tank"] {
        home.run(line);
    }
    let status = home.run("zpool status -x");
    assert!(status.contains("all pools are healthy"), "{status}");
    for alone in halves {
        alone.take();
        assert_eq!(half(home), "b2");
        alone.give();
    }
}

/// Its newer state was followed by the next start, in a tree that had been written over since.
fn put_back() {
    for way in ["zpool online tank A", "zpool reopen tank", "zpool clear tank"] {
        let (home, halves) = forked();
        let a = &halves[0].place;
        let (daemon, _) = home.start("serve --no-https");
        home.run("zfs set x:half=b2 tank");
        halves[0].give();
        let output = home.output(&way.replace('A', a));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = home.run("zpool status tank");
        assert!(status.contains("used without the pool\n"), "{way}: {said} {status}");
        assert!(
            status.contains("status: One or more devices were used without the pool, and are not"),
            "{status}"
        );
        assert_eq!(half(&home), "b2");
        // As advised.
        home.run(&format!("zpool detach tank {a}"));
        let refused = home.fails(&format!("zpool attach tank {} {a}", halves[1].place), 1);
        assert!(refused.contains("'tank'"), "{refused}");
        home.run(&format!("zpool attach -f tank {} {a}", halves[1].place));
        home.run("zpool wait -t resilver tank");
        daemon.kill();
        let (daemon, _) = home.start("serve --no-https");
        assert_eq!(half(&home), "b2");
        daemon.end();
        is_whole(&home, &halves);
    }
}

/// The newest state was copied over the other without a word.
fn together() {
    let (home, halves) = forked();
    let why = "its devices went on without one another; ";
    home.run("zfs set x:half=b2 tank");
    halves[0].give();
    let (daemon, _) = home.start("serve --no-https");
    let refused = home.fails("zfs list tank", 1);
    assert!(refused.starts_with(&format!("cannot open 'tank': {why}")), "{refused}");
    let status = home.run("zpool status tank");
    for said in [
        "state: UNAVAIL",
        "status: The pool could not be opened.",
        why,
        "b.img: from txg ",
        "'zpool clear' opens",
    ] {
        assert!(status.contains(said), "{said}: {status}");
    }
    // With one side away the other one is had.
    halves[1].take();
    home.run("zpool clear tank");
    assert_eq!(half(&home), "a5");
    daemon.kill();
    halves[1].give();
    let (daemon, _) = home.start("serve --no-https");
    home.fails("zfs list tank", 1);
    halves[0].take();
    home.run("zpool clear tank");
    assert_eq!(half(&home), "b2");
    home.run("zpool export tank");
    halves[0].give();
    // An import refuses both as well, until it is told; then nothing is left to be refused.
    let dir = home.scratch.path().display();
    let refused = home.fails(&format!("zpool import -d {dir} tank"), 1);
    assert!(refused.starts_with(&format!("cannot import 'tank': {why}")), "{refused}");
    halves[0].take();
    home.run(&format!("zpool import -d {dir} tank"));
    for _ in 0..8 {
        home.run("zfs set x:half=b2 tank");
    }
    home.run("zpool export tank");
    halves[0].give();
    home.run(&format!("zpool import -f -d {dir} tank"));
    daemon.kill();
    let (daemon, _) = home.start("serve --no-https");
    assert_eq!(half(&home), "b2");
    daemon.end();
    is_whole(&home, &halves);
}
