//! Projects, file systems and LUNs over HTTP.
//!
//! ```text
//!   Shares::Destroy { place: tank, p, x }  of ItemKind::Lun ──▶ DELETE .../pools/tank/projects/p/luns/x
//!                                          the kind is not in the request: the client looks it up, the path says it
//!   Shares::Change { name, set, unset, .. } ──▶ PUT, a body of LUN_CHANGES: `name` and `unset` are fields of it, and what
//!                                          is set is all others: the fields of the table of attributes, see [`fields`]
//! ```

mod fields;
mod item;

pub use fields::permission;
pub(super) use fields::{A_FILESYSTEM, A_LUN, FILESYSTEM_CLONE, HREF, LUN_CLONE, NAME, PROJECT};
pub use item::{path, tell};

use crate::http::{Answer, Declared, Need};
use crate::shares::{ItemKind, Place, Shares};
use crate::{Reply, Request, declared};
use fields::{
    A_PROJECT, FILESYSTEM_CHANGES, LUN_CHANGES, NEW_FILESYSTEM, NEW_LUN, NEW_PROJECTS, PROJECT_CHANGES,
};
use serde_json::Value;

/// The requests of one kind.
#[derive(Debug)]
pub struct Items {
    pub kind: ItemKind,
    /// Of all pools; of one project, or of one pool those that are projects.
    pub list_all: Declared,
    pub list: Declared,
    pub one: Declared,
    pub create: Declared,
    pub change: Declared,
    pub destroy: Declared,
}

const fn right(permission: &'static str) -> Need {
    Need::Right("nas", permission)
}

/// The item that an answer tells of, as the reply to what asked for it.
fn one(answer: &Value, kind: ItemKind) -> Result<Reply, crate::http::Wrong> {
    Ok(Reply::Items(vec![item::take(&answer[kind.word()], kind)?]))
}

fn made(answer: &Value, kind: ItemKind) -> Result<Reply, crate::http::Wrong> {
    Ok(Reply::Named { name: item::take(&answer[kind.word()], kind)?.place.to_string() })
}

fn all(answer: &Value, kind: ItemKind) -> Result<Reply, crate::http::Wrong> {
    Ok(Reply::Items(item::take_all(answer, &format!("{}s", kind.word()), kind)?))
}

const PROJECTS: &str = "/api/storage/v1/pools/{pool}/projects";
const A_PATH: &str = "/api/storage/v1/pools/{pool}/projects/{project}";

declared! {
    pub PROJECTS_OF_ALL: Get "/api/storage/v1/projects", "List the projects of all pools";
    answers Answer::Several("projects", &A_PROJECT);
    means { Request::Shares(Shares::Projects { pool: None }) }
    gives |answer| all(answer, ItemKind::Project);

    pub PROJECTS_OF_POOL: Get PROJECTS, "List the projects of a pool";
    path (pool = pool)
    answers Answer::Several("projects", &A_PROJECT);
    means { Request::Shares(Shares::Projects { pool: Some(pool) }) }
    gives |answer| all(answer, ItemKind::Project);

    pub ONE_PROJECT: Get A_PATH, "A project";
    path (pool = pool, project = project)
    answers Answer::One("project", &A_PROJECT);
    means { Request::Shares(Shares::Get { place: Place { pool, project, share: None } }) }
    gives |answer| one(answer, ItemKind::Project);

    pub CREATE_PROJECT: Post PROJECTS, "Make a project";
    needs right("allow_createProject");
    path (pool = pool)
    takes NEW_PROJECTS { "name" project; others set; }
    answers Answer::One("project", &A_PROJECT);
    means {
        Request::Shares(Shares::Create { place: Place { pool, project, share: None }, kind: ItemKind::Project, set })
    }
    gives |answer| made(answer, ItemKind::Project);

    pub CHANGE_PROJECT: Put A_PATH, "Change a project";
    needs right("allow_changeGeneralProps");
    path (pool = pool, project = project)
    takes PROJECT_CHANGES { "name" name; "unset" unset; others set; }
    answers Answer::One("project", &A_PROJECT);
    means {
        Request::Shares(Shares::Change {
            place: Place { pool, project, share: None }, name, project: None, set, unset
        })
    }

    pub DESTROY_PROJECT: Delete A_PATH,
        "Destroy a project with all its shares; ?confirm=true while it has some, ?force=true while clients use them";
    needs right("allow_destroy");
    path (pool = pool, project = project)
    query (force = force)
    always confirm;
    answers Answer::Nothing;
    means { Request::Shares(Shares::Destroy { place: Place { pool, project, share: None }, force }) }
}

