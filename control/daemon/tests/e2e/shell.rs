//! The shell against a real daemon: what is typed and shown, and the datasets that it leaves.

use crate::home::{Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, feed, run, said};
use std::collections::BTreeSet;

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "the_deployment_of_a_database_is_typed_as_it_was_published",
            &[Need::Program("zdb")],
            deployment,
        ),
        trial("who_sees_what_survives_a_kill_and_a_move", &[], survives),
        trial("what_zfs_made_is_shown_and_becomes_a_lun_on_purpose", &[], adopted),
        trial("deferred_updates_are_applied_on_purpose", &[], updates),
        trial("a_project_is_inherited_from_renamed_and_destroyed", &[], projects),
    ]
}

/// What a script prints; it must end with this code.
pub fn shell(home: &Home, words: &[&str], script: &str, code: i32) -> String {
    let output = feed(&mut home.cenote(&[&["shell"], words].concat()), script);
    assert_eq!(output.status.code(), Some(code), "{script}: {}", said(&output));
    said(&output)
}

/// A home with a pool of a sparse file, large enough for what is published, and a daemon.
fn served() -> (Home, Daemon) {
    let home = Home::new();
    let path = home.scratch.join("disk.img");
    std::fs::File::create(&path).unwrap().set_len(2 << 40).unwrap();
    home.run(&format!("zpool create tank {}", path.display()));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    (home, daemon)
}

/// What the deployment presupposes: two targets and a host, in groups.
pub const GROUPS: &str = "\
configuration san targets iscsi create
set iqn=iqn.2001-04.com.example:t1 alias=one
commit
configuration san targets iscsi create
set iqn=iqn.2001-04.com.example:t2
commit
configuration san targets iscsi groups create
set name=mysql-tgt targets=iqn.2001-04.com.example:t1,iqn.2001-04.com.example:t2
commit
configuration san initiators iscsi create
set initiator=iqn.1993-08.org.debian:01:abc alias=dbhost chapuser=db chapsecret=correct-horse-battery
commit
configuration san initiators iscsi groups create
set name=mysql-init initiators=iqn.1993-08.org.debian:01:abc
commit
";

/// As published; the two echoes that are misprinted there are as they must have been.
pub const DEPLOYMENT: &str = "\
zfs:> shares project mysql
zfs:shares mysql (uncommitted)> set logbias=latency
                       logbias = latency (uncommitted)
zfs:shares mysql (uncommitted)> commit
zfs:> shares select mysql
zfs:shares mysql> lun innodb-data
zfs:shares mysql/innodb-data (uncommitted)> set volblocksize=16K
                       volblocksize = 16K (uncommitted)
zfs:shares mysql/innodb-data (uncommitted)> set volsize=1T
                       volsize = 1T (uncommitted)
zfs:shares mysql/innodb-data (uncommitted)> set initiatorgroup=mysql-init
                       initiatorgroup = mysql-init (uncommitted)
zfs:shares mysql/innodb-data (uncommitted)> set targetgroup=mysql-tgt
                       targetgroup = mysql-tgt (uncommitted)
zfs:shares mysql/innodb-data (uncommitted)> commit
zfs:shares mysql> lun innodb-log
zfs:shares mysql/innodb-log (uncommitted)> set volblocksize=128K
                       volblocksize = 128K (uncommitted)
zfs:shares mysql/innodb-log (uncommitted)> set volsize=256G
                       volsize = 256G (uncommitted)
zfs:shares mysql/innodb-log (uncommitted)> commit
";

/// What a person types in a transcript.
pub fn typed(transcript: &str) -> String {
    let typed =
        |line: &str| line.strip_prefix("zfs:")?.split_once("> ").map(|(_, typed)| format!("{typed}\n"));
    transcript.lines().filter_map(typed).collect()
}

