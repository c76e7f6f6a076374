//! The web page, as a browser shows it. What is looked for is in `control/web/tests/page.mjs`; `node` runs it with
//! `playwright-core`, which `cargo xtask check` takes from npm into the target directory.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::{programs, root};
use std::path::PathBuf;
use std::process::Command;

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

/// Where `cargo xtask check` puts packages.
fn npm() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |t| root().join(t));
    target.join("npm")
}

/// Runs a script of the page's tests; what it prints.
pub fn in_browser(script: &str, of_page: &[&str], more: &[&str]) -> String {
    let photographs = npm().with_file_name("photographs");
    let script = root().join("control/web/tests").join(script);
    let mut node = Command::new(programs::find("node").unwrap());
    node.arg(script).arg(npm()).args(of_page).arg(photographs).args(more);
    node.env("CHROMIUM", programs::find("chromium").unwrap());
    let text = programs::run(&mut node);
    println!("{text}");
    text
}
