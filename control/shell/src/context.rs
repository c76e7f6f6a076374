//! Where one can be, and how the prompt says it. Pure.

use crate::draft::Draft;
use api::san::Members;
use api::shares::{ItemKind, Place};

/// One context, with what is being edited in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Root,
    Shares,
    /// A project or share. New: it is not there before it is committed.
    Item {
        place: Place,
        kind: ItemKind,
        new: bool,
        draft: Draft,
    },
    /// The snapshots of a project or share; one of them.
    Snapshots {
        place: Place,
    },
    Snapshot {
        place: Place,
        name: String,
    },
    /// When they are taken by themselves; one schedule, a new one without a number.
    Automatics {
        place: Place,
    },
    Automatic {
        place: Place,
        id: Option<u32>,
        draft: Draft,
    },
    /// Properties of an administrator's own; one of them.
    Schema,
    SchemaProperty {
        name: String,
        new: bool,
        draft: Draft,
    },
    Configuration,
    /// What serves clients; one of it.
    Services,
    Service {
        name: String,
        draft: Draft,
    },
    /// From where on something is an alert, and where alerts are sent; one receiver of them.
    Alerts {
        draft: Draft,
    },
    Receiver {
        name: String,
        new: bool,
        draft: Draft,
    },
    San,
    /// `targets`, `initiators`.
    Side(Members),
    /// `targets iscsi`, `initiators iscsi`.
    Objects(Members),
    /// A target or initiator; a new one has no name yet.
    Object {
        of: Members,
        iqn: Option<String>,
        label: String,
        draft: Draft,
    },
    Groups(Members),
    Group {
        of: Members,
        name: Option<String>,
        label: String,
        draft: Draft,
    },
    Inquiry {
        draft: Draft,
    },
    Maintenance,
    Hardware,
    System,
    Updates,
    Analytics,
    /// What is kept of statistics; one of it.
    Datasets,
    Dataset {
        name: String,
        label: String,
        draft: Draft,
    },
    Worksheets,
    Worksheet {
        uuid: String,
        name: String,
        draft: Draft,
    },
    /// A statistic on a worksheet; a new one has no name yet.
    Graph {
        worksheet: String,
        name: Option<String>,
        draft: Draft,
    },
    AnalyticsSettings {
        draft: Draft,
    },
    /// Where figures are sent.
    AnalyticsExport {
        draft: Draft,
    },
}

/// What a target or initiator is named by: given when it is made, and never changed.
pub(crate) fn own_name(of: Members) -> &'static str {
    match of {
        Members::Targets => "iqn",
        Members::Initiators => "initiator",
        Members::FcTargets | Members::FcInitiators => "wwn",
    }
}

pub(crate) fn side(of: Members) -> &'static str {
    match of {
        Members::Targets | Members::FcTargets => "targets",
        Members::Initiators | Members::FcInitiators => "initiators",
    }
}

fn transport(of: Members) -> &'static str {
    if of.is_fc() { "fc" } else { "iscsi" }
}

/// The draft of a context that has one, borrowed as the context is.
macro_rules! draft_of {
    ($context:expr) => {
        match $context {
            Context::Item { draft, .. }
            | Context::SchemaProperty { draft, .. }
            | Context::Automatic { draft, .. }
            | Context::Object { draft, .. }
            | Context::Group { draft, .. }
            | Context::Service { draft, .. }
            | Context::Dataset { draft, .. }
            | Context::Worksheet { draft, .. }
            | Context::Graph { draft, .. }
            | Context::AnalyticsSettings { draft }
            | Context::AnalyticsExport { draft }
            | Context::Alerts { draft }
            | Context::Receiver { draft, .. }
            | Context::Inquiry { draft } => Some(draft),
            _ => None,
        }
    };
}

impl Context {
    /// What the prompt adds for it to that of the context above; whether it stands in place of that.
    fn words(&self) -> (String, bool) {
        let word = |text: &str| (text.to_string(), false);
        match self {
            Context::Root => word(""),
            Context::Shares => word("shares"),
            Context::Item { place, .. } => (format!("shares {place}"), true),
            Context::Snapshots { .. } => word("snapshots"),
            Context::Snapshot { place, name } => (format!("shares {place}@{name}"), true),
            Context::Automatics { .. } => word("automatic"),
            Context::Automatic { id: None, .. } => word("schedule"),
            Context::Automatic { id: Some(id), .. } => {
                (api::Automatic { id: *id, ..api::Automatic::default() }.name(), false)
            }
            Context::Schema => word("schema"),
            Context::SchemaProperty { name, .. } => word(name),
            Context::Configuration => word("configuration"),
            Context::Services => word("services"),
            Context::Service { name, .. } => word(name),
            Context::Alerts { .. } => word("alerts"),
            Context::Receiver { name, .. } => word(name),
            Context::San => word("san"),
            Context::Side(of) => word(side(*of)),
            Context::Objects(of) => word(transport(*of)),
            Context::Groups(_) => word("groups"),
            Context::Object { label, .. } => word(label),
            // One group, not the groups.
            Context::Group { of, label, .. } => {
                (format!("configuration san {} {} {label}", side(*of), transport(*of)), true)
            }
            Context::Inquiry { .. } => word("inquiry"),
            Context::Maintenance => word("maintenance"),
            Context::Hardware => word("hardware"),
            Context::System => word("system"),
            Context::Updates => word("updates"),
            Context::Analytics => word("analytics"),
            Context::Datasets => word("datasets"),
            // One dataset, not the datasets.
            Context::Dataset { label, .. } => (format!("analytics {label}"), true),
            Context::Worksheets => word("worksheets"),
            Context::Worksheet { name, .. } => (format!("analytics worksheet {name}"), true),
            Context::Graph { name, .. } => word(name.as_deref().unwrap_or("dataset")),
            Context::AnalyticsSettings { .. } => word("settings"),
            Context::AnalyticsExport { .. } => word("export"),
        }
    }

