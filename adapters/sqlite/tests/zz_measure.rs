//! temporary
use hango_conformance::{Fixture, ManualClock, owner};
use hango_domain::run::Change;
use hango_sqlite::{Options, SqliteStore};
use std::sync::Arc;
use std::time::Instant;
#[tokio::test(flavor = "multi_thread")]
async fn measure() {
    let dir = tempfile::tempdir_in("/work").unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(
        SqliteStore::open(dir.path().join("h.db"), Options::new(clock.clone(), true))
            .await
            .unwrap(),
    );
    store.migrate().await.unwrap();
    let f = Arc::new(Fixture::new(store.stores(), clock));
    let p = f.place().await;
    for clients in [1usize, 8, 32] {
        let n = 40 * clients.min(16);
        let t = Instant::now();
        let mut tasks = vec![];
        for c in 0..clients {
            let f = f.clone();
            let p = p.clone();
            tasks.push(tokio::spawn(async move {
                let s = f.session(&p.owner, p.agent.id).await;
                for _ in 0..n / clients {
                    let run = f.accept(f.new_run(&p.owner, s.id)).await;
                    let lease = f.held(run.id, owner(c as u128 + 1)).await;
                    let mut end = f.finish(lease, 1);
                    end.turn = Some(1);
                    f.written(Change::Finish(end)).await;
                }
            }));
        }
        for t in tasks {
            t.await.unwrap();
        }
        let d = t.elapsed();
        println!(
            "{clients} clients: {n} runs in {d:?}: {:.0} runs/s",
            n as f64 / d.as_secs_f64()
        );
    }
}
