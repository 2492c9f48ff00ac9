//! The operator's calls: opened by a token that no tenant has. While none is set they do not exist.

use axum::extract::FromRequestParts;
use hango_application::use_cases::{RequestContext, Unauthenticated};
use http::header;
use http::request::Parts;

use crate::Api;
use crate::auth::bearer;
use crate::envelope::only;
use crate::problem::Problem;
use crate::rates::Peer;
use crate::refusals::CallerSlot;

/// An operator, let in, with his request.
pub(crate) struct Operator(pub(crate) RequestContext);

impl FromRequestParts<Api> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let presented = only(&parts.headers, &header::AUTHORIZATION)
            .and_then(bearer)
            .ok_or(Unauthenticated::Refused)?;
        if !api.admin_token.is_some_and(|token| token.is(presented)) {
            let peer = parts.extensions.get::<Peer>().copied();
            api.rates.failed(peer).await;
            return Err(Unauthenticated::Refused.into());
        }
        let request = parts.extensions.get::<RequestContext>().cloned();
        let request = request.unwrap_or_default();
        if let Some(slot) = parts.extensions.get::<CallerSlot>() {
            slot.fill_operator(&request);
        }
        Ok(Self(request))
    }
}
