//! Runs: accepted, read, waited for, and asked to end.

use std::time::Duration;

use hango_domain::access::visibility;
use hango_domain::conversation::Block;
use hango_domain::journal::ToolCall;
use hango_domain::run::{MAIN_LANE, Run, RunStatus};
use hango_domain::session::OnBusy;
use hango_domain::{MessageId, RunId, RunTrace, SessionId};
use hango_ports::agent_store::AgentRef;
use hango_ports::event_sink::LiveEvent;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::run_store::{Cancelled, NewRun, RunFilter, RunStoreError};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::pieces::Filling;
use super::sessions::{judge_content, nothing};
use super::{Action, Caller, Input, Made, Traceparent, UseCaseError, UseCases};
use crate::live::{self, Watch, Watched};

/// How often a waiting caller's run is read again while this process executes it, and tells of its end.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// How often it is read again while another process may end it: after a quarter of the time that was
/// waited, so that whoever waits for a short run hears of its end soon, and a long one costs little.
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A run to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDraft {
    /// What the caller says.
    pub input: Vec<Block>,
    /// What happens if the session has pending runs.
    pub on_busy: OnBusy,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
}

/// Which runs to read; what is empty or `None` leaves a condition out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunQuery {
    /// Only those in one of these states.
    pub states: Vec<RunStatus>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those of this agent.
    pub agent: Option<AgentRef>,
}

impl UseCases {
    /// Accepts a run: once this returns it will end, whatever happens to this process. With a key, once.
    pub async fn accept_run(
        &self,
        caller: &Caller,
        session: SessionId,
        draft: Input<RunDraft>,
        once: Option<IdempotencyKey>,
    ) -> Result<Made<Run>, UseCaseError> {
        let draft = draft.judged(|draft, faults| judge_content("/input", &draft.input, faults));
        let draft = self.in_session(caller, session, draft).await?;
        let new = NewRun {
            id: RunId(self.ids.uuid()),
            session,
            created_by: caller.scope,
            input: draft.input,
            input_message_id: MessageId(self.ids.uuid()),
            metadata: draft.metadata,
            trace: self.reserved_trace(caller),
            on_busy: draft.on_busy,
            max_pending: self.settings.max_queued_runs_per_session,
        };
        let mut audit = self.caller_audit(caller, Action::RunCreate, new.id.0);
        audit.trace_id = Some(new.trace.trace_id);
        audit.detail = Map::from_iter([
            ("session_id".to_owned(), json!(session)),
            ("lane".to_owned(), json!(MAIN_LANE)),
        ]);
        let accepted = match self.stores.runs.accept(new, audit, once.clone()).await {
            Err(RunStoreError::Repeated(repeated)) => {
                let (session, once) = (Some(session), once.as_ref());
                return self.repeated(caller, session, once, repeated).await;
            }
            accepted => accepted?,
        };
        live::tell(&*self.live, &accepted.events);
        for run in accepted.interrupted {
            self.signals.cancel_requested(run);
        }
        self.signals.queued();
        // An interrupting run takes the place of those that wait.
        let ends = accepted.events.iter().filter(|it| it.kind.is_terminal());
        self.tell_of_cancelled(ends.map(|event| event.run_id));
        Ok(Made::new(accepted.run))
    }

    /// Reads a run; if it has not ended, waits as long as `wait` for that.
    ///
    /// Nothing of the store is held while it waits.
    pub async fn run(
        &self,
        caller: &Caller,
        run: RunId,
        wait: Input<Duration>,
    ) -> Result<Run, UseCaseError> {
        let wait = self.on_run(caller, run, wait).await?;
        let seen = visibility(&caller.scope);
        let begun = Instant::now();
        let deadline = begun + wait;
        // Watched before it is read, so that an end in between is not missed.
        let mut watch = self.live.watch(run);
        loop {
            let found = self.stores.runs.find(seen, run).await?;
            let found = found.ok_or(UseCaseError::NotFound)?;
            let now = Instant::now();
            if found.state.status().is_terminal() || now >= deadline {
                return Ok(found);
            }
            let next_read = deadline.min(now + self.pause(run, now - begun));
            // Elapsed or not, what counts is what the store says.
            let _ = timeout_at(next_read, ended(&mut watch)).await;
        }
    }

