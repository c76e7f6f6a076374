//! What programs ask for by system calls.

use crate::bench::{Bench, NEEDS, OVER_IO_URING};
use interop::harness::{Need, Trial, trial};
use interop::programs::command;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, StatxFlags, Timespec, Timestamps,
    XattrFlags,
};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

pub fn trials() -> Vec<Trial> {
    let acl = [&NEEDS[..], &[Need::Program("setfacl")]].concat();
    let namespaces = [&acl[..], &[Need::Other("user namespaces for all", has_user_namespaces)]].concat();
    vec![
        trial("a_file_without_a_name_lives_until_it_is_closed", &NEEDS, nameless),
        trial("holes_are_holes_and_are_found", &NEEDS, holes),
        trial("errors_are_those_of_the_system", &NEEDS, errors),
        trial("extended_attributes_and_acls_are_kept_and_enforced", &NEEDS, attributes),
        trial("who_changes_a_program_takes_its_rights_and_sees_it_at_once", &acl, rights),
        trial("rights_in_a_namespace_of_ones_own_are_none_here", &namespaces, rights_elsewhere),
        trial("renames_replace_refuse_and_exchange", &NEEDS, renames),
        trial("large_and_direct_requests_arrive_whole", &NEEDS, large),
        trial("offsets_and_sizes_at_the_end_of_numbers_are_refused", &NEEDS, limits),
        trial("when_a_file_was_read_is_noted_unless_the_mount_says_no", &NEEDS, access),
        trial("what_snapshots_hold_is_reached_by_name", &NEEDS, control),
        trial("times_come_back_and_when_it_was_made_is_shown", &NEEDS, times),
        trial("more_wait_than_a_ring_has_room_for", &NEEDS, crowd),
    ]
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Option<Errno> {
    Errno::from_io_error(&result.unwrap_err())
}

fn read_write(path: &std::path::Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn nameless() {
    let bench = Bench::new();
    let path = bench.root().join("f");
    let mut file = read_write(&path);
    file.write_all(b"still here").unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    // Another file of that name is another file.
    std::fs::write(&path, "new").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    file.write_all(b", and written").unwrap();
    let dir = bench.root().join("d");
    std::fs::create_dir(&dir).unwrap();
    let held = File::open(&dir).unwrap();
    std::fs::remove_dir(&dir).unwrap();
    let in_gone = rustix::fs::openat(&held, "x", OFlags::CREATE | OFlags::RDWR, Mode::RWXU);
    assert_eq!(in_gone.unwrap_err(), Errno::NOENT);
    drop((file, held));
    bench.unmount(false).unwrap();
    bench.mount();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

fn holes() {
    let bench = Bench::new();
    let file = read_write(&bench.root().join("f"));
    let block = 128 << 10;
    assert_eq!(file.metadata().unwrap().blksize(), block, "what its blocks are to become");
    file.write_all_at(&vec![7; 4 * block as usize], 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, block, block).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 3 * block, 2 * block).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 9 * block, block).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5 * block);
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 6 * block).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 6 * block);
    let mut bytes = vec![1; 6 * block as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let expected = [7, 0, 7, 0, 0, 0].map(|b| vec![b; block as usize]).concat();
    assert!(bytes == expected);
    let seek = |from| rustix::fs::seek(&file, from);
    for (from, expected) in [
        (SeekFrom::Data(0), Ok(0)),
        (SeekFrom::Hole(0), Ok(block)),
        (SeekFrom::Data(block), Ok(2 * block)),
        (SeekFrom::Hole(2 * block + 5), Ok(3 * block)),
        (SeekFrom::Data(3 * block), Err(Errno::NXIO)),
        (SeekFrom::Hole(6 * block), Err(Errno::NXIO)),
    ] {
        assert_eq!(seek(from), expected, "{from:?}");
    }
    let collapse = rustix::fs::fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, block);
    assert_eq!(collapse.unwrap_err(), Errno::OPNOTSUPP);
    // A copy by the file system.
    let copy = read_write(&bench.root().join("copy"));
    let mut done = 0;
    while done < 6 * block {
        let (mut from, mut to) = (done, done);
        let n = rustix::fs::copy_file_range(
            &file,
            Some(&mut from),
            &copy,
            Some(&mut to),
            (6 * block - done) as usize,
        );
        done += n.unwrap() as u64;
    }
    let mut copied = vec![1; 6 * block as usize];
    copy.read_exact_at(&mut copied, 0).unwrap();
    assert!(copied == expected);
}

