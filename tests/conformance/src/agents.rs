//! Agents, their versions, and what runs keep of them.

use std::time::Duration;

use hango_domain::agent::Agent;
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStoreError};
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunStoreError;
use hango_ports::session_store::SessionStoreError;
use serde_json::{Map, json};

use crate::{Fixture, Place, owner};

async fn archive(fixture: &Fixture, place: &Place) {
    let audit = fixture.audit(&place.owner, "agent.archive", place.agent.id.0);
    let agents = &fixture.stores.agents;
    let archived = agents.archive(place.tenant, place.agent.id, audit).await;
    archived.expect("the agent is there");
}

async fn update(
    fixture: &Fixture,
    place: &Place,
    version: Option<u32>,
    patch: AgentPatch,
) -> Result<Agent, AgentStoreError> {
    let audit = fixture.audit(&place.owner, "agent.update", place.agent.id.0);
    let agents = &fixture.stores.agents;
    let id = place.agent.id;
    agents.update(place.tenant, id, version, patch, audit).await
}

/// An agent is found by its id and by its slug, as it was added, dated by the store.
pub async fn an_agent_is_found_by_id_and_slug(fixture: Fixture) {
    let scope = fixture.tenant().await;
    let new = fixture.new_agent(&scope);
    let audit = fixture.audit(&scope, "agent.create", new.id.0);
    let agents = &fixture.stores.agents;

    let made = agents.create(new.clone(), audit).await.expect("all is new");

    let expected = Agent {
        created_at: fixture.now(),
        updated_at: fixture.now(),
        ..new
    };
    assert_eq!(made, expected);
    for agent in [AgentRef::Id(made.id), AgentRef::Slug(made.slug.clone())] {
        let found = agents.find(scope.tenant, agent).await;
        assert_eq!(found.expect("reads work").as_ref(), Some(&expected));
    }
}

/// A slug is taken in its tenant, by an archived agent too, and free in every other.
pub async fn a_slug_is_taken_even_by_an_archived_agent(fixture: Fixture) {
    let place = fixture.place().await;
    let stranger = fixture.tenant().await;
    let create = async |scope| {
        let agent = Agent {
            slug: place.agent.slug.clone(),
            ..fixture.new_agent(scope)
        };
        let audit = fixture.audit(scope, "agent.create", agent.id.0);
        fixture.stores.agents.create(agent, audit).await
    };

    let taken = create(&place.owner).await;
    assert!(matches!(taken, Err(AgentStoreError::SlugTaken)));
    archive(&fixture, &place).await;
    let taken = create(&place.owner).await;
    assert!(matches!(taken, Err(AgentStoreError::SlugTaken)));
    create(&stranger).await.expect("it is free there");
}

/// A change replaces what it names and makes the version one higher.
pub async fn a_change_makes_the_version_one_higher(fixture: Fixture) {
    let place = fixture.place().await;
    fixture.clock.advance(Duration::from_secs(5));
    let mut settings = place.agent.settings.clone();
    "model-2".clone_into(&mut settings.model);
    settings.temperature = None;

    let patch = AgentPatch {
        name: Some("Better".to_owned()),
        settings: Some(settings.clone()),
        metadata: Some(Map::from_iter([("a".to_owned(), json!(1))])),
        description: None,
    };
    let changed = update(&fixture, &place, Some(1), patch.clone()).await;

    let expected = Agent {
        version: 2,
        name: "Better".to_owned(),
        settings,
        metadata: patch.metadata.expect("the patch has some"),
        updated_at: fixture.now(),
        ..place.agent.clone()
    };
    assert_eq!(changed.expect("nothing forbids it"), expected);
    let found = fixture
        .stores
        .agents
        .find(place.tenant, AgentRef::Id(place.agent.id));
    assert_eq!(found.await.expect("reads work"), Some(expected));
}

/// Who thought that the agent had another version changes nothing.
pub async fn a_change_from_another_version_is_refused(fixture: Fixture) {
    let place = fixture.place().await;
    let patch = AgentPatch {
        name: Some("Better".to_owned()),
        ..AgentPatch::default()
    };
    update(&fixture, &place, None, patch.clone())
        .await
        .expect("nothing forbids it");

    let refused = update(&fixture, &place, Some(1), AgentPatch::default()).await;

    assert!(matches!(
        refused,
        Err(AgentStoreError::VersionMismatch { found: 2 })
    ));
    let named = |name: &str| AgentPatch {
        name: Some(name.to_owned()),
        ..AgentPatch::default()
    };
    let both = futures::future::join(
        update(&fixture, &place, Some(2), named("One")),
        update(&fixture, &place, Some(2), named("Two")),
    );
    let (one, two) = both.await;
    assert_ne!(one.is_ok(), two.is_ok());
}

