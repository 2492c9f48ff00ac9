//! The statements of `docs/scaling.md` are ones that the server and this schema take.

use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;

#[tokio::test]
async fn the_guides_statements_can_be_executed() {
    let database = TestDatabase::new().await;
    let store = PostgresStore::open(Options::new(database.url())).expect("a URL");
    store.migrate().await.expect("the schema is brought up");
    let guide = include_str!("../../../docs/scaling.md");
    let statements: Vec<&str> = guide
        .split("```sql\n")
        .skip(1)
        .filter_map(|behind| behind.split("```").next())
        .collect();

    assert!(!statements.is_empty());
    for statement in statements {
        let executed = database.execute(statement).await;
        assert!(executed.is_ok(), "{statement}{executed:?}");
    }
    store.close().await;
}
