//! `zpool import`.

use super::{absolute, importable};
use crate::args::zpool::Import;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use api::{Importable, PoolChoice, PoolImport, Reply, Request};

pub(super) fn run(session: &mut Session<'_>, args: &Import) -> Outcome {
    let properties = properties(args)?;
    if let Some(pool) = &args.pool {
        return import(session, args, choice(pool), &properties);
    }
    let found = search(session, args)?;
    if found.is_empty() {
        session.complain("no pools available to import");
        return if args.all { Ok(()) } else { Err(Failure::Told) };
    }
    if args.all {
        let guids: Vec<String> = found.iter().map(|p| p.guid.to_string()).collect();
        return session.for_each(&guids, |session, guid| import(session, args, choice(guid), &properties));
    }
    let blocks: Vec<String> = found.iter().map(importable::render).collect();
    session.print(&blocks.join("\n"))
}

/// A number is a guid; names begin with a letter.
fn choice(pool: &str) -> PoolChoice {
    pool.parse().map_or_else(|_| PoolChoice::Name(pool.into()), PoolChoice::Guid)
}

fn search(session: &mut Session<'_>, args: &Import) -> Outcome<Vec<Importable>> {
    let request = Request::PoolImportable { search: paths(args), destroyed: args.destroyed };
    Ok(expect_reply!(session.ask(request)?, Reply::Importable(found) => found))
}

fn paths(args: &Import) -> Vec<String> {
    args.search.iter().map(|path| absolute(path)).collect()
}

fn import(
    session: &mut Session<'_>,
    args: &Import,
    pool: PoolChoice,
    properties: &[(String, String)],
) -> Outcome {
    if args.rewind {
        return Err(Failure::Failed("'zpool import -F' is not part of this version of Cenote yet".into()));
    }
    let reply = session.ask(Request::PoolImport(PoolImport {
        pool,
        new_name: args.new_name.clone(),
        temporary: args.temporary,
        search: paths(args),
        destroyed: args.destroyed,
        force: args.force,
        missing_log: args.missing_log,
        no_mount: args.no_mount,
        properties: properties.to_vec(),
    }))?;
    if let Reply::Imported { warning: Some(line), .. } = reply {
        session.complain(line);
    }
    Ok(())
}

/// `-o` takes properties and mount options; the latter have no '=' and mean nothing where nothing is mounted.
fn properties(args: &Import) -> Outcome<Vec<(String, String)>> {
    let settings = args.options.iter().filter(|o| o.contains('='));
    let mut properties: Vec<(String, String)> =
        settings.map(|o| crate::args::setting(o)).collect::<Result<_, _>>().map_err(Failure::Usage)?;
    // `-o ro` is how a mount would be asked to be read-only; here it is the pool.
    if args.options.iter().any(|o| o == "ro") {
        properties.push(("readonly".into(), "on".into()));
    }
    if let Some(root) = &args.root {
        properties.push(("altroot".into(), root.clone()));
    }
    let passing = args.root.is_some() || args.temporary;
    if passing && !properties.iter().any(|(name, _)| name == "cachefile") {
        properties.push(("cachefile".into(), "none".into()));
    }
    Ok(properties)
}
