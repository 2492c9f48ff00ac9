//! The database from outside: facts that the API does not tell, read as an operator would. Every row
//! comes as one JSON text, so that both kinds of database are read alike.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgPool, SqliteConnection};

use crate::moment::Moment;

/// A database.
#[derive(Clone, Debug)]
pub(crate) enum Facts {
    /// A file.
    Sqlite(PathBuf),
    /// A server, reached directly.
    Postgres(PgPool),
}

/// A statement for each kind of database.
struct Question {
    sqlite: &'static str,
    postgres: &'static str,
}

/// A claim: the run and its attempt.
pub(crate) type Claim = (String, i64);

/// A run that is running.
#[derive(Clone, Debug)]
pub(crate) struct RunningRow {
    /// Its session.
    pub(crate) session: String,
    /// The claim under which it is.
    pub(crate) claim: Claim,
    /// Who holds it.
    pub(crate) owner: String,
}

/// A stored run.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    /// Its id.
    pub(crate) id: String,
    /// Its session.
    pub(crate) session: String,
    /// Its state.
    pub(crate) state: String,
}

/// A stored event.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    /// The run.
    pub(crate) run: String,
    /// Its number.
    pub(crate) n: i64,
    /// The attempt that wrote it.
    pub(crate) attempt: i64,
    /// When.
    pub(crate) at: Moment,
    /// Its kind.
    pub(crate) kind: String,
    /// Why a run went back to the queue.
    pub(crate) reason: String,
}

