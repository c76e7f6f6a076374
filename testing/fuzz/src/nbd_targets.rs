//! NBD: options before an export is chosen, and requests after.

use nbd::memory::{MemoryExports, MemoryVolume};
use nbd::{Config, Server};
use std::sync::Arc;
use std::time::Duration;
use world::{Address, Buf, IoBuf, Stream};

const NAME: &str = "disk";
const OPTION: &[u8; 8] = b"IHAVEOPT";

fn serve() -> (Server, Address) {
    let short = Duration::from_millis(100);
    let config = Config { negotiation_timeout: short, stall_timeout: short, ..Config::default() };
    let exports = MemoryExports::default().with(NAME, MemoryVolume::new(8 << 20, 16 << 10));
    let server = Server::new(Arc::new(exports), Default::default(), config);
    let address = server.listen(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a simulated port is free");
    (server, address)
}

async fn say(stream: &dyn Stream, bytes: &[u8]) {
    // A server that has hung up is not listened to.
    let _ = stream.send(vec![Buf::copy_from(bytes)]).await;
}

/// Reads until the server hangs up, or says nothing more for a while; how much it said.
async fn hear(stream: &dyn Stream) -> usize {
    let mut heard = 0;
    loop {
        let receiving = stream.recv(IoBuf::zeroed(16 << 10), 0..16 << 10);
        let Some((_, Ok(len @ 1..))) = world::timeout(Duration::from_millis(20), receiving).await else {
            return heard;
        };
        heard += len;
    }
}

async fn settles(server: &Server, address: &Address) {
    world::sleep(Duration::from_secs(2)).await;
    assert!(server.clients().is_empty(), "a connection was left behind");
    let stream = sim::connect(address).expect("the server listens");
    assert!(chooses(&*stream).await, "the server does not answer any more");
    server.stop().await;
}

/// Chooses the export, in the old way.
async fn chooses(stream: &dyn Stream) -> bool {
    say(stream, &[&3u32.to_be_bytes()[..], &option(1, NAME.as_bytes())].concat()).await;
    // The greeting, the size, the flags.
    hear(stream).await == 18 + 10
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [&OPTION[..], &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

fn conversation(bytes: &[u8], in_export: bool) {
    let bytes = bytes.to_vec();
    sim::run(1, sim::Config::default(), async move {
        let (server, address) = serve();
        let stream = sim::connect(&address).expect("the server listens");
        if in_export {
            assert!(chooses(&*stream).await, "the export is there");
        }
        say(&*stream, &bytes).await;
        hear(&*stream).await;
        drop(stream);
        settles(&server, &address).await;
    });
}

/// What is sent instead of client flags and options.
///
/// # Panics
/// When the server does not stand it.
pub fn nbd_options(bytes: &[u8]) {
    conversation(bytes, false);
}

/// What is sent after an export was chosen.
///
/// # Panics
/// When the server does not stand it.
pub fn nbd_requests(bytes: &[u8]) {
    conversation(bytes, true);
}

pub(crate) fn option_seeds() -> Vec<Vec<u8>> {
    let name = [&(NAME.len() as u32).to_be_bytes()[..], NAME.as_bytes()].concat();
    let query = [&name[..], b"\0\0\0\x01\0\0\0\x0fbase:allocation"].concat();
    let info = [&name[..], &[0, 2, 0, 1, 0, 3]].concat();
    let with = |options: &[Vec<u8>]| [&3u32.to_be_bytes()[..], &options.concat()].concat();
    vec![
        with(&[option(1, NAME.as_bytes())]),
        with(&[option(3, &[]), option(2, &[])]),
        with(&[option(8, &[]), option(9, &query), option(10, &query), option(6, &info), option(7, &info)]),
        with(&[option(5, &[]), option(11, &[]), option(99, b"unknown"), option(2, &[])]),
    ]
}

pub(crate) fn request_seeds() -> Vec<Vec<u8>> {
    let request = |flags: u16, command: u16, cookie: u64, offset: u64, len: u32, data: &[u8]| {
        let magic = 0x2560_9513u32.to_be_bytes();
        let head = [&magic[..], &flags.to_be_bytes(), &command.to_be_bytes(), &cookie.to_be_bytes()].concat();
        [&head[..], &offset.to_be_bytes(), &len.to_be_bytes(), data].concat()
    };
    vec![
        request(0, 0, 1, 4096, 8192, &[]),
        [request(1, 1, 1, 512, 1024, &[7; 1024]), request(0, 3, 2, 0, 0, &[])].concat(),
        [request(0, 4, 1, 0, 65536, &[]), request(2, 6, 2, 65536, 65536, &[])].concat(),
        [request(0, 7, 1, 0, 1 << 20, &[]), request(0, 5, 2, 0, 512, &[]), request(0, 2, 3, 0, 0, &[])]
            .concat(),
    ]
}
