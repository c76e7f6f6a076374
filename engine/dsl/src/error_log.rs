//! The persistent error log: blocks that could not be had from anywhere, in two logs of the MOS.
//!
//! ```text
//!   log(Scrub) ─▶ errlog_scrub ──── a whole scrub has ended: rotate ───▶ errlog_last ◀─ log(Last)
//!                                                                          └ what was there before goes
//! ```
//!
//! With the feature `head_errlog` a log is kept by head dataset, and each block with its birth: then it goes with its head,
//! moves with a promotion, and a reader can tell whether the block is still the one that was bad. The form of the keys is
//! [`ondisk::error_log`]'s.
//!
//! What is in a log comes from disk. A key that names no block, and a table that is none, are passed over and counted; only
//! objects that say themselves that they are error logs are ever freed here.
//!
//! Not here: which blocks are bad, and whether they still are (the pool).

use crate::Dsl;
use crate::core::Core;
use crate::zaps::{self, Table};
use dmu::Tx;
use ondisk::error_log::{HeadKey, bookmark_name, parse_bookmark, parse_head};
use ondisk::mos::directory;
use ondisk::{BlockBookmark, Feature, ObjectType};
use std::collections::BTreeSet;
use units::{Kind, ObjectId, ObjsetId, Result, Txg};
use zap::Cursor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorLog {
    /// Of the last whole scrub, and since.
    Last,
    /// Of the scrub under way.
    Scrub,
}

/// A block that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoggedError {
    /// With `head_errlog`, in its set the head dataset; else the very object set it was met in.
    pub at: BlockBookmark,
    /// Physical; none when it is not known.
    pub birth: Txg,
}

/// Some of what is in the logs.
#[derive(Debug, Default)]
pub struct LoggedErrors {
    pub errors: Vec<LoggedError>,
    /// Entries that make no sense.
    pub senseless: u64,
    /// There is more.
    pub is_cut: bool,
}

/// Entries read at a time.
const PAGE: usize = 512;
/// The value of an entry: a text that is empty. Other programs do not read it either.
const NO_TEXT: &[u8] = &[0];

impl ErrorLog {
    pub const BOTH: [ErrorLog; 2] = [ErrorLog::Scrub, ErrorLog::Last];

    fn key(self) -> &'static str {
        match self {
            ErrorLog::Last => directory::ERROR_LOG_LAST,
            ErrorLog::Scrub => directory::ERROR_LOG_SCRUB,
        }
    }
}

impl Dsl {
    /// Whether errors are logged by head dataset, with their births.
    pub fn logs_errors_by_head(&self) -> bool {
        self.features().is_enabled(Feature::HeadErrlog)
    }

    /// How many entries both logs have.
    pub async fn logged_errors_len(&self) -> Result<u64> {
        let mut len = 0;
        for log in ErrorLog::BOTH {
            len += self.error_log_len(log).await?;
        }
        Ok(len)
    }

    /// How many entries a log has.
    pub async fn error_log_len(&self, log: ErrorLog) -> Result<u64> {
        let Some(table) = self.error_log(log).await? else { return Ok(0) };
        if !self.logs_errors_by_head() {
            return table.len().await;
        }
        let (mut len, mut from) = (0, Some(Cursor::START));
        while let Some(at) = from {
            let page = table.page(at, PAGE).await?;
            for entry in &page.entries {
                if let Some(blocks) = self.blocks_table(entry).await {
                    len += blocks.1.len().await?;
                }
            }
            from = page.next;
        }
        Ok(len)
    }

