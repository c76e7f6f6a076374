//! The shapes of pools that are tortured.

use std::path::Path;
use units::Result;
use vdev::{Bias, Group, Layout, NewLeaf};
use world::OpenMode;

/// A layout and the smallest sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub layout: Layout,
    pub devices: usize,
    pub ashift: u32,
}

impl Shape {
    pub fn all() -> Vec<Shape> {
        let layouts = [
            (Layout::Stripe, 1),
            (Layout::Mirror, 2),
            (Layout::Raidz { parity: 1 }, 3),
            (Layout::Raidz { parity: 2 }, 4),
            (Layout::Raidz { parity: 3 }, 5),
        ];
        [9, 12]
            .into_iter()
            .flat_map(|ashift| layouts.map(|(layout, devices)| Shape { layout, devices, ashift }))
            .collect()
    }

    /// The names of the devices in a directory.
    pub fn paths(&self, dir: &str) -> Vec<String> {
        (0..self.devices).map(|i| format!("{dir}/disk{i}.img")).collect()
    }

    /// The devices, which exist, as `create` wants them.
    pub fn groups(&self, dir: &str) -> Result<Vec<Group>> {
        let leaf = |path: String| {
            let disk = world::open(Path::new(&path), OpenMode::ReadOnly)
                .map_err(|e| units::Error::new(units::Kind::Io, "open").at(&path).because(e))?;
            Ok(NewLeaf { geometry: disk.geometry(), path })
        };
        let leaves = self.paths(dir).into_iter().map(leaf).collect::<Result<Vec<_>>>()?;
        Ok(vec![Group { layout: self.layout, bias: Bias::Normal, leaves }])
    }
}
