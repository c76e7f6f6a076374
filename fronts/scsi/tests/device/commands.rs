//! A unit and the clients that share it.

use crate::common::*;
use scsi::{Attention, Device, Execution, Identity, Options, PortGroup, PortState, Status};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::Buf;

#[test]
fn what_is_written_is_read_compared_unmapped_and_mapped() {
    run(async {
        let bench = bench();
        let path = path(&bench, "a").await;
        good(&path, &write(1, 2), &[7; 1024]).await;
        assert_eq!(good(&path, &read(0, 4), &[]).await, [vec![0; 512], vec![7; 1024], vec![0; 512]].concat());
        // Compare and write: first with what is not there.
        let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0];
        let mut data = [vec![7; 512], vec![8; 512]].concat();
        data[300] = 6;
        let missed = ask(&path, &compare, &data).await;
        assert_eq!((code(&missed), missed.sense[3..7].to_vec()), ((14, 0x1d, 0), vec![0, 0, 1, 44]));
        data[300] = 7;
        good(&path, &compare, &data).await;
        assert_eq!(good(&path, &read(1, 1), &[]).await, [8; 512]);
        // Write same, or-write, verify.
        good(&path, &[0x41, 0, 0, 0, 0, 16, 0, 0, 16, 0], &[0x11; 512]).await;
        good(&path, &[0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0], &[0x22; 512]).await;
        assert_eq!(good(&path, &read(16, 2), &[]).await, [[0x33; 512], [0x11; 512]].concat());
        good(&path, &[0x2f, 0x06, 0, 0, 0, 17, 0, 0, 15, 0], &[0x11; 512]).await;
        let differs = ask(&path, &[0x2f, 0x02, 0, 0, 0, 16, 0, 0, 1, 0], &[0x11; 512]).await;
        assert_eq!(code(&differs), (14, 0x1d, 0));
        // Blocks 16-31 are two blocks of the unit; the first is given back.
        let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
        list.extend(16u64.to_be_bytes());
        list.extend([0, 0, 0, 8, 0, 0, 0, 0]);
        good(&path, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], &list).await;
        let status = good(&path, &[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 40, 0, 0], &[]).await;
        assert_eq!(status[8..24], [0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 8, 1, 0, 0, 0]);
        assert_eq!(status[36], 0, "the second is still there");
    });
}

/// What PRE-FETCH was to fetch was counted from a size that the unit did not have any more: less than nothing was left.
#[test]
fn a_command_that_was_admitted_before_the_unit_shrank_is_done_or_refused() {
    run(async {
        // The last 16 blocks: fetched to the end, and so many of them; their state; read, written, compared, given back.
        let at = |code, count| [code, 0, 0, 0, 0, 0, 0, 0, 7, 0xf0, 0, 0, 0, count, 0, 0];
        let status = [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 7, 0xf0, 0, 0, 0, 40, 0, 0];
        let same = at(0x93, 8);
        for (cdb, len) in [
            (at(0x90, 0), 0),
            (at(0x90, 8), 0),
            (status, 0),
            (at(0x88, 8), 0),
            (at(0x8a, 8), 4096),
            (same, 512),
            (at(0x89, 1), 1024),
        ] {
            let bench = bench();
            let path = path(&bench, "a").await;
            let admission = path.admit(&cdb, len).unwrap();
            bench.unit.resize(SIZE / 2);
            let data = vec![Buf::copy_from(&vec![0; admission.intake()])];
            let outcome = match path.execute(admission, data) {
                Execution::Done(outcome) => outcome,
                Execution::Pending(work) => work.await,
            };
            assert!(
                outcome.status == Status::Good || code(&outcome).0 == 5,
                "{cdb:x?}: {:x?}",
                outcome.sense
            );
        }
    });
}

#[test]
fn what_reaches_past_the_end_or_lies_about_its_length_is_refused() {
    run(async {
        let bench = bench();
        let path = path(&bench, "a").await;
        let far = [0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0];
        assert_eq!(code(&ask(&path, &far, &[]).await), (5, 0x21, 0));
        let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0];
        assert_eq!(code(&ask(&path, &compare, &[0; 1536]).await), (5, 0x24, 0));
        assert_eq!(code(&ask(&path, &[0x41, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[1; 512]).await), (5, 0x24, 0));
        let all = [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0];
        assert_eq!(good(&path, &all, &[]).await.len() as u64, SIZE, "the whole of it may be read");
    });
}

