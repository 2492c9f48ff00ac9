//! What runs cost, summed up.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_domain::Timestamp;
use hango_domain::access::Role;
use hango_domain::conversation::Usage;
use hango_domain::run::{Change, End, Outcome, Run, RunError, RunErrorCode, RunStatus};
use hango_domain::usage::{UsageGroup, UsageKey, UsageSum};
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunFilter;
use hango_ports::usage_store::UsageQuery;

use crate::{Fixture, Place, USAGE, owner};

/// How far apart the checks' runs are created.
const APART: Duration = Duration::from_hours(7);

/// All that a tenant's runs cost.
fn all(group: Option<UsageGroup>) -> UsageQuery {
    UsageQuery {
        from: Timestamp::from_micros(0),
        to: Timestamp::from_micros(4_000_000_000_000_000),
        group,
        limit: 1000,
    }
}

async fn sums(fixture: &Fixture, place: &Place, query: UsageQuery) -> Vec<UsageSum> {
    let sums = fixture.stores.usage.sum(place.tenant, query).await;
    sums.expect("reads work")
}

/// Ends a queued run, which cost that much.
async fn end(fixture: &Fixture, run: &Run, outcome: Outcome, usage: Usage, discarded: Usage) {
    let lease = fixture.held(run.id, owner(1)).await;
    let end = End {
        usage,
        usage_discarded: discarded,
        ..End::new(lease, fixture.write_id(), outcome)
    };
    fixture.written(Change::Finish(end)).await;
}

/// A tenant with runs of two agents and two users on several days, of which some have not ended, beside
/// another tenant's.
async fn busy(fixture: &Fixture) -> Place {
    let place = fixture.place().await;
    let agent = fixture.agent(&place.owner).await;
    let member = fixture.user(&place.owner, Role::Member).await;
    let theirs = fixture.session(&member, agent.id).await;
    for n in 0..14_u64 {
        fixture.clock.advance(APART);
        let new = if n % 3 == 0 {
            fixture.new_run(&member, theirs.id)
        } else {
            fixture.new_run(&place.owner, place.session.id)
        };
        let run = fixture.accept(new).await;
        let usage = Usage {
            input_tokens: 1000 + n,
            output_tokens: 1 << n,
            cache_read_tokens: n,
            cache_write_tokens: 3 * n,
            estimated: n % 3 == 0,
        };
        let (outcome, discarded) = match n % 4 {
            0 => {
                let error = RunError::new(RunErrorCode::ProviderUnavailable, "gone");
                (Outcome::Failed(error), USAGE)
            }
            1 => {
                let cancelled = fixture.cancel(&place.owner, run.id).await;
                cancelled.expect("a queued run is cancelled");
                continue;
            }
            _ => (Outcome::Succeeded, Usage::default()),
        };
        end(fixture, &run, outcome, usage, discarded).await;
    }
    let running = fixture.run(&place).await;
    fixture.held(running.id, owner(1)).await;
    fixture.run(&place).await;
    let (other, lease) = fixture.running().await;
    let finish = fixture.finish(lease, 1);
    fixture.written(Change::Finish(finish)).await;
    assert_ne!(other.tenant, place.tenant);
    place
}

/// What a query's answer is, out of the runs themselves; by key.
async fn expected(fixture: &Fixture, place: &Place, query: UsageQuery) -> Vec<UsageSum> {
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let runs = &fixture.stores.runs;
    let runs = runs.list(place.seen(), RunFilter::default(), page).await;
    let mut sums: BTreeMap<Option<UsageKey>, UsageSum> = BTreeMap::new();
    for run in runs.expect("reads work").items {
        if run.created_at < query.from || run.created_at >= query.to {
            continue;
        }
        let key = query.group.map(|group| match group {
            UsageGroup::Agent => UsageKey::Agent(run.agent_id),
            UsageGroup::User => UsageKey::User(run.created_by),
            UsageGroup::Day => UsageKey::Day(run.created_at.as_micros() / 86_400_000_000),
        });
        let (succeeded, failed, cancelled) = match run.state.status() {
            RunStatus::Queued | RunStatus::Running => continue,
            RunStatus::Succeeded => (1, 0, 0),
            RunStatus::Failed => (0, 1, 0),
            RunStatus::Cancelled => (0, 0, 1),
        };
        let sum = sums.entry(key).or_default();
        *sum = UsageSum {
            key,
            succeeded: sum.succeeded + succeeded,
            failed: sum.failed + failed,
            cancelled: sum.cancelled + cancelled,
            usage: sum.usage + run.usage,
            discarded: sum.discarded + run.usage_discarded,
        };
    }
    sums.into_values().collect()
}