impl Facts {
    async fn ask(&self, question: &Question, about: &str) -> anyhow::Result<Vec<Value>> {
        let texts: Vec<String> = match self {
            Self::Sqlite(path) => {
                let mut connection = open(path).await?;
                let texts = sqlx::query_scalar(question.sqlite)
                    .bind(about)
                    .fetch_all(&mut connection)
                    .await?;
                connection.close().await?;
                texts
            }
            Self::Postgres(pool) => {
                let query = sqlx::query_scalar(question.postgres).bind(about);
                query.fetch_all(pool).await?
            }
        };
        let rows = texts.iter().map(|text| serde_json::from_str(text));
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The claims that an owner holds.
    pub(crate) async fn held_by(&self, owner: &str) -> anyhow::Result<Vec<Claim>> {
        let question = Question {
            sqlite: "select json_object('id', id, 'attempt', attempt) from runs \
                     where state = 'running' and owner_id = ?",
            postgres: "select json_build_object('id', id, 'attempt', attempt)::text from runs \
                       where state = 'running' and owner_id = $1::uuid",
        };
        let rows = self.ask(&question, owner).await?.into_iter();
        Ok(rows
            .map(|row| (text(&row, "id"), number(&row, "attempt")))
            .collect())
    }

    /// Runs that are running although their lease ended that long ago.
    pub(crate) async fn overdue(&self, by: Duration) -> anyhow::Result<Vec<String>> {
        let question = Question {
            sqlite: "select json_object('id', id) from runs \
                     where state = 'running' and lease_expires_at < cast(? as integer)",
            postgres: "select json_build_object('id', id)::text from runs where state = 'running' \
                       and lease_expires_at < clock_timestamp() - $1::interval",
        };
        let about = match self {
            Self::Sqlite(_) => Moment::now().minus(by).0.to_string(),
            Self::Postgres(_) => format!("{} milliseconds", by.as_millis()),
        };
        let rows = self.ask(&question, &about).await?;
        Ok(rows.iter().map(|row| text(row, "id")).collect())
    }

    /// Runs that could be claimed now: queued, due, and with no earlier one of their session before them.
    pub(crate) async fn claimable(&self) -> anyhow::Result<Vec<String>> {
        let question = Question {
            sqlite: "select json_object('id', id) from runs r where state = 'queued' \
                     and (available_at is null or available_at < cast(? as integer)) \
                     and not exists (select 1 from runs e where e.session_id = r.session_id \
                         and e.state in ('queued', 'running') and e.session_no < r.session_no)",
            postgres: "select json_build_object('id', id)::text from runs r where state = 'queued' \
                       and (available_at is null or available_at < clock_timestamp()) and $1 <> '' \
                       and not exists (select 1 from runs e where e.session_id = r.session_id \
                           and e.state in ('queued', 'running') and e.session_no < r.session_no)",
        };
        let rows = self.ask(&question, &Moment::now().0.to_string()).await?;
        Ok(rows.iter().map(|row| text(row, "id")).collect())
    }

    /// All runs that are running.
    pub(crate) async fn running(&self) -> anyhow::Result<Vec<RunningRow>> {
        let question = Question {
            sqlite: "select json_object('id', id, 'session', session_id, 'attempt', attempt, \
                         'owner', owner_id) from runs where state = 'running' and ? is not null",
            postgres: "select json_build_object('id', id, 'session', session_id, \
                           'attempt', attempt, 'owner', owner_id)::text \
                       from runs where state = 'running' and $1 is not null",
        };
        let rows = self.ask(&question, "").await?.into_iter();
        Ok(rows
            .map(|row| RunningRow {
                session: text(&row, "session"),
                claim: (text(&row, "id"), number(&row, "attempt")),
                owner: text(&row, "owner"),
            })
            .collect())
    }

    /// All runs, in the order of their sessions' queues.
    pub(crate) async fn runs(&self) -> anyhow::Result<Vec<RunRow>> {
        let question = Question {
            sqlite: "select json_object('id', id, 'session', session_id, 'state', state) \
                     from runs where ? is not null order by session_id, session_no",
            postgres: "select json_build_object('id', id, 'session', session_id, 'state', state)\
                       ::text from runs where $1 is not null order by session_id, session_no",
        };
        let rows = self.ask(&question, "").await?.into_iter();
        Ok(rows
            .map(|row| RunRow {
                id: text(&row, "id"),
                session: text(&row, "session"),
                state: text(&row, "state"),
            })
            .collect())
    }

    /// All events, each run's in order.
    pub(crate) async fn events(&self) -> anyhow::Result<Vec<EventRow>> {
        let question = Question {
            sqlite: "select json_object('run', run_id, 'n', n, 'attempt', attempt, 'at', at, \
                         'kind', json_extract(kind, '$.type'), \
                         'reason', json_extract(kind, '$.reason')) \
                     from events where ? is not null order by run_id, n",
            // A row has all events of a write, up to its number.
            postgres: "select json_build_object('run', run_id, \
                           'n', n - json_array_length(told) + place, 'attempt', attempt, \
                           'at', (extract(epoch from at) * 1000000)::bigint, \
                           'kind', event->>'type', \
                           'reason', event->>'reason')::text \
                       from events, json_array_elements(told) with ordinality as e (event, place) \
                       where $1 is not null order by run_id, n, place",
        };
        let rows = self.ask(&question, "").await?.into_iter();
        Ok(rows
            .map(|row| EventRow {
                run: text(&row, "run"),
                n: number(&row, "n"),
                attempt: number(&row, "attempt"),
                at: Moment(number(&row, "at")),
                kind: text(&row, "kind"),
                reason: text(&row, "reason"),
            })
            .collect())
    }

    /// Connections of replicas to a server, as it numbers them.
    pub(crate) async fn backends(&self) -> anyhow::Result<Vec<i64>> {
        let question = Question {
            sqlite: "select '{}' where ? is null",
            postgres: "select json_build_object('pid', pid)::text from pg_stat_activity \
                       where datname = 'faults' and application_name like $1 || '%' order by pid",
        };
        let rows = self.ask(&question, "hango").await?;
        Ok(rows.iter().map(|row| number(row, "pid")).collect())
    }

    /// The most running runs that a tenant has now.
    pub(crate) async fn running_of_a_tenant(&self) -> anyhow::Result<i64> {
        let question = Question {
            sqlite: "select json_object('n', count(*)) from runs where state = 'running' \
                     and ? is not null group by tenant_id",
            postgres: "select json_build_object('n', count(*))::text from runs \
                       where state = 'running' and $1 is not null group by tenant_id",
        };
        let rows = self.ask(&question, "").await?;
        let counts = rows.iter().map(|row| number(row, "n"));
        Ok(counts.max().unwrap_or_default())
    }

    /// The targets of an action's audit rows, as often as there are rows.
    pub(crate) async fn audited(&self, action: &str) -> anyhow::Result<Vec<String>> {
        let question = Question {
            sqlite: "select json_object('id', target_id) from audit_events where action = ?",
            postgres: "select json_build_object('id', target_id)::text from audit_events \
                       where action = $1",
        };
        let rows = self.ask(&question, action).await?;
        Ok(rows.iter().map(|row| text(row, "id")).collect())
    }
}

/// A connection that reads a file.
pub(crate) async fn open(path: &Path) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let options = options.busy_timeout(Duration::from_secs(10));
    Ok(options.connect().await?)
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

fn number(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_default()
}
