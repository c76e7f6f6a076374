//! How far a ratio hangs on what is not known.
//!
//! ```text
//!   all parameters as they are ────────────────────────▶ chief figure ┐
//!   one at the low end of its range, all others as are ▶ again        ├▶ swing: between the lowest and the highest of the
//!   the same one at the high end                       ▶ again        ┘  three ratios, as a part of the first
//! ```
//!
//! An end that is the value itself is not run again. All runs are as large as each other, and may be smaller than the
//! experiment's own: [`Experiment::quick`].

use crate::experiment::{Ask, Experiment, Row};
use crate::parameters::{Parameter, Parameters, show};
use serde_json::{Value, json};
use units::{Error, Result};

/// The chief figure of an experiment against each of its doubtful parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// All parameters as they are.
    pub as_is: Row,
    /// The largest swing first.
    pub doubts: Vec<Doubt>,
    pub ask: Ask,
}

/// One parameter, and the figure at both ends of its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    pub parameter: Parameter,
    pub low: Row,
    pub high: Row,
    /// 0.1: the ratios differ by a tenth of the one as things are.
    pub swing: f64,
}

/// Runs the chief figure as often as there are ends to try. Not to be called from within a world.
///
/// # Errors
/// A scale at which nothing is left to measure.
pub fn run(one: &Experiment, ask: &Ask, progress: &dyn Fn(&str)) -> Result<Sensitivity> {
    let parameters = (one.parameters)();
    let ask = Ask { only: Some(one.chief), scale: ask.scale * one.quick, ..*ask };
    let figure = |parameters: &Parameters| {
        let rows = (one.run)(parameters, &ask)?;
        rows.into_iter().next().ok_or_else(|| Error::invalid("an experiment without figures"))
    };
    let doubtful: Vec<Parameter> =
        parameters.iter().filter(|parameter| parameter.is_doubtful()).copied().collect();
    let ends = |of: &Parameter| [of.low, of.high].into_iter().filter(|end| *end != of.value).count();
    let (count, mut number) = (1 + doubtful.iter().map(ends).sum::<usize>(), 1);
    progress(&format!("{}: 1 of {count}: as things are", one.name));
    let as_is = figure(&parameters)?;
    let mut at = |parameter: &Parameter, end: f64| {
        if end == parameter.value {
            return Ok(as_is.clone());
        }
        number += 1;
        progress(&format!("{}: {number} of {count}: {} = {}", one.name, parameter.key, show(end)));
        figure(&parameters.with(parameter.key, end))
    };
    let mut doubts = Vec::new();
    for parameter in doubtful {
        let (low, high) = (at(&parameter, parameter.low)?, at(&parameter, parameter.high)?);
        let ratios = [low.ratio(), as_is.ratio(), high.ratio()];
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        doubts.push(Doubt { parameter, low, high, swing: (most - least) / as_is.ratio() });
    }
    doubts.sort_by(|a, b| b.swing.total_cmp(&a.swing));
    Ok(Sensitivity { as_is, doubts, ask })
}

impl Sensitivity {
    /// As Markdown, whose columns are aligned for a terminal as well.
    pub fn text(&self, one: &Experiment, show3: fn(f64) -> String) -> String {
        let (row, unit) = (&self.as_is, self.as_is.unit);
        let ratio = |row: &Row| format!("{}x", show3(row.ratio()));
        let mut text = format!("### {}: {}\n\n", one.name, row.case);
        let (before, after) = (show3(row.lab.before), show3(row.lab.after));
        text += &format!("As things are: {before} → {after} {unit}, {}.", ratio(row));
        if self.ask.scale != 1.0 {
            text += &format!(" All runs are {} of the experiment's size.", show(self.ask.scale));
        }
        let head = [
            "parameter",
            "low",
            "value",
            "high",
            "before: low",
            "value",
            "high",
            "ratio: low",
            "value",
            "high",
        ];
        let mut table = vec![head.map(String::from).into_iter().chain(["swing".into()]).collect::<Vec<_>>()];
        for Doubt { parameter, low, high, swing } in &self.doubts {
            let value = |value: f64| format!("{} {}", show(value), parameter.unit).trim_end().to_string();
            let three = [low, row, high];
            let mut cells = vec![parameter.key.to_string()];
            cells.extend([parameter.low, parameter.value, parameter.high].map(value));
            cells.extend(three.map(|row| show3(row.lab.before)));
            cells.extend(three.map(ratio));
            cells.push(format!("{:.0} %", swing * 100.0));
            table.push(cells);
        }
        text + "\n\n" + &aligned(&table)
    }

    /// `row` is how a figure is shown.
    pub fn json(&self, row: impl Fn(&Row) -> Value) -> Value {
        let doubt = |doubt: &Doubt| {
            let Parameter { key, value, low, high, unit, .. } = doubt.parameter;
            json!({
                "key": key, "value": value, "low": low, "high": high, "unit": unit,
                "at_low": row(&doubt.low), "at_high": row(&doubt.high), "swing": doubt.swing,
            })
        };
        json!({
            "scale": self.ask.scale,
            "as_is": row(&self.as_is),
            "parameters": self.doubts.iter().map(doubt).collect::<Vec<_>>(),
        })
    }
}

