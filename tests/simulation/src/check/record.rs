//! What is on record when a run has ended.

use std::collections::{BTreeMap, BTreeSet};

use hango_domain::RunId;
use hango_domain::conversation::{Message, Role};
use hango_domain::event::EventKind;
use hango_domain::run::{Run, RunErrorCode};

use super::History;
use crate::scenario::Scenario;
use crate::world::{OnRecord, World};

impl History {
    pub(super) async fn record(&mut self, world: &World, scenario: &Scenario) {
        self.at = world.age();
        for place in &scenario.places {
            let mut sessions = BTreeMap::new();
            for run in world.runs_of(place.tenant).await {
                sessions
                    .entry(run.session_id)
                    .or_insert_with(Vec::new)
                    .push(run.clone());
                if let Some(record) = world.on_record(place.tenant, run.id).await {
                    self.of_one_run(world, &record);
                }
            }
            for (session, runs) in sessions {
                let messages = world.messages(place.tenant, session).await;
                self.of_a_session(&runs, &messages);
            }
        }
    }

    fn of_one_run(&mut self, world: &World, record: &OnRecord) {
        let OnRecord { run, calls, events } = record;
        let id = run.id;
        let line = self.lines.get(&id);
        let known = line.is_some_and(|line| line.ended == Some(run.state.status()));
        self.unless(known, || format!("{id} ended otherwise than was seen"));
        let ended = world.ended.lock().map(|ended| ended.get(&id).cloned());
        let unchanged = ended.is_ok_and(|it| it.as_ref() == Some(record));
        self.unless(unchanged, || format!("{id} changed after its end"));

        // Nothing is stored here that cannot be read, so only a defect ends a run so.
        let code = run.state.error().map(|error| error.code);
        self.unless(code != Some(RunErrorCode::Internal), || {
            format!("{id} failed because something in hango did")
        });

        let numbers = events.iter().map(|event| event.n);
        self.unless(numbers.eq(1..=events.len() as u64), || {
            format!("the events of {id} have gaps")
        });
        let count = |is: fn(&EventKind) -> bool| events.iter().filter(|it| is(&it.kind)).count();
        let last = events.last().is_some_and(|event| event.kind.is_terminal());
        self.unless(last && count(EventKind::is_terminal) == 1, || {
            format!("{id} has no one end")
        });
        let starts = count(|it| matches!(it, EventKind::RunStarted { .. }));
        self.unless(starts == run.attempt as usize, || {
            format!("{id}: {starts} starts")
        });
        let turns = count(|it| matches!(it, EventKind::TurnCompleted { .. }));
        let counted =
            turns == run.progress.resume_turn as usize && turns == run.iterations as usize;
        self.unless(counted, || format!("{id}: {turns} completed turns"));

        let settled = calls
            .iter()
            .all(hango_domain::journal::ToolCall::is_settled);
        self.unless(settled, || format!("{id} ended with open calls"));
        for call in calls {
            let journal = self.journal(id, call.turn, call.position);
            self.unless(call.executions == journal.begun, || {
                format!(
                    "{id}: executions of {} are not as begun",
                    call.idempotency_key()
                )
            });
        }
    }

    fn of_a_session(&mut self, runs: &[Run], messages: &[Message]) {
        let numbers = messages.iter().map(|message| message.seq);
        self.unless(numbers.eq(1..=messages.len() as u64), || {
            "the messages of a session have gaps".to_owned()
        });
        let ids: BTreeSet<_> = messages.iter().map(|message| message.id).collect();
        self.unless(ids.len() == messages.len(), || {
            "a message is there twice".to_owned()
        });
        let order: BTreeMap<RunId, u64> = runs.iter().map(|run| (run.id, run.session_no)).collect();
        let said = messages
            .iter()
            .filter_map(|message| order.get(&message.run_id?));
        // A cancel of a queued run that had begun closes its calls where it stands.
        self.unless(said.is_sorted(), || {
            "runs of a session speak in disorder".to_owned()
        });
        let mut ends: Vec<_> = runs.iter().filter(|run| run.attempt > 0).collect();
        ends.sort_by_key(|run| run.session_no);
        let ends = ends.iter().map(|run| run.state.finished_at());
        self.unless(ends.is_sorted(), || {
            "runs of a session end in disorder".to_owned()
        });
        for run in runs {
            let own = || {
                messages
                    .iter()
                    .filter(|message| message.run_id == Some(run.id))
            };
            let inputs = own()
                .filter(|message| message.id == run.input_message_id)
                .count();
            self.unless(inputs == usize::from(run.attempt > 0), || {
                format!("the input of {} is said {inputs} times", run.id)
            });
            let kept = own().filter(|message| message.role == Role::Assistant && !message.partial);
            let kept = kept
                .filter_map(|message| message.usage)
                .map(|it| it.input_tokens);
            let (kept, counted) = (kept.sum::<u64>(), run.usage.input_tokens);
            self.unless(kept == counted, || {
                format!(
                    "{}: {kept} tokens for its answers, {counted} counted",
                    run.id
                )
            });
            let spent = self.calls.cost.get(&run.id).copied().unwrap_or(0);
            let counted = counted + run.usage_discarded.input_tokens;
            self.unless(counted <= spent, || {
                format!("{}: {spent} tokens spent, {counted} counted", run.id)
            });
        }
    }
}
