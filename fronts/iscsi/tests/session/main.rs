//! Sessions from end to end, in a simulated world: what a client is promised, and what it cannot do to us.

#![allow(clippy::unwrap_used)]

mod crowd;
mod peer;

use iscsi::memory::{MemoryDirectory, device};
use iscsi::{Config, Places, Server};
use peer::{Done, Login, Peer, TARGET, read, write};
use scsi::Device;
use scsi::memory::MemoryUnit;
use sim::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use world::Address;

const SIZE: u64 = 8 << 20;

fn run<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    run_seed(1, test)
}

fn run_seed<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    sim::run(seed, sim::Config::default(), test)
}

struct Bench {
    unit: Arc<MemoryUnit>,
    device: Arc<Device>,
    directory: Arc<MemoryDirectory>,
    server: Server,
    portal: Address,
}

fn bench_with(config: Config) -> Bench {
    let unit = Arc::new(MemoryUnit::new(SIZE, 16 << 10));
    let device = device(unit.clone(), 1);
    let directory = Arc::new(MemoryDirectory::default().with(TARGET, 0, device.clone()));
    let server = Server::new(directory.clone(), Default::default(), config);
    let portal = listen(&server);
    Bench { unit, device, directory, server, portal }
}

fn bench() -> Bench {
    bench_with(Config::default())
}

fn listen(server: &Server) -> Address {
    server.listen(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a simulated port is free")
}

/// The ways in which data may travel.
fn logins() -> Vec<Login> {
    let mut all = Vec::new();
    for (unasked, immediate) in [("No", "Yes"), ("Yes", "Yes"), ("No", "No"), ("Yes", "No")] {
        for (digest, first, burst, receive) in [
            ("None", "65536", "262144", "8192"),
            ("CRC32C", "4096", "16384", "262144"),
            ("CRC32C", "65536", "65536", "1000"),
        ] {
            let login = Login::default().with("InitialR2T", unasked).with("ImmediateData", immediate);
            let login =
                login.with("HeaderDigest", digest).with("DataDigest", digest).with("MaxOutstandingR2T", "4");
            let login = login.with("FirstBurstLength", first).with("MaxBurstLength", burst);
            all.push(login.with("MaxRecvDataSegmentLength", receive));
        }
    }
    all
}

/// Whatever was agreed on, random reads and writes, several at a time, behave like an array of bytes.
#[test]
fn every_way_of_sending_data_behaves_like_an_array_of_bytes() {
    for (seed, login) in logins().into_iter().enumerate() {
        run_seed(seed as u64, async move {
            let bench = bench();
            let mut random = Rng::new(seed as u64);
            let mut model = vec![0u8; SIZE as usize];
            let mut peer = Peer::open(&bench.portal, login.clone()).await;
            for round in 0..6 {
                let mut open = Vec::new();
                let datas: Vec<(u32, Vec<u8>)> = (0..4)
                    .map(|i| {
                        // Each in its own quarter, so that their order is no matter.
                        let lba = i * 4096 + random.below(3000) as u32;
                        let blocks = [1, 8, random.below(1000) + 1][random.below(3) as usize];
                        (lba, (0..blocks * 512).map(|_| random.below(256) as u8).collect())
                    })
                    .collect();
                for (lba, data) in &datas {
                    let at = *lba as usize * 512;
                    model[at..at + data.len()].copy_from_slice(data);
                    let tag = peer.begin(&write(*lba, (data.len() / 512) as u16), data, 0).await;
                    open.push((tag, &data[..], Done::default()));
                }
                let done = peer.finish(open).await;
                assert!(done.iter().all(|(_, d)| d.status == 0), "{login:?} {round}: {done:?}");
                for (lba, data) in &datas {
                    let back = peer.command(&read(*lba, (data.len() / 512) as u16), &[], data.len()).await;
                    let at = *lba as usize * 512;
                    assert!(back.data == model[at..at + data.len()], "{login:?} {round}");
                }
            }
        });
    }
}

#[test]
fn discovery_lists_targets_and_nothing_that_was_not_given() {
    run(async {
        let bench = bench();
        bench.directory.add("iqn.2026-11.org.example:secret", 0, bench.device.clone());
        bench.directory.only_for("iqn.2026-11.org.example:secret", "iqn.2026-11.org.example:other");
        let mut peer = Peer::connect(&bench.portal).await;
        assert_eq!(peer.log_in(Login { target: None, ..Login::default() }).await, 0);
        let list = peer.request(0x04, 0, &[], b"SendTargets=All\0").await.unwrap();
        assert_eq!(
            list.data,
            format!("TargetName={TARGET}\0TargetAddress={},1\0", bench.portal).into_bytes()
        );
        let mut peer = Peer::connect(&bench.portal).await;
        let hidden = Login { target: Some("iqn.2026-11.org.example:secret"), ..Login::default() };
        assert_eq!(peer.log_in(hidden).await, 0x0203);
        assert!(peer.is_hung_up_on().await);
    });
}

#[test]
fn a_wrong_digest_of_data_ends_the_command_and_of_a_header_the_connection() {
    run(async {
        let bench = bench();
        let login = Login::default().with("HeaderDigest", "CRC32C").with("DataDigest", "CRC32C");
        let mut peer = Peer::open(&bench.portal, login).await;
        let header = peer.header(&write(0, 1), 0, 512);
        let mut bytes = peer.encode(header, &[7; 512]);
        bytes[100] ^= 1;
        peer.send_bytes(&bytes).await;
        let reject = peer.receive().await.unwrap();
        assert_eq!((reject.opcode(), reject.header[2], &reject.data[..]), (0x3f, 2, &bytes[..48]));
        let refused = peer.receive().await.unwrap();
        assert_eq!((refused.opcode(), refused.header[3], refused.data[14]), (0x21, 2, 0x47));
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.data, [0; 512], "it was not written");
        let header = peer.header(&read(0, 1), 512, 0);
        let mut bytes = peer.encode(header, &[]);
        bytes[40] ^= 1;
        peer.send_bytes(&bytes).await;
        assert!(peer.is_hung_up_on().await);
    });
}

