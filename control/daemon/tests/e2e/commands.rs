//! `zpool` and `zfs` without a daemon: what they do, and what they say when it cannot be done.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::zdb;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what_was_asked_wrongly_is_said_and_what_was_asked_is_shown", &[], asked),
        trial("pools_and_datasets_come_and_go_without_a_daemon", &[Need::Program("zdb")], come_and_go),
        trial("every_error_is_one_line_that_says_what_was_asked_and_what_is_wrong", &[], errors),
        trial("words_that_make_no_sense_end_with_the_usage", &[], usage),
        trial("properties_tell_where_they_come_from", &[], sources),
        trial("inspect_verifies_a_pool_that_nobody_has", &[], inspect),
        trial("the_manual_and_the_completions_are_written", &[], manual),
    ]
}

fn come_and_go() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    assert!(home.fails(&format!("zpool create tank {a}"), 1).contains("pool already exists"));
    home.run("zfs create -s -V 64M -o compression=zstd-3 tank/vol");
    home.run("zfs create tank/fs");
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/fs\ntank/vol\n");
    assert_eq!(home.run("zfs get -H -o value,source compression tank/vol"), "zstd-3\tlocal\n");
    assert!(home.run("zpool status").contains("errors: No known data errors"));
    assert!(home.run("zpool history").contains("zfs create tank/fs"));
    home.run("zpool scrub tank");
    assert!(home.run("zpool status").contains("scan: scrub repaired 0B in "));
    home.run("zpool export tank");
    assert_eq!(home.run("zpool list"), "no pools available\n");
    let dir = home.scratch.path().display().to_string();
    assert!(home.run(&format!("zpool import -d {dir}")).contains("mirror-0"));
    home.run(&format!("zpool import -d {dir} tank lake"));
    home.run("zfs destroy lake/vol");
    assert_eq!(home.run("zfs list -H -o name"), "lake\nlake/fs\n");
    home.run("zpool export lake");
    zdb::assert_clean(home.scratch.path(), "lake");
    // Destroyed, it is found again when that is asked for.
    home.run(&format!("zpool import -d {dir} lake"));
    home.run("zpool destroy lake");
    assert!(home.run(&format!("zpool import -d {dir}")).starts_with("no pools available to import"));
    assert!(home.run(&format!("zpool import -D -d {dir}")).contains("state: ONLINE (DESTROYED)"));
    home.run(&format!("zpool import -D -d {dir} lake"));
    // Read-only nothing is written, and that is said.
    home.run("zpool export lake");
    home.run(&format!("zpool import -o readonly=on -N -d {dir} lake evidence"));
    assert_eq!(home.run("zpool get -H -o value readonly evidence"), "on\n");
    assert_eq!(home.run("zfs list -H -o name"), "evidence\nevidence/fs\n");
    assert_eq!(home.fails("zfs create evidence/x", 1), "cannot create 'evidence/x': pool is read-only");
    home.run("zpool export evidence");
    assert!(
        home.run(&format!("zpool import -d {dir}")).contains("  pool: lake\n"),
        "its name is what it was"
    );
}

