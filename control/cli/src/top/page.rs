//! What the live page shows, and what keys do to it. Pure: what it needs is asked for by others, and told to it.
//!
//! ```text
//!   layers ── Enter ─▶ menu ── Enter ─▶ graph ── Enter on a part ─▶ menu ── Enter ─▶ graph of that part …
//!     ▲                                   │  b: break it down otherwise    o: open another
//!     └────────────── Esc ────────────────┘  space, ←, →: stand still, at an earlier second
//! ```
//!
//! A part is chosen by what it is, not by its place: it stays chosen while others overtake it.

use super::history::Series;
use super::law::Numbers;
use super::layers::{LAYERS, Layer};
use super::menu::Menu;
use api::analytics::{Data, Key};
use probe::{Breakdown, Query};
use std::collections::BTreeMap;

/// Over how many seconds parts are ranked and averages are taken.
pub const WINDOW: usize = 60;

/// A key, as far as one means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    Up,
    Down,
    PageUp,
    PageDown,
    Left,
    Right,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Tab,
    Char(char),
    /// Ctrl-C, or a signal that asks to end.
    Interrupt,
    /// Only that it is drawn again: the terminal has another size.
    Redraw,
}

/// One statistic on the page.
#[derive(Clone, Debug)]
pub struct Graph {
    pub query: Query,
    pub name: String,
    pub chosen: Option<Key>,
}

