//! Hosts and pools that are set wrong, each found with its fix; healthy ones, of which nothing is said; and facts
//! from strangers.

#![allow(clippy::unwrap_used)]

mod cases;

use cases::HEALTHY;
use doctor::{Advice, Facts, HOST_SCRIPT, RULES, examine, render};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn told(advice: &[Advice]) -> BTreeSet<&str> {
    advice.iter().map(|advice| advice.rule.as_str()).collect()
}

#[test]
fn what_is_set_wrong_is_found_with_the_right_fix_and_nothing_else() {
    let cases = cases::wrong();
    assert!(cases.len() >= 50, "{}", cases.len());
    for case in &cases {
        let advice = examine(&case.facts);
        let text = render(&advice);
        let expected: BTreeSet<&str> = case.expected.iter().map(|(rule, _)| rule.as_str()).collect();
        assert!(!expected.is_empty() && told(&advice) == expected, "{}: {expected:?} in\n{text}", case.name);
        for (rule, words) in &case.expected {
            let is_said = |fix: &doctor::Fix| fix.text.contains(words.as_str());
            let found = advice
                .iter()
                .filter(|advice| advice.rule == *rule)
                .any(|advice| advice.fixes.iter().any(is_said));
            assert!(found, "{}: no '{words}' in\n{text}", case.name);
        }
        assert!(
            advice.iter().all(|a| !a.undo.is_empty() && !a.cost.is_empty() && !a.seen.is_empty()),
            "{text}"
        );
        // What is told of must hold after a trip through the file.
        assert_eq!(Facts::parse(case.facts.render().as_bytes()).unwrap(), case.facts);
    }
    let tried: BTreeSet<&str> =
        cases.iter().flat_map(|c| &c.expected).map(|(rule, _)| rule.as_str()).collect();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(tried, all, "each rule has a case");
}

#[test]
fn nothing_is_said_of_healthy_ones() {
    let cases = cases::right();
    assert!(cases.len() >= 20, "{}", cases.len());
    for case in &cases {
        let text = render(&examine(&case.facts));
        assert_eq!(text, "nothing to change\n", "{}", case.name);
    }
}

/// The lab's figures are those of the document, and of rules that there are.
#[test]
fn what_the_lab_predicts_is_what_its_document_says() {
    let document = include_str!("../../../docs/lab.md");
    for prediction in doctor::lab::PREDICTIONS {
        let section =
            document.split("\n### ").find(|part| part.lines().next() == Some(prediction.experiment));
        let section = section.unwrap_or_else(|| panic!("no section {}", prediction.experiment));
        let row = section.lines().find(|line| line.starts_with(&format!("| {} |", prediction.row)));
        let row = row.unwrap_or_else(|| panic!("no row {prediction:?}"));
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!((columns[3], columns[6]), (prediction.figures, prediction.ratio), "{row}");
        assert_eq!(columns[8] == "yes", prediction.counts, "{row}");
        for rule in prediction.rules {
            assert!(RULES.iter().any(|known| known.name == *rule), "{rule}");
            assert!(doctor::lab::prediction(rule).unwrap().starts_with("cenote lab run "));
        }
    }
    let cut = cases::wrong().into_iter().find(|case| case.expected[0].0 == "transfer-size").unwrap();
    assert!(render(&examine(&cut.facts)).contains("\n    lab       cenote lab run split: "));
}

/// The document says of each rule what it was tried on, and trials that it speaks of are there.
#[test]
fn each_rule_is_told_of_with_what_it_was_tried_on() {
    let document = include_str!("../../../docs/doctor.md");
    let trials = [
        (
            "real pools",
            concat!(
                include_str!("../../daemon/tests/e2e/advised.rs"),
                include_str!("../../daemon/tests/e2e/advised/pools.rs"),
                include_str!("../../daemon/tests/e2e/advised/spent.rs"),
            ),
        ),
        ("simulated disks", include_str!("../../appliance/src/doctor/tests.rs")),
        ("facts", ""),
    ];
    let mut told: Vec<&str> = Vec::new();
    for (tried_on, source) in trials {
        let row = document.lines().find_map(|line| line.strip_prefix(&format!("| {tried_on} | ")));
        let row = row.unwrap_or_else(|| panic!("no row {tried_on}"));
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let is_tried = |name: &&&str| source.is_empty() || source.contains(&format!("\"{name}\""));
        assert_eq!(names.iter().find(|name| !is_tried(name)), None, "no trial of it on {tried_on}");
        told.extend(names);
    }
    let (mut all, mut told_of) = (RULES.iter().map(|rule| rule.name).collect::<Vec<_>>(), told);
    all.sort_unstable();
    told_of.sort_unstable();
    assert_eq!(told_of, all, "each rule stands in one row");
}