#[test]
fn a_full_pool_is_told_and_can_be_recovered_from() {
    run(async {
        let bench = bench();
        let path = path(&bench, "a").await;
        bench.unit.set_full(true);
        assert_eq!(code(&ask(&path, &write(0, 1), &[1; 512]).await), (7, 0x27, 7));
        bench.unit.set_full(false);
        good(&path, &write(0, 1), &[1; 512]).await;
    });
}

#[test]
fn a_new_size_is_told_to_everybody_once() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        bench.unit.resize(2 * SIZE);
        for path in [&a, &b] {
            assert_eq!(code(&ask(path, &read(0, 1), &[]).await), (6, 0x2a, 9));
            let capacity = good(path, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]).await;
            assert_eq!(capacity[..4], 4095u32.to_be_bytes());
        }
    });
}

/// A volume that was copied into other blocks is the same unit; what it said of its limits is not true any more.
#[test]
fn another_block_is_told_to_everybody_and_changes_nothing_else() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        let (cdb, list) = prout(0, 0, 0, 0xa, 0);
        good(&a, &cdb, &list).await;
        let limits = [0x12, 1, 0xb0, 0, 64, 0];
        let name = good(&a, &[0x12, 1, 0x83, 0, 255, 0], &[]).await;
        assert_eq!(good(&a, &limits, &[]).await[6..8], [0, 8]);
        bench.unit.set_block_size(64 << 10);
        for path in [&a, &b] {
            assert_eq!(code(&ask(path, &read(0, 1), &[]).await), (6, 0x2a, 9));
            assert_eq!(code(&ask(path, &read(0, 1), &[]).await), (6, 0x3f, 3));
            good(path, &read(0, 1), &[]).await;
            assert_eq!(good(path, &limits, &[]).await[6..8], [0, 128]);
        }
        assert_eq!(good(&a, &[0x12, 1, 0x83, 0, 255, 0], &[]).await, name);
        let keys = good(&a, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 64, 0], &[]).await;
        assert_eq!(keys[8..16], 0xau64.to_be_bytes(), "who registered is registered");
    });
}

#[test]
fn reservations_keep_others_out_until_preempted() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        let (cdb, list) = prout(0, 0, 0, 0xa, 0);
        good(&a, &cdb, &list).await;
        let (cdb, list) = prout(1, 1, 0xa, 0, 0);
        good(&a, &cdb, &list).await;
        assert_eq!(ask(&b, &write(0, 1), &[1; 512]).await.status, Status::ReservationConflict);
        good(&b, &read(0, 1), &[]).await;
        let (cdb, list) = prout(6, 0, 0, 0xb, 0);
        good(&b, &cdb, &list).await;
        let (cdb, list) = prout(5, 3, 0xb, 0xa, 0);
        good(&b, &cdb, &list).await;
        good(&b, &write(0, 1), &[1; 512]).await;
        assert_eq!(code(&ask(&a, &read(0, 1), &[]).await), (6, 0x2a, 5));
        assert_eq!(ask(&a, &read(0, 1), &[]).await.status, Status::ReservationConflict);
        good(&a, &[0; 6], &[]).await;
    });
}

#[test]
fn only_reservations_that_must_survive_are_kept_and_they_come_back() {
    run(async {
        let bench = bench();
        let a = path(&bench, "a").await;
        let (cdb, list) = prout(0, 0, 0, 0xa, 0);
        good(&a, &cdb, &list).await;
        assert_eq!(*bench.kept.0.lock().unwrap(), "");
        let (cdb, list) = prout(6, 0, 0, 0xa, 1);
        good(&a, &cdb, &list).await;
        let (cdb, list) = prout(1, 3, 0xa, 0, 0);
        good(&a, &cdb, &list).await;
        let text = bench.kept.0.lock().unwrap().clone();
        let again = Device::new(
            bench.unit.clone(),
            Identity::new([0x60; 16]),
            Options::default(),
            bench.kept.clone(),
            &text,
        );
        let (a, b) = (again.attach(nexus("a", 1)), again.attach(nexus("b", 1)));
        for path in [&a, &b] {
            ask(path, &[0; 6], &[]).await;
        }
        good(&a, &read(0, 1), &[]).await;
        assert_eq!(ask(&b, &read(0, 1), &[]).await.status, Status::ReservationConflict);
        let (cdb, list) = prout(3, 0, 0xa, 0, 0);
        good(&a, &cdb, &list).await;
        assert_eq!(*bench.kept.0.lock().unwrap(), "");
    });
}

