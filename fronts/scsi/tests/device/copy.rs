//! Copies between units: by lists, by tokens, and what must keep them from it.

use crate::common::*;
use scsi::memory::MemoryUnit;
use scsi::{Device, Execution, Identity, Options, Path, PortGroup, PortState, Reach, Status};
use std::sync::Arc;
use std::time::Duration;
use world::Buf;

/// Two units that one initiator has, and the reach that it has them in.
struct Pair {
    units: [Arc<MemoryUnit>; 2],
    devices: [Arc<Device>; 2],
    reach: Reach,
    a: Path,
    b: Path,
}

fn device(unit: &Arc<MemoryUnit>, number: u8) -> Arc<Device> {
    let mut naa = [0; 16];
    (naa[0], naa[15]) = (0x60, number);
    let device =
        Device::new(unit.clone(), Identity::new(naa), Options::default(), Arc::new(Kept::default()), "");
    device.set_groups(vec![PortGroup {
        id: 1,
        state: PortState::Optimized,
        preferred: true,
        ports: vec![1, 2],
    }]);
    device
}

async fn attach(device: &Arc<Device>, name: &str, reach: &Reach) -> Path {
    let path = device.attach_within(nexus(name, 1), reach);
    ask(&path, &[0; 6], &[]).await;
    path
}

async fn pair() -> Pair {
    let units = [4096, 16384].map(|block| Arc::new(MemoryUnit::new(8 << 20, block)));
    let devices = [device(&units[0], 1), device(&units[1], 2)];
    let reach = Reach::default();
    let (a, b) = (attach(&devices[0], "a", &reach).await, attach(&devices[1], "a", &reach).await);
    Pair { units, devices, reach, a, b }
}

fn target(number: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&[0xe4, 0, 0, 0, 1, 3, 0, 16]);
    (bytes[8], bytes[23], bytes[30]) = (0x60, number, 2);
    bytes
}

fn segment(source: u16, target: u16, from: u64, to: u64, count: u16) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..4].copy_from_slice(&[0x02, 0, 0, 0x18]);
    bytes[4..6].copy_from_slice(&source.to_be_bytes());
    bytes[6..8].copy_from_slice(&target.to_be_bytes());
    bytes[10..12].copy_from_slice(&count.to_be_bytes());
    bytes[12..20].copy_from_slice(&from.to_be_bytes());
    bytes[20..].copy_from_slice(&to.to_be_bytes());
    bytes
}

fn copy_list(id: u8, targets: &[[u8; 32]], segments: &[[u8; 28]]) -> Vec<u8> {
    let mut list = vec![0; 16];
    list[0] = id;
    list[2..4].copy_from_slice(&(targets.len() as u16 * 32).to_be_bytes());
    list[8..12].copy_from_slice(&(segments.len() as u32 * 28).to_be_bytes());
    list.extend(targets.concat());
    list.extend(segments.concat());
    list
}

fn out(action: u8, id: u32, len: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x83, action);
    cdb[6..10].copy_from_slice(&id.to_be_bytes());
    cdb[10..14].copy_from_slice(&(len as u32).to_be_bytes());
    cdb
}

fn ranges(ranges: &[(u64, u32)]) -> Vec<u8> {
    let range = |&(lba, count): &(u64, u32)| [&lba.to_be_bytes()[..], &count.to_be_bytes(), &[0; 4]].concat();
    ranges.iter().flat_map(range).collect()
}

fn populate_list(of: &[(u64, u32)], timeout: u32) -> Vec<u8> {
    let ranges = ranges(of);
    let mut list = vec![0; 16];
    list[..2].copy_from_slice(&(ranges.len() as u16 + 14).to_be_bytes());
    list[4..8].copy_from_slice(&timeout.to_be_bytes());
    list[14..].copy_from_slice(&(ranges.len() as u16).to_be_bytes());
    [list, ranges].concat()
}

