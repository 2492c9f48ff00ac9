//! Who calls, and what is known of his request.

use hango_domain::access::Scope;
use hango_domain::{SpanId, TraceId};
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::Credential;
use hango_ports::telemetry::RequestTrace;

use super::UseCaseError;

/// An authenticated caller with his request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    /// What he may see and do.
    pub scope: Scope,
    /// His key, who he is and his tenant, as they were when he was let in.
    pub credential: Credential,
    /// His request.
    pub request: RequestContext,
}

/// What tells a request from others.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestContext {
    /// Its id; `None` when an operator acts without HTTP.
    pub id: Option<String>,
    /// Where it was traced; `None` when it was not.
    pub traceparent: Option<Traceparent>,
}

/// A span context of W3C Trace Context, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Traceparent {
    trace_id: TraceId,
    span_id: SpanId,
    is_recorded: bool,
    text: String,
}

impl Caller {
    /// The caller whose credential was found to be good.
    #[must_use]
    pub const fn new(credential: Credential, request: RequestContext) -> Self {
        Self {
            scope: Scope {
                tenant: credential.tenant.id,
                user: credential.user.id,
                role: credential.user.role,
                key: Some(credential.key.id),
            },
            credential,
            request,
        }
    }

    /// Refuses whom his role does not let administer the tenant.
    pub(super) fn must_administer(&self) -> Result<(), UseCaseError> {
        if self.scope.role.administers() {
            Ok(())
        } else {
            Err(UseCaseError::Forbidden)
        }
    }
}

impl RequestContext {
    /// An audit row of what is done in this request.
    pub(super) fn noted(&self, audit: NewAudit) -> NewAudit {
        NewAudit {
            trace_id: self.traceparent.as_ref().map(Traceparent::trace_id),
            request_id: self.id.clone(),
            ..audit
        }
    }
}

impl Traceparent {
    /// The span context that a `traceparent` header names; `None` if it is not one. What a later version
    /// of the format appends is left out.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let known = match version {
            "00" => parts.next().is_none(),
            later => is_lower_hex(later) && later != "ff",
        };
        let trace_id: TraceId = trace.parse().ok()?;
        let span_id: SpanId = span.parse().ok()?;
        let named = trace_id != TraceId([0; 16]) && span_id != SpanId([0; 8]);
        (known && named && is_lower_hex(flags)).then(|| Self {
            trace_id,
            span_id,
            is_recorded: u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1),
            text: format!("00-{trace_id}-{span_id}-{flags}"),
        })
    }

    /// The span context of a request here.
    #[must_use]
    pub fn of(request: &RequestTrace) -> Self {
        let RequestTrace {
            trace_id,
            span_id,
            sampled,
            ..
        } = *request;
        let flags = u8::from(sampled);
        Self {
            trace_id,
            span_id,
            is_recorded: sampled,
            text: format!("00-{trace_id}-{span_id}-{flags:02x}"),
        }
    }

    /// The trace.
    #[must_use]
    pub const fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// The span.
    #[must_use]
    pub const fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// Whether whoever sent it records it.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// It as a header.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether `text` is one byte in lower-case hexadecimal digits.
fn is_lower_hex(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn a_span_context_reads_back_as_it_was_sent() {
        let header = format!("00-{TRACE}-{SPAN}-01");

        let parsed = Traceparent::parse(&header);

        assert_eq!(parsed.as_ref().map(Traceparent::as_str), Some(&*header));
        assert_eq!(
            parsed.map(|context| context.trace_id().to_string()),
            Some(TRACE.to_owned())
        );
    }

    #[test]
    fn a_later_version_is_read_as_the_first() {
        let parsed = Traceparent::parse(&format!("cc-{TRACE}-{SPAN}-01-more"));

        let first = format!("00-{TRACE}-{SPAN}-01");
        assert_eq!(parsed.as_ref().map(Traceparent::as_str), Some(&*first));
    }

    #[test]
    fn what_is_no_span_context_is_none() {
        for header in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
        ] {
            assert_eq!(Traceparent::parse(&header), None, "{header}");
        }
    }
}
