//! Clients of the trade against a real server: libiscsi's tools and conformance suite, QEMU's.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "real clients are programs of the real world"
)]

mod conformance;
mod failover;
mod idle;
mod initiator;
mod real;

use interop::harness::{self, Need, trial};
use interop::programs;
use iscsi::Credentials;
use iscsi::memory::{MemoryDirectory, device};
use real::{Real, limited, output};
use scsi::memory::MemoryUnit;
use sim::Rng;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const TARGET: &str = "iqn.2026-11.org.example:t";
const QEMU: Need = Need::Other("QEMU with iSCSI (qemu-utils, qemu-block-extra)", || {
    let module = |dir: &str| Path::new(dir).join("qemu/block-iscsi.so").is_file();
    let dirs = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    programs::find("qemu-io").is_some() && dirs.into_iter().any(module)
});

fn main() -> ExitCode {
    if idle::was_clients() {
        return ExitCode::SUCCESS;
    }
    let program = Need::Program;
    harness::main(vec![
        trial(
            "every_conformance_test_ends_as_expected",
            &[program("iscsi-test-cu"), program("timeout")],
            conformance::every_conformance_test_ends_as_expected,
        ),
        trial(
            "libiscsi_discovers_what_it_was_given_and_proves_who_it_is",
            &[program("iscsi-ls"), program("timeout")],
            libiscsi_discovers_what_it_was_given_and_proves_who_it_is,
        ),
        trial(
            "qemu_reads_back_what_it_wrote_in_every_way",
            &[QEMU, program("timeout")],
            qemu_reads_back_what_it_wrote_in_every_way,
        ),
        trial(
            "one_of_two_portals_dies_under_load_and_io_goes_on",
            &[],
            failover::one_of_two_portals_dies_under_load_and_io_goes_on,
        ),
        trial(
            "idle_clients_cost_little_and_slow_nobody",
            &[],
            idle::idle_clients_cost_little_and_slow_nobody,
        )
        .alone(),
    ])
}

fn disk(size: u64) -> MemoryDirectory {
    MemoryDirectory::default().with(TARGET, 0, device(Arc::new(MemoryUnit::new(size, 16 << 10)), 1))
}

fn libiscsi_discovers_what_it_was_given_and_proves_who_it_is() {
    let server = Real::serve("ls", 1, || {
        let directory = disk(64 << 20);
        let (second, third) = (MemoryUnit::new(1 << 20, 4096), MemoryUnit::new(1 << 20, 4096));
        directory.add(TARGET, 300, device(Arc::new(second), 2));
        directory.add("iqn.2026-11.org.example:hidden", 0, device(Arc::new(third), 3));
        directory.only_for("iqn.2026-11.org.example:hidden", "iqn.2026-11.org.example:other");
        let secret = |name: &str, secret: &str| Credentials { name: name.into(), secret: secret.into() };
        directory.protect(TARGET, secret("me", "a long secret"), Some(secret("we", "our own secret")));
        directory
    });
    let found = output("iscsi-ls", &[&server.portal()], &server.dir);
    assert!(found.contains(TARGET), "{found}");
    assert!(!found.contains("hidden"), "{found}");
    let with = |who: &str| server.unit(TARGET, 0).replace("iscsi://", &format!("iscsi://{who}@"));
    let inquired = output("iscsi-inq", &[&with("me%a long secret")], &server.dir);
    assert!(inquired.contains("Vendor:CENOTE"), "{inquired}");
    let both = format!("{}?target_user=we&target_password=our own secret", with("me%a long secret"));
    assert!(output("iscsi-inq", &[&both], &server.dir).contains("Vendor:CENOTE"));
    let digests = format!("{}?header_digest=crc32c", with("me%a long secret"));
    assert!(output("iscsi-inq", &[&digests], &server.dir).contains("Vendor:CENOTE"));
    for wrong in [server.unit(TARGET, 0), with("me%another secret"), with("you%a long secret")] {
        let refused = limited(20, "iscsi-inq", &[&wrong], &server.dir);
        assert!(!programs::said(&refused).contains("Vendor:"), "{wrong}");
    }
}

fn qemu_reads_back_what_it_wrote_in_every_way() {
    let server = Real::serve("qemu", 1, || disk(64 << 20));
    let url = server.unit(TARGET, 0);
    let script = [
        "write -P 0xab 1M 3M",
        "write -P 0xcd -f 12800 1024",
        "aio_write -P 0x11 8M 1M",
        "aio_write -P 0x22 9M 1M",
        "aio_flush",
        "write -z 2M 64k",
        "write -z -u 10M 1M",
        "discard 3M 64k",
        "flush",
        "read -P 0xab 1M 1M",
        "read -P 0xcd 12800 1024",
        "read -P 0x11 8M 1M",
        "read -P 0x22 9M 1M",
        "read -P 0 2M 64k",
        "read -P 0 3M 64k",
        "read -P 0 10M 1M",
    ];
    let commands: Vec<&str> = script.iter().flat_map(|c| ["-c", c]).collect();
    let said = output("qemu-io", &[&["-f", "raw"], &commands[..], &[&url]].concat(), &server.dir);
    assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    let map = output("qemu-img", &["map", "--output=json", "-f", "raw", &url], &server.dir);
    assert!(
        map.contains("\"start\": 3145728, \"length\": 65536") && map.contains("\"data\": false"),
        "{map}"
    );
    let mut random = Rng::new(6);
    let mut image = vec![0; 64 << 20];
    for part in image.chunks_mut(100_000) {
        if random.below(3) > 0 {
            part.fill_with(|| random.below(256) as u8);
        }
    }
    std::fs::write(server.dir.join("image"), image).unwrap();
    output("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "image", &url], &server.dir);
    output("qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &url], &server.dir);
    let bench = ["bench", "-f", "raw", "-t", "none", "-c", "2000", "-d", "32", "-s", "4096", &url];
    output("qemu-img", &bench, &server.dir);
}
