//! `get_time`: what time it is, anywhere.
//!
//! The moment comes from the `Clock` port, so that tests move it; zones come from the machine's database,
//! or from the bundled one where it has none.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use hango_domain::Timestamp;
use hango_domain::tool::{Idempotency, Invocation, Tool, ToolDef, ToolFailure, ToolResult, schema};
use hango_ports::Clock;
use jiff::tz::{self, TimeZone};
use serde_json::Value;

use crate::arguments::{Arguments, given};

/// How alike a name must be to be suggested, of 1000.
const NEAR: u32 = 800;

/// How many names are suggested.
const SUGGESTIONS: usize = 3;

/// Tells the time in a time zone.
///
/// [`Idempotency::Safe`]: it changes nothing, and a later reading is as true as an earlier one.
pub struct GetTime {
    clock: Arc<dyn Clock>,
    definition: ToolDef,
    arguments: Arguments,
}

impl GetTime {
    /// The tool's name.
    pub const NAME: &str = "get_time";

    /// A tool that reads `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let definition = definition();
        let arguments = Arguments::new(&definition.parameters);
        Self {
            clock,
            arguments: arguments.expect("the tool's own schema is one"),
            definition,
        }
    }
}

#[async_trait]
impl Tool for GetTime {
    fn definition(&self) -> ToolDef {
        self.definition.clone()
    }

    fn idempotency(&self) -> Idempotency {
        Idempotency::Safe
    }

    async fn execute(&self, invocation: Invocation) -> ToolResult {
        let input = given(&invocation.input);
        if let Err(mismatches) = self.arguments.check(&input) {
            return ToolResult::failed(ToolFailure::InvalidArgs, mismatches);
        }
        let zone = input.get("timezone").and_then(Value::as_str);
        time_in(zone.unwrap_or("UTC").trim(), self.clock.now())
    }
}

fn definition() -> ToolDef {
    ToolDef {
        name: GetTime::NAME.to_owned(),
        description:
            "Tells the current date, time, UTC offset and weekday. Use it whenever the answer \
                      depends on now; never guess."
                .to_owned(),
        parameters: schema::object([schema::field(
            "timezone",
            "string",
            "An IANA time zone such as Europe/Berlin. UTC if it is left out.",
            false,
        )]),
    }
}

fn time_in(name: &str, now: Timestamp) -> ToolResult {
    let zone = match tz::db().get(name) {
        Ok(zone) if !zone.is_unknown() => zone,
        Ok(_) | Err(_) => return ToolResult::failed(ToolFailure::InvalidArgs, unknown(name)),
    };
    match told(zone, now) {
        Ok(time) => ToolResult::ok(time),
        Err(error) => ToolResult::error(format!("the clock shows no possible time: {error}")),
    }
}

/// Such as `2026-11-30T04:15:00+01:00[Europe/Berlin] (Monday)`: whole seconds are what people ask for.
fn told(zone: TimeZone, now: Timestamp) -> Result<String, jiff::Error> {
    let seconds = now.as_micros().div_euclid(1_000_000);
    let time = jiff::Timestamp::from_second(seconds)?.to_zoned_datetime(zone);
    Ok(format!("{time} ({:?})", time.weekday()))
}

fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    let near = near(&shown);
    let hint = match near.as_slice() {
        [] => "use an IANA name such as Europe/Berlin".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    format!("there is no time zone {shown:?}; {hint}")
}

/// The zones whose names are most like `name`, whole or by their last part, best first.
fn near(name: &str) -> Vec<String> {
    let name = name.to_lowercase().replace(' ', "_");
    let mut near: Vec<(Reverse<u32>, String)> = tz::db()
        .available()
        .map(|zone| zone.as_str().to_owned())
        .filter(|zone| !zone.starts_with("posix/") && !zone.starts_with("right/"))
        .map(|zone| (Reverse(likeness(&name, &zone.to_lowercase())), zone))
        .filter(|(Reverse(likeness), _)| *likeness >= NEAR)
        .collect();
    near.sort();
    near.truncate(SUGGESTIONS);
    near.into_iter().map(|(_, zone)| zone).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a likeness is between 0 and 1"
)]
fn likeness(name: &str, zone: &str) -> u32 {
    let city = zone.rsplit('/').next().unwrap_or(zone);
    let likeness = strsim::jaro_winkler(name, zone).max(strsim::jaro_winkler(name, city));
    (likeness * 1000.0) as u32
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use hango_domain::RunId;
    use serde_json::{Map, json};
    use uuid::Uuid;

    use super::*;

    /// 2026-11-30, a quarter past three in UTC, and 123 456 µs.
    const NOW: i64 = 1_796_008_500_123_456;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(NOW)
        }
    }

    fn ask(input: Map<String, Value>) -> ToolResult {
        block_on(GetTime::new(Arc::new(Stopped)).execute(Invocation {
            input,
            run: RunId(Uuid::nil()),
            tool_use_id: "call_1".to_owned(),
            idempotency_key: "key".to_owned(),
            traceparent: String::new(),
        }))
    }

    fn ask_in(zone: Value) -> ToolResult {
        ask(Map::from_iter([("timezone".to_owned(), zone)]))
    }

    #[test]
    fn the_time_is_told_with_its_zone_and_weekday() {
        let expected = ToolResult::ok("2026-11-30T04:15:00+01:00[Europe/Berlin] (Monday)");

        assert_eq!(ask_in(json!("Europe/Berlin")), expected);
        assert_eq!(ask_in(json!(" europe/berlin ")), expected);
    }

    #[test]
    fn without_a_zone_it_is_utc() {
        let expected = ToolResult::ok("2026-11-30T03:15:00+00:00[UTC] (Monday)");

        assert_eq!(ask(Map::new()), expected);
        assert_eq!(ask_in(Value::Null), expected);
    }

    #[test]
    fn a_zone_that_does_not_exist_is_an_error_with_near_names() {
        let result = ask_in(json!("Europe/Berlim"));
        assert!(result.is_error);
        assert!(
            result.for_llm.contains("did you mean Europe/Berlin"),
            "{result:?}"
        );

        let result = ask_in(json!("new york"));
        assert!(result.for_llm.contains("America/New_York"), "{result:?}");

        let result = ask_in(json!("Qqqqq"));
        let text = r#"there is no time zone "Qqqqq"; use an IANA name such as Europe/Berlin"#;
        assert_eq!(result, ToolResult::failed(ToolFailure::InvalidArgs, text));
    }

    #[test]
    fn the_zone_of_those_who_do_not_know_theirs_is_none() {
        for name in ["Etc/Unknown", "../../etc/localtime", ""] {
            assert!(ask_in(json!(name)).is_error, "{name}");
        }
    }

    #[test]
    fn arguments_that_do_not_match_are_told_with_their_paths() {
        let input = json!({"timezone": 1, "format": "short"});
        let Value::Object(input) = input else {
            panic!("an object");
        };

        let result = ask(input);

        assert!(result.is_error);
        assert!(
            result
                .for_llm
                .contains("- /timezone: 1 is not of type \"string\"")
        );
        assert!(result.for_llm.contains("'format'"), "{result:?}");
    }

    #[test]
    fn the_bundled_zones_know_berlin() {
        assert!(tz::TimeZoneDatabase::bundled().get("Europe/Berlin").is_ok());
    }
}