/// A change that changes nothing makes no version, touches no moment and leaves no row; it is refused like
/// any other where the agent has another version.
pub async fn a_change_that_changes_nothing_makes_no_version(fixture: Fixture) {
    let place = fixture.place().await;
    let rows = async || {
        let all = PageRequest {
            limit: 100,
            after: None,
        };
        let audit = &fixture.stores.audit;
        let listed = audit.list(place.tenant, AuditFilter::default(), all).await;
        listed.expect("reads work").items.len()
    };
    let before = rows().await;
    fixture.clock.advance(Duration::from_secs(5));
    let same = AgentPatch {
        name: Some(place.agent.name.clone()),
        description: Some(place.agent.description.clone()),
        settings: Some(place.agent.settings.clone()),
        metadata: Some(place.agent.metadata.clone()),
    };

    for (version, patch) in [
        (None, AgentPatch::default()),
        (Some(1), AgentPatch::default()),
        (None, same.clone()),
        (Some(1), same.clone()),
    ] {
        let answer = update(&fixture, &place, version, patch).await;
        assert_eq!(answer.expect("nothing forbids it"), place.agent);
    }

    let refused = update(&fixture, &place, Some(2), same).await;
    assert!(matches!(
        refused,
        Err(AgentStoreError::VersionMismatch { found: 1 })
    ));
    let agents = &fixture.stores.agents;
    let found = agents.find(place.tenant, AgentRef::Id(place.agent.id));
    assert_eq!(found.await.expect("reads work"), Some(place.agent.clone()));
    assert_eq!(rows().await, before);
}

/// An archived agent stays readable, is listed only where it is asked for, and is archived once.
pub async fn an_archived_agent_stays_readable(fixture: Fixture) {
    let place = fixture.place().await;
    archive(&fixture, &place).await;
    let at = fixture.now();
    fixture.clock.advance(Duration::from_secs(1));
    archive(&fixture, &place).await;

    let agents = &fixture.stores.agents;
    let found = agents
        .find(place.tenant, AgentRef::Id(place.agent.id))
        .await;
    let found = found.expect("reads work").expect("it is there");
    assert_eq!(found.archived_at, Some(at));
    let all = PageRequest {
        limit: 10,
        after: None,
    };
    let listed = agents.list(place.tenant, false, all).await;
    assert_eq!(listed.expect("reads work").items, []);
    let listed = agents.list(place.tenant, true, all).await;
    assert_eq!(listed.expect("reads work").items, [found]);
}

/// An archived agent takes neither sessions nor runs; runs that were accepted go on.
pub async fn an_archived_agent_takes_nothing_new(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    archive(&fixture, &place).await;

    let new = fixture.new_session(&place.owner, place.agent.id);
    let audit = fixture.audit(&place.owner, "session.create", new.id.0);
    let session = fixture.stores.sessions.create(new, audit, None).await;
    assert!(matches!(session, Err(SessionStoreError::AgentArchived)));
    let new = fixture.new_run(&place.owner, place.session.id);
    let accepted = fixture.try_accept(new).await;
    assert!(matches!(accepted, Err(RunStoreError::AgentArchived)));
    fixture.held(run.id, owner(1)).await;
}

/// Changing an agent never changes a run that was accepted before.
pub async fn a_run_keeps_the_agent_as_it_was(fixture: Fixture) {
    let place = fixture.place().await;
    let before = fixture.run(&place).await;
    let mut settings = place.agent.settings.clone();
    "Be long.".clone_into(&mut settings.system_prompt);
    let patch = AgentPatch {
        settings: Some(settings),
        ..AgentPatch::default()
    };
    let changed = update(&fixture, &place, None, patch).await;
    let changed = changed.expect("nothing forbids it");
    let session = fixture.session(&place.owner, place.agent.id).await;
    let after = fixture
        .accept(fixture.new_run(&place.owner, session.id))
        .await;
    assert_eq!([before.agent_version, after.agent_version], [1, 2]);

    for (run, agent) in [
        (before, place.agent.snapshot()),
        (after, changed.snapshot()),
    ] {
        let claimed = fixture.claim(run.id, owner(1)).await;
        let context = claimed.map(|claimed| claimed.context);
        let context = context.expect("nothing stands before the claim");
        assert_eq!(context.expect("it can be read").agent, agent);
    }
}
