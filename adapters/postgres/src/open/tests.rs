use hango_test_database::TestDatabase;

use super::*;
use crate::error::Error;
use crate::testing::Proxy;

/// A value that the server has for a setting, in a statement alone and in a transaction.
async fn shown(store: &PostgresStore, setting: &'static str) -> (String, String) {
    let alone = store.pool.read(move |conn| {
        let query = sqlx::query_scalar("select current_setting($1)").bind(setting);
        Box::pin(async { Ok::<String, Error>(query.fetch_one(conn).await?) })
    });
    let inside = store.pool.transact(move |conn| {
        let query = sqlx::query_scalar("select current_setting($1)").bind(setting);
        Box::pin(async { Ok::<String, Error>(query.fetch_one(conn).await?) })
    });
    (
        alone.await.expect("settings are shown"),
        inside.await.expect("settings are shown"),
    )
}

/// Settings by which nothing waits or hangs for long.
const BOUNDS: [(&str, &str); 3] = [
    ("lock_timeout", "5s"),
    ("statement_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "2s"),
];

#[tokio::test]
async fn every_session_is_bounded_and_named() {
    let database = TestDatabase::new().await;
    let store = PostgresStore::open(Options::new(database.url())).expect("it is a URL");

    for (setting, bound) in BOUNDS {
        let both = (bound.to_owned(), bound.to_owned());
        assert_eq!(shown(&store, setting).await, both, "{setting}");
    }
    assert_eq!(shown(&store, "application_name").await.0, "hango");
    assert_eq!(shown(&store, "tcp_keepalives_idle").await.0, "10");
    store.close().await;
}

/// What is between `begin` and `end` of what was sent.
fn parameters(sent: &str) -> Vec<&str> {
    let start = sent.find("user\0").expect("a session is started");
    let words = sent[start..].split("\0\0").next().unwrap_or_default();
    words.split('\0').step_by(2).collect()
}

#[tokio::test]
async fn behind_a_pooler_nothing_belongs_to_a_session() {
    let database = TestDatabase::new().await;
    let pooler = Proxy::before(database.url()).await;
    let options = Options {
        url: pooler.url(database.url()),
        direct_url: Some(database.url().to_owned()),
        ..Options::new("")
    };
    let store = PostgresStore::open(options).expect("they are URLs");

    for (setting, bound) in BOUNDS {
        let (alone, inside) = shown(&store, setting).await;
        assert_eq!((alone.as_str(), inside.as_str()), ("0", bound), "{setting}");
    }
    // A pooler keeps track of these, and refuses others.
    let sent = pooler.sent();
    let mut sent = parameters(&sent);
    sent.sort_unstable();
    let kept_track_of = [
        "DateStyle",
        "TimeZone",
        "application_name",
        "client_encoding",
        "database",
        "user",
    ];
    assert_eq!(sent, kept_track_of);

    // Migrations and the kept connection do not come this way.
    let before = pooler.sent().len();
    store.migrate().await.expect("the schema is brought up");
    let lane = store.lane.run(|conn| {
        let query = sqlx::query_scalar("show lock_timeout");
        Box::pin(async { Ok::<String, Error>(query.fetch_one(conn).await?) })
    });
    assert_eq!(lane.await.expect("settings are shown"), "250ms");
    assert_eq!(pooler.sent().len(), before);
    store.close().await;
}

#[tokio::test]
async fn a_store_is_opened_before_its_database_is_there() {
    let options = Options {
        patience: Duration::from_millis(50),
        ..Options::new("postgres://hango@127.0.0.1:1/hango")
    };
    let store = PostgresStore::open(options).expect("it is a URL");

    let refused = shown_or_not(&store).await.expect_err("nobody is there");
    assert!(refused.to_string().contains("refused"), "{refused}");
}

async fn shown_or_not(store: &PostgresStore) -> Result<(), Error> {
    store.pool.read(|_| Box::pin(async { Ok(()) })).await
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_once() {
    for url in ["sqlite://hango.db", "postgres//x", "hango", ""] {
        let refused = PostgresStore::open(Options::new(url));
        assert!(matches!(refused, Err(OpenError::Url { .. })), "{url}");
    }
    let few = Options {
        max_connections: 2,
        ..Options::new("postgres://localhost/hango")
    };
    let refused = PostgresStore::open(few);
    assert!(matches!(
        refused,
        Err(OpenError::TooFewConnections { given: 2, least: 3 })
    ));
}
