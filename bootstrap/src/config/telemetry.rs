//! What OpenTelemetry's variables say. They are read as its specification does, and so as for any program.

use hango_domain::Sampling;
use hango_otel::{OtlpSettings, Service, SettingsError, sampling};

use super::Settings;
use super::parse::Parsed;
use super::problems::Problems;

/// Reads what the exporter's crate reads.
pub(super) fn otlp<T>(
    parse: impl Fn(&str) -> Result<T, SettingsError>,
) -> impl Fn(&str) -> Parsed<T> {
    move |text| parse(text).map_err(|wrong| wrong.to_string())
}

/// The name of a sampler.
pub(super) fn sampler(text: &str) -> Parsed<String> {
    match sampling(Some(text), None) {
        Ok(_) => Ok(text.to_owned()),
        Err(wrong) => Err(wrong.to_string()),
    }
}

/// True or false in any case; of anything else the specification says that it is false.
#[expect(clippy::unnecessary_wraps, reason = "parsers share one signature")]
pub(super) fn otel_switch(text: &str) -> Parsed<bool> {
    Ok(text.eq_ignore_ascii_case("true"))
}

impl Settings {
    /// Where spans of the process `instance` go; `None` if nothing is sent.
    pub(crate) fn otlp(&self, instance: String) -> Option<OtlpSettings> {
        let endpoint = self.otlp_endpoint.clone().filter(|_| !self.otel_disabled)?;
        Some(OtlpSettings {
            endpoint,
            headers: self.otlp_headers.clone(),
            service: self.service(instance),
        })
    }

    /// Whose spans and metrics those of the process `instance` are.
    pub(crate) fn service(&self, instance: String) -> Service {
        Service {
            attributes: self.otel_resource.clone(),
            name: self.otel_service_name.clone(),
            instance,
        }
    }

    /// Whether the page of metrics is on the API's listener. It is read without a key, so only where nobody
    /// but the machine itself can reach that.
    pub(crate) const fn shows_metrics(&self) -> bool {
        self.metrics_listen.is_none() && self.listen.ip().is_loopback()
    }

    /// Which traces are recorded.
    pub(crate) fn sampling(&self) -> Sampling {
        // What is wrong with it was said at the start.
        self.read_sampling().unwrap_or_default()
    }

    /// Notes a share that is none.
    pub(super) fn check_sampling(&self, problems: &mut Problems) {
        if let Err(wrong) = self.read_sampling() {
            problems.at("OTEL_TRACES_SAMPLER_ARG", wrong);
        }
    }

    fn read_sampling(&self) -> Result<Sampling, SettingsError> {
        let share = self.otel_sampler_arg.as_deref();
        sampling(self.otel_sampler.as_deref(), share)
    }
}
