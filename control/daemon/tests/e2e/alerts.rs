//! Alerts, from what happens to a pool or at a door to what a webhook and syslog are sent.

use crate::api::{post_through_the_socket, through_the_socket};
use crate::home::Home;
use crate::receiver::receiver;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, feed, said};
use serde_json::Value;
use std::net::UdpSocket;
use std::sync::mpsc;
use std::time::Duration;

/// Pools are looked at every few seconds.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "a_webhook_and_syslog_are_told_of_a_pool_that_gets_ill_and_well_and_of_failed_logins",
        &[Need::Program("curl")],
        told,
    )]
}

/// The next alert of this class; others in between may be.
fn next(asked: &mpsc::Receiver<(String, Value)>, class: &str) -> (String, Value) {
    let mut seen = Vec::new();
    loop {
        let Ok(one) = asked.recv_timeout(PATIENCE) else { panic!("no alert of {class} came: {seen:?}") };
        if one.1["class"] == class {
            return one;
        }
        seen.push(one.1["summary"].clone());
    }
}

fn told() {
    let home = Home::new();
    let [a, b] = ["a.img", "b.img"].map(|name| home.disk(name));
    home.run(&format!("zpool create tank mirror {a} {b}"));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --https 127.0.0.1:0 --log error");
    let (at, asked) = receiver("HTTP/1.1 204 No Content\r\n\r\n");
    let hook = format!("{at}/alerts");
    let syslog = UdpSocket::bind("127.0.0.1:0").unwrap();
    syslog.set_read_timeout(Some(PATIENCE)).unwrap();
    let script = format!(
        "configuration alerts create hook\nset handler=webhook to={hook} severity=info secret=opensesame\ncommit\n\
         configuration alerts create log\nset to={} severity=warning\ncommit\n\
         configuration alerts select hook test\nconfiguration alerts set failed_logins=2\n",
        syslog.local_addr().unwrap()
    );
    let output = feed(&mut home.cenote(&["shell"]), &script);
    assert!(output.status.success(), "{}", said(&output));

    let (head, test) = next(&asked, "sysevent.cenote.test");
    assert!(head.contains("\r\nAuthorization: Bearer opensesame\r\n"), "{head}");
    assert_eq!(test["summary"], "this is a test: alerts arrive here");

    home.run(&format!("zpool offline tank {b}"));
    let (_, ill) = next(&asked, "sysevent.cenote.pool_health");
    assert_eq!((&ill["severity"], &ill["fields"]["health"]), (&"warning".into(), &"DEGRADED".into()));
    home.run(&format!("zpool online tank {b}"));
    let (_, well) = next(&asked, "sysevent.cenote.pool_health");
    assert_eq!(well["summary"], "pool tank has its redundancy back: it was DEGRADED");
    home.run("zpool scrub tank");
    let (_, scrub) = next(&asked, "sysevent.fs.zfs.scrub_finish");
    assert_eq!(scrub["severity"], "info");
    post_through_the_socket(
        &home,
        "/api/alert/v1/receivers",
        r#"{"receiver":"off","handler":"syslog","enabled":false}"#,
    );

    // A door: two wrong passwords within a minute.
    let url = crate::api::url(&home);
    for _ in 0..2 {
        let mut curl = command("curl");
        curl.args(["-s", "-k", "-m", "60", "-o", "/dev/null", "-u", "root:wrong"]);
        assert!(curl.arg(format!("{url}/api/storage/v1/pools")).status().unwrap().success());
    }
    let (_, login) = next(&asked, "sysevent.cenote.login_failed");
    assert_eq!(login["summary"], "logins fail: the last as 'root' from 127.0.0.1 (rest)");

    let lines: Vec<String> = (0..3)
        .map(|_| {
            let mut buffer = [0; 2048];
            let len = syslog.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..len]).into_owned()
        })
        .collect();
    assert!(
        lines.iter().any(|l| l.starts_with("<28>1 ") && l.contains("pool tank is DEGRADED")),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|l| l.contains("scrub")), "it wants no news that are good: {lines:?}");

    // What is told of receivers has no secret, also in a list of the shell and after a restart.
    let all = through_the_socket(&home, "/api/alert/v1/receivers").to_string();
    let shown =
        said(&home.cenote(&["shell", "-c", "configuration alerts select hook get"]).output().unwrap());
    assert!(all.contains("\"secret\":\"********\"") && shown.contains("********"), "{all} {shown}");
    assert!(!all.contains("opensesame") && !shown.contains("opensesame"), "{all} {shown}");
    daemon.end();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --no-https --log error");
    let all = through_the_socket(&home, "/api/alert/v1/receivers");
    let names: Vec<&str> =
        all["receivers"].as_array().unwrap().iter().map(|r| r["receiver"].as_str().unwrap()).collect();
    assert_eq!(names, ["hook", "log", "off"]);
    let limits = through_the_socket(&home, "/api/alert/v1/thresholds");
    assert_eq!(limits["thresholds"]["failed_logins"], 2);
    daemon.end();
}