#[test]
fn data_out_of_order_end_their_command_only() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default().with("ImmediateData", "No")).await;
        for (transfer, number, offset, len, asc) in [
            (None, 1u32, 0u32, 512, 0x47),
            (None, 0, 512, 512, 0x47),
            (None, 0, 0, 2048, 0x0c),
            (Some(99), 0, 0, 512, 0x0c),
        ] {
            peer.begin(&write(0, 2), &[1; 1024], 0).await;
            let r2t = peer.receive().await.unwrap();
            assert_eq!((r2t.opcode(), r2t.u32(44)), (0x31, 1024));
            let mut header = [0; 48];
            (header[0], header[1]) = (0x05, 0x80);
            header[16..20].copy_from_slice(&r2t.header[16..20]);
            header[20..24].copy_from_slice(&transfer.unwrap_or(r2t.u32(20)).to_be_bytes());
            header[36..40].copy_from_slice(&number.to_be_bytes());
            header[40..44].copy_from_slice(&offset.to_be_bytes());
            peer.send(header, &vec![1; len]).await;
            let refused = peer.receive().await.unwrap();
            assert_eq!((refused.opcode(), refused.header[3], refused.data[14]), (0x21, 2, asc));
            // What still comes for it is dropped.
            peer.send(header, &[1; 512]).await;
        }
        assert_eq!(peer.command(&write(0, 2), &[2; 1024], 0).await.status, 0);
    });
}

#[test]
fn a_number_outside_of_the_window_is_ignored() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        for wrong in [peer.cmd_sn.wrapping_sub(5), peer.cmd_sn + 1000] {
            let mut header = peer.header(&[0; 6], 0, 0);
            peer.cmd_sn -= 1;
            header[24..28].copy_from_slice(&wrong.to_be_bytes());
            peer.send(header, &[]).await;
        }
        assert_eq!(peer.command(&[0; 6], &[], 0).await.status, 0);
    });
}

