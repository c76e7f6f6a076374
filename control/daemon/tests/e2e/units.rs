//! The units of `packaging/`: systemd takes them, the daemon tells it what they promise, and they do what they are for.
//!
//! ```text
//!   unshare ──▶ namespaces of processes, mounts, names and control groups, /var/lib of the test
//!                 systemd, as process 1 of them, with the units of packaging/
//!                   cenote.service      as packaged, but for where the program is
//!                   look.service        what another process on that machine sees
//! ```

use crate::files::FUSE;
use crate::home::{CENOTE, Home};
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, said};
use interop::root;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

/// What one machine may be, for a test: enough for pools, and an end if something hangs.
const PATIENCE: &str = "240";
const SYSTEMD: [&str; 2] = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];

pub fn trials() -> Vec<Trial> {
    let systemd = [ROOT, FUSE, Need::Program("unshare"), Need::Other("systemd in a namespace", can_run)];
    vec![
        trial("the_units_are_what_systemd_takes", &[Need::Program("systemd-analyze")], verify),
        trial("the_service_manager_is_told_when_it_is_ready_and_when_it_ends", &[], notify),
        trial("under_systemd_the_service_serves_in_its_sandbox_and_mounts_nothing", &systemd, in_its_sandbox),
        trial("under_systemd_the_service_mounts_with_the_drop_in", &systemd, with_the_drop_in),
    ]
}

/// As it is packaged, but for where the program is: where it is installed there is nothing here.
fn packaged(unit: &str, program: &str) -> String {
    let text = fs::read_to_string(root().join("packaging").join(unit)).unwrap();
    text.replace("/usr/local/bin/cenote", program)
}

/// Where it is in the machine: in no directory that the sandbox hides.
const PROGRAM: &str = "/var/lib/program";
const DROP_IN: &str = "cenote.service.d/mount.conf";

fn verify() {
    for units in [&["cenote.service", "cenote.socket"][..], &["cenote.service", "cenote.socket", DROP_IN]] {
        let home = Home::new();
        fs::create_dir(home.scratch.join("cenote.service.d")).unwrap();
        for unit in units {
            fs::write(home.scratch.join(unit), packaged(unit, CENOTE)).unwrap();
        }
        let mut analyze = command("systemd-analyze");
        let output = analyze.arg("verify").arg(home.scratch.join("cenote.service")).output().unwrap();
        let text = said(&output);
        assert!(output.status.success() && !text.contains("cenote."), "{text}");
    }
}

