//! The table that goes into docs/performance.md.

use crate::cell::Cell;

/// One line for each cell, as a Markdown table.
pub fn render(cells: &[Cell]) -> String {
    let mut text = String::from(
        "| what | block | engine MiB/s | raw MiB/s | ratio | engine IOPS | engine CPU s/GiB | raw CPU s/GiB |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for cell in cells {
        text += &format!(
            "| {} | {} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} | {:.2} |\n",
            cell.name,
            units::pretty_size(cell.block),
            cell.engine.mib_per_second,
            cell.raw.mib_per_second,
            cell.ratio(),
            cell.engine.iops,
            cell.engine.cpu_per_gib,
            cell.raw.cpu_per_gib,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Figure;

    #[test]
    fn a_cell_is_a_line_with_its_ratio() {
        let side = |mib| Figure { mib_per_second: mib, iops: mib * 8.0, cpu_per_gib: 1.25 };
        let cell = Cell { name: "write".into(), block: 128 << 10, raw: side(1000.0), engine: side(750.0) };
        assert!(render(&[cell]).ends_with("| write | 128K | 750 | 1000 | 0.75 | 6000 | 1.25 | 1.25 |\n"));
    }
}