fn errors() {
    let bench = Bench::new();
    let root = bench.root();
    let dir = root.join("d");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("f"), "x").unwrap();
    assert_eq!(errno(std::fs::remove_dir(&dir)), Some(Errno::NOTEMPTY));
    assert_eq!(errno(std::fs::remove_file(&dir)), Some(Errno::ISDIR));
    assert_eq!(errno(std::fs::create_dir(&dir)), Some(Errno::EXIST));
    assert_eq!(errno(std::fs::read(dir.join("f/g"))), Some(Errno::NOTDIR));
    assert_eq!(errno(std::fs::write(root.join("n".repeat(256)), "")), Some(Errno::NAMETOOLONG));
    assert_eq!(errno(std::fs::metadata(root.join("n".repeat(256)))), Some(Errno::NAMETOOLONG));
    std::fs::write(root.join("n".repeat(255)), "").unwrap();
    assert_eq!(errno(std::fs::rename(&dir, dir.join("into-itself"))), Some(Errno::INVAL));
    assert_eq!(errno(std::fs::hard_link(&dir, root.join("l"))), Some(Errno::PERM));
    assert_eq!(errno(std::fs::read_link(dir.join("f"))), Some(Errno::INVAL));
    std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
    assert_eq!(errno(std::fs::read(root.join("loop"))), Some(Errno::LOOP));
    assert_eq!(errno(std::os::unix::fs::symlink("x".repeat(4096), root.join("s"))), Some(Errno::NAMETOOLONG));
    assert_eq!(errno(std::fs::read(root.join("nothing"))), Some(Errno::NOENT));
    // What was not there a moment ago is there as soon as it is made.
    std::fs::write(root.join("nothing"), "now").unwrap();
    assert_eq!(std::fs::read(root.join("nothing")).unwrap(), b"now");
}

