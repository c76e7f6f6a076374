//! LUNs that the daemon serves over iSCSI, as the clients that people have see them.

use crate::home::{Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{feed, find, run, said};
use std::path::Path;
use std::process::{Command, Stdio};

pub const QEMU: Need = Need::Other("QEMU with iSCSI (qemu-utils, qemu-block-extra)", || {
    let module = |dir: &str| Path::new(dir).join("qemu/block-iscsi.so").is_file();
    let dirs = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    find("qemu-io").is_some() && dirs.into_iter().any(module)
});

/// Seldom one of the many logins of the suite finds no unit: until that is understood, it is run when asked for.
const ASKED: Need = Need::Other("CONFORMANCE=1", || std::env::var_os("CONFORMANCE").is_some());

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "initiators_see_the_luns_of_their_groups_and_keep_what_they_wrote",
            &[Need::Program("iscsi-ls"), Need::Program("timeout"), QEMU],
            served,
        ),
        trial(
            "a_pool_that_comes_takes_no_lun_of_one_that_is_there",
            &[Need::Program("iscsi-ls"), Need::Program("timeout"), QEMU],
            claimed,
        ),
        trial(
            "conformance_tests_end_on_volumes_as_they_do_on_memory",
            &[Need::Program("iscsi-test-cu"), Need::Program("timeout"), ASKED],
            conformance,
        ),
        trial(
            "a_disabled_service_lets_nobody_in_and_an_enabled_one_takes_its_clients_again",
            &[Need::Program("iscsi-ls"), Need::Program("timeout"), QEMU],
            switched,
        ),
        trial(
            "a_target_is_at_the_interfaces_that_it_names",
            &[Need::Program("iscsi-ls"), Need::Program("timeout")],
            at_interfaces,
        ),
        trial(
            "a_rollback_names_who_is_in_the_way_and_with_force_leaves_them_their_session",
            &[QEMU],
            rolled_back,
        ),
        trial(
            "a_lun_copies_by_itself_what_its_client_asks_for",
            &[Need::Program("iscsi-test-cu"), Need::Program("timeout"), QEMU],
            copied,
        ),
        trial(
            "a_lun_gets_other_blocks_and_its_client_goes_on",
            &[Need::Program("iscsi-inq"), Need::Program("timeout"), QEMU],
            other_blocks,
        ),
    ]
}

/// Tests that run at a time, each on a target of its own.
const PLACES: usize = 3;

fn conformance() {
    let home = Home::with_pool();
    let port = free_port();
    let mut places = Vec::new();
    for n in 0..PLACES {
        let (target, group) = (format!("iqn.2001-04.com.example:suite{n}"), format!("suite{n}"));
        let script = format!(
            "configuration san targets iscsi create\nset iqn={target}\ncommit\n\
             configuration san targets iscsi groups create\nset name={group} targets={target}\ncommit\n\
             shares project {group}\ncommit\n\
             shares select {group} lun usual\nset volsize=1G volblocksize=16K sparse=true\n\
             set targetgroup={group} writecache=true\ncommit\n\
             shares select {group} lun small\nset volsize=1G volblocksize=512 sparse=true\n\
             set targetgroup={group} writecache=true\ncommit\n"
        );
        shell(&home, &script);
        let url = |lun: u16| format!("iscsi://127.0.0.1:{port}/{target}/{lun}");
        places.push(interop::conformance::Place { usual: url(0), small: url(1) });
    }
    // Only now: who is logged in when a LUN comes is told so, and the suite counts that as a failure.
    let daemon = start(&home, port);
    let dir = home.scratch.path();
    let suite = interop::conformance::Suite { places, own: "", one_of: 1, dir };
    interop::conformance::every_test_ends_as_expected(&suite);
    daemon.end();
}