    /// At most `limit` entries of a log.
    pub async fn logged_errors(&self, log: ErrorLog, limit: usize) -> Result<LoggedErrors> {
        let mut found = LoggedErrors::default();
        let Some(table) = self.error_log(log).await? else { return Ok(found) };
        if !self.logs_errors_by_head() {
            let of = |name: &[u8]| Ok(LoggedError { at: parse_bookmark(name)?, birth: Txg::NONE });
            take(&table, limit, &mut found, of).await?;
            return Ok(found);
        }
        let mut from = Some(Cursor::START);
        while let Some(at) = from {
            let page = table.page(at, PAGE).await?;
            for entry in &page.entries {
                let Some((head, blocks)) = self.blocks_table(entry).await else {
                    found.senseless += 1;
                    continue;
                };
                take(&blocks, limit, &mut found, |name| Ok(of_head(head, HeadKey::parse(name)?))).await?;
                if found.is_cut {
                    return Ok(found);
                }
            }
            from = page.next;
        }
        Ok(found)
    }

    /// The first `limit` entries of a log that are greater than `after`, in their order. The whole log is read for them.
    pub async fn logged_errors_after(
        &self,
        log: ErrorLog,
        after: Option<LoggedError>,
        limit: usize,
    ) -> Result<Vec<LoggedError>> {
        let mut first = BTreeSet::new();
        let Some(table) = self.error_log(log).await? else { return Ok(Vec::new()) };
        let mut take = |error: LoggedError| {
            if after.is_none_or(|after| error > after) {
                first.insert(error);
                if first.len() > limit {
                    first.pop_last();
                }
            }
        };
        let mut from = Some(Cursor::START);
        while let Some(at) = from {
            let page = table.page(at, PAGE).await?;
            for entry in &page.entries {
                if !self.logs_errors_by_head() {
                    if let Some(Ok(at)) = name_of(entry).map(parse_bookmark) {
                        take(LoggedError { at, birth: Txg::NONE });
                    }
                    continue;
                }
                let Some((head, blocks)) = self.blocks_table(entry).await else { continue };
                let mut from = Some(Cursor::START);
                while let Some(at) = from {
                    let page = blocks.page(at, PAGE).await?;
                    let keys = page.entries.iter().filter_map(|e| HeadKey::parse(name_of(e)?).ok());
                    keys.for_each(|key| take(of_head(head, key)));
                    from = page.next;
                }
            }
            from = page.next;
        }
        Ok(first.into_iter().collect())
    }

    /// Adds entries to a log, which is made if it is not there. Those that are there already stay.
    pub async fn log_errors(&self, tx: &Tx, log: ErrorLog, errors: &[LoggedError]) -> Result<()> {
        if errors.is_empty() {
            return Ok(());
        }
        let table = match self.error_log(log).await? {
            Some(table) => table,
            None => {
                let table = zaps::create(self.core().mos(), tx, ObjectType::ERROR_LOG).await?;
                self.set_error_log(tx, log, table.blocks().id()).await?;
                table
            }
        };
        for error in errors {
            if !self.logs_errors_by_head() {
                table.update(tx, &bookmark_name(&error.at), NO_TEXT).await?;
                continue;
            }
            let head = self.head_of_set(error.at.objset).await;
            let name = zap::int_name(head.0);
            let known = table.lookup_u64(&name).await?;
            let known = match known {
                Some(id) => self.table_of_errors(ObjectId(id)).await?,
                None => None,
            };
            let blocks = match known {
                Some(blocks) => blocks,
                None => {
                    let blocks = zaps::create(self.core().mos(), tx, ObjectType::ERROR_LOG).await?;
                    table.update(tx, &name, blocks.blocks().id().0).await?;
                    blocks
                }
            };
            blocks.update(tx, &key_of(error).name(), NO_TEXT).await?;
        }
        Ok(())
    }

    /// Takes entries out of both logs, where they are in them.
    pub async fn unlog_errors(&self, tx: &Tx, errors: &[LoggedError]) -> Result<()> {
        for log in ErrorLog::BOTH {
            self.unlog_from(tx, log, errors).await?;
        }
        Ok(())
    }

