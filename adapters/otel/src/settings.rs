//! What OpenTelemetry's variables say, read as its specification does.

use hango_domain::Sampling;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

use crate::names::{key, value};

/// Where spans go, and whose they are.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// Where the collector is; `/v1/traces` is added to it.
    pub endpoint: Url,
    /// Sent with every request.
    pub headers: Headers,
    /// Whose spans they are.
    pub service: Service,
}

/// Whose spans and metrics they are.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// What its operator says of it.
    pub attributes: ResourceAttributes,
    /// Its name, where it is not called hango.
    pub name: Option<String>,
    /// The process, for as long as it lives.
    pub instance: String,
}

/// Headers of requests to a collector. They may hold keys.
#[derive(Clone, Debug, Default)]
pub struct Headers(pub(crate) Vec<(String, SecretString)>);

/// Attributes of a service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResourceAttributes(Vec<(String, String)>);

/// What is wrong with a variable. It does not repeat it.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SettingsError {
    /// The list cannot be read.
    #[error("not a list of key=value, separated by commas")]
    List,
    /// No header may have such a name or value.
    #[error("names a header, or has a value, that HTTP does not allow")]
    Header,
    /// There is no such sampler.
    #[error(
        "not a sampler: always_on, always_off, traceidratio, or one of them behind parentbased_"
    )]
    Sampler,
    /// The share cannot be read.
    #[error("not a number between 0 and 1")]
    Share,
}

impl Headers {
    /// Reads `OTEL_EXPORTER_OTLP_HEADERS`.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let headers = pairs(text)?;
        let legal = |(name, value): &(String, String)| {
            reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && reqwest::header::HeaderValue::from_str(value).is_ok()
        };
        if !headers.iter().all(legal) {
            return Err(SettingsError::Header);
        }
        let secret = |(name, value): (String, String)| (name, SecretString::from(value));
        Ok(Self(headers.into_iter().map(secret).collect()))
    }
}

impl ResourceAttributes {
    /// Reads `OTEL_RESOURCE_ATTRIBUTES`.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        pairs(text).map(Self)
    }
}

impl Service {
    /// What is said of it with everything.
    pub(crate) fn resource(&self) -> Resource {
        let given = self.attributes.0.iter();
        let given = given.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let own = [
            KeyValue::new(key::SERVICE_VERSION, env!("CARGO_PKG_VERSION")),
            KeyValue::new(key::SERVICE_INSTANCE_ID, self.instance.clone()),
        ];
        let name = self.name.clone();
        let name = name.map(|name| KeyValue::new(key::SERVICE_NAME, name));
        Resource::builder_empty()
            .with_attributes([KeyValue::new(key::SERVICE_NAME, value::SERVICE)])
            .with_attributes(own)
            .with_attributes(given)
            .with_attributes(name)
            .build()
    }
}

/// Reads `OTEL_TRACES_SAMPLER` with its argument; without a sampler every trace is recorded that its
/// caller did not leave out.
pub fn sampling(sampler: Option<&str>, share: Option<&str>) -> Result<Sampling, SettingsError> {
    let Some(sampler) = sampler else {
        return Ok(Sampling::default());
    };
    let (follows, root) = match sampler.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, sampler),
    };
    let sampling = match root {
        "always_on" => Sampling::share(1.0),
        "always_off" => Sampling::share(0.0),
        "traceidratio" => {
            let share = share.unwrap_or("1.0").trim().parse::<f64>();
            let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
            Sampling::share(share.ok_or(SettingsError::Share)?)
        }
        _ => return Err(SettingsError::Sampler),
    };
    Ok(if follows {
        sampling.following_parents()
    } else {
        sampling
    })
}

/// Reads `key=value,key=value`, values as in a URL. Empty items are passed over.
fn pairs(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    items
        .map(|item| {
            let (key, value) = item.split_once('=').ok_or(SettingsError::List)?;
            let key = key.trim();
            let value = percent_decode_str(value.trim()).decode_utf8();
            let value = value.map_err(|_| SettingsError::List)?;
            if key.is_empty() {
                return Err(SettingsError::List);
            }
            Ok((key.to_owned(), value.into_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hango_domain::TraceId;
    use opentelemetry::Key;
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn headers_are_read_as_in_a_url_and_shown_to_nobody() {
        let headers =
            Headers::parse("authorization=Basic%20c2VjcmV0, x-scope = a,").expect("legal");

        let read: Vec<_> = headers
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
            .collect();
        assert_eq!(
            read,
            [("authorization", "Basic c2VjcmV0"), ("x-scope", "a")]
        );
        assert!(!format!("{headers:?}").contains("c2VjcmV0"));
    }

    #[test]
    fn what_no_header_can_be_is_refused_without_repeating_it() {
        for (text, wrong) in [
            ("canary", SettingsError::List),
            ("=canary", SettingsError::List),
            ("a b=canary", SettingsError::Header),
            ("a=canary%0A", SettingsError::Header),
        ] {
            let refused = Headers::parse(text).err();
            assert_eq!(refused, Some(wrong), "{text}");
            assert!(!wrong.to_string().contains("canary"));
        }
    }

    #[test]
    fn a_service_is_called_as_its_operator_says() {
        let named = |service_name: Option<&str>, attributes: &str| {
            let service = Service {
                attributes: ResourceAttributes::parse(attributes).expect("a list"),
                name: service_name.map(str::to_owned),
                instance: "i".to_owned(),
            };
            let resource = service.resource();
            let get = |key: &'static str| resource.get(&Key::new(key)).map(|it| it.to_string());
            (get(key::SERVICE_NAME), get("deployment.environment.name"))
        };
        let text = |text: &str| Some(text.to_owned());

        assert_eq!(named(None, ""), (text("hango"), None));
        let attributes = "service.name=b,deployment.environment.name=test";
        assert_eq!(named(None, attributes), (text("b"), text("test")));
        assert_eq!(named(Some("c"), attributes).0, text("c"));
    }

    #[test]
    fn samplers_are_those_of_the_specification() {
        let trace = TraceId([0xff; 16]);
        let records = |sampler: &str, share: Option<&str>| {
            let sampling = sampling(Some(sampler), share);
            sampling.map(|it| (it.records(trace), it.records_within(trace, true)))
        };

        assert_eq!(records("always_on", None), Ok((true, true)));
        assert_eq!(records("always_off", None), Ok((false, false)));
        assert_eq!(records("parentbased_always_off", None), Ok((false, true)));
        assert_eq!(records("traceidratio", Some("0.5")), Ok((false, false)));
        assert_eq!(records("parentbased_traceidratio", None), Ok((true, true)));
        assert_eq!(
            records("traceidratio", Some("2")),
            Err(SettingsError::Share)
        );
        assert_eq!(records("sometimes", None), Err(SettingsError::Sampler));
        assert_eq!(sampling(None, None), Ok(Sampling::default()));
    }
}
