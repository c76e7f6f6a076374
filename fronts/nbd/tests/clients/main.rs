//! Clients of the trade against a real server: libnbd's tools, QEMU's, fio.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "real clients are programs of the real world"
)]

mod real;
mod secure;

use interop::harness::{self, Need, trial};
use nbd::memory::{MemoryExports, MemoryVolume};
use real::{Real, command, output, text};
use sim::Rng;
use std::process::ExitCode;

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let program = Need::Program;
    harness::main(vec![
        trial(
            "nbdinfo_sees_every_export_and_what_it_can_do",
            &[program("nbdinfo")],
            nbdinfo_sees_every_export_and_what_it_can_do,
        ),
        trial(
            "nbdcopy_brings_bytes_and_holes_there_and_back",
            &[program("nbdcopy"), program("nbdinfo")],
            nbdcopy_brings_bytes_and_holes_there_and_back,
        ),
        trial(
            "qemu_reads_back_what_it_wrote_in_every_way",
            &[program("qemu-io"), program("qemu-img")],
            qemu_reads_back_what_it_wrote_in_every_way,
        ),
        trial(
            "fio_verifies_random_writes_in_parallel",
            &[program("fio")],
            fio_verifies_random_writes_in_parallel,
        ),
        trial(
            "libnbd_gets_every_command_and_error_right",
            &[program("nbdsh")],
            libnbd_gets_every_command_and_error_right,
        ),
        trial(
            "nbdcopy_brings_bytes_there_and_back_inside_tls",
            &[program("nbdcopy"), program("nbdinfo"), secure::LIBNBD],
            secure::nbdcopy_brings_bytes_there_and_back_inside_tls,
        ),
        trial(
            "clients_without_tls_are_refused",
            &[program("nbdinfo"), secure::LIBNBD],
            secure::clients_without_tls_are_refused,
        ),
        trial(
            "clients_are_taken_by_their_certificates",
            &[program("nbdinfo"), secure::LIBNBD],
            secure::clients_are_taken_by_their_certificates,
        ),
        trial(
            "a_client_that_trusts_another_authority_refuses_the_server",
            &[program("nbdinfo"), secure::LIBNBD],
            secure::a_client_that_trusts_another_authority_refuses_the_server,
        ),
        trial(
            "qemu_reads_back_what_it_wrote_inside_tls",
            &[program("qemu-io")],
            secure::qemu_reads_back_what_it_wrote_inside_tls,
        ),
    ])
}

fn disk(size: u64) -> MemoryExports {
    MemoryExports::default().with("disk", MemoryVolume::new(size, 16 << 10))
}

/// Bytes with holes in them, of a length that is no multiple of anything.
fn sparse_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Rng::new(seed);
    let mut bytes = vec![0; len];
    for part in bytes.chunks_mut(100_000) {
        if random.below(3) > 0 {
            part.fill_with(|| random.below(256) as u8);
        }
    }
    bytes
}

fn nbdinfo_sees_every_export_and_what_it_can_do() {
    let read_only = MemoryVolume::new(MIB, 4096).as_read_only();
    let server = Real::serve("info", disk(64 * MIB).with("frozen", read_only));
    let list = output("nbdinfo", &["--list", &server.tcp("")], &server.dir);
    for line in [
        "newstyle-fixed without TLS, using structured packets",
        "export=\"disk\"",
        "description: a volume in memory",
        "export-size: 67108864 (64M)",
        "export=\"frozen\"",
        "base:allocation",
        "block_size_minimum: 1",
        "block_size_preferred: 16384",
        "block_size_maximum: 33554432",
    ] {
        assert!(list.contains(line), "{line}: {list}");
    }
    for (can, export, yes) in [
        ("multi-conn", "disk", true),
        ("fua", "disk", true),
        ("df", "disk", true),
        ("cache", "disk", true),
        ("zero", "disk", true),
        ("fast-zero", "disk", true),
        ("trim", "disk", true),
        ("write", "disk", true),
        ("write", "frozen", false),
        ("trim", "frozen", false),
        ("zero", "frozen", false),
    ] {
        let asked = command("nbdinfo").args(["--can", can, &server.unix(export)]).status();
        assert_eq!(asked.unwrap().success(), yes, "{can} {export}");
    }
    let refused = command("nbdinfo").arg(server.tcp("nothing")).output().unwrap();
    assert!(text(&refused).contains("No such file"), "{}", text(&refused));
    let ambiguous = command("nbdinfo").arg(server.tcp("")).output().unwrap();
    assert!(!ambiguous.status.success(), "two exports, and no default");
}

