//! `cenote arc`: the cache explained, or how it does from one look to the next.

use crate::args::{Arc, tail};
use crate::session::{Failure, Outcome, Session};
use crate::text::table::{Column, heading, line};
use crate::text::{date, json, number};
use api::{CacheDevices, CacheState, CachedKind, DeviceWear, Reply, Request};
use serde_json::{Map, json};
use std::fmt::Write;
use units::pretty_size;

/// After so many lines the headings come again.
const LINES: u64 = 20;

pub fn run(session: &mut Session<'_>, args: &Arc) -> Outcome {
    let (names, repeat) = tail::split(&args.words).map_err(Failure::Usage)?;
    if let Some(name) = names.first() {
        return Err(Failure::Usage(format!("'{name}' is not a number: say [INTERVAL [COUNT]]")));
    }
    let mut before = ask(session)?;
    let Some(repeat) = repeat else {
        let text = if args.json { document(&before, args.dwpd)? } else { summary(&before, args.dwpd) };
        return session.print(&text);
    };
    let mut shown = 0;
    while repeat.count.is_none_or(|count| shown < count) {
        std::thread::sleep(repeat.every);
        let now = ask(session)?;
        if args.json {
            session.print(&document(&now, args.dwpd)?)?;
        } else {
            let line = Since { now: &now, before: &before, seconds: repeat.every.as_secs_f64() }.line();
            session.print(&laid_out(&line, shown.is_multiple_of(LINES)))?;
        }
        (before, shown) = (now, shown + 1);
    }
    Ok(())
}

fn ask(session: &mut Session<'_>) -> Outcome<CacheState> {
    match session.ask(Request::Cache)? {
        Reply::Cache(state) => Ok(*state),
        _ => Err(Failure::Failed("the appliance answered something else".into())),
    }
}

fn document(state: &CacheState, dwpd: f64) -> Outcome<String> {
    let told = |e: serde_json::Error| Failure::Failed(format!("cannot show the cache as JSON: {e}"));
    let mut content = Map::new();
    content.insert("cache".into(), json!(serde_json::to_value(state).map_err(told)?));
    let endurance = state.wear.iter().map(|wear| {
        json!({
            "pool": wear.pool, "device": wear.device, "bytes_per_day": wear.bytes_per_day(), "dwpd": dwpd,
            "used_percent": wear.used_percent(dwpd), "again_percent": wear.again_percent(),
        })
    });
    content.insert("endurance".into(), endurance.collect());
    Ok(json::document("arc", "arc", content))
}

fn sum(state: &CacheState, of: fn(&CachedKind) -> u64) -> u64 {
    of(&state.data) + of(&state.metadata)
}

/// `part` of `whole` in percent; of nothing there is none.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

fn summary(state: &CacheState, dwpd: f64) -> String {
    let mut text = String::from("The cache of blocks in memory (ARC)\n\n");
    memory(&mut text, state);
    requests(&mut text, state);
    for devices in &state.devices {
        second_level(&mut text, devices);
    }
    if !state.wear.is_empty() {
        endurance(&mut text, &state.wear, dwpd);
    }
    text
}

fn row(text: &mut String, name: &str, what: &str) {
    let _ = writeln!(text, "  {name:<18}{what}");
}

fn memory(text: &mut String, state: &CacheState) {
    let size = pretty_size;
    let short = if state.limit < state.max {
        format!(", {} while memory is short", size(state.limit))
    } else {
        String::new()
    };
    row(text, "size", &format!("{} of at most {} (zfs_arc_max){short}", size(state.size), size(state.max)));
    for (name, kind) in [("  data", &state.data), ("  metadata", &state.metadata)] {
        let CachedKind { blocks, recent, frequent, .. } = *kind;
        let held = size(recent + frequent);
        let blocks = number::count(blocks, false);
        let lists = format!("{} came lately, {} kept", size(recent), size(frequent));
        row(text, name, &format!("{held} in {blocks} blocks: {lists}"));
    }
    let (blocks, cold) = (sum(state, |k| k.cold_blocks), sum(state, |k| k.cold));
    if blocks > 0 {
        let (blocks, full) = (number::count(blocks, false), sum(state, |k| k.cold_full));
        let times = full as f64 / cold.max(1) as f64;
        let text_of = format!("{} in {blocks} blocks: {} uncompressed, {times:.2}x", size(cold), size(full));
        row(text, "  compressed", &text_of);
    }
    if state.headers > 0 {
        row(text, "  headers", &format!("{} to know what is on cache devices", size(state.headers)));
    }
    row(text, "remembered", &format!("{} blocks that left", number::count(state.ghosts, false)));
}