fn notify() {
    let home = Home::with_pool();
    let path = home.scratch.join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut child = home
        .cenote(&["serve", "--listen", "127.0.0.1:0", "--https", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let mut buf = [0; 64];
        let n = manager.recv(&mut buf).unwrap();
        String::from_utf8_lossy(&buf[..n]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    assert!(home.run("status").contains("tank"), "it is ready indeed");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(told(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
    assert!(!home.dir().join("rest.sock").exists(), "it takes its socket away");
}

/// A machine that systemd starts in namespaces of its own; `/var/lib` is `lib` of the home's scratch directory.
struct Machine {
    home: Home,
}

/// Begins in a control group of its own, which goes with it: what systemd makes there is left behind otherwise.
const OUTSIDE: &str = r#"
name=cenote-test-$$
made=
while IFS=: read number controllers path; do
  case $controllers in
    '') tree=/sys/fs/cgroup; [ -d $tree/unified ] && tree=$tree/unified ;;
    *) tree=/sys/fs/cgroup/${controllers#name=} ;;
  esac
  own=$tree$path
  [ -d $own ] || own=$tree
  mkdir $own/$name 2>/dev/null || continue
  made="$made $own/$name=$tree"
  echo $$ 2>/dev/null > $own/$name/cgroup.procs || true
done < /proc/self/cgroup
MADE="$made" timeout -k 5 PATIENCE unshare -m -p -u -i -n -C --fork --kill-child sh INSIDE
ended=$?
for each in $made; do
  own=${each%=*}
  echo $$ 2>/dev/null > $(dirname $own)/cgroup.procs || true
  find $own -depth -type d -exec rmdir {} \; 2>/dev/null
done
exit $ended
"#;

/// What is the machine's, and not the test's, is not changed: neither its settings nor its units.
const INSIDE: &str = r#"
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind SCRATCH/lib /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/systemd
for own in $MADE; do mount --bind ${own%=*} ${own#*=}; done
cp -r SCRATCH/units /run/systemd/system
export container=lxc
exec SYSTEMD --system --unit=test.target --log-target=null --show-status=no
"#;

/// Nothing of the machine is started with them.
const ALONE: &str = "[Unit]\nDefaultDependencies=no\n";

impl Machine {
    fn new(drop_in: bool) -> Machine {
        let machine = Machine { home: Home::new() };
        let units = machine.path("units");
        fs::create_dir_all(units.join("cenote.service.d")).unwrap();
        fs::create_dir_all(machine.path("lib/cenote")).unwrap();
        let program = machine.path("lib/program");
        fs::hard_link(CENOTE, &program).or_else(|_| fs::copy(CENOTE, &program).map(drop)).unwrap();
        machine.unit("cenote.service", &packaged("cenote.service", PROGRAM));
        machine.unit("cenote.service.d/alone.conf", ALONE);
        if drop_in {
            machine.unit(DROP_IN, &packaged(DROP_IN, PROGRAM));
        }
        machine.unit("test.target", &format!("{ALONE}Requires=look.service\nAfter=look.service\n"));
        for name in ["sysinit.target", "basic.target", "shutdown.target"] {
            machine.unit(name, ALONE);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.scratch.join(name)
    }

    fn unit(&self, name: &str, text: &str) {
        fs::write(self.path("units").join(name), text).unwrap();
    }

    /// Starts it; `script` is what another process on the machine does, with `set -ex`. What that said, and whether it
    /// came to its end.
    fn run(&self, script: &str) -> (bool, String) {
        let scratch = self.home.scratch.path().display().to_string();
        let fill = |text: &str| {
            let systemd = SYSTEMD.into_iter().find(|path| Path::new(path).exists()).unwrap();
            let inside = self.path("inside.sh").display().to_string();
            text.replace("SCRATCH", &scratch)
                .replace("SYSTEMD", systemd)
                .replace("PATIENCE", PATIENCE)
                .replace("INSIDE", &inside)
        };
        fs::write(self.path("look.sh"), format!("set -ex\n{script}\ntouch {scratch}/done\n")).unwrap();
        let look = format!(
            "{ALONE}[Service]\nType=oneshot\nTimeoutStartSec=200\nEnvironment=CENOTE_HOME=/var/lib/cenote\n\
             ExecStart=sh {scratch}/look.sh\nExecStopPost=systemctl exit 0\n\
             StandardOutput=append:{scratch}/said\nStandardError=append:{scratch}/said\n"
        );
        self.unit("look.service", &look);
        fs::write(self.path("inside.sh"), fill(INSIDE)).unwrap();
        let mut outside = command("sh");
        let output = outside.arg("-c").arg(fill(OUTSIDE)).stdin(Stdio::null()).output().unwrap();
        let said = fs::read_to_string(self.path("said")).unwrap_or_default() + &said(&output);
        (self.path("done").exists(), said)
    }
}

/// Whether systemd can be process 1 of namespaces of its own here.
fn can_run() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        SYSTEMD.iter().any(|path| Path::new(path).exists())
            && Machine::new(false).run("systemctl --version").0
    })
}

/// The file of a pool, where the sandbox lets the service write.
const POOL: &str = "truncate -s 256M /var/lib/cenote/disk
systemctl start cenote.service
systemctl is-active cenote.service
CENOTE zpool create tank /var/lib/cenote/disk
CENOTE zfs create -s -V 16M tank/v
CENOTE zfs set mountpoint=/var/lib/files tank
";

fn succeeds(machine: &Machine, script: &str) -> String {
    let (done, said) = machine.run(&format!("{POOL}{script}").replace("CENOTE", PROGRAM));
    assert!(done, "{said}");
    said
}

fn in_its_sandbox() {
    let machine = Machine::new(false);
    let said = succeeds(
        &machine,
        "CENOTE status
        ! CENOTE zfs mount tank
        ! grep -q /var/lib/files /proc/1/mountinfo
        systemctl show -p CapabilityBoundingSet cenote.service
        systemctl stop cenote.service
        systemctl show -p Result cenote.service | grep Result=success",
    );
    assert!(!said.contains("cap_sys_admin"), "{said}");
    assert!(said.contains("cannot mount 'tank': this process has no CAP_SYS_ADMIN"), "{said}");
}

/// The packaged unit could not mount: /dev/fuse was closed to it, and its mounts would have been in a tree of its own.
fn with_the_drop_in() {
    let machine = Machine::new(true);
    // Another process than the service writes, reads, and sees it again after a restart, and nothing when it has ended.
    succeeds(
        &machine,
        "CENOTE zfs mount tank || grep -q /var/lib/files /proc/1/mountinfo
        grep -q ' /var/lib/files .*nosuid.* - fuse' /proc/1/mountinfo
        echo kept > /var/lib/files/a
        sync /var/lib/files/a
        systemctl restart cenote.service
        grep -q ' /var/lib/files ' /proc/1/mountinfo
        grep kept /var/lib/files/a
        systemctl kill -s KILL cenote.service
        until systemctl restart cenote.service && grep kept /var/lib/files/a; do sleep 1; done
        systemctl stop cenote.service
        systemctl show -p Result cenote.service | grep Result=success
        ! grep -q /var/lib/files /proc/1/mountinfo
        ! test -e /var/lib/files/a",
    );
}
