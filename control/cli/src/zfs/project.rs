//! `zfs project`: whose files are.

use crate::args::zfs::Project;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::visible::visible;
use api::{FileProject, ProjectOf, Reply, Request};
use std::path::{Path, PathBuf};

/// What is done with each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    List,
    /// Whether it is of this project, or of that of the target.
    Check(Option<u64>),
    Clear,
    Set(Option<u64>),
}

/// The number that is none.
const NO_PROJECT: u64 = u32::MAX as u64;

pub(super) fn run(session: &mut Session<'_>, args: &Project) -> Outcome {
    let deed = deed(args)?;
    session.for_each(&args.paths, |session, path| target(session, args, deed, path))
}

fn deed(args: &Project) -> Outcome<Deed> {
    let usage = |why: &str| Err(Failure::Usage(why.into()));
    if [args.clear, args.check, args.inherit].into_iter().filter(|is_given| *is_given).count() > 1 {
        return usage("cannot specify '-C' '-c' '-s' together");
    }
    if args.id.is_some_and(|id| id >= NO_PROJECT) {
        return usage("invalid project ID");
    }
    let deed = match args {
        Project { clear: true, .. } => Deed::Clear,
        Project { check: true, .. } => Deed::Check(args.id),
        Project { inherit: false, id: None, .. } => Deed::List,
        _ => Deed::Set(args.id),
    };
    if args.keep && deed != Deed::Clear {
        return usage("'-k' is only valid together with '-C'");
    }
    if args.zeros && !matches!(deed, Deed::Check(_)) {
        return usage("'-0' is only valid together with '-c'");
    }
    match deed {
        Deed::Clear if args.id.is_some() => usage("'-p' is useless together with '-C'"),
        Deed::Clear if args.directory => usage("'-d' is useless together with '-C'"),
        Deed::Set(_) if args.directory => usage("'-d' is useless for set project ID and/or inherit flag"),
        _ => Ok(deed),
    }
}

fn target(session: &mut Session<'_>, args: &Project, deed: Deed, path: &str) -> Outcome {
    let failed = |e: std::io::Error| {
        let text = e.to_string();
        let why = text.split(" (os error").next().unwrap_or_default();
        Failure::Failed(format!("failed to stat {path}: {why}"))
    };
    let kind = std::fs::symlink_metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let message = "only support project quota on regular file or directory";
        return Err(Failure::Failed(message.into()));
    }
    let is_odd = [(args.directory, 'd'), (args.recursive, 'r')].into_iter().find(|(is_given, _)| *is_given);
    if let Some((_, option)) = is_odd.filter(|_| !kind.is_dir()) {
        return Err(Failure::Failed(format!("'-{option}' option on non-dir target {path}")));
    }
    let deed = match deed {
        Deed::Check(None) => Deed::Check(Some(ask(session, Path::new(path), None, None)?.id)),
        Deed::Set(None) => Deed::Set(Some(ask(session, Path::new(path), None, None)?.id)),
        deed => deed,
    };
    one(session, args, deed, Path::new(path))?;
    let goes_on = args.recursive || matches!(deed, Deed::List | Deed::Check(_));
    if !kind.is_dir() || args.directory || !goes_on {
        return Ok(());
    }
    let mut todo = vec![PathBuf::from(path)];
    while let Some(directory) = todo.pop() {
        let mut entries: Vec<_> =
            std::fs::read_dir(&directory).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().map_err(failed)?;
            // A link is of no project, and what it leads to may be anywhere.
            if kind.is_symlink() {
                continue;
            }
            one(session, args, deed, &entry.path())?;
            if kind.is_dir() && args.recursive {
                todo.push(entry.path());
            }
        }
    }
    Ok(())
}

fn one(session: &mut Session<'_>, args: &Project, deed: Deed, path: &Path) -> Outcome {
    let found = ask(session, path, None, None)?;
    let name = visible(&path.display().to_string());
    match deed {
        Deed::List => {
            let flag = if found.inherits { 'P' } else { '-' };
            session.print(&format!("{:5} {flag} {name}\n", found.id))
        }
        Deed::Check(wanted) => {
            let wanted = wanted.unwrap_or(found.id);
            let mut said = String::new();
            if args.zeros {
                let is_right = found.inherits && found.id == wanted;
                return if is_right { Ok(()) } else { session.print(&format!("{}\0", path.display())) };
            }
            if found.id != wanted {
                said += &format!("{name} - project ID is not set properly ({}/{wanted})\n", found.id);
            }
            if !found.inherits {
                said += &format!("{name} - project inherit flag is not set\n");
            }
            session.print(&said)
        }
        Deed::Clear => {
            let id = (!args.keep && found.id != 0).then_some(0);
            let inherits = found.inherits.then_some(false);
            change(session, path, id, inherits)
        }
        Deed::Set(wanted) => {
            let id = wanted.filter(|wanted| *wanted != found.id);
            let inherits = (args.inherit && !found.inherits).then_some(true);
            change(session, path, id, inherits)
        }
    }
}

fn change(session: &mut Session<'_>, path: &Path, id: Option<u64>, inherits: Option<bool>) -> Outcome {
    if id.is_some() || inherits.is_some() {
        ask(session, path, id, inherits)?;
    }
    Ok(())
}

fn ask(
    session: &mut Session<'_>,
    path: &Path,
    id: Option<u64>,
    inherits: Option<bool>,
) -> Outcome<ProjectOf> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let asked = FileProject { path: whole.display().to_string(), id, inherits };
    Ok(expect_reply!(session.ask(Request::FileProject(asked))?, Reply::ProjectOf(found) => found))
}