fn errors() {
    let home = Home::with_pool();
    let other = home.disk("other.img");
    home.run("zfs create -s -V 64M tank/v");
    let dir = home.scratch.path().display().to_string();
    for (line, said) in [
        ("zpool list lake", "cannot open 'lake': no such pool"),
        ("zpool export lake", "cannot open 'lake': no such pool"),
        ("zpool destroy lake", "cannot open 'lake': no such pool"),
        ("zpool create 9lives OTHER", "cannot create '9lives': name must begin with a letter"),
        ("zpool create mirror OTHER", "cannot create 'mirror': name is reserved"),
        (
            "zpool create a/b OTHER",
            "cannot create 'a/b': invalid character '/' in pool name; use 'zfs create' to create a dataset",
        ),
        (
            "zpool create lake DIR/none",
            "cannot create 'lake': 'DIR/none' is no file or device; a file for a pool is made with 'truncate -s 1G DIR/none'",
        ),
        ("zpool create lake DIR/a.img", "cannot create 'lake': DIR/a.img "),
        ("zpool create -o ashift=99 lake OTHER", "cannot create 'lake': property 'ashift' number "),
        ("zpool create -o nonsense=1 lake OTHER", "cannot create 'lake': "),
        (
            "zpool create -o compatibility=openzfs-9 lake OTHER",
            "bad property value 'compatibility=openzfs-9': ",
        ),
        (
            "zpool create -O recordsize=3K lake OTHER",
            "cannot create 'lake': 'recordsize' must be power of 2 from 512B to ",
        ),
        ("zpool create lake OTHER OTHER", "cannot create 'lake': "),
        ("zpool create lake mirror OTHER", "invalid vdev specification: mirror requires at least 2 devices"),
        ("zpool set nonsense=1 tank", "cannot set property for 'tank': "),
        ("zpool set size=1 tank", "cannot set property for 'tank': 'size' is readonly"),
        ("zpool import -d DIR lake", "cannot import 'lake': no such pool available"),
        ("zpool import -d DIR/none", "cannot look for pools in 'DIR/none': no such directory or device"),
        (
            "zpool labelclear DIR/a.img",
            "failed to clear label for DIR/a.img: it is part of the imported pool 'tank'",
        ),
        ("zpool scrub lake", "cannot open 'lake': no such pool"),
        ("zfs list lake", "cannot open 'lake': dataset does not exist"),
        ("zfs create tank", "cannot create 'tank': "),
        ("zfs create tank/v", "cannot create 'tank/v': dataset already exists"),
        ("zfs create tank/a/b", "cannot create 'tank/a/b': parent does not exist"),
        ("zfs create lake/a", "cannot create 'lake/a': no such pool 'lake'"),
        ("zfs create tank/a@b", "cannot create 'tank/a@b': "),
        ("zfs create tank/v/x", "cannot create 'tank/v/x': parent is not a filesystem"),
        ("zfs create -V nonsense tank/b", "cannot create 'tank/b': bad volume size 'nonsense': "),
        (
            "zfs create -s -V 1M -b 3000 tank/b",
            "cannot create 'tank/b': 'volblocksize' must be power of 2 from 512B to ",
        ),
        ("zfs create -V 100T tank/b", "cannot create 'tank/b': out of space: "),
        ("zfs create -o compression=best tank/b", "cannot create 'tank/b': 'compression' must be one of "),
        (
            "zfs set volsize=1000 tank/v",
            "cannot set property for 'tank/v': 'volsize' must be a multiple of volume block size (16K)",
        ),
        ("zfs set compressratio=2 tank/v", "cannot set property for 'tank/v': 'compressratio' is readonly"),
        ("zfs set used=1 tank", "cannot set property for 'tank': 'used' is readonly"),
        (
            "zfs set recordsize=8K tank/v",
            "cannot set property for 'tank/v': 'recordsize' does not apply to datasets of this type",
        ),
        (
            "zfs set quota=1K tank",
            "cannot set property for 'tank': size is less than current used or reserved space",
        ),
        ("zfs set copies=7 tank", "cannot set property for 'tank': 'copies' must be one of "),
        ("zfs set nonsense=1 tank", "cannot set property for 'tank': invalid property 'nonsense'"),
        ("zfs inherit used tank/v", "cannot inherit used for 'tank/v': "),
        (
            "zfs destroy tank",
            "cannot destroy 'tank': operation does not apply to pools; use 'zpool destroy tank'",
        ),
        ("zfs destroy tank/none", "cannot open 'tank/none': dataset does not exist"),
        ("zfs rename tank/v lake/v", "cannot rename 'tank/v': datasets cannot move to another pool"),
        ("zpool scrub -s tank", "cannot cancel scrubbing tank: there is no active scrub"),
        (
            "zfs list lake tank/none",
            "cannot open 'lake': dataset does not exist\ncannot open 'tank/none': dataset does not exist",
        ),
        ("zfs rename tank/none tank/x", "cannot open 'tank/none': dataset does not exist"),
        ("inspect labels OTHER", "'OTHER' has no valid label: it is not part of a pool"),
        ("inspect mos -d DIR lake", "no pool 'lake' "),
    ] {
        let full = |text: &str| text.replace("OTHER", &other).replace("DIR", &dir);
        let line = full(line);
        let heard = home.fails(&line, 1);
        assert!(heard.starts_with(&full(said)), "{line}\n  says     {heard}\n  and not  {}", full(said));
        assert_eq!(heard.lines().count(), full(said).lines().count(), "{line}: {heard}");
        assert!(!heard.contains("error:"), "{line}: {heard}");
    }
}

fn usage() {
    let home = Home::new();
    for line in [
        "",
        "frobnicate",
        "zpool",
        "zpool frobnicate",
        "zpool create tank",
        "zfs set x tank",
        "bench",
        "inspect",
    ] {
        assert!(!home.fails(line, 2).is_empty(), "{line}");
    }
    assert_eq!(home.fails("zfs send tank@a", 2), "'zfs send' is not part of this version of Cenote yet");
    assert!(home.run("help zpool iostat").contains("zpool iostat -lq tank 5 12"));
    assert_eq!(home.output("zfs list tank lake").status.code(), Some(1));
    assert!(home.run("zfs create --help").contains("Examples:"));
    assert!(home.run("zpool version").starts_with("cenote-"));
}