#[test]
fn the_old_way_of_reserving_ends_with_its_path_and_with_a_reset() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        let reserve = [0x16, 0, 0, 0, 0, 0];
        good(&a, &reserve, &[]).await;
        assert_eq!(ask(&b, &reserve, &[]).await.status, Status::ReservationConflict);
        b.reset().await;
        good(&b, &reserve, &[]).await;
        drop(b);
        assert_eq!(code(&ask(&a, &reserve, &[]).await), (6, 0x29, 3));
        good(&a, &reserve, &[]).await;
    });
}

/// An abort that was answered while a write was still on its way let the write overtake the client's next one.
#[test]
fn an_abort_is_answered_when_nothing_aborted_can_happen_any_more() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        bench.unit.set_delay(Duration::from_millis(50));
        let admission = a.admit(&write(0, 1), 512).unwrap();
        let Execution::Pending(work) = a.execute(admission, vec![Buf::copy_from(&[1; 512])]) else {
            panic!()
        };
        let waiting = a.admit(&write(1, 1), 512).unwrap();
        let done = Arc::new(Mutex::new(None));
        let told = done.clone();
        let task = world::spawn(async move {
            let outcome = work.await;
            *told.lock().unwrap() = Some(outcome.silent);
        });
        world::sleep(Duration::from_millis(1)).await;
        b.reset().await;
        assert_eq!(*done.lock().unwrap(), Some(true), "it ended before the reset was answered, unheard");
        task.await;
        assert!(waiting.is_aborted());
        let Execution::Done(outcome) = a.execute(waiting, vec![Buf::zeroed(512)]) else { panic!() };
        assert!(outcome.silent);
        assert_eq!(code(&ask(&a, &[0; 6], &[]).await), (6, 0x29, 3));
    });
}

#[test]
fn a_unit_that_goes_away_lets_its_commands_end_first() {
    run(async {
        let bench = bench();
        let a = path(&bench, "a").await;
        bench.unit.set_delay(Duration::from_millis(50));
        let admission = a.admit(&write(0, 1), 512).unwrap();
        let Execution::Pending(work) = a.execute(admission, vec![Buf::copy_from(&[1; 512])]) else {
            panic!()
        };
        let task = world::spawn(async move { work.await.status });
        world::sleep(Duration::from_millis(1)).await;
        let before = world::now();
        bench.device.retire().await;
        assert!(world::now().since(before) > Duration::from_millis(40));
        task.await;
        assert_eq!(code(&ask(&a, &[0; 6], &[]).await), (5, 0x25, 0));
    });
}

/// A unit that was away for a rollback was "not supported" meanwhile, and clients gave it up.
#[test]
fn a_unit_that_is_away_for_a_moment_has_its_clients_try_again() {
    run(async {
        let bench = bench();
        let a = path(&bench, "a").await;
        bench.unit.set_delay(Duration::from_millis(50));
        let parked = a.admit(&write(4, 1), 512).unwrap();
        let admission = a.admit(&write(0, 1), 512).unwrap();
        let Execution::Pending(work) = a.execute(admission, vec![Buf::copy_from(&[1; 512])]) else {
            panic!()
        };
        let task = world::spawn(async move { work.await.status });
        world::sleep(Duration::from_millis(1)).await;
        let before = world::now();
        bench.device.go_away().await;
        assert!(world::now().since(before) > Duration::from_millis(40));
        assert_eq!(task.await, Status::Good, "what was under way ends as it would");
        let Execution::Done(outcome) = a.execute(parked, vec![Buf::zeroed(512)]) else { panic!() };
        assert_eq!(outcome.status, Status::Busy);
        let quiesced = bench.device.quiesced();
        let b = quiesced.attach(nexus("a", 1));
        for path in [&a, &b] {
            assert_eq!(ask(path, &read(0, 1), &[]).await.status, Status::Busy);
            assert_eq!(code(&ask(path, &[0; 6], &[]).await), (2, 4, 1));
        }
        let inquiry = [0x12, 1, 0x83, 0, 255, 0];
        assert_eq!(good(&a, &inquiry, &[]).await, good(&b, &inquiry, &[]).await, "it is the same unit");
        let again = Device::new(
            bench.unit.clone(),
            Identity::new([0x60; 16]),
            Options::default(),
            bench.kept.clone(),
            "",
        );
        let c = again.attach(nexus("a", 1));
        assert_eq!(code(&ask(&c, &[0; 6], &[]).await), (6, 0x29, 0));
        assert_eq!(good(&c, &read(0, 1), &[]).await, [1; 512]);
    });
}

