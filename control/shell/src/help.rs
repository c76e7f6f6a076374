//! What can be said where one is. Pure.

use crate::context::Context;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::Result;
use api::declared;
use api::san::Members;
use api::shares::ItemKind;

/// A command or context, and what it does.
type Entry = (&'static str, &'static str);

pub(crate) const EVERYWHERE: &[Entry] = &[
    ("help [command]", "what can be said here"),
    ("show", "properties, what there is to select, and contexts below; also: ls"),
    ("done", "back to where the line began that led here"),
    ("cd ..", "one context up; also: up. \"cd /\" and \"top\" lead to the root"),
    ("exit", "leave the shell; also: quit"),
];

const EDIT: &[Entry] = &[
    ("get [property]", "the value of a property, or of all"),
    ("set property=value", "changes a draft; \"commit\" makes it true"),
    ("commit", "makes true what was set"),
    ("abort", "forgets what was set"),
];

/// Contexts below, shown with what is here.
pub(crate) fn children(context: &Context) -> Vec<Entry> {
    match context {
        Context::Root => vec![
            ("analytics", "what happens, counted and kept over time"),
            ("configuration", "targets, initiators and their groups, services"),
            ("maintenance", "devices of pools, deferred updates, the configuration as a file"),
            ("shares", "projects, file systems and LUNs"),
        ],
        Context::Shares => vec![("schema", "properties of your own, for all projects and shares")],
        Context::Snapshots { .. } => vec![("automatic", "when snapshots are taken by themselves")],
        Context::Configuration => vec![
            ("san", "targets, initiators and their groups"),
            ("services", "what serves clients: off, on, and where"),
            ("alerts", "what a person should know of, and where it is sent"),
        ],
        Context::San => vec![
            ("initiators", "who may see LUNs"),
            ("inquiry", "how LUNs call themselves"),
            ("targets", "through what LUNs are seen"),
        ],
        Context::Side(Members::Targets | Members::FcTargets) => {
            vec![("iscsi", "iSCSI targets"), ("fc", "targets of Fibre Channel, by WWN")]
        }
        Context::Side(Members::Initiators | Members::FcInitiators) => {
            vec![("iscsi", "iSCSI initiators"), ("fc", "initiators of Fibre Channel, by WWN")]
        }
        Context::Objects(Members::Targets | Members::FcTargets) => vec![("groups", "groups of targets")],
        Context::Objects(Members::Initiators | Members::FcInitiators) => {
            vec![("groups", "groups of initiators")]
        }
        Context::Maintenance => vec![
            ("hardware", "devices of pools"),
            ("system", "deferred updates, the configuration as a file"),
        ],
        Context::System => vec![("updates", "features that pools could have")],
        Context::Analytics => vec![
            ("datasets", "statistics that are open, and what is kept of them"),
            ("settings", "how long samples are kept"),
            ("worksheets", "graphs that are shown together"),
        ],
        _ => Vec::new(),
    }
}

