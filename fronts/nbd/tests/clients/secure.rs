//! Clients that bring their own TLS (GnuTLS), against ours.

use crate::real::{Real, command, output, text};
use crate::{MIB, disk, sparse_bytes};
use authority::{Authority, Issued};
use interop::harness::Need;
use std::path::{Path, PathBuf};
use tls::Identity;

/// Certificates of `rcgen::Certificate`, as the tests of the layer below make them.
#[path = "../../../tls/tests/authority/mod.rs"]
mod authority;

/// libnbd may have been built without GnuTLS.
pub const LIBNBD: Need = Need::Other("a libnbd with TLS", has_tls);

fn has_tls() -> bool {
    let asked = command("nbdinfo").args(["--can", "connect", "nbds://127.0.0.1:1/"]).output();
    asked.is_ok_and(|output| !text(&output).contains("compiled without TLS"))
}

/// A server inside TLS, its authority, and a directory for what clients have.
struct Site {
    authority: Authority,
    dir: PathBuf,
    server: Real,
}

impl Site {
    /// With `checked`, clients must show a certificate.
    fn new(name: &str, checked: bool) -> Site {
        let authority = Authority::new("ours");
        let dir = std::env::temp_dir().join(format!("nbd-tls-{name}-{}", std::process::id()));
        let Issued { certificate, key } = authority.issue(1, &["localhost", "127.0.0.1"]);
        put(&dir.join("server"), &[("server-cert.pem", &certificate), ("server-key.pem", &key)]);
        if checked {
            put(&dir.join("server"), &[("ca-cert.pem", &authority.pem())]);
        }
        let identity = Identity::load(|name| std::fs::read(dir.join("server").join(name))).unwrap();
        let world = linux::Config { cores: Some(2), io_uring: true };
        let server = Real::serve_with(world, name, disk(64 * MIB), Some(identity));
        Site { authority, dir, server }
    }

    /// A directory of a client: the authority that it trusts, and the certificate that it shows.
    fn client(&self, name: &str, trusted: &Authority, own: Option<Issued>) -> PathBuf {
        let dir = self.dir.join(name);
        put(&dir, &[("ca-cert.pem", &trusted.pem())]);
        if let Some(Issued { certificate, key }) = own {
            put(&dir, &[("client-cert.pem", &certificate), ("client-key.pem", &key)]);
        }
        dir
    }

    fn uri(&self, client: &Path) -> String {
        format!("nbds://localhost:{}/disk?tls-certificates={}", self.server.port, client.display())
    }

    fn is_taken(&self, client: &Path) -> bool {
        let asked = command("nbdinfo").args(["--size", &self.uri(client)]).output().unwrap();
        assert!(!asked.status.success() || text(&asked) == "67108864\n", "{}", text(&asked));
        asked.status.success()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn put(dir: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(dir).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(dir.join(name), text).unwrap());
}

pub fn nbdcopy_brings_bytes_there_and_back_inside_tls() {
    let site = Site::new("copy", false);
    let uri = site.uri(&site.client("client", &site.authority, None));
    let server = &site.server;
    let told = output("nbdinfo", &[&uri], &server.dir);
    assert!(told.contains("newstyle-fixed with TLS, using structured packets"), "{told}");
    let bytes = sparse_bytes(8, 50_000_123);
    std::fs::write(server.file("in"), &bytes).unwrap();
    for connections in ["--connections=1", "--connections=4"] {
        output("nbdcopy", &[connections, "--flush", "in", &uri], &server.dir);
        output("nbdcopy", &[connections, &uri, "out"], &server.dir);
        let back = std::fs::read(server.file("out")).unwrap();
        assert!(back[..bytes.len()] == bytes[..] && back[bytes.len()..].iter().all(|&b| b == 0));
        // The same by the socket, where there is no TLS.
        output("nbdcopy", &[&server.unix("disk"), "plain"], &server.dir);
        assert!(std::fs::read(server.file("plain")).unwrap() == back);
    }
}

pub fn clients_without_tls_are_refused() {
    let site = Site::new("plain", false);
    for export in ["disk", ""] {
        let asked = command("nbdinfo").arg(site.server.tcp(export)).output().unwrap();
        assert!(!asked.status.success() && text(&asked).contains("TLS"), "{}", text(&asked));
    }
    let listed = command("nbdinfo").args(["--list", &site.server.tcp("")]).output().unwrap();
    assert!(!text(&listed).contains("disk"), "{}", text(&listed));
    // And the next that has it is served.
    assert!(site.is_taken(&site.client("client", &site.authority, None)));
}

pub fn clients_are_taken_by_their_certificates() {
    let site = Site::new("checked", true);
    let foreign = Authority::new("foreign");
    assert!(!site.is_taken(&site.client("without", &site.authority, None)));
    assert!(!site.is_taken(&site.client("foreign", &site.authority, Some(foreign.issue(5, &["x"])))));
    let own = site.client("own", &site.authority, Some(site.authority.issue(6, &["x"])));
    assert!(site.is_taken(&own));
    std::fs::write(site.server.file("in"), sparse_bytes(9, 1 << 20)).unwrap();
    output("nbdcopy", &["in", &site.uri(&own)], &site.server.dir);
}

pub fn a_client_that_trusts_another_authority_refuses_the_server() {
    let site = Site::new("other", false);
    assert!(!site.is_taken(&site.client("other", &Authority::new("other"), None)));
    assert!(site.is_taken(&site.client("client", &site.authority, None)));
    // It is this server's certificate, and not another's of the same authority.
    let by_address =
        site.uri(&site.client("client", &site.authority, None)).replace("localhost", "127.0.0.2");
    let asked = command("nbdinfo").args(["--size", &by_address]).output().unwrap();
    assert!(!asked.status.success());
}

pub fn qemu_reads_back_what_it_wrote_inside_tls() {
    let site = Site::new("qemu", true);
    let own = site.client("own", &site.authority, Some(site.authority.issue(6, &["x"])));
    let object = format!("tls-creds-x509,id=tls0,dir={},endpoint=client", own.display());
    let image = format!("driver=nbd,host=localhost,port={},export=disk,tls-creds=tls0", site.server.port);
    let script = [
        "write -P 0xab 1M 3M",
        "write -P 0xcd -f 12345 777",
        "aio_write -P 0x11 8M 1M",
        "aio_write -P 0x22 9M 1M",
        "aio_flush",
        "discard 3M 64k",
        "read -P 0xab 1M 1M",
        "read -P 0xcd 12345 777",
        "read -P 0x11 8M 1M",
        "read -P 0x22 9M 1M",
        "read -P 0 3M 64k",
    ];
    let commands: Vec<&str> = script.iter().flat_map(|c| ["-c", c]).collect();
    let options = ["--object", &object, "--image-opts"];
    let said = output("qemu-io", &[&options, &commands[..], &[&image]].concat(), &site.server.dir);
    assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
}
