//! File systems in the machine's own tree: who mounts, when, and what a killed daemon leaves.

use crate::api::through_the_socket;
use crate::clients::until_there;
use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::said;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const FUSE: Need = Need::Other("/dev/fuse", || Path::new("/dev/fuse").exists());
pub const SERVE: &str = "serve --listen 127.0.0.1:0 --no-https";

/// What another user than root needs to mount, and the test to become one.
const USERS_OWN: [Need; 5] = [
    FUSE,
    ROOT,
    Need::Program("fusermount3"),
    Need::Program("setpriv"),
    Need::Other("a /dev/fuse for all users", || {
        fs::metadata("/dev/fuse").is_ok_and(|device| device.permissions().mode() & 0o6 == 0o6)
    }),
];

pub fn trials() -> Vec<Trial> {
    vec![
        trial("file_systems_are_mounted_where_and_as_their_properties_say", &[FUSE, ROOT], properties),
        trial("files_of_a_mount_give_no_rights_unless_they_were_asked_for", &[FUSE, ROOT], rights),
        trial("a_daemon_that_was_killed_mounts_again_what_it_had_mounted", &[FUSE, ROOT], killed),
        trial("a_daemon_that_was_told_so_mounts_by_itself", &[FUSE, ROOT], by_itself),
        trial("a_mount_goes_below_the_altroot_and_over_nothing_unless_it_may", &[FUSE, ROOT], places),
        trial(
            "mount_points_are_shown_below_the_altroot_and_kept_without_it",
            &[Need::Program("curl")],
            below_altroot,
        ),
        trial("what_users_take_is_shown_and_limited_from_the_start", &[FUSE, ROOT], shared_out),
        trial("long_names_are_made_and_found_through_a_mount", &[FUSE, ROOT], long_names),
        trial("a_snapshot_that_took_the_name_of_another_is_seen_at_once", &[FUSE, ROOT], same_name),
        trial("nothing_is_mounted_over_what_the_daemon_needs_itself", &[FUSE, ROOT], not_over_the_home),
        trial("what_is_mounted_is_not_hidden_below_what_is_mounted_later", &[FUSE, ROOT], not_hidden),
        trial("snapshots_are_listed_as_they_are", &[FUSE, ROOT], snapshots_listed),
        trial("one_spelling_of_a_name_is_all_of_them_at_once", &[FUSE, ROOT], spellings),
        trial(
            "what_was_written_into_a_mapping_is_kept_where_its_mount_is_taken_away",
            &[FUSE, ROOT, Need::Program("python3")],
            mappings,
        ),
        trial("a_mount_takes_little_memory", &[FUSE, ROOT], many_mounts).alone(),
        trial("attributes_have_names_of_the_namespaces_that_there_are", &[FUSE, ROOT], attributes),
        trial("what_is_in_use_is_renamed_by_force_alone", &[FUSE, ROOT], renamed),
        trial("times_of_files_are_kept_before_1970_too", &[FUSE, ROOT, Need::Program("touch")], times),
        trial("a_pools_own_file_system_is_made_as_it_was_asked_for", &[FUSE, ROOT], pools_own),
        trial("a_mount_of_another_user_is_that_users_alone", &USERS_OWN, users_own),
        trial("without_a_daemon_nothing_is_mounted", &[], none_runs),
    ]
}

/// A pool of a home whose file systems go into a directory of the test.
pub fn home() -> (Home, PathBuf) {
    let home = Home::with_pool();
    let at = home.scratch.join("mnt");
    home.run(&format!("zfs set mountpoint={} tank", at.display()));
    (home, at)
}

/// As Linux's own file systems have it. `foo.x` was taken, and listed as `user.foo.x`.
fn attributes() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    use rustix::io::Errno;
    let (home, at) = home();
    home.run("zfs set acltype=off tank");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    let file = at.join("f");
    fs::write(&file, b"x").unwrap();
    for (name, outcome) in [
        ("user.x", Ok(())),
        ("trusted.x", Ok(())),
        ("security.x", Ok(())),
        ("user.", Err(Errno::INVAL)),
        ("foo.x", Err(Errno::OPNOTSUPP)),
        ("system.x", Err(Errno::OPNOTSUPP)),
        ("system.nfs4_acl", Err(Errno::OPNOTSUPP)),
    ] {
        assert_eq!(setxattr(&file, name, b"v", XattrFlags::empty()), outcome, "{name}");
        let got = getxattr(&file, name, &mut [0; 16]);
        assert_eq!(got.is_ok(), outcome.is_ok(), "{name}: {got:?}");
    }
    daemon.end();
}

