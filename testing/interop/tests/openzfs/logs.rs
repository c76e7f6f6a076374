//! Pools whose kernel was stopped in the midst of synchronous writes: their intent logs are claimed and replayed, those of
//! volumes to the byte, those of file systems to every file's numbers, names, attributes and bytes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::tree::{Walk, compare};
use crate::common::{digest, open, open_without_log, verify};
use futures_util::future::select;
use inspect::{InspectArgs, What};
use interop::harness::{Need, Trial, trial};
use interop::trees::Tree;
use interop::{Scratch, golden, zdb};
use ondisk::zil::CreateKind;
use ondisk::{LogRecord, Record};

/// Without and with a log device.
const POOLS: [&str; 2] = ["zila", "zilb"];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in POOLS {
        let needs = [Need::Golden(name)];
        trials.push(trial(format!("{name}_is_replayed_as_the_kernel_replays_it"), &needs, move || {
            replayed(name);
        }));
        trials.push(trial(
            format!("{name}_read_only_shows_its_last_txg_and_what_waits"),
            &needs,
            move || {
                looked_at(name);
            },
        ));
        trials
            .push(trial(format!("the_logs_of_{name}_read_as_zdb_reads_them"), &needs, move || listed(name)));
        trials.push(trial(format!("inspect_lists_the_logs_of_{name}_as_zdb_does"), &needs, move || {
            inspected(name)
        }));
        let needs = [Need::Golden(name), zdb::OF_2_3];
        trials.push(trial(format!("{name}_passes_zdb_when_it_is_replayed"), &needs, move || judged(name)));
    }
    trials.push(trial(
        "zila_is_replayed_whole_however_often_that_is_interrupted",
        &[Need::Golden("zila")],
        || {
            interrupted("zila");
        },
    ));
    trials.push(trial(
        "zilb_needs_its_log_device_or_leave_to_lose_what_is_on_it",
        &[Need::Golden("zilb")],
        || {
            without_log_device();
        },
    ));
    trials.push(trial("zilc_is_for_reading_only_because_it_is_encrypted", &[Need::Golden("zilc")], || {
        encrypted();
    }));
    trials
}

