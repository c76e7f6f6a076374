//! `zpool iostat`: the differences of counters between two looks, or since the pool was opened.

use super::iostat_layout::{Layout, Row};
use super::list_vdevs::{CLASSES, is_of};
use super::{get_vdev, pools, repeat_after};
use crate::args::zpool::Iostat;
use crate::session::{Failure, Outcome, Session};
use crate::text::vdev_name::{name_width, shown_name, vdev_name};
use api::{Class, Flushes, IoClass, IoKind, Pool, Vdev, VdevStats};

/// Names take at least so much, and what does not fit beside the numbers is not waited for.
const NAME_MIN: usize = 10;
const NAME_MAX: usize = 42;

pub(super) fn run(session: &mut Session<'_>, args: &Iostat) -> Outcome {
    let mut before: Vec<Pool> = Vec::new();
    let mut shown = 0u64;
    let (_, repetition) = crate::args::tail::split(&args.words).map_err(Failure::Usage)?;
    let omit_first = args.omit_first && repetition.is_some();
    let mut chosen: Option<Chosen> = None;
    repeat_after(session, &args.words, args.stamp, omit_first, |session, names, first| {
        let chosen = match &mut chosen {
            Some(chosen) => chosen,
            none => none.insert(Chosen::of(session, names)?),
        };
        let now = pools(session, &chosen.pools)?;
        if args.json {
            session.print(&super::iostat_json::document(&now, args))?;
        } else if now.is_empty() {
            if names.is_empty() {
                session.complain("no pools available");
            }
        } else if !(first && omit_first) {
            let header = shown == 0 || now.len() != before.len() || (args.verbose && !args.header_once);
            session.print(&render(&now, &before, args, header, chosen.vdevs.as_deref()))?;
            shown += 1;
        }
        before = now;
        Ok(())
    })
}

/// What the words name: pools, or vdevs of one pool or of any.
struct Chosen {
    pools: Vec<String>,
    /// The guids of vdevs that alone are shown.
    vdevs: Option<Vec<u64>>,
}

impl Chosen {
    fn of(session: &mut Session<'_>, names: &[String]) -> Outcome<Chosen> {
        let plain = Chosen { pools: names.to_vec(), vdevs: None };
        if names.len() < 2 && !names.iter().any(|name| name.contains('/')) {
            return Ok(plain);
        }
        let all = pools(session, &[])?;
        if names.iter().all(|name| all.iter().any(|pool| pool.name == *name)) {
            return Ok(plain);
        }
        let find = |pools: &[Pool], name: &String| {
            let found = |pool: &Pool| Some((pool.name.clone(), get_vdev::find(pool, name)?));
            pools.iter().find_map(found)
        };
        if let Some(found) = names.iter().map(|name| find(&all, name)).collect::<Option<Vec<_>>>() {
            let (mut pools, vdevs): (Vec<String>, Vec<u64>) = found.into_iter().unzip();
            pools.sort();
            pools.dedup();
            return Ok(Chosen { pools, vdevs: Some(vdevs) });
        }
        let Some((pool, rest)) = names.split_first() else { return Ok(plain) };
        let own: Vec<Pool> = all.into_iter().filter(|p| p.name == *pool).collect();
        if own.is_empty() {
            return Err(Failure::Failed("Unable to parse pools/vdevs list.".into()));
        }
        let vdevs: Vec<u64> = rest.iter().filter_map(|name| find(&own, name)).map(|(_, guid)| guid).collect();
        if vdevs.len() < rest.len() {
            let unknown = rest.iter().filter(|name| find(&own, name).is_none());
            let lines: String = unknown.map(|name| format!("\n\t{name} (unknown)")).collect();
            return Err(Failure::Usage(format!(
                "Expected either a list of pools, or list of vdevs in \"{pool}\", but got:{lines}"
            )));
        }
        Ok(Chosen { pools: vec![pool.clone()], vdevs: Some(vdevs) })
    }
}

/// With vdevs that were asked for by name these alone, as if each was a tree of its own.
pub(super) fn render(
    now: &[Pool],
    before: &[Pool],
    args: &Iostat,
    header: bool,
    vdevs: Option<&[u64]>,
) -> String {
    let is_of_vdevs = vdevs.is_some();
    let is_verbose = args.verbose || is_of_vdevs;
    let layout = Layout::of(args, is_of_vdevs);
    let width = now.iter().map(|p| width(p, args, is_verbose)).max().unwrap_or(0).clamp(NAME_MIN, NAME_MAX);
    let mut text = String::new();
    if header && !args.scripted && !layout.is_histogram() {
        text += &layout.header(width, None);
    }
    for pool in now {
        let old = before.iter().find(|p| p.guid == pool.guid);
        let elapsed = pool.clock_ns.saturating_sub(old.map_or(0, |p| p.clock_ns));
        let view = View {
            pool,
            args,
            layout: &layout,
            width,
            seconds: elapsed as f64 / 1e9,
            since_open: old.is_none(),
        };
        if let (Some(root), Some(vdevs)) = (&pool.vdevs, vdevs) {
            view.add_chosen(&mut text, root, old.and_then(|p| p.vdevs.as_ref()), vdevs);
        } else if let Some(root) = &pool.vdevs {
            view.add(&mut text, root, old.and_then(|p| p.vdevs.as_ref()), 0);
            if args.verbose {
                view.add_below(&mut text, root, old.and_then(|p| p.vdevs.as_ref()));
            }
        }
        if is_verbose && !layout.is_histogram() && !args.scripted {
            text += &layout.dashes(width);
        }
    }
    if now.len() > 1 && !is_verbose && !layout.is_histogram() && !args.scripted {
        text += &layout.dashes(width);
    }
    text
}

