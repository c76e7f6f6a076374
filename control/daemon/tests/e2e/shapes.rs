//! Pools that grow, become two, are called otherwise or are read as they were: from the command line, with and without a
//! daemon.

use crate::home::Home;
use interop::harness::{Trial, trial};
use interop::programs::said;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_pool_grows_when_its_devices_have_and_it_is_told", &[], grows),
        trial("a_pool_of_mirrors_is_split_and_both_go_on", &[], splits),
        trial("a_pool_has_another_guid_and_is_found_again", &[], reguids),
        trial("a_temporary_name_is_forgotten_with_the_export", &[], temporary),
        trial("vdevs_have_properties_of_which_some_act", &[], vdev_properties),
        trial("a_device_is_copied_to_in_the_order_of_the_disk", &[], rebuilds),
        trial("a_pool_is_read_as_it_was_and_what_cannot_be_is_said", &[], goes_back),
        trial("a_pool_is_found_by_a_cache_file_and_forgotten_if_that_is_asked_for", &[], cached),
    ]
}

const LARGE: u64 = 1 << 30;

fn enlarge(disk: &str) {
    std::fs::File::options().write(true).open(disk).unwrap().set_len(LARGE).unwrap();
}

fn grows() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    let size = |home: &Home| home.run("zpool list -Hp -o size,expandsize tank");
    let small = size(&home);
    assert!(small.ends_with("\t-\n"), "{small}");
    for daemon in [false, true] {
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        assert!(home.fails("zpool online -e tank mirror-0", 1).contains("is a group of devices"));
        assert!(
            home.fails(&format!("zpool online -e tank {}/nosuch", home.scratch.path().display()), 1)
                .contains("no such device")
        );
        if !daemon {
            enlarge(&a);
            home.run(&format!("zpool online -e tank {a}"));
            assert_eq!(size(&home), small, "only one of both has grown");
            enlarge(&b);
            let could = size(&home);
            assert!(
                could.starts_with(small.split('\t').next().unwrap()) && !could.ends_with("\t-\n"),
                "{could}"
            );
            home.run(&format!("zpool online -e tank {a}"));
        }
        let large: Vec<String> = size(&home).split_whitespace().map(String::from).collect();
        assert!(large[0].parse::<u64>().unwrap() > LARGE - (64 << 20) && large[1] == "-", "{large:?}");
        if let Some(daemon) = running {
            daemon.end();
        }
    }
    home.run("zpool set autoexpand=on tank");
    assert_eq!(home.run("zpool get -H -o value autoexpand tank"), "on\n");
}

fn splits() {
    let home = Home::new();
    let [a, b, c, d] = ["a.img", "b.img", "c.img", "d.img"].map(|name| home.disk(name));
    let dir = home.scratch.path().display().to_string();
    home.run(&format!("zpool create tank mirror {a} {b} mirror {c} {d}"));
    home.run("zfs create -s -V 16M tank/v");
    let shown = home.run("zpool split -n tank copy");
    assert!(shown.starts_with("would create 'copy' with the following layout:\n\n\tcopy\n"), "{shown}");
    assert!(shown.contains("b.img") && shown.contains("d.img") && !shown.contains("c.img"), "{shown}");
    for (line, code, said) in [
        (format!("zpool split tank copy {dir}/nosuch"), 1, "is not in the pool"),
        (format!("zpool split tank copy {a} {b}"), 1, "more than one device of a mirror"),
        ("zpool split tank tank".into(), 1, "'tank' is imported"),
        ("zpool split tank a/b".into(), 1, "invalid"),
        ("zpool split -o readonly=on tank copy".into(), 1, "can only be set at import time"),
        ("zpool split -l tank copy".into(), 1, "encrypted datasets are not part of this version"),
        ("zpool split nosuch copy".into(), 1, "no such pool"),
        ("zpool split tank".into(), 2, "required"),
    ] {
        let told = home.fails(&line, code);
        assert!(told.contains(said), "{line}: {told}");
    }
    home.run(&format!("zpool split -o comment=monday tank copy {a}"));
    assert_eq!(home.run("zpool list -H -o name"), "tank\n", "the new one is exported");
    let status = home.run("zpool status tank");
    assert!(!status.contains("mirror") && status.contains(&b) && status.contains(&c), "{status}");
    assert!(home.fails("zpool split tank more", 1).contains("composed only of mirrors"));
    home.run(&format!("zpool import -d {dir} copy"));
    assert_eq!(home.run("zpool get -H -o value comment copy"), "monday\n");
    home.run("zfs create -s -V 16M copy/w");
    assert_eq!(home.run("zfs list -H -o name"), "copy\ncopy/v\ncopy/w\ntank\ntank/v\n");
    // With an alternate root it stays; and with a daemon.
    home.run("zpool destroy copy");
    home.run(&format!("zpool attach -f -w tank {b} {a}"));
    home.run(&format!("zpool attach -f -w tank {c} {d}"));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    home.run(&format!("zpool split -R {dir}/root tank copy"));
    assert_eq!(
        home.run("zpool list -H -o name,health,altroot"),
        format!("copy\tONLINE\t{dir}/root\ntank\tONLINE\t-\n")
    );
    daemon.end();
}

