//! What is counted, out of what is told.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::queue::{Census, Counts};
use hango_domain::run::Lease;
use hango_domain::{RunId, TenantId};
use hango_otel::{Metrics, MetricsSettings};
use hango_ports::Telemetry;
use hango_ports::store::{Connections, StoreFailure, StoreHealth};
use hango_ports::telemetry::{MetricsPage, Observation};
use uuid::Uuid;

fn metrics(tenants: bool) -> Metrics {
    let settings = MetricsSettings {
        tenants,
        ..MetricsSettings::default()
    };
    Metrics::new(settings).expect("nothing is missing")
}

/// The values of the lines that begin so.
#[track_caller]
fn values(metrics: &Metrics, series: &str) -> Vec<String> {
    let page = metrics.page().expect("it can be written");
    let lines = page.lines().filter(|line| line.starts_with(series));
    lines
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect()
}

fn lease(attempt: u32) -> Lease {
    Lease {
        run: RunId(Uuid::max()),
        owner: OwnerId(Uuid::nil()),
        attempt,
    }
}

#[test]
fn a_lost_claim_is_counted_once() {
    let metrics = metrics(true);
    let lost = "hango_run_claims_total{outcome=\"lost\"}";
    assert_eq!(values(&metrics, lost), ["0"]);

    let owner = OwnerId(Uuid::nil());
    metrics.observe(Observation::ClaimLost { owner });

    assert_eq!(values(&metrics, lost), ["1"]);
    assert_eq!(
        values(&metrics, "hango_run_claims_total{outcome=\"won\"}"),
        ["0"]
    );
}

#[test]
fn a_run_waits_once_however_often_it_is_claimed() {
    let metrics = metrics(true);
    for attempt in 1..=3 {
        metrics.observe(Observation::ClaimWon {
            lease: lease(attempt),
            waited: Duration::from_secs(2),
        });
    }

    assert_eq!(
        values(&metrics, "hango_run_claims_total{outcome=\"won\"}"),
        ["3"]
    );
    let waited = "hango_run_queue_wait_duration_seconds_count";
    assert_eq!(values(&metrics, waited), ["1"]);
}

#[test]
fn tenants_that_have_no_runs_any_more_are_forgotten_and_the_others_stay_one_series() {
    let tenant = TenantId(Uuid::max());
    let (busy, others) = (
        Counts {
            queued: 3,
            running: 2,
        },
        Counts {
            queued: 40,
            running: 0,
        },
    );
    let census = Census {
        tenants: vec![(tenant, busy)],
        others,
        claimable_for: Some(Duration::from_secs(90)),
        running_for: None,
    };
    let of_tenant = format!("hango_runs_by_state{{hango_tenant_id=\"{tenant}\"");
    let all = "hango_runs_by_state{";
    for (named, tenants, expected) in [(true, 2, 4), (false, 0, 2)] {
        let metrics = metrics(named);
        assert!(values(&metrics, all).is_empty(), "nobody has counted yet");

        metrics.observe(Observation::Census(census.clone()));

        assert_eq!(values(&metrics, &of_tenant).len(), tenants);
        assert_eq!(values(&metrics, all).len(), expected);
        assert_eq!(values(&metrics, "hango_run_queue_depth"), ["43"]);
        assert_eq!(
            values(&metrics, "hango_run_oldest_queued_age_seconds"),
            ["90"]
        );
        assert_eq!(
            values(&metrics, "hango_run_oldest_running_age_seconds"),
            ["0"]
        );

        metrics.observe(Observation::Census(Census::default()));

        assert!(values(&metrics, &of_tenant).is_empty());
        assert_eq!(values(&metrics, all), ["0", "0"]);
        assert_eq!(values(&metrics, "hango_run_queue_depth"), ["0"]);
    }
}

/// A store that panics when it is asked.
struct Broken;

#[async_trait::async_trait]
impl StoreHealth for Broken {
    async fn check(&self) -> Result<(), StoreFailure> {
        Ok(())
    }

    fn connections(&self) -> Option<Connections> {
        panic!("it is broken")
    }
}

#[test]
fn a_gauge_that_panics_is_left_out_and_takes_no_other_with_it() {
    let metrics = metrics(true);
    metrics.watch(&(Arc::new(Broken) as Arc<dyn StoreHealth>));
    for _ in 0..2 {
        assert!(values(&metrics, "hango_db_pool_in_use").is_empty());
        assert_eq!(values(&metrics, "hango_run_claims_total").len(), 2);
        assert_eq!(values(&metrics, "hango_run_workers_limit"), ["0"]);
    }
}
