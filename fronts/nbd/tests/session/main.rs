//! Sessions from end to end, in memory: what a client is promised, and what it cannot do to us.

#![allow(clippy::unwrap_used)]

mod peer;
mod pipe;
mod secure;
mod slow;

use nbd::memory::{MemoryExports, MemoryVolume};
use nbd::{Config, Places, Server, Volume};
use peer::*;
use probe::{Hub, Opened};
use sim::Rng;
use slow::Slow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs a test in a simulated world: time passes only when everybody waits.
fn run<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    sim::run(1, sim::Config::default(), test)
}

const SIZE: u64 = 4 << 20;
const BLOCK: u32 = 4096;

fn memory() -> MemoryVolume {
    MemoryVolume::new(SIZE, BLOCK)
}

/// Without a hole, so that a read sends every byte.
async fn written() -> MemoryVolume {
    let volume = memory();
    volume.write(0, vec![world::Buf::zeroed(SIZE as usize)], false).await.expect("memory can be written");
    volume
}

fn serve(volume: impl Volume + 'static, config: Config) -> (Server, Arc<MemoryExports>) {
    let exports = Arc::new(MemoryExports::default().with("vol", volume));
    (Server::new(exports.clone(), Default::default(), config), exports)
}

/// Waits for the sessions to notice that their clients have gone.
async fn until_closed(exports: &MemoryExports) {
    for _ in 0..1000 {
        if exports.open_count() == 0 {
            return;
        }
        world::sleep(Duration::from_millis(5)).await;
    }
    panic!("the volume is still held");
}

