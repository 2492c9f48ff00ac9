//! Asking for a run's end, whoever holds it.

use std::time::Duration;

use hango_domain::event::EventKind;
use hango_domain::journal;
use hango_domain::run::{AfterTurn, Change, RequeueReason, RunState, RunStatus, TransitionError};
use hango_ports::audit_store::{AuditFilter, AuditRow};
use hango_ports::page::PageRequest;

use crate::{Fixture, Place, owner, refused};

async fn cancels(fixture: &Fixture, place: &Place) -> Vec<AuditRow> {
    let filter = AuditFilter {
        action: Some("run.cancel".to_owned()),
        ..AuditFilter::default()
    };
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let rows = fixture.stores.audit.list(place.tenant, filter, page).await;
    rows.expect("reads work").items
}

/// Nobody has to be there for a queued run to end.
pub async fn a_queued_run_ends_at_once(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    fixture.clock.advance(Duration::from_secs(3));

    let cancelled = fixture.cancel(&place.owner, run.id).await;

    let record = fixture.on_record(&place, run.id).await;
    assert_eq!(record.run.state, RunState::Cancelled { at: fixture.now() });
    assert_eq!(cancelled.ok(), Some(record.run));
    let kinds: Vec<EventKind> = record.events.into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [EventKind::RunQueued, EventKind::RunCancelled]);
    assert_eq!(record.messages, []);
    assert!(fixture.claim(run.id, owner(1)).await.is_none());
}

/// A running run goes on until its holder learns of it: from the poll, and from every write.
pub async fn a_running_run_is_asked_to_end(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await;
    let runs = &fixture.stores.runs;
    assert_eq!(runs.cancels(owner(1)).await.expect("reads work"), []);

    let asked = fixture.cancel(&place.owner, lease.run).await;

    let asked = asked.expect("it runs");
    assert_eq!(asked.state, before.run.state);
    assert_eq!(asked.cancel_requested_at, Some(fixture.now()));
    assert_eq!(runs.cancels(owner(1)).await.expect("reads work"), [lease]);
    assert_eq!(runs.cancels(owner(2)).await.expect("reads work"), []);
    let written = fixture
        .written(Change::Retry(fixture.retry(lease, 1)))
        .await;
    assert!(written.standing.cancel_requested);
}

/// Asking again changes nothing, not even the audit trail.
pub async fn asking_again_changes_nothing(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let first = fixture.cancel(&place.owner, lease.run).await;
    fixture.clock.advance(Duration::from_secs(1));

    let second = fixture.cancel(&place.owner, lease.run).await;

    assert_eq!(first.expect("it runs"), second.expect("it runs"));
    let rows = cancels(&fixture, &place).await;
    let targets: Vec<_> = rows.iter().map(|row| row.target_id).collect();
    assert_eq!(targets, [Some(lease.run.0)]);
}

/// A run that ended cannot be cancelled, and nothing is noted.
pub async fn a_run_that_ended_refuses(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    let before = fixture.on_record(&place, lease.run).await;

    let rule = refused(fixture.cancel(&place.owner, lease.run).await);

    let ended = TransitionError::AlreadyEnded {
        found: RunStatus::Succeeded,
    };
    assert_eq!(rule, ended);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
    assert_eq!(cancels(&fixture, &place).await, []);
}

/// Who was told that the run would end cancelled was told the truth, even if the model was faster.
pub async fn an_end_after_the_request_is_a_cancelled_one(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");

    let written = fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    assert_eq!(written.status, RunStatus::Cancelled);
    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(record.run.state, RunState::Cancelled { at: fixture.now() });
    let ends = record.events.iter().filter(|it| it.kind.is_terminal());
    assert_eq!(ends.count(), 1);
    assert_eq!(record.messages.len(), 2);
}

/// A run that its holder gives back ends there, with its open calls answered.
pub async fn a_run_that_is_given_back_ends_instead(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(2, 1).await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");

    let change = fixture.give_back(lease, Duration::from_mins(1));
    let written = fixture.written(Change::GiveBack(change)).await;

    assert_eq!(written.status, RunStatus::Cancelled);
    let record = fixture.on_record(&place, lease.run).await;
    let last = record.messages.last().map(|message| message.id);
    assert_eq!(last, Some(journal::closing_message_id(lease.run)));
    assert!(record.calls.iter().all(journal::ToolCall::is_settled));
    assert_eq!(record.run.available_at, None);
}

/// The same at a boundary, whose own message is the answer.
pub async fn a_run_that_is_given_back_at_its_boundary_ends_there(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");
    let mut boundary = fixture.boundary(lease, 1, &calls);
    boundary.then = AfterTurn::GiveBack(RequeueReason::Drain);

    let written = fixture
        .written(Change::CompleteTurn(boundary.clone()))
        .await;

    assert_eq!(written.status, RunStatus::Cancelled);
    let record = fixture.on_record(&place, lease.run).await;
    let last = record.messages.last().map(|message| message.id);
    assert_eq!(last, Some(boundary.message.id));
    assert_eq!(record.run.progress.resume_turn, 1);
}

/// A run that waits with open calls answers them when it is cancelled.
pub async fn a_queued_run_answers_its_open_calls_as_it_ends(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(2, 1).await;
    let change = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(change)).await;

    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it waits");

    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    let last = record
        .messages
        .last()
        .map(|message| (message.id, message.seq));
    assert_eq!(last, Some((journal::closing_message_id(lease.run), 3)));
    assert!(record.calls.iter().all(journal::ToolCall::is_settled));
    // The next message of the session takes the next number.
    let next = fixture.run(&place).await;
    fixture.held(next.id, owner(1)).await;
    let messages = fixture.on_record(&place, next.id).await.messages;
    assert!(messages.iter().map(|message| message.seq).eq(1..=4));
}
