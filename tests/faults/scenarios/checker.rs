//! The checker itself, before anything is believed that it says.

use super::Scenario;
use crate::database::Kind;
use crate::history::doctored;
use crate::report::Report;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "checker",
    about: "the checker objects to every doctored story, and not to a good one; takes no database",
    kinds: &[Kind::Sqlite],
    also: &[Kind::Postgres],
    takes: &[],
    run: |_| Box::pin(async { Ok(check()) }),
};

fn check() -> Report {
    let (stories, violations) = doctored::failures();
    let mut report = Report {
        title: format!("{}, which takes no database", SCENARIO.name),
        violations,
        ..Report::default()
    };
    report.line(
        "stories",
        format!("{stories}, all but one of them doctored or excused"),
    );
    report
}