#[test]
fn a_volume_can_be_read_written_zeroed_trimmed_and_mapped() {
    run(async {
        let (server, exports) = serve(memory(), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        assert_eq!(exports.open_count(), 1);
        assert_eq!(peer.ask(&write(1, 5000, &[7; 9000])).await, Reply { cookie: 1, ..Reply::default() });
        let reply = peer.ask(&request(READ, 0, 2, 4096, 12288)).await;
        assert_eq!((reply.cookie, reply.error), (2, 0));
        assert_eq!(reply.data, [vec![0; 904], vec![7; 9000], vec![0; 2384]].concat());
        assert_eq!(peer.ask(&request(WRITE_ZEROES, 0, 3, 8192, 4096)).await.error, 0);
        assert_eq!(peer.ask(&request(TRIM, 1, 4, 0, 8192)).await.error, 0);
        assert_eq!(peer.ask(&request(FLUSH, 0, 5, 0, 0)).await.error, 0);
        let map = peer.ask(&request(BLOCK_STATUS, 0, 6, 0, SIZE as u32)).await;
        assert_eq!(map.extents, [(12288, 3), (4096, 0), (SIZE as u32 - 16384, 3)]);
        peer.send(&request(DISCONNECT, 0, 7, 0, 0)).await;
        assert!(peer.is_hung_up_on().await);
        until_closed(&exports).await;
    });
}

#[test]
fn every_request_is_counted_where_the_client_is() {
    run(async {
        let hub = Hub::new();
        let volume = Slow::new(memory(), Duration::from_millis(10));
        let exports = Arc::new(MemoryExports::default().with("vol", volume));
        let server = Server::new(exports, hub.clone(), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        let open = |query: &str| hub.open(&query.parse().unwrap()).unwrap();
        let (ops, bytes) = (open("nbd.ops[share=vol][client=peer][op]"), open("nbd.bytes[op]"));
        let at_once = open("nbd.ops[latency<10ms][op]");
        for cookie in 0..3 {
            peer.ask(&request(READ, 0, cookie, 12288, 4096)).await;
        }
        peer.ask(&write(4, 12288, &[1; 8192])).await;
        peer.ask(&write(5, SIZE, &[1])).await;
        peer.ask(&request(FLUSH, 0, 6, 0, 0)).await;
        peer.ask(&request(BLOCK_STATUS, 0, 7, 0, 4096)).await;
        let parts = |opened: &Opened| {
            let parts = opened.take().parts;
            parts.iter().map(|(key, part)| (key.to_string(), *part)).collect::<BTreeMap<_, _>>()
        };
        let of = |name: &str, count| (name.to_string(), count);
        assert_eq!(parts(&ops), [of("read", 3), of("write", 2), of("flush", 1)].into());
        assert_eq!(parts(&bytes), [of("read", 12288), of("write", 8193)].into());
        assert_eq!(parts(&at_once), [of("write", 1)].into(), "the one that was refused");
        let clients = server.clients();
        assert_eq!((clients[0].reads, clients[0].read_bytes, clients[0].writes), (3, 12288, 2));
        drop(peer);
        while !server.clients().is_empty() {
            world::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn the_time_of_requests_is_told_by_what_they_waited_in() {
    run(async {
        let hub = Hub::new();
        let exports = MemoryExports::default().with("vol", Slow::new(memory(), Duration::from_millis(10)));
        let server = Server::new(Arc::new(exports), hub.clone(), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        // Before it is asked for no request is timed, and after it has been closed.
        peer.ask(&request(READ, 0, 1, 12288, 4096)).await;
        let open = |query: &str| hub.open(&query.parse().unwrap()).unwrap();
        let (whole, stages) = (open("nbd.time"), open("nbd.time[stage]"));
        let (slow, writes) = (open("nbd.time[latency>=30ms][stage]"), open("nbd.time[stage=wire][op]"));
        peer.ask(&request(READ, 0, 2, 12288, 4096)).await;
        let data = vec![7; 100_000];
        let long = write(3, 12288, &data);
        let (first, rest) = long.split_at(50_000);
        peer.send(first).await;
        world::sleep(Duration::from_millis(30)).await;
        assert_eq!(peer.ask(rest).await.error, 0);
        let parts = |opened: &Opened| {
            let parts = opened.take().parts;
            let ms = |part: u64| (part as f64 / 1e6).round() as u64;
            parts.iter().map(|(key, part)| (key.to_string(), ms(*part))).collect::<BTreeMap<_, _>>()
        };
        let of = |name: &str, ms| (name.to_string(), ms);
        // The volume is no engine, and its operations are work.
        assert_eq!(whole.take().value / 1_000_000, 50);
        assert_eq!(parts(&stages), [of("wire", 30), of("work", 20)].into());
        assert_eq!(parts(&slow), [of("wire", 30), of("work", 10)].into());
        assert_eq!(parts(&writes), [of("write", 30)].into());
    });
}

#[test]
fn a_client_of_the_old_kind_gets_simple_replies() {
    run(async {
        let (server, _) = serve(memory(), Config::default());
        let mut peer = Peer::open_plain(&server, "").await;
        assert_eq!(peer.ask(&write(1, 0, &[9; 10])).await.error, 0);
        peer.send(&request(READ, 0, 2, 0, 10)).await;
        assert_eq!(peer.receive_reply().await.unwrap().error, 0);
        assert_eq!(peer.receive(10).await.unwrap(), [9; 10]);
        assert_eq!(peer.ask(&request(BLOCK_STATUS, 0, 3, 0, 10)).await.error, 22);
    });
}

/// Random requests, sent in random pieces and without waiting, leave the volume and every reply as a plain array
/// of bytes would.
#[test]
fn any_sequence_cut_anywhere_behaves_like_an_array_of_bytes() {
    for seed in 1..=12 {
        run(async move {
            let mut random = Rng::new(seed);
            let (server, _) = serve(memory(), Config::default());
            let mut peer = Peer::open(&server, "vol").await;
            let mut model = vec![0u8; SIZE as usize];
            for _ in 0..20 {
                let (bytes, expected) = batch(&mut random, &mut model);
                send_in_pieces(&peer, &mut random, &bytes).await;
                for expected in expected {
                    let reply = peer.receive_reply().await.expect("a reply");
                    assert!(reply == expected, "seed {seed}, cookie {}", expected.cookie);
                }
            }
        });
    }
}

/// Requests whose replies fit into the pipe, and what they must answer.
fn batch(random: &mut Rng, model: &mut [u8]) -> (Vec<u8>, Vec<Reply>) {
    let (mut bytes, mut replies, mut room) = (Vec::new(), Vec::new(), 50_000);
    for cookie in 0..random.below(40) {
        let offset = random.below(SIZE - 400_000);
        let len = match random.below(4) {
            0 => random.below(300_000),
            1 => 4096,
            _ => random.below(10_000),
        };
        let range = offset as usize..(offset + len) as usize;
        let mut reply = Reply { cookie, ..Reply::default() };
        match random.below(4) {
            0 => {
                if len > room {
                    continue;
                }
                room -= len;
                reply.data = model[range].to_vec();
                bytes.extend(request(READ, 0, cookie, offset, len as u32));
            }
            1 => {
                model[range].fill(0);
                bytes.extend(request(WRITE_ZEROES, 0, cookie, offset, len as u32));
            }
            2 => {
                // Refused, payload and all.
                reply.error = 28;
                bytes.extend(write(cookie, SIZE - 1, &vec![0x25; len as usize + 2]));
            }
            _ => {
                model[range.clone()].fill_with(|| random.below(256) as u8);
                bytes.extend(write(cookie, offset, &model[range]));
            }
        }
        replies.push(reply);
    }
    (bytes, replies)
}

async fn send_in_pieces(peer: &Peer, random: &mut Rng, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let limit = [40, 5_000, 100_000][random.below(3) as usize];
        let len = (1 + random.below(limit) as usize).min(bytes.len());
        peer.send(&bytes[..len]).await;
        bytes = &bytes[len..];
    }
}

#[test]
fn requests_that_wait_are_answered_as_they_finish() {
    run(async {
        let (server, _) = serve(Slow::new(memory(), Duration::from_millis(20)), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        for cookie in 0..4 {
            peer.send(&request(READ, 0, cookie, cookie * 4096, 4096)).await;
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(peer.receive_reply().await.unwrap().cookie);
        }
        assert_eq!(order, [3, 2, 1, 0], "the volume is quickest with the last");
    });
}

/// A client that has some of its replies asks for more, while the server makes the rest.
#[test]
fn half_of_what_is_asked_together_is_answered_before_the_rest_is_begun() {
    let begun_at_the_first_reply = |seed, asked| {
        sim::run(seed, sim::Config::default(), async move {
            let volume = Slow::new(written().await, Duration::ZERO);
            let traffic = volume.traffic.clone();
            let (server, _) = serve(volume, Config::default());
            let mut peer = Peer::open(&server, "vol").await;
            let reads = (0..asked).flat_map(|cookie| request(READ, 0, cookie, cookie * 4096, 512));
            peer.send(&reads.collect::<Vec<u8>>()).await;
            assert_eq!(peer.receive_reply().await.unwrap().cookie, 0);
            let begun = traffic.begun.load(Ordering::SeqCst);
            for cookie in 1..asked {
                assert_eq!(peer.receive_reply().await.unwrap().cookie, cookie);
            }
            begun
        })
    };
    for (asked, begun) in [(32, 16), (5, 3), (2, 2), (1, 1)] {
        // The server may go on before the client looks.
        let least = (1..=8).map(|seed| begun_at_the_first_reply(seed, asked)).min();
        assert_eq!(least, Some(begun), "of {asked}");
    }
}

#[test]
fn a_farewell_waits_for_what_is_in_flight() {
    run(async {
        let volume = Slow::new(memory(), Duration::from_millis(20));
        let traffic = volume.traffic.clone();
        let (server, exports) = serve(volume, Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        peer.send(&write(1, 0, &[1; 4096])).await;
        peer.send(&request(DISCONNECT, 0, 2, 0, 0)).await;
        assert_eq!(peer.receive_reply().await.unwrap().cookie, 1);
        assert!(peer.is_hung_up_on().await);
        assert_eq!(traffic.ended.load(Ordering::SeqCst), 1);
        until_closed(&exports).await;
    });
}

#[test]
fn a_volume_is_held_until_its_last_request_is_done_even_when_the_client_is_gone() {
    run(async {
        let volume = Slow::new(memory(), Duration::from_millis(50));
        let traffic = volume.traffic.clone();
        let (server, exports) = serve(volume, Config::default());
        let peer = Peer::open(&server, "vol").await;
        peer.send(&write(1, 0, &[1; 4096])).await;
        while traffic.begun.load(Ordering::SeqCst) == 0 {
            world::sleep(Duration::from_millis(1)).await;
        }
        drop(peer);
        assert_eq!(exports.open_count(), 1);
        until_closed(&exports).await;
        assert_eq!(traffic.ended.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_connection_has_only_so_many_requests_under_way() {
    run(async {
        let volume = Slow::new(memory(), Duration::from_millis(2));
        let traffic = volume.traffic.clone();
        let (server, _) = serve(volume, Config { connection_requests: 8, ..Config::default() });
        let mut peer = Peer::open(&server, "vol").await;
        for cookie in 0..200 {
            peer.send(&request(FLUSH, 0, cookie, 0, 0)).await;
        }
        for _ in 0..200 {
            assert_eq!(peer.receive_reply().await.unwrap().error, 0);
        }
        assert_eq!(traffic.most_at_once.load(Ordering::SeqCst), 8);
    });
}

/// A client that asked for everything and read nothing made the server keep it all.
#[test]
fn replies_do_not_pile_up_for_a_client_that_does_not_read() {
    run(async {
        let volume = Slow::new(written().await, Duration::from_millis(1));
        let traffic = volume.traffic.clone();
        let (server, _) = serve(volume, Config { connection_bytes: 1 << 20, ..Config::default() });
        let mut peer = Peer::open(&server, "vol").await;
        for cookie in 0..100 {
            peer.send(&request(READ, 0, cookie, cookie * 4096, 256 << 10)).await;
        }
        world::sleep(Duration::from_millis(200)).await;
        let begun = traffic.begun.load(Ordering::SeqCst);
        assert!(begun <= 4, "{begun} reads of 256 KiB were begun with room for fewer than four");
        for _ in 0..100 {
            assert_eq!(peer.receive_reply().await.unwrap().data.len(), 256 << 10);
        }
    });
}

#[test]
fn connections_share_the_total_and_all_get_their_turn() {
    run(async {
        let volume = Slow::new(written().await, Duration::from_millis(1));
        let config = Config { total_bytes: 0, ..Config::default() };
        let (server, _) = serve(volume, config);
        let mut peers = Vec::new();
        for _ in 0..4 {
            let mut peer = Peer::open(&server, "vol").await;
            for cookie in 0..16 {
                // Four of these connections want 64 MiB together, and 33 MiB are shared.
                peer.send(&request(READ, 0, cookie, 0, SIZE as u32)).await;
            }
            peers.push(world::spawn(async move {
                for _ in 0..16 {
                    let reply = peer.receive_reply().await.expect("a reply");
                    assert_eq!(reply.data.len(), SIZE as usize);
                }
            }));
        }
        for peer in peers {
            peer.await;
        }
    });
}

/// Two clients of a suspended pool had all memory that is shared, for as long as it was suspended.
#[test]
fn what_a_suspended_pool_holds_is_kept_from_no_other() {
    run(async {
        let stuck = Slow::new(written().await, Duration::ZERO);
        let (is_stuck, is_suspended) = (stuck.is_stuck.clone(), stuck.is_suspended.clone());
        let traffic = stuck.traffic.clone();
        let well = Slow::new(written().await, Duration::from_millis(1));
        let exports = Arc::new(MemoryExports::default().with("stuck", stuck).with("well", well));
        let config = Config { total_bytes: 0, ..Config::default() };
        let server = Server::new(exports, Default::default(), config);
        is_stuck.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for _ in 0..4 {
            let peer = Peer::open(&server, "stuck").await;
            for cookie in 0..8 {
                peer.send(&request(READ, 0, cookie, 0, SIZE as u32)).await;
            }
            all.push(peer);
        }
        world::sleep(Duration::from_millis(100)).await;
        is_suspended.store(true, Ordering::SeqCst);
        let mut other = Peer::open(&server, "well").await;
        let begun = world::now();
        assert_eq!(other.ask(&request(READ, 0, 1, 0, SIZE as u32)).await.data.len(), SIZE as usize);
        assert!(world::now().since(begun) < Duration::from_secs(3), "{:?}", world::now().since(begun));
        let before = traffic.begun.load(Ordering::SeqCst);
        // More of the same: they are not begun, and hold up nothing either.
        for _ in 0..20 {
            let peer = Peer::open(&server, "stuck").await;
            for cookie in 0..8 {
                peer.send(&request(READ, 0, cookie, 0, SIZE as u32)).await;
            }
            all.push(peer);
            let begun = world::now();
            assert_eq!(other.ask(&request(READ, 0, 1, 0, SIZE as u32)).await.data.len(), SIZE as usize);
            assert!(world::now().since(begun) < Duration::from_millis(100));
        }
        assert_eq!(traffic.begun.load(Ordering::SeqCst), before);
        is_suspended.store(false, Ordering::SeqCst);
        is_stuck.store(false, Ordering::SeqCst);
        let all = all.into_iter().map(|mut peer| {
            world::spawn(async move {
                for _ in 0..8 {
                    assert_eq!(peer.receive_reply().await.unwrap().data.len(), SIZE as usize);
                }
            })
        });
        for peer in all.collect::<Vec<_>>() {
            peer.await;
        }
    });
}

/// A client knows a request when it has sent all of it: libnbd took an earlier answer for one to a request never made.
#[test]
fn a_write_that_is_refused_is_answered_behind_its_last_byte() {
    run(async {
        let (server, _) = serve(memory(), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        let bytes = write(1, SIZE - 4096, &vec![1; 300_000]);
        peer.send(&bytes[..bytes.len() - 1]).await;
        let early = world::timeout(Duration::from_secs(1), peer.receive_reply()).await;
        assert!(early.is_none(), "{early:?}");
        peer.send(&bytes[bytes.len() - 1..]).await;
        assert_eq!(peer.receive_reply().await, Some(Reply { cookie: 1, error: 28, ..Reply::default() }));
        assert_eq!(peer.ask(&request(READ, 0, 2, 0, 16)).await.data, [0; 16]);
    });
}

#[test]
fn refusals_leave_the_connection_usable() {
    run(async {
        let (server, _) = serve(Slow::new(memory(), Duration::ZERO), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        for (bytes, error) in [
            (request(READ, 0, 1, SIZE, 1), 22),
            (request(READ, 8, 1, 0, 1), 22),
            (write(1, SIZE - 1, &[0; 100_000]), 28),
            (request(TRIM, 0, 1, u64::MAX, 1), 22),
            (request(BLOCK_STATUS, 0, 1, 0, 0), 22),
            (request(WRITE_ZEROES, 16, 1, 0, 4096), 95),
            (request(77, 0, 1, 0, 0), 22),
            (request(READ, 0, 1, 0, u32::MAX), 22),
        ] {
            assert_eq!(peer.ask(&bytes).await, Reply { cookie: 1, error, ..Reply::default() });
        }
        assert_eq!(peer.ask(&request(READ, 0, 2, 0, 16)).await.data, [0; 16]);
    });
}

#[test]
fn a_read_only_volume_stays_as_it_is() {
    run(async {
        let (server, _) = serve(memory().as_read_only(), Config::default());
        let mut peer = Peer::open(&server, "vol").await;
        for bytes in [write(1, 0, &[1; 70_000]), request(TRIM, 0, 1, 0, 1), request(WRITE_ZEROES, 0, 1, 0, 1)]
        {
            assert_eq!(peer.ask(&bytes).await.error, 1);
        }
        assert_eq!(peer.ask(&request(READ, 0, 2, 0, 16)).await.data, [0; 16]);
    });
}

#[test]
fn whoever_breaks_the_protocol_is_hung_up_on() {
    run(async {
        let (server, exports) = serve(memory(), Config::default());
        for bytes in [vec![0xff; 28], request(WRITE, 0, 1, 0, (32 << 20) + 1)] {
            let mut peer = Peer::open(&server, "vol").await;
            peer.send(&bytes).await;
            assert!(peer.is_hung_up_on().await);
        }
        let mut peer = Peer::connect(&server).await;
        peer.send(b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(peer.is_hung_up_on().await);
        let mut peer = Peer::connect(&server).await;
        peer.send_option(1, b"no such volume").await;
        assert!(peer.is_hung_up_on().await);
        let mut peer = Peer::connect(&server).await;
        assert_eq!(peer.option(2, &[]).await, [1]);
        assert!(peer.is_hung_up_on().await);
        let mut peer = Peer::connect(&server).await;
        peer.send(b"IHAVEOPT\0\0\0\x07\x7f\xff\xff\xff").await;
        assert_eq!(peer.receive(20).await.unwrap()[12..16], [0x80, 0, 0, 9], "too big");
        until_closed(&exports).await;
    });
}

#[test]
fn nothing_a_client_sends_does_harm() {
    for seed in 1..=40 {
        run(async move {
            let mut random = Rng::new(seed);
            let (server, exports) = serve(memory(), Config::default());
            let peer = Peer::open(&server, "vol").await;
            let (mut bytes, _) = batch(&mut random, &mut vec![0; SIZE as usize]);
            for _ in 0..=random.below(8) {
                if !bytes.is_empty() {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.below(256) as u8;
                }
            }
            bytes.truncate(60_000);
            send_in_pieces(&peer, &mut random, &bytes).await;
            drop(peer);
            until_closed(&exports).await;
            let mut next = Peer::open(&server, "vol").await;
            assert_eq!(next.ask(&request(FLUSH, 0, 1, 0, 0)).await.error, 0);
        });
    }
}

#[test]
fn a_client_that_does_not_choose_is_hung_up_on() {
    run(async {
        let config = Config { negotiation_timeout: Duration::from_millis(100), ..Config::default() };
        let (server, _) = serve(memory(), config);
        let mut silent = Peer::connect(&server).await;
        let mut chosen = Peer::open(&server, "vol").await;
        assert!(silent.is_hung_up_on().await);
        assert_eq!(chosen.ask(&request(FLUSH, 0, 1, 0, 0)).await.error, 0);
    });
}

/// Memory is lent to clients that move: not to one that reads no replies, nor to one that announced a payload and
/// keeps it. One that has nothing of ours may be idle for ever.
#[test]
fn a_client_that_keeps_memory_and_does_not_move_is_hung_up_on() {
    run(async {
        let config = Config { stall_timeout: Duration::from_millis(100), ..Config::default() };
        let (server, exports) = serve(written().await, config);
        let mut idle = Peer::open(&server, "vol").await;
        let deaf = Peer::open(&server, "vol").await;
        deaf.send(&request(READ, 0, 1, 0, SIZE as u32)).await;
        let mut owing = Peer::open(&server, "vol").await;
        owing.send(&write(1, 0, &[1; 1 << 20])[..100_000]).await;
        assert!(owing.is_hung_up_on().await);
        while exports.open_count() > 1 {
            world::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(idle.ask(&request(FLUSH, 0, 1, 0, 0)).await.error, 0);
    });
}

#[test]
fn no_more_connections_are_taken_than_configured() {
    run(async {
        let places = Places { all: 2, ..Config::default().places };
        let (server, _) = serve(memory(), Config { places, ..Config::default() });
        let first = Peer::open(&server, "vol").await;
        let _second = Peer::open(&server, "vol").await;
        let (mut ours, theirs) = Peer::bare();
        server.serve(theirs, world::Address::Unix("peer".into()));
        assert!(ours.is_hung_up_on().await);
        drop(first);
        while server.clients().len() > 1 {
            world::sleep(Duration::from_millis(1)).await;
        }
        let _third = Peer::open(&server, "vol").await;
        assert_eq!(server.clients()[0].export.as_deref(), Some("vol"));
    });
}

#[test]
fn a_server_that_stops_lets_requests_land_and_then_hangs_up() {
    run(async {
        let volume = Slow::new(memory(), Duration::from_millis(20));
        let traffic = volume.traffic.clone();
        let (server, exports) = serve(volume, Config::default());
        let mut idle = Peer::open(&server, "vol").await;
        let mut choosing = Peer::connect(&server).await;
        let mut busy = Peer::open(&server, "vol").await;
        busy.send(&write(1, 0, &[1; 4096])).await;
        while traffic.begun.load(Ordering::SeqCst) == 0 {
            world::sleep(Duration::from_millis(1)).await;
        }
        server.stop().await;
        assert_eq!(exports.open_count(), 0);
        assert_eq!(busy.receive_reply().await.unwrap().cookie, 1);
        for peer in [&mut idle, &mut choosing, &mut busy] {
            assert!(peer.is_hung_up_on().await);
        }
    });
}

#[test]
fn the_clients_of_one_export_can_be_sent_away() {
    run(async {
        let exports = MemoryExports::default().with("a", memory()).with("b", memory());
        let server = Server::new(Arc::new(exports), Default::default(), Config::default());
        let mut a = Peer::open(&server, "a").await;
        let mut b = Peer::open(&server, "b").await;
        server.disconnect("a");
        assert!(a.is_hung_up_on().await);
        assert_eq!(b.ask(&request(FLUSH, 0, 1, 0, 0)).await.error, 0);
    });
}

fn at(host: u8) -> world::Address {
    world::Address::Tcp(([192, 0, 2, host], 1000).into())
}

/// 256 connections that were opened and left alone were all there could be: every other client was hung up on.
#[test]
fn silent_connections_keep_nobody_out() {
    run(async {
        let (server, _) = serve(memory(), Config::default());
        let mut flood = Vec::new();
        for n in 0..300 {
            let (peer, theirs) = Peer::bare();
            server.serve(theirs, at((n % 2) as u8));
            flood.push(peer);
        }
        // Those that have to go need a moment.
        world::sleep(Duration::from_millis(1)).await;
        assert!(server.clients().len() <= Config::default().places.strangers);
        let before = world::now();
        // From elsewhere, from the same host, and by a socket of this machine.
        for from in [at(9), at(0), world::Address::Unix("peer".into())] {
            let (peer, theirs) = Peer::bare();
            server.serve(theirs, from);
            let mut peer = peer.greeted().await.take("vol").await;
            assert_eq!(peer.ask(&request(FLUSH, 0, 1, 0, 0)).await.error, 0);
        }
        assert!(world::now().since(before) < Duration::from_millis(100));
        world::sleep(Config::default().silence_timeout + Duration::from_secs(1)).await;
        let last = flood.last_mut().unwrap();
        assert!(last.receive(18).await.is_some(), "it was greeted");
        let before = world::now();
        assert!(last.is_hung_up_on().await);
        assert!(world::now().since(before) < Duration::from_millis(100), "it is not waited for any longer");
    });
}

#[test]
fn a_host_has_its_share_of_connections_and_no_more() {
    run(async {
        let places = Places { of_address: 3, ..Config::default().places };
        let (server, _) = serve(memory(), Config { places, ..Config::default() });
        let mut open = Vec::new();
        for _ in 0..3 {
            let (peer, theirs) = Peer::bare();
            server.serve(theirs, at(1));
            open.push(peer.greeted().await.take("vol").await);
        }
        let (mut fourth, theirs) = Peer::bare();
        server.serve(theirs, at(1));
        assert!(fourth.is_hung_up_on().await);
        let (other, theirs) = Peer::bare();
        server.serve(theirs, at(2));
        let _other = other.greeted().await.take("vol").await;
        assert_eq!(server.clients().len(), 4);
    });
}