fn requests(text: &mut String, state: &CacheState) {
    let _ = writeln!(text, "\n  since the daemon started, {} ago\n", number::duration(state.uptime));
    let right = |heading: &str| Column { heading: heading.into(), right: true, min: 9 };
    let name = Column { heading: "  blocks".into(), right: false, min: 18 };
    let columns = [name, right("WANTED"), right("THERE"), right("RATIO"), right("JOINED")];
    let cells = |name: &str, hits: u64, misses: u64, joined: Option<u64>| {
        let count = |n| number::count(n, false);
        let joined = joined.map_or_else(String::new, count);
        vec![format!("  {name}"), count(hits + misses), count(hits), percent(hits, hits + misses), joined]
    };
    let (data, metadata) = (&state.data, &state.metadata);
    let rows = [
        cells("data", data.hits, data.misses, Some(data.joined)),
        cells("metadata", metadata.hits, metadata.misses, Some(metadata.joined)),
        cells("data ahead", data.ahead_hits, data.ahead_misses, None),
        cells("metadata ahead", metadata.ahead_hits, metadata.ahead_misses, None),
    ];
    let widths = crate::text::table::widths(&columns, &rows);
    *text += &heading(&columns, &widths);
    for row in &rows {
        let _ = writeln!(text, "{}", line(&columns, &widths, row).trim_end());
    }
    let (ahead, used) = (sum(state, |k| k.ahead_misses), sum(state, |k| k.ahead_used));
    let (late, unused) = (sum(state, |k| k.ahead_late), sum(state, |k| k.ahead_unused));
    text.push('\n');
    let count = |n| number::count(n, false);
    row(
        text,
        "read ahead",
        &format!(
            "{} blocks: {} there in time, {} too late, {} fetched and never used",
            count(ahead),
            percent(used, ahead),
            percent(late, ahead),
            percent(unused, ahead)
        ),
    );
    let cold = sum(state, |k| k.cold_hits);
    if cold > 0 {
        let share = percent(cold, sum(state, |k| k.hits));
        row(text, "compressed", &format!("{} blocks of what was there, {share}", count(cold)));
    }
    let (evicted, bytes) = (sum(state, |k| k.evicted), sum(state, |k| k.evicted_bytes));
    row(text, "left", &format!("{} blocks of {}", count(evicted), pretty_size(bytes)));
    let again = sum(state, |k| k.recent_ghost_hits + k.frequent_ghost_hits);
    let misses = sum(state, |k| k.misses);
    row(
        text,
        "left and wanted",
        &format!(
            "{} blocks, {} of what was not there: a larger cache would have had them",
            count(again),
            percent(again, misses)
        ),
    );
    if state.refused > 0 {
        row(text, "too large", &format!("{} blocks", count(state.refused)));
    }
}

fn second_level(text: &mut String, devices: &CacheDevices) {
    let count = |n| number::count(n, false);
    let _ = writeln!(text, "\nCache devices of {}, since it was opened\n", devices.pool);
    let held = pretty_size(devices.data + devices.metadata);
    let of = format!("{} data, {} metadata", pretty_size(devices.data), pretty_size(devices.metadata));
    row(text, "hold", &format!("{held} in {} blocks: {of}", count(devices.blocks)));
    row(text, "headers", &format!("{} of memory", pretty_size(devices.headers)));
    let asked = devices.hits + devices.misses + devices.passed_by;
    let ratio = percent(devices.hits, asked);
    row(
        text,
        "reads",
        &format!("{} of {}, {ratio} of what was not in memory", count(devices.hits), count(asked)),
    );
    row(text, "read", &pretty_size(devices.read_bytes));
    row(
        text,
        "written",
        &format!(
            "{} in {} blocks, {} of them written over",
            pretty_size(devices.written_bytes),
            count(devices.fed),
            count(devices.evicted)
        ),
    );
    row(text, "found at import", &format!("{} blocks", count(devices.rebuilt)));
    let errors = [
        (devices.passed_by, "not asked, for the device does not answer"),
        (devices.read_errors, "errors of reads"),
        (devices.bad_checksums, "wrong checksums"),
        (devices.write_errors, "errors of writes"),
        (devices.no_memory, "times nothing was written for want of memory (l2arc_meta_percent)"),
        (devices.cut_short, "times no more was written because of l2arc_write_max"),
    ];
    for (n, what) in errors.into_iter().filter(|(n, _)| *n > 0) {
        row(text, "", &format!("{} {what}", count(n)));
    }
}

