//! The live page on a terminal of any size.
//!
//! ```text
//!   cenote top  2026-11-26T10:10:14Z  live
//!   layers ▸ nbd.ops[client]
//!   …                                       the layers, graphs, a menu, or what the keys are
//!   what could not be told, if anything
//!   q end  Enter drill down …               as many as there is room for
//! ```
//!
//! Room that is short takes away the least first: the way, then charts, strips and shares; numbers and names stay.

use super::history::{Rank, Series};
use super::law::Numbers;
use super::layers::LAYERS;
use super::menu::Menu;
use super::page::{Graph, Page, View, WINDOW};
use super::strokes::{
    after, alarm, bars, below, bold, chosen, line, plain, right, shades, share_of, soft, top, width,
};
use crate::calc::digits;
use crate::text::visible::visible;
use api::analytics::{Key, time};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

/// Keys and what they do, the most needed first.
const KEYS: [(&str, &str); 9] = [
    ("q", "end"),
    ("Enter", "drill down"),
    ("Esc", "back"),
    ("b", "break down"),
    ("o", "open"),
    ("space", "pause"),
    ("←→", "second"),
    ("↑↓", "choose"),
    ("?", "help"),
];
const KEYS_OF_MENU: [(&str, &str); 4] =
    [("Enter", "open"), ("Esc", "leave"), ("↑↓", "choose"), ("letters", "search")];
const HELP: [(&str, &str); 10] = [
    ("Enter", "drill down: of a layer, or of the part that is chosen only this, by something else"),
    ("b", "break the whole down by something else"),
    ("o  /", "open any statistic: choose, search, or write one, such as nbd.ops[op=read][size]"),
    ("Esc", "back to where that came from"),
    ("↑ ↓", "choose; also j k, PageUp, PageDown, Home, End"),
    ("space p", "pause: stand still at this second, and go on again"),
    ("← →", "the second before, the second after"),
    ("Tab", "the next of several statistics"),
    ("?  h", "this"),
    ("q", "end; also Ctrl-C"),
];
/// A chart has its scale beside it where there is so much room.
const SCALED: u16 = 40;

/// Draws all of it. The page learns how many rows its list has.
pub fn draw(buffer: &mut Buffer, page: &mut Page) {
    let all = buffer.area;
    head(buffer, top(all, 1), page);
    let has_way = all.height >= 8;
    if has_way {
        way(buffer, top(below(all, 1), 1), page);
    }
    let problem = page.problems.iter().next();
    let problem =
        problem.map(|(name, why)| if why.contains(name) { why.clone() } else { format!("{name}: {why}") });
    let foot = 1 + u16::from(problem.is_some());
    let body = below(all, 1 + u16::from(has_way));
    let body = Rect { height: body.height.saturating_sub(foot), ..body };
    if let (Some(problem), true) = (&problem, all.height > 3) {
        line(buffer, Rect { y: all.bottom() - 2, height: 1, ..all }, problem, alarm());
    }
    let keys: &[(&str, &str)] = if page.menu.is_some() { &KEYS_OF_MENU } else { &KEYS };
    if all.height > 2 {
        foot_line(buffer, Rect { y: all.bottom() - 1, height: 1, ..all }, keys);
    }
    if page.has_help {
        return help(buffer, body);
    }
    page.rows = match &page.menu {
        Some(shown) => menu(buffer, body, shown),
        None => match page.view() {
            View::Layers { chosen } => layers(buffer, body, page, *chosen),
            View::Graphs { all, focus } => graphs(buffer, body, page, all, *focus),
        },
    };
}

fn head(buffer: &mut Buffer, room: Rect, page: &Page) {
    let mut x = line(buffer, room, "cenote top", bold());
    let second = page.second().map_or("no sample yet".into(), api::http::date);
    x = line(buffer, after(room, x + 2), &second, plain());
    let (word, style) = if page.held.is_some() { (" paused ", chosen()) } else { ("live", soft()) };
    line(buffer, after(room, x + 2), word, style);
}

