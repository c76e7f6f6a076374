//! Mounts that change while they are used, and that are taken away or not: by properties, by request, and where they are
//! mounted elsewhere too.

use crate::files::{FUSE, SERVE, home};
use interop::harness::{Need, ROOT, Trial, trial};
use std::fs;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("options_of_a_mount_hold_until_it_is_unmounted", &[FUSE, ROOT], temporary),
        trial("properties_hold_at_once_for_what_is_used_and_has_others_below_it", &[FUSE, ROOT], in_place),
        trial("a_tree_that_is_in_use_stays_where_it_is_and_moves_as_a_whole", &[FUSE, ROOT], whole_trees),
        trial("what_is_bound_elsewhere_is_not_taken_away_here", &[FUSE, ROOT], bound),
        trial("what_is_refused_has_taken_nothing_away", &[FUSE, ROOT], refused),
        trial("a_mount_point_by_a_symbolic_link_is_the_directory_it_leads_to", &[FUSE, ROOT], by_link),
        trial(
            "a_handle_of_a_snapshots_file_opens_no_file_of_another",
            &[FUSE, ROOT, Need::Program("python3")],
            handles,
        ),
        trial("what_is_made_and_cannot_be_mounted_is_said_to_be", &[FUSE, ROOT], made),
    ]
}

/// The command succeeded, and a script that went on wrote into the directory above.
fn made() {
    let (home, _) = home();
    let (daemon, _) = home.start(&format!("{SERVE} --mount"));
    let full = home.scratch.join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("f"), "before").unwrap();
    home.run("zfs create -o overlay=off tank/o");
    home.run("zfs snapshot tank/o@s");
    for (line, name) in [("create -o overlay=off", "tank/c"), ("clone -o overlay=off", "tank/o@s tank/d")] {
        let said = home.fails(&format!("zfs {line} -o mountpoint={} {name}", full.display()), 1);
        assert!(said.contains("directory is not empty"), "{said}");
        assert!(said.ends_with("filesystem successfully created, but not mounted"), "{said}");
    }
    assert_eq!(home.run("zfs list -H -o name,mounted tank/c tank/d"), "tank/c\tno\ntank/d\tno\n");
    home.run(&format!("zfs create -u -o mountpoint={} tank/e", full.display()));
    daemon.end();
}

/// The options of the mount at a place, as the kernel has them.
fn flags(at: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().rfind(|line| line.split(' ').nth(1) == at.to_str());
    let Some(line) = line else { return String::from("not mounted") };
    line.split(' ').nth(3).unwrap().split(",user_id").next().unwrap().into()
}

/// Any `zfs set` at or above it, a rename and a start of the daemon took them away: what was mounted read-only was written
/// to.
fn temporary() {
    const FOR_ONCE: &str = "ro,nosuid,nodev,noexec,noatime";
    let (home, at) = home();
    home.run("zfs create tank/t");
    let (mut daemon, _) = home.start(SERVE);
    home.run("zfs mount -o ro,noexec,noatime tank/t");
    let mut there = at.join("t");
    for line in [
        "zfs set compression=zstd tank/t",
        "zfs set quota=1G tank/t",
        "zfs set cenote:x=y tank",
        "zfs set readonly=off tank",
        "zfs set setuid=off tank/t",
        "zfs inherit compression tank/t",
        "zfs set snapdir=visible tank/t",
        // Is mounted anew.
        "zfs set acltype=posix tank/t",
        "zfs snapshot tank/t@s",
        "zfs rollback tank/t@s",
    ] {
        home.run(line);
        assert_eq!(flags(&there), FOR_ONCE, "{line}");
    }
    assert!(fs::read_dir(&there).unwrap().any(|item| item.unwrap().file_name() == ".zfs"));
    home.run("zfs rename tank/t tank/u");
    there = at.join("u");
    assert_eq!(flags(&there), FOR_ONCE);
    daemon.kill();
    (daemon, _) = home.start(SERVE);
    assert_eq!(flags(&there), FOR_ONCE);
    home.run("down");
    daemon.has_ended();
    (daemon, _) = home.start(SERVE);
    assert_eq!(flags(&there), FOR_ONCE);
    // The last word holds: the property itself is set.
    home.run("zfs set readonly=off tank/u");
    assert_eq!(flags(&there), "rw,nosuid,nodev,noexec,noatime");
    fs::write(there.join("f"), "written").unwrap();
    home.run("zfs unmount tank/u");
    home.run("zfs mount tank/u");
    assert_eq!(flags(&there), "rw,nosuid,nodev,relatime");
    home.run("zfs unmount tank/u");
    home.run("zfs mount -o suid,dev tank/u");
    home.run("zfs set compression=lz4 tank/u");
    assert_eq!(flags(&there), "rw,relatime");
    home.run("zfs set setuid=off tank/u");
    assert_eq!(flags(&there), "rw,nosuid,relatime");
    home.run("zfs unmount tank/u");
    // Over what is in the directory.
    home.run("zfs set overlay=off tank/u");
    fs::write(there.join("below"), "").unwrap();
    home.run("zfs mount -O tank/u");
    for line in ["zfs set quota=2G tank/u", "zfs set cenote:x=z tank", "zfs set acltype=off tank/u"] {
        assert_eq!(home.run(line), "");
        assert_eq!(fs::read_to_string(there.join("f")).unwrap(), "written", "{line}");
    }
    home.run("zfs unmount tank/u");
    home.fails("zfs mount tank/u", 1);
    home.run("down");
    daemon.has_ended();
}

