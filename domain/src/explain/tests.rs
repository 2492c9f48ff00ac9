//! What is said of a run in each situation that a person may find it in.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::access::{CreatorNow, Role};
use crate::event::{EVENT_VERSION, Event, EventKind};
use crate::run::fixtures::{
    TTL, answer, at, claim, end, give_back, go_on, lease, owner, queued, reclaim, renew,
};
use crate::run::{Change, GiveBack, Outcome};

/// A run with all that it told.
struct Told {
    run: Run,
    events: Vec<Event>,
}

impl Told {
    fn accepted() -> Self {
        Self {
            run: queued(),
            events: Vec::new(),
        }
    }

    /// After a change that was made at that second.
    fn then(mut self, second: u64, change: &Change) -> Self {
        let applied = self.run.apply(change, at(second)).expect("a legal change");
        self.run = applied.run;
        self.events.extend(applied.events);
        self
    }

    /// What it is at that second, with nothing in its way.
    fn situation(&self, second: u64) -> Situation {
        Situation {
            run: self.run.clone(),
            before: Vec::new(),
            tenant_running: 0,
            standing: Standing {
                cancel_requested: self.run.cancel_requested_at.is_some(),
                creator: CreatorNow {
                    active: true,
                    role: Role::Owner,
                    created_session: true,
                },
                tenant_active: true,
            },
            now: at(second),
        }
    }

    fn attempts(&self) -> Vec<Attempt> {
        let mut attempts = Attempts::default();
        for event in &self.events {
            attempts.take(event);
        }
        attempts.all()
    }

    fn explained(&self, situation: &Situation, tenant_cap: u32) -> Explanation {
        explain(situation, self.attempts(), tenant_cap)
    }

    /// What is said of it at that second, with nothing in its way.
    fn at(&self, second: u64) -> Explanation {
        self.explained(&self.situation(second), 0)
    }
}

fn run(n: u128) -> RunId {
    RunId(Uuid::from_u128(n))
}

fn cancel() -> Change {
    Change::RequestCancel { closing: None }
}

/// The holder gives the run back, for that reason and until then.
fn back(attempt: u32, by: u128, reason: RequeueReason, delay: u64) -> Change {
    let mut lease = lease(attempt);
    lease.owner = owner(by);
    Change::GiveBack(GiveBack {
        reason,
        delay: Duration::from_secs(delay),
        ..give_back(lease, 70 + u128::from(attempt))
    })
}

fn finish(outcome: Outcome) -> Change {
    Change::Finish(end(lease(1), 60, outcome))
}

fn blocked_by(explanation: &Explanation) -> Option<Blocked> {
    explanation.queue.map(|place| place.blocked_by)
}

#[test]
fn a_queued_run_waits_for_a_worker_when_nothing_stands_before_it() {
    let told = Told::accepted();

    let explained = told.at(5);

    let expected = Explanation {
        state: RunStatus::Queued,
        summary:
            "Queued since 1970-01-01T00:00:00Z: nothing stands before it; it waits for a free \
                  worker."
                .to_owned(),
        queue: Some(QueuePlace {
            position: 1,
            blocked_by: Blocked::Worker,
            tenant_running: 0,
            tenant_cap: None,
        }),
        lease: None,
        attempts: Vec::new(),
        available_at: None,
        error: None,
    };
    assert_eq!(explained, expected);
}

#[test]
fn a_queued_run_stands_behind_the_earlier_ones_of_its_session() {
    let told = Told::accepted();
    let mut situation = told.situation(5);
    situation.before = vec![run(7)];

    let one = told.explained(&situation, 0);
    situation.before.push(run(8));
    let two = told.explained(&situation, 0);

    assert_eq!(blocked_by(&one), Some(Blocked::EarlierRun(run(7))));
    assert_eq!(one.queue.map(|place| place.position), Some(2));
    let of_session = format!("run {} of its session comes first.", run(7));
    assert!(one.summary.ends_with(&of_session), "{}", one.summary);
    assert_eq!(two.queue.map(|place| place.position), Some(3));
    let of_session = format!(
        "2 runs of its session come first, of them run {} next.",
        run(7)
    );
    assert!(two.summary.ends_with(&of_session), "{}", two.summary);
}