/// What the old session had begun was carried out after the new one had read.
#[test]
fn a_client_that_comes_again_finds_its_old_session_ended() {
    run(async {
        let bench = bench();
        let mut old = Peer::open(&bench.portal, Login::default()).await;
        bench.unit.set_delay(Duration::from_millis(80));
        old.begin(&write(0, 1), &[9; 512], 0).await;
        world::sleep(Duration::from_millis(1)).await;
        let before = world::now();
        let mut new = Peer::connect(&bench.portal).await;
        assert_eq!(new.log_in(Login::default()).await, 0);
        assert!(world::now().since(before) >= Duration::from_millis(70), "it waits for the write");
        assert!(old.is_hung_up_on().await);
        assert_eq!(bench.server.clients().len(), 1);
        let other = Login { isid: 2, ..Login::default() };
        Peer::open(&bench.portal, other).await;
        assert_eq!(new.command(&[0; 6], &[], 0).await.code(), (6, 0x29, 0), "another session is no new one");
    });
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    run(async {
        let bench = bench();
        bench.unit.set_delay(Duration::from_millis(30));
        let mut peer = Peer::connect(&bench.portal).await;
        assert_eq!(peer.log_in(Login::default()).await, 0);
        for lba in 0..20 {
            // Some at work, some that wait for their data for ever.
            let blocks = if lba % 2 == 0 { 1 } else { 400 };
            peer.begin(&write(lba * 500, blocks), &vec![1; usize::from(blocks) * 512], 0).await;
        }
        world::sleep(Duration::from_millis(5)).await;
        let held = Arc::strong_count(&bench.device);
        drop(peer);
        world::sleep(Duration::from_millis(200)).await;
        assert!(bench.server.clients().is_empty());
        assert!(held > 2 && Arc::strong_count(&bench.device) == 2, "the directory and we");
    });
}

fn impatient() -> Config {
    Config {
        login_timeout: Duration::from_millis(100),
        ping_interval: Duration::from_millis(200),
        stall_timeout: Duration::from_millis(400),
        places: Places { strangers: 8, ..Config::default().places },
        ..Config::default()
    }
}

#[test]
fn who_is_silent_is_asked_and_who_stays_silent_is_hung_up_on() {
    run(async {
        let bench = bench_with(impatient());
        let (mut alive, mut dead) = (
            Peer::open(&bench.portal, Login::default()).await,
            Peer::open(&bench.portal, Login { isid: 2, ..Login::default() }).await,
        );
        let answering = world::spawn(async move {
            for _ in 0..10 {
                let ping = alive.receive().await.expect("it goes on");
                assert_eq!(ping.opcode(), 0x20);
                alive.pong(&ping).await;
            }
            alive
        });
        let before = world::now();
        assert!(dead.is_hung_up_on().await);
        assert!(world::now().since(before) < Duration::from_secs(2));
        let mut alive = answering.await;
        assert_eq!(alive.command(&[0; 6], &[], 0).await.status, 0);
    });
}

#[test]
fn who_never_sends_what_it_announced_is_hung_up_on_though_it_answers() {
    run(async {
        let bench = bench_with(impatient());
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        peer.begin(&write(0, 400), &vec![1; 400 * 512], 0).await;
        let before = world::now();
        while let Some(pdu) = peer.receive().await {
            if pdu.opcode() == 0x20 {
                peer.pong(&pdu).await;
            }
        }
        assert!(world::now().since(before) < Duration::from_secs(2));
    });
}

