//! `zpool import`.

use super::{absolute, cache_file, importable};
use crate::args::zpool::Import;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::date;
use api::{Importable, PoolChoice, PoolImport, Reply, Request, Rewind, WentBack};

/// What `-l` comes to.
pub(super) const NO_KEYS: &str = "cannot load keys (-l): encrypted datasets are not part of this version of Cenote yet; without -l all else is imported";

pub(super) fn run(session: &mut Session<'_>, args: &Import) -> Outcome {
    if args.load_keys {
        return Err(Failure::Failed(NO_KEYS.into()));
    }
    let properties = properties(args)?;
    let cached = args.cache_file.as_deref().map(cache_file::read).transpose()?;
    let places = match &cached {
        Some(cached) => cached.paths.clone(),
        None => paths(args),
    };
    if let Some(pool) = &args.pool {
        return import(session, args, (choice(pool), &places), &properties);
    }
    let mut found = search(session, args, &places)?;
    if let Some(cached) = &cached {
        found.retain(|pool| cached.guids.contains(&pool.guid));
    }
    if found.is_empty() {
        session.complain("no pools available to import");
        return Ok(());
    }
    if args.all {
        let guids: Vec<String> = found.iter().map(|p| p.guid.to_string()).collect();
        return session
            .for_each(&guids, |session, guid| import(session, args, (choice(guid), &places), &properties));
    }
    let blocks: Vec<String> = found.iter().map(importable::render).collect();
    session.show(&blocks.join("\n"))
}

/// A number is a guid; names begin with a letter.
fn choice(pool: &str) -> PoolChoice {
    pool.parse().map_or_else(|_| PoolChoice::Name(pool.into()), PoolChoice::Guid)
}

fn search(session: &mut Session<'_>, args: &Import, places: &[String]) -> Outcome<Vec<Importable>> {
    let request = Request::PoolImportable { search: places.to_vec(), destroyed: args.destroyed };
    Ok(expect_reply!(session.ask(request)?, Reply::Importable(found) => found))
}

fn paths(args: &Import) -> Vec<String> {
    args.search.iter().map(|path| absolute(path)).collect()
}

fn import(
    session: &mut Session<'_>,
    args: &Import,
    (pool, places): (PoolChoice, &[String]),
    properties: &[(String, String)],
) -> Outcome {
    let goes_back = args.rewind || args.txg.is_some();
    let rewind = Rewind { dry_run: args.dry_run, extreme: args.extreme, txg: args.txg };
    let reply = session.ask(Request::PoolImport(PoolImport {
        pool,
        new_name: args.new_name.clone(),
        temporary: args.temporary,
        search: places.to_vec(),
        destroyed: args.destroyed,
        force: args.force,
        missing_log: args.missing_log,
        no_mount: args.no_mount,
        rewind: goes_back.then_some(rewind),
        properties: properties.to_vec(),
    }))?;
    match reply {
        Reply::Imported { name, warning, back } => {
            warning.into_iter().for_each(|line| session.complain(line));
            back.map_or(Ok(()), |back| session.print(&went_back(&name, &back)))
        }
        Reply::WouldGoBack(None) => {
            session.print("Its newest state can be read: nothing would be left out.\n")
        }
        Reply::WouldGoBack(Some(back)) => session.print(&format!(
            "Would be able to read it as it was at {} (txg {}), with -o readonly=on.\nWould leave out the last {} seconds.\n",
            date::ctime(back.time),
            back.txg,
            back.discarded
        )),
        _ => Ok(()),
    }
}

fn went_back(name: &str, back: &WentBack) -> String {
    format!(
        "Pool {name} is read as it was at {} (txg {}).\nThe last {} seconds are left out.\n",
        date::ctime(back.time),
        back.txg,
        back.discarded
    )
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