#[test]
fn a_queued_run_waits_while_its_tenant_is_at_its_cap() {
    let told = Told::accepted();
    let mut situation = told.situation(5);
    situation.tenant_running = 2;

    let explained = told.explained(&situation, 2);

    let place = explained.queue.expect("it is queued");
    assert_eq!(place.blocked_by, Blocked::TenantCap);
    assert_eq!((place.tenant_running, place.tenant_cap), (2, Some(2)));
    let words = "its tenant has 2 running runs, and may have no more at once.";
    assert!(explained.summary.ends_with(words), "{}", explained.summary);
    for cap in [0, 3] {
        let explained = told.explained(&situation, cap);
        assert_eq!(blocked_by(&explained), Some(Blocked::Worker), "{cap}");
    }
}

#[test]
fn a_queued_run_of_a_suspended_tenant_waits_for_that_first_of_all() {
    let told = Told::accepted();
    let mut situation = told.situation(5);
    situation.before = vec![run(7)];
    situation.standing.tenant_active = false;

    let explained = told.explained(&situation, 1);

    assert_eq!(blocked_by(&explained), Some(Blocked::TenantSuspended));
    let words = "its tenant is suspended; it goes on when the tenant is active again.";
    assert!(explained.summary.ends_with(words), "{}", explained.summary);
}

#[test]
fn a_queued_run_waits_as_long_as_its_provider_asked_to() {
    let told = Told::accepted()
        .then(1, &claim(1))
        .then(3, &back(1, 1, RequeueReason::ProviderWait, 60));

    let (before, behind) = (told.at(62), told.at(63));

    assert_eq!(blocked_by(&before), Some(Blocked::NotAvailable(at(63))));
    assert_eq!(before.available_at, Some(at(63)));
    assert_eq!(
        before.summary,
        "Queued again since 1970-01-01T00:00:03Z, after attempt 1 (its provider asked to wait): its \
         provider asked to wait until 1970-01-01T00:01:03Z."
    );
    assert_eq!(blocked_by(&behind), Some(Blocked::Worker));
}

#[test]
fn a_queued_run_whose_holders_fell_silent_waits_longer_each_time() {
    let told = Told::accepted()
        .then(0, &claim(1))
        .then(30, &reclaim(5))
        .then(30, &claim(2))
        .then(60, &reclaim(5));

    let explained = told.at(60);

    let until = told.run.available_at.expect("it has to wait");
    assert_eq!(blocked_by(&explained), Some(Blocked::NotAvailable(until)));
    let words = format!(
        "2 holders in a row fell silent in the same turn, so it is not tried again before {until}."
    );
    assert!(explained.summary.ends_with(&words), "{}", explained.summary);
    let attempt = |attempt, by, from| Attempt {
        attempt,
        owner: Some(owner(by)),
        started_at: at(from),
        ttl: Some(TTL),
        ended_at: Some(at(from + 30)),
        cause: Some(Cause::Requeued(RequeueReason::LeaseExpired)),
    };
    assert_eq!(explained.attempts, [attempt(1, 1, 0), attempt(2, 2, 30)]);
}

#[test]
fn a_queued_run_of_a_newer_format_is_left_to_newer_builds() {
    let mut told = Told::accepted();
    told.run.memory.version = MEMORY_VERSION + 1;

    let explained = told.at(5);

    assert_eq!(blocked_by(&explained), Some(Blocked::NewerMemory));
    let words = format!(
        "its memory has format {}, which only a newer build can read; this one reads up to \
         {MEMORY_VERSION}.",
        MEMORY_VERSION + 1
    );
    assert!(explained.summary.ends_with(&words), "{}", explained.summary);
}

#[test]
fn a_creator_who_may_not_act_is_told_of_as_long_as_the_run_goes_on() {
    let words = " Its creator may not act any more, so it will fail as creator_inactive.";
    for told in [
        Told::accepted(),
        Told::accepted().then(0, &claim(1)),
        Told::accepted()
            .then(0, &claim(1))
            .then(1, &finish(Outcome::Succeeded)),
    ] {
        let mut situation = told.situation(5);
        situation.standing.creator.active = false;

        let summary = told.explained(&situation, 0).summary;

        let goes_on = !told.run.state.status().is_terminal();
        assert_eq!(summary.ends_with(words), goes_on, "{summary}");
    }
}