/// They were mounted anew, which a parent of mounted file systems is too busy for; with a bind mount the mount point was
/// gone.
fn in_place() {
    let (home, at) = home();
    for line in ["create tank/p", "create tank/p/a", "create tank/p/a/b", "create -o readonly=off tank/p/own"]
    {
        home.run(&format!("zfs {line}"));
    }
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount -a");
    let all = ["p", "p/a", "p/a/b", "p/own"].map(|name| at.join(name));
    let each = || all.each_ref().map(|at| flags(at));
    let bound = home.scratch.join("bound");
    fs::create_dir(&bound).unwrap();
    interop::programs::run(interop::programs::command("mount").arg("--bind").args([&all[0], &bound]));
    fs::write(all[2].join("f"), "kept").unwrap();
    let held = fs::File::open(all[2].join("f")).unwrap();
    let expected = |with: &str, own: &str| [with, with, with, own].map(String::from);
    for (line, with, own) in [
        ("set readonly=on tank/p", "ro,nosuid,nodev,relatime", "rw,nosuid,nodev,relatime"),
        ("set exec=off tank/p", "ro,nosuid,nodev,noexec,relatime", "rw,nosuid,nodev,noexec,relatime"),
        ("inherit readonly tank/p", "rw,nosuid,nodev,noexec,relatime", "rw,nosuid,nodev,noexec,relatime"),
        ("set setuid=on devices=on exec=on tank/p", "rw,relatime", "rw,relatime"),
        ("set setuid=off devices=off atime=off tank/p", "rw,nosuid,nodev,noatime", "rw,nosuid,nodev,noatime"),
    ] {
        assert_eq!(home.run(&format!("zfs {line}")), "");
        assert_eq!(each(), expected(with, own), "{line}");
        let writes = fs::write(all[1].join("w"), "x").is_ok();
        assert_eq!(
            (writes, fs::write(bound.join("w"), "x").is_ok()),
            (with.starts_with("rw"), writes),
            "{line}"
        );
    }
    drop(held);
    // One that is written to is named, and the others are read-only.
    let writing = fs::File::create(all[1].join("open")).unwrap();
    let said = home.fails("zfs set readonly=on tank/p", 1);
    let why = format!(
        "property is set, and holds when 'tank/p/a' is mounted the next time: cannot change '{}': \
         pool or dataset is busy: a file is open to be written: process {} (",
        all[1].display(),
        std::process::id()
    );
    assert!(said.starts_with(&why), "{said}");
    let are = each().map(|flags| flags[..2].to_string());
    assert_eq!(are, ["ro", "rw", "ro", "rw"]);
    drop(writing);
    assert_eq!(home.run("zfs set cenote:x=y tank/p"), "");
    assert!(flags(&all[1]).starts_with("ro"), "the next time is any");
    interop::programs::run(interop::programs::command("umount").arg(&bound));
    home.run("zfs unmount -a");
    // One that was mounted read-only is served from a handle that cannot write.
    home.run("zfs mount -a");
    let held = fs::File::open(all[2].join("f")).unwrap();
    home.run("zfs inherit readonly tank/p");
    fs::write(all[2].join("f"), "changed").unwrap();
    drop(held);
    home.run("zfs unmount -a");
    home.run("zfs mount -a");
    assert_eq!(fs::read_to_string(all[2].join("f")).unwrap(), "changed");
    daemon.end();
}

