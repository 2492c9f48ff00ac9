//! What runs all the time, and every write, finds a run by its id or among those that have not ended:
//! it costs the same with a million ended ones as with none.
//!
//! Statements stay prepared, so what counts is their general plan. It is looked at three times: as a
//! fresh server makes it, whose tables are empty and were never analysed; where there are so many ended
//! runs that reading them all is never cheaper; and where there are so few that it would be, with the
//! settings of the store's sessions, which forbid it because a plan outlives the day.

use hango_test_database::TestDatabase;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::open::SETTINGS;
use crate::runs::store::Shape;
use crate::runs::{
    accept, around, cancel, context, eligible, journal, load, prune, read, reclaim, renew, store,
    take_in,
};
use crate::{Options, PostgresStore, messages, sessions};

/// Ended runs, each with what belongs to it; some that wait, and some that are running.
const MANY: &str = "
    insert into tenants select md5('t' || i)::uuid, 't' || i, '', 'active', now(), now()
        from generate_series(1, 10) i;
    insert into users select md5('u' || i)::uuid, md5('t' || i)::uuid, '', '', 'owner', 'active', now(), now()
        from generate_series(1, 10) i;
    insert into agents select md5('a' || i)::uuid, md5('t' || i)::uuid, 1, '', '', '', '{}', '{}',
            md5('u' || i)::uuid, now(), now() from generate_series(1, 10) i;
    insert into sessions select md5('s' || i)::uuid, md5('t' || i % 10 + 1)::uuid,
            md5('a' || i % 10 + 1)::uuid, md5('u' || i % 10 + 1)::uuid, '', '{}', now(), now()
        from generate_series(1, 3000) i;
    insert into runs (id, attempt, stalled_attempts, started_at, finished_at, owner_id,
            lease_expires_at, state, resume_turn, begun_turn, answered_turn, tries, empty_answers,
            iterations, last_event, created_at, session_no, agent_version, trace_sampled, tenant_id,
            session_id, agent_id, created_by, input_message_id, trace_id, span_id, metadata, input)
        select md5('r' || i)::uuid, 1, 0, now(), case when state = 'succeeded' then now() end,
            case when state = 'running' then md5('o')::uuid end,
            case when state = 'running' then now() end, state, 1, 1, 1, 0, 0, 1, 9, now(), i, 1, false,
            md5('t' || i % 10 + 1)::uuid, md5('s' || i % 3000 + 1)::uuid,
            md5('a' || i % 10 + 1)::uuid, md5('u' || i % 10 + 1)::uuid, md5('m' || i)::uuid, '', '',
            '{}', '[]'
        from (select i, case when i <= 40 then 'running' when i <= 200 then 'queued'
                        else 'succeeded' end as state
              from generate_series(1, 30000) i) as many;
    insert into messages select md5('s' || i % 3000 + 1)::uuid, i, md5('m' || i)::uuid,
            md5('r' || i)::uuid, 'user', '[]', null, null, false, now()
        from generate_series(1, 30000) i;
    insert into events select md5('r' || i)::uuid, 9, 1, 1, now(), '[]'
        from generate_series(1, 30000) i;
    insert into tool_calls (run_id, turn, position, id, state, executions, tool_use_id, name, input)
        select md5('r' || i)::uuid, 1, 1, md5('c' || i)::uuid, 'pending', 0, '', '', '{}'
        from generate_series(1, 30000) i;
    analyze";

/// What is left of them fits onto a page.
const FEW: &str = "
    delete from sessions where id not in (select session_id from runs order by session_no limit 5);
    delete from messages where session_id not in (select id from sessions)";

/// The tables that grow with what has ended, and the only way into each.
const WAYS: [(&str, &str); 5] = [
    ("runs", "runs_pkey"),
    ("sessions", "sessions_pkey"),
    ("messages", "messages_pkey"),
    ("events", "events_pkey"),
    ("tool_calls", "tool_calls_pkey"),
];

const STATEMENTS: [&str; 31] = [
    take_in::TAKE_IN,
    accept::LOCK,
    accept::HOLD_RUNNING,
    cancel::ASK,
    cancel::LOCK_SESSION,
    eligible::ELIGIBLE,
    eligible::ELIGIBLE_ALONE,
    eligible::LOCK_TENANTS,
    context::HISTORIES,
    context::OPEN_CALLS,
    renew::RENEW,
    renew::RENEW_UNLOCKED,
    renew::CANCELS,
    reclaim::SILENT,
    reclaim::LOCKED,
    load::LOAD,
    load::LOAD_SEEN,
    load::PENDING,
    journal::CALLS,
    read::FIND,
    read::EVENTS,
    read::TOOL_CALLS,
    around::SITUATION,
    store::STORE,
    Shape::Answer.statement(),
    Shape::Results.statement(),
    Shape::End.statement(),
    Shape::Any.statement(),
    sessions::FIND,
    sessions::LOCK,
    messages::LIST,
];

#[tokio::test]
async fn what_runs_all_the_time_reads_only_what_has_not_ended() {
    let (database, mut conn) = connected().await;
    for ended in ["none", "many", "few"] {
        if ended == "many" {
            database.execute(MANY).await.expect("there is room");
        }
        if ended == "few" {
            database.execute(FEW).await.expect("there is room");
            let small = database.execute("vacuum full analyze").await;
            small.expect("nothing is in use");
            for (setting, value) in SETTINGS {
                let set = format!("set {setting} = '{value}'");
                let done = sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut conn).await;
                done.expect("the server knows the setting");
            }
        }
        for statement in STATEMENTS {
            let plan = plan(&mut conn, statement).await;
            for step in &plan {
                assert!(
                    is_narrow(step),
                    "{ended}: {step}\n{}\n{statement}",
                    plan.join("\n")
                );
            }
        }
    }
}

