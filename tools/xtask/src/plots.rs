//! The pictures of `docs/performance.md` and of `docs/lab.md`, drawn from the tables that stand in them.
//!
//! ```text
//!   ![Memory](plots/memory.svg)            names a row of [`PLOTS`]
//!
//!   | what       | block | ratio |         the next table: label columns name a group of bars,
//!   | write+sync | 16K   | 0.45  |         a series column is one bar of each group
//!
//!   ![filesync](plots/lab-filesync.svg)    names a row of [`LAB`]
//!   | filesync | ... | lab's ratio |       the table whose first column has that name, wherever it stands: what the
//!                                          program prints is not parted by a picture
//! ```
//!
//! Quantities of one table differ by orders of magnitude, so no bar has an absolute length: [`Scale::Share`] draws each
//! value as its share of the best of its row, [`Scale::Ratio`] draws a ratio on a logarithmic axis with a line at 1.
//! The figures are printed beside the bars. [`check`] compares the files with what the tables give now.

use std::fmt::Write as _;

use crate::{Failure, Findings, root};

const DOCUMENT: &str = "docs/performance.md";
const LAB_DOCUMENT: &str = "docs/lab.md";
const DIRECTORY: &str = "docs/plots";

/// How long bars are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// The share of the largest value of the row: longer is better.
    Share,
    /// As `Share`, where less is better: the smallest value has the longest bar.
    Inverse,
    /// A ratio, from 1/64 to 64, logarithmic.
    Ratio,
}

struct Plot<'a> {
    name: &'a str,
    title: &'a str,
    labels: &'a [&'a str],
    series: &'a [&'a str],
    scale: Scale,
}

const PLOTS: &[Plot<'_>] = &[
    Plot {
        name: "memory",
        title: "Engine beside the bare file, in memory: throughput, ratio",
        labels: &["what", "block"],
        series: &["ratio"],
        scale: Scale::Ratio,
    },
    Plot {
        name: "disk",
        title: "Engine beside the bare file, on a disk with O_DIRECT: throughput, ratio",
        labels: &["what", "block"],
        series: &["ratio"],
        scale: Scale::Ratio,
    },
    Plot {
        name: "nbd",
        title: "NBD in memory: throughput, of the best of each row",
        labels: &["what"],
        series: &["cenote", "nbdkit file", "qemu-nbd"],
        scale: Scale::Share,
    },
    Plot {
        name: "iscsi",
        title: "iSCSI in memory: throughput, of the best of each row",
        labels: &["what"],
        series: &["cenote", "cenote by NBD", "tgtd"],
        scale: Scale::Share,
    },
    Plot {
        name: "flush",
        title: "10,000 small files on an array that obeys flushes: seconds, the shortest is the longest bar",
        labels: &["streams"],
        series: &["with flushes, s", "zfs_nocacheflush=1, s"],
        scale: Scale::Inverse,
    },
    Plot {
        name: "sync",
        title: "Synchronous writes: IOPS, of the best of each row",
        labels: &["synchronous write", "outstanding"],
        series: &[
            "raw file, fdatasync: IOPS",
            "logbias=latency: IOPS (x raw)",
            "logbias=throughput: IOPS (x raw)",
            "slog: IOPS (x raw)",
        ],
        scale: Scale::Share,
    },
    Plot {
        name: "tree",
        title: "A source tree on a mount: seconds, the shortest is the longest bar",
        labels: &["source tree, seconds"],
        series: &["cenote", "ext4", "xfs", "btrfs", "zfs-fuse"],
        scale: Scale::Inverse,
    },
    Plot {
        name: "file",
        title: "A large file on a mount: throughput, of the best of each row",
        labels: &["large file: MiB/s, at random /s"],
        series: &["cenote", "ext4", "xfs", "btrfs", "zfs-fuse"],
        scale: Scale::Share,
    },
    Plot {
        name: "warm-up",
        title: "Reads that memory and a cache device serve, by how fast it is fed: of the best of each row",
        labels: &["seconds"],
        series: &["8 MiB/s", "32 MiB/s", "166 MB/s"],
        scale: Scale::Share,
    },
];

/// Experiments, of each row of which the published ratio stands beside the lab's.
const LAB: &[&str] =
    &["filesync", "split", "blocks", "blocks-curve", "metadata", "warm-up", "warm-up-time", "elevator"];

/// Writes every picture anew.
pub fn draw() -> Result<bool, Failure> {
    std::fs::create_dir_all(root().join(DIRECTORY))?;
    for (file, svg) in pictures()? {
        std::fs::write(root().join(&file), svg)?;
        println!("{file}");
    }
    Ok(true)
}

/// A sentence for each picture that is not what its table gives.
pub fn check() -> Result<Findings, Failure> {
    let stale = |(file, svg): &(String, String)| {
        std::fs::read_to_string(root().join(file)).is_ok_and(|found| found == *svg).then_some(()).is_none()
    };
    let pictures = pictures()?;
    let found = pictures.iter().filter(|picture| stale(picture));
    Ok(found
        .map(|(file, _)| format!("{file} is not what its document says: run `cargo xtask plots`"))
        .collect())
}

