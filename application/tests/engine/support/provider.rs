//! A provider that says what it is told to, and notes who asked, when, and what became of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hango_conformance::USAGE;
use hango_domain::conversation::StopReason;
use hango_domain::model::{ModelCall, ModelFailure, Stop, StreamEvent};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;
use serde_json::Value;
use tokio::time::Instant;

/// One thing that happens in an answer.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// The call is not answered; only at the beginning.
    Refuse(ModelFailure),
    /// It panics; only at the beginning.
    Panic,
    /// This arrives.
    Event(StreamEvent),
    /// Nothing arrives for a while.
    Pause(Duration),
    /// The stream breaks.
    Break(ModelFailure),
    /// Nothing arrives any more.
    Hang,
}

/// One call that was made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What was asked.
    pub(crate) asked: ModelCall,
    /// When.
    pub(crate) at: Instant,
    /// When its stream was dropped, whole or not; `None` while it is held.
    pub(crate) closed: Option<Instant>,
    /// Whether its stream had ended when it was dropped.
    pub(crate) whole: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Scripted {
    script: Mutex<VecDeque<Vec<Say>>>,
    otherwise: Mutex<Vec<Say>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// An answer that asks for nothing.
pub(crate) fn says(text: &str) -> Vec<Say> {
    vec![
        Say::Event(StreamEvent::Text {
            index: 0,
            text: text.to_owned(),
        }),
        Say::Event(StreamEvent::Usage(USAGE)),
        Say::Event(StreamEvent::Stop(Stop::Answer(StopReason::EndTurn))),
    ]
}

/// An answer that asks for tools: the call's id, the tool, the arguments.
pub(crate) fn asks(calls: &[(&str, &str, Value)]) -> Vec<Say> {
    let mut answer = Vec::new();
    for (index, (id, name, input)) in (0..).zip(calls) {
        answer.push(Say::Event(StreamEvent::ToolUse {
            index,
            id: (*id).to_owned(),
            name: (*name).to_owned(),
        }));
        answer.push(Say::Event(StreamEvent::ToolInput {
            index,
            json: input.to_string(),
        }));
    }
    answer.push(Say::Event(StreamEvent::Usage(USAGE)));
    let stop = Stop::Answer(StopReason::ToolUse);
    answer.push(Say::Event(StreamEvent::Stop(stop)));
    answer
}

impl Scripted {
    /// Adds the answer to the next call that has none yet.
    pub(crate) fn then(&self, answer: Vec<Say>) -> &Self {
        lock(&self.script).push_back(answer);
        self
    }

    /// What every call is answered for which the script has nothing; nothing at all unless this is
    /// said.
    pub(crate) fn otherwise(&self, answer: Vec<Say>) {
        *lock(&self.otherwise) = answer;
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    /// How many calls there were.
    pub(crate) fn count(&self) -> usize {
        lock(&self.calls).len()
    }
}

#[async_trait]
impl Provider for Scripted {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let answer = lock(&self.script).pop_front();
        let answer = answer.unwrap_or_else(|| lock(&self.otherwise).clone());
        let open = Open::begin(&self.calls, call);
        match answer.first() {
            Some(Say::Refuse(failure)) => return Err(failure.clone()),
            Some(Say::Panic) => panic!("the provider panics"),
            _ => {}
        }
        let arrives = stream::unfold((answer.into_iter(), open), |(mut rest, open)| async move {
            loop {
                match rest.next() {
                    Some(Say::Event(event)) => return Some((Ok(event), (rest, open))),
                    Some(Say::Break(failure)) => return Some((Err(failure), (rest, open))),
                    Some(Say::Pause(span)) => tokio::time::sleep(span).await,
                    Some(Say::Hang) => std::future::pending().await,
                    Some(Say::Refuse(_) | Say::Panic) => panic!("only at the beginning"),
                    None => {
                        open.ended();
                        return None;
                    }
                }
            }
        });
        Ok(arrives.boxed())
    }
}

/// A call whose stream is held.
struct Open {
    calls: Arc<Mutex<Vec<Call>>>,
    at: usize,
}

impl Open {
    fn begin(calls: &Arc<Mutex<Vec<Call>>>, asked: ModelCall) -> Self {
        let mut all = lock(calls);
        all.push(Call {
            asked,
            at: Instant::now(),
            closed: None,
            whole: false,
        });
        Self {
            calls: Arc::clone(calls),
            at: all.len() - 1,
        }
    }

    fn ended(&self) {
        lock(&self.calls)[self.at].whole = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.calls)[self.at].closed = Some(Instant::now());
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
