//! `stat`: everything that a file says of itself.

use crate::salvage::xattrs;
use crate::session::Session;
use crate::text;
use units::Result;
use zpl::{FileKind, Node, Time, Who};

pub async fn run(session: &mut Session, places: &[String]) -> Result<()> {
    for place in places {
        let described = match session.find(place, false).await {
            Ok(node) => describe(session, place, &node).await,
            Err(e) => Err(e),
        };
        match described {
            Ok(text) => session.output.print(text.as_bytes())?,
            Err(e) => session.output.complain(format!("cannot read '{place}': {e}")),
        }
    }
    Ok(())
}

async fn describe(session: &mut Session, place: &str, node: &Node) -> Result<String> {
    let stat = node.stat().await?;
    let mut lines = vec![
        ("file", text::path(place.as_bytes())),
        ("kind", kind(stat.kind).to_string()),
        ("mode", format!("{} {:04o}", text::mode(&stat), stat.permissions)),
        ("owner", format!("{}:{}", stat.uid, stat.gid)),
        ("links", stat.links.to_string()),
        ("size", stat.size.to_string()),
        (
            "blocks",
            format!(
                "{} of 512 bytes, in records of {}",
                stat.blocks,
                units::pretty_size(stat.block_size.into())
            ),
        ),
        ("object", format!("{}, generation {}, parent {}", stat.object, stat.generation, stat.parent)),
        ("accessed", time(stat.atime)),
        ("modified", time(stat.mtime)),
        ("changed", time(stat.ctime)),
        ("created", time(stat.crtime)),
    ];
    if matches!(stat.kind, FileKind::CharDevice | FileKind::BlockDevice) {
        lines.push(("device", format!("{}, {}", stat.rdev.0, stat.rdev.1)));
    }
    let flags = flags(stat.flags);
    if !flags.is_empty() {
        lines.push(("flags", flags.join(", ")));
    }
    if stat.project != 0 {
        lines.push(("project", stat.project.to_string()));
    }
    if stat.kind == FileKind::Symlink {
        lines.push(("target", text::path(&node.read_link().await?)));
    }
    let xattrs = xattrs(session, node, place).await;
    let shown = |(name, value): &(Vec<u8>, Vec<u8>)| format!("{}, {} bytes", text::path(name), value.len());
    lines.extend(xattrs.iter().map(|xattr| ("xattr", shown(xattr))));
    match node.acl().await {
        Ok(list) => lines.extend(list.iter().map(|ace| {
            let kind = match ace.kind {
                0 => "allow",
                1 => "deny",
                2 => "audit",
                _ => "alarm",
            };
            ("acl", format!("{}: {kind} {:#x}, flags {:#x}", who(ace.who), ace.rights, ace.flags))
        })),
        Err(e) => session.output.complain(format!("cannot read the ACL of '{place}': {e}")),
    }
    Ok(lines.into_iter().map(|(what, value)| format!("{what:>8}  {value}\n")).collect())
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Regular => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "character device",
        FileKind::BlockDevice => "block device",
    }
}

fn time(time: Time) -> String {
    format!("{}.{:09}", text::date(time.seconds), time.nanos)
}

fn who(who: Who) -> String {
    match who {
        Who::Owner => "owner".into(),
        Who::Group => "group".into(),
        Who::Everyone => "everyone".into(),
        Who::User(id) => format!("user {id}"),
        Who::NamedGroup(id) => format!("group {id}"),
    }
}

fn flags(flags: u64) -> Vec<&'static str> {
    use zpl::flags::{APPENDONLY, IMMUTABLE, NODUMP, NOUNLINK, PROJINHERIT};
    let named = [
        (IMMUTABLE, "immutable"),
        (APPENDONLY, "append only"),
        (NOUNLINK, "no unlink"),
        (NODUMP, "no dump"),
        (PROJINHERIT, "project inherited"),
    ];
    named.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}
