//! A loop on a store, driven by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Map;
use uuid::Uuid;

use super::super::{AgentLoop, Input, LoopLimits, Start, Step, Stop};
use super::store::Store;
use crate::access::{CreatorNow, Role, Standing};
use crate::conversation::{Block, StopReason, Usage, validate};
use crate::model::{ModelFailure, ModelFailureKind, ModelReply};
use crate::retry::RetryPolicy;
use crate::run::{Change, ChangeKind};
use crate::tool::{Idempotency, ToolResult};

/// More time than any run takes.
pub(super) const AMPLE: Duration = Duration::from_hours(2);

pub(super) const LIMITS: LoopLimits = LoopLimits {
    max_iterations: 10,
    tool_concurrency: 2,
    retry: RetryPolicy {
        max_retries: 2,
        inline_wait: Duration::from_secs(10),
    },
};

pub(super) const FINE: Standing = Standing {
    cancel_requested: false,
    creator: CreatorNow {
        active: true,
        role: Role::Member,
        created_session: true,
    },
    tenant_active: true,
};

pub(super) const CREATOR_INACTIVE: Standing = Standing {
    creator: CreatorNow {
        active: false,
        ..FINE.creator
    },
    ..FINE
};

pub(super) const SUSPENDED: Standing = Standing {
    tenant_active: false,
    ..FINE
};

/// A loop with its store; what the loop wants saved is saved.
pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) agent: AgentLoop,
    /// What every write tells, apart from the cancel request.
    pub(super) standing: Standing,
    /// The writes so far.
    pub(super) saved: Vec<Change>,
}

/// The tools there are; there is none of the name `gone`.
pub(super) fn classes() -> BTreeMap<String, Idempotency> {
    BTreeMap::from([
        ("safe".to_owned(), Idempotency::Safe),
        ("keyed".to_owned(), Idempotency::Keyed),
        ("unsafe".to_owned(), Idempotency::Unsafe),
    ])
}

pub(super) fn agent(store: &Store, limits: LoopLimits) -> AgentLoop {
    let attempt = u128::from(store.run.attempt);
    let mut ids = (attempt << 64)..;
    AgentLoop::new(Start {
        run: &store.run,
        lease: store.lease(),
        history: store.messages.clone(),
        calls: store.open_calls(),
        classes: classes(),
        limits,
        ids: Box::new(move || Uuid::from_u128(ids.next().unwrap_or_default())),
    })
}

impl Bench {
    /// A loop on a claimed run, before its beginning.
    pub(super) fn on(store: Store, limits: LoopLimits) -> Self {
        let agent = agent(&store, limits);
        Self {
            store,
            agent,
            standing: FINE,
            saved: Vec::new(),
        }
    }

    /// A loop that just asked for its first model call.
    pub(super) fn begun(limits: LoopLimits) -> Self {
        let mut bench = Self::on(Store::new().claimed(), limits);
        assert_eq!(bench.begin(), Step::CallModel);
        bench
    }

    pub(super) fn begin(&mut self) -> Step {
        let standing = self.standing;
        self.give(Input::Begin {
            standing,
            append: None,
        })
    }

    /// What the loop wants next that is not a write.
    pub(super) fn give(&mut self, input: Input) -> Step {
        let mut step = self.advance(input);
        while let Step::Save(change) = step {
            self.store.make(change.clone());
            self.saved.push(change);
            let standing = Standing {
                cancel_requested: self.store.run.cancel_requested_at.is_some(),
                ..self.standing
            };
            step = self.advance(Input::Saved { standing });
        }
        if step == Step::CallModel {
            assert_eq!(validate(&self.agent.messages()), Ok(()));
        }
        step
    }

    fn advance(&mut self, input: Input) -> Step {
        let step = self.agent.advance(input);
        step.expect("an input that answers the step before")
    }

    pub(super) fn reply(&mut self, reply: ModelReply) -> Step {
        self.give(Input::Replied {
            reply: Ok(reply),
            left: AMPLE,
        })
    }

    pub(super) fn fail(&mut self, failure: ModelFailure) -> Step {
        self.give(Input::Replied {
            reply: Err(failure),
            left: AMPLE,
        })
    }

    pub(super) fn returned(&mut self, position: u32, result: ToolResult) -> Step {
        self.give(Input::ToolReturned {
            position,
            result,
            duration_ms: 3,
        })
    }

    pub(super) fn stop(&mut self, reason: Stop) -> Step {
        self.give(Input::Stopped {
            reason,
            partial: vec![Block::text("so far")],
            usage: tokens(2),
        })
    }

    /// The kinds of the writes so far.
    pub(super) fn writes(&self) -> Vec<ChangeKind> {
        self.saved.iter().map(Change::kind).collect()
    }

    /// Asks for the run's end, as its user does.
    pub(super) fn request_cancel(&mut self) {
        self.store.make(Change::RequestCancel { closing: None });
    }
}

/// The positions that a step begins.
pub(super) fn begins(step: &Step) -> Vec<u32> {
    match step {
        Step::Execute(calls) => calls.iter().map(|call| call.position).collect(),
        other => panic!("{other:?} executes nothing"),
    }
}

pub(super) fn tokens(input_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        ..Usage::default()
    }
}

/// An answer that cost seven tokens.
pub(super) fn answer(content: Vec<Block>, stop_reason: StopReason) -> ModelReply {
    ModelReply {
        content,
        stop_reason,
        usage: tokens(7),
        invalid_inputs: BTreeMap::new(),
    }
}

pub(super) fn says(text: &str) -> ModelReply {
    answer(vec![Block::text(text)], StopReason::EndTurn)
}

pub(super) fn empty(stop_reason: StopReason) -> ModelReply {
    answer(Vec::new(), stop_reason)
}

/// An answer that calls tools: each by an id, which has to be new, and a name.
pub(super) fn asks(calls: &[(&str, &str)]) -> ModelReply {
    let call = |(id, name): &(&str, &str)| Block::ToolUse {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        input: Map::new(),
        provider_data: None,
    };
    answer(calls.iter().map(call).collect(), StopReason::ToolUse)
}

pub(super) fn cut_off(calls: &[(&str, &str)]) -> ModelReply {
    ModelReply {
        stop_reason: StopReason::MaxTokens,
        ..asks(calls)
    }
}

pub(super) fn unavailable() -> ModelFailure {
    ModelFailure {
        partial: vec![Block::text("half an")],
        usage: tokens(2),
        shown: true,
        ..ModelFailure::new(ModelFailureKind::Unavailable, "overloaded")
    }
}
