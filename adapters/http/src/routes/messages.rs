//! Messages of a session.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use hango_application::use_cases::{FaultCode, Made};
use hango_domain::conversation::{Block, Message, Role, StopReason, Usage, is_blank};
use hango_domain::{MessageId, RunId, SessionId};
use hango_ports::session_store::MessageQuery;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::fields::{Fields, Place, fields, list as items, text};
use crate::idempotency::{self, KeyHeader};
use crate::openapi::requests::{self, Piece};
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::time::Time;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageBody {
    #[schema(value_type = Uuid)]
    id: MessageId,
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = Option<Uuid>)]
    run_id: Option<RunId>,
    /// Its place in the session: 1, 2, 3 … without gaps.
    seq: u64,
    #[schema(schema_with = schema::speaker)]
    role: Role,
    #[schema(schema_with = schema::content)]
    content: Vec<Block>,
    #[schema(schema_with = schema::stop_reason)]
    stop_reason: Option<StopReason>,
    #[schema(schema_with = schema::usage_of_message)]
    usage: Option<Usage>,
    /// Whether it is what was left of a broken answer, which no provider is ever sent.
    partial: bool,
    created_at: Time,
}

/// Messages, oldest first.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/messages", tag = "Sessions", operation_id = "list_messages",
    params(("session" = Uuid, Path, description = "The session."), Piece, ("run_id" = Option<Uuid>, Query, description = "Only those of this run."), ("after_seq" = Option<u64>, Query, description = "Only those behind this number.")),
    responses((status = 200, body = ListBody<MessageBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    mut params: Params,
) -> Result<Json<ListBody<MessageBody>>, Problem> {
    let run = params.id("run_id");
    let after_seq = params.number("after_seq", 0, i64::MAX.unsigned_abs());
    let paging = params.paging(&format!("sessions/{session}/messages"))?;
    let query = params.input(MessageQuery {
        after_seq: after_seq.unwrap_or(0).max(paging.after_number()),
        run,
        limit: paging.limit,
    });
    let messages = api.use_cases.messages(&caller, session, query).await?;
    let body = paging.numbered(messages, |message| message.seq, MessageBody::from);
    Ok(Json(body))
}

/// Appends a user's message without a run.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/messages", tag = "Sessions", operation_id = "append_message",
    params(("session" = Uuid, Path, description = "The session.")),
    request_body = requests::NewMessage,
    responses((status = 201, body = MessageBody)),
)]
pub(crate) async fn append(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    key: KeyHeader,
    params: Params,
    body: JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let call = format!("POST /v1/sessions/{session}/messages");
    let once = key.of(&caller, call, &body);
    let sent = body.read(params, |fields| {
        fields.required("content", content).unwrap_or_default()
    });
    let sent = key.judge(sent);
    let made = api.use_cases.append_message(&caller, session, sent, once);
    let Made { thing, replayed } = made.await?;
    let body = Json(MessageBody::from(thing));
    Ok((StatusCode::CREATED, idempotency::replayed(replayed), body))
}

/// What a client says: text, or a list of text blocks.
pub(crate) fn content(value: Value, place: &mut Place<'_>) -> Option<Vec<Block>> {
    match value {
        Value::String(text) => {
            if is_blank(&text) {
                place.fault(FaultCode::Empty, "the text is blank");
            }
            Some(vec![Block::text(text)])
        }
        Value::Array(_) => {
            let blocks = items(fields(block))(value, place)?;
            // What could not be read is said to be wrong already, and keeps its place.
            let unread = || Block::text("?");
            let blocks = blocks.into_iter().map(Option::flatten);
            Some(blocks.map(|block| block.unwrap_or_else(unread)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let detail = "text or a list of text blocks is expected";
            place.fault(FaultCode::InvalidType, detail);
            None
        }
    }
}

fn block(fields: &mut Fields<'_>) -> Option<Block> {
    fields.required("type", |value, place| {
        let kind = text(value, place)?;
        if kind != "text" {
            let detail = "only text blocks can be sent";
            place.fault(FaultCode::InvalidFormat, detail);
        }
        Some(())
    });
    fields.required("text", text).map(Block::text)
}

impl From<Message> for MessageBody {
    fn from(message: Message) -> Self {
        let Message {
            id,
            session_id,
            run_id,
            seq,
            role,
            content,
            stop_reason,
            usage,
            partial,
            created_at,
        } = message;
        Self {
            id,
            session_id,
            run_id,
            seq,
            role,
            content,
            stop_reason,
            usage,
            partial,
            created_at: Time(created_at),
        }
    }
}