/// The parent was tried first, which its children keep busy; the first failure left the others, and what had been taken
/// away.
fn whole_trees() {
    let (home, at) = home();
    for line in
        ["create tank/p", "create tank/p/a", "create tank/p/a/b", "create tank/p/c", "create tank/beside"]
    {
        home.run(&format!("zfs {line}"));
    }
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount -a");
    let there = |top: &Path| ["", "a", "a/b", "c"].map(|name| top.join(name).join("f"));
    let old = at.join("p");
    for file in there(&old) {
        fs::write(file, "kept").unwrap();
    }
    let is_at = |top: &Path| {
        let all = there(top).map(|file| fs::read_to_string(file).is_ok_and(|text| text == "kept"));
        assert!(all == [true; 4] || all == [false; 4], "{all:?}");
        all[0]
    };
    // All stays where it is as long as one is in use.
    let new = home.scratch.join("new");
    let held = fs::File::open(old.join("a/b/f")).unwrap();
    let line = format!("zfs set mountpoint={} tank/p", new.display());
    let said = home.fails(&line, 1);
    let why = format!(
        "property is set, and holds when 'tank/p', 'tank/p/a', 'tank/p/a/b', 'tank/p/c' are mounted the next time: \
         cannot unmount '{}': pool or dataset is busy: process {} (",
        old.join("a/b").display(),
        std::process::id()
    );
    assert!(said.starts_with(&why), "{said}");
    assert!(is_at(&old) && !is_at(&new));
    drop(held);
    assert_eq!(home.run(&line), "");
    assert!(is_at(&new) && !is_at(&old));
    // What needs a new mount, and stays where it is.
    assert_eq!(home.run("zfs set acltype=posix tank/p"), "");
    assert!(is_at(&new));
    // A place that cannot be, and one where another would be hidden.
    let full = home.scratch.join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("f"), "before").unwrap();
    home.run("zfs set overlay=off tank/p");
    for (place, why) in [
        (full.clone(), "directory is not empty"),
        (at.clone(), "would be hidden"),
        (home.dir(), "would hide "),
    ] {
        let said = home.fails(&format!("zfs set mountpoint={} tank/p", place.display()), 1);
        assert!(said.starts_with("property is set, and holds when 'tank/p', 'tank/p/a', "), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(is_at(&new), "{said}");
    }
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1, "no mount point was made in it");
    home.run(&line);
    // What another dataset has mounted there goes along, and comes back.
    home.run("zfs unmount tank/beside");
    home.run(&format!("zfs set mountpoint={} tank/beside", new.join("beside").display()));
    home.run("zfs mount tank/beside");
    fs::write(new.join("beside/g"), "kept").unwrap();
    let back = home.scratch.join("back");
    home.run(&format!("zfs set mountpoint={} tank/p", back.display()));
    assert!(is_at(&back));
    assert_eq!(fs::read_to_string(new.join("beside/g")).unwrap(), "kept");
    home.run("zfs unmount tank/beside");
    // Without a place none is mounted.
    home.run("zfs set mountpoint=none tank/p");
    assert!(!is_at(&back));
    daemon.end();
}