/// The end of the way matters most.
fn way(buffer: &mut Buffer, room: Rect, page: &Page) {
    let all: Vec<String> = page.way().iter().map(|name| visible(name)).collect();
    let mut from = 0;
    let text = |from: usize| {
        let shown = all[from..].join(" ▸ ");
        if from > 0 { format!("… ▸ {shown}") } else { shown }
    };
    while from + 1 < all.len() && width(&text(from)) > room.width {
        from += 1;
    }
    line(buffer, room, &text(from), soft());
}

fn foot_line(buffer: &mut Buffer, room: Rect, keys: &[(&str, &str)]) {
    let mut x = 0;
    for (key, does) in keys {
        let own = width(key) + 1 + width(does);
        if x + own > room.width {
            break;
        }
        let end = line(buffer, after(room, x), key, bold());
        line(buffer, after(room, end - room.x + 1), does, soft());
        x += own + 2;
    }
}

fn help(buffer: &mut Buffer, body: Rect) {
    for (at, (key, does)) in HELP.iter().enumerate() {
        let room = top(below(body, at as u16), 1);
        line(buffer, room, key, bold());
        line(buffer, after(room, 10), does, plain());
    }
}

/// How many entries there is room for.
fn menu(buffer: &mut Buffer, body: Rect, menu: &Menu) -> usize {
    line(buffer, top(body, 1), &menu.title, bold());
    let typed = top(below(body, 1), 1);
    let end = line(buffer, typed, "search: ", soft());
    // Its end is where one types.
    let room = after(typed, end - typed.x);
    let mut text = menu.typed.as_str();
    while width(text) + 1 > room.width
        && let Some(c) = text.chars().next()
    {
        text = &text[c.len_utf8()..];
    }
    let end = line(buffer, room, text, plain());
    line(buffer, after(typed, end - typed.x), " ", chosen());
    let list = below(body, 2);
    let (shown, place) = menu.shown();
    let rows = usize::from(list.height);
    let first = first_row(Some(place), shown.len(), rows);
    for (at, item) in shown.iter().skip(first).take(rows).enumerate() {
        let room = top(below(list, at as u16), 1);
        match &item.opens {
            None => line(buffer, room, &item.label, soft()),
            Some(_) if first + at == place => line(buffer, after(room, 2), &item.label, chosen()),
            Some(_) => line(buffer, after(room, 2), &item.label, plain()),
        };
    }
    if shown.is_empty() {
        line(buffer, top(list, 1), "nothing holds these words, and they are no statistic", soft());
    }
    rows
}

/// So that the chosen row is shown.
fn first_row(place: Option<usize>, all: usize, rows: usize) -> usize {
    let last = all.saturating_sub(rows);
    place.map_or(0, |place| (place + 1).saturating_sub(rows)).min(last)
}

fn layers(buffer: &mut Buffer, body: Rect, page: &Page, at: usize) -> usize {
    let is_narrow = body.width < 68;
    let heads = match is_narrow {
        true => ["OPS/S", "MB/S", "RESPONSE", "AT ONCE"].as_slice(),
        false => ["OPS/S", "MB/S", "SIZE", "RESPONSE", "UNDER WAY"].as_slice(),
    };
    let own = (body.width.saturating_sub(8) / heads.len() as u16).min(12);
    let strip = after(body, 8 + own * heads.len() as u16 + 2);
    let row = |at: u16| top(below(body, at), 1);
    let cells = |buffer: &mut Buffer, room: Rect, cells: &[&str], style| {
        for (n, cell) in cells.iter().enumerate() {
            let room = after(room, 8 + own * n as u16);
            right(buffer, Rect { width: own.min(room.width), ..room }, cell, style);
        }
    };
    line(buffer, row(0), "LAYER", soft());
    cells(buffer, row(0), heads, soft());
    let statistics = LAYERS.map(|layer| layer.statistics());
    for (n, (layer, statistics)) in LAYERS.iter().zip(&statistics).enumerate() {
        let room = row(1 + n as u16);
        let style = if n == at { chosen() } else { plain() };
        line(buffer, Rect { width: room.width.min(7), ..room }, layer.title, style);
        let [operations, bytes, size, response, under_way] =
            page.numbers(statistics).map_or(["-"; 5].map(String::from), Numbers::columns);
        match is_narrow {
            true => cells(buffer, room, &[&operations, &bytes, &response, &under_way], plain()),
            false => cells(buffer, room, &[&operations, &bytes, &size, &response, &under_way], plain()),
        }
        if strip.width >= 8 {
            let values = values(page, &statistics[0], strip.width);
            bars(buffer, Rect { x: strip.x, width: strip.width, ..room }, &values, most(&values));
        }
    }
    let rest = below(body, LAYERS.len() as u16 + 2);
    if let (Some(layer), Some(series)) =
        (LAYERS.get(at), page.series.get(&statistics[at.min(LAYERS.len() - 1)][0]))
        && rest.height >= 4
    {
        line(buffer, top(rest, 1), &format!("{}: operations per second", layer.title), bold());
        chart(buffer, top(below(rest, 1), 12), page, series);
    }
    LAYERS.len()
}