/// `-f` did nothing, and the message said to use it.
fn renamed() {
    let (home, at) = home();
    home.run("zfs create tank/a");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank/a");
    let open = fs::File::create(at.join("a/f")).unwrap();
    let why = home.fails("zfs rename tank/a tank/b", 1);
    assert!(why.contains("busy"), "{why}");
    assert_eq!(home.run("zfs rename -f tank/a tank/b"), "");
    drop(open);
    assert!(at.join("b/f").exists(), "it is mounted by its new name");
    daemon.end();
}

/// A pool from anywhere was mounted with setuid and devices, as OpenZFS has them by default: write access to its disks
/// made root.
fn rights() {
    let (home, at) = home();
    let (mut daemon, _) = home.start(SERVE);
    // Beside each other, so that each is mounted anew alone.
    let (own, below) = (at.join("own"), home.scratch.join("below"));
    home.run("zfs create tank/own");
    home.run(&format!("zfs create -o mountpoint={} tank/own/below", below.display()));
    home.run("zfs mount tank/own");
    home.run("zfs mount tank/own/below");
    let gives = |at: &Path| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let at = format!(" {} ", at.display());
        let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
        (!line.contains("nosuid"), !line.contains("nodev"))
    };
    assert_eq!((gives(&own), gives(&below)), ((false, false), (false, false)));
    // What is set holds for what is below, and is taken back again.
    home.run("zfs set setuid=on tank/own");
    assert_eq!((gives(&own), gives(&below)), ((true, false), (true, false)));
    home.run("zfs set devices=on tank/own/below");
    assert_eq!((gives(&own), gives(&below)), ((true, false), (true, true)));
    home.run("zfs set setuid=off tank/own");
    home.run("zfs inherit devices tank/own/below");
    assert_eq!((gives(&own), gives(&below)), ((false, false), (false, false)));
    home.run("zfs unmount tank/own/below");
    home.run("zfs mount -o suid,dev tank/own/below");
    assert_eq!(gives(&below), (true, true), "for once");
    home.run("zfs unmount -a");
    home.run("down");
    daemon.has_ended();
}

fn properties() {
    let (home, at) = home();
    let elsewhere = home.scratch.join("elsewhere");
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run(&format!("zfs create -o mountpoint={} -o readonly=on tank/b", elsewhere.display()));
    home.run("zfs create -o canmount=off tank/off");
    home.run("zfs create -o canmount=noauto tank/later");
    home.run("zfs create -s -V 16M tank/v");
    assert_eq!(home.run("zfs mount"), "");
    home.run("zfs mount -a");
    let listed = home.run("zfs list -H -o name,mounted -t filesystem");
    assert_eq!(listed, "tank\tyes\ntank/a\tyes\ntank/b\tyes\ntank/later\tno\ntank/off\tno\n");
    fs::write(at.join("a/f"), "kept").unwrap();
    assert!(fs::write(elsewhere.join("f"), "").is_err());
    for (line, said) in [
        ("zfs mount tank/a", "cannot mount 'tank/a': filesystem already mounted"),
        ("zfs mount tank/off", "cannot mount 'tank/off': 'canmount' property is set to 'off'"),
        ("zfs mount tank/v", "cannot mount 'tank/v': it is no file system"),
        ("zfs mount tank/none", "cannot open 'tank/none': dataset does not exist"),
        ("zfs unmount tank/later", "cannot unmount 'tank/later': not currently mounted"),
        ("zfs unmount /nowhere", "cannot unmount '/nowhere': not currently mounted"),
    ] {
        assert_eq!(home.fails(line, 1), said);
    }
    home.run("zfs mount -o ro tank/later");
    assert!(fs::write(at.join("later/f"), "").is_err());
    // What is in use stays where it is, and is not taken away.
    let held = fs::File::open(at.join("a/f")).unwrap();
    let busy = format!("cannot unmount '{}': pool or dataset is busy", at.join("a").display());
    for line in ["zfs unmount tank/a", "zfs destroy tank/a", "zfs rename tank/a tank/c", "zpool export tank"]
    {
        let said = home.fails(line, 1);
        assert!(
            said.starts_with(&busy) && said.contains(&format!("process {} (", std::process::id())),
            "{said}"
        );
    }
    // What is below it was unmounted before it was found busy, and is mounted again.
    home.run("zfs create tank/a/below");
    home.run("zfs mount -a");
    let mounted = home.run("zfs mount");
    assert!(mounted.contains("tank/a/below "), "{mounted}");
    fs::write(at.join("a/below/f"), "below").unwrap();
    assert!(home.fails("zfs rename tank/a tank/c", 1).starts_with(&busy));
    assert_eq!(home.run("zfs mount"), mounted);
    assert_eq!(fs::read_to_string(at.join("a/below/f")).unwrap(), "below");
    home.run("zfs destroy -r tank/a/below");
    drop(held);
    home.run("zfs mount -a");
    home.run("zfs rename tank/a tank/c");
    assert_eq!(fs::read_to_string(at.join("c/f")).unwrap(), "kept");
    home.run("zfs set readonly=on tank/c");
    assert!(fs::write(at.join("c/f"), "").is_err());
    home.run("zfs inherit readonly tank/c");
    fs::write(at.join("c/f"), "changed").unwrap();
    home.run(&format!("zfs unmount {}", at.join("c").display()));
    assert!(!at.join("c/f").exists());
    home.run("zpool export tank");
    assert_eq!(home.run("zfs mount"), "");
    home.run("down");
    daemon.has_ended();
}

