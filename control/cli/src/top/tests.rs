//! The page drawn into terminals of several sizes, with names that nobody wishes for.

use super::draw::draw;
use super::page::{Page, Press, View};
use api::analytics::{Data, Key, Part, Point};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use ratatui_core::text::Span;

const SIZES: [(u16, u16); 3] = [(80, 24), (40, 10), (200, 60)];
/// Smaller ones draw what they can, and nothing breaks.
const TINY: [(u16, u16); 7] = [(1, 1), (2, 3), (5, 2), (9, 9), (20, 4), (300, 3), (3, 100)];
const NOW: u64 = 1_795_478_400;

fn hostile() -> Vec<String> {
    vec![
        "<script>alert(1)</script>&amp;".into(),
        "iqn.2001-04.com.example:\u{202e}gpj.exe\u{2066}".into(),
        "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\nc\u{9b}31m".into(),
        "データベース・サーバー".repeat(12),
        "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(40),
        "👩‍👩‍👧‍👦 \u{200b}\u{feff}\u{ad}".into(),
        "x".repeat(255),
        "]\\[= ".into(),
        String::new(),
    ]
}

fn point(sample: u64, parts: Vec<(Key, u64)>) -> Point {
    let value = parts.iter().map(|(_, value)| value).sum();
    let parts = parts.into_iter().map(|(key, value)| Part { key, value, sum: value }).collect();
    Point { sample, samples: 1, value, sum: value, min: value, max: value, parts }
}

/// Samples of the last minutes for all that the page shows.
fn feed(page: &mut Page) {
    for name in page.wanted() {
        let parts = |second: u64| -> Vec<(Key, u64)> {
            match name.rsplit_once('[').map(|(_, by)| by) {
                Some("latency]") => vec![(Key::Range(2_000_000, 4_000_000), 500 + second % 7 * 100)],
                Some("size]") => {
                    (0..20).map(|n| (Key::Range(4_096 << n, 5_120 << n), second * n % 90)).collect()
                }
                Some("client]") => {
                    let names = hostile().into_iter().enumerate();
                    names
                        .map(|(n, name)| (Key::Text(name), 900 - n as u64 * 100))
                        .chain([(Key::Other, 1)])
                        .collect()
                }
                _ => vec![(Key::Other, 65_536_000)],
            }
        };
        let points = (NOW - 300..=NOW).map(|second| point(second, parts(second))).collect();
        let (unit, scale) = match name.as_str() {
            bytes if bytes.contains(".bytes") => ("bytes/s", ""),
            by if by.ends_with("[latency]") => ("operations/s", "nanoseconds"),
            by if by.ends_with("[size]") => ("operations/s", "bytes"),
            _ => ("operations/s", ""),
        };
        let data = Data { name: name.clone(), unit: unit.into(), scale: scale.into(), points };
        page.take(&name, Ok(data));
    }
}

/// The lines of a terminal. Each cell holds nothing that acts, and each line is as wide as the terminal.
fn shown(page: &mut Page, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame.buffer_mut(), page)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut lines = Vec::new();
    for row in buffer.content.chunks(usize::from(width)) {
        let (mut line, mut taken) = (String::new(), 0);
        for (x, cell) in row.iter().enumerate() {
            let symbol = cell.symbol();
            assert!(!symbol.chars().any(acts), "{symbol:?} would act on a terminal");
            assert!(symbol.chars().count() <= 4, "{symbol:?} reaches into other lines");
            // What a wide character covers is not drawn.
            if x >= taken {
                taken = x + Span::raw(symbol).width();
                line.push_str(symbol);
            }
        }
        assert_eq!(taken, usize::from(width), "{line:?} is wider than the terminal");
        lines.push(line);
    }
    lines
}

fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn drilled() -> Page {
    let mut page = Page::new(Vec::new());
    feed(&mut page);
    page.press(Press::Enter);
    "operations by client".chars().for_each(|c| page.press(Press::Char(c)));
    page.press(Press::Enter);
    feed(&mut page);
    page
}

