//! Words in, meaning out.

use super::zpool::Command as Zpool;
use super::{Cenote, Command, SortKey, command_line, normalize, not_yet, tail, vdevs};
use api::{Class, Layout, VdevGroup};
use clap::{CommandFactory, Parser};
use std::time::Duration;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

fn parse(line: &str) -> Result<Command, clap::Error> {
    Cenote::try_parse_from(normalize(words(line))).map(|c| c.command)
}

#[test]
fn the_help_of_a_command_is_asked_for_as_of_openzfs() {
    let cases = [
        ("zpool help list", "cenote help zpool list"),
        ("cenote zfs help", "cenote help zfs"),
        ("cenote --home /h zpool help", "cenote --home /h help zpool"),
        ("cenote ls zpool help", "cenote ls zpool help"),
    ];
    for (given, meant) in cases {
        assert_eq!(normalize(words(given)), words(meant));
    }
}

#[test]
fn the_definitions_contradict_nothing() {
    Cenote::command().debug_assert();
}

#[test]
fn the_program_is_the_command_it_is_called() {
    for (given, line) in [
        ("/sbin/zpool create tank a", "zpool create tank a"),
        ("zfs list", "zfs list"),
        ("target/debug/cenote --home /h zpool list -H", "zpool list -H"),
        ("cenote up", "cenote up"),
    ] {
        assert_eq!(command_line(&normalize(words(given))), line);
        assert!(parse(given).is_ok(), "{given}");
    }
}

