//! The adviser from outside: the same advice by command, REST, shell and page, and one line where a setting is made.

use crate::api::through_the_socket;
use crate::browser::{NEEDS, browser};
use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, said};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_setting_that_costs_is_told_of_where_it_is_made_and_others_are_not", &[], told_where_made),
        trial(
            "what_a_setting_costs_is_told_in_the_answer_over_rest_and_at_a_commit_in_the_shell",
            &[Need::Program("curl")],
            told_elsewhere,
        ),
        trial(
            "advice_on_the_page_is_that_of_the_command_line_and_goes_when_it_is_followed",
            &NEEDS,
            on_the_page,
        ),
        trial("advice_is_the_same_by_command_by_rest_and_in_the_shell", &[Need::Program("curl")], alike),
    ]
}

/// What a command that succeeds says beside its output.
fn aside(home: &Home, line: &str) -> String {
    let output = home.output(line);
    assert!(output.status.success() && output.stdout.is_empty(), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn told_where_made() {
    let home = Home::new();
    let disks = ["a", "b", "c", "d", "e"].map(|name| home.disk(name));
    home.run(&format!("zpool create wide raidz {}", disks.join(" ")));
    home.run(&format!("zpool create twin mirror {} {}", home.disk("f"), home.disk("g")));
    for (line, words) in [
        ("zfs create -o sync=disabled twin/db", "advice: twin/db: sync=disabled: "),
        ("zfs set sync=always twin/db", "advice: twin/db: sync=always, and twin has no log device: "),
        ("zfs set compression=off twin/db", "advice: twin/db: compression=off: "),
        (
            "zfs set relatime=off recordsize=16K twin/db",
            "advice: twin/db: atime=on and relatime=off, with records of 16K: ",
        ),
        ("zfs create -o recordsize=8K wide/db", "advice: wide/db: a block of 8K takes "),
    ] {
        let told = aside(&home, line);
        assert!(told.starts_with(words) && told.lines().count() == 1, "{line}: {told}");
    }
    // What is about another setting is not said again, nor what is well on this pool.
    for line in [
        "zfs set compression=zstd twin/db",
        "zfs set quota=1G twin/db",
        "zfs set sync=standard atime=off recordsize=8K twin/db",
        "zfs set recordsize=1M wide/db",
        "zfs set logbias=throughput twin/db",
    ] {
        assert_eq!(aside(&home, line), "", "{line}");
    }
    home.run(&format!("zpool add -f twin log {}", home.disk("log")));
    let told = aside(&home, "zfs set logbias=throughput twin/db");
    assert!(told.starts_with("advice: twin/db: logbias=throughput, and twin has a log device: "), "{told}");
    assert!(
        home.run("zfs create -P -V 16M -o sync=disabled twin/v").starts_with("create\ttwin/v\n"),
        "for programs nothing is added"
    );
}

fn told_elsewhere() {
    let home = Home::new();
    home.run(&format!("zpool create twin mirror {} {}", home.disk("a"), home.disk("b")));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let projects = "/api/storage/v1/pools/twin/projects";
    let ask = |method: &str, path: &str, body: &str| -> serde_json::Value {
        let mut curl = command("curl");
        curl.args(["-s", "-S", "-m", "60", "-X", method, "-H", "Content-Type: application/json", "-d", body]);
        curl.arg("--unix-socket").arg(home.dir().join("rest.sock")).arg(format!("http://localhost{path}"));
        let output = curl.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{path}: {e}: {}", said(&output)))
    };
    let rules = |answer: &serde_json::Value| -> Vec<String> {
        let all = answer["advice"].as_array().into_iter().flatten();
        all.map(|advice| advice["rule"].as_str().unwrap().to_string()).collect()
    };
    let made = ask("POST", projects, r#"{"name": "p", "compression": "off"}"#);
    assert_eq!(
        (made["project"]["name"].as_str(), rules(&made)),
        (Some("p"), vec!["compression-off".into()]),
        "{made}"
    );
    let files = format!("{projects}/p/filesystems");
    let made = ask("POST", &files, r#"{"name": "db", "sync": "disabled"}"#);
    assert_eq!(rules(&made), ["sync-disabled"], "what is inherited was said before: {made}");
    let changed = ask("PUT", &format!("{files}/db"), r#"{"sync": "standard", "compression": "lz4"}"#);
    assert!(changed["filesystem"].is_object() && changed.get("advice").is_none(), "{changed}");
    let of_one = through_the_socket(&home, "/api/doctor/v1/datasets/twin%2Fp/advice");
    assert_eq!(rules(&of_one), ["compression-off"], "{of_one}");
    let shell = |line: &str| {
        let output = home.cenote(&["shell", "-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = shell("shares select p; select db; set sync=always; commit");
    assert!(told.contains("advice: twin/p/db: sync=always, and twin has no log device: "), "{told}");
    let told = shell("shares select p; select db; set sync=standard; commit");
    assert!(!told.contains("advice"), "{told}");
    daemon.end();
}

fn alike() {
    let home = Home::with_pool();
    home.run("zfs create tank/a");
    home.run("zfs set sync=disabled tank/a");
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let told: serde_json::Value = serde_json::from_str(&home.run("doctor -j")).unwrap();
    let rules: Vec<&str> =
        told.as_array().unwrap().iter().map(|advice| advice["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["no-redundancy", "sync-disabled"]);
    assert_eq!(told[1]["setting"]["value"], "standard");
    assert_eq!(through_the_socket(&home, "/api/doctor/v1/advice")["advice"], told);
    let facts = through_the_socket(&home, "/api/doctor/v1/facts");
    assert!(facts["facts"]["text"].as_str().unwrap().starts_with("cenote facts 1\n"), "{facts}");
    let shell = home.cenote(&["shell", "-c", "maintenance advice"]).output().unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), home.run("doctor"));
    home.run("zfs set sync=standard tank/a");
    assert!(!home.run("doctor").contains("sync-disabled"));
    daemon.end();
}

/// A script in a browser, for as long as it is needed.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One device of a pool by itself, beside a mirror; and a file system without compression.
fn on_the_page() {
    let home = Home::new();
    home.run(&format!("zpool create tank mirror {} {}", home.disk("a"), home.disk("b")));
    home.run(&format!("zpool add -f tank {}", home.disk("c")));
    home.run("zfs create -o compression=off tank/db");
    let (daemon, _) =
        home.start("serve --http 127.0.0.1:0 --no-https --listen 127.0.0.1:0 --arc-max 64M --log error");
    let page = home.run("page");
    let words: Vec<&str> = page.split_whitespace().collect();
    let told: Vec<doctor::Advice> = serde_json::from_str(&home.run("doctor -j")).unwrap();
    let mut node = browser("advice.mjs", &[words[0], words[2]], &["mixed-vdevs"]);
    let mut script = Script(node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(script.0.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value {
        let line = lines.next().expect("it says what it sees").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"))
    };
    let seen = next();
    let row = |term: &str, text: &str| [term.to_string(), text.to_string()];
    let card = |advice: &doctor::Advice| {
        let fixes = advice.fixes.iter().map(|fix| row(fix.system.word(), &fix.text));
        let rows = [row("Seen", &advice.seen), row("Costs", &advice.cost)].into_iter().chain(fixes);
        let rows: Vec<_> = rows.chain([row("Undo", &advice.undo)]).collect();
        serde_json::json!({ "rule": advice.rule, "about": advice.about, "rows": rows })
    };
    assert_eq!(seen["cards"], told.iter().map(card).collect::<serde_json::Value>());
    assert_eq!(seen["wide"], false, "nothing is scrolled sideways on a phone");
    // The command is that of the page.
    let cards = seen["cards"].as_array().unwrap();
    let mixed = cards.iter().find(|card| card["rule"] == "mixed-vdevs").expect("it is told of");
    let text = mixed["rows"][2][1].as_str().unwrap();
    let command = doctor::commands(text)[0];
    assert_eq!(command, format!("zpool attach tank {} NEW-DEVICE", home.scratch.join("c").display()));
    home.run(&command.replace("NEW-DEVICE", &home.disk("d")));
    writeln!(script.0.stdin.take().unwrap(), "it is carried out").unwrap();
    // What one device costs goes along with what two kinds of vdevs do.
    assert_eq!(next()["left"], 1);
    assert!(script.0.wait().unwrap().success());
    daemon.end();
}