/// Each kind of request that is answered without a command's load, sent without end by a client that never reads.
#[test]
fn a_client_that_asks_and_never_reads_is_not_held_much_for_and_hung_up_on() {
    const MOST: usize = 4 << 20;
    for discovers in [true, false] {
        for (opcode, len) in
            [(0x40, 200 << 10), (0x41, 0), (0x42, 0), (0x44, 64), (0x50, 0), (0x5f, 0), (0x05, 64)]
        {
            run(async move {
                let bench = bench_with(impatient());
                let mut peer = Peer::connect(&bench.portal).await;
                let target = if discovers { None } else { Some(TARGET) };
                let login = Login { target, ..Login::default() }.with("MaxRecvDataSegmentLength", "262144");
                // Data of no command, and damaged.
                let is_damaged = opcode == 0x05;
                let login = match is_damaged {
                    true => login.with("HeaderDigest", "CRC32C").with("DataDigest", "CRC32C"),
                    false => login,
                };
                assert_eq!(peer.log_in(login).await, 0);
                let sent = Arc::new(AtomicUsize::new(0));
                let counted = sent.clone();
                drop(world::spawn(async move {
                    let mut header = [0; 48];
                    // Immediate, final; no transfer tag.
                    (header[0], header[1]) = (opcode, 0x80);
                    header[20..24].fill(0xff);
                    let mut one = peer.encode(header, &vec![b'x'; len]);
                    *one.last_mut().unwrap() ^= u8::from(is_damaged);
                    let many = one.repeat((1 << 20) / one.len() + 1);
                    while counted.load(Ordering::Relaxed) < 16 * MOST {
                        for part in many.chunks(64 << 10) {
                            peer.send_bytes(part).await;
                            counted.fetch_add(part.len(), Ordering::Relaxed);
                        }
                    }
                }));
                world::sleep(Duration::from_millis(100)).await;
                let taken = sent.load(Ordering::Relaxed);
                assert!(taken < MOST, "opcode {opcode:#x}: {taken} bytes were taken");
                world::sleep(Duration::from_secs(2)).await;
                assert_eq!(bench.server.clients().len(), 0, "opcode {opcode:#x}");
            });
        }
    }
}

#[test]
fn sessions_that_only_discover_keep_nobody_out() {
    run(async {
        let bench = bench_with(impatient());
        let mut all = Vec::new();
        for isid in 0..40 {
            let mut peer = Peer::connect(&bench.portal).await;
            let login = Login { target: None, isid, ..Login::default() };
            assert_eq!(peer.log_in(login).await, 0, "session {isid}");
            all.push(peer);
        }
        assert!(bench.server.clients().len() <= 9);
        let mut peer = Peer::open(&bench.portal, Login { isid: 99, ..Login::default() }).await;
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.status, 0);
    });
}

/// Each continuation that asks for more beside the rest of an answer made that longer, without end.
#[test]
fn a_text_that_asks_for_the_rest_asks_for_nothing_else() {
    run(async {
        let bench = bench();
        let mut peer = Peer::connect(&bench.portal).await;
        let login = Login { target: None, ..Login::default() }.with("MaxRecvDataSegmentLength", "512");
        assert_eq!(peer.log_in(login).await, 0);
        let mut long = b"SendTargets=All\0".repeat(20);
        let mut first = [0; 48];
        (first[0], first[1], first[19]) = (0x44, 0x80, 1);
        first[20..24].fill(0xff);
        peer.send(first, &long).await;
        let said = peer.receive().await.unwrap();
        assert_eq!((said.opcode(), said.header[1] & 0x40, said.data.len()), (0x24, 0x40, 512));
        let mut rest = first;
        rest[20..24].copy_from_slice(&said.u32(20).to_be_bytes());
        peer.send(rest, &[]).await;
        assert_eq!(peer.receive().await.unwrap().opcode(), 0x24);
        long.truncate(16);
        peer.send(rest, &long).await;
        assert_eq!(peer.receive().await.unwrap().opcode(), 0x3f, "it is rejected");
    });
}

#[test]
fn a_flood_of_logins_does_not_keep_others_out_for_long() {
    run(async {
        let bench = bench_with(impatient());
        let mut busy = Peer::open(&bench.portal, Login { isid: 9, ..Login::default() }).await;
        let mut flood = Vec::new();
        for _ in 0..50 {
            let peer = Peer::connect(&bench.portal).await;
            peer.send_bytes(&[0x43; 30]).await;
            flood.push(peer);
        }
        assert_eq!(busy.command(&read(0, 1), &[], 512).await.status, 0);
        assert!(bench.server.clients().len() <= 9);
        world::sleep(Duration::from_millis(150)).await;
        let mut late = Peer::connect(&bench.portal).await;
        assert_eq!(late.log_in(Login::default()).await, 0);
    });
}

