//! Tokens: what stands for blocks of a unit as they were when it was made.
//!
//! A token is kept with the unit that it was made of. It is found only by an initiator that reaches that unit, so it is
//! worth nothing to those who were not given the unit; and its random bytes keep others from guessing it.
//!
//! ```text
//!   made ──▶ good ──▶ forgotten: it was not used for its timeout, it was deleted, or its unit is no longer served
//!              └────▶ revoked: blocks of it were changed, so it stands for nothing any more
//! ```
//!
//! A change of blocks revokes before it begins, and again when it has ended. So what was read before a token was seen to
//! be good is what it stands for; and one that was made in the midst of a change does not outlive it.

use super::limits::TYPE_VULNERABLE;
use crate::BLOCK;
use crate::cdb::Blocks;
use crate::identity::{Identity, Nexus};
use crate::inquiry::read_capacity16;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::Instant;

/// Bytes of a token.
pub(super) const TOKEN: usize = 512;
/// Bytes behind which there is nothing but chance.
const SECRET: usize = 256;
/// Tokens of one unit, and of one initiator at it.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 64;

#[derive(Debug)]
pub(super) struct Token {
    pub bytes: [u8; TOKEN],
    pub ranges: Vec<Blocks>,
    owner: Arc<str>,
    timeout: Duration,
    used: Mutex<Instant>,
    is_revoked: AtomicBool,
}

impl Token {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn touch(&self) {
        *self.used() = world::now();
    }

    /// Blocks that it stands for.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|blocks| blocks.count).sum()
    }

    pub fn check(&self) -> Result<(), Sense> {
        if self.is_revoked.load(Ordering::SeqCst) { Err(Sense::TOKEN_REVOKED) } else { Ok(()) }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.since(*self.used()) > self.timeout
    }

    /// Takes as long wherever they differ.
    fn is(&self, bytes: &[u8; TOKEN]) -> bool {
        self.bytes.iter().zip(bytes).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// The tokens of a unit.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    list: Mutex<Vec<Arc<Token>>>,
    /// How many there are: without any, a write does not look.
    count: AtomicUsize,
}

/// A change of blocks that is under way.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    tokens: &'a Tokens,
    blocks: Blocks,
}

impl Tokens {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Token>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets those whose time is over.
    fn forget(&self, list: &mut Vec<Arc<Token>>, keeps: impl Fn(&Token) -> bool) {
        let now = world::now();
        list.retain(|token| !token.is_over(now) && keeps(token));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// A token of these ranges, which were checked. Of one initiator the oldest makes room.
    pub(super) fn make(
        &self,
        identity: &Identity,
        unit: &dyn LogicalUnit,
        nexus: &Nexus,
        ranges: Vec<Blocks>,
        timeout: u32,
    ) -> Result<Arc<Token>, Sense> {
        let mut list = self.lock();
        self.forget(&mut list, |_| true);
        let of_one = |token: &Arc<Token>| token.owner == nexus.initiator;
        if list.iter().filter(|token| of_one(token)).count() >= MOST_OF_ONE
            && let Some(oldest) = list.iter().position(of_one)
        {
            list.remove(oldest);
        }
        if list.len() >= MOST {
            return Err(Sense::NO_TOKEN_ROOM);
        }
        let token = Arc::new(Token {
            bytes: spell(identity, unit, nexus, ranges.iter().map(|blocks| blocks.count).sum()),
            ranges,
            owner: nexus.initiator.clone(),
            timeout: Duration::from_secs(timeout.into()),
            used: Mutex::new(world::now()),
            is_revoked: AtomicBool::new(false),
        });
        list.push(token.clone());
        self.count.store(list.len(), Ordering::SeqCst);
        Ok(token)
    }

    /// `None` when it is none of these.
    pub(super) fn find(&self, bytes: &[u8; TOKEN]) -> Option<Result<Arc<Token>, Sense>> {
        let token = self.lock().iter().find(|token| token.is(bytes)).cloned()?;
        if token.is_over(world::now()) {
            return Some(Err(Sense::TOKEN_EXPIRED));
        }
        Some(token.check().map(|()| token))
    }

    pub(super) fn delete(&self, token: &Token) {
        self.forget(&mut self.lock(), |other| !std::ptr::eq(other, token));
    }

    /// Blocks are about to be changed, until what is returned is dropped.
    pub fn change(&self, blocks: Blocks) -> Change<'_> {
        self.revoke(blocks);
        Change { tokens: self, blocks }
    }

    fn revoke(&self, blocks: Blocks) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let end = blocks.lba + blocks.count;
        let meets = |other: &Blocks| other.lba < end && blocks.lba < other.lba + other.count;
        for token in self.lock().iter().filter(|token| token.ranges.iter().any(meets)) {
            token.is_revoked.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.tokens.revoke(self.blocks);
    }
}

/// The bytes of a new token: of what unit it is and how much it stands for, which anybody may know, and a secret.
fn spell(identity: &Identity, unit: &dyn LogicalUnit, nexus: &Nexus, blocks: u64) -> [u8; TOKEN] {
    let mut bytes = [0; TOKEN];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &TYPE_VULNERABLE.to_be_bytes());
    put(6, &((TOKEN - 8) as u16).to_be_bytes());
    put(8, &world::random_u64().to_be_bytes());
    put(16, &[super::limits::BY_DESIGNATOR, 0, 0, 0, 0x01, 0x03, 0, 16]);
    put(24, &identity.naa);
    put(45, &(BLOCK as u32).to_be_bytes()[1..]);
    put(56, &(blocks * BLOCK).to_be_bytes());
    put(96, &read_capacity16(unit.size(), unit.block_size())[8..]);
    // The target: the name of its port without the tag of the group.
    let target = nexus.port.name.split(",t,").next().unwrap_or_default().as_bytes();
    let len = (target.len() + 1).next_multiple_of(4);
    if 128 + 4 + len <= SECRET {
        put(128, &[0x53, 0xa8, 0, len as u8]);
        put(132, target);
    }
    for at in (SECRET..TOKEN).step_by(8) {
        put(at, &world::random_u64().to_be_bytes());
    }
    bytes
}
