use crate::{Config, Disks, Fault, Model, run, run_until_cut, run_with};
use std::path::Path;
use std::time::Duration;
use world::{Buf, IoBuf, OpenMode};

const SIZE: u64 = 1 << 20;

fn disks() -> Disks {
    let disks = Disks::new();
    disks.add("/d/a", SIZE, Model::NVME);
    disks
}

async fn read(path: &str, offset: u64, len: usize) -> Vec<u8> {
    let disk = world::open(Path::new(path), OpenMode::ReadOnly).unwrap();
    let (buf, result) = disk.read(offset, IoBuf::zeroed(len)).await;
    result.unwrap();
    buf.to_vec()
}

#[test]
fn time_jumps_to_the_next_thing_that_happens() {
    let elapsed = run(1, Config::default(), async {
        let start = world::now();
        let slow = world::spawn(world::sleep(Duration::from_secs(3600)));
        world::sleep(Duration::from_secs(1800)).await;
        assert_eq!(world::timeout(Duration::from_secs(1), std::future::pending::<()>()).await, None);
        slow.await;
        world::now().since(start)
    });
    assert_eq!(elapsed, Duration::from_secs(3600));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = |seed| {
        run_with(&disks(), seed, Config::default(), async {
            let disk = world::open(Path::new("/d/a"), OpenMode::ReadWrite).unwrap();
            let tasks: Vec<_> = (0..20u64)
                .map(|i| {
                    let disk = disk.clone();
                    world::spawn(async move {
                        disk.write(i * 512, vec![Buf::copy_from(&[i as u8; 512])]).await.unwrap();
                        (i, world::now(), world::random_u64())
                    })
                })
                .collect();
            let mut trace = Vec::new();
            for task in tasks {
                trace.push(task.await);
            }
            trace
        })
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

#[test]
fn a_cut_keeps_what_was_flushed_and_tears_the_rest() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..60 {
        let disks = disks();
        run_with(&disks, seed, Config::default(), async {
            let disk = world::open(Path::new("/d/a"), OpenMode::ReadWrite).unwrap();
            disk.write(0, vec![Buf::copy_from(&[1; 4096])]).await.unwrap();
            disk.flush().await.unwrap();
            disk.write(0, vec![Buf::copy_from(&[2; 4096])]).await.unwrap();
            assert_eq!(read("/d/a", 0, 4096).await, [2; 4096], "a read sees what is not durable yet");
        });
        disks.power_cut(seed);
        let after = run_with(&disks, seed, Config::default(), read("/d/a", 0, 4096));
        assert!(after.chunks(512).all(|s| s == [1; 512] || s == [2; 512]), "a sector is never torn");
        match after.iter().filter(|b| **b == 2).count() {
            0 => lost += 1,
            4096 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 5 && lost > 5 && torn > 5, "{kept} {lost} {torn}");
}

#[test]
fn the_power_can_be_cut_at_any_flush() {
    let disks = disks();
    disks.cut_at_flush(3);
    let outcome = run_until_cut(&disks, 1, Config::default(), async {
        let disk = world::open(Path::new("/d/a"), OpenMode::ReadWrite).unwrap();
        for i in 0..10u8 {
            disk.write(u64::from(i) * 512, vec![Buf::copy_from(&[i + 1; 512])]).await.unwrap();
            disk.flush().await.unwrap();
        }
    });
    assert!(outcome.is_none());
    disks.power_cut(9);
    let after = run_with(&disks, 1, Config::default(), read("/d/a", 0, 5120));
    assert_eq!(
        (after[0], after[512], after[1536]),
        (1, 2, 0),
        "two flushes completed, the fourth write never began"
    );
}

#[test]
fn faults_are_what_they_say() {
    let disks = disks();
    let handle = disks.get("/d/a").unwrap();
    let inner = handle.clone();
    run_with(&disks, 3, Config::default(), async move {
        let disk = world::open(Path::new("/d/a"), OpenMode::ReadWrite).unwrap();
        assert!(world::open(Path::new("/d/a"), OpenMode::ReadWrite).is_err(), "one writer");
        assert!(disk.write(SIZE, vec![Buf::zeroed(512)]).await.is_err(), "beyond the end");
        assert!(disk.write(100, vec![Buf::zeroed(512)]).await.is_err(), "not aligned");
        inner.set_fault(Fault { rot_ppm: 1_000_000, ..Fault::default() });
        assert_eq!(
            read("/d/a", 0, 512).await.iter().map(|b| b.count_ones()).sum::<u32>(),
            1,
            "one bit flipped"
        );
        inner.set_fault(Fault { lost_writes_ppm: 1_000_000, ..Fault::default() });
        disk.write(0, vec![Buf::copy_from(&[9; 512])]).await.unwrap();
        inner.set_fault(Fault { full: true, ..Fault::default() });
        assert_eq!(
            disk.write(0, vec![Buf::zeroed(512)]).await.unwrap_err().kind(),
            std::io::ErrorKind::StorageFull
        );
        inner.set_fault(Fault { gone: true, ..Fault::default() });
        assert!(disk.read(0, IoBuf::zeroed(512)).await.1.is_err());
        inner.set_fault(Fault::default());
        assert_eq!(read("/d/a", 0, 512).await, [0; 512], "the lost write is lost");
    });
}