fn use_list(token: &[u8], offset: u64, to: &[(u64, u32)], flags: u8) -> Vec<u8> {
    let ranges = ranges(to);
    let mut list = vec![0; 536];
    list[..2].copy_from_slice(&(ranges.len() as u16 + 534).to_be_bytes());
    list[2] = flags;
    list[8..16].copy_from_slice(&offset.to_be_bytes());
    list[16..528].copy_from_slice(token);
    list[534..].copy_from_slice(&(ranges.len() as u16).to_be_bytes());
    [list, ranges].concat()
}

fn information(id: u8) -> [u8; 16] {
    [0x84, 7, 0, 0, 0, id, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]
}

async fn send(path: &Path, action: u8, id: u32, list: &[u8]) -> scsi::Outcome {
    ask(path, &out(action, id, list.len()), list).await
}

async fn token_of(path: &Path, id: u8, of: &[(u64, u32)], timeout: u32) -> Vec<u8> {
    let outcome = send(path, 0x10, id.into(), &populate_list(of, timeout)).await;
    assert_eq!(outcome.status, Status::Good, "{:x?}", outcome.sense);
    let told = good(path, &information(id), &[]).await;
    assert_eq!((told[4], told[5], told[15]), (0x10, 0x01, 0xf1));
    let blocks: u32 = of.iter().map(|range| range.1).sum();
    assert_eq!(told[16..24], u64::from(blocks).to_be_bytes());
    assert_eq!(told[32..36], 514u32.to_be_bytes());
    told[38..].to_vec()
}

async fn put(path: &Path, lba: u64, bytes: &[u8]) {
    let mut cdb = [0; 16];
    cdb[0] = 0x8a;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&((bytes.len() / 512) as u32).to_be_bytes());
    good(path, &cdb, bytes).await;
}

async fn get(path: &Path, lba: u64, count: u32) -> Vec<u8> {
    let mut cdb = [0; 16];
    cdb[0] = 0x88;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&count.to_be_bytes());
    good(path, &cdb, &[]).await
}

fn pattern(blocks: usize, seed: u64) -> Vec<u8> {
    let mut random = sim::Rng::new(seed);
    (0..blocks * 512).map(|_| random.below(255) as u8 + 1).collect()
}

#[test]
fn segments_go_from_unit_to_unit_and_holes_stay_holes() {
    run(async {
        let Pair { units, a, b, .. } = pair().await;
        let bytes = pattern(6000, 1);
        put(&a, 100, &bytes).await;
        put(&b, 0, &vec![7; 16000 * 512]).await;
        let list = copy_list(
            9,
            &[target(1), target(2)],
            &[segment(0, 1, 0, 32, 6200), segment(1, 0xffff, 132, 0, 8)],
        );
        let outcome = send(&a, 0, 0, &list).await;
        assert_eq!(outcome.status, Status::Good, "{:x?}", outcome.sense);
        let copied = get(&b, 0, 6400).await;
        assert_eq!(copied[..32 * 512], [7; 32 * 512]);
        assert!(copied[32 * 512..132 * 512].iter().all(|&byte| byte == 0));
        assert!(copied[132 * 512..6132 * 512] == bytes);
        assert!(copied[6132 * 512..6232 * 512].iter().all(|&byte| byte == 0));
        assert_eq!(copied[6232 * 512..], [7; 168 * 512]);
        assert_eq!(get(&a, 0, 8).await, bytes[..8 * 512], "and back to the unit that was asked");
        // A long hole gives space back.
        let list = copy_list(9, &[target(1), target(2)], &[segment(0, 1, 8192, 8192, 4096)]);
        assert_eq!(send(&b, 0, 0, &list).await.status, Status::Good);
        let extents = scsi::LogicalUnit::extents(&*units[1], 8192 * 512, 4096 * 512, 2).await.unwrap();
        assert_eq!((extents.len(), extents[0].hole), (1, true));
        let status = [0x84, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0];
        assert_eq!(good(&b, &status, &[]).await, [0, 0, 0, 8, 1, 0, 1, 0, 0, 32, 0, 0]);
        assert_eq!(code(&ask(&b, &status, &[]).await), (5, 0x24, 0), "it was told");
    });
}

