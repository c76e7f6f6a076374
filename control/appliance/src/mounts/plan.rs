//! Where and how a dataset is mounted.
//!
//! ```text
//!   mountpoint   /a/path ──▶ below the pool's altroot          none, legacy ──▶ not by us
//!   canmount     on: by itself    noauto: when asked for       off: never
//!   readonly exec atime overlay snapdir acltype ─┐
//!   setuid devices, where they are set, not by   ├─▶ fuse::Options, then the temporary ones of the command
//!   default: see docs/rfd/0043                   ┘
//! ```

use super::state::Placed;
use super::temporary::Temporary;
use crate::error_text::{About, cannot};
use crate::pools::Open;
use api::{ApiError, ErrorKind, Result};
use dsl::props::{Prop, PropName, Source, Types, Value, show_value};
use fuse::{Options, Snapshots};
use std::path::PathBuf;
use units::Error;

/// What the properties say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub at: PathBuf,
    pub options: Options,
    /// It is mounted without being asked for by name.
    pub by_itself: bool,
    pub record_size: u32,
    /// What of the options is not by the properties.
    pub temporary: Temporary,
}

/// Where and how, or why not.
pub(super) async fn plan(open: &Open, dataset: &str) -> Result<Plan> {
    let failed = |e: Error| cannot(About::Dataset, &format!("open '{dataset}'"), &e);
    let refuse =
        |why: &str| Err(ApiError::new(ErrorKind::Invalid, format!("cannot mount '{dataset}': {why}")));
    let _reading = open.pool.reading().await;
    let stats = open.pool.dsl().stats(dataset).await.map_err(failed)?;
    if stats.types() != Types::FILESYSTEM {
        return refuse("it is no file system");
    }
    let value = async |prop: Prop| {
        let shown = stats.get(&PropName::Native(prop)).await.map_err(failed)?;
        Ok::<_, ApiError>(shown.map_or(Value::Number(0), |(value, _)| value))
    };
    let word = async |prop: Prop| Ok::<_, ApiError>(show_value(prop.row(), &value(prop).await?, true));
    let is_on = async |prop: Prop| Ok::<_, ApiError>(word(prop).await? == "on");
    // What gives rights away is on only where an administrator set it, not by default or because a stream brought it.
    let is_asked_for = async |prop: Prop| {
        let name = PropName::Native(prop);
        let source = stats.get(&name).await.map_err(failed)?.map(|(_, source)| source);
        let source = match source {
            Some(Source::Inherited(from)) => {
                let above = open.pool.dsl().stats(&from).await.map_err(failed)?;
                above.get(&name).await.map_err(failed)?.map(|(_, source)| source)
            }
            source => source,
        };
        Ok::<_, ApiError>(source == Some(Source::Local) && is_on(prop).await?)
    };
    let mountpoint = match value(Prop::MountPoint).await? {
        Value::Text(path) => path,
        Value::Number(_) => return refuse("no mountpoint set"),
    };
    match mountpoint.as_str() {
        "none" => return refuse("no mountpoint set"),
        "legacy" => return refuse("legacy mountpoint; give it a path to have it mounted"),
        _ => {}
    }
    let can_mount = word(Prop::CanMount).await?;
    if can_mount == "off" {
        return refuse("'canmount' property is set to 'off'");
    }
    let options = Options {
        source: dataset.into(),
        read_only: is_on(Prop::ReadOnly).await? || open.pool.is_read_only(),
        exec: is_on(Prop::Exec).await?,
        setuid: is_asked_for(Prop::Setuid).await?,
        devices: is_asked_for(Prop::Devices).await?,
        atime: is_on(Prop::Atime).await?,
        overlay: is_on(Prop::Overlay).await?,
        snapshots: match word(Prop::SnapDir).await?.as_str() {
            "visible" => Snapshots::Visible,
            "disabled" => Snapshots::Disabled,
            _ => Snapshots::Hidden,
        },
        posix_acl: word(Prop::AclType).await? == "posix",
        // The switch of it is the kernel's.
        over_io_uring: true,
    };
    let record_size =
        value(Prop::RecordSize).await?.number().and_then(|n| u32::try_from(n).ok().filter(|n| *n > 0));
    Ok(Plan {
        at: open.below_altroot(&mountpoint).into(),
        options,
        by_itself: can_mount == "on",
        record_size: record_size.unwrap_or(128 << 10),
        temporary: Temporary::default(),
    })
}

impl Plan {
    /// To be mounted again as it is, whatever is in the directory.
    pub fn as_is(mount: &Placed) -> Plan {
        Plan {
            at: mount.at().into(),
            options: Options { overlay: true, ..mount.options() },
            by_itself: false,
            record_size: mount.record_size,
            temporary: mount.temporary(),
        }
    }

    /// With what the command asks for beside the properties.
    pub fn with(mut self, dataset: &str, temporary: Temporary) -> Result<Plan> {
        self.options.overlay |= temporary.overlay;
        for option in &temporary.options {
            match option.as_str() {
                "ro" => self.options.read_only = true,
                "rw" => self.options.read_only = false,
                "exec" | "noexec" => self.options.exec = option == "exec",
                "suid" | "setuid" => self.options.setuid = true,
                "nosuid" | "nosetuid" => self.options.setuid = false,
                "dev" | "devices" => self.options.devices = true,
                "nodev" | "nodevices" => self.options.devices = false,
                "atime" | "noatime" => self.options.atime = option == "atime",
                _ => {
                    let message = format!("cannot mount '{dataset}': no such mount option: {option}");
                    return Err(ApiError::new(ErrorKind::Invalid, message));
                }
            }
        }
        self.temporary = temporary;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_win() {
        let plan = || Plan {
            at: "/a".into(),
            options: Options::new("tank/a"),
            by_itself: true,
            record_size: 4096,
            temporary: Temporary::default(),
        };
        let options = |words: &str| {
            let words: Vec<String> = words.split(',').map(String::from).collect();
            plan().with("tank/a", Temporary { overlay: false, options: words }).map(|plan| plan.options)
        };
        let ro = options("ro,noexec,nosuid,nodev,noatime").unwrap();
        assert!(ro.read_only && !ro.exec && !ro.setuid && !ro.devices && !ro.atime);
        let given = options("suid,dev").unwrap();
        assert!(given.setuid && given.devices);
        assert_eq!(options("ro,rw").unwrap(), Options::new("tank/a"));
        let refused = options("ro,quick").unwrap_err();
        assert_eq!(refused.message, "cannot mount 'tank/a': no such mount option: quick");
    }
}