/// No advice asks for what another one takes back: settings of block sizes are made as printed until nothing is said of
/// them.
#[test]
fn block_sizes_that_are_advised_are_left_alone_by_all_other_rules() {
    let vdevs = [
        "kind=mirror class=normal disks=2 parity=0 ashift=12",
        "kind=raidz class=normal disks=3 parity=1 ashift=12",
        "kind=raidz class=normal disks=5 parity=1 ashift=12",
        "kind=raidz class=normal disks=12 parity=3 ashift=12",
        "kind=raidz class=normal disks=9 parity=2 ashift=9",
    ];
    for (vdev, kind, shift) in vdevs
        .iter()
        .flat_map(|v| ["lun", "filesystem"].map(|k| (*v, k)))
        .flat_map(|(v, k)| (9..=24).map(move |shift| (v, k, shift)))
    {
        for asked in [
            "write_size=512",
            "write_size=5000",
            "read_size=700 miss_percent=50",
            "read_size=9000 miss_percent=99",
        ] {
            let mut facts = Facts::default();
            facts.add("pool t", "capacity=5");
            facts.add("vdev t/0", vdev);
            let mut block = 1u64 << shift;
            for changes in 0..3 {
                facts.set(&format!("{kind} t/v"), &format!("block={block} {asked}"));
                let advice = examine(&facts);
                let Some(text) = advice.first().map(|advice| &advice.fixes[0].text) else { break };
                assert!(changes < 2, "{vdev} {kind} {block} {asked}: {text}");
                let set = doctor::commands(text)[0]
                    .split('=')
                    .nth(1)
                    .and_then(|set| set.split(' ').next())
                    .unwrap();
                let (number, unit) = set.split_at(set.len() - 1);
                block = number.parse::<u64>().unwrap() << if unit == "M" { 20 } else { 10 };
            }
        }
    }
}

/// A small generator, so that a seed replays a failure.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn whatever_a_host_answers_the_doctor_ends() {
    let nasty = [
        "",
        " ",
        "0",
        "-1",
        "1",
        "18446744073709551615",
        "999999999999999999999",
        "[",
        "[]",
        "\u{1b}[2J",
        "=",
        "a=b",
        "NaN",
        "inf",
        "3",
    ];
    for seed in 0..400u64 {
        let mut state = seed;
        let mut facts = Facts::default();
        for line in HEALTHY.lines().filter(|line| line.contains('\t')) {
            let (key, value) = line.split_once('\t').unwrap();
            let pick = nasty[next(&mut state) as usize % nasty.len()];
            match next(&mut state) % 4 {
                0 => facts.add(key, pick),
                1 => {
                    let words: Vec<&str> = value.split(' ').collect();
                    let at = next(&mut state) as usize % words.len();
                    let name = words[at]
                        .split_once('=')
                        .map(|(name, _)| format!("{name}={pick}"))
                        .unwrap_or(pick.into());
                    let changed =
                        words.iter().enumerate().map(|(i, w)| if i == at { name.as_str() } else { w });
                    facts.add(key, &changed.collect::<Vec<_>>().join(" "));
                }
                2 => {}
                _ => facts.add(key, value),
            }
        }
        let text = render(&examine(&facts));
        assert!(!text.contains('\u{1b}'), "seed {seed}: {text}");
    }
}

#[test]
fn what_is_no_file_of_facts_is_refused_in_one_line() {
    for (bytes, why) in [
        (&b""[..], "no facts"),
        (b"hello", "no facts"),
        (b"cenote facts 1\n", "end before"),
        (b"cenote facts 1\nkey\tvalue\n", "end before"),
        (b"cenote facts 1\nno tab\nend\n", "line 2 of the facts has no tab"),
        (b"cenote facts 1\n\xff\xfe\x1b[2J\nend\n", "no tab"),
    ] {
        let e = Facts::parse(bytes).unwrap_err();
        assert!(e.contains(why) && !e.contains('\n') && !e.contains('\u{1b}'), "{e}");
    }
    assert!(Facts::parse(&vec![b'a'; 17 << 20]).unwrap_err().contains("right file"));
    let long = format!("cenote facts 1\nk\t{}\nend\n", "x".repeat(70_000));
    assert!(Facts::parse(long.as_bytes()).unwrap_err().contains("line 2"));
    assert!(Facts::parse(b"cenote facts 1\r\nk\tv\r\nend\r\n").is_ok(), "a file that went through Windows");
}

