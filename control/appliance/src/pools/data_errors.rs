//! Data errors as people read them: what is lost, by the names of files, or else of datasets and objects.
//!
//! ```text
//!   /export/a/report.odt             a file of a file system that is mounted
//!   tank/fs:/a/report.odt            of one that is not
//!   tank/fs@monday:/a/report.odt     of a snapshot
//!   tank/vol:<0x1> 64K at 1M         of a volume: how much, and where
//!   tank/fs:<0x0>                    an object without a name
//!   <metadata>:<0x3d>                of the pool itself
//! ```
//!
//! The forms are OpenZFS's, except that it does not say where in a volume.

use crate::appliance::Appliance;
use api::DataErrors;
use ondisk::mos::zvol;
use pool::{DataError, Pool};
use std::time::Duration;
use units::ObjsetId;

/// How long a listing may take: of a suspended pool, and of one that works.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_PATIENTLY: Duration = Duration::from_secs(10);
/// Of one volume so many places are told.
const RANGES_MAX: usize = 16;

impl Appliance {
    /// What of the pool is lost, as far as it can be found out now.
    pub(crate) async fn data_errors(&self, pool: &Pool) -> DataErrors {
        let mut errors = DataErrors { problems: pool.problems(), ..DataErrors::default() };
        let count = pool.data_error_count();
        if count == 0 {
            return errors;
        }
        let limit = if pool.suspended().is_some() { LOOK } else { LOOK_PATIENTLY };
        match world::timeout(limit, pool.data_errors()).await {
            Some(found) => {
                errors.names = found.errors.iter().flat_map(|error| self.names_of(error)).collect();
                (errors.blocks, errors.more) = (found.blocks + found.more, found.more);
            }
            None => (errors.blocks, errors.more) = (count, count),
        }
        errors
    }

    fn names_of(&self, error: &DataError) -> Vec<String> {
        let mount = error.dataset.as_deref().and_then(|dataset| self.0.mounts.get(dataset));
        let at = mount.map(|mount| mount.at().display().to_string());
        names_of(error, at.as_deref())
    }
}

/// Lines for one object; `at`: where its file system is mounted.
fn names_of(error: &DataError, at: Option<&str>) -> Vec<String> {
    let object = format!("<0x{:x}>", error.object.0);
    if error.objset == ObjsetId::MOS {
        return vec![format!("<metadata>:{object}")];
    }
    let Some(dataset) = &error.dataset else { return vec![format!("<0x{:x}>:{object}", error.objset.0)] };
    if let Some(path) = &error.path {
        return vec![match at {
            Some("/") => path.clone(),
            Some(at) => format!("{at}{path}"),
            None => format!("{dataset}:{path}"),
        }];
    }
    if error.object != zvol::DATA || error.ranges.is_empty() {
        return vec![format!("{dataset}:{object}")];
    }
    let line = |(from, len): &(u64, u64)| format!("{dataset}:{object} {} at {}", size(*len), size(*from));
    let mut lines: Vec<String> = error.ranges.iter().take(RANGES_MAX).map(line).collect();
    if error.ranges.len() > RANGES_MAX {
        lines.push(format!("{dataset}:{object} and {} more places", error.ranges.len() - RANGES_MAX));
    }
    lines
}

/// Exact, in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let exact = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    exact.map_or_else(|| bytes.to_string(), |(unit, word)| format!("{}{word}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::Access;
    use crate::schedules::tests::{Lab, START, ask, make, project};
    use api::shares::{ItemKind, Shares};
    use api::{Reply, Request};
    use units::ObjectId;
    use world::Buf;

    /// Ten thousand checksum errors were met, and `zpool status` said "No known data errors".
    #[test]
    fn what_a_scrub_found_lost_is_told_of_the_pool() {
        const BLOCK: usize = 16 << 10;
        let lab = Lab::new("lost");
        let disk = lab.disks.get("/sim/a").unwrap();
        lab.run(START, |appliance| async move {
            make(&appliance).await;
            let set = [("volsize", "16M"), ("volblocksize", "16K"), ("compression", "off")];
            let set = set.map(|(n, v)| (n.to_string(), v.to_string()));
            let create =
                Shares::Create { place: project().share("lun"), kind: ItemKind::Lun, set: set.into() };
            ask(&appliance, Request::Shares(create)).await;
            let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
            let mut rng = sim::Rng::new(1);
            let known: Vec<u8> = (0..BLOCK).map(|_| rng.next_u64() as u8).collect();
            let volume = pool.open_volume("tank/p/lun").await.unwrap();
            volume.write(0, Buf::copy_from(&known)).await.unwrap();
            pool.sync().await.unwrap();
            let told = async || match ask(&appliance, Request::Pools { names: vec!["tank".into()] }).await {
                Reply::Pools(mut pools) => pools.remove(0).errors,
                other => panic!("{other:?}"),
            };
            assert_eq!(told().await.blocks, 0);
            let all = disk.peek(0, disk.size() as usize);
            let places: Vec<usize> =
                (0..all.len() - BLOCK).step_by(512).filter(|at| all[*at..*at + BLOCK] == known).collect();
            assert!(!places.is_empty(), "the block is on the disk");
            places.iter().for_each(|at| disk.poke(*at as u64, &[0x5a; 4096]));
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            let errors = told().await;
            assert_eq!(
                (errors.blocks, &errors.names[..]),
                (1, &["tank/p/lun:<0x1> 16K at 0".to_string()][..])
            );
        });
    }

    #[test]
    fn errors_are_named_as_openzfs_names_them_and_in_volumes_by_place() {
        let none = DataError {
            dataset: None,
            objset: ObjsetId(0x36),
            object: ObjectId(0x2a),
            path: None,
            ranges: Vec::new(),
        };
        let fs = DataError { dataset: Some("tank/fs".into()), ..none.clone() };
        let file = DataError { path: Some("/a/b".into()), ..fs.clone() };
        let one = |error: &DataError, at| names_of(error, at).join("|");
        assert_eq!(one(&none, None), "<0x36>:<0x2a>");
        assert_eq!(one(&DataError { objset: ObjsetId::MOS, ..none.clone() }, None), "<metadata>:<0x2a>");
        assert_eq!(one(&fs, Some("/m")), "tank/fs:<0x2a>");
        assert_eq!(one(&file, None), "tank/fs:/a/b");
        assert_eq!(one(&file, Some("/m/fs")), "/m/fs/a/b");
        assert_eq!(one(&file, Some("/")), "/a/b");
        let ranges = vec![(0, 8192), (1 << 20, 65_536), (3 << 20, 512)];
        let volume = DataError { object: zvol::DATA, ranges, ..fs.clone() };
        assert_eq!(
            one(&volume, None),
            "tank/fs:<0x1> 8K at 0|tank/fs:<0x1> 64K at 1M|tank/fs:<0x1> 512 at 3M"
        );
        let torn = DataError { ranges: (0..500).map(|i| (i << 20, 512)).collect(), ..volume };
        assert_eq!(names_of(&torn, None).len(), RANGES_MAX + 1);
    }
}
