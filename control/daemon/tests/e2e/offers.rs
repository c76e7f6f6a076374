//! What NBD clients find, and where: masked LUNs are not for them.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, said};

pub fn trials() -> Vec<Trial> {
    let nbdinfo = || Need::Program("nbdinfo");
    vec![
        trial("masked_luns_are_not_offered_over_nbd_unless_somebody_says_so", &[nbdinfo()], masked),
        trial("unasked_a_daemon_is_on_tcp_with_the_first_volume_of_up_alone", &[nbdinfo()], unasked),
        trial(
            "an_export_that_is_not_there_is_said_and_one_that_cannot_be_is_refused",
            &[nbdinfo()],
            misnamed,
        ),
        trial("status_shows_every_address_and_luns_by_target_and_number", &[], shown),
        trial("an_address_that_cannot_be_had_is_told_in_one_line_with_what_helps", &[], refused),
        trial("an_address_that_is_taken_is_told_at_the_start_and_by_status", &[], taken),
    ]
}

const TARGET: &str = "iqn.2001-04.com.example:t";

const SETUP: &str = "configuration san targets iscsi create\nset iqn=iqn.2001-04.com.example:t\ncommit\n\
    configuration san initiators iscsi groups create\n\
    set name=secret initiators=iqn.2001-04.com.example:host\ncommit\n\
    shares project p\ncommit\n\
    shares select p lun masked\nset volsize=32M sparse=true initiatorgroup=secret\ncommit\n\
    shares select p lun open\nset volsize=32M sparse=true\ncommit\n";

fn prepared() -> Home {
    let home = Home::with_pool();
    let script = home.scratch.join("script");
    std::fs::write(&script, SETUP).unwrap();
    home.run(&format!("shell {}", script.display()));
    home.run("zfs create -s -V 32M tank/plain");
    home.run("zfs snapshot tank/p/masked@s");
    home.run("zfs clone tank/p/masked@s tank/clone");
    home
}

/// Whether a client gets an export.
fn gets(uri: &str) -> bool {
    command("nbdinfo").args(["--size", uri]).output().unwrap().status.success()
}

fn at_socket(home: &Home, export: &str) -> bool {
    gets(&format!("nbd+unix:///{export}?socket={}", home.dir().join("nbd.sock").display()))
}

/// The address of the daemon's NBD over TCP.
fn tcp(home: &Home) -> Option<String> {
    let status = home.run("status");
    let line = status.lines().find(|line| line.trim_start().starts_with("nbd ")).unwrap();
    line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).map(String::from)
}

fn masked() {
    let home = prepared();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let tcp = tcp(&home).unwrap();
    let at_tcp = |export: &str| gets(&format!("nbd://{tcp}/{export}"));
    let both = |export: &str| [at_tcp(export), at_socket(&home, export)];
    for export in ["tank/p/open", "tank/plain"] {
        assert_eq!(both(export), [true, true], "{export}");
    }
    for export in ["tank/p/masked", "tank/p/masked@s", "tank/clone"] {
        assert_eq!(both(export), [false, false], "{export}");
    }
    let list = said(&command("nbdinfo").args(["--list", &format!("nbd://{tcp}/")]).output().unwrap());
    assert!(
        list.contains("tank/plain") && !list.contains("masked") && !list.contains("tank/clone"),
        "{list}"
    );
    assert!(home.fails("nbd tank/p/masked", 1).contains("'cenote zfs set cenote:nbd=on tank/p/masked'"));
    home.run("zfs set cenote:nbd=on tank/p/masked");
    assert_eq!(both("tank/p/masked"), [true, true]);
    home.run("zfs set cenote:nbd=off tank/plain");
    assert_eq!(both("tank/plain"), [false, false]);
    daemon.end();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M --export tank/clone");
    let tcp = self::tcp(&home).unwrap();
    assert!(gets(&format!("nbd://{tcp}/tank/clone")), "it was named");
    assert!(!gets(&format!("nbd://{tcp}/tank/p/open")), "it was not");
    daemon.end();
}

/// It was accepted without a word, and no volume was offered at all.
fn misnamed() {
    let home = prepared();
    let refused = home.fails("serve --export tank//x --arc-max 64M", 1);
    assert!(refused.contains("cannot export 'tank//x'"), "{refused}");
    let (daemon, _) =
        home.start("serve --export nope/x --export tank/later --export tank/plain --arc-max 64M");
    let missing =
        |name: &str| home.run("status").contains(&format!("  export  {name}  there is no such volume"));
    assert!(missing("nope/x") && missing("tank/later") && !missing("tank/plain"), "{}", home.run("status"));
    assert!(home.run("status --json").contains("\"missing_exports\""));
    home.run("zfs create -s -V 32M tank/later");
    assert!(missing("nope/x") && !missing("tank/later") && at_socket(&home, "tank/later"));
    daemon.end();
}