#[test]
fn units_come_and_go_under_a_client() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        let second = device(Arc::new(MemoryUnit::new(SIZE, 4096)), 2);
        bench.directory.add(TARGET, 7, second);
        bench.server.refresh();
        let told = peer.receive().await.unwrap();
        assert_eq!((told.opcode(), told.header[36], told.data[14], told.data[15]), (0x32, 0, 0x3f, 0x0e));
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.code(), (6, 0x3f, 0x0e));
        let list = peer.command(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[], 256).await.data;
        assert_eq!(list[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
        bench.directory.remove(TARGET, 0);
        bench.server.refresh();
        assert_eq!(peer.receive().await.unwrap().opcode(), 0x32);
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.code(), (5, 0x25, 0));
        bench.directory.remove_target(TARGET);
        bench.server.refresh();
        let farewell = peer.receive().await.unwrap();
        assert_eq!((farewell.opcode(), farewell.header[36]), (0x32, 1), "it is asked to log out");
        assert!(peer.is_hung_up_on().await);
    });
}

#[test]
fn a_unit_that_is_destroyed_in_use_ends_what_is_under_way() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        bench.unit.set_delay(Duration::from_millis(30));
        let tag = peer.begin(&write(0, 1), &[1; 512], 0).await;
        world::sleep(Duration::from_millis(1)).await;
        bench.device.retire().await;
        // The write was carried out, and is answered. The next command finds nothing.
        let done = peer.finish(vec![(tag, &[], Done::default())]).await;
        assert_eq!((done[0].0, done[0].1.status), (tag, 0));
        let next = peer.begin(&read(0, 1), &[], 512).await;
        let done = peer.finish(vec![(next, &[], Done::default())]).await;
        assert_eq!((done[0].0, done[0].1.code()), (next, (5, 0x25, 0)));
    });
}

#[test]
fn a_task_that_is_aborted_is_not_answered_and_changes_nothing_later() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        bench.unit.set_delay(Duration::from_millis(30));
        let flying = peer.begin(&write(0, 1), &[1; 512], 0).await;
        world::sleep(Duration::from_millis(1)).await;
        let before = world::now();
        let answer = peer.request(0x02, 1, &[(20, flying)], &[]).await.unwrap();
        assert_eq!((answer.opcode(), answer.header[2]), (0x22, 0));
        assert!(
            world::now().since(before) >= Duration::from_millis(20),
            "it waits for what cannot be stopped"
        );
        let waiting = peer.begin(&write(0, 400), &vec![1; 400 * 512], 0).await;
        assert_eq!(peer.receive().await.unwrap().opcode(), 0x31);
        assert_eq!(peer.request(0x02, 1, &[(20, waiting)], &[]).await.unwrap().header[2], 0);
        assert_eq!(peer.request(0x02, 1, &[(20, 12345)], &[]).await.unwrap().header[2], 1, "there is none");
        assert_eq!(peer.request(0x02, 5, &[], &[]).await.unwrap().header[2], 0, "reset");
        assert_eq!(peer.request(0x02, 8, &[], &[]).await.unwrap().header[2], 4);
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.status, 0);
    });
}

/// They went on as if it had been a warm one.
#[test]
fn a_cold_reset_ends_the_sessions_of_the_target_after_its_answer() {
    run(async {
        let bench = bench();
        let logins = [1, 2].map(|isid| Login { isid, ..Login::default() });
        let mut peers = Vec::new();
        for login in logins {
            peers.push(Peer::open(&bench.portal, login).await);
        }
        let answer = peers[0].request(0x02, 6, &[], &[]).await.unwrap();
        assert_eq!((answer.opcode(), answer.header[2]), (0x22, 0));
        assert_eq!(bench.server.clients().len(), 2, "a warm one ends none");
        let answer = peers[0].request(0x02, 7, &[], &[]).await.unwrap();
        assert_eq!((answer.opcode(), answer.header[2]), (0x22, 0));
        let before = world::now();
        for peer in &mut peers {
            while peer.receive().await.is_some() {}
        }
        assert!(world::now().since(before) < Duration::from_secs(1), "not only when they say nothing");
        let mut again = Peer::open(&bench.portal, Login::default()).await;
        assert_eq!(again.command(&read(0, 1), &[], 512).await.status, 0);
    });
}

