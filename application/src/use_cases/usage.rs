//! What runs cost.

use std::time::Duration;

use hango_domain::Timestamp;
use hango_domain::usage::{UsageGroup, UsageSum};
use hango_ports::usage_store::UsageQuery;

use super::{Caller, Fault, FaultCode, Input, UseCaseError, UseCases};

/// The period of who names none ends now and is this long; one without a beginning, before its end.
const PERIOD: Duration = Duration::from_hours(30 * 24);

/// The longest period.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// The most groups of an answer.
const MOST_GROUPS: u32 = 1000;

/// What a caller wants to know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UsageAsk {
    /// The first moment at which the runs were created.
    pub from: Option<Timestamp>,
    /// The moment before which they were.
    pub to: Option<Timestamp>,
    /// What each row is the sum of; `None` for one of all.
    pub group: Option<UsageGroup>,
}

/// What runs cost that were created in a period and have ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageReport {
    /// The period's first moment.
    pub from: Timestamp,
    /// The first moment behind it.
    pub to: Timestamp,
    /// The sums: one of all, or one for each group that has runs, days in their order, else who used
    /// the most tokens first.
    pub sums: Vec<UsageSum>,
    /// Whether there are more groups, which used fewer tokens.
    pub truncated: bool,
}

impl UseCases {
    /// Sums up what the tenant's runs cost.
    pub async fn usage(
        &self,
        caller: &Caller,
        ask: Input<UsageAsk>,
    ) -> Result<UsageReport, UseCaseError> {
        caller.must_administer()?;
        let now = self.clock.now();
        let ask = ask
            .judged(|ask, faults| judge(ask, now, faults))
            .accepted()?;
        let (from, to) = period(&ask, now);
        let query = UsageQuery {
            from,
            to,
            group: ask.group,
            limit: MOST_GROUPS + 1,
        };
        let mut sums = self.stores.usage.sum(caller.scope.tenant, query).await?;
        let truncated = sums.len() > MOST_GROUPS as usize;
        sums.truncate(MOST_GROUPS as usize);
        match ask.group {
            None if sums.is_empty() => sums.push(UsageSum::default()),
            Some(UsageGroup::Day) => sums.sort_by_key(|sum| sum.key),
            None | Some(UsageGroup::Agent | UsageGroup::User) => {}
        }
        Ok(UsageReport {
            from,
            to,
            sums,
            truncated,
        })
    }
}

fn period(ask: &UsageAsk, now: Timestamp) -> (Timestamp, Timestamp) {
    let to = ask.to.unwrap_or(now);
    (ask.from.unwrap_or_else(|| to.minus(PERIOD)), to)
}

fn judge(ask: &UsageAsk, now: Timestamp, faults: &mut Vec<Fault>) {
    let (from, to) = period(ask, now);
    let wrong = if from >= to {
        "it has to be before the period's end"
    } else if to.since(from) > LONGEST {
        "a period has 366 days at most"
    } else {
        return;
    };
    faults.push(Fault::new("/from", FaultCode::OutOfRange, wrong));
}