fn values(page: &Page, name: &str, seconds: u16) -> Vec<Option<u64>> {
    let series = page.series.get(name);
    series.zip(page.second()).map_or(Vec::new(), |(series, until)| series.values(until, usize::from(seconds)))
}

fn most(values: &[Option<u64>]) -> u64 {
    values.iter().flatten().copied().max().unwrap_or(0)
}

/// Each gets as much room as the others; where that is too little, the one that keys go to gets all.
fn graphs(buffer: &mut Buffer, body: Rect, page: &Page, all: &[Graph], focus: usize) -> usize {
    const LEAST: u16 = 6;
    let each = body.height / (all.len().max(1) as u16);
    if each < LEAST && all.len() > 1 {
        return all.get(focus).map_or(1, |own| graph(buffer, body, page, own, Some(true)));
    }
    let mut rows = 1;
    for (n, own) in all.iter().enumerate() {
        let room = top(below(body, each * n as u16), each);
        let has_focus = n == focus;
        let shown = graph(buffer, room, page, own, (all.len() > 1).then_some(has_focus));
        if has_focus {
            rows = shown;
        }
    }
    rows
}

/// A statistic: what it is, its figures, a chart, and its parts. `has_focus`: of several.
fn graph(buffer: &mut Buffer, room: Rect, page: &Page, graph: &Graph, has_focus: Option<bool>) -> usize {
    let mark = match has_focus {
        Some(true) => "▸ ",
        Some(false) => "  ",
        None => "",
    };
    line(buffer, top(room, 1), &format!("{mark}{}", graph.query.title()), bold());
    let (Some(series), Some(second)) = (page.series.get(&graph.name), page.second()) else {
        line(buffer, top(below(room, 1), 1), "no sample yet", soft());
        return 1;
    };
    line(buffer, top(below(room, 1), 1), &figures(series, second), plain());
    let mut rest = below(room, 2);
    let numbers = graph.companions().and_then(|names| page.numbers(&names));
    if let (Some(numbers), true) = (numbers, room.height >= 8) {
        let text = numbers.sentence();
        let text = if width(&text) > room.width { numbers.short() } else { text };
        line(buffer, top(rest, 1), &text, plain());
        rest = below(rest, 1);
    }
    if graph.query.breakdown.is_none() {
        chart(buffer, top(rest, 12), page, series);
        return 1;
    }
    let high = match rest.height {
        24.. => 6,
        14.. => 4,
        9.. => 2,
        7.. => 1,
        _ => 0,
    };
    chart(buffer, top(rest, high), page, series);
    list(buffer, below(rest, high), series, second, graph)
}

fn figures(series: &Series, second: u64) -> String {
    let unit = series.unit.as_str();
    let now = series.at(second).map_or("no sample".into(), |point| inner(point.value as f64, unit));
    let average = series.average(second, WINDOW).map(|average| format!(", average {}", inner(average, unit)));
    format!("{now}{}", average.unwrap_or_default())
}

