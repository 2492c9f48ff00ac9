//! Everything at once in a few sessions.

use std::time::Duration;

use futures::future::{join, join_all};
use hango_conformance::owner;
use hango_domain::MessageId;
use hango_domain::conversation::{Block, NewMessage};
use hango_domain::session::OnBusy;
use hango_ports::run_store::{ReclaimRequest, RunStoreError};

use super::{Processes, batches, claim};

/// Whoever races for a few sessions, nobody fails, and at the end all that counts agrees with what it
/// counts.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_races_in_a_session_its_line_stays_exact() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;
    let mut sessions = vec![place.session.id];
    for _ in 0..2 {
        sessions.push(fixture.session(&place.owner, place.agent.id).await.id);
    }
    let stores = [&fixture.stores, &processes.other];
    let by_turns = |n: usize| stores[n % 2];
    let accepting = async |n: usize| {
        for round in 0..30 {
            let mut new = fixture.new_run(&place.owner, sessions[(n + round) % 3]);
            if round % 5 == n {
                new.on_busy = OnBusy::Interrupt;
            }
            new.max_pending = 6;
            let audit = fixture.audit(&place.owner, "run.create", new.id.0);
            let id = new.id;
            match by_turns(n).runs.accept(new, audit, None).await {
                Ok(_) if round % 4 == 3 => {
                    let seen = place.seen();
                    let audit = fixture.audit(&place.owner, "run.cancel", id.0);
                    let asked = by_turns(n + 1).runs.request_cancel(seen, id, audit).await;
                    is_no_failure(asked);
                }
                other => is_no_failure(other),
            }
        }
    };
    let executing = async |n: usize| {
        for round in 0..60 {
            for claimed in claim(by_turns(n), owner(n as u128), batches(2)).await {
                let lease = claimed.lease;
                is_no_failure(
                    by_turns(n)
                        .runs
                        .answer(fixture.answer(lease, 1, 1, 1))
                        .await,
                );
                let runs = &by_turns(n).runs;
                if round % 3 == 0 {
                    is_no_failure(
                        runs.give_back(fixture.give_back(lease, Duration::ZERO))
                            .await,
                    );
                } else {
                    let mut end = fixture.finish(lease, 1);
                    end.turn = None;
                    is_no_failure(runs.finish(end).await);
                }
            }
        }
    };
    let sweeping = async {
        for round in 0..20 {
            let request = ReclaimRequest {
                limit: 2,
                max_stalled: 3,
                expired_only: false,
            };
            is_no_failure(by_turns(round).runs.reclaim(request).await);
        }
    };
    let saying = async {
        for round in 0..30 {
            let message =
                NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("by the way")]);
            let audit = fixture.audit(&place.owner, "message.create", message.id.0);
            let said = by_turns(round).sessions.append(
                place.seen(),
                sessions[round % 3],
                message,
                audit,
                None,
            );
            // A running run refuses it.
            let refused = said.await.err().map(|error| error.to_string());
            assert!(refused.is_none_or(|refused| refused.contains("pending")));
        }
    };

    join(
        join(
            join_all((0..4).map(accepting)),
            join_all((0..4).map(executing)),
        ),
        join(sweeping, saying),
    )
    .await;

    processes.end().await;
    for statement in WRONG {
        assert_eq!(processes.count(statement).await, 0, "{statement}");
    }
    let ended = "select count(*) from runs where state not in ('queued', 'running')";
    assert!(processes.count(ended).await > 50);
}

fn is_no_failure<T>(result: Result<T, RunStoreError>) {
    if let Err(error @ (RunStoreError::Failure(_) | RunStoreError::NotFound)) = result {
        panic!("nothing is wrong with the store: {error:?}");
    }
}

/// What counts, and does not agree with what it counts.
const WRONG: [&str; 7] = [
    // Nobody waited in a circle.
    "select deadlocks from pg_stat_database where datname = current_database()",
    "select count(*) from sessions s where pending_runs <> (
         select count(*) from runs r where r.session_id = s.id and r.state in ('queued', 'running'))",
    "select count(*) from sessions s where running_run is distinct from (
         select r.id from runs r where r.session_id = s.id and r.state = 'running')",
    "select count(*) from sessions s where running_run is null and last_seq <> (
         select count(*) from messages m where m.session_id = s.id)",
    "select count(*) from sessions s where last_seq > (
         select count(*) from messages m where m.session_id = s.id)",
    "select count(*) from (
         (select id from runs where state = 'queued' except select run_id from queued_runs)
         union all (select run_id from queued_runs except select id from runs where state = 'queued')
         union all (select id from runs where state = 'running' except select run_id from running_runs)
         union all (select run_id from running_runs except select id from runs where state = 'running')
     ) as lost",
    "select count(*) from runs r where last_event <> (
         select sum(json_array_length(told)) from events e where e.run_id = r.id)",
];