fn unasked() {
    let home = prepared();
    let (daemon, text) = home.start("serve --arc-max 64M");
    assert!(text.contains("NBD on unix:") && tcp(&home).is_none(), "{text}");
    assert!(at_socket(&home, "tank/plain"));
    daemon.end();
    home.run("zfs create -s -V 32M tank/vol1");
    let (daemon, _) = home.start("up --arc-max 64M");
    let tcp = tcp(&home).unwrap();
    assert!(gets(&format!("nbd://{tcp}/tank/vol1")));
    assert!(!gets(&format!("nbd://{tcp}/tank/plain")) && at_socket(&home, "tank/plain"));
    daemon.end();
}

/// With its port taken the service was somewhere else, and no message said so.
fn taken() {
    let home = Home::with_pool();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let set = format!("configuration services select iscsi; set listen={address}; commit");
    assert!(home.cenote(&["shell", "-c", &set]).status().unwrap().success());
    let log = home.scratch.join("log");
    let line = "serve --https 127.0.0.1:0 --arc-max 64M";
    let (daemon, text) = home.start_logging(line, std::fs::File::create(&log).unwrap());
    let told = std::fs::read_to_string(&log).unwrap();
    let warning = "WARNING: the service iscsi is not where it was set to be: ";
    assert!(told.lines().any(|l| l.contains(warning) && l.contains(&address.to_string())), "{told}");
    assert!(text.contains("iSCSI nowhere"), "{text}");
    let status = home.run("status");
    assert!(
        status.lines().any(|l| l.trim_start().starts_with("iscsi ") && l.contains("nowhere")),
        "{status}"
    );
    daemon.end();
}

/// What a command says that must fail. Daemons of other tests may have the usual ports.
fn refusal(home: &Home, line: &str) -> String {
    let said = home.fails(line, 1);
    let others = said.lines().filter(|line| !line.contains("is taken by another program"));
    others.collect::<Vec<_>>().join("\n")
}

/// Each option that says an address: another program has it, or the machine does not.
fn refused() {
    let home = Home::with_pool();
    home.run("zfs create -s -V 32M tank/vol");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let (foreign, socket) = ("192.0.2.1:8000", home.scratch.join("taken.sock"));
    let _held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let serve = "serve --https 127.0.0.1:0 --arc-max 64M";
    for (line, option, clients) in [
        (serve, "--http", "the web page"),
        ("serve --arc-max 64M", "--https", "the API"),
        (serve, "--iscsi", "iSCSI clients"),
        (serve, "--listen", "NBD clients"),
        ("nbd tank/vol --arc-max 64M", "--listen", "NBD clients"),
    ] {
        let said = refusal(&home, &format!("{line} {option} {port}"));
        let reason = "the port is taken ('ss -ltnp' shows by what)";
        assert_eq!(
            said,
            format!("cannot listen for {clients} on {port}: {reason}; choose another with {option}")
        );
        // Plain HTTP is for this machine alone, whatever addresses it has.
        if option != "--http" {
            let said = refusal(&home, &format!("{line} {option} {foreign}"));
            let reason = "this machine has no such address ('ip address' shows those it has)";
            assert_eq!(
                said,
                format!("cannot listen for {clients} on {foreign}: {reason}; choose another with {option}")
            );
        }
    }
    for line in [serve, "nbd tank/vol --arc-max 64M"] {
        let at = socket.display();
        let said = refusal(&home, &format!("{line} --socket {at}"));
        let reason = "another program listens there";
        assert_eq!(
            said,
            format!("cannot listen for NBD clients on {at}: {reason}; choose another with --socket")
        );
    }
}

fn shown() {
    let home = prepared();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = home.fails(&format!("serve --iscsi 127.0.0.1:{port} --arc-max 64M"), 1);
    assert!(said.contains(&port.to_string()), "what was asked for must be had: {said}");
    let (daemon, text) = home.start("serve --iscsi 127.0.0.1:0 --https 127.0.0.1:0 --arc-max 64M");
    let status = home.run("status");
    says_all(&text, &status);
    assert!(status.contains(&format!("LUN 0 of {TARGET}, for the initiators of secret")), "{status}");
    assert!(status.contains(&format!("of {TARGET}, for all initiators")), "{status}");
    daemon.end();
    let (daemon, text) = home.start("up --iscsi 127.0.0.1:0 --https 127.0.0.1:0 --arc-max 64M");
    let status = home.run("status");
    says_all(&text, &status);
    for line in status.lines().filter(|line| line.contains("LUN ")) {
        assert!(text.contains(line), "{line} in {text}");
    }
    daemon.end();
}

/// What was said at the start has each address that `status` shows.
fn says_all(text: &str, status: &str) {
    for name in ["iscsi", "nbd", "api"] {
        let line = status.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap();
        let addresses: Vec<&str> = line.split_whitespace().skip(1).filter(|word| *word != "and").collect();
        assert!(!addresses.is_empty(), "{status}");
        for address in addresses {
            assert!(text.contains(address), "{address} of {status} in {text}");
        }
    }
}
