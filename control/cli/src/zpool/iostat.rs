//! `zpool iostat`: the differences of counters between two looks, or since the pool was opened.

use super::iostat_layout::{Layout, Row};
use super::list_vdevs::{CLASSES, is_of};
use super::{pools, repeat_after};
use crate::args::zpool::Iostat;
use crate::session::{Failure, Outcome, Session};
use crate::text::vdev_name::{name_width, vdev_name};
use api::{Class, Flushes, IoClass, IoKind, Pool, Vdev, VdevStats};

/// Names take at least so much, and what does not fit beside the numbers is not waited for.
const NAME_MIN: usize = 10;
const NAME_MAX: usize = 42;

pub(super) fn run(session: &mut Session<'_>, args: &Iostat) -> Outcome {
    let mut before: Vec<Pool> = Vec::new();
    let mut shown = 0u64;
    let (_, repetition) = crate::args::tail::split(&args.words).map_err(Failure::Usage)?;
    let omit_first = args.omit_first && repetition.is_some();
    repeat_after(session, &args.words, args.stamp, omit_first, |session, names, first| {
        let now = pools(session, names)?;
        if args.json {
            session.print(&super::iostat_json::document(&now, args))?;
        } else if now.is_empty() {
            if names.is_empty() {
                session.complain("no pools available");
            }
        } else if !(first && omit_first) {
            let header = shown == 0 || now.len() != before.len() || (args.verbose && !args.header_once);
            session.print(&render(&now, &before, args, header))?;
            shown += 1;
        }
        before = now;
        Ok(())
    })
}

pub(super) fn render(now: &[Pool], before: &[Pool], args: &Iostat, header: bool) -> String {
    let layout = Layout::of(args);
    let width = now.iter().map(|p| width(p, args)).max().unwrap_or(0).clamp(NAME_MIN, NAME_MAX);
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
        if let Some(root) = &pool.vdevs {
            view.add(&mut text, root, old.and_then(|p| p.vdevs.as_ref()), 0);
            if args.verbose {
                view.add_below(&mut text, root, old.and_then(|p| p.vdevs.as_ref()));
            }
        }
        if args.verbose && !layout.is_histogram() && !args.scripted {
            text += &layout.dashes(width);
        }
    }
    if now.len() > 1 && !args.verbose && !layout.is_histogram() && !args.scripted {
        text += &layout.dashes(width);
    }
    text
}

fn width(pool: &Pool, args: &Iostat) -> usize {
    match &pool.vdevs {
        Some(root) if args.verbose => name_width(root, &pool.name, args.style, 0),
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

    fn add_tree(&self, text: &mut String, vdev: &Vdev, old: Option<&Vdev>, depth: usize) {
        let before = old.and_then(|o| o.children.iter().find(|c| c.guid == vdev.guid));
        self.add(text, vdev, before, depth);
        vdev.children.iter().for_each(|child| self.add_tree(text, child, before, depth + 2));
    }

    fn add(&self, text: &mut String, vdev: &Vdev, old: Option<&Vdev>, depth: usize) {
        let name = vdev_name(vdev, &self.pool.name, self.args.style);
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
