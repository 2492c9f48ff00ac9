//! Lists in pieces: rows that come in meanwhile neither repeat nor hide others.

use std::time::Duration;

use hango_domain::RunId;
use hango_domain::access::Role;
use hango_domain::run::{Change, RunStatus};
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::{PageRequest, Position};
use hango_ports::run_store::RunFilter;
use hango_ports::session_store::SessionFilter;

use crate::{Fixture, Place, owner};

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

async fn runs(fixture: &Fixture, place: &Place, filter: RunFilter) -> Vec<RunId> {
    let page = fixture.stores.runs.list(place.seen(), filter, ALL).await;
    let page = page.expect("reads work");
    assert_eq!(page.next, None);
    page.items.iter().map(|run| run.id).collect()
}

/// Reading runs page by page, while new ones come in, yields each of the old ones once, newest first.
pub async fn runs_are_read_once_while_others_come_in(fixture: Fixture) {
    let place = fixture.place().await;
    let mut expected = Vec::new();
    for n in 0..7 {
        expected.insert(0, fixture.run(&place).await.id);
        // Some share their moment with the one before.
        fixture.clock.advance(Duration::from_micros(n % 2));
    }
    let mut read = Vec::new();
    let mut after: Option<Position> = None;
    loop {
        let request = PageRequest { limit: 2, after };
        let filter = RunFilter::default();
        let page = fixture
            .stores
            .runs
            .list(place.seen(), filter, request)
            .await;
        let page = page.expect("reads work");
        read.extend(page.items.iter().map(|run| run.id));
        fixture.run(&place).await;
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!(read, expected);
}

/// A list that ends with its page says so.
pub async fn a_full_last_page_has_no_next(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    let list = async |limit| {
        let request = PageRequest { limit, after: None };
        let filter = RunFilter::default();
        let page = fixture
            .stores
            .runs
            .list(place.seen(), filter, request)
            .await;
        page.expect("reads work")
    };
    assert_eq!(list(1).await.next, None);
    fixture.clock.advance(Duration::from_secs(1));
    let newer = fixture.run(&place).await;

    let page = list(1).await;

    let position = Position {
        at: newer.created_at,
        id: newer.id.0,
    };
    assert_eq!(page.next, Some(position));
    assert_eq!(page.items, [newer]);
    assert_eq!(list(2).await.items.last(), Some(&run));
}

/// Runs are found by their states, their session and their agent, and by all of them at once.
pub async fn runs_are_found_by_state_session_and_agent(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let waiting = fixture.run(&place).await.id;
    let agent = fixture.agent(&place.owner).await;
    let session = fixture.session(&place.owner, agent.id).await;
    let other = fixture
        .accept(fixture.new_run(&place.owner, session.id))
        .await
        .id;
    let find = async |states: &[RunStatus], session, agent| {
        let filter = RunFilter {
            states: states.to_vec(),
            session,
            agent,
        };
        runs(&fixture, &place, filter).await
    };

    assert_eq!(find(&[], None, None).await, [other, waiting, lease.run]);
    assert_eq!(find(&[RunStatus::Running], None, None).await, [lease.run]);
    let pending = [RunStatus::Queued, RunStatus::Running];
    let here = Some(place.session.id);
    assert_eq!(find(&pending, here, None).await, [waiting, lease.run]);
    assert_eq!(find(&[], None, Some(agent.id)).await, [other]);
    assert_eq!(find(&[RunStatus::Failed], None, None).await, []);
    assert_eq!(find(&[], here, Some(agent.id)).await, []);
}

/// Sessions and agents are listed newest first, page by page.
pub async fn sessions_and_agents_are_listed_newest_first(fixture: Fixture) {
    let place = fixture.place().await;
    let member = fixture.user(&place.owner, Role::Member).await;
    fixture.clock.advance(Duration::from_secs(1));
    let agent = fixture.agent(&place.owner).await;
    let session = fixture.session(&member, agent.id).await;
    let first = PageRequest {
        limit: 1,
        after: None,
    };

    let agents = &fixture.stores.agents;
    let page = agents
        .list(place.tenant, false, first)
        .await
        .expect("reads work");
    let second = PageRequest {
        limit: 1,
        after: page.next,
    };
    assert_eq!(page.items, std::slice::from_ref(&agent));
    let page = agents
        .list(place.tenant, false, second)
        .await
        .expect("reads work");
    assert_eq!((page.items, page.next), (vec![place.agent.clone()], None));

    let sessions = &fixture.stores.sessions;
    let list = async |filter, request| {
        let page = sessions.list(place.seen(), filter, request).await;
        page.expect("reads work")
    };
    let page = list(SessionFilter::default(), first).await;
    let second = PageRequest {
        limit: 1,
        after: page.next,
    };
    assert_eq!(page.items, std::slice::from_ref(&session));
    let page = list(SessionFilter::default(), second).await;
    assert_eq!((page.items, page.next), (vec![place.session.clone()], None));
    for filter in [
        SessionFilter {
            agent: Some(agent.id),
            created_by: None,
        },
        SessionFilter {
            agent: None,
            created_by: Some(member.user),
        },
    ] {
        assert_eq!(
            list(filter, ALL).await.items,
            std::slice::from_ref(&session)
        );
    }
}

/// The audit trail is read newest first, page by page.
pub async fn the_audit_trail_is_read_in_pages(fixture: Fixture) {
    let place = fixture.place().await;
    for _ in 0..3 {
        fixture.clock.advance(Duration::from_secs(1));
        fixture.run(&place).await;
    }
    let audit = &fixture.stores.audit;
    let list = async |request| {
        let page = audit
            .list(place.tenant, AuditFilter::default(), request)
            .await;
        page.expect("reads work")
    };

    let all = list(ALL).await.items;

    assert_eq!(all.len(), 6);
    assert!(all.is_sorted_by(|newer, older| (newer.at, newer.id) > (older.at, older.id)));
    let mut read = Vec::new();
    let mut after = None;
    while read.len() < all.len() {
        let page = list(PageRequest { limit: 4, after }).await;
        read.extend(page.items);
        after = page.next;
    }
    assert_eq!(read, all);
    assert_eq!(after, None);
}

/// A run's events are read behind a number, no more than asked for.
pub async fn events_are_read_behind_a_number(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let all = fixture.on_record(&place, lease.run).await.events;
    let read = async |after, limit| {
        let runs = &fixture.stores.runs;
        let events = runs.events(place.seen(), lease.run, after, limit).await;
        events.expect("reads work").expect("the run is there")
    };
    assert_eq!(all.len(), 4);

    assert_eq!(read(0, 3).await, all[..3]);
    assert_eq!(read(3, 3).await, all[3..]);
    assert_eq!(read(4, 3).await, []);
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    assert_eq!(read(4, 100).await.len(), 3);
    assert_eq!(lease.owner, owner(1));
}
