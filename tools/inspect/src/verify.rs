//! `--verify`: reads everything and tells what it met.

use crate::Progress;
use crate::report::{Cell, Report, columns};
use pool::{Pool, Tally, VerifyReport};
use units::Result;

/// The report, and whether the pool is sound.
pub(crate) async fn verify(pool: &Pool, progress: Progress) -> Result<(Report, bool)> {
    let tell = move |so_far: &VerifyReport| progress(so_far.total.asize, so_far.to_examine);
    let found = pool.verify(tell).await?;
    let mut report = Report::default();
    report.fields("pool", summary(pool, &found));
    let mut rows: Vec<Vec<Cell>> = found.kinds.iter().map(|(kind, tally)| row(kind, tally)).collect();
    rows.push(row("total", &found.total));
    let names = &["TYPE", "BLOCKS>", "LOGICAL>", "COMPRESSED>", "ALLOCATED>"];
    report.table("blocks", columns(names), rows);
    let damage = found.damage.iter().map(|d| {
        vec![
            d.dataset.clone().into(),
            d.at.object.0.into(),
            d.at.level.to_string().into(),
            d.at.blkid.into(),
            d.error.clone().into(),
        ]
    });
    let damage: Vec<Vec<Cell>> = damage.collect();
    if !damage.is_empty() {
        report.table("lost", columns(&["DATASET", "OBJECT>", "LEVEL>", "BLOCK>", "ERROR"]), damage);
    }
    Ok((report, found.is_sound()))
}

fn summary(pool: &Pool, found: &VerifyReport) -> Vec<(&'static str, Cell)> {
    let result = match (found.lost, found.repairable) {
        (0, 0) => "every block is good".to_string(),
        (0, n) => format!("every block can be read; {n} places are wrong and would be repaired by a scrub"),
        (n, _) => format!("{n} blocks are lost"),
    };
    vec![
        ("name", pool.name().into()),
        ("txg", pool.uberblock().txg.0.into()),
        ("datasets", found.datasets.into()),
        ("blocks", found.total.blocks.into()),
        ("embedded", found.embedded.into()),
        ("not readable (encrypted)", found.encrypted.blocks.into()),
        ("redacted", found.redacted.into()),
        ("intent log blocks", found.log_blocks.into()),
        ("intent log records", found.log_records.into()),
        ("repairable places", found.repairable.into()),
        ("lost blocks", found.lost.into()),
        ("result", result.into()),
    ]
}

fn row(kind: &str, tally: &Tally) -> Vec<Cell> {
    vec![
        kind.into(),
        tally.blocks.into(),
        Cell::Bytes(tally.lsize),
        Cell::Bytes(tally.psize),
        Cell::Bytes(tally.asize),
    ]
}
