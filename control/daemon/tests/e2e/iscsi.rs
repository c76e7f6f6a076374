//! LUNs that the daemon serves over iSCSI, as the clients that people have see them.

use crate::home::{Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{find, run, said};
use std::path::Path;
use std::process::{Command, Stdio};

const QEMU: Need = Need::Other("QEMU with iSCSI (qemu-utils, qemu-block-extra)", || {
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
            "conformance_tests_end_on_volumes_as_they_do_on_memory",
            &[Need::Program("iscsi-test-cu"), Need::Program("timeout"), ASKED],
            conformance,
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
            assert!(begun.elapsed().as_secs() < 60, "{}", home.run("zfs list"));
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
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn shell(home: &Home, script: &str) {
    use std::io::Write;
    let mut command = home.cenote(&["shell"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}: {}", said(&output));
}

/// A client, which is ended when it takes longer than a minute.
fn client(program: &str, args: &[&str]) -> String {
    run(Command::new("timeout").arg("60").arg(find(program).unwrap()).args(args).stdin(Stdio::null()))
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
