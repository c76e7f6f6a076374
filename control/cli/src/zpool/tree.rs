//! The layout that `zpool create -n` promises: names by level, classes apart.

use crate::args::zpool::Style;
use crate::text::vdev_name::vdev_name;
use api::{Class, Layout, Vdev, VdevGroup};

/// The vdevs that groups would become.
pub(super) fn of_groups(groups: &[VdevGroup]) -> Vec<Vdev> {
    let mut tops = Vec::new();
    for group in groups {
        let leaf = |path: &String| Vdev { kind: "file".into(), path: Some(path.clone()), ..Vdev::default() };
        let leaves: Vec<Vdev> = group.devices.iter().map(leaf).collect();
        let (kind, parity) = match group.layout {
            Layout::Stripe => {
                tops.extend(leaves.into_iter().map(|l| Vdev { class: Some(group.class), ..l }));
                continue;
            }
            Layout::Mirror => ("mirror", 0),
            Layout::Raidz { parity } => ("raidz", parity),
        };
        tops.push(Vdev {
            kind: kind.into(),
            parity,
            class: Some(group.class),
            children: leaves,
            ..Vdev::default()
        });
    }
    (0..).zip(&mut tops).for_each(|(id, top)| top.id = id);
    tops
}

pub(super) fn render(pool: &str, tops: &[Vdev]) -> String {
    let mut text = format!("\t{pool}\n");
    let classes = [
        (Class::Normal, ""),
        (Class::Dedup, "dedup"),
        (Class::Special, "special"),
        (Class::Log, "logs"),
        (Class::Cache, "cache"),
        (Class::Spare, "spares"),
    ];
    for (class, heading) in classes {
        let of_class: Vec<&Vdev> = tops.iter().filter(|t| t.class == Some(class)).collect();
        if !of_class.is_empty() && class != Class::Normal {
            text += &format!("\t{heading}\n");
        }
        of_class.iter().for_each(|top| add(&mut text, top, 2));
    }
    text
}

fn add(text: &mut String, vdev: &Vdev, depth: usize) {
    // Until it exists a group has no number.
    let name = vdev_name(vdev, "", Style::default());
    let name = if vdev.is_leaf() {
        name.as_str()
    } else {
        name.rsplit_once('-').map_or(name.as_str(), |(kind, _)| kind)
    };
    text.push_str(&format!("\t{:depth$}{name}\n", ""));
    vdev.children.iter().for_each(|child| add(text, child, depth + 2));
}