#[test]
fn a_running_run_is_held_by_somebody_who_asks_the_model() {
    let told = Told::accepted().then(2, &claim(1));

    let explained = told.at(5);

    let expected = Explanation {
        state: RunStatus::Running,
        summary: format!(
            "Running since 1970-01-01T00:00:02Z in attempt 1, asking the model in turn 1, held by \
             process {} until 1970-01-01T00:00:32Z unless it renews that.",
            owner(1)
        ),
        queue: None,
        lease: Some(Holder {
            owner: owner(1),
            attempt: 1,
            expires_at: at(32),
            renewed_at: None,
        }),
        attempts: vec![Attempt {
            attempt: 1,
            owner: Some(owner(1)),
            started_at: at(2),
            ttl: Some(TTL),
            ended_at: None,
            cause: None,
        }],
        available_at: None,
        error: None,
    };
    assert_eq!(explained, expected);
}

#[test]
fn a_running_run_is_in_the_turn_that_is_not_complete() {
    let told = Told::accepted()
        .then(0, &claim(1))
        .then(1, &answer(lease(1), 10, 1));
    assert!(
        told.at(2)
            .summary
            .contains("executing the tools of turn 1,")
    );

    let told = told.then(3, &go_on(lease(1), 11, 1));

    assert!(told.at(4).summary.contains("asking the model in turn 2,"));
}

#[test]
fn the_last_renewal_is_told_by_the_time_for_which_the_claim_was_made() {
    let told = Told::accepted()
        .then(2, &claim(1))
        .then(12, &renew(lease(1)))
        .then(22, &renew(lease(1)));

    let renewed_at = told.at(25).lease.and_then(|lease| lease.renewed_at);

    assert_eq!(renewed_at, Some(at(22)));
}

#[test]
fn a_claim_that_an_older_build_told_of_has_its_holder_of_now_and_no_known_renewal() {
    let mut told = Told::accepted()
        .then(2, &claim(1))
        .then(12, &renew(lease(1)));
    told.events[0].kind = EventKind::RunStarted {
        owner: None,
        lease_expires_at: None,
    };

    let explained = told.at(13);

    assert_eq!(explained.attempts[0].owner, Some(owner(1)));
    assert_eq!(explained.lease.and_then(|lease| lease.renewed_at), None);
    let back = told.then(42, &reclaim(5)).at(43);
    assert_eq!(back.attempts[0].owner, None);
}

#[test]
fn a_lease_that_ran_out_and_was_not_swept_yet_is_told_of() {
    let told = Told::accepted().then(2, &claim(1));

    let (before, behind) = (told.at(31), told.at(32));

    let words = " whose lease ended at 1970-01-01T00:00:32Z without renewal: the run will be taken \
                 from it.";
    assert!(behind.summary.ends_with(words), "{}", behind.summary);
    assert!(!before.summary.contains("without renewal"));
}

#[test]
fn a_running_run_whose_end_was_asked_for_says_so() {
    let told = Told::accepted().then(2, &claim(1)).then(4, &cancel());

    let summary = told.at(5).summary;

    let words = " Its end was asked for at 1970-01-01T00:00:04Z, and it will end cancelled.";
    assert!(summary.ends_with(words), "{summary}");
}

#[test]
fn a_running_run_of_a_suspended_tenant_goes_back_at_its_boundary() {
    let told = Told::accepted().then(2, &claim(1));
    let mut situation = told.situation(5);
    situation.standing.tenant_active = false;

    let summary = told.explained(&situation, 0).summary;

    let words = " Its tenant is suspended, so it will be given back when its turn is complete.";
    assert!(summary.ends_with(words), "{summary}");
}

#[test]
fn a_run_that_succeeded_tells_what_it_took() {
    let told = Told::accepted()
        .then(0, &claim(1))
        .then(1, &answer(lease(1), 10, 1))
        .then(2, &go_on(lease(1), 11, 1))
        .then(3, &finish(Outcome::Succeeded));

    let explained = told.at(9);

    assert_eq!(
        explained.summary,
        "Succeeded at 1970-01-01T00:00:03Z with 1 model call in 1 attempt."
    );
    assert_eq!((explained.queue, explained.lease), (None, None));
    let last = explained.attempts.last().expect("it had one");
    assert_eq!(
        (last.ended_at, last.cause),
        (Some(at(3)), Some(Cause::Succeeded))
    );
}

#[test]
fn each_way_to_fail_is_told_in_words() {
    let mut words = Vec::new();
    for code in RunErrorCode::ALL {
        let error = RunError::new(code, "details");
        let told = Told::accepted()
            .then(0, &claim(1))
            .then(3, &finish(Outcome::Failed(error.clone())));

        let explained = told.at(9);

        let begin = format!("Failed at 1970-01-01T00:00:03Z as {}: ", code.as_str());
        let why = explained.summary.strip_prefix(&begin).expect("it says so");
        assert!(why.contains(' ') && why.ends_with('.'), "{why}");
        words.push(why.to_owned());
        assert_eq!(explained.error, Some(error));
        assert_eq!(explained.attempts[0].cause, Some(Cause::Failed(code)));
    }
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), RunErrorCode::ALL.len());
}