#[test]
fn what_an_initiator_was_not_given_it_can_neither_read_nor_write_by_copying() {
    run(async {
        let Pair { devices, a, b, .. } = pair().await;
        let other = attach(&devices[0], "other", &Reach::default()).await;
        put(&b, 0, &pattern(8, 2)).await;
        for list in [
            copy_list(1, &[target(1), target(2)], &[segment(1, 0, 0, 0, 8)]),
            copy_list(1, &[target(1), target(2)], &[segment(0, 1, 0, 0, 8)]),
            copy_list(1, &[target(3)], &[segment(0, 0xffff, 0, 0, 8)]),
            copy_list(1, &[target(1)], &[segment(0, 7, 0, 0, 8)]),
        ] {
            assert_eq!(code(&send(&other, 0, 0, &list).await), (10, 0x0d, 2));
        }
        let token = token_of(&b, 1, &[(0, 8)], 0).await;
        assert_eq!(code(&send(&other, 0x11, 1, &use_list(&token, 0, &[(0, 8)], 0)).await), (5, 0x23, 4));
        assert!(get(&a, 0, 8).await.iter().all(|&byte| byte == 0));
        // What was taken away is out of reach, although a command still has the path.
        let list = copy_list(1, &[target(2)], &[segment(0, 0xffff, 0, 0, 8)]);
        b.leave();
        assert_eq!(code(&send(&a, 0, 0, &list).await), (10, 0x0d, 2));
        assert_eq!(code(&send(&a, 0x11, 1, &use_list(&token, 0, &[(0, 8)], 0)).await), (5, 0x23, 4));
    });
}

#[test]
fn reservations_and_write_protection_hold_against_copies() {
    run(async {
        let Pair { devices, a, b, .. } = pair().await;
        put(&a, 0, &pattern(8, 3)).await;
        let holder = attach(&devices[1], "holder", &Reach::default()).await;
        for (cdb, list) in [prout(6, 0, 0, 0xa, 0), prout(1, 1, 0xa, 0, 0)] {
            good(&holder, &cdb, &list).await;
        }
        let (to, from) = (
            copy_list(1, &[target(2)], &[segment(0xffff, 0, 0, 0, 8)]),
            copy_list(1, &[target(2)], &[segment(0, 0xffff, 0, 0, 8)]),
        );
        assert_eq!(code(&send(&a, 0, 0, &to).await), (10, 0x0d, 1), "it may not be written to");
        assert_eq!(send(&b, 0, 0, &to).await.status, Status::ReservationConflict);
        assert_eq!(send(&a, 0, 0, &from).await.status, Status::Good, "it may be read");
        let token = token_of(&b, 1, &[(0, 8)], 0).await;
        // Exclusive access: neither; also by a token that was made before.
        let (cdb, list) = prout(2, 1, 0xa, 0, 0);
        good(&holder, &cdb, &list).await;
        let (cdb, list) = prout(1, 3, 0xa, 0, 0);
        good(&holder, &cdb, &list).await;
        assert_eq!(code(&send(&a, 0, 0, &from).await), (10, 0x0d, 1));
        assert_eq!(code(&send(&a, 0x11, 1, &use_list(&token, 0, &[(0, 8)], 0)).await), (10, 0x0d, 1));
        let (cdb, list) = prout(3, 0, 0xa, 0, 0);
        good(&holder, &cdb, &list).await;
        ask(&b, &[0; 6], &[]).await;
        devices[1].set_modes(true, true);
        assert_eq!(code(&send(&a, 0, 0, &to).await), (10, 0x0d, 1));
    });
}