/// Whatever it is grouped by, what runs cost is the sum over the tenant's runs that have ended.
pub async fn usage_is_the_sum_over_the_runs_that_have_ended(fixture: Fixture) {
    let place = busy(&fixture).await;
    for (group, groups) in [
        (None, 1),
        (Some(UsageGroup::Agent), 2),
        (Some(UsageGroup::User), 2),
        (Some(UsageGroup::Day), 5),
    ] {
        let mut found = sums(&fixture, &place, all(group)).await;
        found.sort_by_key(|sum| sum.key);

        let expected = expected(&fixture, &place, all(group)).await;
        assert_eq!(expected.len(), groups, "{group:?}");
        assert_eq!(found, expected, "{group:?}");
    }
}

/// A period has the moment of its beginning and not that of its end; one without runs has no row.
pub async fn a_period_begins_with_its_first_moment_and_ends_before_its_last(fixture: Fixture) {
    let place = busy(&fixture).await;
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let runs = &fixture.stores.runs;
    let runs = runs.list(place.seen(), RunFilter::default(), page).await;
    let runs = runs.expect("reads work").items;
    let (from, to) = (runs[10].created_at, runs[4].created_at);
    let query = UsageQuery {
        from,
        to,
        ..all(None)
    };

    let found = sums(&fixture, &place, query).await;

    assert_eq!(found, expected(&fixture, &place, query).await);
    let counted = found
        .first()
        .map(|it| it.succeeded + it.failed + it.cancelled);
    assert_eq!(counted, Some(6));
    let nothing = UsageQuery { to: from, ..query };
    assert_eq!(sums(&fixture, &place, nothing).await, []);
}

/// Where there are more rows than were asked for, those are left out that used the fewest tokens.
pub async fn who_used_the_most_comes_first(fixture: Fixture) {
    let place = busy(&fixture).await;
    let days = sums(&fixture, &place, all(Some(UsageGroup::Day))).await;
    let tokens = |sum: &UsageSum| {
        let both = sum.usage + sum.discarded;
        both.input_tokens + both.output_tokens
    };

    let query = UsageQuery {
        limit: 2,
        ..all(Some(UsageGroup::Day))
    };
    let first = sums(&fixture, &place, query).await;

    assert!(days.is_sorted_by(|more, less| tokens(more) > tokens(less)));
    assert_eq!(first, days[..2]);
}

/// Counts that no provider ever meant do not overflow a sum, and are exact as long as they can be.
pub async fn a_sum_that_is_too_large_is_the_largest(fixture: Fixture) {
    let place = fixture.place().await;
    let half = u64::MAX / 2;
    for (input, output) in [(u64::MAX, half), (1, half), (0, 1)] {
        fixture.clock.advance(APART);
        let run = fixture.run(&place).await;
        let usage = Usage {
            input_tokens: input,
            output_tokens: output,
            ..Usage::default()
        };
        end(&fixture, &run, Outcome::Succeeded, usage, usage).await;
    }

    let found = sums(&fixture, &place, all(None)).await;

    let usage = Usage {
        input_tokens: u64::MAX,
        output_tokens: u64::MAX,
        ..Usage::default()
    };
    assert_eq!(
        found,
        [UsageSum {
            succeeded: 3,
            usage,
            discarded: usage,
            ..UsageSum::default()
        }]
    );
    let days = sums(&fixture, &place, all(Some(UsageGroup::Day))).await;
    let largest = days.iter().map(|day| day.usage.output_tokens).max();
    assert!(largest >= Some(half), "{days:?}");
}
