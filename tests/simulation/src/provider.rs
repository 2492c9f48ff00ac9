//! A model that answers as chance has it, over a line that breaks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hango_domain::conversation::{StopReason, Usage, validate};
use hango_domain::model::{ModelCall, ModelFailure, ModelFailureKind, Stop, StreamEvent};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;
use tokio::time::sleep;

use crate::log::{Call, Process, What};
use crate::people::STEADY_MODEL;
use crate::tools;
use crate::world::World;

/// How long an adapter waits for a provider that is silent.
const SILENCE: Duration = Duration::from_secs(3);

/// How long the steady model takes to begin its answer.
const STEADY: Duration = Duration::from_secs(3);

/// See the module.
pub(crate) struct Model {
    pub(crate) world: Arc<World>,
    pub(crate) process: Process,
}

/// What comes over the line, and after what time.
type Arrives = (Duration, Result<StreamEvent, ModelFailure>);

impl Model {
    /// A whole answer: words, perhaps calls, what it cost, why it stopped.
    fn answer(&self, call: &ModelCall) -> Vec<Arrives> {
        let dice = &self.world.dice;
        let mut events = Vec::new();
        if call.model == STEADY_MODEL || dice.percent(70) {
            events.push(StreamEvent::Text {
                index: 0,
                text: format!("This is turn {}.", call.context.turn),
            });
        }
        let calls = match dice.between(0, 9) {
            _ if call.model == STEADY_MODEL => 0,
            0..=3 => 0,
            4..=6 => 1,
            7..=8 => 2,
            _ => 3,
        };
        for index in 1..=calls {
            let name = dice.one_of(&tools::NAMES);
            // Not every provider sends ids.
            let id = if dice.percent(80) {
                format!("call-{:x}", dice.bits())
            } else {
                String::new()
            };
            let json = if self.goes_wrong(5) {
                "[not an object".to_owned()
            } else {
                format!("{{\"n\": {}}}", dice.between(0, 3))
            };
            let name = name.to_owned();
            events.push(StreamEvent::ToolUse { index, id, name });
            events.push(StreamEvent::ToolInput { index, json });
        }
        let usage = Usage {
            input_tokens: dice.between(1, 1_000).into(),
            ..Usage::default()
        };
        events.push(StreamEvent::Usage(usage));
        let stop = match calls {
            _ if self.goes_wrong(5) => StopReason::MaxTokens,
            0 => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        };
        events.push(StreamEvent::Stop(Stop::Answer(stop)));
        let pace = self.pace();
        let mut arrives: Vec<Arrives> = events.into_iter().map(|it| (pace, Ok(it))).collect();
        if dice.percent(10) {
            // It thinks for longer than a lease lasts.
            arrives[0].0 = dice.millis(1_500, 4_000);
        }
        arrives
    }

    fn pace(&self) -> Duration {
        let dice = &self.world.dice;
        match dice.between(0, 9) {
            0..=4 => dice.moment(),
            5..=8 => dice.millis(10, 120),
            _ => dice.millis(300, 900),
        }
    }

    /// What comes instead of a whole answer, if something goes wrong.
    fn trouble(&self, whole: &mut Vec<Arrives>) -> Option<ModelFailure> {
        let dice = &self.world.dice;
        if !self.goes_wrong(self.world.plan.provider) {
            return None;
        }
        let failure = |kind| ModelFailure::new(kind, "the provider has its own troubles");
        let busy = failure(ModelFailureKind::Unavailable);
        match dice.between(0, 9) {
            0 => Some(busy),
            1 => Some(ModelFailure {
                retry_after: Some(dice.millis(100, 6_000)),
                ..busy
            }),
            2 => Some(failure(ModelFailureKind::Protocol)),
            3 if dice.percent(30) => {
                let kinds = [
                    ModelFailureKind::Auth,
                    ModelFailureKind::Rejected,
                    ModelFailureKind::ContextExceeded,
                ];
                Some(failure(dice.one_of(&kinds)))
            }
            // The stream ends, or breaks, or falls silent somewhere.
            4 => {
                whole.truncate(dice.below(whole.len()));
                None
            }
            5 | 6 => {
                whole.truncate(dice.below(whole.len()));
                whole.push((self.pace(), Err(busy)));
                None
            }
            7 => {
                whole.truncate(dice.below(whole.len()));
                whole.push((SILENCE, Err(busy)));
                None
            }
            // It says nothing, but at length.
            8 => {
                whole.retain(|(_, event)| {
                    matches!(event, Ok(StreamEvent::Usage(_) | StreamEvent::Stop(_)))
                });
                None
            }
            _ => {
                let unsupported = Stop::Unsupported("whim".to_owned());
                whole.pop();
                whole.push((Duration::ZERO, Ok(StreamEvent::Stop(unsupported))));
                None
            }
        }
    }

    fn goes_wrong(&self, chance: u32) -> bool {
        !self.world.is_calm() && self.world.plan.provider > 0 && self.world.dice.percent(chance)
    }
}

#[async_trait]
impl Provider for Model {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn stream(&self, asked: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let world = &self.world;
        let call = world.next_call();
        let context = &asked.context;
        world.note(What::Model {
            call,
            process: self.process,
            run: context.run,
            turn: context.turn,
            attempt: context.attempt,
            illegal: validate(&asked.messages).err().map(|it| it.to_string()),
        });
        let open = Open {
            world: Arc::clone(world),
            call,
        };
        let steady = asked.model == STEADY_MODEL;
        let mut whole = self.answer(&asked);
        let trouble = (!steady).then(|| self.trouble(&mut whole)).flatten();
        if steady {
            whole[0].0 = STEADY;
        }
        sleep(self.pace()).await;
        if let Some(failure) = trouble {
            return Err(failure);
        }
        let run = context.run;
        let arrives = stream::unfold(
            (whole.into_iter(), open),
            move |(mut rest, open)| async move {
                let (after, event) = rest.next()?;
                sleep(after).await;
                if let Ok(StreamEvent::Usage(usage)) = &event {
                    let tokens = usage.input_tokens;
                    open.world.note(What::Cost { run, tokens });
                }
                Some((event, (rest, open)))
            },
        );
        Ok(arrives.boxed())
    }
}

/// A call that is under way.
struct Open {
    world: Arc<World>,
    call: Call,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.world.note(What::ModelEnds(self.call));
    }
}
