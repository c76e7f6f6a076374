//! The units of `packaging/`: systemd takes them, and the daemon tells it what they promise.

use crate::home::{CENOTE, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, said};
use interop::root;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("the_units_are_what_systemd_takes", &[Need::Program("systemd-analyze")], verify),
        trial("the_service_manager_is_told_when_it_is_ready_and_when_it_ends", &[], notify),
    ]
}

fn verify() {
    let home = Home::new();
    for unit in ["cenote.service", "cenote.socket"] {
        let text = std::fs::read_to_string(root().join("packaging").join(unit)).unwrap();
        // Where it is installed there is nothing here.
        std::fs::write(home.scratch.join(unit), text.replace("/usr/local/bin/cenote", CENOTE)).unwrap();
    }
    let mut analyze = command("systemd-analyze");
    let output = analyze.arg("verify").arg(home.scratch.join("cenote.service")).output().unwrap();
    let text = said(&output);
    assert!(output.status.success() && !text.contains("cenote."), "{text}");
}

fn notify() {
    let home = Home::with_pool();
    let path = home.scratch.join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut child = home
        .cenote(&["serve", "--listen", "127.0.0.1:0", "--https", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let mut buf = [0; 64];
        let n = manager.recv(&mut buf).unwrap();
        String::from_utf8_lossy(&buf[..n]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    assert!(home.run("status").contains("tank"), "it is ready indeed");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(told(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
    assert!(!home.dir().join("rest.sock").exists(), "it takes its socket away");
}
