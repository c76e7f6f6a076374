//! `zpool status`.

use super::list_vdevs::{is_of, state};
use super::{pools, reason, repeat, scan, status_json, sweep};
use crate::args::zpool::Status;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::number;
use crate::text::vdev_name::{name_width, shown_name};
use crate::text::visible::visible;
use api::{Class, Pool, Reply, Request, Vdev};
use std::collections::BTreeMap;

/// The narrowest column of names.
const NAME_MIN: usize = 10;

pub(super) fn run(session: &mut Session<'_>, args: &Status) -> Outcome {
    if args.scripts.is_some() {
        let why = "Can't run -c: programs that make columns are not part of Cenote.";
        return Err(Failure::Failed(why.into()));
    }
    repeat(session, &args.words, args.stamp, |session, names, _| {
        let pools = pools(session, names)?;
        if args.json.json {
            return session.print(&status_json::document(&pools, args));
        }
        if pools.is_empty() && names.is_empty() {
            session.complain("no pools available");
        }
        let mut dedup = BTreeMap::new();
        for pool in pools.iter().filter(|pool| args.dedup && pool.problem.is_none()) {
            dedup.insert(pool.name.clone(), tables(session, pool)?);
        }
        session.show(&render_all(&pools, args, !names.is_empty(), &dedup))
    })
}

/// What is known of the tables of deduplicated blocks.
fn tables(session: &mut Session<'_>, pool: &Pool) -> Outcome<String> {
    let reply = session.ask(Request::PoolPrefetch { name: pool.name.clone() })?;
    Ok(match expect_reply!(reply, Reply::Count(bytes) => bytes) {
        0 => "\n dedup: no DDT entries\n".into(),
        bytes => format!(
            "\n dedup: tables of {}; what they count is not part of this version of Cenote\n",
            number::bytes(bytes, false)
        ),
    })
}

fn render_all(pools: &[Pool], args: &Status, are_named: bool, dedup: &BTreeMap<String, String>) -> String {
    if pools.is_empty() {
        return String::new();
    }
    let mut blocks = Vec::new();
    for pool in pools {
        let mild = reason::of_pool(pool).is_none_or(reason::Reason::is_mild);
        match args.problems && mild {
            true if are_named => blocks.push(format!("pool '{}' is healthy\n", pool.name)),
            true => {}
            false => {
                let dedup = dedup.get(&pool.name).map_or("", String::as_str);
                blocks.push(render(pool, args) + dedup);
            }
        }
    }
    if blocks.is_empty() {
        return "all pools are healthy\n".into();
    }
    blocks.join("\n")
}

pub(super) fn render(pool: &Pool, args: &Status) -> String {
    let mut text = format!("  pool: {}\n state: {}\n", pool.name, pool.health);
    if let Some(reason) = reason::of_pool(pool) {
        let words = reason.words();
        text += &format!("status: {}\naction: {}\n", words.status, words.action);
        if let Some(message) = words.message {
            text += &format!("   see: https://openzfs.github.io/openzfs-docs/msg/{message}\n");
        }
    }
    text += &scan::of_pool(pool, args.style);
    match &pool.vdevs {
        Some(root) => {
            let errors = not_open(pool).unwrap_or_else(|| errors(pool, args));
            text + &config(pool, root, args) + &logs(pool) + &errors
        }
        None => {
            let why = pool.problem.as_deref().unwrap_or("The configuration cannot be determined.");
            text + &format!("config: {why}\n")
        }
    }
}

fn config(pool: &Pool, root: &Vdev, args: &Status) -> String {
    let width = name_width(root, &pool.name, args.style, 0).max(NAME_MIN);
    let lines = Lines { pool: &pool.name, width, args };
    let mut text = format!(
        "config:\n\n\t{:<width$}  {:<8} {:>5} {:>5} {:>5}\n",
        "NAME", "STATE", "READ", "WRITE", "CKSUM"
    );
    if args.slow {
        text.insert_str(text.len() - 1, "  SLOW");
    }
    lines.line(&mut text, root, 0);
    let of_class = |class| root.children.iter().filter(move |t| is_of(t, class));
    of_class(Class::Normal).for_each(|top| lines.add(&mut text, top, 2));
    // The tabs after some headings are OpenZFS's too.
    let classes = [
        (Class::Dedup, "dedup\t"),
        (Class::Special, "special\t"),
        (Class::Log, "logs\t"),
        (Class::Cache, "cache"),
        (Class::Spare, "spares"),
    ];
    for (class, heading) in classes {
        if of_class(class).next().is_some() {
            text += &format!("\t{heading}\n");
        }
        of_class(class).for_each(|top| lines.add(&mut text, top, 2));
    }
    text
}

struct Lines<'a> {
    pool: &'a str,
    width: usize,
    args: &'a Status,
}

impl Lines<'_> {
    fn add(&self, text: &mut String, vdev: &Vdev, depth: usize) {
        if self.args.unhealthy && vdev.walk().iter().all(|v| is_well(v)) {
            return;
        }
        self.line(text, vdev, depth);
        vdev.children.iter().for_each(|child| self.add(text, child, depth + 2));
    }

    fn line(&self, text: &mut String, vdev: &Vdev, depth: usize) {
        let name = shown_name(vdev, self.pool, self.args.style);
        let width = self.width.saturating_sub(depth);
        *text += &format!("\t{:depth$}{name:<width$}  {:<8}", "", state(vdev));
        if vdev.class != Some(Class::Spare) {
            for errors in [vdev.read_errors, vdev.write_errors, vdev.checksum_errors] {
                *text += &format!(" {:>5}", number::count(errors, self.args.style.exact));
            }
            if self.args.slow {
                let slow = vdev.is_leaf().then(|| number::count(vdev.slow_ios, self.args.style.exact));
                *text += &format!(" {:>5}", slow.as_deref().unwrap_or("-"));
            }
        }
        if let Some(why) = &vdev.why {
            *text += &format!("  {}", visible(why));
        }
        *text += &sweep::notes(vdev, self.args);
        text.push('\n');
    }
}

fn is_well(vdev: &Vdev) -> bool {
    vdev.state == "ONLINE" && vdev.read_errors + vdev.write_errors + vdev.checksum_errors == 0
}

/// Synchronous writes that are not in the datasets yet: OpenZFS has no such part.
fn logs(pool: &Pool) -> String {
    let lines: String = pool.logs.iter().map(|log| format!("\t{}\n", visible(log))).collect();
    if lines.is_empty() { lines } else { format!("\nintent logs:\n\n{lines}") }
}

/// Of a pool that could not be opened, or written, this says more than its data.
fn not_open(pool: &Pool) -> Option<String> {
    if let Some(why) = &pool.suspended {
        return Some(format!("\nerrors: Nothing is written any more: {why}\n"));
    }
    let why = pool.problem.as_ref()?;
    let lines = pool.unusable.iter().map(|line| format!("\t{}\n", visible(line)));
    Some(format!("\nerrors: The pool is not open: {why}\n{}", lines.collect::<String>()))
}

fn errors(pool: &Pool, args: &Status) -> String {
    match pool.errors.count() {
        0 => "\nerrors: No known data errors\n".into(),
        n if !args.verbose => format!("\nerrors: {n} data errors, use '-v' for a list\n"),
        _ => {
            let list = pool.errors.lines().into_iter().map(|e| format!("        {}\n", visible(&e)));
            format!(
                "\nerrors: Permanent errors have been detected in the following files:\n\n{}",
                list.collect::<String>()
            )
        }
    }
}
