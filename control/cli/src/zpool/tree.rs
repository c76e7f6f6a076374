//! The layout that `zpool create -n` and `zpool add -n` promise: names by level, classes apart.

use super::list_vdevs::is_of;
use crate::args::zpool::Style;
use crate::text::vdev_name::vdev_name;
use crate::text::visible::visible;
use api::{Class, Layout, Vdev, VdevGroup};

/// The vdevs that groups would become.
pub(super) fn of_groups(groups: &[VdevGroup]) -> Vec<Vdev> {
    let mut tops = Vec::new();
    for group in groups {
        let leaf = |path: &String| Vdev { kind: "file".into(), path: Some(path.clone()), ..Vdev::default() };
        let leaves: Vec<Vdev> = group.devices.iter().map(leaf).collect();
        if group.layout == Layout::Stripe {
            tops.extend(leaves.into_iter().map(|l| Vdev { class: Some(group.class), ..l }));
            continue;
        }
        tops.push(Vdev {
            kind: group.layout.word().into(),
            parity: group.layout.parity(),
            class: Some(group.class),
            children: leaves,
            ..Vdev::default()
        });
    }
    (0..).zip(&mut tops).for_each(|(id, top)| top.id = id);
    tops
}

const CLASSES: [(Class, &str); 6] = [
    (Class::Normal, ""),
    (Class::Dedup, "dedup"),
    (Class::Special, "special"),
    (Class::Log, "logs"),
    (Class::Cache, "cache"),
    (Class::Spare, "spares"),
];

pub(super) fn render(pool: &str, tops: &[Vdev]) -> String {
    render_grown(pool, None, tops, Style::default())
}

/// The vdevs that a pool has, each class followed by those that it would get.
pub(super) fn render_grown(pool: &str, root: Option<&Vdev>, new: &[Vdev], style: Style) -> String {
    let mut text = format!("\t{pool}\n");
    for (class, heading) in CLASSES {
        let own: Vec<&Vdev> = root.iter().flat_map(|r| &r.children).filter(|t| is_of(t, class)).collect();
        let new: Vec<&Vdev> = new.iter().filter(|t| is_of(t, class)).collect();
        if class != Class::Normal && own.len() + new.len() > 0 {
            text += &format!("\t{heading}\n");
        }
        // Only vdevs for data are told apart by their numbers there.
        own.iter().for_each(|top| add(&mut text, top, style, class == Class::Normal, 2));
        new.iter().for_each(|top| add(&mut text, top, style, false, 2));
    }
    text
}

fn add(text: &mut String, vdev: &Vdev, style: Style, numbered: bool, depth: usize) {
    // Until it exists a group has no number.
    let name = vdev_name(vdev, "", style);
    let name = if vdev.is_leaf() || numbered {
        name.as_str()
    } else {
        name.rsplit_once('-').map_or(name.as_str(), |(kind, _)| kind)
    };
    text.push_str(&format!("\t{:depth$}{}\n", "", visible(name)));
    vdev.children.iter().for_each(|child| add(text, child, style, numbered, depth + 2));
}
