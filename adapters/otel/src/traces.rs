//! Spans, out of what the engine and the API tell: each is told when it is over, and made then.
//!
//! * The root of a run's trace has the ids that were reserved when the run was accepted, and a turn those
//!   that its attempt and number lead to; so whatever is told below them has its parent, whichever process
//!   tells the parent later.
//! * Every span of a run says whose run it is: consumers look at each span by itself.
//! * Whether a trace is recorded was decided when it began.

mod chat;
mod content;
mod draft;
mod ids;
mod request;
mod run;
mod tool;
mod turn;

use hango_ports::Telemetry;
use hango_ports::telemetry::{Observation, Wants};
use opentelemetry_sdk::trace::SdkTracer;

use draft::Draft;
pub(crate) use ids::ChosenIds;

/// Makes spans.
#[derive(Clone, Debug)]
pub struct Traces {
    tracer: SdkTracer,
    content: bool,
}

impl Traces {
    pub(crate) const fn new(tracer: SdkTracer, content: bool) -> Self {
        Self { tracer, content }
    }

    fn tell(&self, draft: Draft) {
        draft.tell(&self.tracer);
    }
}

impl Telemetry for Traces {
    fn observe(&self, what: Observation) {
        match what {
            Observation::HooksRan(hooks) if hooks.about.trace.sampled => {
                for draft in turn::hooks(&hooks) {
                    self.tell(draft);
                }
            }
            Observation::ModelTried(made) if made.about.trace.sampled => {
                self.tell(chat::draft(*made));
            }
            Observation::ToolCalled {
                facts: Some(facts), ..
            }
            | Observation::ToolSettled(facts)
                if facts.about.trace.sampled =>
            {
                self.tell(tool::draft(&facts));
            }
            Observation::TurnEnded(turn) if turn.about.trace.sampled => {
                self.tell(turn::draft(*turn));
            }
            Observation::RunEnded { end: Some(end), .. } if end.about.trace.sampled => {
                self.tell(run::draft(&end));
            }
            Observation::RequestServed(request) => {
                if let Some(draft) = request::draft(*request) {
                    self.tell(draft);
                }
            }
            // Nothing that has a span.
            Observation::HooksRan(_)
            | Observation::ModelTried(_)
            | Observation::ToolCalled { .. }
            | Observation::ToolSettled(_)
            | Observation::TurnEnded(_)
            | Observation::RunEnded { .. }
            | Observation::Census(_)
            | Observation::Workers { .. }
            | Observation::ClaimWon { .. }
            | Observation::ClaimLost { .. }
            | Observation::Reclaimed { .. }
            | Observation::LeaseLost { .. }
            | Observation::Noted { .. }
            | Observation::ModelCalled { .. } => {}
        }
    }

    fn wants(&self) -> Wants {
        Wants {
            facts: true,
            content: self.content,
        }
    }
}
