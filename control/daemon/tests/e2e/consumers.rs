//! Files for clients, read by what reads them there.
//!
//! Each trial also breaks the file and sees it refused: a reader that takes anything proves nothing. What reads its file
//! from `/etc` alone gets an `/etc` of its own, in a mount namespace.

use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, said};
use std::process::Output;

const NAMESPACES: Need = Need::Other("mount namespaces", || {
    command("unshare").args(["-m", "true"]).output().is_ok_and(|output| output.status.success())
});

pub fn trials() -> Vec<Trial> {
    let needs = |program| [ROOT, NAMESPACES, Need::Program(program)];
    vec![
        trial("multipath_takes_the_file_that_is_generated_for_it", &needs("multipath"), multipath),
        trial("udev_takes_the_rule_that_is_generated_for_it", &needs("udevadm"), udev),
        trial("mariadb_takes_the_settings_that_are_generated_for_it", &[Need::Program("mariadbd")], mysql),
        trial("mount_takes_the_line_that_is_generated_for_it", &[ROOT, Need::Program("findmnt")], fstab),
    ]
}

/// Puts a file where it is looked for in an empty `/etc`, and runs a line of shell there.
fn in_own_etc(home: &Home, text: &str, at: &str, line: &str) -> Output {
    let file = home.scratch.join("generated");
    std::fs::write(&file, text).unwrap();
    let script = format!(
        "mount -t tmpfs none /etc && mkdir -p $(dirname {at}) && cp {} {at} && {line}",
        file.display()
    );
    let output = command("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", said(&output));
    output
}

fn multipath() {
    let home = Home::new();
    let text = home.run("doctor generate multipath");
    let read = |text: &str| in_own_etc(&home, text, "/etc/multipath.conf", "multipath -t");
    let output = read(&text);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let device =
        told.split("\tdevice {").find(|device| device.contains("vendor \"CENOTE\"")).expect("our device");
    for line in
        ["product \"LUN\"", "path_grouping_policy \"group_by_prio\"", "prio \"alua\"", "no_path_retry 600"]
    {
        assert!(device.contains(line), "{line}: {device}");
    }
    let bad = read(&text.replace("prio alua", "prio_callout alua"));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("prio_callout"), "{bad:?}");
}

fn udev() {
    let home = Home::new();
    let rules = home.run("doctor generate udev --block 1M");
    let at = "/etc/udev/rules.d/99-cenote.rules";
    // What is wrong with a rule is logged with its file; the exit code is that of the device.
    let faults = |text: &str| -> Vec<String> {
        let line = "udevadm test --action=change /sys/block/$(ls /sys/block | head -n 1) 2>&1 || true";
        let output = in_own_etc(&home, text, at, line);
        let told = said(&output);
        assert!(told.contains(&format!("Reading rules file: {at}")), "{told}");
        told.lines().filter(|line| line.contains(&format!("{at}:"))).map(String::from).collect()
    };
    assert_eq!(faults(&rules), [""; 0]);
    assert!(!faults(&rules.replace("ATTRS{", "SYSFS{")).is_empty(), "what is dated is refused");
}

fn mysql() {
    let home = Home::new();
    let file = home.scratch.join("my.cnf");
    let taken = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut mariadbd = command("mariadbd");
        mariadbd.arg(format!("--defaults-file={}", file.display())).args([
            "--user=root",
            "--verbose",
            "--help",
        ]);
        mariadbd.output().unwrap()
    };
    let text = home.run("doctor generate mysql --block 16K");
    let output = taken(&text);
    assert!(output.status.success(), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |name: &str| {
        let mut line = told.lines().rev().filter(|line| line.split_whitespace().next() == Some(name));
        line.next().and_then(|line| line.split_whitespace().nth(1)).unwrap_or_default().to_string()
    };
    let names =
        ["innodb-page-size", "innodb-flush-method", "innodb-flush-neighbors", "innodb-use-native-aio"];
    assert_eq!(names.map(value), ["16384", "O_DIRECT", "0", "TRUE"]);
    let said = said(&taken(&text.replace("flush_neighbors", "flush_neighbours")));
    assert!(said.contains("unknown variable"), "{said}");
}

fn fstab() {
    let home = Home::new();
    let (device, at) = (home.disk("lun"), home.scratch.join("with blank"));
    std::fs::create_dir(&at).unwrap();
    let output =
        home.cenote(&["doctor", "generate", "fstab", &device, &at.display().to_string()]).output().unwrap();
    let file = home.scratch.join("fstab");
    let line = String::from_utf8(output.stdout).unwrap();
    let parsed = |line: &str| {
        std::fs::write(&file, line).unwrap();
        said(&command("findmnt").arg("--verify").arg("--tab-file").arg(&file).output().unwrap())
    };
    assert!(parsed(&line).contains("0 parse errors"), "{line}: {}", parsed(&line));
    assert!(!parsed(&line.replace("\\040", " ")).contains("0 parse errors, 0 errors"), "a blank ends a word");
    std::fs::write(&file, &line).unwrap();
    let mount = |at: &str| command("mount").arg("-f").arg("-T").arg(&file).arg(at).output().unwrap().status;
    assert!(mount(&at.display().to_string()).success(), "{line}");
    assert!(!mount("/elsewhere").success());
}