/// A client in the midst of its writes is hung up on, comes again, and has lost nothing; while the service is off nobody
/// is let in, also after a restart.
fn switched() {
    let home = Home::with_pool();
    let port = free_port();
    let daemon = start(&home, port);
    shell(&home, SETUP);
    let portal = format!("iscsi://127.0.0.1:{port}");
    let log = format!("{portal}/{TARGET}/1");
    let run = |command: &str| shell(&home, &format!("configuration services iscsi {command}\n"));
    let is_open = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let clients = || {
        let said = said(
            &home.cenote(&["shell", "-c", "configuration services iscsi get clients"]).output().unwrap(),
        );
        said.rsplit(' ').next().unwrap().trim().parse::<u64>().unwrap()
    };
    let within = |what: &str, is: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !is() {
            assert!(begun.elapsed().as_secs() < 120, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let step = |n: u32| {
                [
                    format!("write -P {} {}k 64k", n % 250 + 1, n % 256 * 64),
                    format!("read -P {} {}k 64k", n % 250 + 1, n % 256 * 64),
                ]
            };
            let commands: Vec<String> = (0..1500).flat_map(step).collect();
            let words: Vec<&str> = commands.iter().flat_map(|c| ["-c", c.as_str()]).collect();
            client("qemu-io", &[&["-f", "raw"], &words[..], &[&log]].concat())
        });
        within("it logs in", &|| clients() > 0);
        let asked = home.cenote(&["shell", "-c", "configuration services iscsi disable"]).output().unwrap();
        assert!(!asked.status.success() && said(&asked).contains("confirm disable"), "{}", said(&asked));
        run("confirm disable");
        assert!(!is_open());
        within("its sessions end", &|| clients() == 0);
        assert!(!writer.is_finished(), "it waits");
        let tried =
            Command::new("timeout").args(["10", "iscsi-ls", &portal]).stdin(Stdio::null()).output().unwrap();
        assert!(!tried.status.success(), "{}", said(&tried));
        run("enable");
        let said = writer.join().unwrap();
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    });
    run("confirm restart");
    assert!(is_open());
    run("confirm disable");
    daemon.end();
    let daemon = start(&home, port);
    assert!(!is_open(), "as it was left");
    run("enable");
    assert!(client("iscsi-ls", &["-s", "-i", HOST, &portal]).contains("Lun:0 "));
    daemon.end();
}

/// By the name of an interface, by an address that the machine does not have, and behind a portal at every address.
fn at_interfaces() {
    let home = Home::with_pool();
    let port = free_port();
    // Of the loopback network each address is this machine's, and only the first is one of the interface.
    let daemon = home
        .start(&format!("serve --listen 127.0.0.1:0 --iscsi 127.0.0.1:{port} --iscsi 127.0.0.2:{port}"))
        .0;
    shell(&home, SETUP);
    let list = |portal: &str| {
        let url = format!("iscsi://{portal}:{port}");
        client("iscsi-ls", &["-s", "-i", HOST, &url])
    };
    let is_refused = |portal: &str| {
        let url = format!("iscsi://{portal}:{port}/{TARGET}/1");
        let tried =
            Command::new("timeout").args(["20", "iscsi-inq", &url]).stdin(Stdio::null()).output().unwrap();
        assert_ne!(tried.status.code(), Some(124), "it is answered: {}", said(&tried));
        !tried.status.success()
    };
    let set = |interfaces: &str| {
        let line = format!("configuration san targets iscsi select {TARGET} set interfaces={interfaces}");
        home.cenote(&["shell", "-c", &line]).output().unwrap()
    };
    let told = |portal: &str| format!("Portal:{portal}:{port},1");
    let everywhere = list("127.0.0.2");
    assert!(
        everywhere.contains(&told("127.0.0.1")) && everywhere.contains(&told("127.0.0.2")),
        "{everywhere}"
    );

    assert!(set("lo").status.success());
    let first = list("127.0.0.1");
    assert!(first.contains(&told("127.0.0.1")) && !first.contains(&told("127.0.0.2")), "{first}");
    assert!(!list("127.0.0.2").contains(TARGET), "nor is it told of elsewhere");
    assert!(is_refused("127.0.0.2") && !is_refused("127.0.0.1"));

    assert!(set("127.0.0.2").status.success());
    assert!(list("127.0.0.2").contains(&told("127.0.0.2")) && !list("127.0.0.1").contains(TARGET));
    assert!(is_refused("127.0.0.1") && !is_refused("127.0.0.2"));
    // It may come later; until then the target is nowhere.
    assert!(set("192.0.2.77").status.success());
    assert!(!list("127.0.0.1").contains(TARGET) && !list("127.0.0.2").contains(TARGET));
    assert!(is_refused("127.0.0.1") && is_refused("127.0.0.2"));

    let refused = set("no-such-0");
    assert!(
        !refused.status.success() && said(&refused).contains("there is no network interface 'no-such-0'"),
        "{}",
        said(&refused)
    );
    assert!(set("lo").status.success());
    daemon.end();
}

