//! The fields of projects, file systems and LUNs in bodies and answers: from the table of attributes, while compiling.

use crate::attributes::{ATTRIBUTES, Attribute, Change, OF_ROOT, Shape as Form};
use crate::http::{Field, Kind, Shape, may, must};
use crate::shares::ItemKind;

/// For what the fields are.
#[derive(Clone, Copy, Debug)]
enum Use {
    Answer,
    Create,
    Change,
    /// Where each value comes from.
    Sources,
}

/// Fields that bodies and answers have besides the attributes.
const EXTRA: usize = 6;

/// What drivers say of every share, and what is always so here: that much is understood, and anything else refused.
const FIXED: [(&str, &str, &str); 6] = [
    ("sharedav", "off", "there is no WebDAV server here"),
    ("shareftp", "off", "there is no FTP server here"),
    ("sharesftp", "off", "there is no SFTP server here"),
    ("sharetftp", "off", "there is no TFTP server here"),
    ("quota_snap", "true", "a quota counts snapshots"),
    ("reservation_snap", "true", "a reservation counts snapshots"),
];

const fn has_fixed(kind: ItemKind, of: Use) -> bool {
    kind as u8 == ItemKind::Filesystem as u8 && matches!(of, Use::Create | Use::Change)
}

const ORIGIN: Shape = Shape::new(
    "origin",
    &[
        must("pool", Kind::Text, "Its pool"),
        must("project", Kind::Text, "The project of the share that it was cloned from"),
        must("share", Kind::Text, "The share that it was cloned from; empty if that was a project"),
        must("snapshot", Kind::Text, "The snapshot that it began as"),
        must("collection", Kind::Text, "local"),
    ],
);

const fn is_of(attribute: &Attribute, kind: ItemKind) -> bool {
    let mut at = 0;
    while at < attribute.of.len() {
        if attribute.of[at] as u8 == kind as u8 {
            return true;
        }
        at += 1;
    }
    false
}

const fn is_used(attribute: &Attribute, kind: ItemKind, of: Use) -> bool {
    let fits = match of {
        Use::Answer | Use::Sources => true,
        Use::Create => !matches!(attribute.change, Change::Never),
        Use::Change => matches!(attribute.change, Change::Always),
    };
    fits && is_of(attribute, kind)
}

const fn kind_of(attribute: &Attribute, of: Use) -> Kind {
    if let Use::Sources = of {
        return Kind::Text;
    }
    if equal(attribute.name, "origin") {
        return Kind::Object(&ORIGIN);
    }
    if is_among(attribute.name, &OF_ROOT) {
        return Kind::Word;
    }
    match attribute.shape {
        Form::Size => Kind::Size,
        Form::Flag => Kind::Flag,
        Form::Number | Form::Ratio => Kind::Number,
        Form::List => Kind::Texts,
        Form::Word | Form::Date => Kind::Text,
    }
}

const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

const fn is_among(name: &str, names: &[&str]) -> bool {
    let mut at = 0;
    while at < names.len() {
        if equal(name, names[at]) {
            return true;
        }
        at += 1;
    }
    false
}

/// What it takes to change an attribute, besides the right to change what is general.
pub const fn permission(name: &str) -> Option<&'static str> {
    if is_among(name, &["volsize", "quota", "reservation", "sparse", "default_volsize", "default_sparse"]) {
        return Some("allow_changeSpaceProps");
    }
    let protocols =
        ["targetgroup", "initiatorgroup", "lunumber", "status", "writecache", "sharenfs", "sharesmb"];
    if is_among(name, &protocols) { Some("allow_changeProtocolProps") } else { None }
}

const fn count(kind: ItemKind, of: Use) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < ATTRIBUTES.len() {
        if is_used(&ATTRIBUTES[at], kind, of) {
            count += 1;
        }
        at += 1;
    }
    if has_fixed(kind, of) { count + FIXED.len() } else { count }
}

const ABOUT: &str = "See the glossary of attributes; sizes are bytes, or text such as 16K";

