//! Schedules of snapshots over HTTP: those of a project, a file system and a LUN are the same requests.

use super::shares::{HREF, NAME};
use crate::automatic::{Automatic, AutomaticDeed};
use crate::http::{
    Answer, Declared, Face, Field, Kind, Need, Shape, Shaped, Wrong, date, may, must, seconds,
};
use crate::shares::{ItemKind, Place, Shares};
use crate::{Reply, Request, declared};

const FREQUENCIES: &str = "halfhour, hour, day, week or month";
const DAY: Field =
    may("day", Kind::Word, "Of a week its name, of a month its number; the last of one that is shorter");
const HOUR: Field = may("hour", Kind::Word, "0 to 23, UTC; of a day, a week or a month");
const MINUTE: Field = may("minute", Kind::Word, "0 to 59");
const KEEP: Field = may("keep", Kind::Word, "So many of its snapshots stay; 0: all");

/// A schedule; the server adds where it is.
pub static AUTOMATIC: Shaped<Automatic> = Shaped {
    shape: Shape::new(
        "automatic",
        &[
            HREF,
            NAME,
            must("frequency", Kind::Text, FREQUENCIES),
            DAY,
            HOUR,
            MINUTE,
            KEEP,
            may("last", Kind::Text, "For which moment it last took one"),
            may("problem", Kind::Text, "Why the one that is due has not been taken"),
        ],
    ),
    tell: |automatic| {
        let when = &automatic.when;
        let told = [
            ("name", Some(automatic.name())),
            ("frequency", Some(when.frequency.word().to_string())),
            ("day", when.day_word()),
            ("hour", when.hour().map(|hour| hour.to_string())),
            ("minute", Some(when.minute.to_string())),
            ("keep", Some(automatic.keep.to_string())),
            ("last", automatic.last.map(date)),
            ("problem", automatic.problem.clone()),
        ];
        told.into_iter().filter_map(|(name, text)| Some((name.to_string(), text?.into()))).collect()
    },
    take: |args| {
        let name = args.text("name").unwrap_or_default();
        let id = Automatic::id_of(name);
        let mut when = args.words(&AUTOMATIC.shape, &[])?;
        when.retain(|(name, _)| WHEN.contains(&name.as_str()));
        let taken = Automatic::default().with(&when, true).map_err(Wrong::Invalid)?;
        Ok(Automatic {
            id: id.ok_or_else(|| Wrong::Invalid(format!("'{name}' is no name of a schedule")))?,
            last: args.text("last").and_then(seconds),
            problem: args.text("problem").map(String::from),
            ..taken
        })
    },
};

/// What says when a schedule takes snapshots, and how many stay.
const WHEN: [&str; 5] = ["frequency", "day", "hour", "minute", "keep"];

pub static NEW_AUTOMATIC: Shape =
    Shape::new("new_automatic", &[must("frequency", Kind::Text, FREQUENCIES), DAY, HOUR, MINUTE, KEEP]);
pub static AUTOMATIC_CHANGES: Shape =
    Shape::new("automatic_changes", &[may("frequency", Kind::Text, FREQUENCIES), DAY, HOUR, MINUTE, KEEP]);

/// The name of a schedule in a path is its number in a request.
struct Name;

impl Name {
    fn sent(id: &u32) -> String {
        Automatic { id: *id, ..Automatic::default() }.name()
    }

    fn got(name: &str) -> Result<u32, Wrong> {
        Automatic::id_of(name).ok_or_else(|| Wrong::Invalid(format!("'{name}' is no name of a schedule")))
    }
}

fn named(answer: &serde_json::Value) -> Result<Reply, Wrong> {
    Ok(Reply::Named { name: AUTOMATIC.one(answer, "automatic")?.name() })
}

/// Schedules of one kind.
#[derive(Debug)]
pub struct Automatics {
    pub list: Declared,
    /// A part of what [`Shares::Automatics`] shows.
    pub one: Face,
    pub create: Declared,
    pub change: Declared,
    pub destroy: Declared,
}

const NEED: Need = Need::Right("nas", "allow_scheduleSnap");
const ALL_OF_THEM: Answer = Answer::Several("automatics", &AUTOMATIC.shape);
const ONE: Answer = Answer::One("automatic", &AUTOMATIC.shape);