/// Of the runs that have ended a census reads only the one before each that waits, which is found by its
/// place in the session.
#[tokio::test]
async fn a_census_reads_only_what_has_not_ended_and_the_one_before_it() {
    let (database, mut conn) = connected().await;
    for ended in ["none", "many"] {
        if ended == "many" {
            database.execute(MANY).await.expect("there is room");
        }
        let plan = plan(&mut conn, around::CENSUS).await;

        let others = plan
            .iter()
            .filter(|step| !step.contains(" using runs_of_session on runs"));
        for step in others {
            assert!(is_narrow(step), "{ended}: {step}\n{}", plan.join("\n"));
        }
    }
}

#[tokio::test]
async fn lists_of_a_session_and_of_what_has_not_ended_read_no_other_runs() {
    let (database, mut conn) = connected().await;
    database.execute(MANY).await.expect("there is room");

    for (statement, index) in [
        (read::LIST, "runs_by_age"),
        (read::LIST_OF_SESSION, "runs_of_session"),
        (read::LIST_PENDING, "runs_pkey"),
    ] {
        let plan = plan(&mut conn, statement).await;

        let text = plan.join("\n");
        assert!(text.contains(index), "{text}");
        assert!(!text.contains("Seq Scan on runs "), "{text}");
    }
}

#[tokio::test]
async fn what_is_old_is_looked_for_by_age_and_found_again_by_its_id() {
    let (database, mut conn) = connected().await;
    database.execute(MANY).await.expect("there is room");

    let (runs, sessions) = (
        ["runs_by_age", "runs_pkey"],
        ["sessions_by_age", "sessions_pkey"],
    );
    let asked = ["messages_pkey", "runs_of_session"];
    for (statement, ways) in [
        (prune::REMOVE_RUNS, runs.to_vec()),
        (prune::LOCK_SESSIONS, [asked, sessions].concat()),
        (
            prune::REMOVE_SESSIONS,
            [&asked[..], &["sessions_pkey"]].concat(),
        ),
    ] {
        let plan = plan(&mut conn, statement).await;

        let mut by: Vec<&str> = plan
            .iter()
            .filter_map(|step| named(step, " using ").or(named(step, "Bitmap Index Scan on ")))
            .filter(|index| !index.starts_with("tenants_"))
            .collect();
        by.sort_unstable();
        by.dedup();
        assert_eq!(by, ways, "{}\n{statement}", plan.join("\n"));
        let whole = plan.iter().filter_map(|step| named(step, "Seq Scan on "));
        for table in whole {
            assert_eq!(table, "tenants", "{}\n{statement}", plan.join("\n"));
        }
    }
}

async fn connected() -> (TestDatabase, PgConnection) {
    let database = TestDatabase::new().await;
    let store = PostgresStore::open(Options::new(database.url())).expect("the URL is sound");
    store.migrate().await.expect("the schema is brought up");
    let conn = PgConnection::connect(database.url()).await;
    (database, conn.expect("the server is there"))
}

/// Whether a step of a plan goes into a table that grows by the one way there is, or not at all.
fn is_narrow(step: &str) -> bool {
    let read_whole = named(step, "Seq Scan on ");
    let by = named(step, " using ").or(named(step, "Bitmap Index Scan on "));
    WAYS.iter().all(|(table, index)| {
        let of_table = |it: &str| it.starts_with(&format!("{table}_")) && it != *index;
        read_whole != Some(table) && !by.is_some_and(of_table)
    })
}

/// The name behind `how`.
fn named<'p>(step: &'p str, how: &str) -> Option<&'p str> {
    step.split_once(how)?.1.split(' ').next()
}

/// The general plan of a statement, line by line.
async fn plan(conn: &mut PgConnection, statement: &'static str) -> Vec<String> {
    let last = (1..=39).filter(|n| takes(statement, *n)).max();
    let all = 1..=last.unwrap_or_default();
    // One that it does not take has any type.
    let inferred = |n| {
        if takes(statement, n) {
            "unknown"
        } else {
            "int"
        }
    };
    let types = in_brackets(all.clone().map(inferred));
    let nulls = in_brackets(all.map(|_| "null"));
    let explain = format!("explain execute looked_at {nulls}");
    for prepare in [
        "deallocate all".to_owned(),
        "set plan_cache_mode = force_generic_plan".to_owned(),
        format!("prepare looked_at {types} as {statement}"),
    ] {
        let done = sqlx::raw_sql(AssertSqlSafe(prepare))
            .execute(&mut *conn)
            .await;
        done.expect("the statement can be prepared");
    }
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(conn).await;
    let rows = rows.expect("a statement has a plan");
    rows.iter().map(|row| row.get(0)).collect()
}

/// A list as a statement has it, which is nothing where it is empty.
fn in_brackets<'s>(list: impl Iterator<Item = &'s str>) -> String {
    let list: Vec<_> = list.collect();
    if list.is_empty() {
        String::new()
    } else {
        format!("({})", list.join(", "))
    }
}

/// Whether a statement takes a parameter of that number.
fn takes(statement: &str, n: usize) -> bool {
    let named = format!("${n}");
    let mut found = statement.match_indices(&named);
    found.any(|(at, _)| {
        let behind = &statement[at + named.len()..];
        !behind.starts_with(|next: char| next.is_ascii_digit())
    })
}