fn killed() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run("zfs mount tank");
    home.run("zfs mount tank/a");
    fs::write(at.join("a/f"), "kept").unwrap();
    fs::File::open(at.join("a/f")).unwrap().sync_all().unwrap();
    daemon.kill();
    let names = |at: &Path| fs::read_dir(at)?.collect::<std::io::Result<Vec<_>>>();
    assert!(names(&at).is_err(), "it is dead");
    let (mut daemon, _) = home.start(SERVE);
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    assert_eq!(fs::read_to_string(at.join("a/f")).unwrap(), "kept");
    home.run("zfs unmount tank");
    home.run("zfs mount tank/a");
    home.run("down");
    daemon.has_ended();
    assert!(!at.join("a/f").exists(), "it has unmounted");
    let (mut daemon, _) = home.start(SERVE);
    assert_eq!(fs::read_to_string(at.join("a/f")).unwrap(), "kept", "what was mounted is mounted again");
    home.run("zfs unmount -a");
    home.run("down");
    daemon.has_ended();
}

fn by_itself() {
    let (home, at) = home();
    home.run("zfs create tank/a");
    let (mut daemon, _) = home.start(&format!("{SERVE} --mount"));
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    home.run("zfs create tank/a/b");
    home.run("zfs create -u tank/not");
    fs::write(at.join("a/b/f"), "kept").unwrap();
    let mounted = home.run("zfs list -H -o name,mounted");
    assert_eq!(mounted, "tank\tyes\ntank/a\tyes\ntank/a/b\tyes\ntank/not\tno\n");
    home.run("zpool export tank");
    assert!(!at.join("a/b").exists());
    let dir = home.scratch.path().display().to_string();
    home.run(&format!("zpool import -N -d {dir} tank"));
    assert_eq!(home.run("zfs mount"), "");
    home.run("zpool export tank");
    home.run(&format!("zpool import -d {dir} tank"));
    assert_eq!(fs::read_to_string(at.join("a/b/f")).unwrap(), "kept");
    home.run("zfs destroy -r tank/a");
    assert_eq!(home.run("zfs mount").lines().count(), 2);
    home.run("down");
    daemon.has_ended();
}

