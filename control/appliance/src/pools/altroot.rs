//! The alternate root of a pool: mount points are kept without it, and are used and shown below it.
//!
//! ```text
//!   kept in the pool   /srv/a        what is set, inherited and sent, and what the ledger of changes puts back
//!                        │  altroot /mnt: known here alone, until the export
//!                        ▼
//!   mounted, shown     /mnt/srv/a    `none` and `legacy` are no paths, and stay
//! ```

use crate::pools::Open;
use api::{Property, Value};

impl Open {
    /// Where a mount point of this pool is on this machine.
    pub(crate) fn below_altroot(&self, mountpoint: &str) -> String {
        below(self.known.altroot.as_deref().unwrap_or(""), mountpoint)
    }

    /// Properties of a dataset, as they were kept, become those that are shown; with the received values.
    pub(crate) fn show_mountpoint(&self, properties: &mut [Property]) {
        for property in properties.iter_mut().filter(|property| property.name == "mountpoint") {
            for value in [&mut property.value, &mut property.received] {
                if let Some(Value::Text(path)) = value {
                    *path = self.below_altroot(path);
                }
            }
        }
    }
}

fn below(altroot: &str, mountpoint: &str) -> String {
    match altroot.trim_end_matches('/') {
        root if root.is_empty() || !mountpoint.starts_with('/') => mountpoint.into(),
        root if mountpoint == "/" => root.into(),
        root => format!("{root}{mountpoint}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_below_the_altroot_and_words_do_not() {
        for (altroot, mountpoint, shown) in [
            ("", "/tank", "/tank"),
            ("", "/", "/"),
            ("/", "/tank", "/tank"),
            ("/", "/", "/"),
            ("/mnt", "/tank/a", "/mnt/tank/a"),
            ("/mnt/", "/tank", "/mnt/tank"),
            ("/mnt", "/", "/mnt"),
            ("/mnt", "none", "none"),
            ("/mnt", "legacy", "legacy"),
        ] {
            assert_eq!(below(altroot, mountpoint), shown, "{mountpoint} below {altroot:?}");
        }
    }
}
