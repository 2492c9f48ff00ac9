//! Where the costs come from: which transactions, which records of the log, which statements.

use std::collections::BTreeSet;

use super::window::{Pair, Window};
use crate::database::Updates;
use crate::figures::{each, float, share};
use crate::report::{Table, number};
use crate::wire::{Times, kind_of, shown};

/// Records of the log that are shown of each kind of run.
const RECORDS: usize = 14;

/// Which transactions there were.
pub(super) fn shapes(text: &Window, tools: &Window) {
    let mut table = Table::new(["kind", "text run", "tool turn", "round trips", "statements"]);
    let both = [text, tools].map(|it| it.counted.shapes());
    let all: BTreeSet<_> = both.into_iter().flatten().map(|(shape, _)| shape).collect();
    for shape in all {
        let times = |it: &Window| it.counted.times(shape);
        let pair = Pair {
            text: each(times(text).transactions, text.runs),
            tools: each(times(tools).transactions, tools.runs),
        };
        let Times {
            transactions,
            trips,
        } = times(text) + times(tools);
        let statements: Vec<_> = shape.iter().map(|statement| shown(statement)).collect();
        table.row([
            &format!("{:?}", kind_of(shape)),
            &number(pair.text),
            &number(pair.turn()),
            &number(share(float(trips), float(transactions))),
            &statements.join("; "),
        ]);
    }
    table.print();
}

/// What is in the log.
pub(super) fn records(text: &Window, tools: &Window) {
    for (what, window) in [("text run", text), ("run with ten tool turns", tools)] {
        let mut table = Table::new(["the log of a", "records", "bytes"]);
        for (writer, count, bytes) in window.wal.by.iter().take(RECORDS) {
            let of_a_run = |n: i64| number(float(n) / float(window.runs));
            table.row([
                &format!("{what}: {writer}"),
                &of_a_run(*count),
                &of_a_run(*bytes),
            ]);
        }
        table.print();
    }
}

/// What each statement cost.
pub(super) fn statements(text: &Window, tools: &Window) {
    for (what, window) in [("text run", text), ("run with ten tool turns", tools)] {
        let mut table = Table::new([
            "calls",
            "log bytes",
            "µs",
            &format!("statements of a {what}"),
        ]);
        for cost in &window.statements {
            let runs = float(window.runs);
            table.row([
                &number(float(cost.calls) / runs),
                &number(float(cost.wal_bytes) / runs),
                &number(cost.micros / runs),
                &shown(&cost.statement),
            ]);
        }
        table.print();
    }
}

/// How many updates of each table were heap-only.
pub(super) fn updates(all: &[Updates]) {
    let mut table = Table::new(["updates of", "rows", "heap-only, %"]);
    for updates in all {
        table.row([&updates.table, &updates.updated, &number(updates.percent())]);
    }
    table.print();
}
