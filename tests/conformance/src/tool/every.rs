//! What a tool must do whatever it is for.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::join_all;
use hango_domain::tool::Registry;
use hango_ports::tool::ToolResult;
use jsonschema::Validator;
use proptest::prelude::{Just, Strategy, any, prop};
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value, json};

use super::{Sample, invocation};
use crate::other_side::in_time;
use crate::random::for_any;

async fn execute(sample: &Sample, input: Map<String, Value>, n: u32) -> ToolResult {
    let execution = sample.tool.execute(invocation(input, n));
    in_time("an execution", execution).await
}

fn validator(sample: &Sample) -> Validator {
    let parameters = sample.tool.definition().parameters;
    jsonschema::validator_for(&parameters).expect("the parameters are a JSON Schema")
}

/// The arguments that the schema names.
fn names(sample: &Sample) -> Vec<String> {
    let parameters = sample.tool.definition().parameters;
    let properties = parameters.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys).cloned();
    names.collect()
}

/// A value of every type that JSON has.
fn values() -> [Value; 8] {
    [
        Value::Null,
        json!(true),
        json!(-7),
        json!(0.5),
        json!(""),
        json!("\u{0}\u{fffd}\u{1f600} Europe/Nowhere"),
        json!([1, "a"]),
        json!({"a": {"b": []}}),
    ]
}

/// A model can be shown it, and a registry takes it.
pub async fn its_definition_is_legal<G>(tool: impl AsyncFn() -> (Sample, G)) {
    let (sample, _guard) = tool().await;

    let definition = sample.tool.definition();

    let registered = Registry::new().register(sample.tool.clone());
    assert_eq!(registered, Ok(()));
    assert!(!definition.description.trim().is_empty(), "no policy");
    assert_eq!(definition.parameters.get("type"), Some(&json!("object")));
    let good = Value::Object(sample.good.clone());
    let fits = validator(&sample)
        .validate(&good)
        .map_err(|it| it.to_string());
    assert_eq!(fits, Ok(()));
}

/// It is asked once, when it is registered, and must not have changed its mind later.
pub async fn its_definition_and_its_class_stay<G>(tool: impl AsyncFn() -> (Sample, G)) {
    let (sample, _guard) = tool().await;
    let before = (sample.tool.definition(), sample.tool.idempotency());

    for input in [sample.good.clone(), Map::new()] {
        execute(&sample, input, 1).await;
    }

    let after = (sample.tool.definition(), sample.tool.idempotency());
    assert_eq!(after, before);
}

/// With good arguments it does well.
pub async fn good_arguments_bring_a_result<G>(tool: impl AsyncFn() -> (Sample, G)) {
    let (sample, _guard) = tool().await;

    let result = execute(&sample, sample.good.clone(), 1).await;

    assert!(!result.is_error, "{result:?}");
}

/// Arguments that are missing, or of another type, are told to the model, so that it can mend its call.
pub async fn bad_arguments_are_an_error_that_says_something<G>(
    tool: impl AsyncFn() -> (Sample, G),
) {
    let (sample, _guard) = tool().await;
    let validator = validator(&sample);
    let mut bad = vec![Map::new()];
    for name in names(&sample) {
        let mut without = sample.good.clone();
        without.remove(&name);
        bad.push(without);
        bad.extend(values().map(|value| {
            let mut other = sample.good.clone();
            other.insert(name.clone(), value);
            other
        }));
    }
    bad.retain(|input| !validator.is_valid(&Value::Object(input.clone())));

    for (n, input) in (1..).zip(bad) {
        // Many tools read `null` as an argument that was left out, as many models mean it.
        if input.values().any(Value::is_null) {
            continue;
        }
        let result = execute(&sample, input.clone(), n).await;

        let said = !result.for_llm.trim().is_empty();
        assert!(result.is_error && said, "{input:?} brings {result:?}");
    }
}

/// Whatever a model makes up, the result is one: what panics costs more than it has to.
pub async fn no_arguments_make_it_panic<G>(tool: impl AsyncFn() -> (Sample, G)) {
    let (sample, _guard) = tool().await;
    let named: Vec<String> = names(&sample);
    let name = prop_names(named);
    let value = prop::sample::select(values().to_vec());
    let value = prop_values(value);
    let inputs = prop::collection::btree_map(name, value, 0..4);

    for_any(64, &inputs, async |input| {
        let input: Map<String, Value> = input.into_iter().collect();
        let execution = execute(&sample, input.clone(), 1);
        let outcome = AssertUnwindSafe(execution).catch_unwind().await;
        outcome
            .map(drop)
            .map_err(|_| TestCaseError::fail(format!("{input:?} makes it panic")))
    });
}

fn prop_names(named: Vec<String>) -> impl Strategy<Value = String> {
    let known = if named.is_empty() {
        Just("unknown".to_owned()).boxed()
    } else {
        prop::sample::select(named).boxed()
    };
    prop::strategy::Union::new([known, "\\PC{0,8}".boxed()])
}

fn prop_values(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let text = any::<String>().prop_map(Value::from);
    prop::strategy::Union::new([value.boxed(), text.boxed()])
}

/// Calls of one answer run side by side, and so do runs.
pub async fn executions_at_the_same_time_do_well<G>(tool: impl AsyncFn() -> (Sample, G)) {
    let (sample, _guard) = tool().await;

    let executions = (0..16).map(|n| execute(&sample, sample.good.clone(), n));
    let results = join_all(executions).await;

    let failed: Vec<_> = results.iter().filter(|it| it.is_error).collect();
    assert!(failed.is_empty(), "{failed:?}");
}