/// One session: what it wrote after the snapshot is gone, what it wrote before is back.
fn rolled_back() {
    let home = Home::with_pool();
    let port = free_port();
    let daemon = start(&home, port);
    shell(&home, SETUP);
    let log = format!("iscsi://127.0.0.1:{port}/{TARGET}/1");
    let mut session = Session::open(&log);
    session.run("write -P 1 0 1M");
    session.run("flush");
    home.run("zfs snapshot tank/mysql/log@one");
    session.run("write -P 2 0 2M");
    session.run("read -P 2 0 2M");
    let busy = || {
        let said = home.fails("zfs rollback tank/mysql/log@one", 1);
        let start = "cannot roll back to 'tank/mysql/log@one': dataset is busy: clients use tank/mysql/log (initiator iqn.";
        assert!(said.starts_with(start) && said.ends_with("); use '-f' to end them"), "{said}");
        let from = said.split_once(" from 127.0.0.1:").unwrap_or_else(|| panic!("{said}")).1;
        from.split(')').next().unwrap().parse::<u16>().unwrap()
    };
    let came_from = busy();
    session.run("read -P 2 0 1M");
    home.run("zfs rollback -f tank/mysql/log@one");
    session.run("read -P 1 0 1M");
    session.run("read -P 0 1M 1M");
    session.run("write -P 3 0 64k");
    session.run("read -P 3 0 64k");
    assert_eq!(busy(), came_from, "it never came anew");
    session.end();
    home.run("zfs rollback tank/mysql/log@one");
    daemon.end();
}

/// The suite has the first MiB copied to the end by the server; another client finds it there, and holes beside it.
fn copied() {
    let home = Home::with_pool();
    let port = free_port();
    shell(&home, SETUP);
    let daemon = start(&home, port);
    let log = format!("iscsi://127.0.0.1:{port}/{TARGET}/1");
    for test in ["SCSI.ExtendedCopy.Simple", "SCSI.ReceiveCopyResults.CopyStatus"] {
        let said = client("iscsi-test-cu", &["-d", "-v", "-t", test, &log]);
        assert!(said.contains("passed") && !said.contains("FAILED") && !said.contains("SKIPPED"), "{said}");
    }
    let read = ["-c", "read -P 0x41 0 1M", "-c", "read -P 0x41 31M 1M", "-c", "read -P 0 30M 1M"];
    let said = client("qemu-io", &[&["-f", "raw"], &read[..], &[&log]].concat());
    assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    daemon.end();
}

/// A client that is told what to do while it goes on.
struct Session {
    child: std::process::Child,
    said: std::process::ChildStdout,
}

