//! `zfs create`.

use crate::args::zfs::Create;
use crate::session::{Failure, Outcome, Session};
use api::{NewDataset, NewKind, Reply, Request};

/// A script that goes on would write into the directory above.
pub(super) const NOT_MOUNTED: &str = "filesystem successfully created, but not mounted";

pub(super) fn run(session: &mut Session<'_>, args: &Create) -> Outcome {
    let name = &args.dataset;
    let mut properties = args.properties.clone();
    let kind = match &args.size {
        None => NewKind::Filesystem,
        Some(text) => {
            let size = units::parse_size(text).map_err(|why| {
                Failure::Failed(format!("cannot create '{name}': bad volume size '{text}': {why}"))
            })?;
            if let Some(block_size) = &args.block_size {
                properties.push(("volblocksize".into(), block_size.clone()));
            }
            NewKind::Volume { size, sparse: args.sparse }
        }
    };
    let reply = session.ask(Request::DatasetCreate(NewDataset {
        name: name.clone(),
        kind,
        properties: properties.clone(),
        parents: args.parents,
        dry_run: args.dry_run,
        unmounted: args.unmounted,
    }))?;
    // Where -p found it there already, nothing is said.
    if let Reply::Created { settings, warning } = reply {
        let is_warned = warning.is_some();
        let is_left_unmounted = is_warned && args.size.is_none();
        warning.into_iter().for_each(|line| session.complain(line));
        if !args.dry_run && !args.parsable && !is_warned {
            crate::doctor::on_settings(session, name, &properties);
        }
        if args.verbose || args.parsable {
            session.print(&report(args, &settings))?;
        }
        if is_left_unmounted {
            return Err(Failure::Failed(NOT_MOUNTED.into()));
        }
    }
    Ok(())
}

fn report(args: &Create, computed: &[(String, u64)]) -> String {
    let name = &args.dataset;
    let verb = if args.dry_run { "would create" } else { "create" };
    let ancestors = match (args.parents, args.parsable) {
        (false, _) => String::new(),
        (true, true) => format!("create_ancestors\t{name}\n"),
        (true, false) => format!("{verb} ancestors of {name}\n"),
    };
    let computed = computed.iter().map(|(name, value)| (name.clone(), value.to_string()));
    // The size and the block size come first, what follows from them last.
    let (sizes, after): (Vec<_>, Vec<_>) = computed.partition(|(name, _)| name.starts_with("vol"));
    let settings = sizes.into_iter().chain(args.properties.iter().cloned()).chain(after);
    let lines: String = match args.parsable {
        true => settings.map(|(name, value)| format!("property\t{name}\t{value}\n")).collect(),
        false => settings.map(|(name, value)| format!("\t{name}={value}\n")).collect(),
    };
    match args.parsable {
        true => format!("{ancestors}create\t{name}\n{lines}"),
        false => format!("{ancestors}{verb} {name}\n{lines}"),
    }
}