#[test]
fn layers_have_three_numbers_and_the_law_on_every_terminal() {
    for size in SIZES {
        let mut page = Page::new(Vec::new());
        let empty = shown(&mut page, size).join("\n");
        assert!(empty.contains("no sample yet") && empty.contains("iSCSI"), "{empty}");
        feed(&mut page);
        let lines = shown(&mut page, size);
        let row = lines.iter().find(|line| line.starts_with("iSCSI")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        // 3 ms each; so many at once as there are of 3 ms in a second.
        let operations = 500 + NOW % 7 * 100;
        let at_once = crate::calc::digits(operations as f64 * 0.003);
        assert!(words.contains(&"3") && words.contains(&"ms") && words.contains(&at_once.as_str()), "{row}");
        assert!(words.contains(&"65.5"), "{row}");
        assert!(lines[0].contains("cenote top  2026-11-24T00:00:00Z  live"), "{lines:?}");
        let keys = lines.last().unwrap();
        assert!(keys.starts_with("q end  Enter drill down"), "{keys}");
        assert_eq!(size.0 > 60, keys.contains("space pause"), "{keys}");
        // There is room for bars only where it is wide or high.
        assert_eq!(size.0 > 40, lines.iter().any(|line| line.contains('█')), "{lines:#?}");
    }
}

#[test]
fn hostile_names_are_shown_and_act_on_nothing() {
    for size in SIZES {
        let mut page = drilled();
        let lines = shown(&mut page, size);
        let text = lines.join("\n");
        assert!(text.contains("<script>alert(1)") || size.0 < 60, "{text}");
        if size.1 > 20 {
            assert!(text.contains("\u{2039}U+001B\u{203a}[2J"), "{text}");
            assert!(text.contains("データ") && text.contains('…'), "{text}");
        }
        assert!(text.contains("by client") || text.contains("client"), "{text}");
        // The one with marks of direction, and what it becomes a filter of.
        page.press(Press::Down);
        page.press(Press::Down);
        shown(&mut page, size);
        page.press(Press::Enter);
        let menu = shown(&mut page, size).join("\n");
        assert!(menu.contains("only this") && menu.contains("iqn.2001-04"), "{menu}");
        assert_eq!(size.0 > 40, menu.contains("\u{2039}U+202E\u{203a}"), "{menu}");
        "by size".chars().for_each(|c| page.press(Press::Char(c)));
        page.press(Press::Enter);
        assert_eq!(
            page.wanted()[0],
            "iscsi.ops[client=iqn.2001-04.com.example:\u{202e}gpj.exe\u{2066}][size]"
        );
        feed(&mut page);
        let lines = shown(&mut page, size);
        assert!(lines.iter().any(|line| line.contains("2G")), "the highest bucket is first: {lines:#?}");
        assert_eq!(size.0 >= 60, lines.iter().any(|line| line.contains('░')), "a heat map: {lines:#?}");
    }
}

#[test]
fn nothing_breaks_on_terminals_that_are_hardly_any() {
    let all = SIZES.into_iter().chain(TINY);
    for size in all.clone() {
        for mut page in [Page::new(Vec::new()), drilled()] {
            shown(&mut page, size);
            for key in
                [Press::Down, Press::End, Press::Enter, Press::PageDown, Press::Char('x'), Press::Escape]
            {
                page.press(key);
                shown(&mut page, size);
            }
            page.press(Press::Char('?'));
            shown(&mut page, size);
            page.press(Press::Escape);
            page.take("iscsi.ops[client]", Err("cannot read \u{1b}[31m".into()));
            shown(&mut page, size);
        }
        let names = ["iscsi.ops[client]", "io.ops[size]", "arc.size", "nbd.ops", "fs.ops[latency]"];
        let mut page = Page::new(names.map(|name| name.parse().unwrap()).to_vec());
        feed(&mut page);
        for _ in names {
            shown(&mut page, size);
            page.press(Press::Tab);
        }
        assert!(matches!(page.view(), View::Graphs { focus: 0, .. }));
    }
    // The same page on terminals that grow and shrink.
    let mut page = drilled();
    all.for_each(|size| drop(shown(&mut page, size)));
}

#[test]
fn a_list_is_scrolled_to_what_is_chosen_and_says_so() {
    let mut page = drilled();
    page.press(Press::Up);
    let lines = shown(&mut page, (80, 14));
    let heading = lines.iter().find(|line| line.contains("SHARE")).unwrap();
    assert!(heading.contains("of 10"), "{heading}");
    assert!(lines.iter().any(|line| line.trim_end().ends_with("other")), "{lines:#?}");
    page.press(Press::Char(' '));
    assert!(shown(&mut page, (80, 14))[0].contains(" paused "));
    page.press(Press::Left);
    assert!(shown(&mut page, (80, 14))[0].contains("2026-11-23T23:59:5"), "{:?}", page.held);
}
