//! `-s PROPERTY` and `-S PROPERTY`: each may be given several times, and it matters in which order.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub property: String,
    pub descending: bool,
}

/// The keys, the most important first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SortKeys(pub Vec<SortKey>);

const ASCENDING: &str = "sort_ascending";
const DESCENDING: &str = "sort_descending";

impl Args for SortKeys {
    fn augment_args(command: Command) -> Command {
        let key = |id: &'static str, short, help| {
            Arg::new(id).short(short).value_name("PROPERTY").action(ArgAction::Append).help(help)
        };
        command.arg(key(ASCENDING, 's', "Sort by a property; may be given several times")).arg(key(
            DESCENDING,
            'S',
            "Sort by a property, the largest first",
        ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SortKeys::augment_args(command)
    }
}

impl FromArgMatches for SortKeys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SortKeys, clap::Error> {
        let mut keys = Vec::new();
        for (id, descending) in [(ASCENDING, false), (DESCENDING, true)] {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            keys.extend(places.zip(values).map(|(at, v)| (at, SortKey { property: v.clone(), descending })));
        }
        keys.sort_by_key(|(at, _)| *at);
        Ok(SortKeys(keys.into_iter().map(|(_, key)| key).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SortKeys::from_arg_matches(matches)?;
        Ok(())
    }
}