/// Each file with its content.
fn pictures() -> Result<Vec<(String, String)>, Failure> {
    let document = std::fs::read_to_string(root().join(DOCUMENT))?;
    let lab = std::fs::read_to_string(root().join(LAB_DOCUMENT))?;
    let file = |name: &str| format!("{DIRECTORY}/{name}.svg");
    let performance = PLOTS.iter().map(|plot| Ok((file(plot.name), of_plot(plot, &document)?)));
    let lab = LAB.iter().map(|name| Ok((file(&format!("lab-{name}")), of_experiment(name, &lab)?)));
    performance.chain(lab).collect()
}

fn of_plot(plot: &Plot<'_>, document: &str) -> Result<String, Failure> {
    let table = table_after(document, &format!("](plots/{}.svg)", plot.name))
        .ok_or_else(|| format!("{DOCUMENT} has no picture plots/{}.svg with a table after it", plot.name))?;
    let groups = groups(plot, &table)?;
    Ok(svg(plot, &groups))
}

/// What an experiment's change brings: the document's figure and the lab's.
fn of_experiment(name: &str, document: &str) -> Result<String, Failure> {
    let (picture, head) = (format!("](plots/lab-{name}.svg)"), format!("\n| {name} |"));
    let at = document.find(&head).filter(|_| document.contains(&picture));
    let at = at.ok_or_else(|| format!("{LAB_DOCUMENT} has no picture plots/lab-{name}.svg, or no table"))?;
    let title = format!("{name}: what the change brings, as published and in the lab (1 is the line)");
    let plot = Plot {
        name,
        title: &title,
        labels: &[name],
        series: &["document's ratio", "lab's ratio"],
        scale: Scale::Ratio,
    };
    let table =
        table_after(&document[at..], "").ok_or_else(|| format!("{LAB_DOCUMENT} has no table {name}"))?;
    Ok(svg(&plot, &groups(&plot, &table)?))
}

/// The cells of the first table after a line that holds `mark`, with its head.
fn table_after(document: &str, mark: &str) -> Option<Vec<Vec<String>>> {
    let lines = document.lines().skip_while(|line| !line.contains(mark)).skip(1);
    let lines = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let table: Vec<Vec<String>> = lines.filter(|line| !line.starts_with("|-")).map(cells).collect();
    (table.len() > 1).then_some(table)
}

/// What one row shows: its label, and a value with its text for each series that has one.
struct Group {
    label: String,
    bars: Vec<Option<(f64, String)>>,
}

fn groups(plot: &Plot<'_>, table: &[Vec<String>]) -> Result<Vec<Group>, Failure> {
    let column = |wanted: &str| {
        let found = table[0].iter().position(|head| head == wanted);
        found.ok_or_else(|| format!("the table of plots/{}.svg has no column '{wanted}'", plot.name))
    };
    let labels = plot.labels.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    let series = plot.series.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let group = |row: &Vec<String>| Group {
        label: labels.iter().map(|at| cell(row, *at)).collect::<Vec<_>>().join(" "),
        bars: series.iter().map(|at| number(&cell(row, *at)).map(|value| (value, cell(row, *at)))).collect(),
    };
    Ok(table[1..].iter().map(group).collect())
}

/// The number a cell begins with: `48.6k/s`, `1982 MiB/s`, `13709 (0.66)`; none in `–`.
fn number(cell: &str) -> Option<f64> {
    let digits = cell.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(cell.len());
    let value: f64 = cell[..digits].parse().ok()?;
    Some(if cell[digits..].starts_with('k') { value * 1e3 } else { value })
}

/// Told apart also without colours, by their lightness.
const COLOURS: [&str; 5] = ["#0b5cad", "#e08a1e", "#6aa84f", "#9aa3ad", "#b04a5a"];
const LABELS: f64 = 250.0;
/// Characters that are sure to fit there; longer ones are smaller.
const LABEL_MAX: usize = 46;
const BARS: f64 = 400.0;
const WIDTH: f64 = LABELS + BARS + 120.0;
const BAR: f64 = 11.0;

/// The length of a bar as a share of the axis, with the values of its whole row.
fn length(scale: Scale, value: f64, row: &[f64]) -> f64 {
    let most = row.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let least = row.iter().copied().fold(f64::INFINITY, f64::min);
    let share = match scale {
        Scale::Share => value / most,
        Scale::Inverse => least.max(f64::MIN_POSITIVE) / value.max(f64::MIN_POSITIVE),
        Scale::Ratio => (value.max(1.0 / 64.0).log2() + 6.0) / 12.0,
    };
    share.clamp(0.0, 1.0)
}

