//! A request's body: JSON, within its bounds.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use hango_application::use_cases::{Fault, Input};
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::Api;
use crate::digits::find_wide_numbers;
use crate::envelope::only;
use crate::fields::{Fields, document, find_null_characters};
use crate::json;
use crate::params::Params;
use crate::problem::{Code, Problem};

/// How long a client may take to send a body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A body that is JSON; what is in it is not known yet.
pub(crate) struct JsonBody {
    bytes: Bytes,
    value: Value,
    faults: Vec<Fault>,
    /// Numbers that lost digits when they were read.
    wide: Vec<Fault>,
}

/// A body that may be left out.
pub(crate) struct OptionalBody(JsonBody);

impl JsonBody {
    /// It as it was sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the caller sent, read by `read`. A call with a body knows no query parameters.
    pub(crate) fn read<T>(
        self,
        params: Params,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Input<T> {
        let mut faults = params.unknown();
        faults.extend(self.faults);
        let input = document(self.value, faults, read);
        // Where a number is not expected, or too large in any case, that is said.
        input.judged(|_, found| found.extend(self.wide))
    }
}

impl OptionalBody {
    /// What the caller sent, which is nothing that anybody knows.
    pub(crate) fn nothing(self, params: Params) -> Input<()> {
        self.0.read(params, |_| ())
    }
}

impl FromRequest<Api> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        check_type(request.headers())?;
        parse(collect(request, api.max_body_bytes).await?)
    }
}

impl FromRequest<Api> for OptionalBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let typed = check_type(request.headers());
        let bytes = collect(request, api.max_body_bytes).await?;
        if bytes.is_empty() {
            return Ok(Self(JsonBody {
                bytes,
                value: Value::Object(Map::new()),
                faults: Vec::new(),
                wide: Vec::new(),
            }));
        }
        typed?;
        parse(bytes).map(Self)
    }
}

/// JSON in UTF-8, not compressed.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let plain = |coding: &str| coding.eq_ignore_ascii_case("identity");
    let encoded = headers.contains_key(header::CONTENT_ENCODING)
        && !only(headers, &header::CONTENT_ENCODING).is_some_and(plain);
    let is_json = only(headers, &header::CONTENT_TYPE).is_some_and(|media| {
        let mut parts = media.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        essence.eq_ignore_ascii_case("application/json")
            && parts.all(|parameter| {
                let said = parameter.to_ascii_lowercase();
                matches!(&*said, "" | "charset=utf-8" | "charset=\"utf-8\"")
            })
    });
    if encoded || !is_json {
        let detail = "the body has to be application/json, in UTF-8, not compressed";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    Ok(())
}

async fn collect(request: Request, most: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("a body may have {most} bytes");
        Problem::new(Code::BodyTooLarge, detail)
    };
    let announced = only(request.headers(), &header::CONTENT_LENGTH)
        .and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), most);
    match timeout(TIMEOUT, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        // The client broke off: nobody will read the answer.
        Ok(Err(_)) => Err(Problem::new(
            Code::MalformedJson,
            "the body is not complete",
        )),
        Err(_) => Err(Problem::new(
            Code::RequestTimeout,
            "the body took too long to arrive",
        )),
    }
}

fn parse(bytes: Bytes) -> Result<JsonBody, Problem> {
    let value = json::parse(&bytes)
        .map_err(|error| Problem::new(Code::MalformedJson, error.to_string()))?;
    let faults = find_null_characters(&value);
    let wide = find_wide_numbers(&bytes);
    Ok(JsonBody {
        bytes,
        value,
        faults,
        wide,
    })
}