fn deployment() {
    let (home, daemon) = served();
    shell(&home, &[], GROUPS, 0);
    let printed = shell(&home, &["--transcript", "--prompt-host", "zfs"], &typed(DEPLOYMENT), 0);
    let (expected, printed): (Vec<&str>, Vec<&str>) =
        (DEPLOYMENT.lines().collect(), printed.lines().collect());
    assert_eq!(printed.len(), expected.len(), "{printed:#?}");
    for (printed, expected) in printed.iter().zip(&expected) {
        // With the one margin that echoes have where it was published.
        assert_eq!(printed.trim_end(), expected.trim_end());
    }

    let get = |properties: &str, dataset: &str| {
        home.run(&format!("zfs get -H -o property,value,source {properties} {dataset}"))
    };
    assert_eq!(get("type,logbias", "tank/mysql"), "type\tfilesystem\t-\nlogbias\tlatency\tlocal\n");
    assert_eq!(
        get(
            "type,volsize,volblocksize,logbias,cenote:targetgroup,cenote:initiatorgroup,cenote:lunumber",
            "tank/mysql/innodb-data"
        ),
        "type\tvolume\t-\nvolsize\t1T\tlocal\nvolblocksize\t16K\tlocal\nlogbias\tlatency\tinherited from tank/mysql\n\
         cenote:targetgroup\tmysql-tgt\tlocal\ncenote:initiatorgroup\tmysql-init\tlocal\ncenote:lunumber\t0\tlocal\n"
    );
    assert_eq!(
        get("volsize,volblocksize,cenote:targetgroup,cenote:lunumber", "tank/mysql/innodb-log"),
        "volsize\t256G\tlocal\nvolblocksize\t128K\tlocal\ncenote:targetgroup\t-\t-\ncenote:lunumber\t1\tlocal\n"
    );
    let guids: Vec<String> = ["data", "log"]
        .map(|name| home.run(&format!("zfs get -H -o value cenote:lunguid tank/mysql/innodb-{name}")))
        .into();
    assert!(
        guids[0] != guids[1] && guids.iter().all(|g| g.len() == 33 && g.starts_with("600144f0")),
        "{guids:?}"
    );
    let shown = shell(&home, &[], "shares select mysql select innodb-data show", 0);
    for line in [
        "logbias = latency (inherited)",
        "volsize = 1T",
        "initiatorgroup = mysql-init",
        "writecache = false (default)",
    ] {
        assert!(shown.lines().any(|l| l.trim() == line), "{line}: {shown}");
    }
    let history = home.run("zpool history tank");
    assert!(
        history
            .contains("shell: lun mysql/innodb-data volblocksize=16K volsize=1T initiatorgroup=mysql-init"),
        "{history}"
    );
    daemon.end();
    let listed = run(command("zdb").args(["-e", "-p"]).arg(home.scratch.path()).args(["-d", "tank"]));
    let datasets: BTreeSet<&str> =
        listed.lines().filter_map(|l| l.strip_prefix("Dataset ")?.split_whitespace().next()).collect();
    let expected = ["mos", "tank", "tank/mysql", "tank/mysql/innodb-data", "tank/mysql/innodb-log"];
    assert_eq!(datasets, BTreeSet::from(expected), "{listed}");
}

fn survives() {
    let (home, daemon) = served();
    shell(&home, &[], GROUPS, 0);
    shell(
        &home,
        &[],
        "shares project p; commit; shares select p lun l; set volsize=1G targetgroup=mysql-tgt; commit",
        0,
    );
    let backup = home.scratch.join("backup");
    shell(&home, &[], &format!("maintenance system backup {}", backup.display()), 0);
    daemon.kill();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let show = |home: &Home| {
        shell(
            home,
            &[],
            "configuration san targets iscsi list\nconfiguration san targets iscsi groups list\n\
             configuration san initiators iscsi select alias=dbhost get\nshares select p select l get lunguid\n",
            0,
        )
    };
    let before = show(&home);
    for part in
        ["target-000  one", "iqn.2001-04.com.example:t2", "group-001  mysql-tgt", "chapuser = db", "********"]
    {
        assert!(before.contains(part), "{part}: {before}");
    }
    assert!(!before.contains("correct-horse"), "{before}");
    let said = shell(&home, &[], "configuration san targets iscsi groups confirm destroy mysql-tgt", 1);
    assert!(
        said.contains("error: cannot destroy target group 'mysql-tgt': the LUN 'tank/p/l' uses the group"),
        "{said}"
    );
    home.run("zpool export tank");
    daemon.end();

    // Another machine gets the pool, and the configuration from its backup.
    let other = Home::new();
    let dir = home.scratch.path().display().to_string();
    other.run(&format!("zpool import -d {dir} tank"));
    let said = shell(&other, &[], &format!("maintenance system restore {}", backup.display()), 1);
    assert!(said.contains("To go on, say \"confirm restore"), "{said}");
    shell(&other, &[], &format!("maintenance system confirm restore {}", backup.display()), 0);
    assert_eq!(show(&other), before, "the identifier came with the pool");
}

