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

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "initiators_see_the_luns_of_their_groups_and_keep_what_they_wrote",
        &[Need::Program("iscsi-ls"), Need::Program("timeout"), QEMU],
        served,
    )]
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
    // A port that was free a moment ago: one that the daemon keeps over its restart.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
