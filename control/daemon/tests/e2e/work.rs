//! Loads by `cenote work`, on what the daemon serves: the published files as written, beside fio, and ended by the user.

use crate::files::FUSE;
use crate::home::{Daemon, Home};
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run, said};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Output, Stdio};

/// The published file, but for its LUNs and its time, which the command line puts in.
const PUBLISHED: &str = "\
sd=sd1,lun=/dev/mapper/mpatha,size=1g,openflags=o_direct,threads=128
sd=sd2,lun=/dev/mapper/mpathb,size=1g,openflags=o_direct,threads=128
wd=wd1,sd=sd*,xfersize=1m,readpct=70,seekpct=0
rd=run1,wd=wd1,iorate=max,elapsed=999h,interval=1
";

pub fn trials() -> Vec<Trial> {
    let fio = Need::Program("fio");
    vec![
        trial("the_published_vdbench_file_runs_on_exports_and_is_ended_by_the_user", &[], published),
        trial("jobs_of_fio_and_files_of_vdbench_run_on_a_mount", &[FUSE, ROOT, fio], on_a_mount),
        trial("what_a_load_writes_over_nbd_is_verified", &[], verified),
        trial("a_load_that_cannot_be_carried_out_is_refused_in_plain_words", &[], refused),
    ]
}

/// Two volumes, and their URIs.
fn with_volumes() -> (Home, Daemon, [String; 2]) {
    let home = Home::with_pool();
    home.run("zfs create -s -V 64M tank/a");
    home.run("zfs create -s -V 64M tank/b");
    let (daemon, _) = home.start("serve --no-https");
    let socket = home.dir().join("nbd.sock");
    let uri = |name: &str| format!("nbd+unix:///tank/{name}?socket={}", socket.display());
    let uris = [uri("a"), uri("b")];
    (home, daemon, uris)
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn published() {
    let (home, daemon, uris) = with_volumes();
    let file = home.scratch.join("published.parm");
    std::fs::write(&file, PUBLISHED).unwrap();
    let file = file.display().to_string();
    let luns = [format!("sd1={}", uris[0]), format!("sd2={}", uris[1])];
    let words = ["work", &file, "--size", "64M", "--lun", &luns[0], "--lun", &luns[1]];
    // With a time, as JSON.
    let timed = home.cenote(&[&words[..], &["--elapsed", "2", "-j"]].concat()).output().unwrap();
    let total = &json(&timed)["runs"][0]["total"];
    let number = |key: &str| total[key].as_f64().unwrap();
    // How many there are in two seconds is the machine's affair; that they are those of the file is not.
    assert!(number("operations") > 0.0, "{total}");
    assert_eq!(number("bytes"), number("operations") * f64::from(1 << 20));
    // Without one it goes on for weeks, until the user ends it.
    let mut endless = home.cenote(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(endless.stdout.take().unwrap());
    let mut text = String::new();
    while !text.lines().any(|line| line.trim_start().starts_with("2 ")) {
        assert!(printed.read_line(&mut text).unwrap() > 0, "it ended by itself: {text}");
    }
    kill_process(Pid::from_child(&endless), Signal::INT).unwrap();
    printed.read_to_string(&mut text).unwrap();
    assert!(endless.wait().unwrap().success(), "{text}");
    for part in ["Run run1: 256 at once", "for 999 h", "MiB/s", "ended early", "Little:", "p99.9"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    daemon.end();
}

/// The job with the fixed amount that both programs move, and the published file on two files of the mount.
fn on_a_mount() {
    let home = Home::with_pool();
    let (daemon, _) = home.start("serve --no-https");
    let mount = home.scratch.join("mount");
    home.run(&format!("zfs create -o mountpoint={} tank/fs", mount.display()));
    home.run("zfs mount tank/fs");
    let file = home.scratch.join("job.fio");
    let text = format!(
        "[global]\ndirectory={}\nioengine=psync\nbs=64k\nsize=8m\nfdatasync=8\n\n[fill]\nrw=write\n\n[mixed]\nstonewall\n\
         rw=randrw\nrwmixread=50\nnumjobs=2\ngroup_reporting\n",
        mount.display()
    );
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let ours = json(&home.cenote(&["work", &file, "-j"]).output().unwrap());
    let moved = |run: usize, key: &str| ours["runs"][run]["total"][key].as_u64().unwrap();
    assert_eq!((moved(0, "operations"), moved(0, "bytes")), (128, 8 << 20));
    assert_eq!((moved(1, "operations"), moved(1, "bytes")), (256, 16 << 20));
    assert_eq!(ours["runs"][0]["total"]["flush"]["operations"], 16);
    let theirs = run(command("fio").args(["--output-format=json", &file]));
    let theirs: serde_json::Value = serde_json::from_str(theirs.trim()).unwrap();
    let of_fio = |job: usize, way: &str| theirs["jobs"][job][way]["total_ios"].as_u64().unwrap();
    assert_eq!(of_fio(0, "write"), 128, "fio moves as much");
    assert_eq!(of_fio(1, "write") + of_fio(1, "read"), 256);
    assert!(Path::new(&mount).join("fill.0.0").exists(), "the files have fio's names");
    let file = home.scratch.join("published.parm");
    std::fs::write(&file, PUBLISHED).unwrap();
    let (file, at) = (file.display().to_string(), mount.display().to_string());
    let luns = [format!("sd1={at}/a"), format!("sd2={at}/b")];
    let words =
        ["work", &file, "--size", "16M", "--lun", &luns[0], "--lun", &luns[1], "--elapsed", "1", "-j"];
    let total = &json(&home.cenote(&words).output().unwrap())["runs"][0]["total"];
    assert!(
        total["read"]["operations"].as_u64() > Some(0) && total["write"]["operations"].as_u64() > Some(0)
    );
    home.run("zfs unmount tank/fs");
    daemon.end();
}

fn verified() {
    let (home, daemon, uris) = with_volumes();
    let words = ["work", "oltp", &uris[0], &uris[1], "--elapsed", "2", "--verify", "-j", "--seed", "7"];
    let runs = json(&home.cenote(&words).output().unwrap());
    let blocks = runs["runs"][0]["verified_blocks"].as_u64().unwrap();
    assert!(blocks > 10, "{blocks}");
    let rows = &runs["runs"][0]["workloads"];
    assert!(rows["redo"]["write"]["operations"].as_u64().unwrap() > 0, "{rows}");
    daemon.end();
}

fn refused() {
    let home = Home::new();
    let bad = home.scratch.join("bad.parm");
    std::fs::write(&bad, "sd=sd1,lun=/a\nwd=wd1,sd=sd1,stride=4k\nrd=r,wd=wd1\n").unwrap();
    let bad = bad.display().to_string();
    assert_eq!(
        home.fails(&format!("work {bad}"), 1),
        format!("{bad}:2: stride: not supported in a workload definition")
    );
    let said = home.fails("work nothing /tmp/x", 2);
    assert!(said.contains("there is no workload 'nothing'; there are mix, objects"), "{said}");
    let said = home.fails("work mix", 2);
    assert!(said.contains("nothing to work on"), "{said}");
    let missing = home.scratch.join("missing").display().to_string();
    let said = home.fails(&format!("work mix {missing}"), 1);
    assert!(said.contains("is not there; with a size it is made"), "{said}");
}
