//! Columns as `zfs list` and `zpool list` lay them out.
//!
//! Cells are names and values that users choose: for people they are [`visible`]; programs, which ask without
//! headings (`-H`), get them as they are, as from OpenZFS.

use super::visible::visible;

/// A column: as wide as its heading, its `min` and its widest cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub heading: String,
    /// Numbers stand to the right.
    pub right: bool,
    pub min: usize,
}

/// The widths of columns with these rows.
pub fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let cells = |i: usize| rows.iter().filter_map(move |row| row.get(i)).map(|c| visible(c).chars().count());
    let widest =
        |(i, column): (usize, &Column)| cells(i).chain([column.heading.chars().count(), column.min]).max();
    columns.iter().enumerate().map(|c| widest(c).unwrap_or(0)).collect()
}

/// One line. What stands to the left in the last column is not padded.
pub fn line(columns: &[Column], widths: &[usize], cells: &[String]) -> String {
    let mut line = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = visible(cell);
        if i > 0 {
            line.push_str("  ");
        }
        if columns[i].right {
            line.push_str(&format!("{cell:>width$}"));
        } else if i + 1 == columns.len() {
            line.push_str(&cell);
        } else {
            line.push_str(&format!("{cell:<width$}"));
        }
    }
    line.push('\n');
    line
}

pub fn heading(columns: &[Column], widths: &[usize]) -> String {
    let headings: Vec<String> = columns.iter().map(|c| c.heading.clone()).collect();
    line(columns, widths, &headings)
}

/// The whole table; `scripted` has no heading, and tabs.
pub fn render(columns: &[Column], rows: &[Vec<String>], scripted: bool) -> String {
    if scripted {
        return rows.iter().map(|row| row.join("\t") + "\n").collect();
    }
    let widths = widths(columns, rows);
    rows.iter().fold(heading(columns, &widths), |text, row| text + &line(columns, &widths, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let column = |heading: &str, right, min| Column { heading: heading.into(), right, min };
        let columns = [column("NAME", false, 0), column("USED", true, 5), column("MOUNTPOINT", false, 0)];
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let rows = [row(["tank", "396K", "/tank"]), row(["tank/data", "1.02M", "-"])];
        let expected = "\
NAME        USED  MOUNTPOINT
tank        396K  /tank
tank/data  1.02M  -
";
        assert_eq!(render(&columns, &rows, false), expected);
        assert_eq!(render(&columns, &rows, true), "tank\t396K\t/tank\ntank/data\t1.02M\t-\n");
    }

    /// A value of a user's property cleared the screen on which it was listed, and made lines of what is not there.
    #[test]
    fn cells_act_on_no_terminal_and_make_no_lines() {
        let columns = ["NAME", "ORG.X:Y"].map(|h| Column { heading: h.into(), right: false, min: 0 });
        let rows =
            [vec!["tank".to_string(), "a\u{1b}[2J\nlake  b".to_string()], vec!["dust".into(), "c".into()]];
        let expected = "\
NAME  ORG.X:Y
tank  a\u{2039}U+001B\u{203a}[2J\u{2039}U+000A\u{203a}lake  b
dust  c
";
        assert_eq!(render(&columns, &rows, false), expected);
        assert_eq!(
            render(&columns, &rows[..1], true),
            "tank\ta\u{1b}[2J\nlake  b\n",
            "a program has to have the value"
        );
    }
}
