use super::*;
use interop::golden;
use std::path::Path;

#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn read_at(&self, offset: u64, len: usize) -> Pending<Result<Buf>> {
        let found = self.0.get(offset as usize..offset as usize + len).map(|bytes| {
            let mut buf = IoBuf::scratch(len);
            buf.copy_from_slice(bytes);
            buf.freeze()
        });
        Box::pin(async move { found.ok_or_else(|| Error::new(units::Kind::Io, "read")) })
    }
}

#[allow(clippy::disallowed_methods, reason = "a golden image is a file")]
fn golden_cache() -> Bytes {
    let pool = golden::pool("aux");
    let is_cache =
        |path: &&std::path::PathBuf| path.file_name() == Some(Path::new("aux-cache.img").as_os_str());
    let path = pool.images.iter().find(is_cache).expect("the pool has a cache device");
    Bytes(std::fs::read(path).unwrap())
}

async fn walk(device: &Bytes) -> (u64, u64, Vec<ondisk::l2arc::LogEntry>, Option<Error>) {
    let header = read_header(device, 9).await.unwrap();
    let (mut chain, mut logs, mut asize, mut entries) = (Chain::new(&header), 0, 0, Vec::new());
    loop {
        match chain.next(device).await {
            None => return (logs, asize, entries, None),
            Some(Err(e)) => return (logs, asize, entries, Some(e)),
            Some(Ok((pointer, log))) => {
                (logs, asize) = (logs + 1, asize + pointer.asize());
                entries.extend(log.entries);
            }
        }
    }
}

/// What `zdb -l` of OpenZFS says of the same device.
#[test]
fn a_cache_device_of_openzfs_is_read_whole() {
    sim::run(1, sim::Config::default(), async {
        let device = golden_cache();
        let header = read_header(&device, 9).await.unwrap();
        assert_eq!((header.pool.0, header.vdev.0), (15329126267914775052, 17919036409627031465));
        assert_eq!((header.start, header.end, header.evict), (4194816, 83361792, 4194816));
        assert_eq!(header.newest.map(|p| p.daddr), [8599552, 8513024]);
        assert!(header.is_first_sweep());
        let (logs, asize, entries, error) = walk(&device).await;
        assert_eq!((logs, asize, error.map(|e| e.to_string())), (56, 28672, None));
        assert_eq!((header.logs, header.logs_asize), (logs, asize));
        assert_eq!(entries.len() as u64, 56 * header.log_entries);
        let ring = Ring::of(&header);
        assert!(
            entries.iter().all(|e| ring.has_room_for(e.daddr, e.prop.psize.0)),
            "each lies on the device"
        );
        let bytes = |is_metadata| -> u64 {
            entries.iter().filter(|e| e.prop.is_metadata == is_metadata).map(|e| e.prop.psize.0).sum()
        };
        // The pool has 4 MiB of files.
        assert!(
            bytes(false) > 3 << 20 && (1..1 << 20).contains(&bytes(true)),
            "{} {}",
            bytes(false),
            bytes(true)
        );
    });
}

#[test]
fn a_damaged_log_ends_the_chain_and_a_damaged_header_all() {
    sim::run(2, sim::Config::default(), async {
        let mut device = golden_cache();
        device.0[8513024 + 100] ^= 1;
        let (logs, .., error) = walk(&device).await;
        assert_eq!((logs, error.unwrap().kind()), (1, units::Kind::Checksum));
        for at in [0, 8, 16, 72, 300, 480] {
            let mut device = golden_cache();
            device.0[DATA_OFFSET as usize + at] ^= 1;
            assert!(read_header(&device, 9).await.is_err(), "byte {at}");
        }
    });
}

/// A chain that leads back to its beginning would never end.
#[test]
fn a_chain_that_bites_its_tail_comes_to_an_end() {
    let log = |at: u64| LogPointer::new(at, 512, Compression::Off, [0; 4]);
    let header = ondisk::l2arc::L2Header {
        version: 1,
        pool: units::Guid(1),
        vdev: units::Guid(2),
        log_entries: 1,
        evict: 4096,
        flags: 1,
        start: 4096,
        end: 1 << 20,
        newest: [log(8192), log(9216)],
        logs_asize: 0,
        logs: 0,
        trim: Default::default(),
    };
    // Each log names the other as the one before the previous: with checksums of four zeros no bytes but zeros pass, so
    // the walk is held against its own bound.
    let mut chain = Chain::new(&header);
    chain.left = 1023;
    sim::run(3, sim::Config::default(), async move {
        let zeros = Bytes(vec![0; 1 << 20]);
        assert!(chain.next(&zeros).await.unwrap().is_err(), "zeros are no log");
        chain.next = [log(8192), log(9216)];
        assert!(chain.next(&zeros).await.is_none(), "no bytes are left for a log of 512");
    });
}
