//! Where a block goes: allocate, take back, free and claim.

use crate::class::{Class, Rotor};
use crate::group::{COPIES_MAX, Found};
use crate::metaslab::Metaslab;
use crate::space::{Space, Table};
use crate::vdev::TopVdev;
use ondisk::Dva;
use std::sync::Arc;
use units::{Error, Kind, Psize, Result, Sectors, Txg, VdevId};

/// A block that needs a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub class: Class,
    pub psize: Psize,
    /// 1 to 3.
    pub copies: u8,
    pub txg: Txg,
    /// The vdev to begin with: parts of a gang stay with their header.
    pub hint: Option<VdevId>,
    /// The block is a gang header: its DVAs say so.
    pub gang_header: bool,
}

impl Request {
    pub fn new(class: Class, psize: Psize, copies: u8, txg: Txg) -> Request {
        Request { class, psize, copies, txg, hint: None, gang_header: false }
    }
}

/// The copies of a block; those that were not asked for are empty.
pub type Dvas = [Dva; COPIES_MAX];

/// What [`Space::try_allocate`] found.
#[derive(Debug)]
pub enum Placement {
    Placed(Dvas),
    /// Only metaslabs that are not loaded may have room: [`Space::load`] this one, then ask again.
    Load(Unloaded),
}

/// A metaslab to be loaded.
#[derive(Clone, Debug)]
pub struct Unloaded(pub(crate) Arc<Metaslab>);

enum Copy {
    Placed(Dva),
    Load(Arc<Metaslab>),
    NoRoom,
}

impl Space {
    /// Takes space for a block, loading metaslabs as needed.
    ///
    /// # Errors
    /// `NoSpace` when no single place is large enough: the caller gangs, or gives up.
    pub async fn allocate(&self, request: &Request) -> Result<Dvas> {
        loop {
            match self.try_allocate(request)? {
                Placement::Placed(dvas) => return Ok(dvas),
                Placement::Load(unloaded) => self.load(&unloaded).await,
            }
        }
    }

    /// As [`Space::allocate`], without ever waiting.
    pub fn try_allocate(&self, request: &Request) -> Result<Placement> {
        assert!((1..=COPIES_MAX).contains(&request.copies.into()), "a block has one to three copies");
        assert!(request.psize.0 > 0, "an empty block has no place");
        let table = self.table();
        for &class in request.class.chain() {
            if let Some(placement) = place_block(&table, table.rotor(class), request)? {
                return Ok(placement);
            }
        }
        Err(Error::new(Kind::NoSpace, format!("allocate {} bytes", request.psize.0)))
    }

    /// Takes back an allocation that was made in this txg and is not used after all.
    pub fn unallocate(&self, dva: &Dva, txg: Txg) -> Result<()> {
        let top = self.vdev_of(dva)?;
        unallocate_at(&top, dva, txg)
    }

    /// Frees a copy that is in use, in `txg`: the one being synced or a later one. Of a gang, this is the header.
    ///
    /// # Errors
    /// `Corrupt` when the space is free already or cannot be allocated space at all.
    pub fn free(&self, dva: &Dva, txg: Txg) -> Result<()> {
        let top = self.vdev_of(dva)?;
        let (metaslab, segment) = top.locate(dva)?;
        if metaslab.lock().free(segment, txg)? {
            top.mark_dirty(metaslab.place.index, txg);
        }
        Ok(())
    }

    /// Takes the space of a log block that was written after the last txg: it must still be free.
    pub async fn claim(&self, dva: &Dva, txg: Txg) -> Result<()> {
        let top = self.vdev_of(dva)?;
        let (metaslab, segment) = top.locate(dva)?;
        self.load_metaslab(metaslab).await?;
        if metaslab.lock().claim(segment, txg)? {
            top.mark_dirty(metaslab.place.index, txg);
        }
        Ok(())
    }

    fn vdev_of(&self, dva: &Dva) -> Result<Arc<TopVdev>> {
        self.vdev(dva.vdev).ok_or_else(|| Error::corrupt(format!("block pointer: no vdev for {dva}")))
    }
}

fn unallocate_at(top: &TopVdev, dva: &Dva, txg: Txg) -> Result<()> {
    let (metaslab, segment) = top.locate(dva)?;
    metaslab.lock().unallocate(segment, txg)
}

/// All copies of a block in one class, or none; `None` when they do not fit.
fn place_block(table: &Table, rotor: &Rotor, request: &Request) -> Result<Option<Placement>> {
    let mut dvas = [Dva::EMPTY; COPIES_MAX];
    for nth in 0..usize::from(request.copies) {
        let (placed, open) = dvas.split_at_mut(nth);
        let failed = match place_copy(table, rotor, request, placed) {
            Copy::Placed(dva) => {
                open[0] = dva;
                continue;
            }
            Copy::Load(metaslab) => Some(Placement::Load(Unloaded(metaslab))),
            Copy::NoRoom => None,
        };
        for dva in placed {
            let top = table.vdev(dva.vdev).expect("the copy was placed on a vdev of this table");
            unallocate_at(top, dva, request.txg)?;
        }
        return Ok(failed);
    }
    Ok(Some(Placement::Placed(dvas)))
}

/// A further copy goes to the vdev after the one before, so that two neighbours at most share a block; when there are
/// too few vdevs, to another metaslab; when there are too few of those, anywhere.
fn place_copy(table: &Table, rotor: &Rotor, request: &Request, placed: &[Dva]) -> Copy {
    let index_of = |vdev: VdevId| rotor.groups().iter().position(|g| g.vdev == vdev);
    let first = match placed.last() {
        Some(last) => index_of(last.vdev).map(|i| (i + 1) % rotor.groups().len()),
        None => request.hint.and_then(index_of),
    };
    let follows_turn = first.is_none();
    let mut to_load = None;
    for hard in [false, true] {
        for (index, group) in rotor.round(first) {
            let top = table.vdev(group.vdev).expect("a group belongs to a vdev of this table");
            let size = top.spec.geometry.asize(request.psize).0;
            let mut avoid = [usize::MAX; COPIES_MAX];
            let mut nth = 0;
            for dva in placed.iter().filter(|dva| dva.vdev == group.vdev) {
                avoid[nth] = (dva.offset.bytes() >> top.spec.metaslab_shift) as usize;
                nth += 1;
            }
            let found = group.allocate(size, nth, &avoid[..nth], hard, request.txg);
            if follows_turn && !hard {
                rotor.took(index, matches!(found, Found::At { .. }).then_some(request.psize.0));
            }
            match found {
                Found::At { metaslab, offset, dirtied } => {
                    if dirtied {
                        top.mark_dirty(metaslab.place.index, request.txg);
                    }
                    return Copy::Placed(Dva {
                        vdev: group.vdev,
                        asize: Sectors::of(size),
                        offset: Sectors::of(offset),
                        gang: request.gang_header,
                    });
                }
                Found::Load(metaslab) => {
                    to_load.get_or_insert(metaslab);
                }
                Found::NoRoom => {}
            }
        }
        if to_load.is_some() {
            break;
        }
    }
    to_load.map_or(Copy::NoRoom, Copy::Load)
}
