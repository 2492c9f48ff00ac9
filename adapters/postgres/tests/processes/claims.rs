//! Claims of several processes: each run goes to one of them, and nobody waits.

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use hango_conformance::{no_limits, owner};
use hango_domain::RunId;
use hango_domain::people::TenantStatus;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::{Change, RunState};
use hango_ports::Stores;
use sqlx::{AssertSqlSafe, Connection};

use super::{Processes, batches, claim};

#[tokio::test(flavor = "multi_thread")]
async fn racing_processes_get_each_run_once_while_more_come_in_and_others_end() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;
    let mut queued = processes.queue(&place, 40).await;
    let claimer = async |stores: &Stores, n| {
        let mut got = Vec::new();
        for _ in 0..20 {
            for claimed in claim(stores, owner(n), batches(3)).await {
                got.push(claimed.lease.run);
                let end = fixture.finish(claimed.lease, 1);
                stores.runs.finish(end).await.expect("it holds the run");
            }
        }
        got
    };

    let (more, handed) = join(
        processes.queue(&place, 40),
        join_all((0..8).map(|n| match n % 2 {
            0 => claimer(&fixture.stores, n),
            _ => claimer(&processes.other, n),
        })),
    )
    .await;
    let rest = claim(&processes.other, owner(9), no_limits()).await;

    queued.extend(more);
    let rest = rest.iter().map(|claimed| claimed.lease.run);
    let handed: Vec<RunId> = handed.into_iter().flatten().chain(rest).collect();
    assert_eq!(handed.len(), 80);
    assert_eq!(BTreeSet::from_iter(handed), queued);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_claimers_gets_a_batch_of_its_own() {
    let processes = Processes::start().await;
    let place = processes.fixture.place().await;
    processes.queue(&place, 8).await;
    let mut somebody = processes.somebody().await;
    // The first claimer stands still with what it chose.
    let mut claiming = somebody.begin().await.expect("a transaction begins");
    let chosen = "select s.id from sessions s join runs r on r.session_id = s.id
         order by r.created_at, r.id limit 4 for no key update of s";
    let chosen = sqlx::query(chosen).fetch_all(&mut *claiming).await;
    assert_eq!(chosen.expect("rows can be locked").len(), 4);

    let claimed = claim(&processes.other, owner(2), batches(4)).await;

    assert_eq!(claimed.len(), 4);
    claiming.rollback().await.expect("a transaction ends");
    let rest = claim(&processes.other, owner(2), no_limits()).await;
    assert_eq!(rest.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_running_run_of_a_session_is_a_lost_race() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    // What no claim of hango's does: the session's line says nothing of it.
    let somebody = format!(
        "insert into running_runs values ('{}', gen_random_uuid(), '{}', gen_random_uuid())",
        place.session.id, place.tenant
    );
    let mut claimed = None;
    let mut conn = processes.somebody().await;
    let mut racing = conn.begin().await.expect("a transaction begins");
    let added = sqlx::raw_sql(AssertSqlSafe(somebody))
        .execute(&mut *racing)
        .await;
    added.expect("a row can be added");
    let claiming = async {
        claimed = Some(claim(&processes.other, owner(2), no_limits()).await);
    };
    let committing = async {
        processes.somebody_waits().await;
        racing.commit().await.expect("a transaction ends");
    };
    join(claiming, committing).await;

    assert_eq!(claimed.map(|claimed| claimed.len()), Some(0));
    let record = fixture.on_record(&place, run.id).await;
    assert_eq!(
        (record.run.state, record.messages.len()),
        (RunState::Queued, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_processes_fill_a_tenants_cap_exactly() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    for _ in 0..10 {
        let place = fixture.place().await;
        processes.queue(&place, 12).await;
        let limits = ClaimLimits {
            runs: 3,
            running_per_tenant: 5,
            ..no_limits()
        };

        let rounds = join_all((0..6).map(|n| match n % 2 {
            0 => claim(&fixture.stores, owner(n), limits),
            _ => claim(&processes.other, owner(n), limits),
        }))
        .await;

        assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 5);
        for claimed in rounds.into_iter().flatten() {
            let end = fixture.finish(claimed.lease, 1);
            fixture.written(Change::Finish(end)).await;
        }
        fixture
            .set_tenant(&place.owner, TenantStatus::Suspended)
            .await;
    }
}

/// Who claims under a cap counts while nobody else does: what another one counted may be claimed by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_under_a_cap_waits_for_who_counts() {
    let processes = Processes::start().await;
    let place = processes.fixture.place().await;
    processes.queue(&place, 2).await;
    let mut somebody = processes.somebody().await;
    let mut counting = somebody.begin().await.expect("a transaction begins");
    let lock = sqlx::query("select from tenants where id = $1 for no key update");
    let lock = lock.bind(place.tenant.0).execute(&mut *counting).await;
    lock.expect("a row can be locked");
    let limits = ClaimLimits {
        running_per_tenant: 1,
        ..no_limits()
    };

    let committing = async {
        processes.somebody_waits().await;
        counting.commit().await.expect("a transaction ends");
    };
    let (claimed, ()) = join(claim(&processes.other, owner(2), limits), committing).await;

    assert_eq!(claimed.len(), 1);
}
