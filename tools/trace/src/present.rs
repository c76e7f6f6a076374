//! The settings of a dataset and of its pool, as a trace keeps them: from what the appliance says.

use crate::header::Present;
use crate::layout::{Kind, Layout};
use api::{Class, Dataset, DatasetKind, Pool, Value, Vdev};

/// What of a dataset's properties a request's way may depend on.
pub const PROPERTIES: [&str; 10] = [
    "compression",
    "checksum",
    "copies",
    "dedup",
    "logbias",
    "prefetch",
    "primarycache",
    "redundant_metadata",
    "secondarycache",
    "sync",
];

/// `None` for what has no blocks of its own, or does not say what they are.
pub fn present(dataset: &Dataset, pool: &Pool) -> Option<Present> {
    let number = |name: &str| dataset.property(name)?.value.as_ref()?.number();
    let is_volume = dataset.kind == DatasetKind::Volume;
    let block = number(if is_volume { "volblocksize" } else { "recordsize" })?;
    let properties = PROPERTIES.iter().filter_map(|name| {
        let value = match dataset.property(name)?.value.as_ref()? {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        };
        Some((name.to_string(), value))
    });
    let root = pool.vdevs.as_ref();
    let data: Vec<&Vdev> =
        root.into_iter().flat_map(|root| &root.children).filter(|vdev| holds_data(vdev)).collect();
    let is_log = |vdev: &Vdev| vdev.class == Some(Class::Log);
    Some(Present {
        is_volume,
        size: if is_volume { number("volsize")? } else { 0 },
        block,
        referenced: number("referenced").unwrap_or(0),
        ratio: number("compressratio").unwrap_or(100).max(100) as f64 / 100.0,
        properties: properties.collect(),
        layout: layout(&data),
        ashift: data.iter().filter_map(|vdev| vdev.ashift).max().unwrap_or(12),
        allocated: root.and_then(|root| root.space).map_or(0, |(_, taken)| taken),
        has_log: root.is_some_and(|root| root.children.iter().any(is_log)),
    })
}

fn holds_data(vdev: &Vdev) -> bool {
    matches!(vdev.class, None | Some(Class::Normal))
        && !["hole", "indirect", "missing"].contains(&vdev.kind.as_str())
}

/// `None` where groups differ, or are of a kind that has no word here.
fn layout(data: &[&Vdev]) -> Option<Layout> {
    let kinds: Option<Vec<(Kind, usize)>> = data
        .iter()
        .map(|vdev| match vdev.kind.as_str() {
            "mirror" => Some((Kind::Mirror, vdev.children.len())),
            "raidz" => Some((Kind::Raidz(vdev.parity), vdev.children.len())),
            _ if vdev.is_leaf() => Some((Kind::Stripe, 1)),
            _ => None,
        })
        .collect();
    let kinds = kinds?;
    let (kind, width) = *kinds.first()?;
    let layout = Layout { kind, width, groups: kinds.len() };
    // What is parsed again is what is written.
    let is_known = Layout::parse(&layout.to_string()).is_ok_and(|parsed| parsed == layout);
    (is_known && kinds.iter().all(|other| *other == (kind, width))).then_some(layout)
}

/// The devices' counters: what a pool has read and written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceWork {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
}

impl DeviceWork {
    /// Of all devices of a pool; merged operations count once.
    pub fn of(pool: &Pool) -> DeviceWork {
        let all = pool.vdevs.iter().flat_map(Vdev::walk).filter(|vdev| vdev.is_leaf());
        all.fold(DeviceWork::default(), |sum, vdev| DeviceWork {
            reads: sum.reads + vdev.stats.read.ops,
            read_bytes: sum.read_bytes + vdev.stats.read.bytes,
            writes: sum.writes + vdev.stats.write.ops,
            written_bytes: sum.written_bytes + vdev.stats.write.bytes,
            flushes: sum.flushes + vdev.stats.flush.sent,
        })
    }

    /// What came since.
    pub fn since(&self, before: &DeviceWork) -> DeviceWork {
        DeviceWork {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            flushes: self.flushes.saturating_sub(before.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vdev(kind: &str, class: Class, children: usize) -> Vdev {
        let children = (0..children).map(|_| Vdev { kind: "file".into(), ..Vdev::default() }).collect();
        Vdev {
            kind: kind.into(),
            parity: 2,
            class: Some(class),
            ashift: Some(12),
            children,
            ..Vdev::default()
        }
    }

    #[test]
    fn a_pool_of_equal_groups_has_a_layout() {
        let (mirror, log) = (vdev("mirror", Class::Normal, 2), vdev("file", Class::Log, 0));
        let (raidz, disk) = (vdev("raidz", Class::Normal, 6), vdev("disk", Class::Normal, 0));
        let word = |all: &[&Vdev]| {
            let data: Vec<&Vdev> = all.iter().copied().filter(|vdev| holds_data(vdev)).collect();
            layout(&data).map(|layout| layout.to_string())
        };
        assert_eq!(word(&[&mirror, &mirror, &log]).as_deref(), Some("mirror:2x2"));
        assert_eq!(word(&[&raidz]).as_deref(), Some("raidz2:6"));
        assert_eq!(word(&[&disk, &disk]).as_deref(), Some("stripe:2"));
        assert_eq!(word(&[&disk, &mirror]), None);
        assert_eq!(word(&[]), None);
    }
}
