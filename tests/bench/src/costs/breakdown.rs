//! Where the costs come from: which transactions, which records of the log, which statements.

use std::collections::{BTreeMap, BTreeSet};

use super::window::{Pair, Window};
use crate::database::{Updates, Wal};
use crate::figures::{each, float, share};
use crate::report::{Table, number};
use crate::wire::{Times, kind_of, shown};

/// Kinds of records of the log that are shown.
const RECORDS: usize = 32;

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
pub(super) fn records(text: &Window, tools: &Window, files: &BTreeMap<i64, String>) {
    let mut all: BTreeMap<(&str, &str), Record> = BTreeMap::new();
    for (is_text, window) in [(true, text), (false, tools)] {
        for records in &window.wal.records {
            let file = records.file.and_then(|file| files.get(&file));
            let key = (records.kind.as_str(), file.map_or("", String::as_str));
            let of_a_run = |n: i64| float(n) / float(window.runs);
            let record = all.entry(key).or_default();
            let (count, bytes) = (of_a_run(records.count), of_a_run(records.bytes));
            if is_text {
                record.count.text += count;
                record.bytes.text += bytes;
            } else {
                record.count.tools += count;
                record.bytes.tools += bytes;
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(_, one), (_, other)| other.bytes.tools.total_cmp(&one.bytes.tools));
    let mut table = Table::new([
        "the log's records",
        "of",
        "text run: count",
        "bytes",
        "tool turn: count",
        "bytes",
    ]);
    for ((kind, file), Record { count, bytes }) in all.into_iter().take(RECORDS) {
        table.row([
            &kind,
            &file,
            &number(count.text),
            &number(bytes.text),
            &number(count.turn()),
            &number(bytes.turn()),
        ]);
    }
    table.print();
}

/// What is in the log of so many renewals.
pub(super) fn renewals(wal: &Wal, renewed: usize, files: &BTreeMap<i64, String>) {
    let mut table = Table::new(["the log's records", "of", "a renewal: count", "bytes"]);
    for records in wal.records.iter().take(RECORDS / 4) {
        let file = records.file.and_then(|file| files.get(&file));
        table.row([
            &records.kind,
            &file.map_or("", String::as_str),
            &number(float(records.count) / float(renewed)),
            &number(float(records.bytes) / float(renewed)),
        ]);
    }
    table.print();
}

/// How many records of a run are alike.
#[derive(Default)]
struct Record {
    count: Pair,
    bytes: Pair,
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