macro_rules! automatics {
    ($id:ident, $a:literal, $path:literal ($($of:ident)?) ($($brace:ident = $part:ident),*) $place:tt) => {
        pub static $id: Automatics = {
            declared! {
                pub LIST: Get concat!($path, "/automatic"), concat!("List the snapshot schedules of a ", $a);
                $(of ItemKind::$of;)?
                path ($($brace = $part),*)
                answers ALL_OF_THEM;
                means { Request::Shares(Shares::Automatics { place: Place $place }) }
                gives |answer| Ok(Reply::Automatics(AUTOMATIC.all(answer, "automatics")?));

                pub CREATE: Post concat!($path, "/automatic"), concat!("Let snapshots of a ", $a, " be taken by themselves");
                needs NEED;
                $(of ItemKind::$of;)?
                path ($($brace = $part),*)
                takes NEW_AUTOMATIC { others set; }
                answers ONE;
                means { Request::Shares(Shares::Automatic { place: Place $place, deed: AutomaticDeed::Create { set } }) }
                gives named;

                pub CHANGE: Put concat!($path, "/automatic/{automatic}"), concat!("Change a snapshot schedule of a ", $a);
                needs NEED;
                $(of ItemKind::$of;)?
                path ($($brace = $part,)* automatic = id as Name)
                takes AUTOMATIC_CHANGES { others set; }
                answers ONE;
                means { Request::Shares(Shares::Automatic { place: Place $place, deed: AutomaticDeed::Change { id, set } }) }
                gives named;

                pub DESTROY: Delete concat!($path, "/automatic/{automatic}"),
                    concat!("End a snapshot schedule of a ", $a, "; what it took stays");
                needs NEED;
                $(of ItemKind::$of;)?
                path ($($brace = $part,)* automatic = id as Name)
                answers Answer::Nothing;
                means { Request::Shares(Shares::Automatic { place: Place $place, deed: AutomaticDeed::Destroy { id } }) }
            }
            Automatics {
                list: LIST,
                one: Face::get(concat!($path, "/automatic/{automatic}"), concat!("A snapshot schedule of a ", $a), ONE),
                create: CREATE,
                change: CHANGE,
                destroy: DESTROY,
            }
        };
    };
}

automatics!(
    OF_PROJECT,
    "project and all its shares",
    "/api/storage/v1/pools/{pool}/projects/{project}" ()
    (pool = pool, project = project)
    { pool, project, share: None }
);
automatics!(
    OF_FILESYSTEM,
    "file system",
    "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}" (Filesystem)
    (pool = pool, project = project, filesystem = share)
    { pool, project, share: Some(share) }
);
automatics!(
    OF_LUN,
    "LUN",
    "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}" (Lun)
    (pool = pool, project = project, lun = share)
    { pool, project, share: Some(share) }
);

macro_rules! of {
    ($($id:ident),*) => { &[$(&$id.list, &$id.create, &$id.change, &$id.destroy),*] };
}

pub(super) static ALL: &[&Declared] = of!(OF_PROJECT, OF_FILESYSTEM, OF_LUN);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schedule_is_taken_as_it_was_told() {
        let set = [("frequency", "month"), ("day", "31"), ("hour", "4"), ("minute", "59"), ("keep", "12")];
        let set = set.map(|(name, word)| (name.to_string(), word.to_string()));
        let made = Automatic::default().with(&set, true).unwrap();
        let problem = Some("the pool is full".to_string());
        for sample in [
            Automatic { id: 7, last: Some(1_000_000), problem, ..made },
            Automatic::default().with(&set[..1], true).unwrap(),
        ] {
            let answer = json!({ "automatics": [(AUTOMATIC.tell)(&sample)] });
            assert_eq!(AUTOMATIC.all(&answer, "automatics"), Ok(vec![sample]));
        }
    }

    /// One that could not be read was passed over: the list was short by one, and no word was said of it.
    #[test]
    fn a_schedule_that_cannot_be_read_is_not_passed_over() {
        for wrong in [json!({ "name": "automatic-1" }), json!({ "name": "x", "frequency": "hour" })] {
            assert!(AUTOMATIC.all(&json!({ "automatics": [wrong] }), "automatics").is_err());
        }
    }
}