fn nbdcopy_brings_bytes_and_holes_there_and_back() {
    for io_uring in [true, false] {
        let world = linux::Config { cores: Some(2), io_uring };
        copy_there_and_back(&Real::serve_in(world, &format!("copy-{io_uring}"), disk(64 * MIB)));
    }
}

fn copy_there_and_back(server: &Real) {
    let bytes = sparse_bytes(5, 50_000_123);
    std::fs::write(server.file("in"), &bytes).unwrap();
    for (round, uri) in [server.tcp("disk"), server.unix("disk")].iter().enumerate() {
        let connections = format!("--connections={}", round * 3 + 1);
        output("nbdcopy", &[&connections, "--flush", "in", uri], &server.dir);
        output("nbdcopy", &[&connections, uri, "out"], &server.dir);
        let back = std::fs::read(server.file("out")).unwrap();
        assert!(back[..bytes.len()] == bytes[..] && back[bytes.len()..].iter().all(|&b| b == 0));
    }
    let map = output("nbdinfo", &["--map", "--totals", &server.tcp("disk")], &server.dir);
    assert!(map.contains("hole,zero") && map.contains("data"), "{map}");
}

fn qemu_reads_back_what_it_wrote_in_every_way() {
    let server = Real::serve("qemu", disk(64 * MIB));
    for uri in [server.tcp("disk"), server.unix("disk")] {
        let script = [
            "write -P 0xab 1M 3M",
            "write -P 0xcd -f 12345 777",
            "aio_write -P 0x11 8M 1M",
            "aio_write -P 0x22 9M 1M",
            "aio_flush",
            "write -z 2M 64k",
            "write -z -u 10M 1M",
            "discard 3M 64k",
            "flush",
            "read -P 0xab 1M 1M",
            "read -P 0xcd 12345 777",
            "read -P 0x11 8M 1M",
            "read -P 0x22 9M 1M",
            "read -P 0 2M 64k",
            "read -P 0 3M 64k",
            "read -P 0 10M 1M",
        ];
        let commands: Vec<&str> = script.iter().flat_map(|c| ["-c", c]).collect();
        let said = output("qemu-io", &[&["-f", "raw"], &commands[..], &[&uri]].concat(), &server.dir);
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    }
    let json = output("qemu-img", &["map", "--output=json", "-f", "raw", &server.tcp("disk")], &server.dir);
    let hole = "\"start\": 3145728, \"length\": 65536, \"depth\": 0, \"present\": true, \"zero\": true, \"data\": false";
    assert!(json.contains(hole), "{json}");

    std::fs::write(server.file("image"), sparse_bytes(6, 64 << 20)).unwrap();
    let uri = server.unix("disk");
    output("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "image", &uri], &server.dir);
    output("qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &uri], &server.dir);
}

fn fio_verifies_random_writes_in_parallel() {
    let server = Real::serve("fio", disk(64 * MIB));
    let uri = format!("--uri={}", server.tcp("disk"));
    for (rw, bs, depth) in
        [("randwrite", "4k-4k", "32"), ("randrw", "512-96k", "16"), ("write", "1m-1m", "8")]
    {
        let said = output(
            "fio",
            &[
                "--name=verify",
                "--ioengine=nbd",
                &uri,
                "--size=64m",
                "--io_size=96m",
                "--verify=crc32c",
                "--verify_fatal=1",
                "--verify_state_save=0",
                &format!("--rw={rw}"),
                &format!("--bsrange={bs}"),
                &format!("--iodepth={depth}"),
            ],
            &server.dir,
        );
        assert!(said.contains("err= 0"), "{said}");
    }
}

/// What only a client that builds its requests by hand can ask.
fn libnbd_gets_every_command_and_error_right() {
    let read_only = MemoryVolume::new(MIB, 4096).as_read_only();
    let server = Real::serve("sh", disk(64 * MIB).with("frozen", read_only));
    let script = r#"
import nbd, errno

def fails(number, f):
    try:
        f()
    except nbd.Error as e:
        assert e.errnum == number, (e.errnum, number)
        return
    assert False, "it should have failed"

def connect(export, structured=True):
    h = nbd.NBD()
    h.set_strict_mode(0)
    h.set_request_structured_replies(structured)
    h.add_meta_context("base:allocation")
    h.set_export_name(export)
    h.connect_tcp("127.0.0.1", "PORT")
    return h

for structured in (True, False):
    h = connect("disk", structured)
    assert h.get_structured_replies_negotiated() == structured
    assert h.get_size() == 64 << 20
    data = bytes(range(256)) * 300
    h.pwrite(data, 4000, nbd.CMD_FLAG_FUA)
    assert h.pread(len(data), 4000) == data
    assert h.pread(0, 0) == b""
    h.pwrite(b"", 0)
    h.zero(4096, 4096, nbd.CMD_FLAG_NO_HOLE)
    h.zero(16384, 16384, nbd.CMD_FLAG_FAST_ZERO)
    fails(errno.ENOTSUP, lambda: h.zero(16384, 16384, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE))
    assert h.pread(4096, 4096) == bytes(4096)
    h.cache(1 << 20, 0)
    h.trim(16384, 32768, nbd.CMD_FLAG_FUA)
    h.flush()
    end = 64 << 20
    fails(errno.EINVAL, lambda: h.pread(512, end))
    fails(errno.ENOSPC, lambda: h.pwrite(bytes(512), end - 511))
    fails(errno.ENOSPC, lambda: h.zero(512, end - 511))
    fails(errno.EINVAL, lambda: h.trim(512, end - 511))
    fails(errno.EINVAL, lambda: h.pwrite(bytes(512), 0, nbd.CMD_FLAG_DF))
    assert h.pread(32 << 20, 0)[4000:4096] == data[:96]
    h.pwrite(bytes([9]) * (32 << 20), 32 << 20)
    assert h.pread(10, (64 << 20) - 10) == bytes([9]) * 10
    h.trim(64 << 20, 0)
    h.shutdown()

h = connect("disk")
h.pwrite(bytes([1]) * 16384, 16384)
chunks = []
def chunk(data, offset, status, error):
    chunks.append((offset, len(data), status))
h.pread_structured(65536, 0, chunk)
assert chunks == [(0, 16384, nbd.READ_HOLE), (16384, 16384, nbd.READ_DATA), (32768, 32768, nbd.READ_HOLE)], chunks
chunks.clear()
h.pread_structured(65536, 0, chunk, nbd.CMD_FLAG_DF)
assert chunks == [(0, 65536, nbd.READ_DATA)], chunks
extents = []
def extent(context, offset, entries, error):
    assert context == "base:allocation"
    extents.append((offset, entries))
h.block_status(64 << 20, 0, extent)
assert extents == [(0, [16384, 3, 16384, 0, (64 << 20) - 32768, 3])], extents
extents.clear()
h.block_status(1 << 20, 100, extent, nbd.CMD_FLAG_REQ_ONE)
assert extents == [(100, [16284, 3])], extents
h.shutdown()

h = connect("frozen")
assert h.is_read_only()
fails(errno.EPERM, lambda: h.pwrite(bytes(512), 0))
fails(errno.EPERM, lambda: h.trim(512, 0))
fails(errno.EPERM, lambda: h.zero(512, 0))
assert h.pread(1 << 20, 0) == bytes(1 << 20)
h.shutdown()
"#;
    let script = script.replace("PORT", &server.port.to_string());
    std::fs::write(server.file("script.py"), script).unwrap();
    output("nbdsh", &["-c", "exec(open('script.py').read())"], &server.dir);
}
