//! What `zpool import` lists: pools that are there to be imported, and what stands in the way.

use super::list_vdevs::is_of;
use super::reason::{self, Reason};
use crate::args::zpool::Style;
use crate::text::vdev_name::{name_width, shown_name};
use crate::text::visible::visible;
use api::{Class, Importable, Vdev};

const NAME_MIN: usize = 10;

pub(super) fn render(pool: &Importable) -> String {
    // With a comment everything stands one further to the right, under its longer word.
    let indent = if pool.comment.is_some() { " " } else { "" };
    let destroyed = if pool.destroyed { " (DESTROYED)" } else { "" };
    let mut text = format!(
        "{indent}  pool: {}\n{indent}    id: {}\n{indent} state: {}{destroyed}\n",
        visible(&pool.name),
        pool.guid,
        pool.health
    );
    if let Some(status) = status(pool, indent) {
        text += &format!("{indent}status: {status}\n");
    }
    text += &format!("{indent}action: {}\n", action(pool, indent));
    if let Some(comment) = &pool.comment {
        text += &format!("comment: {}\n", visible(comment));
    }
    text + &format!("{indent}config:\n\n") + &config(pool)
}

fn status(pool: &Importable, indent: &str) -> Option<String> {
    if !pool.unsupported.is_empty() {
        let names: String = pool.unsupported.iter().map(|f| format!("\n\t{}", visible(f))).collect();
        return Some(format!("The pool uses the following feature(s) not supported on this system:{names}"));
    }
    if pool.other_host.is_some() {
        return Some("The pool was last accessed by another system.".into());
    }
    let words = match reason::of_importable(pool)? {
        Reason::Missing | Reason::MissingUnusable => "One or more devices are missing from the system.",
        Reason::BadLabel | Reason::BadLabelUnusable => "One or more devices contains corrupted data.",
        Reason::Faulted | Reason::FaultedUnusable => "One or more devices are faulted.",
        Reason::Offline => "One or more devices are offlined.",
        Reason::CorruptPool => "The pool metadata is incomplete or corrupted.",
        _ => return None,
    };
    Some(words.replace("\n\t", &format!("\n\t{indent}")))
}

fn action(pool: &Importable, indent: &str) -> String {
    if !pool.unsupported.is_empty() {
        return format!(
            "The pool cannot be imported. Access the pool on a system that supports\n\t{indent}the required feature(s), or \
             recreate the pool from backup."
        );
    }
    match (pool.health.as_str(), &pool.other_host) {
        ("ONLINE", Some(_)) => {
            format!(
                "The pool can be imported using its name or numeric identifier and\n\t{indent}the '-f' flag."
            )
        }
        ("ONLINE", None) => "The pool can be imported using its name or numeric identifier.".into(),
        ("DEGRADED", _) => format!(
            "The pool can be imported despite missing or damaged devices.  The\n\t{indent}fault tolerance of the pool may be \
             compromised if imported."
        ),
        _ => format!("The pool cannot be imported. Attach the missing\n\t{indent}devices and try again."),
    }
}

fn config(pool: &Importable) -> String {
    let width = name_width(&pool.vdevs, &pool.name, Style::default(), 0).max(NAME_MIN);
    let mut text = String::new();
    line(&mut text, &pool.vdevs, &pool.name, width, 0);
    let of_class = |class| pool.vdevs.children.iter().filter(move |t| is_of(t, class) && t.kind != "missing");
    of_class(Class::Normal).for_each(|top| add(&mut text, top, width, 2));
    for (class, heading) in [(Class::Dedup, "dedup\t"), (Class::Special, "special\t"), (Class::Log, "logs\t")]
    {
        if of_class(class).next().is_some() {
            text += &format!("\t{heading}\n");
        }
        of_class(class).for_each(|top| add(&mut text, top, width, 2));
    }
    if pool.vdevs.children.iter().any(|t| t.kind == "missing") {
        text += "\n\tAdditional devices are known to be part of this pool, though their\n\texact configuration cannot be determined.\n";
    }
    text
}

fn add(text: &mut String, vdev: &Vdev, width: usize, depth: usize) {
    line(text, vdev, "", width, depth);
    vdev.children.iter().for_each(|child| add(text, child, width, depth + 2));
}

fn line(text: &mut String, vdev: &Vdev, pool: &str, width: usize, depth: usize) {
    let name = shown_name(vdev, pool, Style::default());
    let why = vdev.why.as_ref().map(|why| format!("  {}", visible(why))).unwrap_or_default();
    *text +=
        &format!("\t{:depth$}{name:<width$}  {}{why}\n", "", vdev.state, width = width.saturating_sub(depth));
}