/// A value with its unit.
fn inner(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => units::pretty_size(value as u64),
        "bytes/s" => format!("{}/s", units::pretty_size(value as u64)),
        "percent" => format!("{} %", digits(value)),
        "nanoseconds" => time(value as u64),
        "count" => digits(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// The same without `/s` and words, for columns.
fn short(value: u64, unit: &str) -> String {
    match unit {
        "bytes" | "bytes/s" => units::pretty_size(value),
        "percent" => format!("{value} %"),
        "nanoseconds" => time(value),
        _ => digits(value as f64),
    }
}

fn chart(buffer: &mut Buffer, room: Rect, page: &Page, series: &Series) {
    let Some(second) = page.second() else { return };
    if room.is_empty() {
        return;
    }
    let scale = if room.width >= SCALED { 9 } else { 0 };
    let drawn = after(room, scale);
    let values = series.values(second, usize::from(drawn.width));
    let most = most(&values);
    bars(buffer, drawn, &values, most);
    if scale > 0 {
        let label = Rect { width: scale - 1, height: 1, ..room };
        right(buffer, label, &short(most, &series.unit), soft());
        if room.height > 1 {
            right(buffer, Rect { y: room.bottom() - 1, ..label }, "0", soft());
        }
    }
}

/// The parts: what each is of this second, its share of it, its last seconds, and its name, which may be anything and so
/// stands where nothing follows. How many rows there is room for.
fn list(buffer: &mut Buffer, room: Rect, series: &Series, second: u64, graph: &Graph) -> usize {
    let has_share = room.width >= 30;
    let strip = if room.width >= 60 { (room.width / 3).min(60) } else { 0 };
    let ranks = series.ranks(second, WINDOW.max(usize::from(strip)));
    let place = graph.chosen.as_ref().and_then(|key| ranks.iter().position(|rank| rank.key == *key));
    let by = graph.query.breakdown.map_or("", probe::Breakdown::about);
    let rows = usize::from(room.height.saturating_sub(1));
    let first = first_row(place, ranks.len(), rows);
    let columns = |buffer: &mut Buffer, room: Rect, [value, share, name]: [&str; 3], style| {
        let mut x = 10;
        right(buffer, Rect { width: x.min(room.width), ..room }, value, style);
        if has_share {
            let cell = after(room, x);
            right(buffer, Rect { width: cell.width.min(8), ..cell }, share, style);
            x += 8;
        }
        x += 2 + if strip > 0 { strip + 2 } else { 0 };
        line(buffer, after(room, x), name, style);
    };
    let heading = match ranks.len() > rows && rows > 0 {
        true => format!("{by}  {}–{} of {}", first + 1, (first + rows).min(ranks.len()), ranks.len()),
        false => by.to_string(),
    };
    columns(buffer, top(room, 1), ["NOW", "SHARE", &heading], soft());
    let whole = series.at(second).map_or(0, |point| point.value);
    let most = ranks.iter().map(|rank| most(&rank.values)).max().unwrap_or(0);
    for (at, rank) in ranks.iter().skip(first).take(rows).enumerate() {
        let room = top(below(room, 1 + at as u16), 1);
        let now = rank.values.last().copied().flatten().unwrap_or(0);
        let share = share_of(now, whole).map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
        let name = rank.key.shown(&series.scale);
        let style = if place == Some(first + at) { chosen() } else { plain() };
        columns(buffer, room, [&short(now, &series.unit), &share, &name], style);
        if strip > 0 {
            let own = after(room, 20);
            strip_of(buffer, Rect { width: strip.min(own.width), ..own }, rank, most);
        }
    }
    if ranks.is_empty() {
        line(buffer, top(below(room, 1), 1), "nothing in this time", soft());
    }
    rows.max(1)
}

/// Ranges are rows of a heat map; all else has bars.
fn strip_of(buffer: &mut Buffer, room: Rect, rank: &Rank, most: u64) {
    match rank.key {
        Key::Range(..) => shades(buffer, room, &rank.values, most),
        _ => bars(buffer, room, &rank.values, most),
    }
}
