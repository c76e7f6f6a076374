//! What is asked of projects, file systems and LUNs is declared; what a share is, its path says and a request does not.
//!
//! The kind of a share is looked up once, and known until a share goes or is called otherwise.

use super::Remote;
use api::shares::{ItemKind, Place, Shares};
use api::{ApiError, ErrorKind, Reply, Request, Result};

const KINDS: [ItemKind; 2] = [ItemKind::Filesystem, ItemKind::Lun];

impl Remote {
    pub(super) fn shares(&mut self, asked: Shares) -> Result<Reply> {
        match asked {
            Shares::Shares { pool, project, kind: None } => {
                self.of_both_kinds(pool.as_ref(), project.as_ref())
            }
            Shares::Get { place } if place.share.is_some() => {
                // It may have become another since.
                let likely = self.kinds.remove(&place);
                self.look_up(&place, likely)
            }
            asked => {
                let kind = match asked.about() {
                    Some(place) if place.share.is_some() => Some(self.kind(place)?),
                    _ => None,
                };
                if matches!(&asked, Shares::Change { name: Some(_), .. } | Shares::Destroy { .. }) {
                    self.kinds.clear();
                }
                self.declared_of(&Request::Shares(asked), kind)
            }
        }
    }

    fn of_both_kinds(&mut self, pool: Option<&String>, project: Option<&String>) -> Result<Reply> {
        let mut items = Vec::new();
        for kind in KINDS {
            let (pool, project) = (pool.cloned(), project.cloned());
            let asked = Shares::Shares { pool, project, kind: Some(kind) };
            if let Reply::Items(found) = self.declared(&Request::Shares(asked))? {
                self.kinds.extend(found.iter().map(|item| (item.place.clone(), kind)));
                items.extend(found);
            }
        }
        items.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(Reply::Items(items))
    }

    fn kind(&mut self, place: &Place) -> Result<ItemKind> {
        if !self.kinds.contains_key(place) {
            self.look_up(place, None)?;
        }
        self.kinds.get(place).copied().ok_or_else(|| not_there(place))
    }

    /// A share, first as what it likely is.
    fn look_up(&mut self, place: &Place, likely: Option<ItemKind>) -> Result<Reply> {
        let mut kinds = KINDS;
        kinds.sort_by_key(|kind| Some(*kind) != likely);
        let request = Request::Shares(Shares::Get { place: place.clone() });
        for kind in kinds {
            match self.declared_of(&request, Some(kind)) {
                Err(e) if e.kind == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
                Ok(found) => {
                    self.kinds.insert(place.clone(), kind);
                    return Ok(found);
                }
            }
        }
        Err(not_there(place))
    }
}

fn not_there(place: &Place) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("cannot open '{place}': there is no such share"))
}
