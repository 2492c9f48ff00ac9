//! What runs cost.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate};
use hango_application::use_cases::{UsageAsk, UsageReport};
use hango_domain::conversation::Usage;
use hango_domain::usage::{UsageGroup, UsageKey, UsageSum};
use hango_domain::{AgentId, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::openapi::{requests, schema};
use crate::params::Params;
use crate::problem::Problem;
use crate::time::Time;

const GROUPS: &[(&str, UsageGroup)] = &[
    (UsageGroup::Agent.as_str(), UsageGroup::Agent),
    (UsageGroup::User.as_str(), UsageGroup::User),
    (UsageGroup::Day.as_str(), UsageGroup::Day),
];

/// What the runs of a period cost.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageReport)]
pub(crate) struct UsageReportBody {
    from: Time,
    to: Time,
    data: Vec<UsageSumBody>,
    truncated: bool,
}

/// What the runs of one group cost, or all.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageSum)]
pub(crate) struct UsageSumBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Uuid, required = false)]
    agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Uuid, required = false)]
    user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = Date, required = false)]
    day: Option<NaiveDate>,
    runs: RunCountsBody,
    #[schema(schema_with = schema::usage)]
    usage: Usage,
    #[schema(schema_with = schema::usage)]
    usage_discarded: Usage,
}

/// How runs ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunCounts)]
pub(crate) struct RunCountsBody {
    succeeded: u64,
    failed: u64,
    cancelled: u64,
}

/// What the tenant's runs cost that were created in a period and have ended.
#[utoipa::path(
    get, path = "/v1/usage", tag = "Runs", operation_id = "read_usage",
    params(requests::Period),
    responses((status = 200, body = UsageReportBody)),
)]
pub(crate) async fn read(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<UsageReportBody>, Problem> {
    let ask = UsageAsk {
        from: params.time("from"),
        to: params.time("to"),
        group: params.word("group_by", GROUPS),
    };
    let report = api.use_cases.usage(&caller, params.input(ask)).await?;
    Ok(Json(report.into()))
}

impl From<UsageReport> for UsageReportBody {
    fn from(report: UsageReport) -> Self {
        let UsageReport {
            from,
            to,
            sums,
            truncated,
        } = report;
        Self {
            from: Time(from),
            to: Time(to),
            data: sums.into_iter().map(UsageSumBody::from).collect(),
            truncated,
        }
    }
}

impl From<UsageSum> for UsageSumBody {
    fn from(sum: UsageSum) -> Self {
        let UsageSum {
            key,
            succeeded,
            failed,
            cancelled,
            usage,
            discarded,
        } = sum;
        let (mut agent_id, mut user_id, mut day) = (None, None, None);
        match key {
            None => {}
            Some(UsageKey::Agent(agent)) => agent_id = Some(agent),
            Some(UsageKey::User(user)) => user_id = Some(user),
            Some(UsageKey::Day(after_epoch)) => day = Some(date(after_epoch)),
        }
        Self {
            agent_id,
            user_id,
            day,
            runs: RunCountsBody {
                succeeded,
                failed,
                cancelled,
            },
            usage,
            usage_discarded: discarded,
        }
    }
}

/// The day that is so many after that of the Unix epoch. Beyond what the calendar knows there is only its
/// end.
fn date(after_epoch: i64) -> NaiveDate {
    let begin = DateTime::from_timestamp(after_epoch.saturating_mul(24 * 60 * 60), 0);
    begin.map_or(NaiveDate::MAX, |begin| begin.date_naive())
}