#[test]
fn a_run_that_stalled_has_the_attempts_that_it_stalled_in() {
    let told = Told::accepted()
        .then(0, &claim(1))
        .then(30, &reclaim(2))
        .then(30, &claim(2))
        .then(60, &reclaim(2));

    let explained = told.at(61);

    let stalled = "Failed at 1970-01-01T00:01:00Z as stalled: the same turn was begun too often";
    assert!(explained.summary.starts_with(stalled));
    let causes: Vec<_> = explained.attempts.iter().map(|it| it.cause).collect();
    let expected = [
        Cause::Requeued(RequeueReason::LeaseExpired),
        Cause::Failed(RunErrorCode::Stalled),
    ];
    assert_eq!(causes, expected.map(Some));
}

#[test]
fn a_cancelled_run_tells_when_that_was_asked_for() {
    let waiting = Told::accepted().then(4, &cancel());
    let held = Told::accepted()
        .then(0, &claim(1))
        .then(4, &cancel())
        .then(6, &finish(Outcome::Cancelled));

    assert_eq!(
        waiting.at(9).summary,
        "Cancelled at 1970-01-01T00:00:04Z before it was started: its end was asked for at \
         1970-01-01T00:00:04Z."
    );
    assert_eq!(
        held.at(9).summary,
        "Cancelled at 1970-01-01T00:00:06Z: its end was asked for at 1970-01-01T00:00:04Z."
    );
    assert_eq!(held.at(9).attempts[0].cause, Some(Cause::Cancelled));
}

#[test]
fn an_end_while_a_run_waits_is_no_attempts_end() {
    let told = Told::accepted()
        .then(0, &claim(1))
        .then(3, &back(1, 1, RequeueReason::Drain, 0))
        .then(5, &cancel());

    let attempts = told.at(9).attempts;

    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].ended_at, Some(at(3)));
    assert_eq!(
        attempts[0].cause,
        Some(Cause::Requeued(RequeueReason::Drain))
    );
}

#[test]
fn what_a_newer_build_told_counts_by_its_name() {
    let mut told = Told::accepted()
        .then(0, &claim(1))
        .then(3, &back(1, 1, RequeueReason::Drain, 0));
    for event in &mut told.events {
        let text = json!({"type": event.kind.name(), "why": {"code": 7}});
        let text = text.as_object().cloned().unwrap_or_default();
        event.kind = EventKind::from_stored(EVENT_VERSION + 1, text).expect("it has a name");
    }

    let attempts = told.at(9).attempts;

    let expected = Attempt {
        attempt: 1,
        owner: None,
        started_at: at(0),
        ttl: None,
        ended_at: Some(at(3)),
        cause: None,
    };
    assert_eq!(attempts, [expected]);
}

#[test]
fn of_a_long_life_the_last_attempts_are_kept() {
    let mut told = Told::accepted();
    let many = u32::try_from(MOST_ATTEMPTS).expect("not so many") + 5;
    for attempt in 1..=many {
        let second = u64::from(attempt);
        let back = back(attempt, 1, RequeueReason::Drain, 0);
        told = told.then(second, &claim(1)).then(second, &back);
    }

    let attempts = told.at(1000).attempts;

    assert_eq!(attempts.len(), MOST_ATTEMPTS);
    assert_eq!(attempts.first().map(|it| it.attempt), Some(6));
    assert_eq!(attempts.last().map(|it| it.attempt), Some(many));
}

#[test]
fn every_word_is_one_of_those_that_are_listed() {
    let blocked = [
        Blocked::TenantSuspended,
        Blocked::NotAvailable(at(1)),
        Blocked::NewerMemory,
        Blocked::TenantCap,
    ];
    let names: Vec<_> = blocked.into_iter().filter_map(Blocked::name).collect();
    assert_eq!(names, Blocked::WORDS);
    let earlier = Blocked::EarlierRun(run(7)).name();
    assert_eq!(earlier, Some(run(7).to_string()));
    assert_eq!(Blocked::Worker.name(), None);

    let mut causes: Vec<_> = Cause::words().collect();
    let all = causes.len();
    causes.sort_unstable();
    causes.dedup();
    assert_eq!(causes.len(), all);
}
