//! The intent log of a dataset: its header, the blocks of the chain, and what every record says.
//!
//! As the log lies on disk: of a pool that was not exported, what the next import for writing will claim and replay.

use crate::find;
use crate::report::{Cell, Report, columns};
use ondisk::zil::{CreateKind, RenameKind, SetSaXattr, Write};
use ondisk::{BlockPointer, LogRecord, LogRecordHeader, Reader, Record, ZilHeader};
use pool::Pool;
use units::{ObjectId, Result, Txg};
use zil::chain::{Chain, End};

/// Whether nothing is damaged is told with the report.
pub(crate) async fn dataset(pool: &Pool, name: &str) -> Result<(Report, bool)> {
    let set = find::objset(pool, name).await?;
    let header = set.phys().zil_header;
    let synced = pool.uberblock().txg;
    let mut chain = Chain::new(pool.pipeline(), set.id(), &header);
    let (mut blocks, mut records) = (Vec::new(), Vec::new());
    while let Some(link) = chain.next().await {
        let found = link.block.iter().flat_map(|block| block.records());
        blocks.push(block_row(link.number, &link.pointer, synced, link.block.as_ref().map(|b| b.len())));
        let is_encrypted = link.block.as_ref().is_some_and(|block| block.is_encrypted);
        records.extend(
            found.map(|(head, reader)| record_row(link.number, head, reader, &header, synced, is_encrypted)),
        );
    }
    let damage = chain.damage().map(|e| e.to_string());
    let end = match chain.end() {
        _ if header.log.is_hole() => "there is no log".to_string(),
        None | Some(End::NotCarriedOn) => "where its last block names one that does not carry it on".into(),
        Some(End::Claimed) => "with the last record that was claimed".into(),
        Some(End::Malformed(e)) => format!("damaged: {e}"),
        Some(End::Unreadable(e)) => format!("cannot be read on: {e}"),
    };
    let is_sound = damage.is_none() && !matches!(chain.end(), Some(End::Malformed(_) | End::Unreadable(_)));
    let mut report = Report::default();
    let claimed = header.claim_txg != Txg::NONE;
    let counts = header.flags & ZilHeader::CLAIM_RECORD_SEQ_VALID != 0;
    report.fields(
        "intent log",
        vec![
            ("dataset", name.into()),
            ("object set", set.id().0.into()),
            ("pool's txg", synced.0.into()),
            ("claimed in txg", claimed.then_some(header.claim_txg.0).into()),
            ("claimed up to block", claimed.then_some(header.claim_block_seq).into()),
            ("claimed up to record", (claimed && counts).then_some(header.claim_record_seq).into()),
            ("replayed up to record", header.replay_seq.into()),
            ("ends", end.into()),
            ("damage", damage.into()),
        ],
    );
    report.table("blocks", columns(&["BLOCK>", "RECORDS>", "SIZE>", "BIRTH>", "SPACE", "POINTER"]), blocks);
    let names =
        &["RECORD>", "BLOCK>", "TXG>", "LENGTH>", "STATE", "TYPE", "OBJECT>", "OFFSET>", "BYTES>", "WHAT"];
    report.table("records", columns(names), records);
    Ok((report, is_sound))
}

fn block_row(number: u64, bp: &BlockPointer, synced: Txg, records: Option<usize>) -> Vec<Cell> {
    // What is younger than the pool's last txg is free as far as the space maps know.
    let space = if bp.birth() > synced { "to be claimed" } else { "allocated" };
    vec![
        number.into(),
        records.map(|n| n as u64).into(),
        Cell::Bytes(bp.psize().0),
        bp.birth().0.into(),
        space.into(),
        bp.to_string().into(),
    ]
}