/// Commands of one context: those that are code of the shell, and those that are declared.
pub(crate) fn own(context: &Context) -> Vec<Entry> {
    let mut own: Vec<Entry> = match context {
        Context::Shares => vec![
            ("project name", "makes a project"),
            ("select name", "goes to a project"),
            ("destroy name", "destroys a project with all its shares"),
            ("rename name name", "gives a project another name"),
            ("list", "all projects"),
            ("set pool=name", "works in another pool"),
            ("get [pool]", "the pool that is worked in"),
        ],
        Context::Item { kind: ItemKind::Project, new: false, .. } => vec![
            ("filesystem name", "makes a file system"),
            ("lun name", "makes a LUN"),
            ("select name", "goes to a share"),
            ("destroy [name]", "destroys a share, or this project with all of them"),
            ("rename name name", "gives a share another name"),
            ("move name project", "puts a share into another project"),
            ("list", "all shares"),
            ("snapshots", "a context: snapshots of this project with all its shares"),
            ("unset property", "inherits a property again"),
        ],
        Context::Item { new: false, .. } => {
            vec![
                ("unset property", "inherits a property again"),
                ("destroy", "destroys this share"),
                ("snapshots", "a context: snapshots of this share"),
            ]
        }
        Context::Snapshots { .. } => vec![
            ("snapshot name", "takes one"),
            ("select name", "goes to one"),
            ("rename name name", "gives one another name"),
            ("rollback name", "takes the share back to one; what came after is destroyed"),
            ("destroy name", "destroys one"),
            ("list", "all of them, the oldest first"),
        ],
        Context::Snapshot { .. } => vec![
            ("clone [project] name", "makes a share that begins as this snapshot"),
            ("rollback", "takes the share back to this; what came after is destroyed"),
            ("destroy", "destroys this snapshot"),
            ("list dependents", "the shares that were cloned from this"),
            ("get [property]", "the value of a property, or of all"),
        ],
        Context::Automatics { .. } => vec![
            ("create", "makes a schedule"),
            ("select name", "goes to one"),
            ("destroy name", "ends one; what it took stays"),
            ("list", "all of them"),
        ],
        Context::Automatic { id: Some(_), .. } => vec![("destroy", "ends it; what it took stays")],
        Context::Services => {
            vec![("select name", "goes to one; its name alone does too"), ("list", "all of them")]
        }
        Context::Service { .. } => vec![
            ("enable", "switches it on, now and for good"),
            ("disable", "switches it off, now and for good; its clients are ended"),
            ("restart", "ends its clients, who may come again"),
        ],
        Context::Alerts { .. } => vec![
            ("create name", "sends alerts to one more receiver"),
            ("select name", "goes to one"),
            ("list", "all of them"),
        ],
        Context::Schema => vec![
            ("create name", "makes a property, which shares then have as custom:name"),
            ("select name", "goes to one"),
            ("destroy name", "takes one away; values stay, and are not shown"),
            ("list", "all of them"),
        ],
        Context::SchemaProperty { new: false, .. } => vec![("destroy", "takes it away")],
        Context::Objects(_) => vec![
            ("create", "makes one"),
            ("select name", "goes to one, by number, IQN or alias"),
            ("destroy name", "destroys one"),
            ("list", "all of them"),
        ],
        Context::Groups(_) => vec![
            ("create", "makes a group"),
            ("select name", "goes to a group"),
            ("destroy name", "destroys a group"),
            ("list", "all groups"),
        ],
        Context::Object { iqn: Some(_), .. } | Context::Group { name: Some(_), .. } => {
            vec![("destroy", "destroys it")]
        }
        Context::Hardware => vec![
            ("list", "all of them, how well they are, and how far what is copied to them is"),
            ("offline pool device", "takes one out of use, if the others have everything"),
            ("online pool device", "brings one back; it gets what it missed"),
            (
                "replace pool device [new] [sequential]",
                "lets another one take its place; sequential: of a mirror, in the order of the disk",
            ),
            ("attach pool device new [sequential]", "makes a mirror of one, or a mirror larger"),
            ("detach pool device", "takes one out of a mirror, or calls off its replacement"),
        ],
        Context::Maintenance => {
            vec![("advice", "what is set wrong: what was seen, why it costs, what to change")]
        }
        Context::System => vec![
            ("backup file", "writes the configuration into a file"),
            ("restore file", "replaces the configuration by that of a file"),
        ],
        Context::Analytics => vec![
            ("changes", "settings that were changed, and what the statistics say came of each"),
            ("undo number", "sets what was set before a change"),
        ],
        Context::Datasets => vec![
            ("create statistic", "opens one and keeps it: iscsi.ops[op=read][size]"),
            ("destroy name", "closes one, and forgets its samples"),
            ("list", "all of them"),
            ("select name", "goes to one, by its number or its statistic"),
            ("statistics", "what can be opened, and by what it is broken down and filtered"),
        ],
        Context::Dataset { .. } => vec![
            ("csv [samples [granularity]]", "the last samples, with commas"),
            ("read [samples [granularity]]", "the last samples; granularity is second, minute or hour"),
        ],
        Context::Worksheets => vec![
            ("destroy name", "destroys one; its datasets stay"),
            ("list", "all of them"),
            ("select name", "goes to one, by its number or name"),
        ],
        Context::Worksheet { .. } => vec![
            ("dataset", "adds a graph: set name=statistic; commit"),
            ("list", "its graphs"),
            ("select name", "goes to a graph, by its number or statistic"),
        ],
        Context::Updates => {
            vec![("list", "all deferred updates"), ("apply [pool [feature ...]]", "applies them, for good")]
        }
        _ => Vec::new(),
    };
    if let Some((place, _)) = context.place() {
        own.extend(declared::said_at(place).map(|(_, spoken)| (spoken.usage, spoken.about)));
    }
    if context.draft().is_some() {
        own.extend(EDIT);
    }
    own
}

/// Every word that may come first here.
pub(crate) fn first_words(context: &Context) -> Vec<String> {
    let all = children(context).into_iter().chain(own(context)).chain(EVERYWHERE.iter().copied());
    let mut words: Vec<String> =
        all.filter_map(|(usage, _)| usage.split_whitespace().next().map(String::from)).collect();
    words.extend(["confirm", "ls", "up", "top", "quit"].map(String::from));
    words.sort();
    words.dedup();
    words
}

pub(crate) fn text(shell: &Shell<'_>, about: Option<&str>) -> Result<String> {
    let context = shell.here();
    let entry = |(usage, what): &Entry| show::child(usage, what);
    let commands: Vec<Entry> = own(context).into_iter().chain(EVERYWHERE.iter().copied()).collect();
    if let Some(about) = about {
        let named = |(usage, _): &&Entry| usage.split_whitespace().next() == Some(about);
        let children = children(context);
        let found: String = children.iter().chain(&commands).filter(named).map(entry).collect();
        let settable = shell.settable();
        let property = settable.iter().find(|s| s.name == about);
        let text = found
            + &property.map(|s| show::child(&s.name, "a property that can be set here")).unwrap_or_default();
        return if text.is_empty() { Err(format!("no help on \"{about}\" here")) } else { Ok(text) };
    }
    let mut text = String::new();
    if !children(context).is_empty() {
        text.push_str(&format!("Contexts:\n{}\n", children(context).iter().map(entry).collect::<String>()));
    }
    text.push_str(&format!("Commands:\n{}", commands.iter().map(entry).collect::<String>()));
    let names: Vec<String> = shell.settable().into_iter().map(|s| s.name).collect();
    if !names.is_empty() {
        text.push_str(&format!("\nProperties that can be set:\n  {}\n", names.join(" ")));
    }
    Ok(text)
}
