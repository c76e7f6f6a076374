//! Drivers for such appliances, as they come, against the daemon: Cinder's, Manila's, and the CSI driver of Kubernetes.
//!
//! ```text
//!   package registry ──▶ a wheel, a module ──▶ the driver's own classes ──HTTPS──▶ the daemon
//!                        beside the tests,     unmodified; what they import of
//!                        never in them         OpenStack is `tests/drivers/openstack.py`
//! ```
//!
//! `tests/drivers` holds the calls of a volume's life and of a share's. A driver that cannot be had, since there is no
//! network or no such package, is named, and its test is counted as ignored.

use crate::api::{post_through_the_socket, url};
use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run, said};
use interop::root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The last release with this driver.
const CINDER: (&str, &str) = ("cinder", "15.6.0");
const MANILA: (&str, &str) = ("manila", "23.0.1");
const MODULE: &str = "github.com/oracle/zfssa-csi-driver";
/// A checkout of it, for machines whose module proxy does not have it.
const CHECKOUT: &str = "CENOTE_CSI_DRIVER";
/// What the two packages of the driver import, in its own versions.
const IMPORTS: &str = "require (
	github.com/golang/protobuf v1.5.2
	golang.org/x/net v0.7.0
	google.golang.org/grpc v1.47.0
	gopkg.in/yaml.v3 v3.0.1
	k8s.io/klog/v2 v2.90.1
)";

pub fn trials() -> Vec<Trial> {
    let python = Need::Program("python3");
    let cinder = Need::Other("cinder 15.6.0 from the Python package index", || wheel(CINDER).is_some());
    let manila = Need::Other("manila 23.0.1 from the Python package index", || wheel(MANILA).is_some());
    let csi = Need::Other(
        "github.com/oracle/zfssa-csi-driver from the Go module proxy, or a checkout of it in CENOTE_CSI_DRIVER",
        || module().is_some(),
    );
    vec![
        trial("cinders_driver_runs_a_volumes_life", &[python.clone(), cinder], || python_driver(CINDER)),
        trial("manilas_driver_runs_a_shares_life", &[python, manila], || python_driver(MANILA)),
        trial("the_csi_driver_runs_a_volumes_life", &[Need::Program("go"), csi], csi_driver),
    ]
}

/// Where packages are kept between runs.
fn cache() -> PathBuf {
    std::env::temp_dir().join("cenote-drivers")
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The wheel of a package, from the registry when it was not fetched before.
fn wheel((name, version): (&str, &str)) -> Option<PathBuf> {
    let kept = cache().join(format!("{name}-{version}"));
    if !kept.exists() {
        let fetched = interop::Scratch::new();
        let package = format!("{name}=={version}");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--retries", "1"]);
        if !succeeds(pip.arg("-d").arg(fetched.path()).arg(package)) {
            return None;
        }
        std::fs::create_dir_all(cache()).ok()?;
        keep(fetched.path(), &kept);
    }
    let mut files = std::fs::read_dir(&kept).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| path.extension().is_some_and(|e| e == "whl"))
}

/// Copies to beside its place and renames: another run may do the same.
fn keep(from: &Path, to: &Path) {
    let beside = to.with_extension(format!("{}", std::process::id()));
    let copied = succeeds(Command::new("cp").arg("-r").arg(from).arg(&beside));
    let _ = std::fs::rename(&beside, to);
    assert!(copied, "{} cannot be copied", from.display());
}

/// A directory with the driver's sources.
fn module() -> Option<PathBuf> {
    if let Some(checkout) = std::env::var_os(CHECKOUT) {
        return Some(PathBuf::from(checkout)).filter(|dir| dir.join("pkg/zfssarest").is_dir());
    }
    let empty = interop::Scratch::new();
    let mut go = Command::new("go");
    let go = go.args(["mod", "download", "-json", &format!("{MODULE}@latest")]).current_dir(empty.path());
    let output = go.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(told["Dir"].as_str()?))
}

/// A home with a pool of some GiB, the daemon, the address of its API and root's password.
fn served(home: &Home) -> (crate::home::Daemon, String, String) {
    let disk = home.scratch.join("big.img");
    std::fs::File::create(&disk).unwrap().set_len(16 << 30).unwrap();
    home.run(&format!("zpool create tank {}", disk.display()));
    home.run("zfs create tank/plain");
    home.run("zfs create -s -V 16M tank/plain/volume");
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --https 127.0.0.1:0 --log error");
    let password = home.run("password --generate").trim().to_string();
    let address = url(home).trim_start_matches("https://").to_string();
    (daemon, address, password)
}

fn scripts() -> PathBuf {
    root().join("control/daemon/tests/drivers")
}

fn python_driver(package: (&str, &str)) {
    let home = Home::new();
    let (daemon, address, password) = served(&home);
    let wheel = wheel(package).unwrap();
    let script = scripts().join(format!("{}.py", package.0));
    let mut python = command("python3");
    python.arg("-B").arg(script).arg(wheel).args([address, password]);
    // Manila's driver asks for a certificate that is signed.
    let output = python.env("SSL_CERT_FILE", home.dir().join("tls/cert.pem")).output().unwrap();
    let text = said(&output);
    let answered = output.stdout.ends_with(b"all calls were answered\n");
    assert!(output.status.success() && answered, "{text}");
    daemon.end();
}

fn csi_driver() {
    let home = Home::new();
    let (daemon, address, password) = served(&home);
    home.run("zfs destroy -r tank/plain");
    let node = "iqn.2010-10.org.kubernetes:worker-1";
    for (path, body) in [
        ("storage/v1/pools/tank/projects", r#"{"name": "k8s"}"#.to_string()),
        ("san/v1/iscsi/targets", r#"{"alias": "k8s", "iqn": "iqn.2026-11.com.example:k8s"}"#.into()),
        (
            "san/v1/iscsi/target-groups",
            r#"{"name": "tg", "targets": ["iqn.2026-11.com.example:k8s"]}"#.into(),
        ),
        ("san/v1/iscsi/initiator-groups", format!(r#"{{"name": "worker-1", "initiators": ["{node}"]}}"#)),
    ] {
        post_through_the_socket(&home, &format!("/api/{path}"), &body);
    }
    let build = home.scratch.join("csi");
    std::fs::create_dir_all(build.join("pkg")).unwrap();
    for package in ["zfssarest", "utils"] {
        let from = module().unwrap().join("pkg").join(package);
        run(command("cp").args(["-r", "--no-preserve=mode"]).arg(from).arg(build.join("pkg").join(package)));
    }
    std::fs::copy(scripts().join("csi_test.go"), build.join("pkg/zfssarest/csi_test.go")).unwrap();
    std::fs::write(build.join("go.mod"), format!("module {MODULE}\n\ngo 1.21\n\n{IMPORTS}\n")).unwrap();
    let mut go = command("go");
    // The driver's own sources are not vetted here.
    go.args(["test", "-vet=off", "-count=1", "./pkg/zfssarest"]).current_dir(&build);
    go.env("GOFLAGS", "-mod=mod").env("CENOTE_ADDRESS", address).env("CENOTE_PASSWORD", password);
    let output = go.env("CENOTE_CERTIFICATE", home.dir().join("tls/cert.pem")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    daemon.end();
}
