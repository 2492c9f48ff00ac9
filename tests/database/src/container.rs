//! A PostgreSQL server in a container.

use std::process::{Command, Stdio};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use testcontainers::core::{IntoContainerPort, Mount, WaitFor};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tokio::time::{Instant, sleep};

use crate::guardian::Guardian;

/// The oldest version that hango works with.
const IMAGE: (&str, &str) = ("postgres", "15-alpine");

/// How long a server may take to start, and how often it is asked.
const START: Duration = Duration::from_mins(1);
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Waits for the end of the tests and removes the container, which may not have been made.
const LIFE: &str = r#"
trap 'docker rm --force --volumes "$1" >/dev/null 2>&1' EXIT
trap 'exit 1' HUP INT TERM
read -r _
"#;

/// A server. Dropping it removes it.
pub(crate) struct Container {
    /// The URL of its first database, as its superuser.
    pub(crate) url: String,
    _guardian: Guardian,
    _running: ContainerAsync<GenericImage>,
}

impl Container {
    /// Whether there is an engine.
    pub(crate) fn can_be_had() -> bool {
        let asked = Command::new("docker")
            .args(["version", "--format", "{{.Server.Version}}"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        asked.is_ok_and(|answered| answered.success())
    }

    /// Starts one and waits until it accepts connections.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let name = format!("hango-test-database-{}", std::process::id());
        // First, so that a process which is killed while the container starts leaves none.
        let mut shell = Command::new("/bin/sh");
        shell.stderr(Stdio::null());
        let guardian = Guardian::start(shell, LIFE, &[name.as_ref()])?;
        let container = GenericImage::new(IMAGE.0, IMAGE.1)
            .with_exposed_port(5432.tcp())
            .with_wait_for(WaitFor::message_on_either_std("init process complete"))
            .with_container_name(name)
            // In memory: nothing of it is kept, and on a disk a new database takes ten times as long.
            .with_mount(Mount::tmpfs_mount("/var/lib/postgresql/data"))
            .with_env_var("POSTGRES_PASSWORD", "hango")
            .with_cmd([
                "postgres",
                "-c",
                "fsync=off",
                "-c",
                "full_page_writes=off",
                "-c",
                "max_connections=500",
            ])
            .start()
            .await?;
        let host = container.get_host().await?;
        let port = container.get_host_port_ipv4(5432).await?;
        let url = format!("postgres://postgres:hango@{host}:{port}/postgres");
        until_it_answers(&url).await?;
        Ok(Self {
            url,
            _guardian: guardian,
            _running: container,
        })
    }
}

/// Waits for a server. What it logs does not tell: it says that it is ready a first time while it makes
/// its database, where nobody can connect, and the engine accepts connections before the server does.
async fn until_it_answers(url: &str) -> anyhow::Result<()> {
    let late = Instant::now() + START;
    loop {
        match PgConnection::connect(url).await {
            Ok(conn) => return Ok(conn.close().await?),
            Err(error) if Instant::now() > late => return Err(error.into()),
            Err(_) => sleep(ASK_AGAIN).await,
        }
    }
}
