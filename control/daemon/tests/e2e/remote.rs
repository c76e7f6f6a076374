//! The shell over HTTPS: what it says is what the shell beside the daemon says, as far as its user may see and do it.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{feed, said};
use std::path::Path;
use std::process::Output;

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "a_shell_over_https_says_and_does_what_the_one_beside_the_daemon_does",
        &[Need::Program("curl")],
        remote,
    )]
}

const SETUP: &str = "\
shares schema create owner
set type=EmailAddress
commit
configuration san targets iscsi create
set iqn=iqn.2001-04.com.example:t1 alias=first interfaces=lo
commit
configuration san targets iscsi groups create
set name=tgt targets=iqn.2001-04.com.example:t1
commit
configuration san initiators iscsi create
set initiator=iqn.1993-08.org.debian:01:abc chapuser=abc chapsecret=correct-horse
commit
configuration san initiators iscsi groups create
set name=init initiators=iqn.1993-08.org.debian:01:abc
commit
configuration san inquiry set vendor=ACME
shares project mysql
set logbias=latency compression=lz4 custom:owner=ann@example.com
commit
shares select mysql lun data
set volsize=64M volblocksize=16K targetgroup=tgt initiatorgroup=init sparse=true
commit
shares select mysql filesystem files
set quota=16M atime=off
commit
shares select mysql snapshots snapshot first
shares select mysql select data snapshots select first clone copy
shares select mysql snapshots automatic create
set frequency=week day=Saturday hour=3 minute=5 keep=4
commit
shares select mysql rename files logs
configuration services nbd disable
";

const LOOKS: &[&str] = &[
    "show",
    "shares show",
    "shares select mysql show",
    "shares select mysql select data show",
    "shares select mysql select logs show",
    "shares select mysql select copy get origin",
    "shares select mysql snapshots select first show",
    "shares select mysql select data snapshots show",
    "shares select mysql select data snapshots select first list dependents",
    "shares select mysql snapshots automatic show",
    "shares select mysql snapshots automatic select automatic-000 show",
    "shares schema show",
    "configuration san targets iscsi show",
    "configuration san targets iscsi select first show",
    "configuration san targets iscsi groups show",
    "configuration san initiators iscsi select initiator-000 show",
    "configuration san initiators iscsi groups show",
    "configuration san inquiry show",
    "configuration services iscsi show",
    "configuration services nbd show",
    "maintenance system updates list",
    "shares select gone show",
    "shares select mysql select gone show",
    "shares project mysql; commit",
    "shares select mysql lun big; set volsize=64E; commit",
    "configuration san targets iscsi create set interfaces=no-such-0; commit",
    "configuration services ftp",
];

fn shell(home: &Home, words: &[&str], script: &str) -> Output {
    feed(&mut home.cenote(&[&["shell"], words].concat()), script)
}

fn remote() {
    let home = Home::with_pool();
    let daemon = home.start("serve --listen 127.0.0.1:0 --https 127.0.0.1:0 --log error").0;
    let url = crate::api::url(&home);
    let kept = |name: &str, text: &str| {
        let path = home.scratch.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let root = kept("root", home.run("password --generate").trim());
    let over = |user: &str, file: &str, script: &str| {
        shell(&home, &["--url", &url, "--user", user, "--password-file", file], script)
    };
    let done = over("root", &root, SETUP);
    assert!(done.status.success(), "{}", said(&done));
    for look in LOOKS {
        let (near, far) = (shell(&home, &[], look), over("root", &root, look));
        assert_eq!(said(&far), said(&near), "{look}");
        assert_eq!(far.status.code(), near.status.code(), "{look}");
    }
    assert!(
        !said(&over("root", &root, "configuration san initiators iscsi select initiator-000 show"))
            .contains("correct")
    );

    // Somebody who may look and no more.
    let new = r#"{"logname":"ann","fullname":"Ann","initial_password":"correct horse battery"}"#;
    crate::api::post_through_the_socket(&home, "/api/user/v1/users", new);
    let ann = kept("ann", "correct horse battery\n");
    assert!(over("ann", &ann, "shares select mysql select data show").status.success());
    for change in [
        "shares project x; commit",
        "shares select mysql set quota=1M",
        "configuration services iscsi disable",
    ] {
        let refused = over("ann", &ann, change);
        assert!(
            !refused.status.success() && said(&refused).contains("not authorized"),
            "{change}: {}",
            said(&refused)
        );
    }
    let wrong = over("ann", &root, "shares show");
    assert!(!wrong.status.success() && said(&wrong).contains("log in first"), "{}", said(&wrong));
    // Nobody is trusted who was not said to be.
    let other = kept("other.pem", "");
    let words = ["--url", &url, "--user", "root", "--password-file", &root, "--cacert", &other];
    assert!(said(&shell(&home, &words, "show")).contains("it holds no certificate"));
    let file = home.scratch.join("b").display().to_string();
    let denied = over("ann", &ann, &format!("maintenance system backup {file}"));
    assert!(!denied.status.success() && said(&denied).contains("not authorized"), "{}", said(&denied));
    assert!(!Path::new(&file).exists());
    let targets = || said(&over("root", &root, "configuration san targets iscsi show"));
    let before = targets();
    for line in [
        format!("maintenance system backup {file}"),
        "configuration san targets iscsi select first destroy".into(),
        format!("confirm maintenance system restore {file}"),
    ] {
        let line = if line.ends_with("destroy") { format!("confirm {line}") } else { line };
        let done = over("root", &root, &line);
        assert!(done.status.success(), "{line}: {}", said(&done));
        assert_eq!(targets() == before, !line.ends_with("destroy"), "{line}");
    }
    let gone = over("root", &root, "confirm shares select mysql destroy copy");
    assert!(gone.status.success(), "{}", said(&gone));
    daemon.end();
}
