//! Intent logs when a pool is opened.
//!
//! ```text
//!   survey       each head with a log: walk it, count it            a log vdev is missing? refused, or -m
//!   claim        in the first txg, before anything else             (writable only)
//!   ── first txg on disk ──
//!   replay       each record by the layer that knows what it means: `zvol`, `zpl`; then the log is done away with
//!                with `zil_replay_disable`, it is thrown away
//! ```
//!
//! A pool opened read-only is neither claimed nor replayed: it shows the state of its last txg, and says what waits.
//!
//! A log of which nothing was written, and whose first block is the dataset's own in the last txg, is *idle*: that of a
//! file system stays as it is; the first synchronous write will go there.
//!
//! What cannot be replayed waits: its dataset can be read, and not written to. Whatever waits, or is lost with a device,
//! is told by name: [`Pool::problems`], [`Pool::waiting_logs`].

mod waiting;

pub use waiting::WaitingLog;

use crate::pool::{Pool, lock};
use ondisk::{LogRecordKind, ObjsetType, ZilHeader};
use std::collections::BTreeMap;
use std::sync::Arc;
use tunables::Tunable;
use units::{Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Boxed;
use zil::chain::{Chain, End, Position};
use zpl::WriteOptions;

/// What a walk over one log found.
#[derive(Clone, Debug, Default)]
pub struct LogSurvey {
    /// Blocks that were written.
    pub blocks: u64,
    /// Records that the next replay would look at.
    pub records: u64,
    pub kinds: BTreeMap<u64, u64>,
    /// The last block and record that were met.
    pub upto: Position,
    /// Why the rest could not be read.
    pub unreadable: Option<String>,
    pub damage: Option<String>,
}

/// A head dataset with a log.
#[derive(Debug)]
struct Head {
    name: String,
    id: ObjectId,
    dataset: Arc<dsl::Dataset>,
    header: ZilHeader,
    survey: LogSurvey,
}

impl Head {
    fn kind(&self) -> ObjsetType {
        self.dataset.objset().kind()
    }

    /// Nothing is in it, and its first block is its own in the state of `synced`.
    fn is_idle(&self, synced: Txg) -> bool {
        let is_own = self.header.log.birth() <= synced && self.header.claim_txg == Txg::NONE;
        is_own && self.survey.blocks == 0 && self.survey.unreadable.is_none()
    }

    fn has(&self, kind: LogRecordKind) -> bool {
        self.survey.kinds.contains_key(&(kind as u64))
    }
}

impl Pool {
    /// Walks a log, as far as it is one.
    pub fn survey_log<'a>(&'a self, objset: ObjsetId, header: &'a ZilHeader) -> Boxed<'a, LogSurvey> {
        Box::pin(async move {
            let mut chain = Chain::new(self.pipeline(), objset, header);
            let mut survey = LogSurvey::default();
            while let Some(link) = chain.next().await {
                let Some(block) = link.block else { continue };
                survey.blocks += 1;
                for (head, _) in block.records() {
                    *survey.kinds.entry(head.code).or_default() += 1;
                    survey.records += u64::from(head.seq > header.replay_seq && head.txg >= header.claim_txg);
                }
            }
            survey.upto = chain.position();
            survey.damage = chain.damage().map(|e| e.to_string());
            if let Some(End::Unreadable(e)) = chain.end() {
                survey.unreadable = Some(e.to_string());
            }
            survey
        })
    }

    /// Logs that wait to be replayed, as they were found when the pool was opened.
    pub fn waiting_logs(&self) -> Vec<WaitingLog> {
        lock(&self.0.waiting_logs).clone()
    }

    /// What is done about logs before the first txg; `missing_log`: what was on log devices that are gone may be lost.
    ///
    /// # Errors
    /// `Io` when a log device is missing and `missing_log` does not allow that; `Unsupported` when the pool can only be
    /// read because of what is in a log.
    pub(crate) async fn claim_logs(&self, missing_log: bool) -> Result<()> {
        let inner = &self.0;
        let synced = self.uberblock().txg;
        let heads = self.heads().await?;
        self.check_log_devices(&heads, missing_log)?;
        if inner.read_only {
            for head in &heads {
                self.wait(head, None);
                inner.dsl.close_dataset(head.id);
            }
            return Ok(());
        }
        let mut busy = Vec::new();
        for head in heads {
            if head.is_idle(synced) && head.kind() != ObjsetType::Zvol {
                inner.dsl.close_dataset(head.id);
            } else {
                busy.push(head);
            }
        }
        check_claimable(&busy)?;
        // Its blocks are copied, and so must be there: no other replay may free them before.
        busy.sort_by_key(|head| !head.has(LogRecordKind::CloneRange));
        if busy.is_empty() {
            return Ok(());
        }
        let tx = inner.txgs.begin_unthrottled();
        assert_eq!(tx.txg(), synced.next(), "logs are claimed in the first txg");
        for head in &busy {
            self.claim_log(head, &tx).await?;
        }
        tx.dirtied(1);
        *lock(&inner.claimed_logs) = busy.into_iter().map(|head| head.id).collect();
        Ok(())
    }

    async fn claim_log(&self, head: &Head, tx: &dmu::Tx) -> Result<()> {
        let set = head.dataset.objset();
        // As it is now: a log is claimed once.
        let header = set.phys().zil_header;
        let problem = |what: &str| self.0.note_problem(format!("'{}': {what}", head.name));
        if let Some(unreadable) = &head.survey.unreadable {
            // An administrator has said that it may be lost; what comes before it is replayed.
            problem(&format!("synchronous writes in its intent log are lost: {unreadable}"));
        } else if let Some(damage) = &head.survey.damage {
            problem(damage);
        }
        if header.claim_txg != Txg::NONE {
            if head.survey.unreadable.is_some() {
                let Position { block, record } = head.survey.upto;
                set.update_phys(tx, |phys| {
                    phys.zil_header.claim_block_seq = block;
                    phys.zil_header.claim_record_seq = record;
                    phys.zil_header.flags |= ZilHeader::CLAIM_RECORD_SEQ_VALID;
                });
            }
            return Ok(());
        }
        let claim = zil::claim(self.pipeline(), set.id(), &header, tx.txg()).await?;
        if let Some(cut) = claim.cut.filter(|_| head.survey.unreadable.is_none()) {
            problem(&format!("its intent log was cut short after {} records: {cut}", claim.records));
        }
        set.update_phys(tx, |phys| phys.zil_header = claim.header);
        Ok(())
    }

    /// Replays the claimed logs; called when the pool syncs. No dataset is open yet.
    pub(crate) async fn replay_logs(&self) -> Result<()> {
        let claimed = std::mem::take(&mut *lock(&self.0.claimed_logs));
        if claimed.is_empty() {
            return Ok(());
        }
        self.sync().await?;
        for id in claimed {
            let dataset = self.0.dsl.open_dataset(id).await?;
            let name = self.0.dsl.dataset_name(id).await?;
            let header = dataset.objset().phys().zil_header;
            let survey = self.survey_log(dataset.objset().id(), &header).await;
            let head = Head { name, id, dataset, header, survey };
            let failed = self.replay_log(&head).await?;
            if let Some(why) = failed.as_ref().filter(|_| head.has(LogRecordKind::CloneRange)) {
                let name = &head.name;
                return Err(only_reading(&format!("has cloned blocks in the intent log of '{name}': {why}")));
            }
            if failed.is_some() {
                self.wait(&head, failed);
            }
            // What was changed has synced, or nothing was: it may be closed.
            self.sync().await?;
            self.0.dsl.close_dataset(id);
        }
        Ok(())
    }

    /// Replays one log, and clears it if nothing is left in it. Answers why it could not.
    async fn replay_log(&self, head: &Head) -> Result<Option<String>> {
        let set = head.dataset.objset();
        if self.0.tunables.is_on(Tunable::ZilReplayDisable) {
            let (name, records) = (&head.name, head.survey.records);
            self.0.note_problem(format!(
                "'{name}': {records} records of its intent log were thrown away: zil_replay_disable"
            ));
        } else if head.survey.records > 0
            && let Some(e) = self.replay_records(head).await?
        {
            self.0.note_problem(format!("'{}': its intent log could not be replayed: {e}", head.name));
            return Ok(Some(e.to_string()));
        } else if head.survey.damage.is_some() {
            return Ok(head.survey.damage.clone());
        }
        let tx = self.txgs().begin_unthrottled();
        if head.header.log.is_hole() && head.header == ZilHeader::default() {
            return Ok(None);
        }
        zil::destroy(self.pipeline(), set, &tx).await;
        Ok(None)
    }

    /// Answers why not all of them could be.
    async fn replay_records(&self, head: &Head) -> Result<Option<Error>> {
        let set = head.dataset.objset();
        match head.kind() {
            ObjsetType::Zvol => {
                let replayer = zvol::Replay::open(set).await?;
                Ok(zil::replay(self.pipeline(), self.txgs(), set, &replayer).await?.failed)
            }
            ObjsetType::Zfs => {
                let found = self.0.dsl.find(&head.name).await?;
                // What is replayed had its room before.
                let options = WriteOptions {
                    space_reservation: None,
                    ..self.write_options(&found, &head.dataset).await?
                };
                let replayer = match zpl::Replay::open(&head.name, set, options).await {
                    Ok(replayer) => replayer,
                    Err(e) => return Ok(Some(e)),
                };
                let done = zil::replay(self.pipeline(), self.txgs(), set, &replayer).await?;
                if done.failed.is_none() {
                    replayer.finish().await?;
                }
                Ok(done.failed)
            }
            other => Ok(Some(Error::unsupported(format!("an intent log of a dataset of type {other:?}")))),
        }
    }

    fn wait(&self, head: &Head, why: Option<String>) {
        if head.survey.records > 0 || why.is_some() {
            let records = head.survey.records;
            let waiting = WaitingLog { dataset: head.name.clone(), records, why };
            lock(&self.0.waiting_logs).push(waiting);
        }
    }

    /// The head datasets that have a log.
    async fn heads(&self) -> Result<Vec<Head>> {
        let inner = &self.0;
        let mut heads = Vec::new();
        for (id, name) in inner.dsl.heads().await? {
            match self.head(id, name).await {
                Ok(head) => heads.extend(head),
                // Damage that only a reader of this dataset need care about.
                Err(e) if inner.read_only => inner.note_problem(e),
                Err(e) => return Err(e),
            }
        }
        Ok(heads)
    }

    async fn head(&self, id: ObjectId, name: String) -> Result<Option<Head>> {
        let dsl = &self.0.dsl;
        let (_, phys) = dsl.core().dataset(id).await?;
        if phys.bp.is_hole() {
            return Ok(None);
        }
        let dataset = dsl.open_dataset(id).await?;
        let (objset, header) = (dataset.objset().id(), dataset.objset().phys().zil_header);
        if header.log.is_hole() {
            dsl.close_dataset(id);
            return Ok(None);
        }
        let survey = self.survey_log(objset, &header).await;
        Ok(Some(Head { name, id, dataset, header, survey }))
    }

    fn check_log_devices(&self, heads: &[Head], missing_log: bool) -> Result<()> {
        let tree = &self.0.tree;
        let gone: Vec<String> = tree
            .tops()
            .iter()
            .filter(|top| top.is_log && !top.is_usable())
            .flat_map(|top| top.leaves())
            .filter(|leaf| !leaf.is_usable() && !is_away_by_command(leaf))
            .map(|leaf| leaf.device().to_string())
            .collect();
        let unreadable: Vec<&Head> = heads.iter().filter(|head| head.survey.unreadable.is_some()).collect();
        if (gone.is_empty() && unreadable.is_empty()) || missing_log || self.0.read_only {
            return Ok(());
        }
        let names: Vec<String> = unreadable.iter().map(|head| format!("'{}'", head.name)).collect();
        let what = match (gone.is_empty(), unreadable.first()) {
            (true, Some(head)) => head.survey.unreadable.clone().unwrap_or_default(),
            _ => format!("log device missing: {}", gone.join(", ")),
        };
        let lost = match names.is_empty() {
            true => "no dataset has anything on it".to_string(),
            false => format!("the latest synchronous writes of {} would be lost", names.join(", ")),
        };
        let without = format!("{what}; {lost}: use -m to import the pool all the same");
        Err(Error::new(Kind::Io, "open").because(without))
    }
}

/// Whether an administrator has taken the device away, before which its logs were emptied.
fn is_away_by_command(leaf: &vdev::Leaf) -> bool {
    let health = leaf.health();
    health.state == vdev::State::Offline || health.aux == vdev::Aux::External
}

/// Whether this program can take over these logs: the pool can only be read otherwise.
///
/// Cloned blocks are copied into volumes. Where several logs have clones, the replay of one could free what another has
/// cloned; and in a file system that wrote over them, or removed the file, that is in the same log, maybe before.
fn check_claimable(busy: &[Head]) -> Result<()> {
    if let Some(head) = busy.iter().find(|head| head.dataset.is_encrypted()) {
        return Err(only_reading(&format!("has an intent log of the encrypted dataset '{}'", head.name)));
    }
    let cloning: Vec<&Head> = busy.iter().filter(|head| head.has(LogRecordKind::CloneRange)).collect();
    match cloning[..] {
        [] => Ok(()),
        [volume] if volume.kind() == ObjsetType::Zvol => Ok(()),
        _ => {
            let names: Vec<String> = cloning.iter().map(|head| format!("'{}'", head.name)).collect();
            Err(only_reading(&format!("has cloned blocks in the intent log of {}", names.join(", "))))
        }
    }
}

pub(crate) fn only_reading(what: &str) -> Error {
    Error::unsupported(format!(
        "the pool {what}: it can be imported read-only (-o readonly=on) here, or in full by OpenZFS"
    ))
}