#[test]
fn little_memory_makes_clients_wait_not_fail() {
    run(async {
        let config = Config { session_bytes: 1 << 20, total_bytes: 0, ..Config::default() };
        let bench = bench_with(config);
        bench.unit.set_delay(Duration::from_millis(1));
        let mut tasks = Vec::new();
        for isid in 1..=4 {
            let portal = bench.portal.clone();
            tasks.push(world::spawn(async move {
                let mut peer = Peer::open(&portal, Login { isid, ..Login::default() }).await;
                let data = vec![isid; 1 << 20];
                let mut open = Vec::new();
                for _ in 0..16 {
                    open.push((peer.begin(&write(0, 2048), &data, 0).await, &data[..], Done::default()));
                }
                let done = peer.finish(open).await;
                assert!(done.iter().all(|(_, d)| d.status == 0));
                for _ in 0..4 {
                    assert_eq!(peer.command(&read(0, 2048), &[], 1 << 20).await.data.len(), 1 << 20);
                }
            }));
        }
        for task in tasks {
            task.await;
        }
    });
}

/// Commands that come together, cut anywhere: their answers leave in halves, and each has its own data.
#[test]
fn batches_of_reads_cut_anywhere_are_answered_each_with_its_own_data() {
    for (seed, login) in logins().into_iter().enumerate() {
        run_seed(seed as u64, async move {
            let bench = bench();
            let mut random = Rng::new(seed as u64);
            let mut peer = Peer::open(&bench.portal, login.clone()).await;
            let model: Vec<u8> = (0..512 * 512).map(|_| random.below(256) as u8).collect();
            assert_eq!(peer.command(&write(0, 512), &model, 0).await.status, 0);
            for round in 0..12 {
                let (mut bytes, mut open, mut expected) = (Vec::new(), Vec::new(), BTreeMap::new());
                for _ in 0..1 + random.below(24) {
                    let (lba, blocks) = (random.below(500) as u32, [1, 8][random.below(2) as usize]);
                    let at = lba as usize * 512;
                    let header = peer.header(&read(lba, blocks), blocks as usize * 512, 0);
                    bytes.extend(peer.encode(header, &[]));
                    let tag = u32::from_be_bytes(header[16..20].try_into().unwrap());
                    open.push((tag, &[][..], Done::default()));
                    expected.insert(tag, &model[at..at + blocks as usize * 512]);
                }
                let cut = random.below(bytes.len() as u64 + 1) as usize;
                peer.send_bytes(&bytes[..cut]).await;
                if random.below(2) == 0 {
                    world::sleep(Duration::from_millis(1)).await;
                }
                peer.send_bytes(&bytes[cut..]).await;
                for (tag, done) in peer.finish(open).await {
                    assert!(done.status == 0 && done.data == expected[&tag], "{login:?} {round}: {tag}");
                }
            }
        });
    }
}

#[test]
fn ordered_commands_wait_for_those_before_them() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        bench.unit.set_delay(Duration::from_millis(20));
        let before = world::now();
        let mut open = Vec::new();
        for attribute in [1, 2, 1] {
            let mut header = peer.header(&read(0, 1), 512, 0);
            header[1] = header[1] & !7 | attribute;
            peer.send(header, &[]).await;
            open.push((u32::from_be_bytes(header[16..20].try_into().unwrap()), &[][..], Done::default()));
        }
        let tags: Vec<u32> = open.iter().map(|o| o.0).collect();
        let done: Vec<u32> = peer.finish(open).await.into_iter().map(|d| d.0).collect();
        assert_eq!(done, tags);
        assert!(world::now().since(before) >= Duration::from_millis(60), "one after the other");
    });
}

