//! The blocks of one object, and one block followed to the bytes on each device.

use crate::find;
use crate::report::{Cell, Report, columns};
use dmu::{ObjSet, Visit, Visitor, locate, traverse_tree};
use ondisk::{BlockPointer, DnodePhys, Plain};
use pool::Pool;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use units::{Error, Kind, ObjectId, Result, Txg};
use zio::{BlockStore, Bookmark, Verified};

/// How much of a block's contents is shown.
const SHOWN: usize = 256;

type Rows = Vec<Vec<Cell>>;

/// Every block of an object, parents first.
pub(crate) async fn all(pool: &Pool, dataset: &str, object: ObjectId) -> Result<Report> {
    let set = find::objset(pool, dataset).await?;
    let dnode = dnode_of(&set, object).await?;
    let mut report = Report::default();
    report.fields("dnode", dnode_fields(object, &dnode));
    let lister = Lister(Mutex::default());
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    traverse_tree(&store, set.id(), object, &dnode, Txg::NONE, &lister).await?;
    let rows = lister.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.table("blocks", columns(&["LEVEL>", "BLOCK>", "POINTER"]), rows);
    Ok(report)
}

async fn dnode_of(set: &ObjSet, object: ObjectId) -> Result<DnodePhys> {
    if object == ObjectId::META_DNODE {
        return Ok(set.phys().meta_dnode);
    }
    let missing = || Error::new(Kind::NotFound, format!("object {object} of object set {}", set.id()));
    set.dnode_phys(object).await?.ok_or_else(missing)
}

fn dnode_fields(object: ObjectId, dnode: &DnodePhys) -> Vec<(&'static str, Cell)> {
    vec![
        ("object", object.0.into()),
        ("type", dnode.kind.name().into()),
        ("levels", u64::from(dnode.levels).into()),
        ("indirect block", Cell::Bytes(1 << dnode.indirect_shift)),
        ("data block", Cell::Bytes(dnode.data_block_size().0)),
        ("last block", dnode.max_block_id.into()),
        ("used", Cell::Bytes(dnode.used_bytes())),
        ("flags", u64::from(dnode.flags.0).into()),
        ("slots", (dnode.slots() as u64).into()),
        ("bonus type", dnode.bonus_kind.name().into()),
        ("bonus bytes", (dnode.bonus.len() as u64).into()),
    ]
}

struct Lister(Mutex<Rows>);

impl Lister {
    fn add(&self, row: Vec<Cell>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }
}

fn block_name(at: Bookmark) -> Cell {
    if at.blkid == u64::MAX { "spill".into() } else { at.blkid.into() }
}

impl Visitor for Lister {
    fn visit<'a>(
        &'a self,
        at: Bookmark,
        bp: &'a BlockPointer,
    ) -> Pin<Box<dyn Future<Output = Result<Visit>> + Send + 'a>> {
        self.add(vec![(at.level as u64).into(), block_name(at), bp.to_string().into()]);
        Box::pin(async { Ok(Visit::Descend) })
    }

    fn damaged(&self, at: Bookmark, error: Error) {
        self.add(vec![(at.level as u64).into(), block_name(at), format!("damaged: {error}").into()]);
    }
}

/// The way to one block.
pub(crate) async fn one(
    pool: &Pool,
    dataset: &str,
    object: ObjectId,
    level: u8,
    blkid: u64,
) -> Result<Report> {
    let set = find::objset(pool, dataset).await?;
    let dnode = dnode_of(&set, object).await?;
    if level >= dnode.levels {
        return Err(Error::invalid(format!("object {object} has {} levels, counted from 0", dnode.levels)));
    }
    let mut report = Report::default();
    report.fields("dnode", dnode_fields(object, &dnode));
    let (rows, bp) =
        way(pool, &set, &dnode, Bookmark { objset: set.id(), object, level: level as i8, blkid }).await?;
    report.table("way", columns(&["LEVEL>", "BLOCK>", "POINTER"]), rows);
    let at = Bookmark { objset: set.id(), object, level: level as i8, blkid };
    if let Some(plain) = bp.as_plain() {
        let names = &["COPY>", "VDEV>", "DEVICE", "OFFSET>", "BYTES>", "HOLDS", "CHECK"];
        report.table("places", columns(names), places(pool, plain, at).await?);
    }
    contents(&mut report, pool, &bp, at).await;
    Ok(report)
}