/// What was written to cache and log devices, against what they are made for. At first a rate says little.
fn endurance(text: &mut String, wear: &[DeviceWear], dwpd: f64) {
    let _ = writeln!(text, "\nWritten to cache and log devices, of {dwpd} drive writes per day\n");
    let column = |heading: &str, right| Column { heading: heading.into(), right, min: 0 };
    let headings = ["POOL", "DEVICE", "USE", "SIZE", "FOR", "WRITTEN", "PER DAY", "OF BUDGET", "READ AGAIN"];
    let columns: Vec<Column> =
        headings.iter().enumerate().map(|(i, heading)| column(heading, i > 2)).collect();
    let cells = |wear: &DeviceWear| {
        vec![
            wear.pool.clone(),
            wear.device.clone(),
            if wear.is_log { "log" } else { "cache" }.into(),
            pretty_size(wear.size),
            number::duration(wear.seconds),
            pretty_size(wear.written_bytes),
            pretty_size(wear.bytes_per_day()),
            if wear.size > 0 { format!("{:.1}%", wear.used_percent(dwpd)) } else { "-".into() },
            wear.again_percent().map_or_else(|| "-".into(), |percent| format!("{percent:.1}%")),
        ]
    };
    let rows: Vec<Vec<String>> = wear.iter().map(cells).collect();
    let widths = crate::text::table::widths(&columns, &rows);
    *text += &heading(&columns, &widths);
    for row in &rows {
        let _ = writeln!(text, "{}", line(&columns, &widths, row).trim_end());
    }
}

/// Two looks.
struct Since<'a> {
    now: &'a CacheState,
    before: &'a CacheState,
    seconds: f64,
}

impl Since<'_> {
    fn more(&self, of: impl Fn(&CacheState) -> u64) -> u64 {
        of(self.now).saturating_sub(of(self.before))
    }

    fn rate(&self, n: u64) -> String {
        number::count((n as f64 / self.seconds).round() as u64, false)
    }

    fn line(&self) -> Vec<String> {
        let hits = self.more(|s| sum(s, |k| k.hits));
        let misses = self.more(|s| sum(s, |k| k.misses));
        let ratio = |of: fn(&CacheState) -> &CachedKind| {
            let (hits, misses) = (self.more(|s| of(s).hits), self.more(|s| of(s).misses));
            percent(hits, hits + misses)
        };
        let ahead = self.more(|s| sum(s, |k| k.ahead_misses));
        let in_vain = self.more(|s| sum(s, |k| k.ahead_unused));
        let second = |of: fn(&CacheDevices) -> u64| self.more(|s| s.devices.iter().map(of).sum());
        let (l2_hits, l2_asked) = (second(|d| d.hits), second(|d| d.hits + d.misses + d.passed_by));
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        vec![
            date::sortable(clock.as_secs()).split_off(11),
            self.rate(hits + misses),
            percent(hits, hits + misses),
            ratio(|s| &s.data),
            ratio(|s| &s.metadata),
            self.rate(misses),
            self.rate(ahead),
            percent(in_vain, ahead),
            percent(l2_hits, l2_asked),
            pretty_size(self.now.size),
            pretty_size(self.now.limit),
        ]
    }
}