/// The attributes of this kind, for this use.
const fn attributes<const N: usize>(kind: ItemKind, of: Use, more: &[Field]) -> [Field; N] {
    let mut fields = [may("", Kind::Text, ABOUT); N];
    let (mut at, mut next) = (0, 0);
    while next < more.len() {
        fields[next] = more[next];
        next += 1;
    }
    assert!(next <= EXTRA, "more fields than are counted");
    while at < ATTRIBUTES.len() {
        let attribute = &ATTRIBUTES[at];
        if is_used(attribute, kind, of) {
            fields[next] = may(attribute.name, kind_of(attribute, of), ABOUT);
            if let Use::Change = of {
                fields[next].permission = permission(attribute.name);
            }
            next += 1;
        }
        at += 1;
    }
    let mut at = 0;
    while has_fixed(kind, of) && at < FIXED.len() {
        fields[next] =
            may(FIXED[at].0, Kind::Text, "Nothing else than off, or true of what counts snapshots")
                .always(FIXED[at].1, FIXED[at].2);
        (at, next) = (at + 1, next + 1);
    }
    assert!(next == N, "every field is filled in");
    fields
}

pub(in crate::declared) const HREF: Field = must("href", Kind::Text, "Its path");
pub(in crate::declared) const NAME: Field = must("name", Kind::Text, "Its name");
pub(in crate::declared) const PROJECT: Field = must("project", Kind::Text, "Its project");
const POOL: Field = must("pool", Kind::Text, "Its pool");
const NUMBER: Field = must(
    "assignednumber",
    Kind::Numbers,
    "The number under which initiators see it, once for each of its initiator groups; none while it is no LUN",
);
const NEW_NAME: Field = may("name", Kind::Text, "Another name").with("allow_rename");
const NEW_PROJECT: Field = may("project", Kind::Text, "Another project").with("allow_rename");
const UNSET: Field = may("unset", Kind::Texts, "Attributes that are inherited again");
const SHARE: Field = must("share", Kind::Text, "What it is called");
const IN_PROJECT: Field = may("project", Kind::Text, "Its project; that of the snapshot, unless it is said");

const fn source(shape: &'static Shape) -> Field {
    must("source", Kind::Object(shape), "Where each value comes from: local, inherited, default or received")
}

macro_rules! shape {
    ($vis:vis $id:ident, $name:literal, $kind:ident, $use:ident, [$($more:expr),*]) => {
        $vis static $id: Shape = {
            const MORE: &[Field] = &[$($more),*];
            const FIELDS: [Field; count(ItemKind::$kind, Use::$use) + MORE.len()] =
                attributes(ItemKind::$kind, Use::$use, MORE);
            Shape::new($name, &FIELDS).and_custom()
        };
    };
}

macro_rules! sources {
    ($id:ident, $name:literal, $kind:ident) => {
        const $id: Field = {
            const FIELDS: [Field; count(ItemKind::$kind, Use::Sources)] =
                attributes(ItemKind::$kind, Use::Sources, &[]);
            const SOURCES: Shape = Shape::new($name, &FIELDS).and_custom();
            source(&SOURCES)
        };
    };
}

sources!(PROJECT_SOURCES, "project_sources", Project);
shape!(pub(crate) A_PROJECT, "project", Project, Answer, [HREF, NAME, POOL, PROJECT_SOURCES]);
shape!(pub(crate) NEW_PROJECTS, "new_project", Project, Create, [NAME]);
shape!(pub(crate) PROJECT_CHANGES, "project_changes", Project, Change, [NEW_NAME, UNSET]);

sources!(FILESYSTEM_SOURCES, "filesystem_sources", Filesystem);
shape!(pub(crate) A_FILESYSTEM, "filesystem", Filesystem, Answer, [HREF, NAME, POOL, PROJECT, FILESYSTEM_SOURCES]);
shape!(pub(crate) NEW_FILESYSTEM, "new_filesystem", Filesystem, Create, [NAME]);
shape!(pub(crate) FILESYSTEM_CHANGES, "filesystem_changes", Filesystem, Change, [NEW_NAME, NEW_PROJECT, UNSET]);
shape!(pub(crate) FILESYSTEM_CLONE, "filesystem_clone", Filesystem, Create, [SHARE, IN_PROJECT]);

sources!(LUN_SOURCES, "lun_sources", Lun);
shape!(pub(crate) A_LUN, "lun", Lun, Answer, [HREF, NAME, POOL, PROJECT, NUMBER, LUN_SOURCES]);
shape!(pub(crate) NEW_LUN, "new_lun", Lun, Create, [NAME]);
shape!(pub(crate) LUN_CHANGES, "lun_changes", Lun, Change, [NEW_NAME, NEW_PROJECT, UNSET]);
shape!(pub(crate) LUN_CLONE, "lun_clone", Lun, Create, [SHARE, IN_PROJECT]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_permissions_of_their_kind() {
        assert_eq!(permission("volsize"), Some("allow_changeSpaceProps"));
        assert_eq!(permission("initiatorgroup"), Some("allow_changeProtocolProps"));
        assert_eq!(permission("compression"), None);
    }
}