#[test]
fn a_token_stands_for_data_as_they_were_and_for_no_longer() {
    run(async {
        let Pair { a, b, .. } = pair().await;
        let bytes = pattern(100, 4);
        put(&a, 50, &bytes).await;
        let token = token_of(&a, 1, &[(50, 30), (100, 50)], 0).await;
        assert_eq!(token[..8], [0, 0x80, 0, 1, 0, 0, 1, 0xf8]);
        // In two writes, into two ranges, beyond what it stands for.
        assert_eq!(
            send(&b, 0x11, 1, &use_list(&token, 0, &[(0, 10), (64, 30)], 0)).await.status,
            Status::Good
        );
        assert_eq!(send(&b, 0x11, 2, &use_list(&token, 40, &[(200, 100)], 0)).await.status, Status::Good);
        let told = good(&b, &information(2), &[]).await;
        assert_eq!((told[5], &told[16..24]), (0x03, &40u64.to_be_bytes()[..]));
        assert_eq!(get(&b, 0, 10).await, bytes[..10 * 512]);
        assert_eq!(get(&b, 64, 30).await, [&bytes[10 * 512..30 * 512], &bytes[50 * 512..60 * 512]].concat());
        assert_eq!(get(&b, 200, 40).await, bytes[60 * 512..]);
        assert_eq!(get(&b, 240, 1).await, [0; 512]);
        assert_eq!(code(&send(&b, 0x11, 3, &use_list(&token, 80, &[(0, 1)], 0)).await), (5, 0x26, 0));
        // One that is a little other, one that is too short, one of another kind; and zeros.
        for (at, sense) in [(300, 4), (9, 4), (7, 0x0a), (3, 1)] {
            let mut forged = token.clone();
            forged[at] ^= 1;
            assert_eq!(code(&send(&b, 0x11, 3, &use_list(&forged, 0, &[(0, 1)], 0)).await), (5, 0x23, sense));
        }
        let mut zeros = vec![0; 512];
        zeros[..8].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
        assert_eq!(send(&b, 0x11, 3, &use_list(&zeros, 0, &[(0, 10)], 0)).await.status, Status::Good);
        assert_eq!(get(&b, 0, 10).await, [0; 5120]);
        // What changes beside it does not matter; one block of it does.
        put(&a, 80, &[1; 512]).await;
        assert_eq!(send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 0)).await.status, Status::Good);
        put(&a, 79, &[1; 512]).await;
        assert_eq!(code(&send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 0)).await), (5, 0x23, 6));
        // One that is deleted, and one that was not used for its time.
        let token = token_of(&a, 1, &[(0, 8)], 5).await;
        world::sleep(Duration::from_secs(4)).await;
        assert_eq!(send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 0)).await.status, Status::Good);
        world::sleep(Duration::from_secs(4)).await;
        assert_eq!(send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 2)).await.status, Status::Good);
        assert_eq!(code(&send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 0)).await), (5, 0x23, 4));
        let token = token_of(&a, 1, &[(0, 8)], 5).await;
        world::sleep(Duration::from_secs(6)).await;
        assert_eq!(code(&send(&b, 0x11, 3, &use_list(&token, 0, &[(0, 1)], 0)).await), (5, 0x23, 7));
        assert_eq!(code(&send(&a, 0x10, 3, &populate_list(&[(0, 8)], 601)).await), (5, 0x26, 0));
        assert_eq!(code(&send(&a, 0x10, 3, &populate_list(&[(16383, 2)], 0)).await), (5, 0x21, 0));
    });
}

/// A token that was used while its data were changed wrote some of the new data.
#[test]
fn a_change_ends_the_use_of_a_token_where_it_is() {
    run(async {
        let Pair { units, a, b, .. } = pair().await;
        let bytes = pattern(8192, 5);
        put(&a, 0, &bytes).await;
        let token = token_of(&a, 1, &[(0, 8192)], 0).await;
        units[0].set_delay(Duration::from_millis(10));
        assert_eq!(send(&b, 0x11, 7, &use_list(&token, 0, &[(0, 8192)], 1)).await.status, Status::Good);
        let told = good(&b, &information(7), &[]).await;
        assert_eq!((told[5], &told[32..]), (0x12, &[0; 4][..]));
        assert_eq!(code(&send(&b, 0x11, 7, &use_list(&token, 0, &[(0, 8192)], 1)).await), (5, 0x00, 0x16));
        world::sleep(Duration::from_millis(15)).await;
        put(&a, 8000, &[9; 512]).await;
        world::sleep(Duration::from_millis(100)).await;
        let told = good(&b, &information(7), &[]).await;
        let moved = u64::from_be_bytes(told[16..24].try_into().unwrap());
        assert!(moved > 0 && moved < 8192, "{moved}");
        assert_eq!((told[5], told[12], told[33], told[34]), (0x02, 0x02, 5, 0x23));
        assert!(get(&b, 0, moved as u32).await == bytes[..moved as usize * 512]);
        assert_eq!(get(&b, moved, 1).await, [0; 512]);
    });
}