fn svg(plot: &Plot<'_>, groups: &[Group]) -> String {
    let count = groups.iter().flat_map(|group| &group.bars).flatten().count() as f64;
    let legend = if plot.series.len() > 1 { 18.0 } else { 0.0 };
    let height = 40.0 + legend + count * BAR + groups.len() as f64 * 5.0 + 12.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"10\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"13\" font-weight=\"bold\" fill=\"#1b1f24\">{0}</text>\n",
        escaped(plot.title)
    );
    if legend > 0.0 {
        let mut x = 12.0;
        for (name, colour) in plot.series.iter().zip(COLOURS) {
            _ = writeln!(text, "<rect x=\"{x:.0}\" y=\"30\" width=\"10\" height=\"10\" fill=\"{colour}\"/>");
            _ = writeln!(
                text,
                "<text x=\"{:.0}\" y=\"39\" fill=\"#1b1f24\">{}</text>",
                x + 14.0,
                escaped(name)
            );
            x += 30.0 + name.len() as f64 * 5.5;
        }
    }
    let mut y = 34.0 + legend;
    for group in groups {
        let row: Vec<f64> = group.bars.iter().flatten().map(|(value, _)| *value).collect();
        let middle = y + row.len() as f64 * BAR / 2.0 + 3.5;
        let small = if group.label.chars().count() > LABEL_MAX { " font-size=\"8\"" } else { "" };
        _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\"{small} fill=\"#1b1f24\">{}</text>",
            LABELS - 8.0,
            escaped(&group.label)
        );
        for (bar, colour) in group.bars.iter().zip(COLOURS) {
            let Some((value, shown)) = bar else { continue };
            let width = (length(plot.scale, *value, &row) * BARS).max(1.0);
            _ = writeln!(
                text,
                "<rect x=\"{LABELS:.0}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"#57606a\">{}</text>",
                BAR - 2.0,
                LABELS + width + 4.0,
                y + BAR - 3.0,
                escaped(shown)
            );
            y += BAR;
        }
        y += 5.0;
    }
    if plot.scale == Scale::Ratio {
        let x = LABELS + BARS / 2.0;
        _ = writeln!(
            text,
            "<line x1=\"{x}\" y1=\"30\" x2=\"{x}\" y2=\"{y:.0}\" stroke=\"#1b1f24\" stroke-dasharray=\"3 3\"/>"
        );
    }
    text + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot<'_> =
        Plot { name: "n", title: "a & b", labels: &["what"], series: &["x", "y"], scale: Scale::Share };
    const DOCUMENT: &str = "| no | x |\n![p](plots/n.svg)\n\ntext\n\n| what | x | y |\n|---|---:|---:|\n| r | 50k/s | 100k/s |\n| s | 2 | – |\n";

    #[test]
    fn a_picture_is_drawn_from_the_table_after_it() {
        let svg = of_plot(&PLOT, DOCUMENT).unwrap();
        assert!(svg.contains("a &amp; b") && svg.contains(">50k/s<") && svg.contains(">100k/s<"));
        let widths = svg.matches(&format!("width=\"{BARS:.1}\"")).count();
        assert_eq!(widths, 2, "the best of each row is as wide as the axis");
        assert_eq!(svg.matches(&format!("width=\"{:.1}\"", BARS / 2.0)).count(), 1);
    }

    #[test]
    fn an_experiment_is_drawn_from_its_table_wherever_the_picture_is() {
        let document = "![p](plots/lab-e.svg)\n\n| f | lab's ratio |\n|---|---|\n| r | 9x |\n\n| e | document's ratio | lab's ratio |\n|---|---|---|\n| s | – | 8.00x |\n";
        let svg = of_experiment("e", document).unwrap();
        assert!(svg.contains(">8.00x<") && !svg.contains("9x"));
        assert!(svg.contains(&format!("width=\"{:.1}\"", BARS * 0.75)));
        assert!(of_experiment("f", document).is_err(), "no picture of it");
        assert!(of_experiment("g", document).is_err(), "no table of it");
    }

    #[test]
    fn a_column_that_is_not_there_is_named() {
        let document = DOCUMENT.replace("| y |", "| z |");
        assert!(of_plot(&PLOT, &document).unwrap_err().to_string().contains("no column 'y'"));
        assert!(of_plot(&PLOT, "nothing").is_err());
    }

    #[test]
    fn lengths_follow_the_scale() {
        assert_eq!(length(Scale::Share, 1.0, &[1.0, 4.0]), 0.25);
        assert_eq!(length(Scale::Inverse, 4.0, &[1.0, 4.0]), 0.25);
        assert_eq!(length(Scale::Ratio, 1.0, &[1.0]), 0.5);
        assert_eq!(length(Scale::Ratio, 1e6, &[1e6]), 1.0);
    }

    #[test]
    fn a_number_is_what_a_cell_begins_with() {
        assert_eq!(
            [number("48.6k/s"), number("13709 (0.66)"), number("–")],
            [Some(48600.0), Some(13709.0), None]
        );
    }
}
