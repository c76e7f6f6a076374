//! Snapshots of shares over HTTP: those of a project, a file system and a LUN are the same requests; a share can go back to
//! one of its own and begin as one besides.

use super::shares::{A_FILESYSTEM, A_LUN, FILESYSTEM_CLONE, HREF, LUN_CLONE, NAME, PROJECT};
use crate::http::{Answer, Declared, Face, Kind, Need, Shape, Shaped, date, may, must, seconds};
use crate::shares::{Dependent, ItemKind, Place, Shares};
use crate::snapshots::{ShareDeed, ShareSnapshot};
use crate::{Reply, Request, declared};
use serde_json::{Map, Value};

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
        let text = |name: &str| args.text(name).unwrap_or_default().to_string();
        let project = Place::project(&text("pool"), &text("project"));
        Ok(ShareSnapshot {
            place: Place { share: args.text("share").map(String::from), ..project },
            name: text("name"),
            creation: args.text("creation").and_then(seconds).unwrap_or(0),
            unique: number("space_unique"),
            data: number("space_data"),
            clones: number("numclones"),
            holds: number("numholds"),
            guid: u64::from_str_radix(&text("id"), 16).unwrap_or(0),
        })
    },
};

/// What was cloned from a snapshot; the server adds where it is.
pub static DEPENDENT: Shaped<Dependent> = Shaped {
    shape: Shape::new(
        "dependent",
        &[HREF, PROJECT, must("share", Kind::Text, "The share that was cloned from the snapshot")],
    ),
    tell: |Dependent { project, share }| {
        let told = [("project", project), ("share", share)];
        told.map(|(name, text)| (name.to_string(), text.as_str().into())).into_iter().collect()
    },
    take: |args| {
        let text = |name: &str| args.text(name).unwrap_or_default().to_string();
        Ok(Dependent { project: text("project"), share: text("share") })
    },
};

static CHANGES: Shape =
    Shape::new("snapshot_changes", &[must("name", Kind::Text, "Another name").with("allow_rename")]);

/// Snapshots of one kind.
#[derive(Debug)]
pub struct Snapshots {
    pub list: Declared,
    /// A part of what [`Shares::Snapshots`] shows.
    pub one: Face,
    pub take: Declared,
    pub rename: Declared,
    pub destroy: Declared,
    pub dependents: Declared,
}

/// What can be done with those of a share besides.
#[derive(Debug)]
pub struct OfShare {
    pub clone: Declared,
    pub roll_back: Declared,
}

const fn right(permission: &'static str) -> Need {
    Need::Right("nas", permission)
}

const ALL_OF_THEM: Answer = Answer::Several("snapshots", &SNAPSHOT.shape);
const ONE: Answer = Answer::One("snapshot", &SNAPSHOT.shape);

/// Of every project and of every share in it: parts of what [`Shares::Snapshots`] shows of each.
pub static LIST_ALL: Face =
    Face::get("/api/storage/v1/snapshots", "List the snapshots of all pools", ALL_OF_THEM);

macro_rules! snapshots {
    ($id:ident, $a:literal $($with:literal)?, $path:literal ($($of:ident)?) ($($brace:ident = $part:ident),*) $place:tt) => {
        pub static $id: Snapshots = {
            declared! {
                pub LIST: Get concat!($path, "/snapshots"), concat!("List the snapshots of a ", $a);
                $(of ItemKind::$of;)?
                path ($($brace = $part),*)
                answers ALL_OF_THEM;
                means { Request::Shares(Shares::Snapshots { place: Place $place }) }
                gives |answer| Ok(Reply::ShareSnapshots(SNAPSHOT.all(answer, "snapshots")?));

                pub TAKE: Post concat!($path, "/snapshots"), concat!("Take a snapshot of a ", $a $(, $with)?);
                needs right("allow_takeSnap");
                $(of ItemKind::$of;)?
                path ($($brace = $part),*)
                body "new_snapshot" { must "name" Text name, "Its name"; }
                answers ONE;
                means { Request::Shares(Shares::Snapshot { place: Place $place, name, deed: ShareDeed::Take }) }

                pub RENAME: Put concat!($path, "/snapshots/{snapshot}"), concat!("Rename a snapshot of a ", $a);
                needs right("allow_rename");
                $(of ItemKind::$of;)?
                path ($($brace = $part,)* snapshot = name)
                takes CHANGES { "name" to; }
                answers ONE;
                means { Request::Shares(Shares::Snapshot { place: Place $place, name, deed: ShareDeed::Rename { to } }) }

                pub DESTROY: Delete concat!($path, "/snapshots/{snapshot}"), concat!("Destroy a snapshot of a ", $a);
                needs right("allow_destroy");
                $(of ItemKind::$of;)?
                path ($($brace = $part,)* snapshot = name)
                answers Answer::Nothing;
                means { Request::Shares(Shares::Snapshot { place: Place $place, name, deed: ShareDeed::Destroy }) }

                pub DEPENDENTS: Get concat!($path, "/snapshots/{snapshot}/dependents"),
                    concat!("What was cloned from a snapshot of a ", $a);
                $(of ItemKind::$of;)?
                path ($($brace = $part,)* snapshot = name)
                answers Answer::Several("dependents", &DEPENDENT.shape);
                means { Request::Shares(Shares::Dependents { place: Place $place, name }) }
                gives |answer| Ok(Reply::Dependents(DEPENDENT.all(answer, "dependents")?));
            }
            Snapshots {
                list: LIST,
                one: Face::get(concat!($path, "/snapshots/{snapshot}"), concat!("A snapshot of a ", $a), ONE),
                take: TAKE,
                rename: RENAME,
                destroy: DESTROY,
                dependents: DEPENDENTS,
            }
        };
    };
}

