//! Behind `PgBouncer` in transaction mode, where every transaction may have another server connection.
//!
//! It has to keep track of prepared statements, as it does from 1.21 on; Debian 12 has an older one. So
//! the test is left out unless it is asked for: `HANGO_TEST_PGBOUNCER` names the program, else it is the
//! one on the path.
//!
//! `cargo test --test e2e -- --ignored pooler`

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::Kind;
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::Plan;

/// Who everything belongs to that may not be root's.
const NOBODY: u32 = 65534;

/// The program in front of a database, with two connections to it.
struct PgBouncer {
    child: Child,
    port: u16,
    _dir: TempDir,
}

impl PgBouncer {
    async fn before(database: &PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let file = dir.path().join("pgbouncer.ini");
        let configuration = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 2\nmax_prepared_statements = 100\nmax_client_conn = 200\n",
            database.get_host(),
            database.get_port(),
        );
        // With `any` whoever comes is this user.
        let user = format!("user={}", database.get_username());
        let configuration =
            configuration.replace("\n[pgbouncer]", &format!(" {user}\n[pgbouncer]"));
        std::fs::write(&file, configuration).expect("the file can be written");
        let mut command = Command::new(program());
        if is_root(dir.path()) {
            for path in [dir.path(), &file] {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
            }
            command.uid(NOBODY).gid(NOBODY);
        }
        let child = command
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("HANGO_TEST_PGBOUNCER names PgBouncer 1.21 or later, or it is on the path");
        until("the pooler listens", async || {
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        Self {
            child,
            port,
            _dir: dir,
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where it is read")]
fn program() -> String {
    std::env::var("HANGO_TEST_PGBOUNCER").unwrap_or_else(|_| "pgbouncer".to_owned())
}

fn is_root(made: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    made.metadata().is_ok_and(|made| made.uid() == 0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PgBouncer 1.21 or later"]
async fn replicas_behind_a_pooler_execute_hand_over_and_cancel_as_they_do_without_one() {
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let direct = plan.store.url();
    let database: PgConnectOptions = direct.parse().expect("it is a URL");
    let pooler = PgBouncer::before(&database).await;
    let pooled = format!(
        "postgres://{}@127.0.0.1:{}/{}",
        database.get_username(),
        pooler.port,
        database.get_database().expect("it names one")
    );
    let settings = [
        ("HANGO_DATABASE_URL", pooled.as_str()),
        ("HANGO_DATABASE_DIRECT_URL", direct.as_str()),
    ];
    let plan = Plan {
        settings: &settings,
        ..plan
    };
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match (ask.run.as_str(), ask.turn) {
        ("held", 1) => Reply::calls([("keyed", json!({"n": 1}))]).held_before_end(&held),
        ("cancelled", _) => Reply::text("never whole").held_after(1, &held),
        (_, 1) => Reply::calls([("unsafe", json!({"n": 1})), ("safe", json!({"n": 2}))]),
        _ => Reply::text("all done"),
    };
    let mut world = plan.with_tools(model, |_| Response::text("done")).await;
    let other = world.join(&[], &[]).await;

    let session = world.api.open_session().await;
    for n in 0..40 {
        if n % 4 == 0 {
            world.start_run_in(&session, &format!("run {n}")).await;
        } else {
            world.start_run(&format!("run {n}")).await;
        }
    }
    history::all_ended(&world, "succeeded").await;
    let cancelled = world.start_run("cancelled").await;
    let run = world.start_run("held").await;
    until_true("both are asked for", || world.provider.asked().len() == 82).await;
    other.api.cancel(&cancelled.id).await;
    assert_eq!(other.api.ended(&cancelled.id).await["state"], "cancelled");
    world.hango().term();
    until("it is not ready any more", async || {
        (world.api.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    gate.open();
    let (status, took) = world.hango().ended().await;

    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    world.api = other.api.clone();
    assert_eq!(world.api.ended(&run.id).await["attempt"], 2);
    history::check(&world).await;
}