/// `manifest/POOL/zil.txt` is what `zdb -e -iiii` of OpenZFS 2.3 says of the pool, without times and pointers.
fn listed(name: &'static str) {
    let expected = golden::manifest(name, "zil.txt");
    let images = golden::pool(name).images;
    let listing = linux::block_on(async move {
        let pool = open(images, name, true).await.unwrap();
        let mut listing = String::new();
        let children = pool.dsl().descendants(name).await.unwrap();
        for dataset in children.into_iter().chain([name.to_string()]) {
            let opened = pool.dsl().open_by_name(&dataset).await.unwrap();
            list(&pool, &dataset, opened.objset(), &mut listing).await;
        }
        listing
    });
    let sections = |text: &str| {
        let mut sections: Vec<String> = text.split("Dataset ").skip(1).map(str::to_owned).collect();
        sections.sort();
        sections
    };
    let (ours, theirs) = (sections(&listing), sections(&expected));
    assert!(theirs.len() >= 3, "{theirs:?}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

async fn list(pool: &pool::Pool, name: &str, set: &dmu::ObjSet, listing: &mut String) {
    let header = set.phys().zil_header;
    if header.log.is_hole() {
        return;
    }
    *listing += &format!("Dataset {name}\n");
    let mut chain = zil::Chain::new(pool.pipeline(), set.id(), &header);
    while let Some(link) = chain.next().await {
        let will = if link.pointer.birth() > pool.uberblock().txg { "will" } else { "won't" };
        *listing += &format!("Block seqno {}, {will} claim\n", link.number);
        for (head, mut reader) in link.block.iter().flat_map(|block| block.records()) {
            let kind = head.kind().unwrap().name();
            *listing += &format!("{kind} len {}, txg {}, seq {}\n", head.length, head.txg, head.seq);
            *listing += &says(&LogRecord::decode(&mut reader).unwrap().record);
        }
    }
}

/// `cenote inspect log` beside the same listing: kind, length, txg and number of every record, in the same blocks.
fn inspected(name: &'static str) {
    let expected = golden::manifest(name, "zil.txt");
    let scratch = Scratch::new();
    golden::pool(name).copy(&scratch, &[]);
    for section in expected.split("Dataset ").skip(1) {
        let (dataset, listed) = section.split_once('\n').unwrap();
        let args = InspectArgs {
            dirs: vec![scratch.path().to_owned()],
            json: true,
            ..InspectArgs::new(What::Log { dataset: dataset.trim().to_string() })
        };
        let output = linux::block_on(inspect::run(args)).unwrap();
        assert!(output.is_sound, "{}", output.text);
        let report: serde_json::Value = serde_json::from_str(&output.text).unwrap();
        let rows = |of: &str| report[of].as_array().unwrap().clone();
        let (mut ours, records) = (String::new(), rows("records"));
        for block in rows("blocks") {
            let will = if block["space"] == "to be claimed" { "will" } else { "won't" };
            ours += &format!("Block seqno {}, {will} claim\n", block["block"]);
            for r in records.iter().filter(|r| r["block"] == block["block"]) {
                let kind = r["type"].as_str().unwrap();
                ours += &format!("{kind} len {}, txg {}, seq {}\n", r["length"], r["txg"], r["record"]);
                assert!(r["state"] == "waits" || r["state"] == "synced", "{r}");
            }
        }
        let heads = listed.lines().filter(|l| l.starts_with("Block seqno") || l.starts_with("TX_"));
        assert_eq!(ours, heads.map(|line| format!("{line}\n")).collect::<String>(), "{dataset}");
        assert!(!records.is_empty() || !listed.contains("TX_"));
    }
}

/// What zdb says of a record, in its words.
fn says(record: &Record<'_>) -> String {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    match record {
        Record::Write(w) | Record::Write2(w) => {
            format!("foid {}, offset {:x}, length {:x}\n", w.object, w.offset, w.length)
        }
        Record::Truncate(t) => format!("foid {}, offset {:#x}, length {:#x}\n", t.object, t.offset, t.length),
        Record::SetAttr(set) => format!("foid {}, mask {:#x}\n", set.object, set.mask),
        Record::SetSaXattr(set) => format!("foid {}\nXAT_NAME  {}\n", set.object, text(set.name)),
        Record::Acl(acl) => format!("foid {}, aclcnt {}\n", acl.object, acl.acl.count),
        Record::Remove(remove) => format!("doid {}, name {}\n", remove.directory, text(remove.name)),
        Record::Link(link) => {
            format!("doid {}, link_obj {}, name {}\n", link.directory, link.object, text(link.name))
        }
        Record::Rename(rename) => format!(
            "sdoid {}, tdoid {}\nsrc {} tgt {}\n",
            rename.source,
            rename.target,
            text(rename.source_name),
            text(rename.target_name)
        ),
        Record::Create(create) => {
            let name = match create.what {
                CreateKind::Symlink => format!("{} -> {}\n", text(create.name), text(create.target)),
                CreateKind::XattrDirectory => String::new(),
                _ => format!("{}\n", text(create.name)),
            };
            let n = &create.node;
            let node = format!("foid {}, slots {}, mode {:o}", n.object, n.slots, n.mode);
            let owner = format!("uid {}, gid {}, gen {}, rdev {:#x}", n.uid, n.gid, n.generation, n.device);
            format!("{name}doid {}, {node}\n{owner}\n", create.directory)
        }
        other => format!("{other:?}\n"),
    }
}

/// What the kernel read from volumes and files after it had replayed the logs itself.
fn check_replayed(images: Vec<PathBuf>, name: &'static str) {
    linux::block_on(async move {
        let pool = open(images, name, false).await.unwrap();
        for wanted in golden::volumes(name) {
            let volume = pool.open_volume(&wanted.name).await.unwrap();
            assert_eq!(volume.size(), wanted.size);
            assert_eq!(digest(&volume).await, wanted.sha256, "{}", wanted.name);
        }
        for child in ["fs", "tp"] {
            let fs = pool.open_file_system(&format!("{name}/{child}")).await.unwrap();
            let differences =
                compare(&wanted_tree(name, child), Walk::of(&pool, &BTreeSet::new(), fs).await, &TIMES);
            assert!(differences.is_empty(), "{}", differences.join("\n"));
        }
        let report = verify(&pool).await;
        assert_eq!(report.log_records, 0, "the logs are done");
        assert_eq!(pool.waiting_logs(), []);
        assert_eq!(pool.complaints(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
}

/// Those of a replayed file are of the replay.
const TIMES: [&str; 2] = ["mtime_ns", "ctime_ns"];
/// Files of `tp` that the kernel makes as long as their block when it replays a write of less than that, which was logged
/// by pointer: they are as they were before.
const GROWN: [&str; 2] = ["first", "t"];

/// A file system as the kernel saw it after its replay, but for what it got wrong.
fn wanted_tree(pool: &str, child: &str) -> Tree {
    let lines = |file: &str| golden::manifest(pool, file).lines().map(str::to_owned).collect::<Vec<_>>();
    let path = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].clone();
    let mut wanted = lines(&format!("replayed.{child}.jsonl"));
    if child == "tp" {
        let (mut before, mut grown) = (lines("before-crash.tp.jsonl"), 0);
        before.retain(|line| GROWN.iter().any(|name| path(line) == *name));
        for line in &mut wanted {
            if let Some(i) = before.iter().position(|before| path(before) == path(line)) {
                *line = with_blocks_of(&before[i], line);
                grown += 1;
            }
        }
        assert_eq!(grown, GROWN.len());
    }
    Tree { name: format!("{pool}/{child}"), lines: wanted }
}

/// What a file takes on disk was not known before it was there.
fn with_blocks_of(line: &str, other: &str) -> String {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let mut merged = parse(line);
    merged["blocks"] = parse(other)["blocks"].clone();
    merged.to_string()
}

fn replayed(name: &'static str) {
    assert!(!golden::volumes(name).is_empty());
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    check_replayed(images.clone(), name);
    // Once more: what was replayed stays.
    check_replayed(images, name);
}

/// Imports that stop anywhere on their way leave a pool that the next one can finish, however often they do.
fn interrupted(name: &'static str) {
    for pause in [10, 80] {
        let mut scratch = Scratch::new();
        let mut images = golden::pool(name).copy(&scratch, &[]);
        for attempt in 1..=2 {
            linux::block_on({
                let images = images.clone();
                async move {
                    let enough = world::sleep(Duration::from_millis(pause * attempt));
                    let opening = std::pin::pin!(open(images, name, false));
                    select(opening, enough).await;
                }
            });
            // What is on the disk by now is what a crash would leave: the next import sees only that.
            let next = Scratch::new();
            images = golden::Pool { name: name.into(), images }.copy(&next, &[]);
            scratch = next;
        }
        check_replayed(images, name);
        drop(scratch);
    }
}

fn looked_at(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    linux::block_on({
        let images = images.clone();
        async move {
            let pool = open(images, name, true).await.unwrap();
            let waiting = pool.waiting_logs();
            assert!(waiting.iter().any(|log| log.dataset == format!("{name}/vol")), "{waiting:?}");
            for wanted in golden::volumes(name) {
                let volume = pool.open_volume(&wanted.name).await.unwrap();
                assert_ne!(digest(&volume).await, wanted.sha256, "the last txg is older than the log");
            }
            verify(&pool).await;
            pool.close().await.unwrap();
        }
    });
    // Nothing was written: the log is still there to be replayed.
    check_replayed(images, name);
}

fn judged(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    check_replayed(images, name);
    zdb::assert_clean_by_2_3(scratch.path(), name);
}

fn without_log_device() {
    let scratch = Scratch::new();
    let images = golden::pool("zilb").copy(&scratch, &["zilb-log"]);
    let refused = linux::block_on(async move { open(images, "zilb", false).await.map(drop) });
    let refused = refused.unwrap_err().to_string();
    for word in ["log device missing", "'zilb/vol'", "would be lost", "-m"] {
        assert!(refused.contains(word), "{refused}");
    }
    let scratch = Scratch::new();
    let images = golden::pool("zilb").copy(&scratch, &["zilb-log"]);
    linux::block_on(async move {
        let pool = open_without_log(images, "zilb").await.unwrap();
        let problems = pool.complaints();
        assert!(problems.iter().any(|p| p.contains("'zilb/vol'") && p.contains("are lost")), "{problems:?}");
        let wanted = &golden::volumes("zilb")[0];
        let volume = pool.open_volume(&wanted.name).await.unwrap();
        assert_ne!(digest(&volume).await, wanted.sha256, "the log was what it lacks");
        drop(volume);
        verify(&pool).await;
        assert!(pool.waiting_logs().is_empty());
        pool.export().await.unwrap();
    });
}

fn encrypted() {
    let images = golden::pool("zilc").images;
    let refusal = linux::block_on(async move { open(images, "zilc", false).await.map(drop) });
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("encryption") && refusal.contains("readonly=on"), "{refusal}");
}
