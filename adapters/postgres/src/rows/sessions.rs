//! Rows of `agents`, `sessions`, `audit_events` and `idempotency_keys`.

use hango_domain::agent::Agent;
use hango_domain::session::{Session, SessionLine};
use hango_ports::audit_store::AuditRow;
use hango_ports::idempotency::FirstAnswer;
use sqlx::postgres::PgRow;

use super::Columns;
use crate::error::Error;

/// An agent.
pub(crate) fn agent(row: &PgRow) -> Result<Agent, Error> {
    let columns = Columns::new(row, "agents", "id");
    Ok(Agent {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        version: columns.number("version")?,
        slug: columns.get("slug")?,
        name: columns.get("name")?,
        description: columns.get("description")?,
        settings: columns.json("settings")?,
        metadata: columns.json("metadata")?,
        created_by: columns.id("created_by")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        archived_at: columns.maybe_time("archived_at")?,
    })
}

/// A session.
pub(crate) fn session(row: &PgRow) -> Result<Session, Error> {
    let columns = Columns::new(row, "sessions", "id");
    Ok(Session {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        agent_id: columns.id("agent_id")?,
        created_by: columns.id("created_by")?,
        title: columns.get("title")?,
        metadata: columns.json("metadata")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

/// The line of a session, whose identity is in `session_id`.
pub(crate) fn session_line(row: &PgRow) -> Result<SessionLine, Error> {
    let columns = Columns::new(row, "sessions", "session_id");
    Ok(SessionLine {
        pending_runs: columns.number("pending_runs")?,
        running_run: columns.maybe_id("running_run")?,
        last_run_no: columns.big_number("last_run_no")?,
        last_seq: columns.big_number("last_seq")?,
    })
}

/// An audit row.
pub(crate) fn audit_row(row: &PgRow) -> Result<AuditRow, Error> {
    let columns = Columns::new(row, "audit_events", "id");
    Ok(AuditRow {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        actor_id: columns.maybe_id("actor_id")?,
        api_key_id: columns.maybe_id("api_key_id")?,
        action: columns.get("action")?,
        target_kind: columns.get("target_kind")?,
        target_id: columns.maybe_id("target_id")?,
        detail: columns.json("detail")?,
        trace_id: columns.maybe_form("trace_id")?,
        request_id: columns.get("request_id")?,
        status: columns.number("status")?,
        at: columns.time("at")?,
    })
}

/// What the first request with a key got.
pub(crate) fn first_answer(row: &PgRow) -> Result<FirstAnswer, Error> {
    let columns = Columns::new(row, "idempotency_keys", "user_id");
    let body: &[u8] = columns.get("body")?;
    Ok(FirstAnswer {
        body: columns.parsed("body", body.try_into())?,
        answer: columns.json("answer")?,
    })
}
