//! The record of tool calls: what is on it is never executed again.

use hango_domain::journal::{self, CallState, ToolCall};
use hango_domain::run::{Change, Resume};
use hango_domain::tool::{Idempotency, ToolResult};
use serde_json::json;

use crate::{Fixture, owner, result_of};

fn standing(calls: &[ToolCall]) -> Vec<(CallState, u32)> {
    calls
        .iter()
        .map(|call| (call.state, call.executions))
        .collect()
}

/// An answer journals its whole batch: the calls that begin at once as started, the rest as pending.
pub async fn an_answer_journals_its_whole_batch(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let answer = fixture.answer(lease, 1, 3, 2);

    fixture.written(Change::Answer(answer.clone())).await;

    let entries = answer.calls.into_iter();
    let expected: Vec<ToolCall> = entries
        .map(|call| ToolCall::begin(lease.run, 1, call, fixture.now()))
        .collect();
    let calls = fixture.on_record(&place, lease.run).await.calls;
    assert_eq!(calls, expected);
    let states = [CallState::Started, CallState::Started, CallState::Pending];
    assert!(calls.iter().map(|call| call.state).eq(states));
}

/// The result that frees a place begins the next call in the same write.
pub async fn a_result_begins_the_call_that_takes_its_place(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(3, 1).await;
    fixture.clock.advance(std::time::Duration::from_secs(2));

    let change = fixture.record(lease, &calls[0], Some(&calls[1]));
    fixture.written(Change::Record(change)).await;

    let now = fixture.now();
    let expected = [
        calls[0].clone().settled(&result_of(&calls[0]), now),
        calls[1].clone().started(now),
        calls[2].clone(),
    ];
    assert_eq!(fixture.on_record(&place, lease.run).await.calls, expected);
}

/// Arguments that could not be read are kept as they came; such a call does not begin.
pub async fn unreadable_arguments_are_kept_beside_the_call(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut answer = fixture.answer(lease, 1, 1, 0);
    answer.calls[0].input = serde_json::Map::new();
    answer.calls[0].invalid_input = Some("{\"zone\": \"Euro".to_owned());

    fixture.written(Change::Answer(answer.clone())).await;

    let entry = ToolCall::begin(lease.run, 1, answer.calls.remove(0), fixture.now());
    assert_eq!(fixture.on_record(&place, lease.run).await.calls, [entry]);
}

/// A claim after a crash brings the open turn's journal, and discards nothing that was answered.
pub async fn a_claim_brings_the_journal_of_the_open_turn(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(2, 1).await;
    let record = fixture.record(lease, &calls[0], Some(&calls[1]));
    fixture.written(Change::Record(record)).await;
    fixture.clock.advance(crate::TTL);
    assert_eq!(fixture.sweep().await, [lease.run]);

    let claimed = fixture.claim(lease.run, owner(2)).await;

    let context = claimed.map(|claimed| claimed.context);
    let context = context.expect("nothing stands before the claim");
    let stored = fixture.on_record(&place, lease.run).await;
    assert_eq!(context.expect("it can be read").calls, stored.calls);
    let last = stored.events.last().map(|event| event.kind.name());
    assert_eq!(last, Some("run.started"));
}

/// What began and may be repeated is executed again, what never began is executed, and what may not be
/// repeated is in doubt. What was settled stays.
pub async fn a_new_attempt_goes_on_with_the_open_calls(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(4, 2).await;
    let record = fixture.record(lease, &calls[0], Some(&calls[2]));
    fixture.written(Change::Record(record)).await;
    let lease = fixture.taken_over(lease, owner(2)).await;
    let calls = fixture.on_record(&place, lease.run).await.calls;
    // The second one's tool may not be executed again, the third one's may.
    let mut plan = journal::resume(&calls, |_| Some(Idempotency::Safe));
    plan.execute.retain(|position| *position != 2);
    let unknown = ToolResult::error(journal::OUTCOME_UNKNOWN);
    plan.in_doubt.push(calls[1].to_result(unknown, true, None));

    let starts = calls
        .iter()
        .filter(|it| plan.execute.contains(&it.position));
    let resume = Resume {
        lease,
        write: fixture.write_id(),
        turn: 1,
        starts: starts.map(ToolCall::to_started).collect(),
        in_doubt: plan.in_doubt.clone(),
    };
    fixture.written(Change::Resume(resume)).await;

    let now = fixture.now();
    let expected = [
        calls[0].clone(),
        calls[1].clone().settled(&plan.in_doubt[0], now),
        calls[2].clone().started(now),
        calls[3].clone().started(now),
    ];
    let stored = fixture.on_record(&place, lease.run).await.calls;
    assert_eq!(stored, expected);
    let states = [
        (CallState::Finished, 1),
        (CallState::InDoubt, 1),
        (CallState::Started, 2),
        (CallState::Started, 1),
    ];
    assert_eq!(standing(&stored), states);
}

/// A claim brings the open turn alone, the journal all of the run's turns.
pub async fn turns_that_are_complete_stay_in_the_journal(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    fixture
        .written(Change::CompleteTurn(fixture.boundary(lease, 1, &calls)))
        .await;
    let mut answer = fixture.answer(lease, 2, 1, 1);
    answer.calls[0].input = [("deep".to_owned(), json!({"n": [1, 2.5, null]}))]
        .into_iter()
        .collect();
    fixture.written(Change::Answer(answer)).await;
    let lease = fixture.taken_over(lease, owner(2)).await;

    let stored = fixture.on_record(&place, lease.run).await.calls;

    let places: Vec<(u32, u32)> = stored.iter().map(|it| (it.turn, it.position)).collect();
    assert_eq!(places, [(1, 1), (2, 1)]);
    fixture.clock.advance(crate::TTL);
    fixture.sweep().await;
    fixture.clock.advance(crate::TTL);
    let claimed = fixture.claim(lease.run, owner(3)).await;
    let context = claimed.map(|claimed| claimed.context);
    let context = context.expect("nothing stands before the claim");
    assert_eq!(context.expect("it can be read").calls, stored[1..]);
}
