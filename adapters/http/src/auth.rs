//! Who calls: the API key of a request's `Authorization` header. No other carrier is looked at.

use axum::extract::FromRequestParts;
use hango_application::use_cases::{Caller, RequestContext, Unauthenticated};
use http::header;
use http::request::Parts;

use crate::Api;
use crate::envelope::only;
use crate::problem::Problem;
use crate::rates::{Peer, TooMany};
use crate::refusals::CallerSlot;

/// The caller, let in. A handler's first argument, because nothing else is checked before it.
pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<Api> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let request = parts.extensions.get::<RequestContext>().cloned();
        let key = only(&parts.headers, &header::AUTHORIZATION)
            .and_then(bearer)
            .ok_or(Unauthenticated::Refused)?;
        let known = api
            .use_cases
            .authenticate(key, request.unwrap_or_default())
            .await;
        if matches!(known, Err(Unauthenticated::Refused)) {
            let peer = parts.extensions.get::<Peer>().copied();
            api.rates.failed(peer).await;
        }
        let caller = known?;
        let admitted = api.rates.admit(&caller);
        if let Some(slot) = parts.extensions.get::<CallerSlot>()
            && !matches!(admitted, Err(TooMany { noted: false }))
        {
            slot.fill(&caller);
        }
        admitted?;
        Ok(Self(caller))
    }
}

/// The token of a `Bearer` authorization.
pub(crate) fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}
