//! The audit trail: a row goes with its change, in its transaction, or not at all.

use hango_domain::access::Role;
use hango_domain::session::OnBusy;
use hango_ports::audit_store::{AuditFilter, AuditRow, NewAudit};
use hango_ports::page::PageRequest;

use crate::{Fixture, Place};

async fn rows(fixture: &Fixture, place: &Place, filter: AuditFilter) -> Vec<AuditRow> {
    let page = PageRequest {
        limit: 1000,
        after: None,
    };
    let rows = fixture.stores.audit.list(place.tenant, filter, page).await;
    rows.expect("reads work").items
}

async fn created(fixture: &Fixture, place: &Place) -> Vec<AuditRow> {
    let filter = AuditFilter {
        action: Some("run.create".to_owned()),
        ..AuditFilter::default()
    };
    rows(fixture, place, filter).await
}

/// A row is kept as it was given, dated by the store.
pub async fn a_row_is_kept_as_it_was_given(fixture: Fixture) {
    let place = fixture.place().await;
    let row = NewAudit {
        target_id: None,
        status: 422,
        ..fixture.audit(&place.owner, "session.refuse", place.session.id.0)
    };

    let recorded = fixture.stores.audit.record(row.clone()).await;

    recorded.expect("the store works");
    let filter = AuditFilter {
        action: Some("session.refuse".to_owned()),
        ..AuditFilter::default()
    };
    let expected = AuditRow {
        id: row.id,
        tenant_id: place.tenant,
        actor_id: Some(place.owner.user),
        api_key_id: place.owner.key,
        action: "session.refuse".to_owned(),
        target_kind: "session".to_owned(),
        target_id: None,
        detail: row.detail,
        trace_id: None,
        request_id: row.request_id,
        status: 422,
        at: fixture.now(),
    };
    assert_eq!(rows(&fixture, &place, filter).await, [expected]);
}

/// An accepted run has one row, with its trace; accepting it again adds none.
pub async fn an_accepted_run_has_one_row_with_its_trace(fixture: Fixture) {
    let place = fixture.place().await;
    let new = fixture.new_run(&place.owner, place.session.id);
    fixture.accept(new.clone()).await;
    fixture.accept(new.clone()).await;

    let rows = created(&fixture, &place).await;

    let kept: Vec<_> = rows
        .iter()
        .map(|it| (it.target_id, it.trace_id, it.status))
        .collect();
    assert_eq!(kept, [(Some(new.id.0), Some(new.trace.trace_id), 202)]);
}

/// Its detail is what was given, and the agent.
pub async fn the_row_of_an_accepted_run_tells_of_its_agent(fixture: Fixture) {
    let place = fixture.place().await;
    let new = fixture.new_run(&place.owner, place.session.id);
    let audit = fixture.audit(&place.owner, "run.create", new.id.0);

    let accepted = fixture.stores.runs.accept(new, audit.clone(), None).await;

    accepted.expect("its session takes it");
    let rows = created(&fixture, &place).await;
    let details: Vec<_> = rows.into_iter().map(|row| row.detail).collect();
    assert_eq!(details, [audit.with_agent(place.agent.id).detail]);
}

/// A refused run has no row.
pub async fn a_refused_run_has_no_row(fixture: Fixture) {
    let place = fixture.place().await;
    fixture.run(&place).await;
    for (on_busy, max_pending) in [(OnBusy::Reject, 9), (OnBusy::Enqueue, 1)] {
        let mut new = fixture.new_run(&place.owner, place.session.id);
        (new.on_busy, new.max_pending) = (on_busy, max_pending);
        let refused = fixture.try_accept(new).await;
        assert!(refused.is_err());
    }

    assert_eq!(created(&fixture, &place).await.len(), 1);
}

/// Rows are found by what was done, to what, and by whom.
pub async fn rows_are_found_by_action_target_and_actor(fixture: Fixture) {
    let place = fixture.place().await;
    let member = fixture.user(&place.owner, Role::Member).await;
    let session = fixture.session(&member, place.agent.id).await;
    let run = fixture.accept(fixture.new_run(&member, session.id)).await;
    fixture.run(&place).await;
    let find = async |action: Option<&str>, target_id, actor_id| {
        let filter = AuditFilter {
            action: action.map(str::to_owned),
            target_id,
            actor_id,
        };
        let rows = rows(&fixture, &place, filter).await;
        let mut actions: Vec<String> = rows.into_iter().map(|row| row.action).collect();
        actions.sort_unstable();
        actions
    };

    assert_eq!(find(None, Some(run.id.0), None).await, ["run.create"]);
    let his = find(None, None, Some(member.user)).await;
    assert_eq!(his, ["run.create", "session.create"]);
    let both = find(Some("run.create"), None, None).await;
    assert_eq!(both, ["run.create", "run.create"]);
    let one = find(Some("run.create"), None, Some(member.user)).await;
    assert_eq!(one, ["run.create"]);
}

/// The store answers whether it works.
pub async fn a_store_that_works_says_so(fixture: Fixture) {
    let health = fixture.stores.health.check().await;

    assert!(health.is_ok(), "{health:?}");
}
