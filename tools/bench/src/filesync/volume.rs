//! On a volume of the engine: the synchronous write of each file, without the file.
//!
//! The volume keeps its content: what is written to a place is what was read there before the clock started. A file
//! system would use the same few blocks again and again, and so does this.

use super::{LEN, Options, Outcome};
use nbd::{Piece, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Error, Result};
use workload::Histogram;
use world::{Buf, IoBuf};

/// As many places as there are files, up to this.
const PLACES_MAX: u64 = 1024;
/// Two files share no block, and no block of a file system.
const APART_MIN: u64 = 4096;

struct Place {
    offset: u64,
    content: Buf,
}

/// Runs in the world that it is called in: the real one, or a simulated one with its own clock.
pub async fn run(volume: Arc<dyn Volume>, options: Options) -> Result<Outcome> {
    let places = Arc::new(read_places(&*volume, options.count).await?);
    let next = Arc::new(AtomicU64::new(0));
    let begun = world::now();
    let start = |_| {
        let (volume, places, next) = (volume.clone(), places.clone(), next.clone());
        world::spawn(async move { run_stream(&*volume, &places, options.count, &next).await })
    };
    let streams: Vec<_> = (0..options.streams).map(start).collect();
    let (mut latencies, mut failure) = (Histogram::default(), None);
    for stream in streams {
        match stream.await {
            Ok(stream) => latencies.merge(&stream),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    let elapsed = world::now().since(begun);
    match failure {
        Some(e) => Err(e),
        None => Ok(Outcome { count: options.count, elapsed, latencies }),
    }
}

async fn read_places(volume: &dyn Volume, count: u64) -> Result<Vec<Place>> {
    let apart = u64::from(volume.block_size()).max(APART_MIN);
    let room = volume.size() / apart;
    if room == 0 {
        return Err(Error::invalid("the volume is too small for a block"));
    }
    let mut places = Vec::new();
    for i in 0..count.clamp(1, room.min(PLACES_MAX)) {
        let offset = i * apart;
        let pieces = volume.read(offset, LEN as u32).await?;
        places.push(Place { offset, content: joined(&pieces) });
    }
    Ok(places)
}

fn joined(pieces: &[Piece]) -> Buf {
    let mut content = IoBuf::zeroed(LEN);
    let mut at = 0;
    for piece in pieces {
        match piece {
            Piece::Data(bytes) => {
                content[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            }
            Piece::Hole(len) => at += *len as usize,
        }
    }
    content.freeze()
}

async fn run_stream(
    volume: &dyn Volume,
    places: &[Place],
    count: u64,
    next: &AtomicU64,
) -> Result<Histogram> {
    let mut latencies = Histogram::default();
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= count {
            return Ok(latencies);
        }
        let place = &places[(turn % places.len() as u64) as usize];
        let begun = world::now();
        volume.write(place.offset, vec![place.content.clone()], true).await?;
        latencies.record(world::now().since(begun));
    }
}
