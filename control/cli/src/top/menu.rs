//! Menus: what a part can be drilled down to, and what there is to open.
//!
//! ```text
//!   of a part        only this · only this, by client …        the part becomes a filter
//!   of a graph       by client · by size … · without a breakdown
//!   of everything    each statistic, then each of its breakdowns
//! ```
//!
//! What is typed narrows a menu to the entries that hold it. Where it is a statistic itself it can be opened as it stands.

use crate::text::visible::visible;
use api::analytics::Key;
use probe::{Breakdown, Compare, Filter, Operand, Query, statistics};

/// An entry; a heading opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub label: String,
    pub opens: Option<Query>,
}

#[derive(Clone, Debug)]
pub struct Menu {
    pub title: String,
    items: Vec<Item>,
    pub typed: String,
    /// Among those that are shown and open something.
    chosen: usize,
    /// What is typed may be a statistic.
    takes_any: bool,
}

/// As much as may be typed.
const TYPED_MAX: usize = 400;

impl Menu {
    /// What a graph can become, and with a part of it what that part can.
    pub fn of(query: &Query, part: Option<(&Key, &str)>) -> Menu {
        let used = |by: Breakdown| query.filters.iter().any(|filter| filter.by == by);
        let all = query.statistic.breakdowns.iter().copied();
        let others: Vec<Breakdown> =
            all.filter(|by| Some(*by) != query.breakdown && (!used(*by) || by.is_range())).collect();
        let mut items = Vec::new();
        let mut title = query.title();
        if let Some((key, scale)) = part
            && let Some(own) = only(query, key)
        {
            title = format!("{}: {}", query.breakdown.map_or("", Breakdown::about), key.shown(scale));
            items.push(item("only this", Query { breakdown: None, ..own.clone() }));
            for by in &others {
                let query = Query { breakdown: Some(*by), ..own.clone() };
                items.push(item(&format!("only this, by {}", by.about()), query));
            }
            items.push(Item { label: "All of them".into(), opens: None });
        }
        for by in others {
            let query = Query { breakdown: Some(by), ..query.clone() };
            items.push(item(&format!("break down by {}", by.about()), query));
        }
        if query.breakdown.is_some() {
            items.push(item("without a breakdown", Query { breakdown: None, ..query.clone() }));
        }
        Menu::new(title, items, false)
    }

    /// What a layer shows: its operations and its bytes.
    pub fn of_layer(title: &str, family: &str) -> Menu {
        let mut items = Vec::new();
        for name in ["ops", "bytes"].map(|what| format!("{family}.{what}")) {
            items.extend(statistics().iter().filter(|row| row.name == name).flat_map(of_statistic));
        }
        Menu::new(title.into(), items, false)
    }

    /// All that there is.
    pub fn of_everything() -> Menu {
        let mut items = Vec::new();
        let mut grouping = "";
        for row in statistics() {
            if std::mem::replace(&mut grouping, row.grouping) != row.grouping {
                items.push(Item { label: row.grouping.into(), opens: None });
            }
            items.extend(of_statistic(row));
        }
        Menu::new("Open a statistic: choose, search, or write one".into(), items, true)
    }

    fn new(title: String, items: Vec<Item>, takes_any: bool) -> Menu {
        Menu { title: visible(&title), items, typed: String::new(), chosen: 0, takes_any }
    }

    /// What is shown: all, or what holds the typed words; and the place of the chosen entry in it.
    pub fn shown(&self) -> (Vec<Item>, usize) {
        let typed = self.typed.trim().to_lowercase();
        let mut shown: Vec<Item> = Vec::new();
        if self.takes_any
            && let Ok(query) = self.typed.trim().parse::<Query>()
        {
            shown.push(item(&format!("open {query}"), query));
        }
        let holds = |item: &&Item| {
            let name = item.opens.as_ref().map(Query::to_string).unwrap_or_default();
            let text = format!("{} {name}", item.label).to_lowercase();
            typed.split_whitespace().all(|word| text.contains(word))
        };
        match typed.is_empty() {
            true => shown.extend(self.items.iter().cloned()),
            false => {
                shown.extend(self.items.iter().filter(|item| item.opens.is_some()).filter(holds).cloned())
            }
        }
        let able = |(_, item): &(usize, &Item)| item.opens.is_some();
        let places: Vec<usize> = shown.iter().enumerate().filter(able).map(|(place, _)| place).collect();
        let place = places.get(self.chosen.min(places.len().saturating_sub(1))).copied().unwrap_or(0);
        (shown, place)
    }

    pub fn chosen(&self) -> Option<Query> {
        let (shown, place) = self.shown();
        shown.get(place)?.opens.clone()
    }

