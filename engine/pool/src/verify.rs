//! Verifying a pool: every block of every object is read from every place where it is, and nothing is written.
//!
//! ```text
//!   block ── a hole? nothing to do
//!     ├─ embedded ─▶ decompressed where it stands; redacted ones are counted
//!     └─ on devices ─▶ each copy, all parity ─▶ checksum ─▶ decompressed: as long as the pointer says
//!                                                   └ encrypted: its checksum is all that can be checked
//! ```
//!
//! What is found wrong comes in two sorts. **Damage** is a block that no copy and no reconstruction gives back. A
//! **repairable** place is one of several, the others being good: reading repairs it on the way, a scrub repairs all.
//!
//! The chains of the intent logs are followed too: they end where a block does not carry on the chain, and that is how they
//! always end. Only a log that an import has claimed must go on as far as it was claimed, and is damaged if not.

use crate::logs::LogSurvey;
use crate::pool::{Pool, lock};
use crate::walk::{self, Check, Set, Suspect};
use ondisk::{BlockPointer, ObjectType, ObjsetPhys};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{Error, Result};
use world::{Boxed, Pending};
use zio::{Bookmark, ReadClass};

type Progress = Box<dyn Fn(&VerifyReport) + Send + Sync>;

/// What verification has found, by now or in the end.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Heads and snapshots that have contents.
    pub datasets: u64,
    pub total: Tally,
    /// By what the blocks hold; those that lead to others count as `indirect` or by their own kind.
    pub kinds: BTreeMap<&'static str, Tally>,
    /// Of the total: their checksums are right, their contents are another's secret.
    pub encrypted: Tally,
    /// Of the total: contents inside the pointer.
    pub embedded: u64,
    /// Left out of a stream by its sender.
    pub redacted: u64,
    /// In the chains of intent logs, beside the total.
    pub log_blocks: u64,
    pub log_records: u64,
    /// Places that are wrong while the block can be had from others.
    pub repairable: u64,
    /// How many blocks are lost; the first of them are listed.
    pub lost: u64,
    pub damage: Vec<Damage>,
    /// What there is to examine: the allocated bytes of the pool.
    pub to_examine: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub blocks: u64,
    /// Bytes as the owner sees them, as compressed, and as taken from the devices.
    pub lsize: u64,
    pub psize: u64,
    pub asize: u64,
}

/// A block that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub dataset: String,
    pub at: Bookmark,
    pub error: String,
}

/// So many lost blocks are listed.
const DAMAGE_MAX: usize = 10_000;
/// Progress is told after so many blocks.
const PROGRESS_EVERY: u64 = 256;

impl Tally {
    fn add(&mut self, bp: &BlockPointer) {
        self.blocks += 1;
        self.lsize += bp.lsize().0;
        self.psize += bp.psize().0;
        self.asize += bp.asize().0;
    }
}

impl VerifyReport {
    /// Nothing is lost. What is repairable does not count.
    pub fn is_sound(&self) -> bool {
        self.lost == 0
    }

    fn count(&mut self, bp: &BlockPointer) {
        self.total.add(bp);
        self.kinds.entry(kind_name(bp)).or_default().add(bp);
        if bp.is_encrypted() {
            self.encrypted.add(bp);
        }
        self.embedded += u64::from(bp.is_embedded() && !bp.is_redacted());
        self.redacted += u64::from(bp.is_redacted());
    }

    fn lose(&mut self, set: &Set, suspect: Suspect) {
        self.lost += 1;
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(Damage {
                dataset: set.name.to_string(),
                at: suspect.at,
                error: suspect.error.to_string(),
            });
        }
    }
}

fn kind_name(bp: &BlockPointer) -> &'static str {
    if bp.level() > 0 && bp.kind() != ObjectType::DNODE { "indirect" } else { bp.kind().name() }
}

impl Pool {
    /// Reads and checks every block of the pool and tells what it met; `progress` is told from time to time.
    pub fn verify(
        &self,
        progress: impl Fn(&VerifyReport) + Send + Sync + 'static,
    ) -> Boxed<'_, Result<VerifyReport>> {
        self.verify_telling(Box::new(progress))
    }

    fn verify_telling(&self, progress: Progress) -> Boxed<'_, Result<VerifyReport>> {
        Box::pin(async move {
            let to_examine = self.space().usage_total().allocated;
            let report = VerifyReport { to_examine, ..VerifyReport::default() };
            let verifier =
                Arc::new(Verifier { pool: self.clone(), report: Arc::new(Mutex::new(report)), progress });
            for set in walk::sets(self).await? {
                if set.root.is_hole() {
                    continue;
                }
                walk::walk(self, &set, verifier.clone()).await?;
                let log = if set.is_head { self.log_in(&set).await } else { LogSurvey::default() };
                let mut report = lock(&verifier.report);
                report.datasets += u64::from(set.id != units::ObjsetId::MOS);
                report.log_blocks += log.blocks;
                report.log_records += log.kinds.values().sum::<u64>();
                if let Some(damage) = log.damage {
                    let at = zil::chain::bookmark(set.id, log.blocks + 1);
                    report.lose(&set, Suspect { at, bp: None, error: Error::corrupt(damage) });
                }
            }
            let report = lock(&verifier.report).clone();
            Ok(report)
        })
    }

    /// What is in a head's intent log.
    async fn log_in(&self, set: &Set) -> LogSurvey {
        let at = Bookmark::root(set.id);
        let root = zio::BlockStore::read(self.pipeline(), &set.root, at, ReadClass::Scan).await;
        let phys = root.and_then(|root| ObjsetPhys::from_bytes(&root, set.root.endian()));
        match phys {
            Ok(phys) => self.survey_log(set.id, &phys.zil_header).await,
            // The walk over the set has met the same.
            Err(_) => LogSurvey::default(),
        }
    }
}

struct Verifier {
    pool: Pool,
    report: Arc<Mutex<VerifyReport>>,
    progress: Progress,
}

impl Check for Verifier {
    fn block(&self, _set: &Set, at: Bookmark, bp: &BlockPointer) -> Pending<Result<()>> {
        {
            let mut report = lock(&self.report);
            report.count(bp);
            if report.total.blocks.is_multiple_of(PROGRESS_EVERY) {
                (self.progress)(&report);
            }
        }
        let (pool, report, bp) = (self.pool.clone(), self.report.clone(), bp.clone());
        Box::pin(async move {
            let bad = look(&pool, at, &bp).await?;
            lock(&report).repairable += bad;
            Ok(())
        })
    }

    fn damaged(&self, set: &Set, suspect: Suspect) {
        lock(&self.report).lose(set, suspect);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Looks at all there is of one block; answers how many places were wrong.
async fn look(pool: &Pool, at: Bookmark, bp: &BlockPointer) -> Result<u64> {
    if bp.is_redacted() {
        return Ok(0);
    }
    if bp.as_plain().is_none() {
        zio::BlockStore::read(pool.pipeline(), bp, at, ReadClass::Scan).await?;
        return Ok(0);
    }
    let checked = pool.pipeline().check_block(bp, at).await?;
    if !bp.is_encrypted() {
        let bp = bp.clone();
        world::compute(move || zio::unpack(&bp, &checked.data)).await.map_err(|e| e.at(at))?;
    }
    Ok(checked.bad)
}
