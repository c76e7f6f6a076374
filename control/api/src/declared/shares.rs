//! Snapshots of shares and their schedules, as answers tell them and bodies give them.
//!
//! Here are values and shapes. The paths depend on the kind of a share, which a request does not name: the endpoints are
//! in `rest`, and the client looks the kind up.

use crate::http::{Args, Field, Kind, Shape, Shaped, Wrong, date, may, must, seconds};
use crate::shares::Place;
use crate::{Automatic, ShareSnapshot};
use serde_json::{Map, Value};

const HREF: Field = must("href", Kind::Text, "Its path");
const NAME: Field = must("name", Kind::Text, "Its name");

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
        let name = text(args, "name");
        let id = Automatic::id_of(&name);
        let when =
            automatic_words(args).filter(|(name, _)| WHEN.contains(&name.as_str())).collect::<Vec<_>>();
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

/// The settings that a body gives, as words by their names.
pub fn automatic_words(args: &Args) -> impl Iterator<Item = (String, String)> {
    args.names().filter_map(|name| Some((name.to_string(), args.word(name)?)))
}

/// A body with these settings.
pub fn automatic_body(set: Vec<(String, String)>) -> Value {
    Value::Object(set.into_iter().map(|(name, word)| (name, word.into())).collect())
}

/// A snapshot; the server adds where it is.
pub static SNAPSHOT: Shaped<ShareSnapshot> = Shaped {
    shape: Shape::new(
        "snapshot",
        &[
            HREF,
            NAME,
            must("pool", Kind::Text, "Its pool"),
            must("project", Kind::Text, "Its project"),
            may("share", Kind::Text, "Its share; none for a snapshot of a project"),
            must("id", Kind::Text, "What it is known by, whatever it is called"),
            must("type", Kind::Text, "snapshot"),
            must("canonical_name", Kind::Text, "Its name as a dataset"),
            must("collection", Kind::Text, "local"),
            must("creation", Kind::Text, "When it was taken"),
            must("numclones", Kind::Number, "How many shares were cloned from it"),
            must("numholds", Kind::Number, "How many holds keep it from being destroyed"),
            must("space_unique", Kind::Size, "Bytes that it alone has"),
            must("space_data", Kind::Size, "Bytes that it shows"),
        ],
    ),
    tell: |ShareSnapshot { place, name, creation, unique, data, clones, holds, guid }| {
        let mut told: Map<String, Value> = [
            ("name", name.as_str().into()),
            ("pool", place.pool.as_str().into()),
            ("project", place.project.as_str().into()),
            ("id", format!("{guid:016x}").into()),
            ("type", "snapshot".into()),
            ("canonical_name", format!("{}@{name}", place.dataset()).into()),
            ("collection", "local".into()),
            ("creation", date(*creation).into()),
            ("numclones", (*clones).into()),
            ("numholds", (*holds).into()),
            ("space_unique", (*unique).into()),
            ("space_data", (*data).into()),
        ]
        .map(|(name, value): (&str, Value)| (name.to_string(), value))
        .into_iter()
        .collect();
        if let Some(share) = &place.share {
            told.insert("share".into(), share.as_str().into());
        }
        told
    },
    take: |args| {
        let number = |name: &str| args.number(name).unwrap_or(0);
        let project = Place::project(&text(args, "pool"), &text(args, "project"));
        Ok(ShareSnapshot {
            place: Place { share: args.text("share").map(String::from), ..project },
            name: text(args, "name"),
            creation: args.text("creation").and_then(seconds).unwrap_or(0),
            unique: number("space_unique"),
            data: number("space_data"),
            clones: number("numclones"),
            holds: number("numholds"),
            guid: u64::from_str_radix(&text(args, "id"), 16).unwrap_or(0),
        })
    },
};

fn text(args: &Args, name: &str) -> String {
    args.text(name).unwrap_or_default().to_string()
}

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

    #[test]
    fn a_snapshot_is_taken_as_it_was_told() {
        let project = Place::project("tank", "my sql");
        for place in [project.share("data"), project] {
            let name = "before".to_string();
            let sample = ShareSnapshot {
                place,
                name,
                creation: 1_000,
                unique: 2,
                data: 3,
                clones: 4,
                holds: 5,
                guid: u64::MAX,
            };
            let answer = json!({ "snapshot": (SNAPSHOT.tell)(&sample) });
            assert_eq!(SNAPSHOT.one(&answer, "snapshot"), Ok(sample));
        }
    }
}