#[test]
fn the_time_of_commands_is_told_by_what_they_waited_in() {
    run(async {
        let unit = Arc::new(MemoryUnit::new(SIZE, 16 << 10));
        let directory = MemoryDirectory::default().with(TARGET, 0, device(unit.clone(), 1));
        let hub = probe::Hub::new();
        let server = Server::new(Arc::new(directory), hub.clone(), Config::default());
        let mut peer = Peer::open(&listen(&server), Login::default().with("ImmediateData", "No")).await;
        unit.set_delay(Duration::from_millis(20));
        let stages = hub.open(&"iscsi.time[stage]".parse().unwrap()).unwrap();
        let told = || {
            let parts = stages.take().parts;
            let ms = |part: u64| (part as f64 / 1e6).round() as u64;
            let parts = parts.iter().map(|(key, part)| (key.to_string(), ms(*part)));
            parts.filter(|(_, ms)| *ms > 0).collect::<Vec<_>>()
        };
        // The client takes its time to send what it was asked for.
        let tag = peer.begin(&write(0, 2), &[1; 1024], 0).await;
        let r2t = peer.receive().await.unwrap();
        world::sleep(Duration::from_millis(30)).await;
        peer.send_data(tag, r2t.u32(20), 0, &[1; 1024]).await;
        peer.finish(vec![(tag, &[], Done::default())]).await;
        assert_eq!(told(), [("wire".to_string(), 30), ("work".to_string(), 20)]);
        // An ordered command waits for the one before it.
        let mut open = Vec::new();
        for attribute in [1, 2] {
            let mut header = peer.header(&read(0, 1), 512, 0);
            header[1] = header[1] & !7 | attribute;
            peer.send(header, &[]).await;
            open.push((u32::from_be_bytes(header[16..20].try_into().unwrap()), &[][..], Done::default()));
        }
        peer.finish(open).await;
        assert_eq!(told(), [("work".to_string(), 40), ("front".to_string(), 20)], "the largest first");
    });
}

#[test]
fn questions_texts_and_farewells_are_answered() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        let pong = peer.request(0x00, 0, &[], b"hello").await.unwrap();
        assert_eq!((pong.opcode(), &pong.data[..], pong.u32(20)), (0x20, &b"hello"[..], u32::MAX));
        let text = peer.request(0x04, 0, &[], b"SendTargets=\0").await.unwrap();
        assert!(text.data.starts_with(format!("TargetName={TARGET}\0").as_bytes()));
        assert_eq!(peer.request(0x10, 0, &[], &[]).await.unwrap().header[2], 3, "nothing is sent again");
        // These have no number.
        peer.cmd_sn -= 1;
        assert_eq!(peer.request(0x1f, 0, &[], &[]).await.unwrap().opcode(), 0x3f);
        peer.cmd_sn -= 1;
        let farewell = peer.request(0x06, 0, &[], &[]).await.unwrap();
        assert_eq!((farewell.opcode(), farewell.header[2]), (0x26, 0));
        assert!(peer.is_hung_up_on().await);
    });
}

/// Two portals; the one a client is at dies under load. Whatever was acknowledged is there when it comes by the other.
#[test]
fn when_a_portal_dies_the_work_goes_on_by_the_other() {
    for seed in 1..=5 {
        run_seed(seed, async move {
            let bench = bench();
            let second = listen(&bench.server);
            bench.unit.set_delay(Duration::from_millis(1));
            let mut portals = [bench.portal.clone(), second].into_iter();
            let first = portals.next().unwrap();
            let mut peer = Peer::open(&first, Login::default()).await;
            let (server, dying) = (bench.server.clone(), first.clone());
            world::spawn(async move {
                world::sleep(Duration::from_millis(20 + seed)).await;
                server.close(&dying);
            });
            let mut written = 0u32;
            let mut moved = false;
            while written < 200 {
                let data = [written as u8 + 1; 512];
                let header = peer.header(&write(written, 1), 0, 512);
                peer.send(header, &data).await;
                match peer.receive().await {
                    Some(pdu) => {
                        assert_eq!((pdu.opcode(), pdu.header[3]), (0x21, 0));
                        written += 1;
                    }
                    None => {
                        // Whether the last was carried out is not known: it is written again.
                        assert!(!std::mem::replace(&mut moved, true));
                        peer = Peer::open(&portals.next().unwrap(), Login::default()).await;
                    }
                }
            }
            assert!(moved);
            let all = peer.command(&read(0, 200), &[], 200 * 512).await.data;
            assert!(all.chunks(512).enumerate().all(|(i, block)| block == [i as u8 + 1; 512]));
        });
    }
}