#[test]
fn a_copy_ends_within_a_step_when_it_is_aborted_or_its_unit_goes() {
    run(async {
        let Pair { units, devices, reach, a, b } = pair().await;
        put(&a, 0, &pattern(16000, 6)).await;
        let list = copy_list(1, &[target(1), target(2)], &[segment(0, 1, 0, 0, 16000)]);
        let cdb = out(0, 0, list.len());
        let begin = |path: &Path| {
            let admission = path.admit(&cdb, list.len() as u64).unwrap();
            let stop = admission.stop().unwrap();
            let Execution::Pending(work) = path.execute(admission, vec![Buf::copy_from(&list)]) else {
                panic!()
            };
            (world::spawn(work), stop)
        };
        units[0].set_delay(Duration::from_millis(20));
        let step = Duration::from_millis(21);
        let (task, stop) = begin(&a);
        world::sleep(Duration::from_millis(30)).await;
        stop.set();
        let begun = world::now();
        assert_eq!(code(&task.await), (10, 0, 0));
        assert!(world::now().since(begun) < step);
        // The target is reset by another initiator: that is answered when nothing is written any more.
        let other = attach(&devices[1], "other", &Reach::default()).await;
        let (task, _) = begin(&a);
        world::sleep(Duration::from_millis(30)).await;
        let begun = world::now();
        other.reset().await;
        assert!(world::now().since(begun) < step);
        assert_eq!(code(&task.await), (10, 0x0d, 1));
        assert_eq!(code(&ask(&b, &[0; 6], &[]).await), (6, 0x29, 3));
        // In the background, and the session ends: so does it, before the unit may go.
        let token = token_of(&a, 1, &[(0, 16000)], 0).await;
        assert_eq!(send(&b, 0x11, 7, &use_list(&token, 0, &[(0, 16000)], 1)).await.status, Status::Good);
        world::sleep(Duration::from_millis(30)).await;
        let before = get(&other, 8000, 1).await;
        drop((a, b, reach));
        let begun = world::now();
        devices[0].retire().await;
        devices[1].retire().await;
        assert!(world::now().since(begun) < step);
        assert_eq!(before, [0; 512]);
    });
}

#[test]
fn nothing_a_client_sends_for_a_copy_does_harm() {
    run(async {
        let Pair { a, b, .. } = pair().await;
        let mut random = sim::Rng::new(12);
        put(&a, 0, &pattern(64, 7)).await;
        let token = token_of(&a, 1, &[(0, 64)], 0).await;
        let lists = [
            (0, copy_list(1, &[target(1), target(2)], &[segment(0, 1, 0, 0, 64), segment(1, 0, 64, 64, 8)])),
            (0x10, populate_list(&[(0, 8), (8, 8)], 0)),
            (0x11, use_list(&token, 0, &[(0, 8), (16, 8)], 1)),
        ];
        for _ in 0..5000 {
            let (action, list) = &lists[random.below(3) as usize];
            let mut list = list.clone();
            for _ in 0..random.below(4) {
                let at = random.below(list.len() as u64) as usize;
                list[at] = random.below(256) as u8 & random.below(256) as u8;
            }
            list.truncate(random.below(2 * list.len() as u64) as usize);
            let path = if random.below(2) == 0 { &a } else { &b };
            send(path, *action, random.below(4) as u32, &list).await;
            let mut cdb = information(random.below(4) as u8);
            cdb[1] = [0, 3, 7, 0x1c][random.below(4) as usize];
            cdb[13] = random.below(256) as u8;
            ask(path, &cdb, &[]).await;
        }
    });
}
