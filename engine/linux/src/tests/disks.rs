use super::{Scratch, both};
use std::io::ErrorKind;
use std::path::Path;
use world::{Buf, DiskKind, IoBuf, OpenMode};

const MIB: u64 = 1 << 20;

fn pattern(len: usize, salt: u64) -> Buf {
    let mut buf = IoBuf::scratch(len);
    for (i, byte) in buf.iter_mut().enumerate() {
        *byte = (i as u64).wrapping_mul(31).wrapping_add(salt) as u8;
    }
    buf.freeze()
}

async fn roundtrip(disk: &dyn world::Disk) {
    let mut all = Vec::new();
    for i in 0..32u64 {
        all.push(disk.write(i * 65536, vec![pattern(4096, i), pattern(61440, i + 1)]));
    }
    for write in all {
        write.await.unwrap();
    }
    disk.flush().await.unwrap();
    for i in 0..32u64 {
        let (buf, outcome) = disk.read(i * 65536, IoBuf::scratch(65536)).await;
        outcome.unwrap();
        assert_eq!(buf[..4096], pattern(4096, i)[..]);
        assert_eq!(buf[4096..], pattern(61440, i + 1)[..]);
    }
}

#[test]
fn what_is_written_is_read_on_a_disk_and_in_memory() {
    for dir in [std::env::temp_dir(), "/dev/shm".into()] {
        both(|| {
            let dir = dir.clone();
            async move {
                let file = Scratch::in_dir(&dir, 4 * MIB);
                let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
                let geometry = disk.geometry();
                assert_eq!((geometry.size, geometry.kind), (4 * MIB, DiskKind::File));
                assert!(geometry.physical_block.is_power_of_two() && geometry.physical_block >= 512);
                roundtrip(&*disk).await;
            }
        });
    }
}

#[test]
fn requests_that_o_direct_would_refuse_are_served_all_the_same() {
    both(|| async {
        let file = Scratch::new(MIB);
        let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
        let source = pattern(20000, 7);
        // Aligned on the disk, not in memory; then neither; then a sector beside an aligned neighbour.
        disk.write(8192, vec![source.slice(1..4097), source.slice(5000..9096)]).await.unwrap();
        disk.write(100, vec![source.slice(3..1003)]).await.unwrap();
        disk.write(65536 + 512, vec![source.slice(0..512)]).await.unwrap();
        for (offset, want) in [
            (8192, source.slice(1..4097)),
            (12288, source.slice(5000..9096)),
            (100, source.slice(3..1003)),
            (65536 + 512, source.slice(0..512)),
        ] {
            let (buf, outcome) = disk.read(offset, IoBuf::scratch(want.len())).await;
            outcome.unwrap();
            assert_eq!(buf[..], want[..], "at {offset}");
        }
    });
}

#[test]
fn a_write_of_very_many_parts_is_whole() {
    both(|| async {
        let file = Scratch::new(8 * MIB);
        let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
        let parts: Vec<Buf> = (0..1500).map(|i| pattern(512 * (1 + i % 3), i as u64)).collect();
        let whole: Vec<u8> = parts.iter().flat_map(|p| p.to_vec()).collect();
        disk.write(4096, parts).await.unwrap();
        let (buf, outcome) = disk.read(4096, IoBuf::scratch(whole.len())).await;
        outcome.unwrap();
        assert!(buf[..] == whole[..]);
    });
}

/// Parts of whole pages, more parts than the kernel takes at once, and parts that O_DIRECT would refuse though the whole is
/// aligned.
#[test]
fn what_lies_side_by_side_is_read_into_a_buffer_for_each_part() {
    for dir in [std::env::temp_dir(), "/dev/shm".into()] {
        both(|| {
            let dir = dir.clone();
            async move {
                let file = Scratch::in_dir(&dir, 8 * MIB);
                let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
                let all = pattern(4 << 20, 3);
                disk.write(0, vec![all.clone()]).await.unwrap();
                let many: Vec<usize> = (0..1500).map(|i| 512 * (1 + i % 3)).collect();
                for lens in [vec![4096, 16384, 12288], many, vec![512, 3584, 4096], vec![100, 900]] {
                    let parts = lens.iter().map(|len| IoBuf::scratch(*len)).collect();
                    let (parts, outcome) = disk.read_parts(8192, parts).await;
                    outcome.unwrap();
                    let mut at = 8192;
                    for (part, len) in parts.iter().zip(&lens) {
                        assert!(part[..] == all[at..at + len], "{len} bytes at {at}");
                        at += len;
                    }
                    assert_eq!(parts.len(), lens.len());
                }
                let parts = vec![IoBuf::scratch(4096), IoBuf::scratch(8192)];
                let (parts, outcome) = disk.read_parts(8 * MIB - 8192, parts).await;
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::UnexpectedEof);
                assert_eq!(parts.len(), 2);
            }
        });
    }
}

#[test]
fn reading_past_the_end_is_an_error_and_returns_the_buffer() {
    both(|| async {
        let file = Scratch::new(64 << 10);
        let disk = world::open(&file.path(), OpenMode::ReadOnly).unwrap();
        let (buf, outcome) = disk.read(60 << 10, IoBuf::scratch(8192)).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(buf.len(), 8192);
        assert!(disk.write(0, vec![Buf::zeroed(4096)]).await.is_err(), "it was opened for reading");
    });
}