#[test]
fn a_thousand_idle_clients_do_not_hurt_the_busy_one() {
    run(async {
        let bench = bench();
        let mut idle = Vec::new();
        for n in 0..1000u32 {
            let mut peer = Peer::connect(&bench.portal).await;
            let initiator = Box::leak(format!("iqn.2026-11.org.example:{n}").into_boxed_str());
            assert_eq!(peer.log_in(Login { initiator, ..Login::default() }).await, 0);
            idle.push(peer);
        }
        let mut busy = Peer::open(&bench.portal, Login::default()).await;
        let before = world::now();
        for _ in 0..100 {
            assert_eq!(busy.command(&read(0, 8), &[], 4096).await.status, 0);
        }
        assert!(world::now().since(before) < Duration::from_millis(100));
        assert_eq!(bench.server.clients().len(), 1001);
    });
}

/// The record of a command multiplied its address before anybody had looked whether there is such a block.
#[test]
fn an_address_beyond_all_units_is_only_out_of_range() {
    run(async {
        let bench = bench();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        let far = [0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0];
        assert_eq!(peer.command(&far, &[], 512).await.code(), (5, 0x21, 0));
        assert_eq!(peer.command(&read(0, 1), &[], 512).await.status, 0);
    });
}

#[test]
fn nothing_a_client_sends_does_harm() {
    for seed in 1..=60 {
        run_seed(seed, async move {
            let mut random = Rng::new(seed);
            let bench = bench_with(impatient());
            let digest = if seed % 3 == 0 { "CRC32C" } else { "None" };
            let login = Login::default().with("HeaderDigest", digest).with("DataDigest", digest);
            let mut peer = Peer::open(&bench.portal, login.with("InitialR2T", "No")).await;
            for _ in 0..60 {
                let (lba, len) = (random.below(20000) as u32, random.below(3000) as usize);
                let mut header = peer.header(&write(lba, random.below(600) as u16), 0, len);
                if random.below(3) == 0 {
                    header[32..48].fill_with(|| random.below(256) as u8);
                    header[32] = [0x88, 0x8a, 0x93, 0x89, 0x42, 0x9e, 0x5f, 0xa8][random.below(8) as usize];
                }
                for _ in 0..random.below(4) {
                    let at = random.below(48) as usize;
                    // The length is lied about now and then only, or nothing else would be seen.
                    if !(4..8).contains(&at) || random.below(10) == 0 {
                        header[at] = random.below(256) as u8;
                    }
                }
                if random.below(2) == 0 {
                    header[0] = [0, 1, 2, 3, 4, 5, 6, 0x10, 0x41, 0x45][random.below(10) as usize];
                }
                let mut bytes = peer.encode(header, &vec![1; len]);
                if random.below(10) == 0 {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
                peer.send_bytes(&bytes).await;
            }
            drop(peer);
            world::sleep(Duration::from_secs(2)).await;
            assert!(bench.server.clients().is_empty(), "seed {seed}: a session was left behind");
            let mut good = Peer::open(&bench.portal, Login { isid: 3, ..Login::default() }).await;
            assert_eq!(good.command(&read(0, 1), &[], 512).await.status, 0);
        });
    }
}

/// A volume of 16 MiB blocks announces that requests of one block are best: such a request must come through, both ways,
/// whatever was agreed on.
#[test]
fn requests_of_the_largest_block_come_through_whole() {
    const LARGE: usize = 16 << 20;
    run(async {
        let unit = Arc::new(MemoryUnit::new(2 * LARGE as u64, LARGE as u32));
        let directory = Arc::new(MemoryDirectory::default().with(TARGET, 0, device(unit, 1)));
        let server = Server::new(directory, Default::default(), Config::default());
        let portal = listen(&server);
        let data: Vec<u8> = (0..LARGE).map(|i| (i / 512 + i % 251) as u8).collect();
        for login in logins().into_iter().step_by(5) {
            let mut peer = Peer::open(&portal, login.clone()).await;
            let lba = (LARGE / 512) as u32;
            assert_eq!(peer.command(&write(lba, lba as u16), &data, 0).await.status, 0, "{login:?}");
            let back = peer.command(&read(lba, lba as u16), &[], LARGE).await;
            assert!(back.status == 0 && back.data == data, "{login:?}");
        }
    });
}