fn reguids() {
    let home = Home::with_pool();
    let guid = |home: &Home| home.run("zpool get -H -o value guid tank").trim().to_string();
    for daemon in [false, true] {
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        let before = guid(&home);
        home.run("zpool reguid tank");
        let drawn = guid(&home);
        assert_ne!(before, drawn);
        home.run("zpool reguid -g 4711 tank");
        assert_eq!(guid(&home), "4711");
        assert!(home.fails("zpool reguid -g 4711 tank", 1).contains("an imported pool has the guid 4711"));
        assert!(home.fails("zpool reguid -g 0 tank", 1).contains("no guid"));
        assert!(home.fails("zpool reguid nosuch", 1).contains("no such pool"));
        home.run(&format!("zpool reguid -g {drawn} tank"));
        if let Some(daemon) = running {
            daemon.kill();
        }
        assert_eq!(guid(&home), drawn, "it is found by it");
    }
}

fn temporary() {
    let home = Home::new();
    let (a, dir) = (home.disk("a.img"), home.scratch.path().display().to_string());
    home.run(&format!("zpool create -t guest tank {a}"));
    assert_eq!(home.run("zpool list -H -o name"), "guest\n");
    assert_eq!(home.run("zpool get -H -o value tname guest"), "guest\n");
    home.run("zfs create guest/f");
    home.run("zpool export guest");
    assert!(home.run(&format!("zpool import -d {dir}")).contains("  pool: tank\n"));
    home.run(&format!("zpool import -d {dir} -t tank visitor"));
    assert_eq!(home.run("zfs list -H -o name"), "visitor\nvisitor/f\n");
    home.run("zfs create visitor/g");
    home.run("zpool export visitor");
    assert!(home.fails(&format!("zpool import -d {dir} -t tank"), 2).contains("required"));
    home.run(&format!("zpool import -d {dir} tank"));
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/f\ntank/g\n");
}

fn goes_back() {
    let home = Home::with_pool();
    let dir = home.scratch.path().display().to_string();
    home.run("zfs create tank/before");
    let history = home.run("zpool history -i tank");
    let made = history.lines().rfind(|line| line.contains("create tank/before") && line.contains("[txg:"));
    let made = made.unwrap_or_else(|| panic!("{history}"));
    let old: u64 = made.split("[txg:").nth(1).unwrap().split(']').next().unwrap().parse().unwrap();
    home.run("zfs create tank/after");
    home.run("zpool export tank");
    for (line, code, said) in [
        (format!("zpool import -d {dir} -n tank"), 2, "-F"),
        (format!("zpool import -d {dir} -X tank"), 2, "-F"),
        (format!("zpool import -d {dir} -l tank"), 1, "encrypted datasets are not part of this version"),
        (format!("zpool import -d {dir} -T {old} tank"), 1, "add '-o readonly=on'"),
        (format!("zpool import -d {dir} -F -t tank guest"), 1, "do not go together"),
        (
            format!("zpool import -d {dir} -T 1 -o readonly=on tank"),
            1,
            "no uberblock of txg 1 or older is left",
        ),
    ] {
        let told = home.fails(&line, code);
        assert!(told.contains(said), "{line}: {told}");
    }
    for (line, code, said) in [
        (format!("zpool import -c {dir}/nosuch tank"), 1, "cannot read the cache file"),
        (format!("zpool import -c {dir}/a.img tank"), 1, "cannot read the cache file"),
        (format!("zpool import -c {dir}/a.img -d {dir} tank"), 2, "cannot be used with"),
        (format!("zpool import -s -d {dir} tank"), 2, "cannot be used with"),
        (format!("zpool import -o cachefile={dir}/cache -d {dir} tank"), 1, "no cache file is written"),
    ] {
        let told = home.fails(&line, code);
        assert!(told.contains(said), "{line}: {told}");
    }
    let would = home.run(&format!("zpool import -d {dir} -F -n tank"));
    assert_eq!(would, "Its newest state can be read: nothing would be left out.\n");
    assert!(home.run("zpool list").contains("no pools"), "nothing was imported");
    let shown = home.run(&format!("zpool import -d {dir} -T {old} -o readonly=on tank"));
    assert!(shown.contains(&format!("(txg {old})")), "{shown}");
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/before\n", "also in the next command");
    home.run("zpool export tank");
    home.run(&format!("zpool import -d {dir} -F tank"));
    assert_eq!(home.run("zfs list -H -o name"), "tank\ntank/after\ntank/before\n");
}