fn sources() {
    let home = Home::with_pool();
    home.run("zfs create -o compression=gzip-3 -o org.cenote:note=hello tank/a");
    home.run("zfs create tank/a/b");
    home.run("zfs set quota=1G atime=off tank/a");
    let get = |properties: &str, of: &str| {
        home.run(&format!("zfs get -H -o property,value,source {properties} {of}"))
    };
    assert_eq!(
        get("compression,quota,atime,org.cenote:note,checksum,type", "tank/a"),
        "compression\tgzip-3\tlocal\nquota\t1G\tlocal\natime\toff\tlocal\norg.cenote:note\thello\tlocal\n\
         checksum\ton\tdefault\ntype\tfilesystem\t-\n"
    );
    assert_eq!(
        get("compression,quota,atime,org.cenote:note", "tank/a/b"),
        "compression\tgzip-3\tinherited from tank/a\nquota\tnone\tdefault\natime\toff\tinherited from tank/a\n\
         org.cenote:note\thello\tinherited from tank/a\n"
    );
    assert_eq!(home.run("zfs get -Hp -o value quota tank/a"), "1073741824\n");
    // What is not there hides only itself.
    let some = home.output("zfs list -H -o name tank/a/b tank/none tank/a");
    assert_eq!(some.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&some.stdout), "tank/a\ntank/a/b\n");
    assert_eq!(
        home.run("zfs get -H -r -s inherited -o name,property all tank/a").matches("tank/a/b\t").count(),
        3
    );
    home.run("zfs inherit compression tank/a");
    home.run("zfs inherit -r org.cenote:note tank");
    assert_eq!(
        get("compression,org.cenote:note", "tank/a/b"),
        "compression\ton\tdefault\norg.cenote:note\t-\t-\n"
    );
    let json = home.run("zfs get -j --json-int quota tank/a");
    assert!(json.contains(r#""quota":{"source":{"data":"-","type":"LOCAL"},"value":"1G"}"#), "{json}");
    home.run("zpool set comment=here tank");
    assert_eq!(home.run("zpool get -H -o value,source comment,ashift tank"), "here\tlocal\n0\tdefault\n");
}

fn inspect() {
    let home = Home::with_pool();
    home.run("zfs create -s -V 16M tank/v");
    let dir = home.scratch.path().display().to_string();
    let text = home.run(&format!("inspect --verify -d {dir} tank"));
    assert!(!text.is_empty());
    assert_eq!(home.run(&format!("inspect verify -d {dir} tank")).lines().count(), text.lines().count());
    let json = home.run(&format!("inspect -j -d {dir} objects tank/v"));
    assert!(json.starts_with(['{', '[']), "{json}");
    assert!(home.run(&format!("inspect block -d {dir} tank/v 1")).contains("zvol"), "the dnode is shown");
    assert!(home.run(&format!("inspect labels {dir}/a.img")).contains("tank"));
}

fn manual() {
    let home = Home::new();
    let dir = home.scratch.join("man");
    std::fs::create_dir(&dir).unwrap();
    home.run(&format!("man {}", dir.display()));
    for page in ["cenote-zpool-create.1", "cenote-inspect-block.1", "cenote-bench-engine.1"] {
        assert!(std::fs::read_to_string(dir.join(page)).unwrap().contains("Example"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let text = home.run(&format!("completions {shell}"));
        assert!(text.contains("labelclear") && text.contains("uberblocks"), "{shell}");
    }
}

/// Each of these said something that was not so, or showed nothing.
fn asked() {
    let home = Home::with_pool();
    let said = home.fails("zpool get all /mnt/tank", 1);
    assert_eq!(
        said,
        "cannot open '/mnt/tank': it is no name of a pool; a device is named behind its pool: zpool get PROPERTY POOL \
         DEVICE"
    );
    assert_eq!(home.fails("zpool get all tank /no", 1), "cannot open '/no': no such device in pool 'tank'");
    let sample = home.run("zpool iostat -H -y tank 1 1");
    assert_eq!(sample.lines().count(), 1, "{sample}");
    assert!(sample.starts_with("tank\t"), "{sample}");
    home.run("zfs create -s -V 16M -o volblocksize=16K tank/given");
    home.run("zfs create -s -V 16M tank/usual");
    let sizes = home.run("zfs get -H -o value,source volblocksize tank/given tank/usual");
    assert_eq!(sizes, "16K\tlocal\n16K\tdefault\n", "what was asked for is local, the default too");
    let services = String::from_utf8(
        home.cenote(&["shell", "-c", "configuration services show"]).output().unwrap().stdout,
    )
    .unwrap();
    assert!(services.contains("offline") && !services.contains("online"), "{services}");
    assert!(home.cenote(&["shell", "-c", "shares project web; commit"]).status().unwrap().success());
    let taken = home.cenote(&["shell", "-c", "shares project web"]).output().unwrap();
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(!taken.status.success() && said.contains("\"web\" exists already"), "{said}");
    // What is kept and does nothing is shown so; what would never act is refused.
    home.run("zfs create tank/shared");
    home.run("zfs set sharesmb=on tank/shared");
    let shown = home.run("zfs get sharesmb,primarycache tank/shared");
    assert!(shown.lines().any(|l| l.contains("sharesmb") && l.ends_with("local, no effect here")), "{shown}");
    let source = home.run("zfs get -H -o source sharesmb tank/shared");
    assert_eq!(source, "local\n", "scripts read what OpenZFS prints");
    home.run("zfs set prefetch=metadata tank");
    let acts = home.run("zfs get prefetch tank");
    assert!(acts.lines().any(|l| l.contains("prefetch") && l.ends_with("local")), "{acts}");
    assert!(home.fails("zpool set listsnapshots=on tank", 1).contains("has no effect here"));
    assert!(home.fails("zfs set longname=on tank", 1).contains("needs the feature longname"));
    home.run("zpool set autotrim=on tank");
}
