//! The blocks of an object set: how they are read, and how they are to be written.

use crate::direct::Direct;
use crate::lock::lock;
use crate::policy::{Caching, Choice, Policy};
use ondisk::{BlockPointer, ObjectType};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use units::{Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Buf;
use zio::{BlockStore, Bookmark, PrimaryCache, ReadAhead, ReadClass, WriteSpec};

/// Those of one object set, and the policy that new ones follow.
pub(crate) struct Blocks {
    /// The object set, as bookmarks name it.
    pub id: ObjsetId,
    pub store: Arc<dyn BlockStore>,
    policy: Mutex<Policy>,
    /// Whether and how far is read ahead in the pool.
    pub ahead: Arc<ReadAhead>,
    /// What is read ahead by the policy, so that each read can ask.
    ahead_takes: AtomicU8,
    /// The policy's, so that each request can ask.
    direct: AtomicU8,
    zeros: OnceLock<Buf>,
    /// See [`crate::ObjSet::end`].
    is_gone: AtomicBool,
}

const ZEROS: usize = 128 << 10;

impl Blocks {
    pub fn new(id: ObjsetId, store: Arc<dyn BlockStore>, policy: Policy) -> Blocks {
        let (ahead, ahead_takes) = (store.ahead(), AtomicU8::new(0));
        let (direct, zeros, is_gone) = (AtomicU8::new(0), OnceLock::new(), AtomicBool::new(false));
        let policy_now = Mutex::new(policy);
        let blocks = Blocks { id, store, policy: policy_now, ahead, ahead_takes, direct, zeros, is_gone };
        blocks.follow(&policy);
        blocks
    }

    fn follow(&self, policy: &Policy) {
        self.tell_second_level(policy);
        // What may not stay would only be read twice.
        let takes = policy.prefetch.min(policy.primary_cache);
        self.ahead_takes.store(takes as u8, Ordering::Relaxed);
        self.direct.store(policy.direct as u8, Ordering::Relaxed);
    }

    /// Which requests go past the cache (the property `direct`, if none is forbidden).
    pub fn direct(&self) -> Direct {
        match self.ahead.passes_cache() {
            true => Direct::of(self.direct.load(Ordering::Relaxed).into()),
            false => Direct::Disabled,
        }
    }

    /// After how many bytes in order a client is written behind.
    pub fn behind_from(&self) -> u64 {
        self.ahead.behind_from()
    }

    /// What is read ahead (the properties `prefetch` and `primarycache`).
    pub fn ahead_takes(&self) -> Caching {
        match self.ahead_takes.load(Ordering::Relaxed) {
            takes if takes == Caching::None as u8 => Caching::None,
            takes if takes == Caching::Metadata as u8 => Caching::Metadata,
            _ => Caching::All,
        }
    }

    fn tell_second_level(&self, policy: &Policy) {
        let takes = match policy.secondary_cache {
            Caching::None => PrimaryCache::None,
            Caching::Metadata => PrimaryCache::Metadata,
            Caching::All => PrimaryCache::All,
        };
        self.store.set_second_level(self.id, takes);
    }

    pub async fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Result<Buf> {
        match self.store.cached(bp) {
            Some(buf) => Ok(buf),
            None => self.fetch(bp, at, class).await,
        }
    }

    /// As [`Blocks::read`], of what is not in memory. `NotFound` when the object set is gone, or goes meanwhile: the blocks
    /// are others' by now.
    pub async fn fetch(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Result<Buf> {
        let keeps = self.policy().primary_cache.takes(bp.is_metadata());
        let class = if class == ReadClass::Demand && !keeps { ReadClass::Passing } else { class };
        self.check(at)?;
        let read = self.store.read(bp, at, class).await;
        self.check(at)?;
        read
    }

    fn check(&self, at: Bookmark) -> Result<()> {
        match self.is_gone() {
            true => Err(Error::new(Kind::NotFound, "read block of a dataset that is gone").at(at)),
            false => Ok(()),
        }
    }

    pub fn end(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    pub fn policy(&self) -> Policy {
        *lock(&self.policy)
    }

    /// Blocks written from now on follow `policy`.
    pub fn set_policy(&self, policy: Policy) {
        *lock(&self.policy) = policy;
        self.follow(&policy);
    }

    /// Zeros to hand out for holes; one buffer serves all of usual size.
    pub fn zeros(&self, len: usize) -> Buf {
        if len > ZEROS {
            return Buf::zeroed(len);
        }
        self.zeros.get_or_init(|| Buf::zeroed(ZEROS)).slice(0..len)
    }

    pub fn spec(
        &self,
        object: ObjectId,
        choice: Choice,
        kind: ObjectType,
        level: u8,
        blkid: u64,
        txg: Txg,
        pass: u32,
    ) -> WriteSpec {
        WriteSpec {
            kind,
            level,
            compression: choice.compression,
            checksum: choice.checksum,
            copies: choice.copies,
            txg,
            pass,
            fill: 1,
            special_up_to: self.policy().special_small_blocks,
            keep: self.policy().primary_cache.takes(level > 0 || kind.is_metadata()),
            urgent: false,
            at: Bookmark { objset: self.id, object, level: level as i8, blkid },
        }
    }
}
