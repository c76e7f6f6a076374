//! The words that say where: of `cenote bench xattrtest` and `cenote bench mds-survey`.
//!
//! ```text
//!   PATH [--device NAME]... [--drop-caches]
//!   --pool sim|DIR [--xattr dir|sa] [--dnodesize legacy|auto|1k..16k]
//! ```

use super::pool::settings;
use super::{Backing, Mounted, Place, Way};

/// What is read so far.
#[derive(Debug, Default)]
pub struct Where {
    path: Option<String>,
    pool: Option<String>,
    xattr: Option<String>,
    dnode_size: Option<String>,
    devices: Vec<String>,
    drops_caches: bool,
}

impl Where {
    /// Takes a word, and of `more` those that belong to it; `None` when it makes no sense here.
    pub fn take<'a>(&mut self, word: &str, more: &mut impl Iterator<Item = &'a &'a str>) -> Option<()> {
        let mut once = |slot: &mut Option<String>| {
            let value = more.next()?.to_string();
            slot.replace(value).is_none().then_some(())
        };
        match word {
            "--pool" => once(&mut self.pool),
            "--xattr" => once(&mut self.xattr),
            "--dnodesize" => once(&mut self.dnode_size),
            "--device" => {
                let name = more.next().filter(|name| !name.contains(['/', '.']))?;
                self.devices.push(name.to_string());
                Some(())
            }
            "--drop-caches" => {
                self.drops_caches = true;
                Some(())
            }
            other if other.starts_with("--") => None,
            path => self.path.replace(path.into()).is_none().then_some(()),
        }
    }

    /// `ways` are those of the engine when none is asked for.
    pub fn finish(self, ways: Vec<Way>) -> Option<Place> {
        let is_of_path = !self.devices.is_empty() || self.drops_caches;
        let is_of_pool = self.xattr.is_some() || self.dnode_size.is_some();
        match (self.path, self.pool) {
            (Some(path), None) if !is_of_pool => {
                let (devices, drops_caches) = (self.devices, self.drops_caches);
                Some(Place::Path(Mounted { dir: path.into(), devices, drops_caches }))
            }
            (None, Some(pool)) if !is_of_path => {
                let backing = if pool == "sim" { Backing::Simulated } else { Backing::File(pool.into()) };
                let xattr = self.xattr.as_deref().unwrap_or("sa");
                let asked = Way::new(xattr, self.dnode_size.as_deref().unwrap_or("legacy"));
                let is_known = ["dir", "sa"].contains(&xattr) && settings(&asked).is_ok();
                is_known.then(|| Place::Pool(backing, if is_of_pool { vec![asked] } else { ways }))
            }
            _ => None,
        }
    }
}
