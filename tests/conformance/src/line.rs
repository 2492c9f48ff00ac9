//! A session's line: how many runs it takes, and what happens to the others.

use futures::future::join_all;
use hango_domain::run::{Change, Run, RunState, RunStatus};
use hango_domain::session::{LineError, OnBusy};
use hango_domain::{RunId, SessionId};
use hango_ports::page::PageRequest;
use hango_ports::run_store::{Accepted, RunFilter, RunStoreError};

use crate::{Fixture, Place, owner};

async fn runs(fixture: &Fixture, place: &Place, session: SessionId) -> Vec<Run> {
    let filter = RunFilter {
        session: Some(session),
        ..RunFilter::default()
    };
    let page = PageRequest {
        limit: 1000,
        after: None,
    };
    let found = fixture.stores.runs.list(place.seen(), filter, page).await;
    let mut runs = found.expect("reads work").items;
    runs.sort_by_key(|run| run.session_no);
    runs
}

fn rule(result: Result<Accepted, RunStoreError>) -> LineError {
    match result {
        Err(RunStoreError::Line(rule)) => rule,
        other => panic!("the line has no room for this, but: {other:?}"),
    }
}

/// Fifty callers at once fill a session exactly.
pub async fn the_cap_is_exact_whatever_races_for_it(fixture: Fixture) {
    let place = fixture.place().await;
    let accept = async || {
        let mut new = fixture.new_run(&place.owner, place.session.id);
        new.max_pending = 5;
        fixture.try_accept(new).await
    };

    let answers = join_all((0..50).map(|_| accept())).await;

    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(taken.len(), 5);
    for refused in refused {
        let full = LineError::Full {
            pending: 5,
            most: 5,
        };
        assert_eq!(rule(refused), full);
    }
    let numbers = runs(&fixture, &place, place.session.id).await;
    assert!(numbers.iter().map(|run| run.session_no).eq(1..=5));
}

/// Every run that ends makes room, however it ends; a refused one takes no number.
pub async fn an_end_makes_room(fixture: Fixture) {
    let place = fixture.place().await;
    let accept = async || {
        let mut new = fixture.new_run(&place.owner, place.session.id);
        new.max_pending = 2;
        fixture.try_accept(new).await
    };
    let first = accept().await.expect("there is room").run;
    let second = accept().await.expect("there is room").run;
    rule(accept().await);

    fixture
        .cancel(&place.owner, second.id)
        .await
        .expect("it waits");
    let third = accept().await.expect("there is room").run;
    rule(accept().await);
    let lease = fixture.held(first.id, owner(1)).await;
    rule(accept().await);
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    let fourth = accept().await.expect("there is room").run;

    let numbers = [first, second, third, fourth].map(|run| run.session_no);
    assert_eq!(numbers, [1, 2, 3, 4]);
}

/// Who does not want to wait is refused while anything is pending.
pub async fn reject_refuses_a_busy_session(fixture: Fixture) {
    let place = fixture.place().await;
    let reject = async || {
        let mut new = fixture.new_run(&place.owner, place.session.id);
        new.on_busy = OnBusy::Reject;
        fixture.try_accept(new).await
    };
    let first = reject().await.expect("nothing is pending").run;

    assert_eq!(rule(reject().await), LineError::Busy { pending: 1 });
    let lease = fixture.held(first.id, owner(1)).await;
    assert_eq!(rule(reject().await), LineError::Busy { pending: 1 });
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    reject().await.expect("nothing is pending");
}

/// Who interrupts has the waiting runs cancelled and the running one asked to end, and starts when it
/// has.
pub async fn interrupt_ends_what_is_pending_and_starts_behind_it(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let waiting = fixture.run(&place).await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.on_busy = OnBusy::Interrupt;
    new.max_pending = 2;

    let accepted = fixture.try_accept(new).await.expect("there is room");

    assert_eq!(accepted.interrupted, [lease.run]);
    assert_eq!(accepted.run.session_no, 3);
    let waiting = fixture.on_record(&place, waiting.id).await;
    assert_eq!(waiting.run.state, RunState::Cancelled { at: fixture.now() });
    let last = waiting.events.last().map(|event| event.kind.name());
    assert_eq!(last, Some("run.cancelled"));
    let running = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(running.cancel_requested_at, Some(fixture.now()));
    assert!(fixture.claim(accepted.run.id, owner(2)).await.is_none());
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    fixture.held(accepted.run.id, owner(2)).await;
}

/// An interruption that finds no room cancels nothing.
pub async fn an_interrupt_that_is_refused_cancels_nothing(fixture: Fixture) {
    let (place, _) = fixture.running().await;
    fixture.run(&place).await;
    let before = runs(&fixture, &place, place.session.id).await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.on_busy = OnBusy::Interrupt;
    new.max_pending = 1;

    let full = rule(fixture.try_accept(new).await);

    let expected = LineError::Full {
        pending: 1,
        most: 1,
    };
    assert_eq!(full, expected);
    assert_eq!(runs(&fixture, &place, place.session.id).await, before);
}

/// A waiting run that is interrupted in the middle of a turn answers its open calls, and the session's
/// messages stay in line.
pub async fn an_interrupt_answers_open_calls(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let change = fixture.give_back(lease, std::time::Duration::ZERO);
    fixture.written(Change::GiveBack(change)).await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.on_busy = OnBusy::Interrupt;

    let accepted = fixture.try_accept(new).await.expect("there is room");

    assert_eq!(accepted.interrupted, Vec::<RunId>::new());
    fixture.held(accepted.run.id, owner(1)).await;
    let messages = fixture.messages(place.seen(), place.session.id).await;
    assert!(messages.iter().map(|message| message.seq).eq(1..=4));
}

/// A run that is accepted again is the one that is there, whatever became of it.
pub async fn a_run_is_accepted_once(fixture: Fixture) {
    let place = fixture.place().await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.max_pending = 1;
    let first = fixture.accept(new.clone()).await;

    let again = fixture.try_accept(new.clone()).await.expect("it is there");
    assert_eq!(again.run, first);
    fixture
        .cancel(&place.owner, first.id)
        .await
        .expect("it waits");
    let again = fixture.try_accept(new).await.expect("it is there");

    assert_eq!(again.run.state.status(), RunStatus::Cancelled);
    let runs = runs(&fixture, &place, place.session.id).await;
    assert_eq!(runs, [again.run]);
}

/// A run is as it was accepted: nothing is lost of what the caller said.
pub async fn a_run_is_kept_as_it_was_accepted(fixture: Fixture) {
    let place = fixture.place().await;
    let mut new = fixture.new_run(&place.owner, place.session.id);
    new.trace.created_by_traceparent =
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());

    let run = fixture.accept(new.clone()).await;

    assert_eq!(fixture.on_record(&place, new.id).await.run, run);
    assert_eq!(run.trace, new.trace);
    assert_eq!((run.input, run.metadata), (new.input, new.metadata));
    assert_eq!(run.created_by, place.owner.user);
    assert_eq!((run.agent_id, run.agent_version), (place.agent.id, 1));
    assert_eq!(run.created_at, fixture.now());
}