/// It was gone here, and what was written then went to the directory below.
fn bound() {
    let (home, at) = home();
    home.run("zfs create tank/b");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank/b");
    let (here, there) = (at.join("b"), home.scratch.join("there"));
    fs::write(here.join("f"), "kept").unwrap();
    fs::create_dir(&there).unwrap();
    let mount = |words: &[&str], paths: &[&Path]| {
        interop::programs::run(interop::programs::command(words[0]).args(&words[1..]).args(paths));
    };
    mount(&["mount", "--bind"], &[&here, &there]);
    let why = format!(
        "cannot unmount '{}': pool or dataset is busy: it is mounted at '{}' as well",
        here.display(),
        there.display()
    );
    for line in ["zfs unmount tank/b", "zfs destroy tank/b", "zfs rename tank/b tank/c", "zpool export tank"]
    {
        assert_eq!(home.fails(line, 1), why);
        assert_eq!(fs::read_to_string(here.join("f")).unwrap(), "kept", "{line}");
    }
    let said = home.fails("zfs set acltype=posix tank/b", 1);
    assert!(said.starts_with("property is set, and ") && said.ends_with(&why), "{said}");
    assert_eq!(fs::read_to_string(here.join("f")).unwrap(), "kept");
    // Only there.
    mount(&["umount"], &[&here]);
    let why = format!("it is mounted at '{}', and at '{}' no more", there.display(), here.display());
    for line in ["zfs mount tank/b", "zfs unmount tank/b", "zfs destroy tank/b"] {
        let said = home.fails(line, 1);
        assert!(said.contains(&why), "{said}");
    }
    home.run("zfs unmount -f tank/b");
    assert!(fs::read_dir(&there).is_err(), "its users get errors");
    home.run("zfs mount tank/b");
    assert_eq!(fs::read_to_string(here.join("f")).unwrap(), "kept");
    mount(&["umount"], &[&there]);
    home.run("zfs destroy tank/b");
    daemon.end();
}

/// What had been unmounted before one was found busy stayed so: writes went into the parent.
fn refused() {
    let (home, at) = home();
    for line in ["create tank/p", "create tank/p/a", "create tank/p/b", "create tank/p/b/c", "create tank/q"]
    {
        home.run(&format!("zfs {line}"));
    }
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount -a");
    let mounted = home.run("zfs mount");
    fs::write(at.join("p/f"), "early").unwrap();
    home.run("zfs snapshot tank/p@s");
    fs::write(at.join("p/f"), "late").unwrap();
    home.run("zfs snapshot tank/p@later");
    let held = fs::File::create(at.join("p/a/f")).unwrap();
    // Of a snapshot that would go.
    let open = fs::File::open(at.join("p/.zfs/snapshot/later/f")).unwrap();
    let busy = format!("cannot unmount '{}': pool or dataset is busy: process ", at.join("p/a").display());
    for line in [
        "zfs rollback -r tank/p@s",
        "zfs unmount tank/p",
        "zfs rename tank/p tank/r",
        "zfs destroy -r tank/p",
        "zpool export tank",
    ] {
        let said = home.fails(line, 1);
        assert!(said.starts_with(&busy), "{line}: {said}");
        assert_eq!(home.run("zfs mount"), mounted, "{line}");
        let mut bytes = [0; 4];
        rustix::io::pread(&open, &mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"late", "{line}");
    }
    // All that can be, and each that cannot.
    let said = home.fails("zfs unmount -a", 1);
    assert!(said.starts_with(&busy), "{said}");
    let left = home.run("zfs list -H -o name -t filesystem,volume -r tank");
    let left: Vec<&str> =
        left.lines().filter(|name| home.run("zfs mount").contains(&format!("{name} "))).collect();
    assert_eq!(left, ["tank", "tank/p", "tank/p/a"], "it, and what it lies on");
    assert_eq!(home.run("zfs mount -a"), "");
    drop((held, open));
    home.run("zfs rollback -r tank/p@s");
    assert_eq!(fs::read_to_string(at.join("p/f")).unwrap(), "early");
    assert_eq!(home.run("zfs mount"), mounted);
    // One over the other: both go.
    let same = home.scratch.join("same");
    for name in ["b", "a"] {
        home.run(&format!("zfs create -o mountpoint={} tank/q/{name}", same.display()));
        home.run(&format!("zfs mount -O tank/q/{name}"));
    }
    home.run("zfs destroy -r tank/q");
    // There is no way to the snapshots, as the property says.
    assert!(at.join("p/.zfs/snapshot/s/f").exists());
    home.run("zfs set snapdir=disabled tank/p");
    home.run("zfs unmount tank/p");
    home.run("zfs mount tank/p");
    assert!(!at.join("p/.zfs").exists() && !at.join("p/.zfs/snapshot/s/f").exists());
    daemon.end();
}

