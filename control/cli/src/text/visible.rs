//! Names, values and messages as a terminal may be given them.
//!
//! ```text
//!   names of files, values of properties, paths on labels ─▶ a cell, a name in a listing   visible
//!   whole messages and listings, whose lines are ours     ─▶ print, complain               visible_lines
//!   tables for programs (-H), JSON (-j)                   ─▶ as they are; JSON escapes by itself
//! ```
//!
//! What would move the cursor, change the terminal, turn what follows or not be seen at all is shown by its number, as the
//! web page shows it: `‹U+202E›`. Marks that stand above and below a letter are few, so that none reaches into other lines.

/// So many marks may stand on one letter; languages need no more.
const MARKS_MAX: usize = 3;

/// Of one name or value: what would end its line is shown by its number too.
pub fn visible(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        if is_hidden(c) {
            marks = 0;
            shown.push_str(&format!("\u{2039}U+{:04X}\u{203a}", u32::from(c)));
            continue;
        }
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if marks <= MARKS_MAX {
            shown.push(c);
        }
    }
    shown
}

/// Of lines that are laid out: they end and are indented as they are.
pub fn visible_lines(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|piece| match piece.strip_suffix(['\n', '\t']) {
            Some(words) => visible(words) + &piece[words.len()..],
            None => visible(piece),
        })
        .collect()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{00ad}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        // Of these terminals do not agree how wide they make what is before them.
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_mark(c: char) -> bool {
    let mut bytes = [0; 4];
    ratatui_core::text::Span::raw(&*c.encode_utf8(&mut bytes)).width() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_act_on_a_terminal_is_shown_by_its_number() {
        for (text, shown) in [
            ("tank/db", "tank/db"),
            ("<b>&amp;", "<b>&amp;"),
            ("a\u{1b}[2Jb", "a\u{2039}U+001B\u{203a}[2Jb"),
            ("a\nb\t\u{9b}", "a\u{2039}U+000A\u{203a}b\u{2039}U+0009\u{203a}\u{2039}U+009B\u{203a}"),
            ("x\u{202e}gpj", "x\u{2039}U+202E\u{203a}gpj"),
            (
                "\u{200b}\u{2066}\u{feff}\u{fe0f}",
                "\u{2039}U+200B\u{203a}\u{2039}U+2066\u{203a}\u{2039}U+FEFF\u{203a}\u{2039}U+FE0F\u{203a}",
            ),
            ("データ", "データ"),
            ("e\u{301}", "e\u{301}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        let heap = visible(&format!("z{}y", "\u{334}".repeat(200)));
        assert_eq!(heap, format!("z{}y", "\u{334}".repeat(MARKS_MAX)));
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(visible_lines("a\n\tb\n"), "a\n\tb\n");
        assert_eq!(
            visible_lines("\ta\u{1b}[2J\r\n\n"),
            "\ta\u{2039}U+001B\u{203a}[2J\u{2039}U+000D\u{203a}\n\n"
        );
        assert_eq!(visible_lines(""), "");
    }
}
