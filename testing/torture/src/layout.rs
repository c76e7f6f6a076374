//! The shapes of pools that are tortured.

use std::path::Path;
use units::Result;
use vdev::{Bias, Group, Layout, NewLeaf};

/// A layout, the smallest sector, and log devices beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub layout: Layout,
    pub devices: usize,
    pub ashift: u32,
    /// Two are a mirror.
    pub logs: usize,
}

impl Shape {
    /// Every layout with every sector size, without log devices.
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
            .flat_map(|ashift| layouts.map(|(layout, devices)| Shape { layout, devices, ashift, logs: 0 }))
            .collect()
    }

    /// The names of the devices in a directory, log devices last.
    pub fn paths(&self, dir: &str) -> Vec<String> {
        let data = (0..self.devices).map(|i| format!("{dir}/disk{i}.img"));
        data.chain(self.log_paths(dir)).collect()
    }

    pub fn log_paths(&self, dir: &str) -> Vec<String> {
        (0..self.logs).map(|i| format!("{dir}/log{i}.img")).collect()
    }

    /// The devices, which exist, as `create` wants them.
    pub fn groups(&self, dir: &str) -> Result<Vec<Group>> {
        let mut leaves = self
            .paths(dir)
            .into_iter()
            .map(|path| NewLeaf::look_at(Path::new(&path)))
            .collect::<Result<Vec<_>>>()?;
        let logs = leaves.split_off(self.devices);
        let mut groups = vec![Group { layout: self.layout, bias: Bias::Normal, leaves }];
        if !logs.is_empty() {
            let layout = if logs.len() == 1 { Layout::Stripe } else { Layout::Mirror };
            groups.push(Group { layout, bias: Bias::Log, leaves: logs });
        }
        Ok(groups)
    }
}
