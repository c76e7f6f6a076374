//! The policies: each is asked for one block after the other, and says whether it was there.

mod adaptive;
mod belady;
mod queues;
mod tiny;

use crate::shape::{Block, Trace};
use arc::{Access, BlockId, Cache, Kind, Opening, Request};
use units::{Sectors, Txg, VdevId};
use world::Buf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The engine's.
    Own,
    Lru,
    TwoQ,
    Arc,
    Car,
    S3Fifo,
    TinyLfu,
    /// Knows what comes.
    Belady,
}

/// A cache that is being asked.
pub(crate) trait Simulated {
    /// Whether the block was there. Afterwards it is, unless the policy would rather not have it.
    fn ask(&mut self, block: &Block) -> bool;
}

impl Policy {
    pub const ALL: [Policy; 8] = [
        Policy::Own,
        Policy::Lru,
        Policy::TwoQ,
        Policy::Arc,
        Policy::Car,
        Policy::S3Fifo,
        Policy::TinyLfu,
        Policy::Belady,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Own => "cenote",
            Policy::Lru => "LRU",
            Policy::TwoQ => "2Q",
            Policy::Arc => "ARC",
            Policy::Car => "CAR",
            Policy::S3Fifo => "S3-FIFO",
            Policy::TinyLfu => "W-TinyLFU",
            Policy::Belady => "Belady",
        }
    }

    /// An empty cache of `bytes`.
    pub(crate) fn start(self, bytes: u64, trace: &Trace) -> Box<dyn Simulated> {
        match self {
            Policy::Own => Box::new(Own::new(bytes)),
            Policy::Lru => Box::new(queues::Lru::new(bytes)),
            Policy::TwoQ => Box::new(queues::TwoQ::new(bytes)),
            Policy::Arc => Box::new(adaptive::Adaptive::arc(bytes)),
            Policy::Car => Box::new(adaptive::Adaptive::car(bytes)),
            Policy::S3Fifo => Box::new(queues::S3Fifo::new(bytes)),
            Policy::TinyLfu => Box::new(tiny::TinyLfu::new(bytes)),
            Policy::Belady => Box::new(belady::Belady::new(bytes, &trace.requests)),
        }
    }
}

/// The engine's cache, asked as the pipeline asks it.
struct Own {
    cache: Cache,
    /// What all blocks hold: a reference to it is charged as bytes of their own.
    zeros: Buf,
}

impl Own {
    fn new(bytes: u64) -> Own {
        Own { cache: Cache::new(bytes), zeros: Buf::zeroed(crate::shape::LARGEST as usize) }
    }
}

impl Simulated for Own {
    fn ask(&mut self, block: &Block) -> bool {
        let (vdev, offset, birth) = (VdevId(0), Sectors(block.id * 256), Txg(7));
        let id = BlockId { opening: Opening::default(), vdev, offset, birth };
        if self.cache.get(&id, Access::Demand).is_some() {
            return true;
        }
        let kind = [Kind::Data, Kind::Metadata][block.kind as usize];
        self.cache.insert(Request::demand(id, kind), self.zeros.slice(0..block.bytes as usize));
        false
    }
}