fn record_row(
    block: u64,
    head: &LogRecordHeader,
    mut reader: Reader<'_>,
    header: &ZilHeader,
    synced: Txg,
    is_encrypted: bool,
) -> Vec<Cell> {
    let since = if header.claim_txg == Txg::NONE { synced.next() } else { header.claim_txg };
    let state = match () {
        () if head.seq <= header.replay_seq => "replayed",
        () if head.txg < since => "synced",
        () => "waits",
    };
    let kind = head.kind().map_or_else(|| format!("type {}", head.code), |kind| kind.name().into());
    let start: [Cell; 6] = [
        head.seq.into(),
        block.into(),
        head.txg.0.into(),
        Cell::Bytes(head.length),
        state.into(),
        kind.into(),
    ];
    let said = match (is_encrypted, head.kind()) {
        (true, _) => Said::only("encrypted"),
        (false, None) => Said::only("of a kind that is not known here"),
        (false, Some(_)) => match LogRecord::decode(&mut reader) {
            Ok(record) => says(&record.record),
            Err(e) => Said::only(format!("damaged: {e}")),
        },
    };
    let Said { object, offset, bytes, what } = said;
    let object = object.map(|id| id.0);
    let rest = [object.into(), offset.map(Cell::Bytes).into(), bytes.map(Cell::Bytes).into(), what.into()];
    start.into_iter().chain(rest).collect()
}

/// The columns that depend on the kind.
#[derive(Default)]
struct Said {
    object: Option<ObjectId>,
    offset: Option<u64>,
    bytes: Option<u64>,
    what: String,
}

impl Said {
    fn only(what: impl Into<String>) -> Said {
        Said { what: what.into(), ..Said::default() }
    }

    fn of(object: ObjectId, what: impl Into<String>) -> Said {
        Said { object: Some(object), what: what.into(), ..Said::default() }
    }

    fn range(object: ObjectId, offset: u64, bytes: u64, what: impl Into<String>) -> Said {
        Said { offset: Some(offset), bytes: Some(bytes), ..Said::of(object, what) }
    }
}

fn says(record: &Record<'_>) -> Said {
    match record {
        Record::Commit => Said::default(),
        Record::Create(create) => {
            let what = match create.what {
                CreateKind::File => "file",
                CreateKind::Directory => "directory",
                CreateKind::XattrDirectory => "directory of attributes",
                CreateKind::Symlink => "link",
            };
            let named = in_directory(create.directory, create.name);
            let target = match create.target {
                [] => String::new(),
                target => format!(" to {}", text(target)),
            };
            Said::of(create.node.object, format!("{what} {named}{target}, mode {:o}", create.node.mode))
        }
        Record::Remove(remove) => Said::only(in_directory(remove.directory, remove.name)),
        Record::Link(link) => Said::of(link.object, in_directory(link.directory, link.name)),
        Record::Rename(rename) => {
            let source = in_directory(rename.source, rename.source_name);
            let target = in_directory(rename.target, rename.target_name);
            let how = match rename.how {
                RenameKind::Plain => "",
                RenameKind::Exchange => ", exchanged",
                RenameKind::Whiteout(_) => ", leaving a whiteout",
            };
            Said::only(format!("{source} to {target}{how}"))
        }
        Record::Write(write) | Record::Write2(write) => {
            Said::range(write.object, write.offset, write.length, where_data_are(write))
        }
        Record::Truncate(truncate) => {
            Said::range(truncate.object, truncate.offset, truncate.length, "becomes zeros")
        }
        Record::SetAttr(set) => Said::of(set.object, format!("mask {:#x}, size {}", set.mask, set.size)),
        Record::AclV0(acl) => Said::of(acl.object, format!("{} entries", acl.entries.len())),
        Record::Acl(acl) => Said::of(acl.object, "access control list"),
        Record::SetSaXattr(SetSaXattr { object, name, value }) => {
            Said { bytes: Some(value.len() as u64), ..Said::of(*object, text(name)) }
        }
        Record::CloneRange(clone) => {
            let what = format!("{} blocks of {}", clone.pointers.len(), clone.block_size);
            Said::range(clone.object, clone.offset, clone.length, what)
        }
    }
}

fn where_data_are(write: &Write<'_>) -> String {
    if write.is_indirect() { format!("data at {}", write.pointer) } else { "data in the record".into() }
}

fn in_directory(directory: ObjectId, name: &[u8]) -> String {
    format!("{} in {}", text(name), directory.0)
}

fn text(bytes: &[u8]) -> String {
    format!("'{}'", bytes.escape_ascii())
}