#[test]
fn a_discarded_range_of_a_file_is_a_hole() {
    both(|| async {
        let file = Scratch::new(MIB);
        let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
        disk.write(0, vec![pattern(MIB as usize, 1)]).await.unwrap();
        disk.discard(65536, 131072).await.unwrap();
        let (buf, outcome) = disk.read(0, IoBuf::scratch(MIB as usize)).await;
        outcome.unwrap();
        assert!(buf[65536..65536 + 131072].iter().all(|&b| b == 0));
        assert_eq!(buf[..65536], pattern(MIB as usize, 1)[..65536]);
        assert_eq!(disk.current_size().unwrap(), MIB);
        let handle = std::fs::File::options().write(true).open(file.path()).unwrap();
        handle.set_len(MIB / 2).unwrap();
        assert_eq!(disk.current_size().unwrap(), MIB / 2);
    });
}

#[test]
fn a_second_writer_is_refused_by_name_until_the_first_is_gone() {
    both(|| async {
        let file = Scratch::new(MIB);
        let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
        let error = world::open(&file.path(), OpenMode::ReadWrite).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
        world::open(&file.path(), OpenMode::ReadOnly).unwrap();
        drop(disk);
        world::open(&file.path(), OpenMode::ReadWrite).unwrap();
    });
}

/// An export and an import in one process must not meet the lock of the export.
#[test]
fn a_disk_closed_after_its_last_answer_can_be_opened_at_once() {
    both(|| async {
        let file = Scratch::new(MIB);
        for i in 0..200 {
            let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
            match i % 4 {
                0 => disk.read(0, IoBuf::scratch(4096)).await.1.unwrap(),
                1 => disk.write(0, vec![Buf::zeroed(4096)]).await.unwrap(),
                2 => disk.flush().await.unwrap(),
                _ => disk.discard(0, 4096).await.unwrap(),
            }
        }
    });
}

#[test]
fn a_task_that_reads_memory_on_and_on_does_not_keep_its_loop() {
    both(|| async {
        let file = Scratch::in_dir(Path::new("/dev/shm"), MIB);
        let disk = world::open(&file.path(), OpenMode::ReadOnly).unwrap();
        let busy = world::spawn(async move {
            loop {
                disk.read(0, IoBuf::scratch(4096)).await.1.unwrap();
            }
        });
        for _ in 0..10 {
            world::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop::<world::Task<()>>(busy);
    });
}

#[test]
fn what_is_no_disk_is_refused() {
    both(|| async {
        assert_eq!(
            world::open(Path::new("/dev/null"), OpenMode::ReadOnly).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(
            world::open(Path::new("/no/such/file"), OpenMode::ReadOnly).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    });
}

/// The kernel writes into a buffer after its future is gone; the memory must still be its own.
#[test]
fn a_dropped_read_neither_cancels_nor_corrupts() {
    both(|| async {
        let file = Scratch::new(16 * MIB);
        let disk = world::open(&file.path(), OpenMode::ReadWrite).unwrap();
        disk.write(0, vec![pattern(MIB as usize, 3)]).await.unwrap();
        for round in 0..50 {
            for i in 0..8 {
                drop(disk.read(i * 65536, IoBuf::scratch(65536)));
            }
            let mine = pattern(65536, round);
            world::yield_now().await;
            assert!(mine[..] == pattern(65536, round)[..]);
        }
        let lost = disk.write(0, vec![pattern(4096, 99)]);
        drop(lost);
        // Not cancelled: a later flush waits behind nothing, so poll until the write shows.
        for _ in 0..1000 {
            let (buf, outcome) = disk.read(0, IoBuf::scratch(4096)).await;
            outcome.unwrap();
            if buf[..] == pattern(4096, 99)[..] {
                return;
            }
        }
        panic!("the write was lost with its future");
    });
}

#[test]
fn a_directory_lists_its_files_in_order() {
    both(|| async {
        let dir = std::env::temp_dir().join(format!("cenote-linux-dir-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        for name in ["b", "a", "c"] {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        let found = world::list_dir(&dir).await.unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, [dir.join("a"), dir.join("b"), dir.join("c")]);
    });
}

/// Whether a page of a file is in memory: the kernel answers a read that may not wait.
fn is_in_memory(path: &Path) -> bool {
    let file = std::fs::File::open(path).unwrap();
    let mut page = [0; 4096];
    let read = rustix::io::preadv2(
        &file,
        &mut [std::io::IoSliceMut::new(&mut page)],
        0,
        rustix::io::ReadWriteFlags::NOWAIT,
    );
    read.is_ok()
}

#[test]
fn a_load_goes_to_the_same_bytes_in_place_and_drops_them_from_memory() {
    both(|| async {
        for in_place in [false, true] {
            let file = Scratch::new(4 * MIB);
            for order in [None, Some(crate::Order::Random), Some(crate::Order::Sequential)] {
                let access = crate::Access { writes: true, in_place, order, ..crate::Access::default() };
                let disk = crate::open_for_load(&file.path(), access).unwrap();
                roundtrip(&*disk).await;
            }
            assert!(is_in_memory(&file.path()));
            crate::drop_pages(&file.path()).unwrap();
            assert!(!is_in_memory(&file.path()), "in place: {in_place}");
        }
    });
    assert_eq!(crate::drop_pages(Path::new("/no/such/file")).unwrap_err().kind(), ErrorKind::NotFound);
}