#[test]
fn a_thousand_disks_are_judged_in_time_that_grows_with_them() {
    let mut facts = Facts::parse(HEALTHY.as_bytes()).unwrap();
    for disk in 0..1000 {
        let key = |name: &str| format!("/sys/block/sd{disk}x/{name}");
        let wwid = format!("naa.600144f0{disk:024x}");
        facts.add(&key("device/vendor"), "CENOTE");
        facts.add(&key("device/wwid"), &wwid);
        facts.add(&key("queue/max_sectors_kb"), "512");
        facts.add(&key("queue/max_hw_sectors_kb"), "32767");
        facts.add(&format!("lun tank/p/l{disk}"), &format!("wwid={wwid} block=1048576"));
        facts.add("/proc/mounts", &format!("/dev/sd{disk}x1 /m{disk} xfs rw 0 0"));
    }
    let began = std::time::Instant::now();
    assert_eq!(examine(&facts).iter().filter(|advice| advice.rule == "transfer-size").count(), 1000);
    // Unoptimised and on a busy machine; with optimisation it is a fraction.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// A root with what a host has, gathered by a shell that finds no other program.
fn gathered(shell: &[&str], root: &Path) -> Vec<u8> {
    let mut child = Command::new(shell[0])
        .args(&shell[1..])
        .env_clear()
        .env("PATH", "/nowhere")
        .env("FACTS_ROOT", root)
        .env("FACTS_SECONDS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A shell that ended already is judged by what it printed.
    let _ = child.stdin.take().unwrap().write_all(HOST_SCRIPT.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    output.stdout
}

#[test]
fn the_script_needs_nothing_but_the_shell_and_tells_no_secrets() {
    let root = std::env::temp_dir().join(format!("cenote-doctor-{}", std::process::id()));
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("sys/block/sdb/queue/max_sectors_kb", "512\n");
    put("sys/block/sdb/queue/max_hw_sectors_kb", "32767\n");
    put("sys/block/sdb/queue/minimum_io_size", "1048576\n");
    put("sys/block/sdb/device/vendor", "CENOTE  \n");
    put("sys/block/sdb/sdb 1/start", "63");
    put("proc/sys/kernel/ostype", "Linux\n");
    put("proc/diskstats", "   8      16 sdb 1 0 8 1 1 0 8 1 0 1 1\n");
    put(
        "etc/iscsi/iscsid.conf",
        "# comment\nnode.session.auth.password = hunter2\nnode.session.cmds_max = 4\n",
    );
    put("etc/mysql/conf.d/a.cnf", "[client]\nPassWord=hunter2\n[mysqld]\ninnodb_page_size = 16k\n");
    for shell in [&["/bin/sh"][..], &["/usr/bin/busybox", "sh"], &["/bin/bash"]] {
        if !Path::new(shell[0]).exists() && shell[0] != "/bin/sh" {
            continue;
        }
        let bytes = gathered(shell, &root);
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hunter2"), "{shell:?}: {text}");
        let facts = Facts::parse(&bytes).unwrap_or_else(|e| panic!("{shell:?}: {e}:\n{text}"));
        assert_eq!(facts.text("/etc/iscsi/iscsid.conf"), Some("node.session.cmds_max = 4"), "{shell:?}");
        assert_eq!(facts.text("diskstats.seconds"), Some("1"), "{shell:?}");
        let advice = examine(&facts);
        let rules = told(&advice);
        assert_eq!(
            rules,
            BTreeSet::from(["transfer-size", "alignment", "iscsi-session"]),
            "{shell:?}: {text}"
        );
    }
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn the_script_judges_this_very_machine() {
    let facts = Facts::parse(&gathered(&["/bin/sh"], Path::new(""))).unwrap();
    assert_eq!(facts.text("/proc/sys/kernel/ostype"), Some("Linux"));
    assert!(examine(&facts).iter().all(|advice| !advice.fixes.is_empty()));
}

/// What reads fstab reads one mount of it, whatever a name contains.
#[test]
fn lines_of_fstab_are_read_back_as_they_were_meant() {
    let file = std::env::temp_dir().join(format!("cenote-fstab-{}", std::process::id()));
    for at in [
        "/mysql/san/innodb-data",
        "/with blank",
        "/with#hash",
        "/tab\there",
        "/back\\slash",
        "/line\n/dev/sda / ext4 x 0 0",
        "/é",
    ] {
        let line = doctor::generate::fstab_line("/dev/mapper/mpatha1", at).unwrap();
        std::fs::write(&file, &line).unwrap();
        let read = |column: &str| {
            let words = ["--raw", "--noheadings", "--output", column, "--tab-file"];
            let output = Command::new("findmnt")
                .env("LC_ALL", "C")
                .args(words)
                .arg(&file)
                .output()
                .expect("findmnt of util-linux");
            assert!(output.status.success(), "{line}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim_end().to_string()
        };
        // Raw output has what is not plain in hexadecimal, byte by byte.
        let is_plain = |b: u8| b.is_ascii_graphic() && b != b'\\';
        let shown = |b: u8| if is_plain(b) { char::from(b).to_string() } else { format!("\\x{b:02x}") };
        let meant: String = at.bytes().map(shown).collect();
        assert_eq!((read("TARGET"), read("FSTYPE")), (meant, "xfs".into()), "{line}");
        assert_eq!(read("OPTIONS"), "noatime,logbufs=8,logbsize=256k,_netdev");
    }
    std::fs::remove_file(&file).unwrap();
}