fn places() {
    let (home, at) = home();
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs create -o overlay=off tank/a");
    fs::create_dir_all(at.join("a")).unwrap();
    fs::write(at.join("a/there"), "before").unwrap();
    let said = home.fails("zfs mount tank/a", 1);
    assert!(
        said.starts_with("cannot mount 'tank/a': ") && said.ends_with("directory is not empty"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(at.join("a/there")).unwrap(), "before");
    home.run("zfs mount -O tank/a");
    assert!(!at.join("a/there").exists(), "it is beneath");
    // Files are counted before they are on disk.
    let used = |path: &Path| {
        let stat = rustix::fs::statvfs(path).unwrap();
        stat.f_files - stat.f_ffree
    };
    let before = used(&at.join("a"));
    assert!(before > 0);
    for n in 0..50 {
        fs::write(at.join(format!("a/{n}")), "").unwrap();
    }
    assert_eq!(used(&at.join("a")), before + 50);
    fs::remove_file(at.join("a/7")).unwrap();
    // It is gone when the kernel has forgotten it, which it need not say at once.
    let end = Instant::now() + Duration::from_secs(120);
    while used(&at.join("a")) != before + 49 {
        assert!(Instant::now() < end, "a file that was removed still counts");
        std::thread::sleep(Duration::from_millis(20));
    }
    home.run("zfs unmount tank/a");
    home.run("zfs set overlay=on tank/a");
    home.run("zfs mount tank/a");
    home.run("zpool export tank");
    let (dir, root) = (home.scratch.path().display().to_string(), home.scratch.join("root"));
    home.run(&format!("zpool import -d {dir} -R {} tank", root.display()));
    home.run("zfs mount tank/a");
    let below = root.join(at.strip_prefix("/").unwrap()).join("a");
    assert!(below.join("8").exists() && !at.join("a/8").exists());
    assert_eq!(home.run("zfs mount").split_whitespace().nth(1).unwrap(), below.display().to_string());
    home.run("zpool export tank");
    home.run("down");
    daemon.has_ended();
}

/// They were shown without the altroot, below which they are mounted; and with it only there, or the next `-R` and the
/// ledger of changes would put it in front of itself.
fn below_altroot() {
    let home = Home::with_pool();
    for line in [
        "zfs create tank/p",
        "zfs create tank/p/inherits",
        "zfs create -o mountpoint=/srv/set tank/p/set",
        "zfs create tank/p/set/below",
        "zfs create -o mountpoint=none tank/p/none",
        "zfs create -o mountpoint=legacy tank/p/legacy",
        "zfs create -o mountpoint=/ tank/p/root",
    ] {
        home.run(line);
    }
    let paths = [
        ("tank", "/tank"),
        ("tank/p", "/tank/p"),
        ("tank/p/inherits", "/tank/p/inherits"),
        ("tank/p/legacy", "legacy"),
        ("tank/p/none", "none"),
        ("tank/p/root", "/"),
        ("tank/p/set", "/srv/set"),
        ("tank/p/set/below", "/srv/set/below"),
    ];
    let listed = |root: &str| -> String {
        let line = |(name, path): (&str, &str)| match path {
            path if root.is_empty() || !path.starts_with('/') => format!("{name}\t{path}\n"),
            path => format!("{name}\t{root}{}\n", path.trim_end_matches('/')),
        };
        paths.map(line).concat()
    };
    let dir = home.scratch.path().display().to_string();
    let shown = || home.run("zfs list -H -o name,mountpoint");
    assert_eq!(shown(), listed(""));
    home.run("zpool export tank");
    home.run(&format!("zpool import -N -d {dir} -R /mnt/ tank"));
    assert_eq!(shown(), listed("/mnt"), "without a daemon");
    // A daemon begins without a pool that is imported for a while alone.
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0");
    home.run(&format!("zpool import -N -d {dir} -R /mnt tank"));
    assert_eq!(shown(), listed("/mnt"));
    assert_eq!(
        home.run("zfs get -H -o value,source mountpoint tank/p tank/p/none tank/p/set tank/p/set/below"),
        "/mnt/tank/p\tdefault\nnone\tlocal\n/mnt/srv/set\tlocal\n/mnt/srv/set/below\tinherited from tank/p/set\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&home.run("zfs get -j mountpoint tank/p/set")).unwrap();
    assert_eq!(json["datasets"]["tank/p/set"]["properties"]["mountpoint"]["value"], "/mnt/srv/set", "{json}");
    let files = "/api/storage/v2/pools/tank/projects/p/filesystems";
    let of_set = through_the_socket(&home, &format!("{files}/set"));
    assert_eq!(of_set["filesystem"]["mountpoint"], "/mnt/srv/set", "{of_set}");
    let all = through_the_socket(&home, files);
    assert!(
        all["filesystems"].as_array().unwrap().iter().any(|fs| fs["mountpoint"] == "/mnt/tank/p/inherits")
    );
    let of_shell =
        said(&home.cenote(&["shell", "-c", "shares select p; select set; get mountpoint"]).output().unwrap());
    assert!(of_shell.contains("/mnt/srv/set"), "{of_shell}");
    // What is set is below the altroot, and what is put back is what was set.
    home.run("zfs set mountpoint=/srv/other tank/p/set");
    assert_eq!(home.run("zfs get -H -o value mountpoint tank/p/set"), "/mnt/srv/other\n");
    let changes: serde_json::Value = serde_json::from_str(&home.run("changes -j")).unwrap();
    let number = changes["ledger"]["changes"].as_array().unwrap().last().unwrap()["number"].to_string();
    assert_eq!(
        home.run(&format!("changes undo {number}")),
        "cenote zfs set mountpoint=/srv/set tank/p/set\n",
        "{changes}"
    );
    assert_eq!(shown(), listed("/mnt"));
    home.run("zpool export tank");
    home.run(&format!("zpool import -N -d {dir} tank"));
    assert_eq!(shown(), listed(""), "it was for here only");
    daemon.end();
}

fn shared_out() {
    let (home, at) = home();
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs create -o userquota@4242=10M -o groupobjquota@77=5 -o compression=off tank/u");
    assert_eq!(
        home.fails("zfs create -o userused@1=5 tank/x", 1),
        "cannot create 'tank/x': 'userused@1' is readonly"
    );
    assert_eq!(home.fails("zfs list tank/x", 1), "cannot open 'tank/x': dataset does not exist");
    home.run("zfs mount tank/u");
    fs::write(at.join("u/f"), vec![7; 1 << 20]).unwrap();
    std::os::unix::fs::chown(at.join("u/f"), Some(4242), Some(77)).unwrap();
    home.run("zpool sync tank");
    let used = home.run("zfs get -Hpo value userused@4242 tank/u").trim().parse::<u64>().unwrap();
    assert!((1 << 20..2 << 20).contains(&used), "{used}");
    assert_eq!(home.run("zfs get -Hpo value userquota@4242,userobjused@4242 tank/u"), "10485760\n1\n");
    let shown = home.run(&format!("zfs userspace -Hp -S used {}", at.join("u").display()));
    assert_eq!(shown.lines().next().unwrap(), format!("POSIX User\t4242\t{used}\t10485760\t1\t0"));
    assert!(shown.lines().nth(1).unwrap().starts_with("POSIX User\troot\t"), "{shown}");
    assert_eq!(home.run("zfs groupspace -Hpn -o name,objquota -t posixgroup tank/u"), "0\t0\n77\t5\n");
    let heading = home.run("zfs projectspace -o type,name,objused tank/u");
    assert!(heading.starts_with("TYPE     NAME  OBJUSED\nProject  0 "), "{heading}");
    home.fails("zfs projectspace -n tank/u", 2);
    // A tree of a project.
    let site = at.join("u/site");
    fs::create_dir_all(site.join("below")).unwrap();
    fs::write(site.join("old"), "1").unwrap();
    let shown = site.display();
    home.run(&format!("zfs project -p 7 -s -r {shown}"));
    fs::write(site.join("new"), vec![7; 100_000]).unwrap();
    let listed = home.run(&format!("zfs project {shown}"));
    let line = |name: &str, flag: char| format!("    7 {flag} {shown}{name}\n");
    assert_eq!(listed, [line("", 'P'), line("/below", 'P'), line("/new", 'P'), line("/old", 'P')].concat());
    assert_eq!(home.run(&format!("zfs project -c -r {shown}")), "");
    assert_eq!(home.run(&format!("zfs project -c -0 -d -p 8 {shown}")), format!("{shown}\0"));
    home.run("zpool sync tank");
    let used = home.run("zfs get -Hpo value projectobjused@7 tank/u");
    assert_eq!(used, "4\n");
    home.run(&format!("zfs project -C -k {shown}/old"));
    let wrong = format!("{shown}/old - project inherit flag is not set\n");
    assert_eq!(home.run(&format!("zfs project -c {shown}")), wrong);
    home.run(&format!("zfs project -C -r {shown}"));
    assert_eq!(home.run(&format!("zfs project -d {shown}")), format!("    0 - {shown}\n"));
    let elsewhere = home.fails("zfs project /proc", 1);
    assert_eq!(elsewhere, "cannot open '/proc': not a ZFS filesystem");
    home.fails(&format!("zfs project -C -c {shown}"), 2);
    home.fails("zfs userspace -o nothing tank/u", 2);
    home.run("zfs unmount tank/u");
    home.run("down");
    daemon.has_ended();
}

fn none_runs() {
    let (home, at) = home();
    let why = "the daemon mounts file systems, and none runs; 'cenote serve' starts one";
    assert_eq!(home.fails("zfs mount tank", 1), format!("cannot mount 'tank': {why}"));
    assert_eq!(home.fails("zfs unmount tank", 1), "cannot unmount 'tank': not currently mounted");
    assert_eq!(home.run("zfs mount"), "");
    assert!(!at.exists());
}

/// `longname=on` was accepted, and 256 bytes were too many all the same.
fn long_names() {
    let (home, at) = home();
    home.run("zpool set feature@longname=enabled tank");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs create tank/a");
    home.run("zfs mount -a");
    let name = |n: usize| at.join("a").join("n".repeat(n));
    assert!(fs::write(name(256), "").is_err(), "it is off");
    home.run("zfs set longname=on tank/a");
    for n in [255, 256, 1023] {
        fs::write(name(n), n.to_string()).unwrap();
    }
    assert!(fs::write(name(1024), "").is_err());
    let mut listed: Vec<usize> =
        fs::read_dir(at.join("a")).unwrap().map(|entry| entry.unwrap().file_name().len()).collect();
    listed.sort();
    assert_eq!(listed, [255, 256, 1023]);
    assert_eq!(rustix::fs::statvfs(at.join("a")).unwrap().f_namemax, 1023);
    // Off again, those that are there are found, moved and removed.
    home.run("zfs set longname=off tank/a");
    assert!(fs::write(name(300), "").is_err());
    assert_eq!(fs::read_to_string(name(1023)).unwrap(), "1023");
    fs::rename(name(256), at.join("a/short")).unwrap();
    fs::remove_file(name(1023)).unwrap();
    daemon.end();
}

/// The kernel believed for a second that the name led to the one before: "Stale file handle", or what that one had held.
fn same_name() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    let there = at.join(".zfs/snapshot/s");
    for round in 0..10 {
        let mine = format!("f{round}");
        fs::write(at.join(&mine), "x").unwrap();
        // A name that is not there is remembered, too.
        assert!(!there.exists());
        home.run("zfs snapshot tank@s");
        assert!(there.join(&mine).exists());
        let held = fs::File::open(there.join(&mine)).unwrap();
        let next = format!("g{round}");
        fs::write(at.join(&next), "y").unwrap();
        home.run("zfs destroy tank@s");
        home.run("zfs snapshot tank@s");
        assert_eq!(fs::read_to_string(there.join(&next)).unwrap(), "y", "round {round}");
        let names = fs::read_dir(&there).unwrap().count();
        assert_eq!(names, 2 * round + 2, "round {round}");
        drop(held);
        home.run("zfs destroy tank@s");
    }
    daemon.end();
}

/// A child mounted first was out of reach below its parent, and could not be unmounted, renamed or destroyed.
fn not_hidden() {
    let home = Home::with_pool();
    let at = home.scratch.join("mnt");
    home.run(&format!("zfs create -u -o mountpoint={} tank/p", at.display()));
    home.run("zfs create -u tank/p/c");
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    home.run("zfs mount tank/p/c");
    std::fs::write(at.join("c/file"), "here").unwrap();
    for line in ["zfs mount -a", "zfs mount tank/p"] {
        let said = home.fails(line, 1);
        assert!(
            said.contains("'tank/p/c' is mounted below it") && said.contains("unmount that first"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(at.join("c/file")).unwrap(), "here");
    }
    home.run("zfs unmount tank/p/c");
    home.run("zfs mount -a");
    assert_eq!(std::fs::read_to_string(at.join("c/file")).unwrap(), "here");
    home.run("zfs unmount tank/p");
    home.run("zpool export tank");
    daemon.end();
}

/// A file system over the daemon's home, or over the files of a pool, would have the daemon wait for itself.
fn not_over_the_home() {
    let home = Home::with_pool();
    let devices = home.scratch.join("devices");
    fs::create_dir(&devices).unwrap();
    let device = devices.join("other");
    fs::File::create(&device).unwrap().set_len(128 << 20).unwrap();
    home.run(&format!("zpool create -m none other {}", device.display()));
    let linked = home.scratch.join("linked");
    std::os::unix::fs::symlink(home.dir(), &linked).unwrap();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    for (number, place) in [home.dir(), home.scratch.path().to_path_buf(), linked, devices].iter().enumerate()
    {
        home.run(&format!("zfs create -u -o mountpoint={} tank/p{number}", place.display()));
        let said = home.fails(&format!("zfs mount tank/p{number}"), 1);
        assert!(said.contains("it would hide ") && said.contains("which the daemon itself needs"), "{said}");
        home.run("zpool status");
    }
    let inside = home.dir().join("inside");
    home.run(&format!("zfs create -u -o mountpoint={} tank/inside", inside.display()));
    home.run("zfs mount tank/inside");
    std::fs::write(inside.join("file"), "here").unwrap();
    home.run("zfs unmount tank/inside");
    for pool in ["tank", "other"] {
        home.run(&format!("zpool export {pool}"));
    }
    daemon.end();
}

/// The kernel keeps a listing as long as the time of the directory is the same, and that of the snapshots never changed.
fn snapshots_listed() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    let listed = || {
        let dir = fs::read_dir(at.join(".zfs/snapshot")).unwrap();
        let mut names: Vec<String> =
            dir.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(listed(), [""; 0]);
    for (line, then) in [
        ("zfs snapshot tank@one", &["one"][..]),
        ("zfs snapshot tank@two", &["one", "two"]),
        ("zfs destroy tank@one", &["two"]),
        ("zfs rename tank@two tank@three", &["three"]),
        ("zfs destroy tank@three", &[]),
        ("zfs snapshot tank@one", &["one"]),
    ] {
        home.run(line);
        assert_eq!(listed(), then, "{line}");
        assert_eq!(listed(), then, "{line}, again");
    }
    daemon.end();
}

/// What the kernel believed of one spelling for a second, the file under another had ended: what was then written to it was
/// gone.
fn spellings() {
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    for (property, name, other) in [
        ("casesensitivity=insensitive", "name", "NAME"),
        ("casesensitivity=mixed", "name", "name"),
        ("normalization=formD", "caf\u{e9}", "cafe\u{301}"),
    ] {
        home.run(&format!("zfs create -o {property} tank/fs"));
        home.run("zfs mount tank/fs");
        let (one, two) = (at.join("fs").join(name), at.join("fs").join(other));
        for round in 0..3 {
            assert!(!two.exists(), "{property}");
            fs::write(&one, "first").unwrap();
            assert_eq!(fs::read_to_string(&two).unwrap(), "first", "{property}, round {round}");
            fs::write(&two, "second").unwrap();
            assert_eq!(fs::read_to_string(&one).unwrap(), "second", "{property}, round {round}");
            fs::remove_file(&two).unwrap();
            let mut again = fs::OpenOptions::new().append(true).create(true).open(&one).unwrap();
            std::io::Write::write_all(&mut again, b"third").unwrap();
            assert_eq!(fs::read_to_string(&two).unwrap(), "third", "{property}, round {round}");
            assert_eq!(fs::read_dir(at.join("fs")).unwrap().count(), 1, "{property}, round {round}");
            fs::remove_file(&one).unwrap();
            fs::create_dir(&two).unwrap();
            fs::remove_dir(&one).unwrap();
        }
        home.run("zfs destroy tank/fs");
    }
    daemon.end();
}

/// A program that has a file mapped, and has not asked for it to be written, while its file system is taken away by force.
fn mappings() {
    const MAP: &str = "
import mmap, os, sys, time
n = 24 << 20
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.ftruncate(f, n)
os.fsync(f)
m = mmap.mmap(f, n)
m[:] = b'M' * n
print('mapped', flush=True)
time.sleep(600)
";
    let (home, at) = home();
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs create tank/fs");
    let whole = |name: &str, what: &str| {
        if !home.run("zfs mount").contains("tank/fs ") {
            home.run("zfs mount tank/fs");
        }
        let bytes = fs::read(at.join("fs").join(name)).unwrap();
        let kept = bytes.iter().filter(|byte| **byte == b'M').count();
        assert_eq!((bytes.len(), kept), (24 << 20, 24 << 20), "{what}");
    };
    let mapped = |name: &str| {
        let mut program = interop::programs::command("python3");
        program.args(["-c", MAP]).arg(at.join("fs").join(name)).stdout(std::process::Stdio::piped());
        let mut program = program.spawn().unwrap();
        let mut line = [0; 7];
        std::io::Read::read_exact(program.stdout.as_mut().unwrap(), &mut line).unwrap();
        program
    };
    let gone = |mut program: std::process::Child| {
        let _ = program.kill();
        let _ = program.wait();
    };
    home.run("zfs mount tank/fs");
    for round in 0..4 {
        let name = format!("f{round}");
        let program = mapped(&name);
        home.run("zfs unmount -f tank/fs");
        gone(program);
        whole(&name, "zfs unmount -f");
    }
    let program = mapped("end");
    home.run("down");
    daemon.has_ended();
    gone(program);
    let (daemon, _) = home.start(SERVE);
    whole("end", "the end of the daemon");
    daemon.end();
}

/// Each thread of the library has a buffer of 16 MiB, which was in memory for the most part.
fn many_mounts() {
    const MOUNTS: usize = 40;
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    };
    home.run("zfs mount tank");
    let before = resident();
    for n in 0..MOUNTS {
        home.run(&format!("zfs create tank/f{n}"));
        home.run(&format!("zfs mount tank/f{n}"));
        fs::write(at.join(format!("f{n}/file")), "x").unwrap();
    }
    let each = resident().saturating_sub(before) / MOUNTS;
    assert!(each < 3 << 20, "{} KiB of memory for each mount", each >> 10);
    home.run("zfs unmount -a");
    daemon.end();
}

/// Those that are no whole seconds were stored a second early.
fn times() {
    use std::os::unix::fs::MetadataExt;
    let (home, at) = home();
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank");
    let file = at.join("f");
    for (given, seconds, nanos) in [
        ("-5.5", -6, 500_000_000),
        ("-86400", -86400, 0),
        ("-0.25", -1, 750_000_000),
        ("5.5", 5, 500_000_000),
    ] {
        interop::programs::run(
            interop::programs::command("touch").args(["-d", &format!("@{given}")]).arg(&file),
        );
        let meta = fs::metadata(&file).unwrap();
        assert_eq!((meta.mtime(), meta.mtime_nsec()), (seconds, nanos), "{given}");
    }
    daemon.end();
}

/// By the helper: neither setuid nor devices, and no other user sees it, not even root.
fn users_own() {
    const USER: u32 = 65534;
    let scratch = interop::Scratch::new();
    let (program, own) = (scratch.join("cenote"), scratch.join("own"));
    // The program may lie where only root may look.
    fs::copy(crate::home::CENOTE, &program).unwrap();
    fs::create_dir(&own).unwrap();
    fs::set_permissions(own.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&own, Some(USER), Some(USER)).unwrap();
    let script = r#"
        export CENOTE_HOME=$PWD/home
        mkdir home mnt
        $0 serve --listen 127.0.0.1:0 --no-https > log 2>&1 &
        until grep -q 'cenote serves' log; do sleep .1; done
        truncate -s 128M disk
        $0 zpool create -m $PWD/mnt tank $PWD/disk && $0 zfs mount tank && echo mounted
        echo hello > mnt/f && cat mnt/f && chmod 4755 mnt/f && grep " $PWD/mnt " /proc/mounts
        touch go; until [ -e looked ]; do sleep .1; done
        $0 zfs unmount tank && echo unmounted
        $0 down > down 2>&1; wait"#;
    let user = std::process::Command::new("setpriv")
        .args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"])
        .args(["sh", "-c", script])
        .arg(&program)
        .current_dir(&own)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until_there(&own.join("go"));
    let looked = fs::read(own.join("mnt/f")).map_err(|e| e.kind());
    fs::write(own.join("looked"), "").unwrap();
    let out = user.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let log = fs::read_to_string(own.join("log")).unwrap();
    assert_eq!(lines.len(), 4, "{said}{log}");
    assert_eq!((lines[0], lines[1], lines[3]), ("mounted", "hello", "unmounted"), "{said}{log}");
    assert!(lines[2].contains("nosuid,nodev") && !lines[2].contains("allow_other"), "{}", lines[2]);
    assert_eq!(looked, Err(std::io::ErrorKind::PermissionDenied));
}

/// `-O casesensitivity` was taken, and the root file system made without it.
fn pools_own() {
    let home = Home::new();
    let (daemon, _) = home.start(SERVE);
    let (at, disk) = (home.scratch.join("mnt"), home.disk("own"));
    let options = "-O casesensitivity=insensitive -O normalization=formD -O utf8only=on";
    home.run(&format!("zpool create {options} -m {} own {disk}", at.display()));
    let kept = home.run("zfs get -H -o value casesensitivity,normalization,utf8only own");
    assert_eq!(kept, "insensitive\nformD\non\n");
    home.run("zfs mount own");
    fs::write(at.join("Caf\u{e9}"), "x").unwrap();
    assert_eq!(fs::read(at.join("cAFE\u{301}")).unwrap(), b"x");
    // What is made below has the same.
    home.run("zfs create own/below");
    assert_eq!(home.run("zfs get -H -o value casesensitivity own/below"), "insensitive\n");
    daemon.end();
}
