//! Figures that are sent by OTLP: switched on in the shell, taken by a collector of the test's, and off again.

use crate::api::through_the_socket;
use crate::home::Home;
use crate::receiver::receiver;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, feed, said};
use serde_json::Value;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(180);

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "figures_are_sent_to_a_collector_and_begin_anew_with_the_daemon",
        &[Need::Program("curl")],
        sent,
    )]
}

fn metric<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    all.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}: {document}"))
}

fn start(document: &Value) -> u64 {
    let point = &metric(document, "cenote.http.answers")["sum"]["dataPoints"][0];
    point["startTimeUnixNano"].as_str().unwrap().parse().unwrap()
}

fn sent() {
    let home = Home::with_pool();
    let serve = "serve --listen 127.0.0.1:0 --no-https --log error";
    let (daemon, _) = home.start(serve);
    let (at, asked) =
        receiver("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
    let shell = |script: &str| {
        let output = feed(&mut home.cenote(&["shell"]), script);
        assert!(output.status.success(), "{script}: {}", said(&output));
        said(&output)
    };
    assert_eq!(through_the_socket(&home, "/api/analytics/v1/export")["export"]["enabled"], false);
    shell(&format!(
        "analytics export\nset endpoint={at} headers=api-key=opensesame interval=1\n\
         set attributes=deployment.environment=test enabled=true\ncommit\n"
    ));
    let (head, first) = asked.recv_timeout(PATIENCE).unwrap();
    assert!(
        head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains("\r\napi-key: opensesame\r\n"),
        "{head}"
    );
    let resource = first["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap();
    let attribute = |key: &str| {
        let found =
            resource.iter().find(|a| a["key"] == key).unwrap_or_else(|| panic!("{key}: {resource:?}"));
        found["value"]["stringValue"].as_str().unwrap().to_string()
    };
    assert_eq!(
        (attribute("service.name").as_str(), attribute("deployment.environment").as_str()),
        ("cenote", "test")
    );
    assert!(!attribute("host.name").is_empty() && !attribute("service.version").is_empty());
    // It says what the pool says.
    let size = &metric(&first, "cenote.pool.size")["gauge"]["dataPoints"][0];
    let bytes = home.run("zpool list -H -p -o size tank");
    assert_eq!(
        (size["asInt"].as_str().unwrap(), &size["attributes"][0]["value"]["stringValue"]),
        (bytes.trim(), &"tank".into())
    );
    assert!(metric(&first, "cenote.front.latency")["histogram"]["dataPoints"].as_array().unwrap().len() >= 3);
    let (_, second) = asked.recv_timeout(PATIENCE).unwrap();
    assert_eq!(start(&first), start(&second), "what grows is counted since the daemon began");

    shell("analytics export test\n");
    let told = through_the_socket(&home, "/api/analytics/v1/export");
    let shown = shell("analytics export show\n");
    assert!(told["export"]["sent"].as_u64().unwrap() > 0, "{told}");
    assert!(shown.contains("********") && !format!("{shown}{told}").contains("opensesame"), "{shown} {told}");
    daemon.end();

    // Another daemon: it is still on, and counts from its own start.
    let (daemon, _) = home.start(serve);
    let begun = start(&second);
    let later = loop {
        let (_, document) = asked.recv_timeout(PATIENCE).unwrap();
        if start(&document) != begun {
            break document;
        }
    };
    assert!(start(&later) > begun);
    shell("analytics export set enabled=false\n");
    let refused = said(&home.cenote(&["shell", "-c", "analytics export test"]).output().unwrap());
    assert!(refused.contains("sent nowhere"), "{refused}");
    let mut curl = command("curl");
    curl.args([
        "-s",
        "-S",
        "-m",
        "60",
        "-X",
        "PUT",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "--unix-socket",
    ]);
    curl.arg(home.dir().join("rest.sock")).arg("http://localhost/api/analytics/v1/export/test");
    assert_eq!(said(&curl.output().unwrap()), "400", "what is wrong is the request");
    let wrong =
        home.cenote(&["shell", "-c", "analytics export set endpoint=collector:4318"]).output().unwrap();
    assert!(
        !wrong.status.success() && said(&wrong).contains("no address of a collector"),
        "{}",
        said(&wrong)
    );
    daemon.end();
}