/// It was mounted where the link leads, and unmounted where the link is: never, and what a killed daemon left stayed dead.
fn by_link() {
    let (home, at) = home();
    let (real, link) = (home.scratch.join("real"), home.scratch.join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    home.run(&format!("zfs create -o mountpoint={} tank/l", link.display()));
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank/l");
    fs::write(real.join("f"), "kept").unwrap();
    home.run("zfs set readonly=on tank/l");
    assert!(fs::write(real.join("f"), "").is_err());
    home.run("zfs inherit readonly tank/l");
    fs::File::open(real.join("f")).unwrap().sync_all().unwrap();
    home.run("zfs unmount tank/l");
    assert!(!real.join("f").exists());
    home.run("zfs mount tank/l");
    daemon.kill();
    let (daemon, _) = home.start(SERVE);
    assert_eq!(fs::read_to_string(real.join("f")).unwrap(), "kept");
    home.run("zfs destroy tank/l");
    // One that a user has made: it would say what root mounts over.
    home.run("zfs mount tank");
    std::os::unix::fs::symlink(&real, at.join("x")).unwrap();
    std::os::unix::fs::lchown(at.join("x"), Some(4242), None).unwrap();
    home.run("zfs create -u tank/x");
    let said = home.fails("zfs mount tank/x", 1);
    assert!(said.contains("is a symbolic link of another user"), "{said}");
    daemon.end();
}

/// Trees are numbered in the order in which a mount meets snapshots, and the generation of a file is the same in all.
fn handles() {
    const OPEN: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure): _fields_ = [('n', ctypes.c_uint), ('t', ctypes.c_int), ('b', ctypes.c_ubyte * 128)]
top, paths = sys.argv[1], sys.argv[2:]
def handle(path):
    h, m = Handle(128), ctypes.c_int()
    assert libc.name_to_handle_at(-100, path.encode(), ctypes.byref(h), ctypes.byref(m), 0) == 0
    return h
def read(h):
    at = os.open(top, os.O_RDONLY)
    f = libc.open_by_handle_at(at, ctypes.byref(h), 0)
    os.close(at)
    if f < 0: return os.strerror(ctypes.get_errno())
    text = os.read(f, 100).decode()
    os.close(f)
    return text
handles = [handle(path) for path in paths]
print([read(h) for h in handles], flush=True)
sys.stdin.readline()
print([read(h) for h in handles], flush=True)
";
    let (home, at) = home();
    home.run("zfs create tank/h");
    let (daemon, _) = home.start(SERVE);
    home.run("zfs mount tank/h");
    let top = at.join("h");
    for name in ["a", "b"] {
        fs::write(top.join("f"), name).unwrap();
        home.run(&format!("zfs snapshot tank/h@{name}"));
    }
    fs::write(top.join("f"), "live").unwrap();
    let of = |name: &str| top.join(format!(".zfs/snapshot/{name}/f"));
    let mut program = interop::programs::command("python3");
    program.args(["-c", OPEN]).args([&top, &of("a"), &of("b"), &top.join("f")]);
    program.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut program = program.spawn().unwrap();
    let mut lines = std::io::BufReader::new(program.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        line
    };
    assert_eq!(line(), "['a', 'b', 'live']\n");
    home.run("zfs unmount tank/h");
    home.run("zfs mount tank/h");
    // In the other order.
    assert_eq!(fs::read_to_string(of("b")).unwrap(), "b");
    assert_eq!(fs::read_to_string(of("a")).unwrap(), "a");
    drop(program.stdin.take());
    let stale = "'Stale file handle'";
    assert_eq!(line(), format!("[{stale}, {stale}, 'live']\n"));
    assert!(program.wait().unwrap().success());
    daemon.end();
}
