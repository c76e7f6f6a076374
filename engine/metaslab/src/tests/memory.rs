//! A pool without a pool: space maps in memory, a seeded dice, and a poll loop.

#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]

use crate::{Class, MapInfo, MapWrite, SpaceLog, VdevSpec};
use ondisk::SpaceMapPhys;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use units::{Asize, Error, ObjectId, Psize, Result, Txg, VdevId};
use world::Pending;

/// A seeded generator (xorshift64*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }
}

/// Polls a future that needs nothing from outside until it is ready.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10_000_000 {
        if let Poll::Ready(value) = work.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::yield_now();
    }
    panic!("the future waits for something that never comes");
}

/// A vdev of whole megabytes whose blocks take what they say, rounded to sectors.
pub(crate) fn spec(vdev: u32, class: Class, asize: u64, metaslab_shift: u32) -> VdevSpec {
    let ashift = 12;
    VdevSpec {
        vdev: VdevId(vdev),
        class,
        ashift,
        asize,
        metaslab_shift,
        data_disks: 1,
        deflate_ratio: 512,
        geometry: Arc::new(move |psize: Psize| Asize(psize.0.next_multiple_of(1 << ashift))),
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    pub(crate) objects: BTreeMap<u64, (MapInfo, Vec<u8>)>,
    pub(crate) arrays: BTreeMap<u32, BTreeMap<u64, u64>>,
    pub(crate) truncated: usize,
}

/// Space maps in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog {
    pub(crate) maps: Mutex<Maps>,
    /// Maps without a histogram, as old pools have them.
    pub(crate) plain: bool,
}

fn ready<T: Send + 'static>(value: T) -> Pending<T> {
    Box::pin(std::future::ready(value))
}

impl MemoryLog {
    /// What a crash leaves: the maps as they are, and nothing else.
    pub(crate) fn copy(&self) -> Arc<MemoryLog> {
        Arc::new(MemoryLog { maps: Mutex::new(self.maps.lock().unwrap().clone()), plain: self.plain })
    }
}

impl SpaceLog for MemoryLog {
    fn array(&self, vdev: VdevId) -> Pending<Result<Vec<ObjectId>>> {
        let maps = self.maps.lock().unwrap();
        let array = maps.arrays.get(&vdev.0).cloned().unwrap_or_default();
        let len = array.keys().last().map_or(0, |&last| last + 1);
        ready(Ok((0..len).map(|i| ObjectId(array.get(&i).copied().unwrap_or(0))).collect()))
    }

    fn info(&self, map: ObjectId) -> Pending<Result<MapInfo>> {
        let maps = self.maps.lock().unwrap();
        ready(maps.objects.get(&map.0).map(|o| o.0).ok_or_else(|| Error::corrupt("no such map")))
    }

    fn read(&self, map: ObjectId, length: u64) -> Pending<Result<Vec<u8>>> {
        let maps = self.maps.lock().unwrap();
        let bytes = maps.objects.get(&map.0).and_then(|o| o.1.get(..length as usize));
        let bytes = bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::corrupt("the map is shorter"));
        // Others run before it arrives.
        Box::pin(async move {
            world::yield_now().await;
            bytes
        })
    }

    fn create(&self, vdev: VdevId, index: u64, _: Txg) -> Pending<Result<MapInfo>> {
        let mut maps = self.maps.lock().unwrap();
        let object = maps.objects.len() as u64 + 100;
        let histogram = (!self.plain).then_some([0; SpaceMapPhys::BUCKETS]);
        let header = SpaceMapPhys { object: ObjectId(object), length: 0, allocated: 0, histogram };
        let info = MapInfo { object: ObjectId(object), block_size: 512, header };
        maps.objects.insert(object, (info, Vec::new()));
        assert!(maps.arrays.entry(vdev.0).or_default().insert(index, object).is_none(), "made twice");
        ready(Ok(info))
    }

    fn write(&self, map: ObjectId, write: MapWrite, _: Txg) -> Pending<Result<()>> {
        let mut maps = self.maps.lock().unwrap();
        maps.truncated += usize::from(write.truncate);
        let (info, bytes) = maps.objects.get_mut(&map.0).unwrap();
        if write.truncate {
            bytes.clear();
        }
        assert_eq!(write.at, bytes.len() as u64);
        bytes.extend(&write.bytes);
        assert_eq!(write.header.length, bytes.len() as u64);
        info.header = write.header;
        ready(Ok(()))
    }
}
