//! The scripted provider does what every provider must. It reaches nobody, so the checks of those that
//! do are not its own.

use std::sync::Arc;

use hango_conformance::provider::{Act, Play, Spoken};
use hango_domain::model::ModelFailureKind;
use hango_ports::Provider;
use hango_scripted::{
    FailStep, FailureKind, Rule, Script, ScriptedProvider, Step, TokenCounts, ToolStep,
};

/// Longer than any check waits.
const FOR_EVER_MS: u64 = 3_600_000;

async fn stage(play: Play) -> (Arc<dyn Provider>, ()) {
    let script = Script {
        word_delay_ms: Some(0),
        // The first rule that has not answered yet answers.
        rules: play.acts.into_iter().map(rule).collect(),
    };
    (Arc::new(ScriptedProvider::new(script)), ())
}

fn rule(act: Act) -> Rule {
    let rule = match act {
        Act::Answers(said) => answer(said),
        Act::BreaksOff(words) => Rule {
            cut_after: Some(words.len()),
            steps: texts(&words),
            ..Rule::default()
        },
        Act::Hangs(words) => {
            let mut steps = texts(&words);
            steps.push(Step::WaitMs(FOR_EVER_MS));
            steps.push(Step::Text("never".to_owned()));
            steps_of(steps)
        }
        Act::Fails(kind) => steps_of(vec![Step::Fail(failure(kind, None))]),
        Act::Busy(wait) => {
            let wait = u64::try_from(wait.as_millis()).expect("a short wait");
            let failure = failure(ModelFailureKind::Unavailable, Some(wait));
            steps_of(vec![Step::Fail(failure)])
        }
    };
    Rule {
        times: Some(1),
        ..rule
    }
}

fn answer(said: Spoken) -> Rule {
    let mut steps = texts(&said.words);
    steps.extend(said.calls.into_iter().map(|call| {
        Step::Tool(ToolStep {
            name: call.name,
            input: call.input,
            id: Some(call.id),
            ..ToolStep::default()
        })
    }));
    Rule {
        steps,
        stop_reason: Some(said.stop),
        usage: Some(TokenCounts {
            input_tokens: said.usage.input_tokens,
            output_tokens: said.usage.output_tokens,
            ..TokenCounts::default()
        }),
        ..Rule::default()
    }
}

/// One block, which is streamed word by word.
fn texts(words: &[String]) -> Vec<Step> {
    let text = words.concat();
    (!text.is_empty())
        .then_some(Step::Text(text))
        .into_iter()
        .collect()
}

fn steps_of(steps: Vec<Step>) -> Rule {
    Rule {
        steps,
        ..Rule::default()
    }
}

fn failure(kind: ModelFailureKind, retry_after_ms: Option<u64>) -> FailStep {
    FailStep {
        kind: match kind {
            ModelFailureKind::Unavailable => FailureKind::Unavailable,
            ModelFailureKind::Auth => FailureKind::Auth,
            ModelFailureKind::Rejected => FailureKind::Rejected,
            ModelFailureKind::Protocol => FailureKind::Protocol,
            ModelFailureKind::ContextExceeded => FailureKind::ContextExceeded,
            ModelFailureKind::UnsupportedStop => FailureKind::UnsupportedStop,
        },
        message: "the script says so".to_owned(),
        retry_after_ms,
    }
}

hango_conformance::provider_tests!(stage);
