//! What a service's answer means.

use hango_domain::text::mend_json;
use hango_domain::tool::ToolResult;
use reqwest::Response;
use serde::Deserialize;

/// How much of the body of an answer that is no success the model sees.
const ERROR_BYTES: usize = 2048;

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

/// The result that a response holds, of at most `max_bytes` of its body.
pub(super) async fn result(response: Response, max_bytes: usize) -> ToolResult {
    let status = response.status();
    let limit = if status.is_success() {
        max_bytes
    } else {
        ERROR_BYTES
    };
    let body = read(response, limit).await;
    if !status.is_success() {
        // The status says what matters, whether the body came or not.
        let text = body.map(|body| lossy(&body.bytes)).unwrap_or_default();
        return ToolResult::error(
            format!("the tool's service answered {status}\n{text}").trim_end(),
        );
    }
    match body {
        Ok(body) => success(&body, max_bytes),
        Err(error) => ToolResult::error(format!(
            "the tool's service answered {status}, and its answer broke off: {}",
            super::cause(&error)
        )),
    }
}

fn success(body: &Body, max_bytes: usize) -> ToolResult {
    if body.cut {
        let note = format!("\n[cut off: the answer has more than {max_bytes} bytes]");
        let room = max_bytes.saturating_sub(note.len()).min(body.bytes.len());
        return ToolResult::ok(format!("{}{note}", lossy(&body.bytes[..room])));
    }
    let text = lossy(&body.bytes);
    match serde_json::from_str(&mend_json(&text)) {
        Ok(Fields {
            for_llm,
            for_user,
            is_error,
        }) => ToolResult {
            for_llm,
            for_user,
            is_error,
        },
        Err(_) => ToolResult::ok(text),
    }
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