/// Those of projects.
pub static OF_PROJECT: Items = Items {
    kind: ItemKind::Project,
    list_all: PROJECTS_OF_ALL,
    list: PROJECTS_OF_POOL,
    one: ONE_PROJECT,
    create: CREATE_PROJECT,
    change: CHANGE_PROJECT,
    destroy: DESTROY_PROJECT,
};

macro_rules! shares {
    ($id:ident, $kind:ident, $a:literal, $folder:literal, $word:literal $brace:ident, $shape:ident, $new:ident, $changes:ident) => {
        pub static $id: Items = {
            const FOLDER: &str = concat!("/api/storage/v1/pools/{pool}/projects/{project}/", $folder);
            const PATH: &str =
                concat!("/api/storage/v1/pools/{pool}/projects/{project}/", $folder, "/{", $word, "}");
            declared! {
                pub LIST_ALL: Get concat!("/api/storage/v1/", $folder), concat!("List the ", $a, "s of all pools");
                answers Answer::Several($folder, &$shape);
                means { Request::Shares(Shares::Shares { pool: None, project: None, kind: Some(ItemKind::$kind) }) }
                gives |answer| all(answer, ItemKind::$kind);

                pub LIST: Get FOLDER, concat!("List the ", $a, "s of a project");
                path (pool = pool, project = project)
                answers Answer::Several($folder, &$shape);
                means {
                    Request::Shares(Shares::Shares {
                        pool: Some(pool), project: Some(project), kind: Some(ItemKind::$kind)
                    })
                }
                gives |answer| all(answer, ItemKind::$kind);

                pub ONE: Get PATH, concat!("A ", $a);
                of ItemKind::$kind;
                path (pool = pool, project = project, $brace = share)
                answers Answer::One($word, &$shape);
                means { Request::Shares(Shares::Get { place: Place { pool, project, share: Some(share) } }) }
                gives |answer| one(answer, ItemKind::$kind);

                pub CREATE: Post FOLDER, concat!("Make a ", $a);
                needs right("allow_createShare");
                path (pool = pool, project = project)
                takes $new { "name" share; others set; }
                answers Answer::One($word, &$shape);
                means {
                    Request::Shares(Shares::Create {
                        place: Place { pool, project, share: Some(share) }, kind: ItemKind::$kind, set
                    })
                }
                gives |answer| made(answer, ItemKind::$kind);

                pub CHANGE: Put PATH, concat!("Change a ", $a);
                needs right("allow_changeGeneralProps");
                of ItemKind::$kind;
                path (pool = pool, project = project, $brace = share)
                takes $changes { "name" name; "project" other; "unset" unset; others set; }
                answers Answer::One($word, &$shape);
                means {
                    Request::Shares(Shares::Change {
                        place: Place { pool, project, share: Some(share) }, name, project: other, set, unset
                    })
                }

                pub DESTROY: Delete PATH, concat!("Destroy a ", $a, "; ?force=true while clients use it");
                needs right("allow_destroy");
                of ItemKind::$kind;
                path (pool = pool, project = project, $brace = share)
                query (force = force)
                always confirm;
                answers Answer::Nothing;
                means { Request::Shares(Shares::Destroy { place: Place { pool, project, share: Some(share) }, force }) }
            }
            Items {
                kind: ItemKind::$kind,
                list_all: LIST_ALL,
                list: LIST,
                one: ONE,
                create: CREATE,
                change: CHANGE,
                destroy: DESTROY,
            }
        };
    };
}

shares!(
    OF_FILESYSTEM,
    Filesystem,
    "file system",
    "filesystems",
    "filesystem" filesystem,
    A_FILESYSTEM,
    NEW_FILESYSTEM,
    FILESYSTEM_CHANGES
);
shares!(OF_LUN, Lun, "LUN", "luns", "lun" lun, A_LUN, NEW_LUN, LUN_CHANGES);

macro_rules! of {
    ($($id:ident),*) => { &[$(&$id.list_all, &$id.list, &$id.one, &$id.create, &$id.change, &$id.destroy),*] };
}

pub(super) static ALL: &[&Declared] = of!(OF_PROJECT, OF_FILESYSTEM, OF_LUN);