fn attributes() {
    let bench = Bench::with(|options| options.posix_acl = true);
    let path = bench.root().join("f");
    std::fs::write(&path, "x").unwrap();
    let set = |name: &str, value: &[u8], flags| rustix::fs::setxattr(&path, name, value, flags);
    let get = |name: &str| {
        let mut value = vec![0; 1 << 16];
        rustix::fs::getxattr(&path, name, &mut value[..]).map(|n| value[..n].to_vec())
    };
    set("user.a", b"1", XattrFlags::CREATE).unwrap();
    assert_eq!(set("user.a", b"2", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(set("user.b", b"2", XattrFlags::REPLACE), Err(Errno::NODATA));
    set("user.a", b"longer", XattrFlags::REPLACE).unwrap();
    set("trusted.t", b"", XattrFlags::empty()).unwrap();
    assert_eq!(rustix::fs::getxattr_query(&path, "user.a"), Ok(6), "the size, when there is no room");
    let mut small = [0u8; 3];
    assert_eq!(rustix::fs::getxattr(&path, "user.a", &mut small[..]), Err(Errno::RANGE));
    let mut list = [0u8; 64];
    let n = rustix::fs::listxattr(&path, &mut list[..]).unwrap();
    assert_eq!(&list[..n], b"trusted.t\0user.a\0");
    rustix::fs::removexattr(&path, "user.a").unwrap();
    assert_eq!(rustix::fs::removexattr(&path, "user.a"), Err(Errno::NODATA));
    assert_eq!(get("user.a"), Err(Errno::NODATA));
    // rw- for the owner, user 1000 may read, mask r--.
    let acl = [
        2u32.to_le_bytes().to_vec(),
        entry(1, 6, !0),
        entry(2, 4, 1000),
        entry(4, 0, !0),
        entry(16, 4, !0),
        entry(32, 0, !0),
    ];
    set("system.posix_acl_access", &acl.concat(), XattrFlags::empty()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    let as_user = |uid: &str| {
        let mut command = command("setpriv");
        let user =
            [format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".into(), "cat".into()];
        command.args(user).arg(&path).output().unwrap().status.success()
    };
    std::fs::set_permissions(bench.root(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(as_user("1000") && !as_user("1001"));
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert!(!as_user("1000"), "the mask follows the mode");
    // A default list is what files in the directory begin with.
    let dir = bench.root().join("d");
    std::fs::create_dir(&dir).unwrap();
    let acl = [
        2u32.to_le_bytes().to_vec(),
        entry(1, 7, !0),
        entry(2, 7, 1000),
        entry(4, 5, !0),
        entry(16, 7, !0),
        entry(32, 0, !0),
    ];
    rustix::fs::setxattr(&dir, "system.posix_acl_default", &acl.concat(), XattrFlags::empty()).unwrap();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o664).open(dir.join("new")).unwrap();
    assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o660);
    let plain = Bench::new();
    let path = plain.root().join("f");
    std::fs::write(&path, "x").unwrap();
    let refused = rustix::fs::setxattr(&path, "system.posix_acl_access", &acl.concat(), XattrFlags::empty());
    assert_eq!(refused, Err(Errno::OPNOTSUPP));
}

/// It did not: the kernel went on believing the mode for a second after direct writes and allocating; set-group-id without
/// execution stayed whoever allocated, and whoever set a list.
fn rights() {
    what_is_left_of_a_mode(&[
        (100, 100, DIRECT, 0o6666, 0o2666),
        (100, 101, DIRECT, 0o6666, 0o666),
        (100, 100, DIRECT, 0o6777, 0o777),
        (0, 0, DIRECT, 0o6777, 0o6777),
        (101, 101, "fallocate -l 8192 f", 0o6666, 0o666),
        (100, 100, "fallocate -l 12288 f", 0o6666, 0o2666),
        (0, 0, "fallocate -p -l 4096 f", 0o6777, 0o6777),
        (101, 101, "truncate -s 100 f", 0o6666, 0o666),
        (100, 100, LIST, 0o2755, 0o2777),
        (100, 101, LIST, 0o2755, 0o777),
        (0, 101, LIST, 0o2755, 0o2777),
    ]);
}

/// The user of a namespace of his own has all capabilities there, and set-user-id stayed on a file that he filled: a program
/// of its owner's with the content of another.
fn rights_elsewhere() {
    let within = |script: &str| format!("unshare --user --map-root-user {script}");
    what_is_left_of_a_mode(&[
        (101, 101, &within(DIRECT), 0o6666, 0o666),
        (101, 101, &within("sh -c 'echo >> f'"), 0o6777, 0o777),
        (101, 101, &within("fallocate -l 8192 f"), 0o6666, 0o666),
        (101, 101, &within("truncate -s 100 f"), 0o6777, 0o777),
        (100, 101, &within(LIST), 0o2755, 0o777),
    ]);
}

fn has_user_namespaces() -> bool {
    let mut tried = command("setpriv");
    tried.args([
        "--reuid=100",
        "--regid=100",
        "--clear-groups",
        "unshare",
        "--user",
        "--map-root-user",
        "true",
    ]);
    tried.output().is_ok_and(|output| output.status.success())
}

const DIRECT: &str = "dd if=/dev/zero of=f bs=4096 count=1 oflag=direct conv=notrunc status=none";
const LIST: &str = "setfacl -m u::rwx,g::rwx,o::rwx f";

/// Owned by 100:100: who does what, to which mode, and what is left of it.
fn what_is_left_of_a_mode(cases: &[(u32, u32, &str, u32, u32)]) {
    let bench = Bench::with(|options| options.posix_acl = true);
    std::fs::set_permissions(bench.root(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let path = bench.root().join("f");
    for &(uid, gid, script, before, after) in cases {
        std::fs::write(&path, "program").unwrap();
        std::os::unix::fs::chown(&path, Some(100), Some(100)).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(before)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, before);
        let mut client = command("setpriv");
        client.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".into()]);
        interop::programs::run(client.args(["sh", "-ec", script]).current_dir(bench.root()));
        let left = std::fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(left, after, "{left:o} after '{script}' by {uid}:{gid}");
    }
}

fn entry(tag: u16, rights: u16, who: u32) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &who.to_le_bytes()].concat()
}

fn renames() {
    let bench = Bench::new();
    let (one, two) = (bench.root().join("one"), bench.root().join("two"));
    std::fs::write(&one, "1").unwrap();
    std::fs::write(&two, "2").unwrap();
    let rename = |flags| rustix::fs::renameat_with(CWD, &one, CWD, &two, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(std::fs::read_to_string(&one).unwrap() + &std::fs::read_to_string(&two).unwrap(), "21");
    let three = bench.root().join("three");
    rustix::fs::renameat_with(CWD, &two, CWD, &three, RenameFlags::WHITEOUT).unwrap();
    let left = std::fs::metadata(&two).unwrap();
    assert_eq!((left.mode() & 0o170_000, left.rdev(), left.nlink()), (0o020_000, 0, 1));
    std::fs::rename(&three, &two).unwrap();
    let held = File::open(&two).unwrap();
    std::fs::rename(&one, &two).unwrap();
    assert_eq!(std::fs::read_to_string(&two).unwrap(), "2");
    assert!(!one.exists());
    let mut text = [0];
    held.read_exact_at(&mut text, 0).unwrap();
    assert_eq!(&text, b"1", "who has the old one open has the old one");
    // The protocol has a word for files that never had a name; the library does not know it.
    let nameless = rustix::fs::openat(CWD, bench.root(), OFlags::TMPFILE | OFlags::RDWR, Mode::RWXU);
    assert_eq!(nameless.unwrap_err(), Errno::OPNOTSUPP);
    let times = Timestamps {
        last_access: Timespec { tv_sec: 5, tv_nsec: 6 },
        last_modification: Timespec { tv_sec: 7, tv_nsec: rustix::fs::UTIME_NOW },
    };
    rustix::fs::utimensat(CWD, &two, &times, AtFlags::empty()).unwrap();
    let stat = std::fs::metadata(&two).unwrap();
    assert_eq!((stat.atime(), stat.atime_nsec()), (5, 6));
    assert!(stat.mtime() > 1_000_000_000);
}

fn large() {
    let bench = Bench::new();
    let path = bench.root().join("f");
    let pattern: Vec<u8> = (0..5u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&path, &pattern).unwrap();
    assert!(std::fs::read(&path).unwrap() == pattern);
    let direct =
        OpenOptions::new().read(true).write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&path);
    let direct = direct.unwrap();
    let mut room = vec![0u8; (1 << 20) + 4096];
    let at = room.as_ptr().align_offset(4096);
    let page = &mut room[at..at + (1 << 20)];
    assert_eq!(direct.read_at(page, 1 << 20).unwrap(), 1 << 20);
    assert!(page == &pattern[1 << 20..2 << 20]);
    page.fill(9);
    assert_eq!(direct.write_at(page, 2 << 20).unwrap(), 1 << 20);
    let mut seen = vec![0; 1 << 20];
    let buffered = File::open(&path).unwrap();
    buffered.read_exact_at(&mut seen, 2 << 20).unwrap();
    assert!(seen.iter().all(|b| *b == 9), "what was written past the cache is seen through it");
    let mut appended = OpenOptions::new().append(true).open(&path).unwrap();
    appended.write_all(b"tail").unwrap();
    appended.sync_all().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), (5 << 20) + 4);
    let many: Vec<_> = (0..8u8)
        .map(|i| {
            let path = path.clone();
            std::thread::spawn(move || {
                let file = OpenOptions::new().write(true).open(path).unwrap();
                (0..20).for_each(|k| {
                    file.write_all_at(&[i; 50_000], u64::from(i) * 1_000_000 + k * 50_000).unwrap()
                });
            })
        })
        .collect();
    many.into_iter().for_each(|thread| thread.join().unwrap());
    let all = std::fs::read(&path).unwrap();
    assert!((0..8).all(|i| all[i * 1_000_000..(i + 1) * 1_000_000].iter().all(|b| *b == i as u8)));
}

fn limits() {
    let bench = Bench::new();
    let file = read_write(&bench.root().join("f"));
    let end = i64::MAX as u64;
    assert_eq!(rustix::io::pwrite(&file, b"x", end), Err(Errno::INVAL));
    rustix::fs::ftruncate(&file, end).unwrap();
    assert_eq!(file.metadata().unwrap().len(), end);
    let mut byte = [1];
    assert_eq!(file.read_at(&mut byte, end - 1).unwrap(), 1);
    assert_eq!(byte, [0]);
    assert_eq!(rustix::io::pread(&file, &mut byte, end), Err(Errno::INVAL));
    assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(end - 1)), Err(Errno::NXIO));
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(rustix::fs::fallocate(&file, punch, end - 1, 2), Err(Errno::FBIG));
    assert_eq!(rustix::fs::fallocate(&file, FallocateFlags::empty(), end, 1), Err(Errno::FBIG));
    rustix::fs::ftruncate(&file, 3).unwrap();
    assert_eq!(rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 50), Err(Errno::NOSPC));
    // Offsets that no listing gave lead nowhere, and do no harm.
    let dir = rustix::fs::openat(CWD, bench.root(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for offset in [5, 1 << 40, end] {
        rustix::fs::seek(dir.as_fd(), SeekFrom::Start(offset)).unwrap();
        let mut room = Vec::with_capacity(4096);
        let mut listed = rustix::fs::RawDir::new(&dir, room.spare_capacity_mut());
        assert!(listed.next().is_none_or(|entry| entry.is_ok()));
    }
}

fn access() {
    for (bench, is_noted) in [(Bench::new(), true), (Bench::with(|options| options.atime = false), false)] {
        let (path, old) = (bench.root().join("f"), Timespec { tv_sec: 5, tv_nsec: 6 });
        std::fs::write(&path, "x").unwrap();
        let times = Timestamps { last_access: old, last_modification: old };
        for path in [&path, &bench.root()] {
            rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
        }
        std::fs::read(&path).unwrap();
        std::fs::read_dir(bench.root()).unwrap().for_each(drop);
        // What the kernel was told of times it believes for a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        for path in [&path, &bench.root()] {
            assert_eq!(std::fs::metadata(path).unwrap().atime() != 5, is_noted, "{}", path.display());
        }
    }
}

