//! What a page is drawn with: text that ends where its room does, bars, and strips of a column for each second.
//!
//! Nothing is drawn outside the room that is given, whatever the size of the terminal is.

use crate::text::visible::visible;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

/// From nothing to all, by eighths.
const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// From nothing to much.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];

pub fn plain() -> Style {
    Style::new()
}

pub fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub fn soft() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub fn chosen() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

pub fn filled() -> Style {
    Style::new().fg(Color::Cyan)
}

pub fn alarm() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

pub fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// One line at the top of `room`; longer text ends with `…`. Where it ended.
pub fn line(buffer: &mut Buffer, room: Rect, text: &str, style: Style) -> u16 {
    let room = room.intersection(buffer.area);
    if room.is_empty() {
        return room.x;
    }
    let text = visible(text);
    if width(&text) <= room.width {
        return buffer.set_stringn(room.x, room.y, text, usize::from(room.width), style).0;
    }
    let (end, _) = buffer.set_stringn(room.x, room.y, text, usize::from(room.width - 1), style);
    buffer.set_stringn(end, room.y, "…", 1, style).0
}

/// As [`line()`], at the right edge.
pub fn right(buffer: &mut Buffer, room: Rect, text: &str, style: Style) {
    let own = width(&visible(text)).min(room.width);
    line(buffer, Rect { x: room.right() - own, width: own, ..room }, text, style);
}

/// Without its first lines.
pub fn below(room: Rect, lines: u16) -> Rect {
    let lines = lines.min(room.height);
    Rect { y: room.y + lines, height: room.height - lines, ..room }
}

/// Its first lines.
pub fn top(room: Rect, lines: u16) -> Rect {
    Rect { height: room.height.min(lines), ..room }
}

/// Without its first columns.
pub fn after(room: Rect, columns: u16) -> Rect {
    let columns = columns.min(room.width);
    Rect { x: room.x + columns, width: room.width - columns, ..room }
}

/// The share of a part in a whole; of nothing there is none.
pub fn share_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Bars as high as `room`, the last value at its right edge; `most` fills it. Where there is no value is a gap.
pub fn bars(buffer: &mut Buffer, room: Rect, values: &[Option<u64>], most: u64) {
    let room = room.intersection(buffer.area);
    let columns = values.iter().rev().zip((room.x..room.right()).rev());
    for (value, x) in columns {
        let Some(value) = value.filter(|_| most > 0) else { continue };
        let whole = u64::from(room.height) * 8;
        let eighths =
            (u128::from(value) * u128::from(whole)).div_ceil(u128::from(most)).min(u128::from(whole)) as u64;
        for (up, y) in (room.y..room.bottom()).rev().enumerate() {
            let own = eighths.saturating_sub(up as u64 * 8).min(8);
            if own > 0 {
                buffer.set_stringn(x, y, BARS[own as usize], 1, filled());
            }
        }
    }
}

/// One line of shades, as a row of a heat map.
pub fn shades(buffer: &mut Buffer, room: Rect, values: &[Option<u64>], most: u64) {
    let room = top(room, 1).intersection(buffer.area);
    if room.is_empty() || most == 0 {
        return;
    }
    for (value, x) in values.iter().rev().zip((room.x..room.right()).rev()) {
        let Some(value) = value else { continue };
        let shade = (u128::from(*value) * 4).div_ceil(u128::from(most)).min(4) as usize;
        buffer.set_stringn(x, room.y, SHADES[shade], 1, filled());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(buffer: &Buffer) -> Vec<String> {
        let rows = buffer.content.chunks(usize::from(buffer.area.width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>()).collect()
    }

    #[test]
    fn text_ends_where_its_room_does() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 2));
        assert_eq!(line(&mut buffer, Rect::new(0, 0, 5, 1), "abcdefgh", plain()), 5);
        right(&mut buffer, Rect::new(0, 1, 8, 1), "xyz", plain());
        assert_eq!(lines(&buffer), ["abcd…   ", "     xyz"]);
        // Two columns each: the second has no room beside the mark that more would follow.
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        line(&mut buffer, Rect::new(0, 0, 4, 1), "データ", plain());
        assert_eq!(buffer[(0, 0)].symbol(), "デ");
        assert_eq!(buffer[(2, 0)].symbol(), "…");
        // Outside of the terminal.
        line(&mut buffer, Rect::new(2, 7, 90, 9), "abc", plain());
        right(&mut buffer, Rect::new(0, 0, 0, 0), "abc", plain());
        bars(&mut buffer, Rect::new(0, 3, 9, 9), &[Some(1)], 1);
    }

    #[test]
    fn bars_and_shades_stand_at_the_right_edge() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        let all = buffer.area;
        bars(&mut buffer, all, &[Some(16), None, Some(4), Some(0), Some(u64::MAX)], 16);
        assert_eq!(lines(&buffer), [" █   █", " █ ▄ █"]);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        let all = buffer.area;
        shades(&mut buffer, all, &[Some(9), Some(1), None, Some(8)], 8);
        assert_eq!(lines(&buffer), ["░ █"]);
        bars(&mut buffer, all, &[Some(1)], 0);
    }
}