fn adopted() {
    let home = Home::with_pool();
    home.run("zfs create -s -V 32M tank/vol1");
    home.run("zfs create tank/web");
    home.run("zfs create -s -V 32M tank/web/disk");
    home.run("zfs create tank/web/files");
    let listed = shell(&home, &[], "shares list; shares select default list; shares select web list", 0);
    let words: Vec<&str> = listed.split_whitespace().collect();
    for name in ["default", "web", "vol1", "disk", "files", "/tank/web/files"] {
        assert!(words.contains(&name), "{name}: {listed}");
    }
    let get = |what: &str| shell(&home, &[], &format!("shares select web select disk get {what}"), 0);
    assert_eq!(get("status").trim(), "status = offline");
    assert_eq!(get("lunguid").trim(), "lunguid =");
    shell(&home, &[], "shares select web select disk set status=online", 0);
    assert!(get("lunguid").contains("600144f0"));
    assert_eq!(get("lunumber").trim(), "lunumber = 0");
    shell(&home, &[], "shares select default select vol1 set initiatorgroup=default", 0);
    assert_eq!(shell(&home, &[], "shares select default select vol1 get lunumber", 0).trim(), "lunumber = 1");
    let said = shell(&home, &[], "shares select default select vol1 set lunumber=0", 1);
    assert!(said.contains("the LUN 'tank/web/disk' has the number 0"), "{said}");
    let said = shell(&home, &[], "shares select default filesystem x; commit", 1);
    assert!(
        said.contains("error: cannot create filesystem 'default/x': the default project has LUNs only"),
        "{said}"
    );
}

fn updates() {
    let home = Home::new();
    let disk = home.disk("a.img");
    home.run(&format!("zpool create -o feature@large_blocks=disabled tank {disk}"));
    let list = "maintenance system updates list";
    let listed = shell(&home, &[], list, 0);
    assert!(listed.contains("large_blocks"), "{listed}");
    let create = "shares project p; set recordsize=1M; commit";
    assert!(shell(&home, &[], create, 1).contains("error: cannot create 'tank/p'"));
    let said = shell(&home, &[], "maintenance system updates apply tank large_blocks", 1);
    assert!(
        said.contains("cannot be taken back") && said.contains("\"confirm apply tank large_blocks\""),
        "{said}"
    );
    assert_eq!(shell(&home, &[], list, 0), listed, "nothing happens by itself");
    shell(&home, &[], "maintenance system updates confirm apply tank large_blocks", 0);
    assert_eq!(home.run("zpool get -H -o value feature@large_blocks tank"), "enabled\n");
    assert!(!shell(&home, &[], list, 0).contains("large_blocks"));
    shell(&home, &[], create, 0);
    assert_eq!(home.run("zfs get -H -o value recordsize tank/p"), "1M\n");
}

fn projects() {
    let home = Home::with_pool();
    let script = "\
shares project p
set compression=zstd default_volsize=64M default_volblocksize=32K default_sparse=true atime=off
get atime
commit
shares select p lun l
commit
shares select p filesystem f
set quota=100M
commit
shares select p
list
select l
get volsize
get volblocksize
get compression
set compression=lz4
commit
get compression
unset compression
commit
get compression
done
done
shares rename p q
shares select q get atime
";
    let printed = shell(&home, &["--prompt-host", "x"], script, 0);
    let values: Vec<&str> = printed.lines().map(str::trim).filter(|l| l.contains(" = ")).collect();
    let get: Vec<&str> = values.iter().copied().filter(|l| !l.ends_with("(uncommitted)")).collect();
    assert_eq!(
        get,
        [
            "volsize = 64M",
            "volblocksize = 32K",
            "compression = zstd (inherited)",
            "compression = lz4",
            "compression = zstd (inherited)",
            "atime = false"
        ],
        "{printed}"
    );
    assert_eq!(home.run("zfs get -H -o value refreservation tank/q/l"), "none\n");
    assert_eq!(home.run("zfs get -H -o value,source quota tank/q/f"), "100M\tlocal\n");
    let fails = |script: &str, part: &str| {
        let said = shell(&home, &[], script, 1);
        assert!(said.contains(part), "{script}: {said}");
    };
    fails("shares project q; commit", "error: project \"q\" exists already; select it instead");
    fails("shares project default; commit", "project \"default\" exists already; select it instead");
    fails("shares select gone", "error: cannot open 'gone': there is no such project");
    fails("shares select q lun m; set volsize=1E sparse=false; commit", "out of space");
    fails("shares select q destroy", "This destroys all data in the project \"q\".");
    shell(&home, &[], "shares select q set nodestroy=true", 0);
    fails("shares confirm destroy q", "\"nodestroy\" is set on 'q'");
    shell(&home, &[], "shares select q set nodestroy=false; shares confirm destroy q", 0);
    assert_eq!(home.run("zfs list -H -o name"), "tank\n");
}
