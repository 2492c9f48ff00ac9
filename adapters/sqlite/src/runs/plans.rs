//! What runs all the time reads no run that has ended: claim, renewal, sweep and poll cost the same
//! with a million of them as with none.

use sqlx::{AssertSqlSafe, Row};

use super::{around, claim, leases, prune};
use crate::{SqliteStore, testing};

/// The indexes that hold only what has not ended, and the way to one run.
const NARROW: [&str; 4] = [
    "INDEX runs_queued",
    "INDEX runs_running",
    "INDEX runs_pending",
    "INDEX sqlite_autoindex_runs_1 (id=?)",
];

#[tokio::test]
async fn what_runs_all_the_time_reads_only_what_has_not_ended() {
    let (store, _dir) = testing::store().await;
    for statement in [
        claim::ELIGIBLE,
        claim::ELIGIBLE_ALONE,
        leases::RENEW,
        leases::IN_FORCE,
        leases::CANCELS,
        leases::SILENT,
        around::SITUATION,
        around::CENSUS,
    ] {
        let steps = plan(&store, statement).await;
        let of_runs: Vec<&String> = steps.iter().filter(|step| reads_runs(step)).collect();

        assert!(!of_runs.is_empty(), "{statement}");
        for step in of_runs {
            let narrow = NARROW.iter().any(|index| step.contains(index));
            assert!(narrow, "{step}\n{statement}");
        }
    }
}

#[tokio::test]
async fn a_census_reads_of_ended_runs_only_the_one_before_each_that_waits() {
    let (store, _dir) = testing::store().await;

    let steps = plan(&store, around::CENSUS).await;

    let before = "SEARCH p USING INDEX runs_of_session (session_id=? AND session_no<?)";
    assert!(steps.iter().any(|step| step == before), "{steps:#?}");
    let event = "SEARCH events USING PRIMARY KEY (run_id=? AND n=?)";
    assert!(steps.iter().any(|step| step == event), "{steps:#?}");
}

#[tokio::test]
async fn what_is_old_is_looked_for_by_age_and_found_again_by_its_id() {
    let (store, _dir) = testing::store().await;
    for (statement, ways) in [
        (prune::OLD_RUNS, &["runs_by_age"][..]),
        (
            prune::OLD_SESSIONS,
            &["sessions_by_age", "runs_of_session", "autoindex_messages_2"],
        ),
        (prune::REMOVE_RUNS, &["autoindex_runs_1"]),
        (
            prune::REMOVE_SESSIONS,
            &[
                "autoindex_sessions_1",
                "runs_of_session",
                "autoindex_messages_2",
            ],
        ),
    ] {
        let steps = plan(&store, statement).await;

        for index in ways {
            let searches = |step: &String| step.starts_with("SEARCH ") && step.contains(index);
            assert!(
                steps.iter().any(searches),
                "{index}: {steps:#?}\n{statement}"
            );
        }
        let scanned = steps.iter().filter(|step| step.starts_with("SCAN "));
        for step in scanned {
            let small = ["SCAN t ", "SCAN json_each", "SCAN (subquery", "SCAN old"];
            let is_small = small.iter().any(|it| step.starts_with(it));
            assert!(is_small, "{step}\n{statement}");
        }
    }
}

/// Whether a step of a plan reads `runs`, under any of the names it has in these statements.
fn reads_runs(step: &str) -> bool {
    let mut words = step.split(' ');
    matches!(words.next(), Some("SCAN" | "SEARCH"))
        && matches!(words.next(), Some("runs" | "r" | "q" | "e"))
}

async fn plan(store: &SqliteStore, statement: &'static str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("explain query plan {statement}"));
    let rows = sqlx::query(explain).fetch_all(&store.readers).await;
    let rows = rows.expect("a statement has a plan");
    rows.iter().map(|row| row.get("detail")).collect()
}