    /// How long to leave a run alone that was waited for that long.
    fn pause(&self, run: RunId, waited: Duration) -> Duration {
        if self.signals.executes(run) {
            READ_AGAIN
        } else {
            (waited / 4).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
        }
    }

    /// Reads runs, newest first.
    pub async fn runs(
        &self,
        caller: &Caller,
        query: RunQuery,
        request: PageRequest,
    ) -> Result<Page<Run>, UseCaseError> {
        let mut filter = RunFilter {
            states: query.states,
            session: query.session,
            agent: None,
        };
        if let Some(agent) = query.agent {
            filter.agent = self.filtered_agent(caller, agent).await?;
            if filter.agent.is_none() {
                return Ok(nothing());
            }
        }
        let seen = visibility(&caller.scope);
        let mut filling = Filling::of(request, |run: &Run| {
            Some(Position {
                at: run.created_at,
                id: run.id.0,
            })
        });
        while let Some(request) = filling.asks() {
            let runs = &self.stores.runs;
            let page = runs.list(seen, filter.clone(), request).await?;
            filling.take(page);
        }
        Ok(filling.page())
    }

    /// Reads a run's journal of tool calls, by turn and position.
    pub async fn tool_calls(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<()>,
    ) -> Result<Vec<ToolCall>, UseCaseError> {
        self.on_run(caller, run, sent).await?;
        let seen = visibility(&caller.scope);
        let found = self.stores.runs.tool_calls(seen, run).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Asks for a run's end: a queued one has ended when this returns, a running one soon will.
    pub async fn cancel_run(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<()>,
    ) -> Result<Run, UseCaseError> {
        self.on_run(caller, run, sent).await?;
        let audit = self.caller_audit(caller, Action::RunCancel, run.0);
        let seen = visibility(&caller.scope);
        let Cancelled { run, events } = self.stores.runs.request_cancel(seen, run, audit).await?;
        live::tell(&*self.live, &events);
        match run.state.status() {
            RunStatus::Running => self.signals.cancel_requested(run.id),
            // The session's next run need not wait for it any more.
            RunStatus::Cancelled => {
                self.signals.queued();
                self.tell_of_cancelled([run.id]);
            }
            RunStatus::Queued | RunStatus::Succeeded | RunStatus::Failed => {}
        }
        Ok(run)
    }

    /// What was sent for a run, if nothing is wrong with it. Whether the run is there comes first; where
    /// nothing is wrong the store will say that.
    pub(super) async fn on_run<T>(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<T>,
    ) -> Result<T, UseCaseError> {
        if sent.is_faulty() {
            let seen = visibility(&caller.scope);
            let found = self.stores.runs.find(seen, run).await?;
            found.ok_or(UseCaseError::NotFound)?;
        }
        sent.accepted()
    }

    fn reserved_trace(&self, caller: &Caller) -> RunTrace {
        let trace_id = self.ids.trace_id();
        RunTrace {
            trace_id,
            span_id: self.ids.span_id(),
            sampled: self.tracing.sampling.records(trace_id),
            created_by_traceparent: caller
                .request
                .traceparent
                .as_ref()
                .map(|context| Traceparent::as_str(context).to_owned()),
        }
    }
}

/// Waits until the run may have ended.
async fn ended(watch: &mut Watch) {
    loop {
        match watch.next().await {
            Watched::Missed => return,
            Watched::Event(LiveEvent::Durable(events))
                if events.iter().any(|event| event.kind.is_terminal()) =>
            {
                return;
            }
            Watched::Event(LiveEvent::Durable(_) | LiveEvent::Delta(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use hango_domain::access::Scope;
    use hango_domain::run::RunState;
    use hango_ports::run_store::MockRunStore;
    use hango_ports::{EventSink, Stores};

    use super::super::RequestContext;
    use super::super::fixtures::{World, world};
    use super::*;

    /// Somebody who acts as `scope`.
    fn caller(world: &World, scope: Scope) -> Caller {
        Caller {
            scope,
            credential: world.credential(scope.role),
            request: RequestContext::default(),
        }
    }

    /// A run as the store tells it: running, and ended from `after` on, if that ever comes; with a count
    /// of how often it was asked.
    fn ends(running: Run, ended: Option<(Run, Duration)>) -> (MockRunStore, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        let (counted, begun) = (Arc::clone(&asked), Instant::now());
        let mut runs = MockRunStore::new();
        runs.expect_find().returning(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Some(match &ended {
                Some((ended, after)) if begun.elapsed() >= *after => ended.clone(),
                _ => running.clone(),
            }))
        });
        (runs, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_executed_here_is_read_once_a_second_and_no_more() {
        let behind = world(|stores| stores);
        let (place, lease) = behind.fixture.running().await;
        let run = behind.fixture.on_record(&place, lease.run).await.run;
        let (runs, asked) = ends(run, None);
        let world = world(|stores| Stores {
            runs: Arc::new(runs),
            ..stores
        });
        let caller = caller(&world, place.owner);
        let _executing = world.signals.begin(lease);

        let wait = Input::new(Duration::from_secs(5));
        let found = world.use_cases.run(&caller, lease.run, wait).await;

        assert!(found.is_ok(), "{found:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_run_that_is_executed_elsewhere_is_seen_soon_and_costs_few_reads() {
        for after in [5, 40, 300, 1_100, 4_000, 59_000].map(Duration::from_millis) {
            let behind = world(|stores| stores);
            let (place, lease) = behind.fixture.running().await;
            let running = behind.fixture.on_record(&place, lease.run).await.run;
            let mut ended = running.clone();
            ended.state = RunState::Succeeded {
                at: behind.fixture.now(),
            };
            let (runs, asked) = ends(running, Some((ended, after)));
            let world = world(|stores| Stores {
                runs: Arc::new(runs),
                ..stores
            });
            let caller = caller(&world, place.owner);
            let begun = Instant::now();

            let wait = Input::new(Duration::from_mins(1));
            let found = world.use_cases.run(&caller, lease.run, wait).await.unwrap();

            let late = begun.elapsed().saturating_sub(after);
            let bound = (after / 4).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            // A timer is a millisecond late at most.
            assert!(
                late <= bound + Duration::from_millis(1),
                "{after:?} {late:?}"
            );
            assert_eq!(found.state.status(), RunStatus::Succeeded);
            let reads = u128::from(asked.load(Ordering::Relaxed));
            let most = 16 + begun.elapsed().as_millis() / LONGEST_PAUSE.as_millis();
            assert!(reads <= most, "{after:?} {reads}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_between_two_looks_is_not_missed() {
        let behind = world(|stores| stores);
        let place = behind.fixture.place().await;
        let run = behind.fixture.run(&place).await;
        let ended = behind.fixture.cancel(&place.owner, run.id).await.unwrap();
        let stores = &behind.fixture.stores;
        let events = stores.runs.events(place.seen(), run.id, 0, 10).await;
        let events = events.unwrap().unwrap();
        let live = Arc::new(crate::live::LiveEvents::default());
        // The run ends while it is read: after the store looked, before the caller hears.
        let mut runs = MockRunStore::new();
        let teller = live.clone();
        let id = run.id;
        runs.expect_find().times(1).return_once(move |_, _| {
            teller.emit(LiveEvent::Durable(events));
            Ok(Some(run))
        });
        runs.expect_find()
            .times(1)
            .return_once(move |_, _| Ok(Some(ended)));
        let mut world = world(|stores| Stores {
            runs: Arc::new(runs),
            ..stores
        });
        world.use_cases.live = live;
        let caller = caller(&world, place.owner);
        let begun = Instant::now();

        let wait = Input::new(Duration::from_mins(1));
        let found = world.use_cases.run(&caller, id, wait).await.unwrap();

        assert_eq!(found.state.status(), RunStatus::Cancelled);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn who_interrupts_or_cancels_tells_whoever_executes() {
        let world = world(|stores| stores);
        let (place, lease) = world.fixture.running().await;
        let caller = caller(&world, place.owner);
        let interrupted = world.signals.begin(lease);
        let draft = RunDraft {
            input: vec![Block::text("stop")],
            on_busy: OnBusy::Interrupt,
            metadata: Map::new(),
        };

        let next = world
            .use_cases
            .accept_run(&caller, place.session.id, Input::new(draft), None)
            .await;

        assert!(next.is_ok(), "{next:?}");
        assert!(interrupted.is_cancelled());
        let cancelled = world.signals.begin(lease);
        let asked = world
            .use_cases
            .cancel_run(&caller, lease.run, Input::new(()));
        assert!(asked.await.is_ok());
        assert!(cancelled.is_cancelled());
    }
}