macro_rules! of_share {
    ($id:ident, $a:literal, $word:literal, $shape:ident, $clone:ident, $kind:ident, $path:literal $brace:ident) => {
        pub static $id: OfShare = {
            declared! {
                pub CLONE: Put concat!($path, "/snapshots/{snapshot}/clone"),
                    concat!("Make a ", $a, " that begins as a snapshot");
                needs right("allow_clone");
                of ItemKind::$kind;
                path (pool = pool, project = project, $brace = share, snapshot = name)
                takes $clone { "project" other; "share" new; others set; }
                answers Answer::One($word, &$shape);
                status 201;
                means {
                    Request::Shares(Shares::Snapshot {
                        place: Place { pool, project, share: Some(share) },
                        name,
                        deed: ShareDeed::Clone { project: other, share: new, set },
                    })
                }

                pub ROLL_BACK: Put concat!($path, "/snapshots/{snapshot}/rollback"),
                    concat!("Take a ", $a,
                        " back to a snapshot; ?confirm=true while there are newer ones, which are destroyed");
                needs right("allow_rollback");
                of ItemKind::$kind;
                path (pool = pool, project = project, $brace = share, snapshot = name)
                query (confirm = newer)
                body "snapshot_rollback" {
                    may "force" Flag force, "Clients that use it are ended; else it is refused while there are any";
                }
                answers Answer::Nothing;
                means {
                    Request::Shares(Shares::Snapshot {
                        place: Place { pool, project, share: Some(share) },
                        name,
                        deed: ShareDeed::Rollback { newer, force },
                    })
                }
            }
            OfShare { clone: CLONE, roll_back: ROLL_BACK }
        };
    };
}

snapshots!(
    OF_PROJECT,
    "project" " and all its shares",
    "/api/storage/v1/pools/{pool}/projects/{project}" ()
    (pool = pool, project = project)
    { pool, project, share: None }
);
snapshots!(
    OF_FILESYSTEM,
    "file system",
    "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}" (Filesystem)
    (pool = pool, project = project, filesystem = share)
    { pool, project, share: Some(share) }
);
snapshots!(
    OF_LUN,
    "LUN",
    "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}" (Lun)
    (pool = pool, project = project, lun = share)
    { pool, project, share: Some(share) }
);
of_share!(
    FILESYSTEM,
    "file system",
    "filesystem",
    A_FILESYSTEM,
    FILESYSTEM_CLONE,
    Filesystem,
    "/api/storage/v1/pools/{pool}/projects/{project}/filesystems/{filesystem}" filesystem
);
of_share!(
    LUN,
    "LUN",
    "lun",
    A_LUN,
    LUN_CLONE,
    Lun,
    "/api/storage/v1/pools/{pool}/projects/{project}/luns/{lun}" lun
);

macro_rules! of {
    ($($id:ident),*) => {
        &[
            $(&$id.list, &$id.take, &$id.rename, &$id.destroy, &$id.dependents,)*
            &FILESYSTEM.clone,
            &FILESYSTEM.roll_back,
            &LUN.clone,
            &LUN.roll_back,
        ]
    };
}

pub(super) static ALL: &[&Declared] = of!(OF_PROJECT, OF_FILESYSTEM, OF_LUN);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