fn width(pool: &Pool, args: &Iostat, is_verbose: bool) -> usize {
    match &pool.vdevs {
        Some(root) if is_verbose => name_width(root, &pool.name, args.style, 0),
        _ => pool.name.chars().count(),
    }
}

struct View<'a> {
    pool: &'a Pool,
    args: &'a Iostat,
    layout: &'a Layout,
    width: usize,
    /// Since the last look.
    seconds: f64,
    since_open: bool,
}

impl View<'_> {
    fn add_below(&self, text: &mut String, root: &Vdev, old: Option<&Vdev>) {
        let of_class = |class| root.children.iter().filter(move |t| is_of(t, class));
        of_class(Class::Normal).for_each(|top| self.add_tree(text, top, old, 2));
        // Spares do nothing.
        for (class, heading) in CLASSES.into_iter().filter(|(class, _)| *class != Class::Spare) {
            if of_class(class).next().is_some() {
                let line = if self.args.scripted || self.layout.is_histogram() {
                    "\n".into()
                } else {
                    self.layout.blank(heading, self.width)
                };
                *text += &line;
            }
            of_class(class).for_each(|top| self.add_tree(text, top, old, 2));
        }
    }

    fn add_chosen(&self, text: &mut String, root: &Vdev, old: Option<&Vdev>, vdevs: &[u64]) {
        let before = old.map(Vdev::walk).unwrap_or_default();
        for vdev in root.walk().into_iter().filter(|vdev| vdevs.contains(&vdev.guid)) {
            let before = before.iter().find(|other| other.guid == vdev.guid).copied();
            self.add(text, vdev, before, 0);
        }
    }

    fn add_tree(&self, text: &mut String, vdev: &Vdev, old: Option<&Vdev>, depth: usize) {
        let before = old.and_then(|o| o.children.iter().find(|c| c.guid == vdev.guid));
        self.add(text, vdev, before, depth);
        vdev.children.iter().for_each(|child| self.add_tree(text, child, before, depth + 2));
    }

    fn add(&self, text: &mut String, vdev: &Vdev, old: Option<&Vdev>, depth: usize) {
        let named = if self.args.scripted { vdev_name } else { shown_name };
        let name = named(vdev, &self.pool.name, self.args.style);
        let since = match old {
            Some(old) => difference(&vdev.stats, &old.stats),
            None => vdev.stats.clone(),
        };
        // Histograms since the pool was opened are counts, all else is per second.
        let is_total = self.layout.is_histogram() && self.since_open;
        // Of a pool that was opened a moment ago a rate would tell nothing.
        let scale =
            if is_total || (self.since_open && self.seconds < 1.0) { 1.0 } else { self.seconds.recip() };
        let row = Row { space: vdev.space, stats: &since, scale };
        *text += &self.layout.row(&name, depth, self.width, &row);
    }
}

fn difference(now: &VdevStats, old: &VdevStats) -> VdevStats {
    VdevStats {
        read: kind(&now.read, &old.read),
        write: kind(&now.write, &old.write),
        trim: kind(&now.trim, &old.trim),
        sync_read: class(&now.sync_read, &old.sync_read),
        sync_write: class(&now.sync_write, &old.sync_write),
        async_read: class(&now.async_read, &old.async_read),
        async_write: class(&now.async_write, &old.async_write),
        scrub: class(&now.scrub, &old.scrub),
        trim_class: class(&now.trim_class, &old.trim_class),
        rebuild: class(&now.rebuild, &old.rebuild),
        flush: flushes(&now.flush, &old.flush),
    }
}

fn kind(now: &IoKind, old: &IoKind) -> IoKind {
    IoKind {
        ops: now.ops.saturating_sub(old.ops),
        bytes: now.bytes.saturating_sub(old.bytes),
        total_wait: histogram(&now.total_wait, &old.total_wait),
        disk_wait: histogram(&now.disk_wait, &old.disk_wait),
    }
}

fn class(now: &IoClass, old: &IoClass) -> IoClass {
    IoClass {
        pending: now.pending,
        active: now.active,
        queue_wait: histogram(&now.queue_wait, &old.queue_wait),
        individual: histogram(&now.individual, &old.individual),
        aggregated: histogram(&now.aggregated, &old.aggregated),
    }
}

fn flushes(now: &Flushes, old: &Flushes) -> Flushes {
    Flushes {
        asked: now.asked.saturating_sub(old.asked),
        sent: now.sent.saturating_sub(old.sent),
        wait_ns: now.wait_ns.saturating_sub(old.wait_ns),
        wait: histogram(&now.wait, &old.wait),
    }
}

fn histogram(now: &[u64], old: &[u64]) -> Vec<u64> {
    let old = old.iter().copied().chain(std::iter::repeat(0));
    now.iter().zip(old).map(|(now, old)| now.saturating_sub(old)).collect()
}
