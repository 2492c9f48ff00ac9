//! What callers are told when the database is of no use, or what is in it.

use std::sync::Arc;

use hango_conformance::{Fixture, ManualClock};
use hango_domain::event::{EVENT_VERSION, Event};
use hango_ports::StoreFailure;
use hango_ports::agent_store::{AgentRef, AgentStoreError};
use hango_ports::identity_store::IdentityStoreError;
use hango_ports::store::StoreHealth;
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;
use serde_json::json;

async fn store() -> (Arc<PostgresStore>, Fixture, TestDatabase) {
    let database = TestDatabase::new().await;
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::new(database.url())
    };
    let store = PostgresStore::open(options).expect("the URL is one of PostgreSQL");
    let store = Arc::new(store);
    store.migrate().await.expect("the schema is brought up");
    let fixture = Fixture::new(store.stores(), clock);
    (store, fixture, database)
}

async fn execute(database: &TestDatabase, statements: &str) {
    let executed = database.execute(statements).await;
    executed.expect("statements are executed");
}

#[tokio::test]
async fn a_database_that_takes_no_changes_is_not_available_until_it_does() {
    let (store, fixture, database) = store().await;
    let scope = fixture.tenant().await;
    store.check().await.expect("it takes changes");
    let name = database.name();

    // As after a failover: of who is connected nobody is told.
    let go = "select pg_terminate_backend(pid) from pg_stat_activity
              where datname = current_database() and pid <> pg_backend_pid()";
    let closed = format!("alter database {name} set default_transaction_read_only = on");
    execute(&database, &closed).await;
    execute(&database, go).await;

    let unwell = store.check().await;
    assert!(matches!(unwell, Err(StoreFailure::Unavailable(_))));
    let agent = fixture.new_agent(&scope);
    let audit = fixture.audit(&scope, "agent.create", agent.id.0);
    let agents = &fixture.stores.agents;
    let refused = agents.create(agent.clone(), audit.clone()).await;
    assert!(matches!(
        refused,
        Err(AgentStoreError::Failure(StoreFailure::Unavailable(_)))
    ));

    let open = format!(
        "begin read write;
         alter database {name} reset default_transaction_read_only;
         commit"
    );
    execute(&database, &open).await;
    // No connection of before is used any more.
    store.check().await.expect("it takes changes again");
    let made = agents.create(agent, audit).await;
    made.expect("it makes them");

    execute(&database, &closed).await;
    execute(&database, go).await;
    store.check().await.expect_err("it takes none");
    execute(&database, &open).await;
    store.check().await.expect("it takes changes again");
}

#[tokio::test]
async fn a_database_without_a_schema_is_not_available() {
    let database = TestDatabase::new().await;
    let store = PostgresStore::open(Options::new(database.url())).expect("it is a URL");

    let unwell = store.check().await;

    assert!(matches!(unwell, Err(StoreFailure::Unavailable(_))));
}

#[tokio::test]
async fn a_schema_that_changes_meanwhile_is_no_outage() {
    let (_store, fixture, database) = store().await;
    let scope = fixture.tenant().await;
    let agents = &fixture.stores.agents;
    for width in [150, 160, 170] {
        let agent = fixture.agent(&scope).await;
        let found = agents.find(scope.tenant, AgentRef::Id(agent.id)).await;
        assert_eq!(found.expect("reads work"), Some(agent.clone()));

        // What was prepared answers with columns of another type.
        let changed = format!("alter table agents alter column name type varchar({width})");
        execute(&database, &changed).await;

        let found = agents.find(scope.tenant, AgentRef::Id(agent.id)).await;
        assert_eq!(found.expect("it is prepared anew"), Some(agent));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let (_store, fixture, database) = store().await;
    let scope = fixture.tenant().await;
    let agent = fixture.agent(&scope).await;
    let damaged = "update agents set settings = '{\"provider\": 7}'";
    execute(&database, damaged).await;

    let agents = &fixture.stores.agents;
    let unreadable = agents.find(scope.tenant, AgentRef::Id(agent.id)).await;

    let Err(AgentStoreError::Failure(StoreFailure::Corrupt {
        table, column, row, ..
    })) = unreadable
    else {
        panic!("it cannot be read: {unreadable:?}");
    };
    assert_eq!(
        (table, column, row),
        ("agents", "settings", agent.id.to_string())
    );
}

#[tokio::test]
async fn what_a_newer_build_told_of_a_run_is_passed_on() {
    let (_store, fixture, database) = store().await;
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await.events;
    // The claim's, in a format that nobody here knows.
    let newer = format!(
        r#"update events set version = {}, told = '[
               {{"turn": 0, "type": "run.started"}},
               {{"turn": 1, "type": "run.forked", "into": [1, 2]}},
               {{"turn": 1, "type": "turn.started", "of": "run"}}
           ]' where run_id = '{}' and n = 4"#,
        EVENT_VERSION + 1,
        lease.run
    );
    execute(&database, &newer).await;

    let events = fixture.on_record(&place, lease.run).await.events;

    assert_eq!(events[..1], before[..1]);
    let told = |event: &Event| {
        let kind = serde_json::to_value(&event.kind).ok();
        (event.n, event.turn, kind)
    };
    let told: Vec<_> = events[1..].iter().map(told).collect();
    let started = json!({"type": "run.started"});
    let forked = json!({"type": "run.forked", "into": [1, 2]});
    let turn = json!({"type": "turn.started", "of": "run"});
    let expected = [
        (2, 0, Some(started)),
        (3, 1, Some(forked)),
        (4, 1, Some(turn)),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_the_schema_forbids_is_no_outage() {
    let (_store, fixture, _database) = store().await;
    let scope = fixture.tenant().await;
    let nobody = fixture.new_tenant();
    let user = fixture.new_user(scope.tenant, hango_domain::access::Role::Member);
    let audit = fixture.audit(&scope, "user.create", user.id.0);
    let identities = &fixture.stores.identities;
    identities
        .create_user(user.clone(), audit.clone())
        .await
        .expect("it is a new one");

    // The same identity in another tenant, with its first owner.
    let owner = hango_domain::people::User {
        tenant_id: nobody.id,
        ..user
    };
    let key = fixture.new_key(&owner);
    let forbidden = identities.create_tenant(nobody, owner, key, audit).await;

    assert!(matches!(
        forbidden,
        Err(IdentityStoreError::Failure(StoreFailure::Corrupt {
            column: "constraint",
            ..
        }))
    ));
}

#[tokio::test]
async fn d47_the_trail_is_never_changed() {
    let (_store, fixture, database) = store().await;
    fixture.tenant().await;

    for change in [
        "update audit_events set status = 1",
        "delete from audit_events",
        "truncate audit_events",
    ] {
        let changed = database.execute(change).await;

        let refused = changed.expect_err("it is refused").to_string();
        assert!(refused.contains("never changed"), "{change}: {refused}");
    }
}
