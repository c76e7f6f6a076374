//! Opening a pool whose newest state cannot be read, as it was before: `zpool import -F`.
//!
//! ```text
//!   newest uberblock ─▶ opens? ─ yes ─▶ that is it
//!                         │ no: damaged
//!                         └▶ the one before ─▶ opens, and knows its datasets? ─▶ … as far back as allowed
//! ```
//!
//! What was freed is given out again only some txgs later: so far back nothing was overwritten since. Further back
//! (`extreme`) what is read may be damaged.
//!
//! Not here: going on from an older state, which gives up what came after. It is for reading only.

use crate::open::{OpenOptions, open, open_at};
use crate::pool::Pool;
use crate::uberblocks::txgs_of;
use units::{Error, Kind, Result, Txg};
use vdev::Candidate;

/// Space that a txg frees is given out again after so many more (`TXG_DEFER_SIZE`).
const UNTOUCHED: u64 = 2;

/// An older state of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    pub txg: Txg,
    /// When it was written, in seconds since 1970, and how many seconds before the newest one.
    pub time: u64,
    pub discarded: u64,
}

/// Opens the pool in its newest state, or, when that is damaged, for reading in the newest one that is not. `options` is
/// asked with whether it must be for reading only.
///
/// # Errors
/// Why the newest state cannot be opened, when no older one can either or damage is not what is in the way.
pub async fn open_back(
    candidate: &Candidate,
    options: impl Fn(bool) -> OpenOptions,
    extreme: bool,
) -> Result<(Pool, Option<Back>)> {
    let newest = match open_whole(candidate, options(false), None).await {
        Ok(pool) => return Ok((pool, None)),
        Err(e) if matches!(e.kind(), Kind::Corrupt | Kind::Checksum | Kind::Io) => e,
        Err(e) => return Err(e),
    };
    let txgs = txgs_of(candidate).await?;
    let Some(&(last, last_time)) = txgs.first() else { return Err(newest) };
    let reach = if extreme { 0 } else { last.0.saturating_sub(UNTOUCHED) };
    for &(txg, time) in txgs.iter().skip(1).filter(|(txg, _)| txg.0 >= reach) {
        if let Ok(pool) = open_whole(candidate, options(true), Some(txg)).await {
            let discarded = last_time.saturating_sub(time);
            return Ok((pool, Some(Back { txg, time, discarded })));
        }
    }
    let how_far = if extreme {
        "nor can any older one"
    } else {
        "nor can those before it of which all is there: -X goes on"
    };
    Err(Error::new(newest.kind(), format!("open: the newest state cannot be read, {how_far}"))
        .because(newest))
}

/// A state that opens and cannot tell its datasets is damaged, too.
async fn open_whole(candidate: &Candidate, options: OpenOptions, limit: Option<Txg>) -> Result<Pool> {
    let pool = match limit {
        None => open(candidate, options).await?,
        Some(_) => open_at(candidate, options, limit).await?,
    };
    let listed = {
        let _reading = pool.reading().await;
        pool.dsl().heads().await.map(drop)
    };
    if listed.is_err() {
        let _ = pool.close().await;
    }
    listed.map(|()| pool)
}