fn control() {
    let bench = Bench::new();
    let control = bench.root().join(".zfs");
    let names = |dir: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert!(names(&bench.root()).is_empty(), "it is hidden");
    assert_eq!(names(&control), ["snapshot"]);
    assert!(names(&control.join("snapshot")).is_empty());
    assert!(!control.join("snapshot/none").exists());
    assert_eq!(errno(std::fs::create_dir(&control)), Some(Errno::EXIST));
    assert_eq!(errno(std::fs::remove_dir(&control)), Some(Errno::PERM));
    assert_eq!(errno(std::fs::create_dir(control.join("x"))), Some(Errno::PERM));
    let shown = Bench::with(|options| options.snapshots = fuse::Snapshots::Visible);
    assert_eq!(names(&shown.root()), [".zfs"]);
}

fn times() {
    let bench = Bench::new();
    let path = bench.root().join("f");
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let before = clock();
    std::fs::write(&path, "x").unwrap();
    for (seconds, nanos) in [(-1, 999_999_999), (-86_400, 1), (0, 0), (1 << 33, 3)] {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanos };
        let both = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, &path, &both, AtFlags::empty()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let stat = std::fs::metadata(&path).unwrap();
        assert_eq!((stat.mtime(), stat.mtime_nsec()), (seconds, nanos));
    }
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(CWD, &path, AtFlags::empty(), wanted).unwrap();
    // Older kernels do not ask for it.
    if stat.stx_mask & StatxFlags::BTIME.bits() != 0 {
        assert!((before as i64..before as i64 + 60).contains(&stat.stx_btime.tv_sec), "{:?}", stat.stx_btime);
        assert_eq!((stat.stx_size, stat.stx_mtime.tv_sec, stat.stx_mode & 0o777), (1, 1 << 33, 0o644));
    }
}

/// Each of them waits for a txg's log, so that they are under way all at once; others go on meanwhile.
fn crowd() {
    let bench = Bench::new();
    let is_served_so = std::thread::current().name().is_some_and(|trial| trial.ends_with(OVER_IO_URING));
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok());
    let has_rings = names.into_iter().any(|name| name.starts_with("fuse-ring"));
    assert!(has_rings || !is_served_so, "it is served in the usual way");
    let writers: Vec<_> = (0..150u8)
        .map(|n| {
            let path = bench.root().join(n.to_string());
            std::thread::spawn(move || {
                let mut file = File::create(path).unwrap();
                for round in 0..4u8 {
                    file.write_all(&[n ^ round; 70_000]).unwrap();
                    file.sync_all().unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    for n in 0..150u8 {
        let written = std::fs::read(bench.root().join(n.to_string())).unwrap();
        assert_eq!(written.len(), 280_000);
        assert!(written.chunks(70_000).zip(0u8..).all(|(part, round)| part.iter().all(|b| *b == n ^ round)));
    }
}