#[test]
fn standby_ports_answer_questions_only() {
    run(async {
        let bench = bench();
        let a = path(&bench, "a").await;
        let group = PortGroup { id: 1, state: PortState::Standby, preferred: false, ports: vec![1, 2] };
        bench.device.set_groups(vec![group]);
        assert_eq!(code(&ask(&a, &[0; 6], &[]).await), (6, 0x2a, 6));
        assert_eq!(code(&ask(&a, &read(0, 1), &[]).await), (2, 4, 0x0b));
        let report = good(&a, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[]).await;
        assert_eq!(report, [0, 0, 0, 16, 2, 0x8f, 0, 1, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        a.raise(Attention::LunsChanged);
        let sense = good(&a, &[3, 0, 0, 0, 18, 0], &[]).await;
        assert_eq!(
            (sense[2], sense[12], sense[13]),
            (6, 0x3f, 0x0e),
            "sense that was asked for tells it too"
        );
    });
}

#[test]
fn nothing_a_client_sends_does_harm() {
    run(async {
        let bench = bench();
        let (a, b) = (path(&bench, "a").await, path(&bench, "b").await);
        let mut random = sim::Rng::new(11);
        let opcodes =
            [0x03, 0x12, 0x15, 0x1a, 0x41, 0x42, 0x55, 0x5a, 0x5e, 0x5f, 0x89, 0x8b, 0x93, 0x9e, 0xa3, 0x8e];
        for _ in 0..20_000 {
            let mut cdb: Vec<u8> =
                (0..16).map(|_| random.below(256) as u8 & random.below(256) as u8).collect();
            cdb[0] = opcodes[random.below(opcodes.len() as u64) as usize];
            // Small addresses, or nothing would be in range.
            cdb[2..6].fill(0);
            if random.below(2) == 0 {
                cdb[6..14].iter_mut().for_each(|b| *b &= 0x1f);
                cdb[10..12].fill(0);
            }
            let data: Vec<u8> = (0..random.below(100)).map(|_| random.below(256) as u8).collect();
            let path = if random.below(2) == 0 { &a } else { &b };
            ask(path, &cdb, &data).await;
        }
    });
}

/// Names of others that a client registers: one with a line break, and after a restart the unit was reserved for no client.
#[test]
fn a_client_names_no_others_that_break_what_is_kept() {
    run(async {
        let bench = bench();
        let (a, c) = (path(&bench, "a").await, path(&bench, "c").await);
        let (cdb, list) = prout(6, 0, 0, 0xa, 1);
        good(&a, &cdb, &list).await;
        let (cdb, list) = prout(1, 3, 0xa, 0, 0);
        good(&a, &cdb, &list).await;
        for name in ["iqn.x:evil\ngarbage", "iqn.x:evil\r", "iqn.x:e vil"] {
            let mut id = name.as_bytes().to_vec();
            id.resize((name.len() + 1).next_multiple_of(4).max(20), 0);
            let id = [&[5, 0, 0, id.len() as u8][..], &id].concat();
            let (mut cdb, mut list) = prout(0, 0, 0, 0xc, 9);
            list.extend((id.len() as u32).to_be_bytes());
            list.extend(&id);
            cdb[8] = list.len() as u8;
            assert_eq!(code(&ask(&c, &cdb, &list).await), (5, 0x26, 0), "{name:?}");
            let mut list = [0xau64.to_be_bytes(), 0xcu64.to_be_bytes()].concat();
            list.extend([0, 0, 0, 1, 0, 0, 0, id.len() as u8]);
            list.extend(&id);
            let cdb = [0x5f, 7, 0, 0, 0, 0, 0, 0, list.len() as u8, 0];
            assert_eq!(code(&ask(&a, &cdb, &list).await), (5, 0x26, 0), "{name:?}");
        }
        let text = bench.kept.0.lock().unwrap().clone();
        assert!(scsi::is_reservations(&text), "{text:?}");
    });
}
