//! iSCSI, from the first byte: the text of a login, and what comes after one.

use iscsi::memory::{MemoryDirectory, device};
use iscsi::{Config, Credentials, Server};
use scsi::memory::MemoryUnit;
use std::sync::Arc;
use std::time::Duration;
use world::{Address, Buf, IoBuf, Stream};

const TARGET: &str = "iqn.2026-11.org.example:t";
const HEADER: usize = 48;

fn config() -> Config {
    let short = Duration::from_millis(100);
    Config { login_timeout: short, ping_interval: short, stall_timeout: short, ..Config::default() }
}

fn serve(protected: bool) -> (Server, Address) {
    let unit = Arc::new(MemoryUnit::new(8 << 20, 16 << 10));
    let directory = MemoryDirectory::default().with(TARGET, 0, device(unit, 1));
    if protected {
        let secret = |name: &str| Credentials { name: name.into(), secret: b"a long secret".to_vec() };
        directory.protect(TARGET, secret("me"), Some(secret("we")));
    }
    let server = Server::new(Arc::new(directory), Default::default(), config());
    let portal = server.listen(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a simulated port is free");
    (server, portal)
}

fn login_header(flags: u8, len: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    (header[0], header[1], header[8]) = (0x43, flags, 0x80);
    header[5..8].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
    header[24..28].copy_from_slice(&1u32.to_be_bytes());
    header
}

fn pdu(mut header: [u8; HEADER], data: &[u8]) -> Vec<u8> {
    header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
    let mut bytes = [&header[..], data].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn proper_login() -> Vec<u8> {
    let text = format!("InitiatorName=iqn.2026-11.org.example:i\0TargetName={TARGET}\0SessionType=Normal\0");
    pdu(login_header(0x87, text.len()), text.as_bytes())
}

async fn say(stream: &dyn Stream, bytes: &[u8]) {
    // A server that has hung up is not listened to.
    let _ = stream.send(vec![Buf::copy_from(bytes)]).await;
}

/// Reads until the server hangs up, or says nothing more for a while; the first bytes of it.
async fn hear(stream: &dyn Stream) -> Vec<u8> {
    let mut heard = Vec::new();
    loop {
        let receiving = stream.recv(IoBuf::zeroed(16 << 10), 0..16 << 10);
        let Some((buf, Ok(len @ 1..))) = world::timeout(Duration::from_millis(20), receiving).await else {
            return heard;
        };
        if heard.len() < HEADER {
            heard.extend(&buf[..len]);
        }
    }
}

/// A well-behaved client is served all the same, and no other session is left.
async fn settles(server: &Server, portal: &Address) {
    world::sleep(Duration::from_secs(2)).await;
    assert!(server.clients().is_empty(), "a session was left behind");
    let stream = sim::connect(portal).expect("the server listens");
    let open = serve_login(&*stream).await;
    assert!(open, "the server does not answer any more");
    server.stop().await;
}

async fn serve_login(stream: &dyn Stream) -> bool {
    say(stream, &proper_login()).await;
    let heard = hear(stream).await;
    heard.first() == Some(&0x23)
}

/// The first two bytes are flags of the request and whether secrets are asked for; the rest is text.
///
/// # Panics
/// When the server does not stand it.
pub fn iscsi_login(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    sim::run(1, sim::Config::default(), async move {
        let (how, text) = crate::split(&bytes);
        let (server, portal) = serve(how & 1 != 0);
        let stream = sim::connect(&portal).expect("the server listens");
        for part in text.chunks((how >> 8).max(1) * 64).take(8) {
            say(&*stream, &pdu(login_header(how as u8 | 0x80, part.len()), part)).await;
            hear(&*stream).await;
        }
        drop(stream);
        settles(&server, &portal).await;
    });
}

/// What is sent after a login went well.
///
/// # Panics
/// When the server does not stand it.
pub fn iscsi_pdus(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    sim::run(1, sim::Config::default(), async move {
        let (server, portal) = serve(false);
        let stream = sim::connect(&portal).expect("the server listens");
        assert!(serve_login(&*stream).await, "a proper login succeeds");
        say(&*stream, &bytes).await;
        hear(&*stream).await;
        drop(stream);
        settles(&server, &portal).await;
    });
}

pub(crate) fn login_seeds() -> Vec<Vec<u8>> {
    let names = format!("InitiatorName=iqn.2026-11.org.example:i\0TargetName={TARGET}\0SessionType=Normal\0");
    let keys = "HeaderDigest=CRC32C,None\0DataDigest=None\0MaxRecvDataSegmentLength=262144\0MaxBurstLength=16776192\0\
                FirstBurstLength=65536\0InitialR2T=No\0ImmediateData=Yes\0MaxOutstandingR2T=8\0ErrorRecoveryLevel=0\0\
                DefaultTime2Wait=2\0DefaultTime2Retain=0\0MaxConnections=1\0DataPDUInOrder=Yes\0IFMarker=No\0X-new=1\0";
    let chap = "AuthMethod=CHAP,None\0CHAP_A=5,7\0CHAP_N=me\0CHAP_R=0x00112233445566778899aabbccddeeff\0CHAP_I=1\0CHAP_C=0bAAAA\0";
    let seed = |how: u16, text: &str| [&how.to_be_bytes()[..], text.as_bytes()].concat();
    vec![
        seed(0xff86, &names),
        seed(0xff86, &format!("{names}{keys}")),
        seed(0xff81, &format!("{names}{chap}")),
        seed(0x0181, &format!("{names}{chap}{keys}")),
        seed(0xffc6, &format!("{names}{keys}")),
        seed(0xff86, "InitiatorName=x\0SessionType=Discovery\0"),
    ]
}

pub(crate) fn pdu_seeds() -> Vec<Vec<u8>> {
    let command = |sn: u8, cdb: &[u8], flags: u8, len: u32, data: &[u8]| {
        let mut header = [0; HEADER];
        (header[0], header[1], header[19], header[27]) = (1, flags, sn, sn);
        header[20..24].copy_from_slice(&len.to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        pdu(header, data)
    };
    let other = |opcode: u8, flags: u8, sn: u8, data: &[u8]| {
        let mut header = [0; HEADER];
        (header[0], header[1], header[19], header[27]) = (opcode, flags, sn, sn);
        header[20..24].fill(0xff);
        pdu(header, data)
    };
    let ready = command(1, &[0; 6], 0x81, 0, &[]);
    let write = command(2, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 4, 0], 0xa1, 2048, &[5; 2048]);
    let read = command(3, &[0x28, 0, 0, 0, 0, 0, 0, 0, 4, 0], 0xc1, 2048, &[]);
    let long = command(4, &[0x2a, 0, 0, 0, 0, 0, 0, 1, 0, 0], 0xa1, 128 << 10, &[5; 4096]);
    let mut data = [0; HEADER];
    (data[0], data[1], data[19]) = (5, 0x80, 4);
    data[20..24].copy_from_slice(&1u32.to_be_bytes());
    data[42] = 0x10;
    vec![
        [ready.clone(), write.clone(), read].concat(),
        [ready.clone(), write, long, pdu(data, &[6; 8192])].concat(),
        [ready.clone(), other(0, 0x80, 5, b"ping")].concat(),
        [ready.clone(), other(2, 0x81, 5, &[])].concat(),
        [ready.clone(), other(2, 0x85, 5, &[])].concat(),
        [ready.clone(), other(4, 0x80, 5, b"SendTargets=\0")].concat(),
        [ready.clone(), other(6, 0x80, 5, &[])].concat(),
        [ready, other(0x10, 0x80, 5, &[])].concat(),
    ]
}