fn laid_out(cells: &[String], with_heading: bool) -> String {
    let names = [
        "TIME", "READS/S", "HIT", "DATA", "METADATA", "MISS/S", "AHEAD/S", "IN VAIN", "DEVICES", "SIZE",
        "LIMIT",
    ];
    let columns = names.map(|name| Column { heading: name.into(), right: true, min: 8 });
    let widths: Vec<usize> = columns.iter().map(|column| column.heading.len().max(column.min)).collect();
    let above = if with_heading { heading(&columns, &widths) } else { String::new() };
    above + &line(&columns, &widths, cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> CacheState {
        let data = CachedKind {
            blocks: 3000,
            recent: 100 << 20,
            frequent: 300 << 20,
            hits: 9000,
            misses: 1000,
            joined: 12,
            ahead_hits: 10,
            ahead_misses: 400,
            ahead_used: 300,
            ahead_late: 40,
            ahead_unused: 20,
            recent_ghost_hits: 40,
            frequent_ghost_hits: 10,
            evicted: 700,
            evicted_bytes: 90 << 20,
            cold_hits: 900,
            cold_blocks: 800,
            cold: 20 << 20,
            cold_full: 50 << 20,
            ..CachedKind::default()
        };
        let metadata = CachedKind { blocks: 10, recent: 1 << 20, hits: 500, ..CachedKind::default() };
        let devices = CacheDevices {
            pool: "tank".into(),
            blocks: 200,
            data: 20 << 20,
            hits: 30,
            misses: 70,
            bad_checksums: 2,
            ..CacheDevices::default()
        };
        CacheState {
            uptime: 3700,
            size: 421 << 20,
            limit: 512 << 20,
            max: 1 << 30,
            data,
            metadata,
            devices: vec![devices],
            ..CacheState::default()
        }
    }

    #[test]
    fn the_cache_is_explained() {
        let text = summary(&example(), 1.0);
        for part in [
            "  size              421M of at most 1G (zfs_arc_max), 512M while memory is short\n",
            "    data            400M in 2.93K blocks: 100M came lately, 300M kept\n",
            "    compressed      20M in 800 blocks: 50M uncompressed, 2.50x\n",
            "  compressed        900 blocks of what was there, 9.5%\n",
            "  data                  9.77K      8.79K      90.0%         12\n",
            "  data ahead              410         10       2.4%\n",
            "  read ahead        400 blocks: 75.0% there in time, 10.0% too late, 5.0% fetched and never used\n",
            "  left and wanted   50 blocks, 5.0% of what was not there: a larger cache would have had them\n",
            "Cache devices of tank, since it was opened\n",
            "  reads             30 of 100, 30.0% of what was not in memory\n",
            "                    2 wrong checksums\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let nothing = summary(&CacheState::default(), 1.0);
        assert!(nothing.contains("          0          0          -"), "{nothing}");
        assert!(
            !nothing.contains("Written to")
                && !nothing.contains("Cache devices")
                && !nothing.contains("short"),
            "{nothing}"
        );
    }

    #[test]
    fn what_was_written_is_told_against_a_budget() {
        let cache = DeviceWear {
            pool: "tank".into(),
            device: "/dev/nvme0n1".into(),
            is_log: false,
            size: 100 << 30,
            seconds: 43_200,
            written_bytes: 100 << 30,
            again_bytes: Some(250 << 30),
        };
        let log = DeviceWear { device: "/dev/sdc".into(), is_log: true, again_bytes: None, ..cache.clone() };
        let state = CacheState { wear: vec![cache, log], ..CacheState::default() };
        let text = summary(&state, 4.0);
        let told = |device: &str| {
            let line = text.lines().find(|line| line.contains(device)).unwrap_or_else(|| panic!("{text}"));
            line.split_whitespace().map(String::from).collect::<Vec<_>>()
        };
        assert!(text.contains("\nWritten to cache and log devices, of 4 drive writes per day\n"), "{text}");
        let cache = told("nvme0n1");
        assert_eq!(cache[..4], ["tank", "/dev/nvme0n1", "cache", "100G"]);
        assert_eq!(cache[cache.len() - 4..], ["100G", "200G", "50.0%", "250.0%"]);
        assert_eq!(told("sdc")[2], "log");
        assert!(
            text.lines().any(|line| line.contains("sdc") && line.ends_with(" -")),
            "a log is not read: {text}"
        );
        let document: serde_json::Value = serde_json::from_str(&document(&state, 4.0).unwrap()).unwrap();
        let told = &document["arc"]["endurance"][0];
        assert_eq!((&told["used_percent"], &told["dwpd"]), (&json!(50.0), &json!(4.0)), "{document}");
        assert_eq!(told["bytes_per_day"], json!(200u64 << 30));
    }

    #[test]
    fn a_line_tells_what_happened_between_two_looks() {
        let (before, mut now) = (example(), example());
        now.data.hits += 300;
        now.data.misses += 100;
        now.data.ahead_misses += 20;
        now.data.ahead_unused += 5;
        now.devices[0].hits += 50;
        now.devices[0].misses += 50;
        let line = Since { now: &now, before: &before, seconds: 2.0 }.line();
        assert_eq!(line[1..], ["200", "75.0%", "75.0%", "-", "50", "10", "25.0%", "50.0%", "421M", "512M"]);
        let text = laid_out(&line, true);
        let [heading, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!(heading.len(), line.len(), "{text}");
    }
}