    async fn unlog_from(&self, tx: &Tx, log: ErrorLog, errors: &[LoggedError]) -> Result<()> {
        let Some(table) = self.error_log(log).await? else { return Ok(()) };
        for error in errors {
            if !self.logs_errors_by_head() {
                zaps::remove_if_any(&table, tx, &bookmark_name(&error.at)).await?;
                continue;
            }
            // Whichever set it was met in; but the entry may say the head that it was logged under.
            for head in [error.at.objset, self.head_of_set(error.at.objset).await] {
                let Some(id) = table.lookup_u64(&zap::int_name(head.0)).await.unwrap_or_default() else {
                    continue;
                };
                if let Some(blocks) = self.table_of_errors(ObjectId(id)).await? {
                    zaps::remove_if_any(&blocks, tx, &key_of(error).name()).await?;
                }
            }
        }
        Ok(())
    }

    /// A whole scrub has ended: its log takes the place of the last one.
    pub async fn rotate_error_logs(&self, tx: &Tx) -> Result<()> {
        self.free_error_log(tx, ErrorLog::Last).await?;
        let scrub = self.core().directory().lookup_u64(directory::ERROR_LOG_SCRUB).await?.unwrap_or(0);
        self.set_error_log(tx, ErrorLog::Last, ObjectId(scrub)).await?;
        self.set_error_log(tx, ErrorLog::Scrub, ObjectId(0)).await
    }

    /// Moves at most `limit` entries of the scrub's log to the last one. Answers whether more are left.
    pub async fn merge_error_logs(&self, tx: &Tx, limit: usize) -> Result<bool> {
        if self.error_log(ErrorLog::Scrub).await?.is_none() {
            return Ok(false);
        }
        if self.error_log(ErrorLog::Last).await?.is_none() {
            self.rotate_error_logs(tx).await?;
            return Ok(false);
        }
        let LoggedErrors { errors, is_cut, .. } = self.logged_errors(ErrorLog::Scrub, limit).await?;
        self.log_errors(tx, ErrorLog::Last, &errors).await?;
        if is_cut {
            self.unlog_from(tx, ErrorLog::Scrub, &errors).await?;
        } else {
            self.free_error_log(tx, ErrorLog::Scrub).await?;
        }
        Ok(is_cut)
    }

    /// Forgets all that was logged.
    pub async fn clear_error_logs(&self, tx: &Tx) -> Result<()> {
        for log in ErrorLog::BOTH {
            self.free_error_log(tx, log).await?;
        }
        Ok(())
    }

    /// The blocks of a head that is destroyed go with it.
    pub(crate) async fn drop_errors_of(&self, tx: &Tx, head: ObjectId) -> Result<()> {
        if !self.logs_errors_by_head() {
            return Ok(());
        }
        for log in ErrorLog::BOTH {
            let Some(table) = self.error_log(log).await? else { continue };
            let name = zap::int_name(head.0);
            let Some(id) = table.lookup_u64(&name).await? else { continue };
            self.free_if_errors(tx, ObjectId(id)).await?;
            zaps::remove_if_any(&table, tx, &name).await?;
        }
        Ok(())
    }

    /// A promotion gives the snapshots up to the one of `txg` another head, and the blocks they hold go with them.
    pub(crate) async fn move_errors(&self, tx: &Tx, from: ObjectId, to: ObjectId, txg: Txg) -> Result<()> {
        if !self.logs_errors_by_head() {
            return Ok(());
        }
        for log in ErrorLog::BOTH {
            let Some(table) = self.error_log(log).await? else { continue };
            let Some(id) = table.lookup_u64(&zap::int_name(from.0)).await? else { continue };
            let Some(old) = self.table_of_errors(ObjectId(id)).await? else { continue };
            let mut cursor = Some(Cursor::START);
            while let Some(at) = cursor {
                let page = old.page(at, PAGE).await?;
                let keys = page.entries.iter().filter_map(|e| HeadKey::parse(name_of(e)?).ok());
                let moved: Vec<LoggedError> =
                    keys.filter(|key| key.birth <= txg).map(|key| of_head(ObjsetId(to.0), key)).collect();
                self.log_errors(tx, log, &moved).await?;
                for error in &moved {
                    zaps::remove_if_any(&old, tx, &key_of(error).name()).await?;
                }
                cursor = page.next;
            }
        }
        Ok(())
    }

