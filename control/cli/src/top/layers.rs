//! The layers of the first page, from the client down, and the statistics by which each is shown.

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub title: &'static str,
    /// What its statistics begin with.
    pub family: &'static str,
}

const fn layer(title: &'static str, family: &'static str) -> Layer {
    Layer { title, family }
}

pub const LAYERS: [Layer; 4] =
    [layer("iSCSI", "iscsi"), layer("NBD", "nbd"), layer("files", "fs"), layer("disks", "io")];

impl Layer {
    /// Operations by latency, and bytes.
    pub fn statistics(self) -> [String; 2] {
        [format!("{}.ops[latency]", self.family), format!("{}.bytes", self.family)]
    }

    /// Of which layer a statistic tells, if it is of operations or bytes.
    pub fn of(statistic: &str) -> Option<Layer> {
        let (family, what) = statistic.split_once('.')?;
        LAYERS.into_iter().find(|layer| layer.family == family && ["ops", "bytes"].contains(&what))
    }
}
