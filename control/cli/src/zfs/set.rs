//! `zfs set` and `zfs inherit`.

use super::scope;
use crate::args;
use crate::args::zfs::{Inherit, Scope, Set};
use crate::session::{Failure, Outcome, Session};
use api::Request;

pub(super) fn run(session: &mut Session<'_>, args: &Set) -> Outcome {
    let count = args.words.iter().take_while(|w| w.contains('=')).count();
    let (settings, datasets) = args.words.split_at(count);
    if settings.is_empty() {
        return Err(Failure::Usage("missing property=value argument(s)".into()));
    }
    if datasets.is_empty() {
        return Err(Failure::Usage("missing dataset name(s)".into()));
    }
    let properties: Vec<(String, String)> =
        settings.iter().map(|s| args::setting(s)).collect::<Result<_, _>>().map_err(Failure::Usage)?;
    session.for_each(datasets, |session, name| {
        session.order(Request::DatasetSet { name: name.into(), properties: properties.clone() })?;
        crate::doctor::on_settings(session, name, &properties);
        Ok(())
    })
}

pub(super) fn inherit(session: &mut Session<'_>, args: &Inherit) -> Outcome {
    let mut names = args.datasets.clone();
    if args.recursive {
        let scope = Scope { recursive: true, ..Scope::default() };
        let found = scope::datasets(session, &scope, &args.datasets, Vec::new(), vec!["createtxg".into()])?;
        names = found.into_iter().map(|d| d.name).filter(|n| !n.contains(['@', '#'])).collect();
    }
    session.for_each(&names, |session, name| {
        session.order(Request::DatasetInherit {
            name: name.into(),
            property: args.property.clone(),
            received: args.received,
        })
    })
}
