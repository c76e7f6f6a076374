//! What readers ask for: a stretch of a dataset, waited for where it lies in the future.
//!
//! What is in columns in memory is answered at once; what is encoded, or on disk, is decoded by an errand.

use crate::block::{Block, Row, span};
use crate::read;
use crate::recorder::Recorder;
use api::analytics::{Data, DataQuery, Granularity, Start};
use api::{ApiError, ErrorKind, Result};
use std::collections::BTreeMap;

/// Points in one answer.
const POINTS_MAX: u64 = 100_000;
/// Values of all of them together.
const VALUES_MAX: usize = 4_000_000;
/// How much of the future is waited for.
const WAIT_MAX: u64 = 3_600;

/// From, and up to but not with.
type Span = (u64, u64);

impl Recorder {
    /// Waits until there are all samples up to the end that was asked for: not for a dataset that takes none now.
    pub async fn data(&self, query: &DataQuery) -> Result<Data> {
        let refused = |kind, why: &str| ApiError::new(kind, format!("cannot read '{}': {why}", query.name));
        let step = query.granularity.seconds();
        if query.seconds.div_ceil(step) > POINTS_MAX {
            let why =
                format!("that is more than {POINTS_MAX} points; ask for less time, or a coarser granularity");
            return Err(refused(ErrorKind::Invalid, &why));
        }
        let (from, to) = self.span_of(query)?;
        if to.saturating_sub(self.state().last) > WAIT_MAX + 1
            && self.state().last > 0
            && from > self.state().last
        {
            return Err(refused(ErrorKind::Invalid, "that is further in the future than an hour"));
        }
        self.wait_for(&query.name, to).await;
        self.told(query, (from, to)).await
    }

    /// What there is, for no reader: a temporary dataset ends as it would.
    pub(crate) async fn data_aside(&self, query: &DataQuery) -> Result<Data> {
        let Start::At(from) = query.start else {
            return Err(ApiError::new(ErrorKind::Invalid, "samples are read aside from a second on"));
        };
        self.told(query, (from, from.saturating_add(query.seconds))).await
    }

    async fn told(&self, query: &DataQuery, (from, to): Span) -> Result<Data> {
        let refused = |kind, why: &str| ApiError::new(kind, format!("cannot read '{}': {why}", query.name));
        let step = query.granularity.seconds();
        let rows = self.rows(query, (from - from % step, to)).await?;
        if rows.values().map(|row| row.parts.len() + 1).sum::<usize>() > VALUES_MAX {
            let why = "that is more than four million values; ask for less time, or a coarser granularity";
            return Err(refused(ErrorKind::Invalid, why));
        }
        let state = self.state();
        let of = &state
            .datasets
            .get(&query.name)
            .ok_or_else(|| refused(ErrorKind::NotFound, "it was destroyed"))?
            .of;
        Ok(Data {
            name: query.name.clone(),
            unit: of.unit.clone(),
            scale: of.scale.clone().unwrap_or_default(),
            points: read::points(rows),
        })
    }

    fn span_of(&self, query: &DataQuery) -> Result<Span> {
        let mut state = self.state();
        let last = state.last;
        let Some(dataset) = state.datasets.get_mut(&query.name) else {
            let why = format!("there is no dataset '{}': open its statistic first", query.name);
            return Err(ApiError::new(ErrorKind::NotFound, why));
        };
        dataset.activity = last;
        let from = match query.start {
            Start::Now => last + 1,
            Start::At(second) => second,
            Start::Ago(seconds) => (last + 1).saturating_sub(seconds),
        };
        Ok((from, from.saturating_add(query.seconds)))
    }

    async fn wait_for(&self, name: &str, to: u64) {
        let left = to.saturating_sub(self.state().last + 1).min(WAIT_MAX);
        let begun = self.0.ticks.with(|ticks| *ticks);
        let is_there = || {
            let mut state = self.state();
            let last = state.last;
            let Some(dataset) = state.datasets.get_mut(name) else { return true };
            dataset.activity = last;
            last.saturating_add(1) >= to || !dataset.goes_on()
        };
        // A clock that steps back is not waited for: as many samples as were missing are enough.
        let ticks = self.0.ticks.until(|ticks| (*ticks - begun >= left || is_there()).then_some(()));
        let ending = self.0.ending.wait();
        let _ = futures_util::future::select(std::pin::pin!(ticks), std::pin::pin!(ending)).await;
    }

    async fn rows(&self, query: &DataQuery, (from, to): Span) -> Result<BTreeMap<u64, Row>> {
        let of = query.granularity;
        let mut rows = BTreeMap::new();
        let (id, saved) = {
            let state = self.state();
            let Some(dataset) = state.datasets.get(&query.name) else { return Ok(rows) };
            let series = dataset.series(of);
            if series.in_columns_from().is_some_and(|first| first <= from) {
                series.rows(from, to, &mut rows);
                return Ok(rows);
            }
            (dataset.id, dataset.saved)
        };
        let (own, name) = (self.clone(), query.name.clone());
        let read = self.0.errands.run(move || own.rows_here(&name, (id, saved), of, (from, to))).await;
        let failed = |why: &str| ApiError::new(ErrorKind::Io, format!("cannot read '{}': {why}", query.name));
        match read {
            Some(Ok(rows)) => Ok(rows),
            Some(Err(e)) => Err(failed(&e.to_string())),
            None => Err(failed("reading samples panicked")),
        }
    }

    fn rows_here(
        &self,
        name: &str,
        (id, saved): (u32, bool),
        of: Granularity,
        (from, to): Span,
    ) -> units::Result<BTreeMap<u64, Row>> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut add = |bytes: &[u8]| match Block::decode(of, bytes) {
            Ok(block) => blocks.push(block),
            // The others are worth having.
            Err(e) => tracing::warn!("{name}: {e}"),
        };
        // A store that cannot be opened has nothing: what is in memory is told.
        let store = self.0.store();
        if saved && store.is_open() {
            store.blocks(id, of, from, to)?.iter().for_each(|bytes| add(bytes));
        }
        drop(store);
        let sealed: Vec<_> = {
            let state = self.state();
            let series = state.datasets.get(name).map(|dataset| dataset.series(of));
            let sealed = series.into_iter().flat_map(|series| series.sealed.iter());
            sealed.filter(|s| s.first < to && s.first.saturating_add(span(of)) > from).cloned().collect()
        };
        sealed.iter().for_each(|sealed| add(&sealed.bytes));
        blocks.sort_by_key(|block| block.sequence);
        let mut rows = BTreeMap::new();
        blocks.iter().for_each(|block| block.rows(from, to, &mut rows));
        if let Some(dataset) = self.state().datasets.get(name) {
            dataset.series(of).rows(from, to, &mut rows);
        }
        Ok(rows)
    }
}
