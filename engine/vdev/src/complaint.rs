//! What is said of devices that cannot be used: which, why, and what helps, one line each.
//!
//! ```text
//!   /disks/b.img cannot be opened (No such file or directory): attach it, or say where it is with 'zpool import -d'
//!   └─ which     └─ why                                        └─ what helps
//! ```

use crate::{Aux, Health, State, VdevStatus};
use std::fmt;

/// Why a pool cannot be opened: one line for each device that it would need.
#[derive(Clone, Debug, Default)]
pub struct Lacking {
    pub lines: Vec<String>,
    /// The whole tree, as far as it is known.
    pub tree: Option<VdevStatus>,
}

impl From<VdevStatus> for Lacking {
    fn from(tree: VdevStatus) -> Lacking {
        Lacking { lines: tree.complaints(), tree: Some(tree) }
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too few of its devices can be used")?;
        self.lines.iter().try_for_each(|line| write!(f, "\n\t{line}"))
    }
}

impl std::error::Error for Lacking {}

impl VdevStatus {
    /// One line for each device at and below this one that cannot be used.
    pub fn complaints(&self) -> Vec<String> {
        if !self.children.is_empty() {
            return self.children.iter().flat_map(VdevStatus::complaints).collect();
        }
        if self.health.state.is_usable() || self.vdev_type == crate::VdevType::Root {
            return Vec::new();
        }
        let name = self.path.as_deref().unwrap_or(&self.name);
        vec![complaint(name, self.health, self.detail.as_deref())]
    }
}

/// `detail` is what the operating system said, if it was asked.
pub fn complaint(device: &str, health: Health, detail: Option<&str>) -> String {
    let (what, help) = match (health.state, health.aux) {
        (State::Offline, _) => ("was taken offline", "bring it back with 'zpool online'"),
        (State::Removed, _) => ("was removed", "attach it again"),
        (_, Aux::OpenFailed) => {
            let why = detail.map_or_else(String::new, |d| format!(" ({})", without_code(d)));
            let help = "attach it, or say where it is with 'zpool import -d'";
            return format!("{device} cannot be opened{why}: {help}");
        }
        (_, Aux::WentOn) => {
            let why = detail.unwrap_or("it was used without the pool");
            let help = "copy that from an import of it alone, then have it taken as a new device by 'zpool detach' and \
                        'zpool attach -f', or 'zpool replace -f'";
            return format!("{device} is not taken back: {why}: {help}");
        }
        (_, _) if detail.is_some() => {
            return format!("{device} cannot be used: {}", detail.unwrap_or_default());
        }
        (_, Aux::BadLabel | Aux::CorruptData) => (
            "carries no valid label of this pool",
            "it was overwritten, cut short, or another device took its place; say where the right one is with 'zpool import -d'",
        ),
        (_, Aux::TooSmall) => ("is too small to be of a pool", "give it its former size back"),
        (_, Aux::BadAshift) => {
            ("has larger sectors than the pool was made for", "copy it to a device with smaller ones")
        }
        (_, Aux::BadGuidSum) => ("is part of the pool, and nobody knows where it was", "attach it"),
        (_, Aux::ErrorsExceeded) => (
            "was given up after too many errors",
            "see what is wrong with it, then mark it repaired with 'zpool clear'",
        ),
        (_, Aux::External) => ("was faulted by an administrator", "take that back with 'zpool clear'"),
        (_, aux) => return format!("{device} cannot be used: {}", aux.phrase()),
    };
    format!("{device} {what}: {help}")
}

/// `No such file or directory (os error 2)` without the number.
fn without_code(detail: &str) -> &str {
    detail.split(" (os error").next().unwrap_or(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_is_named_with_the_reason_and_what_helps() {
        let say = |state, aux, detail| complaint("/d/a", Health::new(state, aux), detail);
        assert_eq!(
            say(State::CannotOpen, Aux::OpenFailed, Some("Permission denied (os error 13)")),
            "/d/a cannot be opened (Permission denied): attach it, or say where it is with 'zpool import -d'"
        );
        assert_eq!(
            say(State::Offline, Aux::None, None),
            "/d/a was taken offline: bring it back with 'zpool online'"
        );
        let lines = vec!["/d/a was removed: attach it again".into(), "b".into()];
        let lacking = Lacking { lines, tree: None };
        assert_eq!(
            lacking.to_string(),
            "too few of its devices can be used\n\t/d/a was removed: attach it again\n\tb"
        );
    }
}
