//! `zfs create`.

use crate::args::zfs::Create;
use crate::session::{Failure, Outcome, Session};
use api::{NewDataset, NewKind, Request};

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
    session.order(Request::DatasetCreate(NewDataset {
        name: name.clone(),
        kind,
        properties: properties.clone(),
        parents: args.parents,
        dry_run: args.dry_run,
    }))?;
    if args.verbose {
        session.print(&report(args, &properties))?;
    }
    Ok(())
}

fn report(args: &Create, properties: &[(String, String)]) -> String {
    let name = &args.dataset;
    if args.parsable {
        let settings = properties.iter().map(|(name, value)| format!("property\t{name}\t{value}\n"));
        return format!("create\t{name}\n{}", settings.collect::<String>());
    }
    let verb = if args.dry_run { "would create" } else { "create" };
    let settings = properties.iter().map(|(name, value)| format!("\t{name}={value}\n"));
    format!("{verb} {name}\n{}", settings.collect::<String>())
}
