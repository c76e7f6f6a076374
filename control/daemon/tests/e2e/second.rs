//! One second, as all tell it: REST, the shell, `cenote top` and the page.

use crate::browser::{self, in_browser};
use crate::home::Home;
use crate::iscsi::QEMU;
use crate::sums::{next_second, open, samples};
use interop::harness::{Need, Trial, trial};
use interop::programs::{feed, find, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const BY: &str = "nbd.ops[op]";
const STATISTICS: [&str; 3] = [BY, "nbd.ops[op=read]", "nbd.ops[op=write]"];

pub fn trials() -> Vec<Trial> {
    let needs = [browser::NEEDS.to_vec(), vec![QEMU, Need::Program("curl")]].concat();
    vec![trial("rest_the_shell_top_and_the_page_show_the_same_numbers_of_the_same_second", &needs, same)]
}

/// Reads and writes, of one second.
type Numbers = (u64, u64);

fn of(sample: &Value) -> Numbers {
    let parts = sample["data"]["data"].as_array().cloned().unwrap_or_default();
    let part = |op: &str| parts.iter().find(|p| p["key"] == op).map_or(0, |p| p["value"].as_u64().unwrap());
    (part("read"), part("write"))
}

/// `time,key,value` of the shell, by their times.
fn of_csv(text: &str) -> BTreeMap<String, Numbers> {
    let mut all: BTreeMap<String, Numbers> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [time, key, value] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let own = all.entry(time.into()).or_default();
        match key {
            "read" => own.0 = value.parse().unwrap(),
            "write" => own.1 = value.parse().unwrap(),
            _ => {}
        }
    }
    all
}

/// Screens of `top`, by their times.
fn of_top(text: &str) -> BTreeMap<String, Numbers> {
    let mut all: BTreeMap<String, Numbers> = BTreeMap::new();
    let mut time = String::new();
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [at] if at.ends_with('Z') => {
                time = at.into();
                all.insert(time.clone(), (0, 0));
            }
            [count, op @ ("read" | "write")] => {
                let count = count.replace(',', "").parse().unwrap();
                let own = all.get_mut(&time).unwrap();
                *(if op == "read" { &mut own.0 } else { &mut own.1 }) = count;
            }
            _ => {}
        }
    }
    all
}

fn same() {
    let home = Home::new();
    let (daemon, text) = home.start(
        "up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 1G --volume 64M --log error",
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let page = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
    let uri = words.iter().find(|w| w.starts_with("nbd://")).expect(&text);
    STATISTICS.iter().for_each(|name| assert_eq!(open(&home, name), *name));
    let begin = next_second(&home, BY);

    let top = home.cenote(&["top", BY, "--count", "8"]).stdout(Stdio::piped()).spawn().unwrap();
    // Some seconds of work: what it is does not matter, only that it is told of in the same way.
    while next_second(&home, BY) < begin + 5 {
        let script: String =
            (0..40).map(|n| format!("write {0}k 4k\nread {0}k 4k\nread {0}k 4k\n", n * 4)).collect();
        let output = feed(Command::new(find("qemu-io").unwrap()).args(["-f", "raw", uri]), &script);
        assert!(output.status.success(), "{}", said(&output));
    }
    let top = of_top(&said(&top.wait_with_output().unwrap()));

    let all = samples(&home, BY, &begin.to_string(), 10);
    let busiest = all.iter().max_by_key(|sample| sample["data"]["value"].as_u64()).unwrap();
    let (second, numbers) = (busiest["sample"].as_u64().unwrap(), of(busiest));
    assert!(numbers.0 > 0 && numbers.1 > 0 && numbers.0 < 1000, "{all:?}");
    let by_date = |sample: &Value| (api::http::date(sample["sample"].as_u64().unwrap()), of(sample));
    let rest: BTreeMap<String, Numbers> = all.iter().map(by_date).collect();

    let shell = format!("analytics datasets select {BY} csv 300");
    let shell = of_csv(&said(&home.cenote(&["shell", "-c", &shell]).output().unwrap()));
    let mut compared = 0;
    for (time, numbers) in &rest {
        assert_eq!(shell.get(time), Some(numbers), "{time}: {shell:?}");
        if let Some(shown) = top.get(time) {
            assert_eq!(shown, numbers, "{time}: {top:?}");
            compared += usize::from(*numbers != (0, 0));
        }
    }
    assert!(compared > 0, "top was not there while something went on: {top:?} {rest:?}");

    let second = second.to_string();
    let more = [&[second.as_str()][..], &STATISTICS].concat();
    let shown = in_browser("second.mjs", &[words[page], words[page + 2]], &more);
    let shown: Vec<String> = serde_json::from_str(shown.trim()).unwrap();
    let whole = busiest["data"]["value"].as_u64().unwrap();
    assert_eq!(shown, [whole, numbers.0, numbers.1].map(|number| format!("{number}/s")));
    daemon.end();
}