    /// The head dataset that an object set belongs to; itself when there is no telling.
    async fn head_of_set(&self, set: ObjsetId) -> ObjsetId {
        head_of_set(self.core(), set).await.unwrap_or(set)
    }

    async fn error_log(&self, log: ErrorLog) -> Result<Option<Table>> {
        match self.core().directory().lookup_u64(log.key()).await?.and_then(|id| ObjectId(id).some()) {
            Some(id) => self.table_of_errors(id).await,
            None => Ok(None),
        }
    }

    /// The object as a table, if it says that it is an error log.
    async fn table_of_errors(&self, id: ObjectId) -> Result<Option<Table>> {
        match self.core().table(id).await {
            Ok(table) if table.blocks().attrs().kind == ObjectType::ERROR_LOG => Ok(Some(table)),
            Ok(_) => Ok(None),
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Corrupt) => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn blocks_table(&self, entry: &zap::Entry) -> Option<(ObjsetId, Table)> {
        let head = parse_head(name_of(entry)?).ok()?;
        let table = self.table_of_errors(ObjectId(entry.value.as_u64()?)).await.ok()??;
        Some((head, table))
    }

    async fn set_error_log(&self, tx: &Tx, log: ErrorLog, id: ObjectId) -> Result<()> {
        self.core().directory().update(tx, log.key(), id.0).await
    }

    async fn free_error_log(&self, tx: &Tx, log: ErrorLog) -> Result<()> {
        let Some(table) = self.error_log(log).await? else {
            return self.set_error_log(tx, log, ObjectId(0)).await;
        };
        if self.logs_errors_by_head() {
            let mut from = Some(Cursor::START);
            while let Some(at) = from {
                let page = table.page(at, PAGE).await?;
                // A damaged one may lead to itself.
                let own = table.blocks().id().0;
                for id in page.entries.iter().filter_map(|entry| entry.value.as_u64()).filter(|id| *id != own)
                {
                    self.free_if_errors(tx, ObjectId(id)).await?;
                }
                from = page.next;
            }
        }
        self.core().mos().free(tx, table.blocks().id()).await?;
        self.set_error_log(tx, log, ObjectId(0)).await
    }

    async fn free_if_errors(&self, tx: &Tx, id: ObjectId) -> Result<()> {
        match self.table_of_errors(id).await? {
            Some(table) => self.core().mos().free(tx, table.blocks().id()).await,
            None => Ok(()),
        }
    }
}

async fn head_of_set(core: &Core, set: ObjsetId) -> Result<ObjsetId> {
    if set == ObjsetId::MOS {
        return Ok(set);
    }
    let (_, phys) = core.dataset(ObjectId(set.0)).await?;
    Ok(ObjsetId(core.dir(phys.dir).await?.1.head.0))
}

fn of_head(head: ObjsetId, key: HeadKey) -> LoggedError {
    let HeadKey { object, level, block, birth } = key;
    LoggedError { at: BlockBookmark { objset: head, object, level, block }, birth }
}

fn key_of(error: &LoggedError) -> HeadKey {
    let BlockBookmark { object, level, block, .. } = error.at;
    HeadKey { object, level, block, birth: error.birth }
}

fn name_of(entry: &zap::Entry) -> Option<&[u8]> {
    match &entry.key {
        zap::OwnedKey::Name(name) => Some(name),
        zap::OwnedKey::Words(_) => None,
    }
}

/// Adds the entries of one table, up to `limit` in all.
async fn take(
    table: &Table,
    limit: usize,
    found: &mut LoggedErrors,
    parse: impl Fn(&[u8]) -> Result<LoggedError>,
) -> Result<()> {
    let mut from = Some(Cursor::START);
    while let Some(at) = from {
        let page = table.page(at, PAGE).await?;
        for entry in &page.entries {
            if found.errors.len() >= limit {
                found.is_cut = true;
                return Ok(());
            }
            match name_of(entry).and_then(|name| parse(name).ok()) {
                Some(error) => found.errors.push(error),
                None => found.senseless += 1,
            }
        }
        from = page.next;
    }
    Ok(())
}