#[derive(Clone, Debug)]
pub enum View {
    Layers {
        chosen: usize,
    },
    /// One under the other; keys go to one of them.
    Graphs {
        all: Vec<Graph>,
        focus: usize,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Page {
    /// From the first to the one that is shown.
    pub views: Vec<View>,
    pub menu: Option<Menu>,
    pub has_help: bool,
    /// The second that is shown while it stands still.
    pub held: Option<u64>,
    pub series: BTreeMap<String, Series>,
    /// Why a statistic is not told.
    pub problems: BTreeMap<String, String>,
    /// What a page of a list is.
    pub rows: usize,
    has_ended: bool,
}

impl Graph {
    pub fn new(query: Query) -> Graph {
        Graph { name: query.to_string(), query, chosen: None }
    }

    /// What the law needs of the same operations: by latency, and in bytes. Nothing for what is neither.
    pub fn companions(&self) -> Option<[String; 2]> {
        let layer = Layer::of(self.query.statistic.name)?;
        let of = |what: &str, breakdown| {
            let statistic = probe::Statistic::named(&format!("{}.{what}", layer.family))?;
            let knows = |by: Breakdown| statistic.breakdowns.contains(&by);
            let query = Query { statistic, filters: self.query.filters.clone(), breakdown };
            query.filters.iter().all(|filter| knows(filter.by)).then(|| query.to_string())
        };
        Some([of("ops", Some(Breakdown::Latency))?, of("bytes", None)?])
    }
}

impl Page {
    /// By layer, or these statistics one under the other.
    pub fn new(queries: Vec<Query>) -> Page {
        let view = match queries.is_empty() {
            true => View::Layers { chosen: 0 },
            false => View::Graphs { all: queries.into_iter().map(Graph::new).collect(), focus: 0 },
        };
        Page {
            views: vec![view],
            menu: None,
            has_help: false,
            held: None,
            series: BTreeMap::new(),
            problems: BTreeMap::new(),
            rows: 10,
            has_ended: false,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn view(&self) -> &View {
        const NONE: &View = &View::Layers { chosen: 0 };
        self.views.last().unwrap_or(NONE)
    }

    /// The statistics that are shown, the first first: it says which second it is.
    pub fn wanted(&self) -> Vec<String> {
        let mut all: Vec<String> = match self.view() {
            View::Layers { .. } => LAYERS.iter().flat_map(|layer| layer.statistics()).collect(),
            View::Graphs { all, .. } => {
                let companions = all.iter().filter_map(Graph::companions).flatten();
                all.iter().map(|graph| graph.name.clone()).chain(companions).collect()
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        all
    }

    /// What was told of a statistic; what is not shown any more is forgotten.
    pub fn take(&mut self, name: &str, told: Result<Data, String>) {
        let wanted = self.wanted();
        self.series.retain(|name, _| wanted.contains(name));
        self.problems.retain(|name, _| wanted.contains(name));
        match told {
            Ok(data) => {
                self.problems.remove(name);
                self.series.entry(name.into()).or_default().take(data);
            }
            Err(why) => drop(self.problems.insert(name.into(), why)),
        }
    }

    /// The newest second that all which is shown has, if there is one.
    fn newest(&self) -> Option<u64> {
        let wanted = self.wanted();
        wanted.iter().filter_map(|name| self.series.get(name)?.last()).min()
    }

    /// The second that is shown.
    pub fn second(&self) -> Option<u64> {
        self.held.or_else(|| self.newest())
    }

    /// The three numbers of two statistics at the second that is shown.
    pub fn numbers(&self, [operations, bytes]: &[String; 2]) -> Option<Numbers> {
        let second = self.second()?;
        let of = |name| self.series.get(name).and_then(|series| series.at(second));
        Some(Numbers::of(of(operations)?, of(bytes)?))
    }

    /// The names of the views, from the first to the one that is shown.
    pub fn way(&self) -> Vec<String> {
        let title = |view: &View| match view {
            View::Layers { .. } => "layers".to_string(),
            View::Graphs { all, .. } => match &all[..] {
                [one] => one.name.clone(),
                all => format!("{} statistics", all.len()),
            },
        };
        self.views.iter().map(title).collect()
    }

    pub fn press(&mut self, key: Press) {
        match key {
            Press::Interrupt => self.has_ended = true,
            Press::Redraw => {}
            _ if self.has_help => self.has_help = false,
            _ if self.menu.is_some() => self.press_in_menu(key),
            Press::Char('q') => self.has_ended = true,
            Press::Char('?' | 'h') => self.has_help = true,
            Press::Char(' ' | 'p') => self.hold(),
            Press::Left => self.step(-1),
            Press::Right => self.step(1),
            Press::Char('o' | '/') => self.menu = Some(Menu::of_everything()),
            Press::Escape | Press::Backspace => drop(self.back()),
            key => self.press_in_view(key),
        }
    }

    /// `false`: this is the first view.
    fn back(&mut self) -> bool {
        let goes = self.views.len() > 1;
        if goes {
            self.views.pop();
        }
        goes
    }

    fn hold(&mut self) {
        self.held = match self.held {
            Some(_) => None,
            None => self.newest(),
        };
    }

    /// Stands still at a second before, or at the first that there is, or at one after; at the newest it goes on.
    fn step(&mut self, by: i64) {
        let (Some(second), Some(newest)) = (self.second(), self.newest()) else { return };
        let wanted = self.wanted();
        let first = wanted.first().and_then(|name| self.series.get(name)?.first()).unwrap_or(second);
        let second = second.saturating_add_signed(by).max(first);
        self.held = (by < 0 || second < newest).then_some(second);
    }

    fn press_in_menu(&mut self, key: Press) {
        let Some(menu) = &mut self.menu else { return };
        match key {
            Press::Up => menu.go(-1),
            Press::Down | Press::Tab => menu.go(1),
            Press::PageUp => menu.go(-(self.rows as isize)),
            Press::PageDown => menu.go(self.rows as isize),
            Press::Home => menu.go(isize::MIN),
            Press::End => menu.go(isize::MAX),
            Press::Char(c) => menu.write(c),
            Press::Backspace if menu.erase() => {}
            Press::Escape | Press::Backspace => self.menu = None,
            Press::Enter => {
                if let Some(query) = menu.chosen() {
                    self.menu = None;
                    self.open(query);
                }
            }
            Press::Left | Press::Right | Press::Interrupt | Press::Redraw => {}
        }
    }

    fn open(&mut self, query: Query) {
        self.views.push(View::Graphs { all: vec![Graph::new(query)], focus: 0 });
    }

    fn press_in_view(&mut self, key: Press) {
        let rows = self.rows as isize;
        let by = match key {
            Press::Up | Press::Char('k') => -1,
            Press::Down | Press::Char('j') => 1,
            Press::PageUp => -rows,
            Press::PageDown => rows,
            Press::Home => isize::MIN,
            Press::End => isize::MAX,
            _ => 0,
        };
        let ranks = match self.view() {
            View::Graphs { all, focus } => all.get(*focus).map(|graph| self.parts(graph)).unwrap_or_default(),
            View::Layers { .. } => Vec::new(),
        };
        let Some(view) = self.views.last_mut() else { return };
        match view {
            View::Layers { chosen } => {
                let last = LAYERS.len() - 1;
                *chosen = chosen.saturating_add_signed(by).min(last);
                if matches!(key, Press::Enter | Press::Char('b')) {
                    let Layer { title, family } = LAYERS[*chosen];
                    self.menu = Some(Menu::of_layer(title, family));
                }
            }
            View::Graphs { all, focus } => {
                if key == Press::Tab {
                    *focus = (*focus + 1) % all.len().max(1);
                }
                let Some(graph) = all.get_mut(*focus) else { return };
                if by != 0 && !ranks.is_empty() {
                    let place = graph.chosen.as_ref().and_then(|key| ranks.iter().position(|own| own == key));
                    let place = match place {
                        Some(place) => place.saturating_add_signed(by).min(ranks.len() - 1),
                        None if by < 0 => ranks.len() - 1,
                        None => 0,
                    };
                    graph.chosen = Some(ranks[place].clone());
                }
                let scale = self.series.get(&graph.name).map_or("", |series| &series.scale);
                self.menu = match key {
                    Press::Enter => {
                        Some(Menu::of(&graph.query, graph.chosen.as_ref().map(|key| (key, scale))))
                    }
                    Press::Char('b') => Some(Menu::of(&graph.query, None)),
                    _ => None,
                };
            }
        }
    }

    /// What a graph's list has now, in its order.
    fn parts(&self, graph: &Graph) -> Vec<Key> {
        let (Some(second), Some(series)) = (self.second(), self.series.get(&graph.name)) else {
            return Vec::new();
        };
        series.ranks(second, WINDOW).into_iter().map(|rank| rank.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Part, Point};

    fn data(name: &str, from: u64, seconds: u64, parts: &[(&str, u64)]) -> Data {
        let part =
            |(key, value): &(&str, u64)| Part { key: Key::Text((*key).into()), value: *value, sum: *value };
        let value = parts.iter().map(|(_, value)| value).sum();
        let point = |sample| Point {
            sample,
            samples: 1,
            value,
            sum: value,
            min: value,
            max: value,
            parts: parts.iter().map(part).collect(),
        };
        let points = (from..from + seconds).map(point).collect();
        Data { name: name.into(), unit: "operations/s".into(), scale: String::new(), points }
    }

    fn shown(page: &Page) -> String {
        page.way().join(" > ")
    }

    #[test]
    fn a_layer_is_drilled_down_to_one_part_and_back() {
        let mut page = Page::new(Vec::new());
        assert_eq!(page.wanted()[..2], ["iscsi.ops[latency]".to_string(), "iscsi.bytes".into()]);
        [Press::Down, Press::Enter].into_iter().for_each(|key| page.press(key));
        "operations by client".chars().for_each(|c| page.press(Press::Char(c)));
        page.press(Press::Enter);
        assert_eq!(shown(&page), "layers > nbd.ops[client]");
        assert_eq!(page.wanted(), ["nbd.ops[client]", "nbd.ops[latency]", "nbd.bytes"]);
        page.take("nbd.ops[client]", Ok(data("nbd.ops[client]", 100, 5, &[("a", 1), ("b", 7), ("c", 3)])));
        // The greatest is first; it stays chosen when another overtakes it.
        page.press(Press::Down);
        page.take("nbd.ops[client]", Ok(data("nbd.ops[client]", 105, 20, &[("a", 50)])));
        page.press(Press::Enter);
        assert!(page.menu.as_ref().unwrap().title.ends_with(": b"), "{:?}", page.menu);
        "by size".chars().for_each(|c| page.press(Press::Char(c)));
        page.press(Press::Enter);
        assert_eq!(shown(&page), "layers > nbd.ops[client] > nbd.ops[client=b][size]");
        assert_eq!(
            page.wanted()[1..],
            ["nbd.ops[client=b][latency]".to_string(), "nbd.bytes[client=b]".into()]
        );
        page.press(Press::Char('b'));
        page.press(Press::Escape);
        assert!(page.menu.is_none() && page.views.len() == 3);
        [Press::Escape, Press::Backspace, Press::Escape].into_iter().for_each(|key| page.press(key));
        assert_eq!(shown(&page), "layers");
        page.press(Press::Char('q'));
        assert!(page.has_ended());
    }

    #[test]
    fn time_stands_still_and_goes_on() {
        let mut page = Page::new(vec!["io.ops[disk]".parse().unwrap()]);
        page.press(Press::Char(' '));
        assert_eq!((page.held, page.second()), (None, None), "there is nothing to stand at");
        for name in page.wanted() {
            page.take(&name, Ok(data(&name, 100, 10, &[("a", 1)])));
        }
        page.press(Press::Left);
        page.press(Press::Left);
        assert_eq!(page.held, Some(107));
        for name in page.wanted() {
            page.take(&name, Ok(data(&name, 110, 10, &[("a", 1)])));
        }
        assert_eq!(page.second(), Some(107));
        (0..50).for_each(|_| page.press(Press::Left));
        assert_eq!(page.second(), Some(100), "not before what there is");
        (0..50).for_each(|_| page.press(Press::Right));
        assert_eq!((page.held, page.second()), (None, Some(119)));
        page.press(Press::Char('p'));
        assert_eq!(page.held, Some(119));
        page.press(Press::Char('p'));
        assert_eq!(page.held, None);
    }

    #[test]
    fn several_are_under_one_another_and_what_fails_says_why() {
        let mut page = Page::new(["io.ops[disk]", "arc.size"].map(|name| name.parse().unwrap()).to_vec());
        assert_eq!(page.wanted(), ["io.ops[disk]", "arc.size", "io.ops[latency]", "io.bytes"]);
        page.take("arc.size", Err("it is suspended".into()));
        assert_eq!(page.problems.len(), 1);
        page.press(Press::Tab);
        assert!(matches!(page.view(), View::Graphs { focus: 1, .. }));
        page.press(Press::Char('b'));
        page.press(Press::Enter);
        assert_eq!(page.wanted(), ["arc.size[component]"]);
        page.take("arc.size[component]", Ok(data("arc.size[component]", 1, 1, &[("data", 1)])));
        assert!(page.problems.is_empty() && page.series.len() == 1, "what is not shown is forgotten");
        // Keys that mean nothing, and one that means to end.
        page.press(Press::Char('?'));
        page.press(Press::Char('q'));
        assert!(!page.has_ended() && !page.has_help);
        page.press(Press::Interrupt);
        assert!(page.has_ended());
    }

    /// Stages are told of times alone: operations and bytes do not know them.
    #[test]
    fn the_law_is_asked_only_of_what_knows_its_filters() {
        let graph = |name: &str| Graph::new(name.parse().unwrap()).companions();
        assert_eq!(graph("nbd.time[stage]"), None);
        assert_eq!(graph("cpu.utilization"), None);
        assert_eq!(
            graph("iscsi.bytes[op=read][lun]").unwrap(),
            ["iscsi.ops[op=read][latency]".to_string(), "iscsi.bytes[op=read]".into()]
        );
    }
}
