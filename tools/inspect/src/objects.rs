//! The objects of a set: kinds, sizes, levels.

use crate::find;
use crate::report::{Cell, Report, columns};
use dmu::ObjSet;
use pool::Pool;
use units::{ObjectId, Result};

/// Object numbers fetched at once.
const AT_ONCE: usize = 4096;

/// The pool's own set: the directory that names things, and all objects.
pub(crate) async fn mos(pool: &Pool) -> Result<Report> {
    let mut report = Report::default();
    let uberblock = pool.uberblock();
    report.fields(
        "pool",
        vec![
            ("name", pool.name().into()),
            ("guid", pool.guid().0.into()),
            ("version", uberblock.version.into()),
            ("txg", uberblock.txg.0.into()),
            ("root", uberblock.root.to_string().into()),
        ],
    );
    let mut rows = Vec::new();
    for entry in pool.dsl().core().directory().entries().await? {
        let value = match entry.value.as_u64() {
            Some(number) => Cell::Number(number),
            None => format!("{} integers of {} bytes", entry.value.len(), entry.value.int_size()).into(),
        };
        rows.push(vec![entry.name().into_owned().into(), value]);
    }
    rows.sort_by_key(|row: &Vec<Cell>| match &row[0] {
        Cell::Text(name) => name.clone(),
        _ => String::new(),
    });
    report.table("object directory", columns(&["NAME", "VALUE>"]), rows);
    objects(&mut report, pool.mos()).await?;
    Ok(report)
}

/// The objects of a dataset.
pub(crate) async fn dataset(pool: &Pool, name: &str) -> Result<Report> {
    let set = find::objset(pool, name).await?;
    let mut report = Report::default();
    report.fields(
        "object set",
        vec![
            ("name", name.into()),
            ("id", set.id().0.into()),
            ("type", set.kind().name().into()),
            ("root", set.root().to_string().into()),
        ],
    );
    objects(&mut report, &set).await?;
    Ok(report)
}

async fn objects(report: &mut Report, set: &ObjSet) -> Result<()> {
    let mut rows = Vec::new();
    let mut from = ObjectId(1);
    loop {
        let ids = set.object_ids(from, AT_ONCE).await?;
        let Some(last) = ids.last() else { break };
        from = ObjectId(last.0 + 1);
        for id in ids {
            rows.push(row(set, id).await?);
        }
    }
    let names = &["OBJECT>", "LEVELS>", "INDIRECT>", "BLOCK>", "SIZE>", "USED>", "SLOTS>", "TYPE", "BONUS"];
    report.table("objects", columns(names), rows);
    Ok(())
}

async fn row(set: &ObjSet, id: ObjectId) -> Result<Vec<Cell>> {
    let Some(dnode) = set.dnode_phys(id).await? else { return Ok(vec![Cell::Nothing; 9]) };
    let block = dnode.data_block_size().0;
    let is_empty = dnode.blkptrs.iter().all(|bp| bp.is_hole());
    let size = if is_empty { 0 } else { (dnode.max_block_id + 1).saturating_mul(block) };
    Ok(vec![
        id.0.into(),
        u64::from(dnode.levels).into(),
        Cell::Bytes(1 << dnode.indirect_shift),
        Cell::Bytes(block),
        Cell::Bytes(size),
        Cell::Bytes(dnode.used_bytes()),
        (dnode.slots() as u64).into(),
        dnode.kind.name().into(),
        format!("{} ({} B)", dnode.bonus_kind.name(), dnode.bonus.len()).into(),
    ])
}