impl Session {
    fn open(url: &str) -> Session {
        let mut command = Command::new("timeout");
        command.arg("120").arg(find("qemu-io").unwrap()).args(["-f", "raw", url]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = child.stdout.take().unwrap();
        let mut session = Session { child, said };
        session.until_prompt("open");
        session
    }

    /// It reads one line at a time, and what comes with it would lie unread: so the prompt is waited for.
    fn until_prompt(&mut self, line: &str) -> String {
        use std::io::Read;
        let mut said = Vec::new();
        while !said.ends_with(b"qemu-io> ") {
            let mut byte = [0];
            assert!(self.said.read(&mut byte).unwrap() > 0, "{line}: {}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        String::from_utf8(said).unwrap()
    }

    fn run(&mut self, line: &str) {
        use std::io::Write;
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let said = self.until_prompt(line);
        let is_bad = ["verification failed", "error", "failed"].iter().any(|bad| said.contains(bad));
        assert!(!is_bad, "{line}: {said}");
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// While a client writes and reads back its LUN is copied into other blocks: it sees its data, and the same LUN. What
/// cannot be is refused; without a daemon the command does it all.
fn other_blocks() {
    let home = Home::with_pool();
    let port = free_port();
    let daemon = start(&home, port);
    shell(&home, SETUP);
    let log = format!("iscsi://127.0.0.1:{port}/{TARGET}/1");
    let blocks = || home.run("zfs get -Hp -o value volblocksize tank/mysql/log").trim().to_string();
    let identity = || home.run("zfs get -H -o value cenote:lunguid,cenote:lunumber tank/mysql/log");
    let limits = || client("iscsi-inq", &["-e", "1", "-c", "176", &log]);
    let (before, limits_before) = (identity(), limits());
    // Every block is written, read back, and written again with something else, until it is told to stop.
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(std::sync::atomic::Ordering::SeqCst) || rounds < 2 {
                let mut commands: Vec<String> = Vec::new();
                for step in 0..32u32 {
                    let (pattern, at) = ((rounds * 32 + step) % 251 + 1, step * 1024);
                    commands.push(format!("write -P {pattern} {at}k 300k"));
                    commands.push(format!("read -P {pattern} {at}k 300k"));
                }
                let words: Vec<&str> = commands.iter().flat_map(|c| ["-c", c.as_str()]).collect();
                let said = client("qemu-io", &[&["-f", "raw"], &words[..], &[&log]].concat());
                assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
                rounds += 1;
            }
            rounds
        });
        home.run("zfs set volblocksize=16K tank/mysql/log");
        let begun = std::time::Instant::now();
        while blocks() != "16384" {
            assert!(begun.elapsed().as_secs() < 300, "{}", home.run("zfs list"));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        writer.join().unwrap()
    });
    assert_eq!(identity(), before, "it is the same LUN");
    assert_ne!(limits(), limits_before, "its limits are others");
    assert!(!home.run("zfs list -H -o name -t all").contains(".copy-"), "nothing is left");

    home.run("zfs set volblocksize=16K tank/mysql/log");
    let refused = home.fails("zfs set volblocksize=3K tank/mysql/log", 1);
    assert!(refused.contains("power of 2") || refused.contains("power of two"), "{refused}");
    let refused = home.fails("zfs set volblocksize=64K tank/mysql", 1);
    assert!(refused.contains("volblocksize"), "{refused}");
    daemon.end();
    // Without a daemon the command goes on until it is done.
    home.run("zfs set volblocksize=64K tank/mysql/log");
    assert_eq!(blocks(), "65536");
    assert_eq!(identity(), before);
}

const TARGET: &str = "iqn.2001-04.com.example:t1";
const HOST: &str = "iqn.1993-08.org.debian:01:abc";

const SETUP: &str = "\
configuration san targets iscsi create
set iqn=iqn.2001-04.com.example:t1
commit
configuration san targets iscsi groups create
set name=tgt targets=iqn.2001-04.com.example:t1
commit
configuration san initiators iscsi create
set initiator=iqn.1993-08.org.debian:01:abc
commit
configuration san initiators iscsi groups create
set name=init initiators=iqn.1993-08.org.debian:01:abc
commit
shares project mysql
commit
shares select mysql lun data
set volsize=64M volblocksize=16K targetgroup=tgt initiatorgroup=init
commit
shares select mysql lun log
set volsize=32M volblocksize=128K
commit
";

fn start(home: &Home, port: u16) -> Daemon {
    home.start(&format!("serve --listen 127.0.0.1:0 --arc-max 64M --iscsi 127.0.0.1:{port}")).0
}

/// A port that was free a moment ago: one that the daemon keeps over its restart.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn shell(home: &Home, script: &str) {
    let output = feed(&mut home.cenote(&["shell"]), script);
    assert!(output.status.success(), "{script}: {}", said(&output));
}

/// A client, which is ended when it takes longer than a minute.
fn client(program: &str, args: &[&str]) -> String {
    run(Command::new("timeout").arg("60").arg(find(program).unwrap()).args(args).stdin(Stdio::null()))
}

/// A pool whose name comes first claims the identifier of one LUN and the number of another, and a half of the mirror is
/// split off: clients go on with what they had, also after a restart.
fn claimed() {
    let home = Home::new();
    let disks = ["a.img", "b.img", "c.img"].map(|name| home.disk(name));
    home.run(&format!("zpool create tank mirror {} {}", disks[0], disks[1]));
    let port = free_port();
    let daemon = start(&home, port);
    shell(&home, SETUP);
    let guid = home.run("zfs get -H -o value cenote:lunguid tank/mysql/log");
    home.run(&format!("zpool create aaa {}", disks[2]));
    for (name, guid, number) in [("v", guid.trim(), 7), ("w", "600144f0000000000000000000000001", 1)] {
        home.run(&format!("zfs create -s -V 64M aaa/{name}"));
        home.run(&format!("zfs set cenote:lunguid={guid} cenote:lunumber={number} aaa/{name}"));
    }
    home.run("zpool export aaa");
    let log = format!("iscsi://127.0.0.1:{port}/{TARGET}/1");
    let qemu = |command: &str| {
        let said = client("qemu-io", &["-f", "raw", "-c", command, "-c", "flush", &log]);
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    };
    qemu("write -P 0xaa 0 1M");
    let import = format!("zpool import -d {} aaa", home.scratch.path().display());
    let words: Vec<&str> = import.split_whitespace().collect();
    let warned = said(&home.cenote(&words).output().unwrap());
    assert!(warned.contains("the LUN 'aaa/v' is not served: its identifier is that of"), "{warned}");
    assert!(warned.contains("the LUN 'aaa/w' is not served: its number 1 is that of"), "{warned}");
    home.run(&format!("zpool split -R {} tank backup", home.scratch.path().join("alt").display()));
    qemu("read -P 0xaa 0 1M");
    qemu("write -P 0xbb 0 64k");
    let list = || client("iscsi-ls", &["-s", "-i", HOST, &format!("iscsi://127.0.0.1:{port}")]);
    assert_eq!(list().matches("Lun:").count(), 2, "{}", list());
    daemon.kill();
    let daemon = start(&home, port);
    qemu("read -P 0xbb 0 64k");
    qemu("read -P 0xaa 64k 960k");
    assert_eq!(list().matches("Lun:").count(), 2, "{}", list());
    assert!(home.run("status").contains("offline: its number 1 is that of the LUN 'tank/mysql/log'"));
    shell(&home, "shares set pool=aaa\nshares select default select w set lunumber=auto\n");
    assert_eq!(list().matches("Lun:").count(), 3, "{}", list());
    daemon.end();
}

fn served() {
    let home = Home::with_pool();
    let port = free_port();
    let daemon = start(&home, port);
    shell(&home, SETUP);
    let portal = format!("iscsi://127.0.0.1:{port}");
    let list = |initiator: &str| client("iscsi-ls", &["-s", "-i", initiator, &portal]);
    let mine = list(HOST);
    assert!(mine.contains(&format!("Target:{TARGET} Portal:127.0.0.1:{port},1")), "{mine}");
    assert!(mine.contains("Lun:0 ") && mine.contains("Lun:1 "), "{mine}");
    let other = list("iqn.1993-08.org.debian:01:other");
    assert!(!other.contains("Lun:0 ") && other.contains("Lun:1 "), "only what everybody has: {other}");

    let log = format!("{portal}/{TARGET}/1");
    let qemu = |commands: &[&str]| {
        let commands: Vec<&str> = commands.iter().flat_map(|c| ["-c", c]).collect();
        let said = client("qemu-io", &[&["-f", "raw"], &commands[..], &[&log]].concat());
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    };
    qemu(&["write -P 0x5a 0 1M", "write -P 0x6b 1536k 4k", "discard 256k 128k", "flush"]);
    // What was flushed is there after the worst; so is who sees what.
    daemon.kill();
    let daemon = start(&home, port);
    assert!(list(HOST).contains("Lun:0 "));
    qemu(&["read -P 0x5a 0 256k", "read -P 0 256k 128k", "read -P 0x5a 384k 640k", "read -P 0x6b 1536k 4k"]);

    home.run("zfs destroy tank/mysql/data");
    let left = list(HOST);
    assert!(!left.contains("Lun:0 ") && left.contains("Lun:1 "), "{left}");
    daemon.end();
}
