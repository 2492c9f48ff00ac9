//! The provider: which answer a call gets.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hango_domain::model::{AnswerNames, ModelCall, ModelFailure, ModelFailureKind, StreamEvent};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;

use crate::demo;
use crate::player::play;
use crate::scene::Scene;
use crate::script::{Rule, Script, ScriptError};

/// A model that plays a script. Nothing it does leaves the process.
#[derive(Debug)]
pub struct ScriptedProvider {
    part: Part,
    word_delay: Duration,
}

#[derive(Debug)]
enum Part {
    Demo,
    Script {
        rules: Vec<Rule>,
        /// How often each rule answered.
        played: Vec<AtomicU32>,
    },
}

impl ScriptedProvider {
    /// The model of the quickstart: it looks at the clock with `get_time` and tells the time, in the
    /// cities or zones that the user names, and slowly if it is asked to. Without that tool it says so.
    #[must_use]
    pub fn demo() -> Self {
        Self {
            part: Part::Demo,
            word_delay: demo::WORD_DELAY,
        }
    }

    /// A model that plays this script.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self {
            word_delay: script.word_delay(),
            part: Part::Script {
                played: script.rules.iter().map(|_| AtomicU32::new(0)).collect(),
                rules: script.rules,
            },
        }
    }

    /// The same for a script in its text form, which the head of the crate describes.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        Script::from_toml(text).map(Self::new)
    }

    /// The same with another time before each word.
    #[must_use]
    pub fn with_word_delay(self, word_delay: Duration) -> Self {
        Self { word_delay, ..self }
    }

    fn answer(&self, scene: &Scene) -> Option<Rule> {
        match &self.part {
            Part::Demo => Some(demo::rule(scene)),
            Part::Script { rules, played } => rules
                .iter()
                .zip(played)
                .find(|(rule, played)| rule.matches(scene) && claim(rule, played))
                .map(|(rule, _)| rule.filled(scene)),
        }
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn kind(&self) -> &'static str {
        match self.part {
            Part::Demo => "demo",
            Part::Script { .. } => "scripted",
        }
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let scene = Scene::of(&call);
        let Some(rule) = self.answer(&scene) else {
            let message = format!("no rule of the script matches turn {}", scene.turn);
            return Err(ModelFailure::new(ModelFailureKind::Rejected, message));
        };
        let slowness = match self.part {
            Part::Demo => demo::slowness(&scene),
            Part::Script { .. } => 1,
        };
        let answer = play(&rule, &scene, self.word_delay * slowness)?;
        let named = StreamEvent::Named(self.names(&call));
        Ok(stream::iter([Ok(named)]).chain(answer).boxed())
    }
}

impl ScriptedProvider {
    /// What an answer is called, as other providers call theirs.
    fn names(&self, call: &ModelCall) -> AnswerNames {
        let context = &call.context;
        let run = context.run.0.simple();
        AnswerNames {
            id: Some(format!("{}_{run}_{}", self.kind(), context.turn)),
            model: Some(call.model.clone()),
            finish_reason: None,
        }
    }
}

/// Takes one of the times that a rule has, if any is left.
fn claim(rule: &Rule, played: &AtomicU32) -> bool {
    let Some(times) = rule.times else {
        return true;
    };
    let next = |played: u32| (played < times).then(|| played + 1);
    played
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::executor::block_on;
    use hango_domain::conversation::Block;

    use super::*;
    use crate::fixtures::{answer, assistant, call, result, tool_use, user};

    #[test]
    fn the_first_rule_that_matches_answers() {
        let provider = ScriptedProvider::from_toml(
            r#"
            word_delay_ms = 0
            [[rules]]
            text = "TIME"
            turn = 0
            steps = [{ text = "You asked: {text}" }, { tool = { name = "get_time" } }]
            [[rules]]
            text = "time"
            steps = [{ text = "It is {result}." }]
            [[rules]]
            steps = [{ text = "Pardon?" }]
            "#,
        )
        .expect("a script");
        let asked = user(Block::text("The time, please"));

        let first = answer(&provider, call([asked.clone()])).expect("whole");
        let second = call([
            asked,
            assistant([tool_use("call_1", "get_time")]),
            user(result("call_1", "noon")),
        ]);
        let second = answer(&provider, second).expect("whole");
        let other = answer(&provider, call([user(Block::text("hi"))])).expect("whole");

        let asked = Block::text("You asked: The time, please");
        assert_eq!(first.content, [asked, tool_use("call_1", "get_time")]);
        assert_eq!(second.content, [Block::text("It is noon.")]);
        assert_eq!(other.content, [Block::text("Pardon?")]);
        assert_eq!(provider.kind(), "scripted");
    }

    #[test]
    fn a_rule_answers_as_often_as_it_says() {
        let provider = ScriptedProvider::from_toml(
            r#"
            word_delay_ms = 0
            [[rules]]
            times = 2
            steps = [{ fail = { kind = "unavailable" } }]
            [[rules]]
            steps = [{ text = "At last" }]
            "#,
        )
        .expect("a script");
        let ask = || answer(&provider, call([user(Block::text("hi"))]));

        for _ in 0..2 {
            let failure = ask().expect_err("it fails twice");
            assert_eq!(failure.kind, ModelFailureKind::Unavailable);
        }
        assert_eq!(ask().expect("whole").content, [Block::text("At last")]);
    }

    #[test]
    fn a_call_that_no_rule_matches_is_rejected() {
        let provider = ScriptedProvider::new(Script::default());

        let failure = block_on(provider.stream(call([])))
            .map(|_| ())
            .expect_err("no rule");

        assert_eq!(failure.kind, ModelFailureKind::Rejected);
    }

    #[tokio::test(start_paused = true)]
    async fn each_word_waits_for_its_time() {
        let provider = ScriptedProvider::from_toml("[[rules]]\nsteps = [{ text = 'a b c' }]")
            .expect("a script")
            .with_word_delay(Duration::from_millis(40));
        let begin = tokio::time::Instant::now();

        let stream = provider.stream(call([])).await.expect("an answer");

        // What the answer is called, three words, the bill and the stop.
        assert_eq!(stream.count().await, 6);
        assert_eq!(begin.elapsed().as_millis(), 120);
    }

    #[tokio::test(start_paused = true)]
    async fn the_demo_takes_seconds_when_it_is_asked_to_speak_slowly() {
        let time = async |said: &str| {
            let begin = tokio::time::Instant::now();
            let call = call([user(Block::text(said))]);
            let stream = ScriptedProvider::demo().stream(call).await;
            stream.expect("an answer").count().await;
            begin.elapsed()
        };

        assert!(time("What time is it in Paris?").await < Duration::from_millis(500));
        assert!(time("What time is it in Paris? Answer SLOWLY.").await > Duration::from_secs(2));
    }
}
