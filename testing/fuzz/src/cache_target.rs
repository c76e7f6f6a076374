//! What a cache device says of itself: a header, sealed anew so that more than its checksum is reached, and a log.

use codec::checksum::{Checksummer, sealed};
use l2arc::{Ring, decode_header, decode_log};
use ondisk::Writer;
use ondisk::l2arc::{L2Header, LOG_SIZE, LogBlock, LogPointer, TrimState};
use ondisk::label::DATA_OFFSET;
use units::{Checksum, Compression, Endian, Guid};

/// The first bytes are a header, all that follow a compressed log that the first pointer in it leads to.
///
/// # Panics
/// When a decoder does, or a log that is held lies outside of the ring.
pub fn cache_device(bytes: &[u8]) {
    let mut header = [0; L2Header::SIZE];
    let len = bytes.len().min(header.len());
    header[..len].copy_from_slice(&bytes[..len]);
    let _ = decode_header(&header);
    let endian = L2Header::endian_of(&header).unwrap_or(Endian::Little);
    sealed::seal(Checksum::Label, endian, &mut header, sealed::label_verifier(DATA_OFFSET), None);
    let Ok(header) = decode_header(&header) else { return };
    let ring = Ring::of(&header);
    for pointer in &header.newest {
        assert!(!ring.holds(pointer) || pointer.daddr + pointer.asize() <= ring.end, "{pointer:?}");
    }
    let log = &bytes[len..];
    let checksum = Checksummer::unsalted().compute(Checksum::Fletcher4, Endian::NATIVE, log);
    for compression in [Compression::Lz4, Compression::Off] {
        let pointer = LogPointer::new(DATA_OFFSET, 512, compression, checksum);
        let Ok(found) = decode_log(&pointer, log, header.log_entries) else { continue };
        let inside = |daddr, psize| ring.has_room_for(daddr, psize);
        found.entries.iter().for_each(|e| {
            inside(e.daddr, e.prop.psize.0);
        });
        let _ = ring.holds(&found.previous);
    }
}

/// A header with a log behind it, compressed and as it is.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let pointer = |at| LogPointer::new(at, 1024, Compression::Lz4, [1, 2, 3, 4]);
    let header = L2Header {
        version: L2Header::VERSION,
        pool: Guid(1),
        vdev: Guid(2),
        log_entries: 4,
        evict: DATA_OFFSET + 512,
        flags: L2Header::FIRST_SWEEP,
        start: DATA_OFFSET + 512,
        end: 64 << 20,
        newest: [pointer(DATA_OFFSET + 2048), pointer(DATA_OFFSET + 1024)],
        logs_asize: 2048,
        logs: 2,
        trim: TrimState::default(),
    };
    let mut whole = vec![0; LOG_SIZE];
    let log = LogBlock { previous: pointer(DATA_OFFSET + 4096), entries: Vec::new() };
    log.encode(&mut Writer::native(&mut whole));
    let mut packed = vec![0; LOG_SIZE];
    let len = codec::compress::compress(Compression::Lz4, &whole, &mut packed).expect("zeros compress");
    // A ring that was written all over.
    let later = L2Header { evict: DATA_OFFSET + 8192, flags: 0, ..header.clone() };
    let with = |header: &L2Header, log: &[u8]| {
        let mut bytes = vec![0; L2Header::SIZE];
        header.encode(&mut Writer::native(&mut bytes));
        bytes.extend(log);
        bytes
    };
    let packed = &packed[..len.next_multiple_of(512)];
    vec![with(&header, packed), with(&header, &whole), with(&header, &[]), with(&later, packed)]
}
