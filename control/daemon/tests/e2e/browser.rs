//! The web page, as a browser shows it. What is looked for is in `control/web/tests/page.mjs`; `node` runs it with
//! `playwright-core`, which `cargo xtask check` takes from npm into the target directory.

use crate::files::FUSE;
use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::{programs, root};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

pub const NEEDS: [Need; 3] = [
    Need::Program("chromium"),
    Need::Program("node"),
    Need::Other("playwright-core from npm", || npm().join("node_modules/playwright-core").is_dir()),
];

/// Clients whose requests have the size that they are told.
const CLIENTS: [Need; 2] = [Need::Program("iscsi-perf"), Need::Program("qemu-io")];

pub fn trials() -> Vec<Trial> {
    let split = [NEEDS.to_vec(), CLIENTS.to_vec()].concat();
    vec![
        trial("the_page_is_used_and_photographed_in_a_browser", &NEEDS, || {
            let home = Home::new();
            let (daemon, text) =
                home.start("up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 2G --volume 64M --arc-max 64M");
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
            assert_eq!(words[at + 1], "code", "{text}");
            in_browser("page.mjs", &[words[at], words[at + 2]], &[]);
            daemon.end();
        }),
        trial("a_heat_map_has_its_rows_where_its_buckets_are", &NEEDS, || {
            let home = Home::new();
            let (daemon, text) = home.start(
                "up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 1G --volume 64M",
            );
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
            in_browser("heat.mjs", &[words[at], words[at + 2]], &[]);
            daemon.end();
        }),
        trial("the_page_shows_requests_that_are_split_and_then_whole", &split, || {
            let home = Home::new();
            let (daemon, text) = home
                .start("up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 4G --volume 64M --arc-max 64M");
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
            let portal = words.iter().position(|w| *w == "iscsi").expect(&text) + 1;
            in_browser("split.mjs", &[words[at], words[at + 2]], &[words[portal]]);
            daemon.end();
        }),
        trial("files_are_gone_into_as_a_hierarchy", &[&NEEDS[..], &[FUSE, ROOT]].concat(), hierarchy),
        trial("the_page_is_told_of_by_its_command_and_plain_http_stays_on_this_machine", &[], || {
            let home = Home::new();
            assert!(home.fails("page", 1).ends_with("'cenote up' or 'cenote serve' starts one"));
            let refused = home.fails("serve --http 0.0.0.0:0", 1);
            assert!(refused.contains("that is for 127.0.0.1 alone; use --https"), "{refused}");
            let (daemon, text) = home.start("serve --https 127.0.0.1:0 --iscsi 127.0.0.1:0");
            assert!(!text.contains("http://"), "a door without TLS was not asked for: {text}");
            let told = home.run("page");
            let words: Vec<&str> = told.split_whitespace().collect();
            assert!(words[0].starts_with("https://127.0.0.1:") && words[1] == "code", "{told}");
            assert_ne!(words[2], home.run("page").split_whitespace().nth(2).unwrap(), "each is another");
            daemon.end();
        }),
    ]
}

/// Two files of a directory are written, one three times as often as the other, and one beside it.
fn hierarchy() {
    let home = Home::new();
    let (daemon, text) = home.start(
        "up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 1G --volume 64M --log error",
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let page = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
    let pools = home.run("zpool list -H -o name");
    let (pool, at) = (pools.trim(), home.scratch.join("mnt"));
    home.run(&format!("zfs create -o mountpoint={} {pool}/db", at.display()));
    home.run(&format!("zfs mount {pool}/db"));
    std::fs::create_dir(at.join("base")).unwrap();
    let (is_over, late) = (AtomicBool::new(false), home.scratch.join("late"));
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let open = |name: &str| std::fs::File::create(at.join(name)).unwrap();
            let (data, redo, log) = (open("base/data"), open("base/redo"), open("log"));
            let mut others = None;
            while !is_over.load(Ordering::Relaxed) {
                for (file, times) in [(&data, 12), (&redo, 4), (&log, 2)] {
                    (0..times).for_each(|i| file.write_all_at(&[7; 4096], i * 4096).unwrap());
                }
                if late.exists() {
                    let file = others.get_or_insert_with(|| open("base/late"));
                    file.write_all_at(&[7; 4096], 0).unwrap();
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let db = format!("{pool}/db:/base");
        let way: Vec<&str> = db.split('/').collect();
        let signal = late.display().to_string();
        let more = [&[signal.as_str(), "fs.ops[op=write][file]"], &way[..]].concat();
        // The writer must end also when this fails.
        let seen =
            std::panic::catch_unwind(|| in_browser("hierarchy.mjs", &[words[page], words[page + 2]], &more));
        is_over.store(true, Ordering::Relaxed);
        seen.unwrap()
    });
    let seen: serde_json::Value = serde_json::from_str(seen.trim()).unwrap();
    let file = |name: &str| format!("{pool}/db:/{name}");
    // A write that was under way when the statistic was opened has no name: it is counted as "-".
    let named = |list: &serde_json::Value| -> Vec<String> {
        let all = list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string());
        all.filter(|name| name != "-").collect()
    };
    let levels: Vec<_> = seen["levels"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(
        serde_json::json!(levels),
        serde_json::json!([
            [format!("{pool} \u{25b8}")],
            ["db: \u{25b8}"],
            ["base \u{25b8}", "log"],
            ["data", "redo", "late"]
        ])
    );
    assert!(seen["tip"].as_str().unwrap().starts_with("data: "), "{seen}");
    assert_eq!(named(&seen["back"]), levels[0]);
    assert_eq!(named(&seen["flat"]), [file("base/data"), file("base/redo"), file("log"), file("base/late")]);
    assert_eq!(seen["wide"], false, "nothing is scrolled sideways on a phone");
    home.run("zfs unmount -a");
    daemon.end();
}

/// Where `cargo xtask check` puts packages.
fn npm() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |t| root().join(t));
    target.join("npm")
}

/// Runs a script of the page's tests; what it prints.
pub fn in_browser(script: &str, of_page: &[&str], more: &[&str]) -> String {
    let text = programs::run(&mut browser(script, of_page, more));
    println!("{text}");
    text
}

/// A script of the page's tests, as it is run.
pub fn browser(script: &str, of_page: &[&str], more: &[&str]) -> Command {
    let photographs = npm().with_file_name("photographs");
    let script = root().join("control/web/tests").join(script);
    let mut node = Command::new(programs::find("node").unwrap());
    node.arg(script).arg(npm()).args(of_page).arg(photographs).args(more);
    node.env("CHROMIUM", programs::find("chromium").unwrap());
    node
}
