//! The fields of projects, file systems and LUNs: from the table of attributes, while compiling.

use crate::fault::Fault;
use api::attributes::{ATTRIBUTES, Attribute, Change, OF_ROOT, Shape as Form};
use api::http::Args;
use api::http::{Field, Kind, Shape, date, may, must};
use api::shares::{Item, ItemKind, Place};
use api::{CustomType, Source};
use serde_json::{Map, Value, json};

/// For what the fields are.
#[derive(Clone, Copy)]
pub(super) enum Use {
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

/// Refuses a body that wants one of them to be otherwise.
pub(super) fn check_fixed(args: &Args) -> Result<(), Fault> {
    for (name, always, why) in FIXED {
        if args.text(name).is_some_and(|text| text != always) {
            return Err(Fault::invalid(format!("property '{name}' is '{always}': {why}")));
        }
    }
    Ok(())
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
pub(super) const fn permission(name: &str) -> Option<&'static str> {
    if is_among(name, &["volsize", "quota", "reservation", "sparse", "default_volsize", "default_sparse"]) {
        return Some("allow_changeSpaceProps");
    }
    let protocols =
        ["targetgroup", "initiatorgroup", "lunumber", "status", "writecache", "sharenfs", "sharesmb"];
    if is_among(name, &protocols) { Some("allow_changeProtocolProps") } else { None }
}

pub(super) const fn count(kind: ItemKind, of: Use) -> usize {
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
pub(super) const fn attributes<const N: usize>(kind: ItemKind, of: Use, more: &[Field]) -> [Field; N] {
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
            may(FIXED[at].0, Kind::Text, "Nothing else than off, or true of what counts snapshots");
        (at, next) = (at + 1, next + 1);
    }
    assert!(next == N, "every field is filled in");
    fields
}

/// What every answer begins with.
pub(super) const HREF: Field = must("href", Kind::Text, "Its path");
pub(super) const NAME: Field = must("name", Kind::Text, "Its name");
pub(super) const POOL: Field = must("pool", Kind::Text, "Its pool");
pub(super) const PROJECT: Field = must("project", Kind::Text, "Its project");
pub(super) const NUMBER: Field = must(
    "assignednumber",
    Kind::Numbers,
    "The number under which initiators see it, once for each of its initiator groups; none while it is no LUN",
);
pub(super) const NEW_NAME: Field = may("name", Kind::Text, "Another name").with("allow_rename");
pub(super) const NEW_PROJECT: Field = may("project", Kind::Text, "Another project").with("allow_rename");
pub(super) const UNSET: Field = may("unset", Kind::Texts, "Attributes that are inherited again");

/// Its attributes, and where each comes from.
pub(super) fn show(item: &Item) -> (Map<String, Value>, Map<String, Value>) {
    let mut values = Map::new();
    let mut sources = Map::new();
    for property in &item.attributes {
        let Some(attribute) = Attribute::find(&property.name, item.kind) else { continue };
        let Some(value) = property.value.as_ref().and_then(|v| told(attribute, v)) else { continue };
        values.insert(property.name.clone(), value);
        if let Some(source) = source(&property.source) {
            sources.insert(property.name.clone(), source.into());
        }
    }
    for custom in &item.custom {
        let Some(text) = &custom.value else { continue };
        values.insert(custom.name.clone(), told_custom(custom.kind, text));
        if let Some(source) = source(&custom.source) {
            sources.insert(custom.name.clone(), source.into());
        }
    }
    (values, sources)
}

fn source(source: &Source) -> Option<&'static str> {
    Some(match source {
        Source::None => return None,
        Source::Default => "default",
        Source::Local | Source::Temporary => "local",
        Source::Inherited(_) => "inherited",
        Source::Received => "received",
    })
}

/// What does not fit its type, which may have been another, is text.
fn told_custom(kind: CustomType, text: &str) -> Value {
    let told: Option<Value> = match kind {
        CustomType::Boolean => text.parse::<bool>().ok().map(Into::into),
        CustomType::Integer | CustomType::PositiveInteger => text.parse::<i64>().ok().map(Into::into),
        _ => None,
    };
    told.unwrap_or_else(|| text.into())
}

fn told(attribute: &Attribute, value: &api::Value) -> Option<Value> {
    let text = match value {
        api::Value::Number(n) if matches!(attribute.shape, Form::Date) => return Some(date(*n).into()),
        api::Value::Number(n) if matches!(attribute.shape, Form::Word) => n.to_string(),
        api::Value::Number(n) => return Some((*n).into()),
        api::Value::Text(text) => text.clone(),
    };
    Some(match attribute.shape {
        _ if attribute.name == "origin" => origin(&text),
        Form::Flag => matches!(text.as_str(), "true" | "on").into(),
        Form::List => text.split(',').filter(|w| !w.is_empty()).collect::<Vec<_>>().into(),
        // "none": there is no such number.
        Form::Size | Form::Number | Form::Ratio => units::parse_size(&text).unwrap_or(0).into(),
        Form::Word | Form::Date => text.into(),
    })
}

/// The snapshot of a share, from its name as a dataset. What is directly in a pool and was cloned is a volume.
fn origin(snapshot: &str) -> Value {
    let (dataset, name) = snapshot.split_once('@').unwrap_or((snapshot, ""));
    let Place { pool, project, share } = Place::of(dataset, true);
    json!({
        "pool": pool, "project": project, "share": share.unwrap_or_default(), "snapshot": name,
        "collection": "local",
    })
}

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
