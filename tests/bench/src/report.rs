//! What is printed: tables, and at the end every goal with where it stands.

use std::fmt::Display;

use crate::figures::median;
use crate::goals::Goal;

/// A table of texts, whose columns are as wide as they have to be.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with nothing but its head.
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned).to_vec()],
        }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        let cells = cells.iter().map(ToString::to_string);
        self.rows.push(cells.collect());
    }

    /// Prints it as Markdown.
    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (n, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            println!("| {} |", cells.join(" | "));
            if n == 0 {
                let lines: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
                println!("| {} |", lines.join(" | "));
            }
        }
        println!();
    }
}

/// Figures with goals, as often as they were measured.
#[derive(Default)]
pub(crate) struct Report {
    measured: Vec<Measured>,
}

struct Measured {
    goal: Goal,
    place: String,
    values: Vec<f64>,
}

impl Report {
    /// Notes a figure, measured in `place`.
    pub(crate) fn note(&mut self, goal: Goal, place: &str, value: f64) {
        let same = |it: &&mut Measured| it.goal.what == goal.what && it.place == place;
        if let Some(known) = self.measured.iter_mut().find(same) {
            known.values.push(value);
        } else {
            self.measured.push(Measured {
                goal,
                place: place.to_owned(),
                values: vec![value],
            });
        }
    }

    /// Prints every figure beside its goal: the median, where there are several.
    pub(crate) fn print(&self) {
        heading("Goals");
        let mut table = Table::new(["", "what", "where", "must", "aim", "measured", "all", ""]);
        for Measured {
            goal,
            place,
            values,
        } in &self.measured
        {
            let figure = median(values);
            let all: Vec<_> = match values.as_slice() {
                [_] => Vec::new(),
                several => several.iter().map(|value| number(*value)).collect(),
            };
            table.row([
                &goal.number,
                &goal.what,
                place,
                &goal.must(),
                &goal.aim(),
                &number(figure),
                &all.join(" "),
                &goal.verdict(figure),
            ]);
        }
        table.print();
    }
}

/// Begins a part.
pub(crate) fn heading(title: &str) {
    println!("## {title}\n");
}

/// With as many digits as matter.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        small if small >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_digits_that_matter() {
        let numbers = [2_345.678, 23.456, 2.345_6, 0.012_34, 0.0].map(number);

        assert_eq!(numbers, ["2346", "23.5", "2.35", "0.0123", "0"]);
    }
}