/// The pointers from the dnode down.
async fn way(pool: &Pool, set: &ObjSet, dnode: &DnodePhys, to: Bookmark) -> Result<(Rows, BlockPointer)> {
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let (mut rows, mut bp) = (Rows::new(), BlockPointer::HOLE);
    for level in (to.level..dnode.levels as i8).rev() {
        let shift = u32::from(dnode.indirect_shift - 7) * (level - to.level) as u32;
        let blkid = to.blkid.checked_shr(shift).unwrap_or(0);
        bp = locate(&store, &set.root(), Bookmark { level, blkid, ..to }).await?;
        rows.push(vec![(level as u64).into(), blkid.into(), bp.to_string().into()]);
    }
    Ok((rows, bp))
}

/// Where each copy is, device by device, and whether it is right.
async fn places(pool: &Pool, plain: &Plain, at: Bookmark) -> Result<Rows> {
    let mut rows = Rows::new();
    for (copy, dva) in plain.copies().enumerate() {
        let alone = Plain { dvas: [*dva, Default::default(), Default::default()], ..plain.clone() };
        // The header of a gang is bound to the place of the first copy, so a later one cannot be tried by itself.
        let check = if dva.gang && copy > 0 {
            "-".to_string()
        } else {
            match pool.pipeline().check_block(&BlockPointer::Plain(alone), at).await {
                Ok(checked) if checked.bad == 0 => "good".into(),
                Ok(checked) => format!("good; {} devices have it wrong", checked.bad),
                Err(e) => e.to_string(),
            }
        };
        let missing = || Error::corrupt(format!("no vdev {} in this pool", dva.vdev));
        let top = pool.tree().top(dva.vdev).ok_or_else(missing)?;
        let psize = if dva.gang { ondisk::GangHeader::SIZE } else { plain.psize.0 as usize };
        for place in top.places(dva.offset.bytes(), psize)? {
            let holds = match (&place.bytes, dva.gang) {
                (_, true) => "gang header".to_string(),
                (None, _) => "parity".to_string(),
                (Some(bytes), _) => format!("{}..{}", bytes.start, bytes.end),
            };
            rows.push(vec![
                (copy as u64).into(),
                u64::from(dva.vdev.0).into(),
                place.device.to_string().into(),
                place.offset.into(),
                place.len.into(),
                holds.into(),
                check.clone().into(),
            ]);
        }
    }
    Ok(rows)
}

async fn contents(report: &mut Report, pool: &Pool, bp: &BlockPointer, at: Bookmark) {
    let data = match bp {
        BlockPointer::Hole(_) => return,
        bp if bp.is_encrypted() => pool.pipeline().read_raw(bp, at).await.map(|Verified(data)| data),
        bp => pool.pipeline().read(bp, at, zio::ReadClass::Scan).await,
    };
    let title = if bp.is_encrypted() { "contents, encrypted" } else { "contents" };
    match data {
        Ok(data) => {
            let rows = data[..data.len().min(SHOWN)].chunks(16).enumerate().map(dump_row).collect();
            report.table(title, columns(&["OFFSET>", "BYTES", "TEXT"]), rows);
        }
        Err(e) => report.fields(title, vec![("error", e.to_string().into())]),
    }
}

fn dump_row((i, bytes): (usize, &[u8])) -> Vec<Cell> {
    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let text = bytes.iter().map(|b| if (0x20..0x7f).contains(b) { *b as char } else { '.' });
    vec![format!("{:x}", i * 16).into(), hex.join(" ").into(), text.collect::<String>().into()]
}