    /// The place where words are declared for it (`api::http::Spoken`), and what it is of. None of what is not there
    /// yet, and of shares, targets and initiators: what is said there depends on their kind.
    pub fn place(&self) -> Option<(&'static str, Vec<String>)> {
        let of =
            |place, things: &[&String]| Some((place, things.iter().map(|thing| (*thing).clone()).collect()));
        match self {
            Context::Shares => of("shares", &[]),
            Context::Schema => of("shares schema", &[]),
            Context::SchemaProperty { name, new: false, .. } => of("shares schema {property}", &[name]),
            Context::Configuration => of("configuration", &[]),
            Context::Services => of("configuration services", &[]),
            Context::Service { name, .. } => of("configuration services {service}", &[name]),
            Context::Alerts { .. } => of("configuration alerts", &[]),
            Context::Receiver { name, new: false, .. } => of("configuration alerts {receiver}", &[name]),
            Context::San => of("configuration san", &[]),
            Context::Inquiry { .. } => of("configuration san inquiry", &[]),
            Context::Maintenance => of("maintenance", &[]),
            Context::System => of("maintenance system", &[]),
            Context::Updates => of("maintenance system updates", &[]),
            Context::Analytics => of("analytics", &[]),
            Context::Datasets => of("analytics datasets", &[]),
            Context::Dataset { name, .. } => of("analytics datasets {dataset}", &[name]),
            Context::Worksheets => of("analytics worksheets", &[]),
            Context::Worksheet { uuid, .. } => of("analytics worksheets {worksheet}", &[uuid]),
            Context::Graph { worksheet, name: Some(graph), .. } => {
                of("analytics worksheets {worksheet} {graph}", &[worksheet, graph])
            }
            Context::AnalyticsSettings { .. } => of("analytics settings", &[]),
            Context::AnalyticsExport { .. } => of("analytics export", &[]),
            _ => None,
        }
    }

    pub fn draft(&self) -> Option<&Draft> {
        draft_of!(self)
    }

    pub fn draft_mut(&mut self) -> Option<&mut Draft> {
        draft_of!(self)
    }

    /// It is made when it is committed, and not before.
    pub fn is_new(&self) -> bool {
        match self {
            Context::Item { new, .. }
            | Context::SchemaProperty { new, .. }
            | Context::Receiver { new, .. } => *new,
            Context::Automatic { id, .. } => id.is_none(),
            Context::Object { iqn, .. } => iqn.is_none(),
            Context::Group { name, .. } | Context::Graph { name, .. } => name.is_none(),
            _ => false,
        }
    }
}

/// `zfs:shares mysql/innodb-data (uncommitted)> `
pub(crate) fn prompt(host: &str, stack: &[Context]) -> String {
    let uncommitted = if stack.last().is_some_and(Context::is_new) { " (uncommitted)" } else { "" };
    format!("{host}:{}{uncommitted}> ", path(stack))
}

/// `shares mysql/innodb-data`
pub(crate) fn path(stack: &[Context]) -> String {
    let mut path = String::new();
    for context in stack {
        let (words, alone) = context.words();
        if alone {
            path.clear();
        }
        if !path.is_empty() && !words.is_empty() {
            path.push(' ');
        }
        path.push_str(&words);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_says_where_one_is() {
        let project = |new| Context::Item {
            place: Place::project("tank", "mysql"),
            kind: ItemKind::Project,
            new,
            draft: Draft::default(),
        };
        let lun = Context::Item {
            place: Place::project("tank", "mysql").share("innodb-data"),
            kind: ItemKind::Lun,
            new: true,
            draft: Draft::default(),
        };
        let group = Context::Group {
            of: Members::Targets,
            name: None,
            label: "group".into(),
            draft: Draft::default(),
        };
        use Context::{Configuration, Groups, Objects, Root, San, Shares, Side};
        let t = Members::Targets;
        for (stack, expected) in [
            (vec![Root], "zfs:> "),
            (vec![Root, Shares], "zfs:shares> "),
            (vec![Root, Shares, project(true)], "zfs:shares mysql (uncommitted)> "),
            (vec![Root, Shares, project(false)], "zfs:shares mysql> "),
            (vec![Root, Shares, project(false), lun], "zfs:shares mysql/innodb-data (uncommitted)> "),
            (vec![Root, Configuration, San, Side(t), Objects(t)], "zfs:configuration san targets iscsi> "),
            (
                vec![Root, Configuration, San, Side(t), Objects(Members::FcTargets)],
                "zfs:configuration san targets fc> ",
            ),
            (
                vec![Root, Configuration, San, Side(t), Objects(t), Groups(t), group],
                "zfs:configuration san targets iscsi group (uncommitted)> ",
            ),
        ] {
            assert_eq!(prompt("zfs", &stack), expected);
        }
    }
}