fn rebuilds() {
    let home = Home::new();
    let (a, b, c) = (home.disk("a.img"), home.disk("b.img"), home.disk("c.img"));
    home.run(&format!("zpool create tank {a}"));
    home.run("zfs create -V 16M tank/v");
    for (daemon, line, old) in [
        (false, format!("zpool attach -s -w tank {a} {b}"), "a.img"),
        (true, format!("zpool replace -s -w tank {a} {c}"), "c.img"),
    ] {
        let running = daemon.then(|| home.start("serve --listen 127.0.0.1:0 --no-https").0);
        home.run(&line);
        home.run("zpool wait -t scrub tank");
        let status = home.run("zpool status tank");
        for part in ["  scan: scrub repaired 0B in ", "  scan: resilvered (mirror-0) ", old, "b.img"] {
            assert!(status.contains(part), "{part}: {status}");
        }
        assert!(!status.contains("status:"), "{status}");
        let json: serde_json::Value = serde_json::from_str(&home.run("zpool status -j tank")).unwrap();
        let mirror = &json["pools"]["tank"]["vdevs"]["tank"]["vdevs"]["mirror-0"];
        assert_eq!(mirror["rebuild_stats"]["state"], "COMPLETE", "{json}");
        if let Some(daemon) = running {
            daemon.end();
        }
    }
    // The same in the shell, where it is shown.
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    let h = home.disk("h.img");
    let shell = |line: String| {
        let output = home.cenote(&["shell", "-c", &line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", said(&output));
        said(&output)
    };
    shell(format!("maintenance hardware replace tank {c} {h} sequential"));
    home.run("zpool wait -t resilver,replace,scrub tank");
    let shown = shell("maintenance hardware list".into());
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["POOL DEVICE STATE READ WRITE CKSUM NOTE tank ONLINE 0 0 0", "mirror-0 ONLINE", &h, &b] {
        assert!(words.contains(part) && !words.contains(&c), "{part}: {shown}");
    }
    let status = home.run("zpool status tank");
    assert!(status.contains("  scan: resilvered (mirror-0) "), "{status}");
    daemon.end();
    let (d, e, f, g) = (home.disk("d.img"), home.disk("e.img"), home.disk("f.img"), home.disk("g.img"));
    home.run(&format!("zpool create rz raidz {d} {e} {f}"));
    let told = home.fails(&format!("zpool replace -s rz {d} {g}"), 1);
    assert!(told.contains("only mirror and dRAID vdevs support sequential reconstruction"), "{told}");
    home.run("zpool destroy rz");
    home.run(&format!("zpool create -f -o feature@device_rebuild=disabled old {d}"));
    let told = home.fails(&format!("zpool attach -f -s old {d} {e}"), 1);
    assert!(told.contains("zpool set feature@device_rebuild=enabled old"), "{told}");
}

fn vdev_properties() {
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    home.run("zpool set io_n=3 tank mirror-0");
    home.run(&format!("zpool set checksum_t=60 tank {a}"));
    assert_eq!(
        home.run("zpool get -H -o name,value,source io_n tank mirror-0 a.img"),
        format!("mirror-0\t3\tlocal\n{a}\t-\tdefault\n")
    );
    let all = home.run(&format!("zpool get -Hp all tank {a}"));
    for part in [
        "\tstate\tONLINE\t",
        "\tnumchildren\t0\t",
        "\tchecksum_t\t60\tlocal",
        "\tslow_io_n\t-\tdefault",
        "\tread_errors\t0\t",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    home.run("zpool set comment=shelf-2 tank mirror-0");
    assert_eq!(home.run("zpool get -H -o value,source comment tank mirror-0"), "shelf-2\tlocal\n");
    for (line, said) in [
        ("zpool set allocating=off tank mirror-0", "each is allocated from"),
        ("zpool set failfast=off tank mirror-0", "'failfast' cannot be set"),
        ("zpool set io_n=many tank mirror-0", "'io_n' must be a number up to 100000"),
        ("zpool set state=online tank mirror-0", "is no property of a vdev that can be set"),
        ("zpool set io_n=1 tank nosuch", "no such device in pool"),
    ] {
        let told = home.fails(line, 1);
        assert!(told.contains(said), "{line}: {told}");
    }
    assert!(home.fails("zpool get nosuch tank mirror-0", 2).contains("'nosuch'"));
    home.run("zpool set io_n= tank mirror-0");
    assert_eq!(home.run("zpool get -H -o value io_n tank mirror-0"), "-\n");
    let status = home.run("zpool status -s tank");
    assert!(
        status.contains("CKSUM  SLOW\n") && status.contains("ONLINE       0     0     0     -\n"),
        "{status}"
    );
    assert!(
        status.lines().any(|line| line.contains("a.img") && line.ends_with("    0     0     0     0")),
        "{status}"
    );
    assert_eq!(home.run("zpool prefetch -t ddt tank"), "pool 'tank' has no tables of deduplicated blocks\n");
    assert!(home.fails("zpool prefetch -t nosuch tank", 2).contains("ddt"));
}

/// `zpool import -c` was an unknown option; `cachefile` was taken and did nothing once the pool was open.
fn cached() {
    use ondisk::{NvList, NvValue};
    let home = Home::new();
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&format!("zpool create tank {a}"));
    home.run(&format!("zpool create lake {b}"));
    let guid: u64 = home.run("zpool get -H -o value guid tank").trim().parse().unwrap();
    home.run("zpool export -a");
    let leaf = |path: &str| NvList::new().with("type", "file").with("path", path);
    let tree = |paths: &[&str]| {
        let children = paths.iter().map(|path| leaf(path)).collect();
        NvList::new().with("type", "root").with("children", NvValue::ListArray(children))
    };
    let config = |paths: &[&str]| {
        NvValue::List(NvList::new().with("pool_guid", guid).with("vdev_tree", NvValue::List(tree(paths))))
    };
    let file = home.scratch.join("zpool.cache");
    // It also names a device that is gone, and one that has another pool now.
    let list = NvList::new().with("tank", config(&[&a, &b, "/nosuch"]));
    std::fs::write(&file, list.encode()).unwrap();
    let found = home.run(&format!("zpool import -c {}", file.display()));
    assert!(found.contains("  pool: tank\n") && !found.contains("lake"), "{found}");
    home.run(&format!("zpool import -c {} -a", file.display()));
    assert_eq!(home.run("zpool list -H -o name"), "tank\n");
    home.run("zpool export tank");
    home.run(&format!("zpool import -c {} tank", file.display()));
    std::fs::write(&file, NvList::new().with("tank", config(&["/nosuch"])).encode()).unwrap();
    let told = home.fails(&format!("zpool import -c {} tank", file.display()), 1);
    assert!(told.contains("none of the devices in it is there"), "{told}");
    // What the next start is to open.
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    assert!(
        home.fails("zpool set cachefile=/etc/zfs/zpool.cache tank", 1).contains("no cache file is written")
    );
    home.run("zpool set cachefile=none tank");
    assert_eq!(home.run("zpool get -H -o value,source cachefile tank"), "none\tlocal\n");
    home.run("zpool set cachefile= tank");
    assert_eq!(home.run("zpool get -H -o value,source cachefile tank"), "-\tdefault\n");
    daemon.end();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    assert_eq!(home.run("zpool list -H -o name"), "tank\n");
    home.run("zpool set cachefile=none tank");
    daemon.end();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https");
    assert_eq!(home.run("zpool list -H -o name"), "", "it is not opened again");
    daemon.end();
}
