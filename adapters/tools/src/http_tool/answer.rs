//! What a service's answer means.

use hango_domain::text::mend_json;
use hango_domain::tool::{ToolFailure, ToolResult};
use reqwest::Response;
use serde::Deserialize;

use super::secrets::Secrets;

/// How much of the body of an answer that is no success the model sees.
const ERROR_BYTES: usize = 2048;

/// How many times longer than what a model may see an answer is read: its fields are cut when they are
/// known, since half a JSON document has none.
const READ_AHEAD: usize = 8;

/// A result in the fields of [`ToolResult`].
#[derive(Debug, Deserialize)]
struct Fields {
    for_llm: String,
    for_user: Option<String>,
    #[serde(default)]
    is_error: bool,
}

/// The beginning of a body.
struct Body {
    bytes: Vec<u8>,
    /// Whether there is more.
    cut: bool,
}

/// A successful answer that broke off.
pub(super) struct Broken {
    /// What a model is told.
    pub(super) told: String,
    /// What an operator may read.
    pub(super) source: reqwest::Error,
}

/// The result that a response holds: text of at most `max_bytes`, or fields, which whoever called the
/// tool cuts. What is much longer is text, whatever it began as. An error has none of the `secrets`.
pub(super) async fn result(
    response: Response,
    max_bytes: usize,
    secrets: &Secrets,
) -> Result<ToolResult, Broken> {
    let status = response.status();
    let limit = if status.is_success() {
        max_bytes.saturating_mul(READ_AHEAD)
    } else {
        // So far that none of them is cut in two, and its first half shown.
        ERROR_BYTES + secrets.longest()
    };
    let body = read(response, limit).await;
    if !status.is_success() {
        // The status says what matters, whether the body came or not.
        let text = body.map(|body| lossy(&body.bytes)).unwrap_or_default();
        let text = secrets.scrub(&text);
        let text = &text[..text.floor_char_boundary(ERROR_BYTES)];
        let told = format!("the tool's service answered {status}\n{text}");
        return Ok(ToolResult::error(told.trim_end()));
    }
    let body = body.map_err(|source| Broken {
        told: format!("the tool's service answered {status}, and its answer broke off"),
        source,
    })?;
    Ok(success(&body, max_bytes))
}

fn success(body: &Body, max_bytes: usize) -> ToolResult {
    if !body.cut
        && let Ok(Fields {
            for_llm,
            for_user,
            is_error,
        }) = serde_json::from_str(&mend_json(&lossy(&body.bytes)))
    {
        return ToolResult {
            for_llm,
            for_user,
            is_error,
            failure: is_error.then_some(ToolFailure::ToolError),
        };
    }
    if body.bytes.len() <= max_bytes {
        return ToolResult::ok(lossy(&body.bytes));
    }
    let note = format!("\n[cut off: the answer has more than {max_bytes} bytes]");
    let room = max_bytes.saturating_sub(note.len());
    ToolResult::ok(format!("{}{note}", lossy(&body.bytes[..room])))
}

async fn read(mut response: Response, limit: usize) -> Result<Body, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if chunk.len() > room {
            return Ok(Body { bytes, cut: true });
        }
    }
    Ok(Body { bytes, cut: false })
}

/// Text of bytes that may end within a character.
fn lossy(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    };
    String::from_utf8_lossy(whole).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_fields_keeps_them_however_long_one_is() {
        let long = "L".repeat(300);
        let answer = serde_json::json!({"for_llm": long, "for_user": "short", "is_error": true});
        let body = Body {
            bytes: answer.to_string().into_bytes(),
            cut: false,
        };

        let result = success(&body, 100);

        let expected = ToolResult {
            for_llm: long,
            for_user: Some("short".to_owned()),
            is_error: true,
            failure: Some(ToolFailure::ToolError),
        };
        assert_eq!(result, expected);
    }

    #[test]
    fn an_answer_much_too_long_is_cut_and_says_so() {
        let body = Body {
            bytes: vec![b'x'; 800],
            cut: true,
        };

        let result = success(&body, 100);

        assert_eq!(result.for_llm.len(), 100);
        assert!(
            result
                .for_llm
                .ends_with("[cut off: the answer has more than 100 bytes]")
        );
    }
}