/// A table of Markdown with its first column to the left and all others to the right.
fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(2);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!(" {cell:width$} |"),
            _ => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = widths.iter().enumerate().map(|(column, &width)| match column {
        0 => format!("{}|", "-".repeat(width + 2)),
        _ => format!("{}:|", "-".repeat(width + 1)),
    });
    let rule = format!("|{}\n", rule.collect::<String>());
    table.iter().take(1).map(line).chain([rule]).chain(table.iter().skip(1).map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Better, Pair, Said};
    use crate::experiments;
    use crate::parameters::{Basis, fixed, within};
    use std::cell::RefCell;

    const TABLE: &[Parameter] = &[
        fixed("known", 5.0, "", Basis::Sheet, "x"),
        within("weak", (2.0, 2.0, 3.0), "ms", Basis::Assumed, "x"),
        within("strong", (1.0, 4.0, 8.0), "", Basis::Assumed, "x"),
    ];
    /// Its chief figure is the second.
    const FAKE: Experiment = Experiment {
        name: "fake",
        about: "",
        modelled: "",
        remark: "",
        chief: 1,
        quick: 0.5,
        parameters: || Parameters::of(&[TABLE]),
        run: |parameters, ask| {
            let case = |name: &'static str, before: f64, after: f64| -> crate::experiment::Case<'_> {
                let lab = Pair { before, after };
                Box::new(move || {
                    Ok(Row { case: name.into(), unit: "s", better: Better::More, lab, said: Said::Nothing })
                })
            };
            let of = |key| parameters.get(key);
            ask.rows(vec![
                case("no", 1.0, 1.0),
                case("chief", of("known") * ask.scale, of("strong") * 100.0 + of("weak")),
            ])
        },
    };

    #[test]
    fn each_doubtful_parameter_is_at_both_of_its_ends_alone() {
        let said = RefCell::new(Vec::new());
        let ask = Ask { scale: 0.8, ..Ask::default() };
        let told = run(&FAKE, &ask, &|what: &str| said.borrow_mut().push(what.to_string())).unwrap();
        // The end that is the value is not run again; what is known is not changed.
        let expected = [
            "fake: 1 of 4: as things are",
            "fake: 2 of 4: weak = 3",
            "fake: 3 of 4: strong = 1",
            "fake: 4 of 4: strong = 8",
        ];
        assert_eq!(said.into_inner(), expected);
        assert_eq!(told.as_is.lab, Pair { before: 2.0, after: 402.0 });
        let afters: Vec<(&str, f64, f64)> = told
            .doubts
            .iter()
            .map(|doubt| (doubt.parameter.key, doubt.low.lab.after, doubt.high.lab.after))
            .collect();
        assert_eq!(afters, [("strong", 102.0, 802.0), ("weak", 402.0, 403.0)], "the largest swing first");
        assert!((told.doubts[0].swing - 700.0 / 402.0).abs() < 1e-9, "{told:?}");
        let text = told.text(&FAKE, |value| format!("{value:.1}"));
        let table = "\
All runs are 0.4 of the experiment's size.

| parameter |  low | value | high | before: low | value | high | ratio: low |  value |   high | swing |
|-----------|-----:|------:|-----:|------------:|------:|-----:|-----------:|-------:|-------:|------:|
| strong    |    1 |     4 |    8 |         2.0 |   2.0 |  2.0 |      51.0x | 201.0x | 401.0x | 174 % |
| weak      | 2 ms |  2 ms | 3 ms |         2.0 |   2.0 |  2.0 |     201.0x | 201.0x | 201.5x |   0 % |
";
        assert!(text.contains(table), "{text}");
    }

    #[test]
    fn what_an_experiment_hangs_on_is_the_same_for_the_same_seed() {
        let one = experiments::find("filesync").unwrap();
        let ask = Ask { scale: 0.01, ..Ask::default() };
        let told = run(one, &ask, &|_| ()).unwrap();
        assert_eq!(told, run(one, &ask, &|_| ()).unwrap());
        let doubtful = (one.parameters)().iter().filter(|parameter| parameter.is_doubtful()).count();
        assert_eq!(told.doubts.len(), doubtful);
        let of = |key: &str| told.doubts.iter().find(|doubt| doubt.parameter.key == key).unwrap();
        // A small write to RAID 5 is read and a turn; one stream needs one processor.
        assert!(of("array-raid").swing > 0.3, "{told:?}");
        assert_eq!(of("host-processors").swing, 0.0, "{told:?}");
        assert_eq!(told.doubts[0].low.said, told.as_is.said, "the chief figure");
    }
}
