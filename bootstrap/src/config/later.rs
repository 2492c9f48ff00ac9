//! Settings of the contract whose features this build does not have. Their names are known and their
//! values are checked; a value that asks for the feature is refused, because a setting that is silently
//! ignored is worse than none.

use super::parse::{self, Parsed, address, http_url, switch};
use super::problems::Problems;
use super::settings::UNSET;
use super::values::Fallback::Text;
use super::values::{Fallback, Origin, Setting, Show, Values};

/// A setting of a later build.
pub(super) struct Later {
    /// The setting.
    pub(super) setting: Setting,
    /// Says what is wrong with a text, were the feature there.
    check: fn(&str) -> Parsed<()>,
}

macro_rules! later {
    ($($(#[doc = $doc:literal])+ $name:literal, $fallback:expr, $show:ident, $parse:expr;)*) => {
        /// The settings of later builds.
        pub(super) const LATER: &[Later] = &[$(Later {
            setting: Setting {
                name: $name,
                fallback: $fallback,
                show: Show::$show,
                doc: concat!($($doc),+),
            },
            check: |text| ($parse)(text).map(drop),
        }),*];
    };
}

later! {
    /// Where /metrics listens by itself.
    "HANGO_METRICS_LISTEN", UNSET, Plain, address;
    /// Whether metrics name tenants.
    "HANGO_METRICS_TENANT_LABEL", Text("true"), Plain, switch;
    /// Whether spans hold prompts, answers, arguments and results.
    "HANGO_TRACE_LLM_CONTENT", Text("false"), Plain, switch;
    /// Where spans, metrics and logs are sent, as OpenTelemetry says; unset sends nothing.
    "OTEL_EXPORTER_OTLP_ENDPOINT", UNSET, Url, http_url;
    /// Headers of what is sent, as OpenTelemetry says.
    "OTEL_EXPORTER_OTLP_HEADERS", UNSET, Secret, parse::text;
    /// This service's name, as OpenTelemetry says.
    "OTEL_SERVICE_NAME", UNSET, Plain, parse::text;
    /// Attributes of this service, as OpenTelemetry says.
    "OTEL_RESOURCE_ATTRIBUTES", UNSET, Plain, parse::text;
    /// Whether nothing is sent at all, as OpenTelemetry says.
    "OTEL_SDK_DISABLED", Text("false"), Plain, switch;
    /// Which traces are recorded, as OpenTelemetry says.
    "OTEL_TRACES_SAMPLER", UNSET, Plain, parse::text;
    /// The sampler's argument, as OpenTelemetry says.
    "OTEL_TRACES_SAMPLER_ARG", UNSET, Plain, parse::text;
}

/// Refuses every value that asks for a feature of a later build. Variables that are not hango's own
/// may be there for other programs: those are only returned, to be warned about.
pub(super) fn refuse(values: &Values, problems: &mut Problems) -> Vec<&'static str> {
    let mut ignored = Vec::new();
    for Later { setting, check } in LATER {
        let Some(value) = values
            .iter()
            .find(|value| value.setting.name == setting.name)
        else {
            continue;
        };
        let same = |fallback: Fallback| value.text == values.fallback(fallback);
        if value.origin == Origin::Default || same(setting.fallback) {
            continue;
        }
        if value.origin == Origin::Environment && !setting.name.starts_with("HANGO_") {
            ignored.push(setting.name);
        } else if problems.keep(value.place(), check(&value.text)).is_some() {
            problems.at(
                value.place(),
                "this build does not have that yet; leave it out",
            );
        }
    }
    ignored
}
