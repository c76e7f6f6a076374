//! `ls`: the names in directories; with `-l` what each file says of itself; without a place, the pools there are.

use crate::session::Session;
use crate::text;
use crate::walk::{Found, Walk};
use units::Result;
use zpl::FileKind;

pub async fn run(session: &mut Session, places: &[String], long: bool, recursive: bool) -> Result<()> {
    if places.is_empty() {
        for name in session.pools().await? {
            session.output.line(&text::name(name.as_bytes()))?;
        }
    }
    for place in places {
        let node = match session.find(place, true).await {
            Ok(node) => node,
            Err(e) => {
                session.output.complain(format!("cannot list '{place}': {e}"));
                continue;
            }
        };
        let is_directory = node.is_directory();
        let mut walk = Walk::new(place, node, session.opened());
        if !recursive {
            walk = walk.shallow();
        }
        while let Some(found) = walk.next(session).await? {
            session.output.file_done();
            if found.depth == 0 && is_directory {
                continue;
            }
            let name = if found.depth == 0 { place.as_bytes() } else { &found.path[..] };
            let name = text::name(name);
            let line = if long { line(session, &found, name).await } else { name };
            session.output.line(&line)?;
        }
    }
    Ok(())
}

/// `-rw-r--r--  1 0 0  4194304 2026-11-20 22:37:36 tree/data`
async fn line(session: &mut Session, found: &Found, name: Vec<u8>) -> Vec<u8> {
    let stat = &found.stat;
    let size = match stat.kind {
        FileKind::CharDevice | FileKind::BlockDevice => format!("{}, {}", stat.rdev.0, stat.rdev.1),
        _ => stat.size.to_string(),
    };
    let mut line = format!(
        "{} {:>3} {:>5} {:>5} {size:>12} {} ",
        text::mode(stat),
        stat.links,
        stat.uid,
        stat.gid,
        text::date(stat.mtime.seconds)
    )
    .into_bytes();
    line.extend(&name);
    if stat.kind == FileKind::Symlink {
        match session.read(&found.node, |node| async move { node.read_link().await }).await {
            Ok(target) => {
                line.extend(b" -> ");
                line.extend(text::name(&target));
            }
            Err(e) => session.output.complain(format!("cannot read '{}': {e}", text::path(&found.path))),
        }
    }
    line
}