    /// Moves by so many entries; at the ends it stays.
    pub fn go(&mut self, by: isize) {
        let able = self.shown().0.iter().filter(|item| item.opens.is_some()).count();
        let last = able.saturating_sub(1);
        self.chosen = self.chosen.min(last).saturating_add_signed(by).min(last);
    }

    pub fn write(&mut self, c: char) {
        if !c.is_control() && self.typed.len() < TYPED_MAX {
            self.typed.push(c);
            self.chosen = 0;
        }
    }

    /// `false`: there was nothing to take away.
    pub fn erase(&mut self) -> bool {
        self.chosen = 0;
        self.typed.pop().is_some()
    }
}

fn item(label: &str, opens: Query) -> Item {
    Item { label: visible(label), opens: Some(opens) }
}

fn of_statistic(row: &'static probe::Statistic) -> Vec<Item> {
    let query = |breakdown| Query { statistic: row, filters: Vec::new(), breakdown };
    let mut items = vec![item(&format!("{}, costs {}", row.title, row.cost.name()), query(None))];
    for by in row.breakdowns {
        let query = query(Some(*by));
        items.push(item(&format!("{} by {}, costs {}", row.title, by.about(), query.cost().name()), query));
    }
    items
}

/// The query for one part alone. `None` for the rest that is not told apart.
pub fn only(query: &Query, part: &Key) -> Option<Query> {
    let by = query.breakdown?;
    let operand = match part {
        Key::Range(from, _) => Operand::Number(*from),
        Key::Text(word) => Operand::Word(word.clone()),
        Key::Other => return None,
    };
    let mut filters = query.filters.clone();
    filters.push(Filter { by, compare: Compare::Is, operand });
    Some(Query { statistic: query.statistic, filters, breakdown: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(menu: &Menu) -> Vec<String> {
        menu.shown().0.into_iter().map(|item| item.label).collect()
    }

    #[test]
    fn a_part_becomes_a_filter_and_what_is_used_is_not_offered_again() {
        let query: Query = "iscsi.ops[op=read][client]".parse().unwrap();
        let hostile = Key::Text("a]b\\\u{202e}[x".into());
        let menu = Menu::of(&query, Some((&hostile, "")));
        assert!(menu.title.contains("\u{2039}U+202E\u{203a}"), "{}", menu.title);
        let all = labels(&menu);
        assert_eq!((all[0].as_str(), all[1].as_str()), ("only this", "only this, by command"));
        assert!(
            !all.iter().any(|label| label.ends_with("by type of operation") || label.ends_with("by client"))
        );
        for item in menu.shown().0 {
            let Some(query) = item.opens else { continue };
            // What is opened by name is the same query.
            assert_eq!(query.to_string().parse::<Query>().unwrap(), query);
        }
        let by_size = menu.shown().0.into_iter().find(|item| item.label == "only this, by size").unwrap();
        assert_eq!(
            by_size.opens.unwrap().to_string(),
            "iscsi.ops[op=read][client=a\\]b\\\\\u{202e}[x][size]"
        );
        // A range may be filtered by again, and the rest cannot be.
        let ranged: Query = "iscsi.ops[size>=4K][lun]".parse().unwrap();
        assert!(labels(&Menu::of(&ranged, None)).contains(&"break down by size".to_string()));
        let rest = Menu::of(&ranged, Some((&Key::Other, "")));
        assert!(!labels(&rest).contains(&"only this".to_string()));
        let bucket = only(&"io.ops[size]".parse().unwrap(), &Key::Range(512 << 10, 640 << 10)).unwrap();
        assert_eq!(bucket.to_string(), "io.ops[size=512K]");
    }

    #[test]
    fn what_is_typed_narrows_a_menu_and_may_be_a_statistic() {
        let mut menu = Menu::of_everything();
        assert!(labels(&menu).len() > 100 && menu.chosen().unwrap().to_string() == "iscsi.ops");
        "latency nbd".chars().for_each(|c| menu.write(c));
        assert_eq!(menu.chosen().unwrap().to_string(), "nbd.ops[latency]");
        menu.go(-5);
        menu.go(1_000);
        assert!(menu.chosen().unwrap().to_string().starts_with("nbd."));
        while menu.erase() {}
        "nbd.ops[op=read][offset]".chars().for_each(|c| menu.write(c));
        assert_eq!(menu.chosen().unwrap().to_string(), "nbd.ops[op=read][offset]");
        menu.write('\u{1b}');
        assert!(!menu.typed.contains('\u{1b}'));
        "zzz".chars().for_each(|c| menu.write(c));
        assert_eq!((menu.chosen(), labels(&menu).len()), (None, 0));
        menu.go(1);
        for layer in super::super::layers::LAYERS {
            assert!(labels(&Menu::of_layer(layer.title, layer.family)).len() > 10, "{}", layer.title);
        }
    }
}
