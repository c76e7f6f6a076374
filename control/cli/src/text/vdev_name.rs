//! What a vdev is called in listings.

use super::visible::visible;
use crate::args::zpool::Style;
use api::Vdev;
use std::path::Path;

/// `mirror-0`, `raidz2-1`, `sda`, `/disks/a.img`; the root has the pool's name.
pub fn vdev_name(vdev: &Vdev, pool: &str, style: Style) -> String {
    if vdev.kind == "root" {
        return pool.into();
    }
    if style.guids {
        return vdev.guid.to_string();
    }
    match (&vdev.path, vdev.kind.as_str()) {
        (Some(path), kind) => leaf_name(path, kind, style),
        (None, "disk" | "file") => vdev.guid.to_string(),
        (None, kind) if vdev.parity > 0 => format!("{kind}{}-{}", vdev.parity, vdev.id),
        (None, kind) => format!("{kind}-{}", vdev.id),
    }
}

/// As a person is shown it: paths are of labels, which another machine may have written.
pub fn shown_name(vdev: &Vdev, pool: &str, style: Style) -> String {
    visible(&vdev_name(vdev, pool, style))
}

/// Disks go by their last name, files by their whole path.
fn leaf_name(path: &str, kind: &str, style: Style) -> String {
    let real = style.links.then(|| std::fs::canonicalize(path).ok()).flatten();
    let path = real.as_deref().unwrap_or(Path::new(path));
    let short = path.file_name().filter(|_| kind == "disk" && !style.paths);
    short.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The width of the names of `vdev` and what is below it, each level two further to the right.
pub fn name_width(vdev: &Vdev, pool: &str, style: Style, depth: usize) -> usize {
    let own = shown_name(vdev, pool, style).chars().count() + depth;
    let below = vdev.children.iter().map(|c| name_width(c, pool, style, depth + 2));
    below.fold(own, usize::max)
}