#[test]
fn command_lines_of_openzfs_are_understood() {
    for line in [
        "zpool create -f -o ashift=12 -O compression=lz4 -O atime=off -m none tank mirror a b raidz2 c d e f",
        "zpool create aux mirror p0 p1 special p2 log p3 cache p4 spare p5 -f",
        "zpool create -n -d -R /mnt -t other tank a",
        "zpool add tank log mirror a b cache c spare d e",
        "zpool add -n -f -gLP -o ashift=12 tank raidz2 a b c d",
        "zpool add --allow-in-use --allow-replication-mismatch --allow-ashift-mismatch tank a",
        "zpool remove tank mirror-1 /dev/sdz",
        "zpool remove -np tank a",
        "zpool remove -w tank 1234567890",
        "zpool remove -s tank",
        "zpool import",
        "zpool import -d /dev -d /disks -aN -f",
        "zpool import -o readonly=on -R /mnt tank newname",
        "zpool import -D -f 1234567890123456789",
        "zpool list -Hpo name,size,health tank",
        "zpool list -v -T d 5 10",
        "zpool status -xv tank",
        "zpool status -j --json-int --json-flat-vdevs",
        "zpool iostat -vlq tank 1 2",
        "zpool iostat -w",
        "zpool iostat -ryH tank 0.5",
        "zpool get -Hp -o value,source all tank",
        "zpool get all",
        "zpool set comment=hello tank",
        "zpool history -il",
        "zpool sync",
        "zpool scrub -w tank",
        "zpool scrub -a",
        "zpool labelclear -f /dev/sdz",
        "zpool export -a",
        "cenote tunable get zfs_nocacheflush zfs_txg_timeout -H",
        "cenote tunable set zfs_nocacheflush=1 zil_slog_bulk=128M",
        "cenote tunable list -Hp",
        "cenote tunable list --json",
        "cenote tunable load /etc/system",
        "cenote serve --system /etc/system",
        "zfs create -p -s -b 16K -o compression=zstd-7 -V 1.5G tank/a/vol",
        "zfs create -nvP tank/x",
        "zfs destroy -rfnv tank/x",
        "zfs rename -p tank/a tank/b/c",
        "zfs list -rt all -o space -s used -S name tank",
        "zfs list -d 1 -Hp",
        "zfs get -r -s local,inherited -o all -t volume all tank",
        "zfs set compression=lz4 quota=10G tank/a tank/b",
        "zfs inherit -rS compression tank",
    ] {
        let parsed = parse(line);
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
    }
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for line in [
        "zpool",
        "zpool create tank",
        "zpool create -o ashift tank a",
        "zpool frobnicate",
        "zpool scrub",
        "zpool scrub -s -p tank",
        "zpool iostat -lr",
        "zpool list -T x",
        "zfs create -s tank/a",
        "zfs set compression=lz4",
        "zfs destroy",
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn commands_that_are_not_here_yet_are_named() {
    assert_eq!(
        not_yet(&normalize(words("zpool -x checkpoint tank"))).as_deref(),
        Some("'zpool checkpoint' is not part of this version of Cenote yet")
    );
    assert_eq!(not_yet(&normalize(words("zpool list checkpoint"))), None);
    assert_eq!(not_yet(&normalize(words("cenote up"))), None);
    // A command that came and stayed in the list would be refused before it is parsed.
    walk(&super::command(), "", &mut |_, command| {
        assert_eq!(not_yet(&normalize(words(&format!("cenote {command}")))), None, "{command}");
    });
}

#[test]
fn vdev_words_make_groups() {
    let group = |class, layout, devices: &str| VdevGroup { class, layout, devices: words(devices) };
    use Class::*;
    use Layout::*;
    for (line, groups) in [
        ("a", vec![group(Normal, Stripe, "a")]),
        ("a b", vec![group(Normal, Stripe, "a b")]),
        ("mirror a b mirror c d", vec![group(Normal, Mirror, "a b"), group(Normal, Mirror, "c d")]),
        (
            "raidz a b raidz3 c d e f",
            vec![group(Normal, Raidz { parity: 1 }, "a b"), group(Normal, Raidz { parity: 3 }, "c d e f")],
        ),
        (
            "mirror p0 p1 special p2 log mirror p3 p7 cache p4 spare p5 dedup p6",
            vec![
                group(Normal, Mirror, "p0 p1"),
                group(Special, Stripe, "p2"),
                group(Log, Mirror, "p3 p7"),
                group(Cache, Stripe, "p4"),
                group(Spare, Stripe, "p5"),
                group(Dedup, Stripe, "p6"),
            ],
        ),
        ("/dev/raidzilla", vec![group(Normal, Stripe, "/dev/raidzilla")]),
    ] {
        assert_eq!(vdevs::parse(&words(line)).as_deref(), Ok(&groups[..]), "{line}");
    }
    for (line, said) in [
        ("mirror a", "mirror requires at least 2 devices"),
        ("raidz2 a b", "raidz2 requires at least 3 devices"),
        ("raidz4 a b c d e", "raidz has 1, 2 or 3 devices of parity"),
        ("draid a b c", "draid cannot be created yet"),
        ("log a", "at least one toplevel vdev must be specified"),
        ("a log", "'log' requires at least one device"),
        ("a log cache b", "'log' requires at least one device"),
        ("a log raidz b c", "unsupported 'log' device: raidz"),
        ("a cache mirror b c", "'cache' devices cannot be in a mirror"),
    ] {
        let error = vdevs::parse(&words(line)).expect_err(line);
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn numbers_at_the_end_are_interval_and_count() {
    let split = |line: &str| tail::split(&words(line));
    assert_eq!(split("tank"), Ok((words("tank"), None)));
    let every = |ms, count| Some(tail::Repeat { every: Duration::from_millis(ms), count });
    assert_eq!(split("tank b 5"), Ok((words("tank b"), every(5000, None))));
    assert_eq!(split("0.5 3"), Ok((Vec::new(), every(500, Some(3)))));
    assert!(split("tank 0").is_err());
    assert!(split("tank 1 0").is_err());
    assert!(split("tank 1 1.5").is_err());
}

#[test]
fn the_order_of_sort_keys_is_kept() {
    let Ok(Command::Zfs(zfs)) = parse("zfs list -s used -S name -s creation") else { panic!("zfs list") };
    let super::zfs::Command::List(list) = zfs.command else { panic!("list") };
    let key = |property: &str, descending| SortKey { property: property.into(), descending };
    assert_eq!(list.sort.0, [key("used", false), key("name", true), key("creation", false)]);
}

#[test]
fn lists_after_o_are_split_at_commas() {
    let Ok(Command::Zpool(zpool)) = parse("zpool list -o name,size -o health") else { panic!("zpool list") };
    let Zpool::List(list) = zpool.command else { panic!("list") };
    assert_eq!(list.columns, ["name", "size", "health"]);
}

/// Every command below `command`, with its words.
fn walk(command: &clap::Command, words: &str, visit: &mut impl FnMut(&clap::Command, &str)) {
    visit(command, words);
    for below in command.get_subcommands() {
        walk(below, format!("{words} {}", below.get_name()).trim(), visit);
    }
}

#[test]
fn every_command_and_argument_explains_itself_and_has_an_example() {
    let mut seen = Vec::new();
    walk(&super::command(), "", &mut |command, words| {
        seen.push(words.to_string());
        assert!(command.get_about().is_some(), "'{words}' says what it does");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "'{words}': {} says what it is for", argument.get_id());
        }
        let is_group = command.has_subcommands();
        assert!(is_group || command.get_after_help().is_some(), "'{words}' has an example");
        let help = super::help(&words.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap();
        assert!(is_group || help.contains("Example"), "'{words}': {help}");
    });
    for (words, _) in super::examples::EXAMPLES {
        assert!(seen.iter().any(|s| s == words), "'{words}' is a command");
    }
    assert!(super::help(&["zpool".into(), "nonsense".into()]).is_err());
}

#[test]
fn every_example_is_understood_and_is_one_of_its_command() {
    for (command, lines) in super::examples::EXAMPLES {
        for line in *lines {
            let parsed = super::parse(&normalize(words(line)));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            let said = words(line);
            let mut at = said.iter();
            assert!(command.split(' ').all(|word| at.any(|w| w == word)), "{line} is no '{command}'");
        }
    }
}

#[test]
fn completions_and_manual_know_every_command() {
    let mut names = Vec::new();
    walk(&super::command(), "cenote", &mut |_, words| names.push(words.replace(' ', "-")));
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let mut text = Vec::new();
        super::completions(shell, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for name in names.iter().filter_map(|n| n.rsplit('-').next()) {
            assert!(text.contains(name), "{shell} completes {name}");
        }
    }
    let dir = std::env::temp_dir().join(format!("cenote-man-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    super::manual(Some(&dir), &mut Vec::new()).unwrap();
    for name in &names {
        let page = std::fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH NAME"), "{name}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_is_inspected_is_said_in_words_or_by_the_flag() {
    use super::tools::InspectWhat;
    let inspect = |line: &str| match parse(line) {
        Ok(Command::Inspect(inspect)) => inspect,
        other => panic!("{line}: {other:?}"),
    };
    let flag = inspect("cenote inspect --verify -d /a -d /b tank");
    assert_eq!((flag.verify, flag.pool.as_deref(), flag.view.dirs.len()), (true, Some("tank"), 2));
    let block = inspect("cenote inspect -j -d /a block t/v@s 0x1f 2:7");
    assert_eq!((block.view.json, block.view.dirs.len()), (true, 1));
    let Some(InspectWhat::Block { object: 31, block: Some((2, 7)), .. }) = block.what else { panic!() };
    for wrong in
        ["inspect", "inspect labels", "inspect mos a b", "inspect block t x", "inspect block t 1 300:1"]
    {
        assert_eq!(parse(&format!("cenote {wrong}")).unwrap_err().exit_code(), 2, "{wrong}");
    }
}

/// Cases of the adviser, of which each rule has one.
#[path = "../../../doctor/tests/cases/mod.rs"]
#[allow(dead_code)]
mod cases;

/// What the adviser prints can be typed: every command of ours is one that there is, with values that it takes.
#[test]
fn commands_that_are_advised_are_understood() {
    let mut count = 0;
    let texts = cases::wrong().into_iter().flat_map(|case| doctor::examine(&case.facts)).flat_map(|advice| {
        let fixes = advice.fixes.into_iter().map(|fix| fix.text);
        fixes.chain([advice.undo]).chain(advice.lab).collect::<Vec<_>>()
    });
    for text in texts {
        for command in doctor::commands(&text) {
            let words = format!("cenote {command}");
            assert!(parse(&words).is_ok(), "{words}: {}\nin {text}", parse(&words).unwrap_err());
            if let Some(setting) = command.strip_prefix("tunable set ") {
                let line = format!("set zfs:{}", setting.replace('=', " = "));
                let read = tunables::system::parse("advice", &line).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert_eq!(read.known.len(), 1, "{line}");
            }
            count += 1;
        }
        let of_ours = ["cenote", "zpool", "zfs", "tunable"];
        let all: Vec<&str> = text.split([' ', '\n']).collect();
        let bare = all.windows(2).find(|pair| of_ours[1..].contains(&pair[1]) && pair[0] != of_ours[0]);
        assert!(bare.is_none() && !of_ours[1..].contains(&all[0]), "without its first word: {text}");
    }
    assert!(count > 50, "{count}");
}
