//! G09, G10: the database's server crashes and comes back; its connections are broken one by one.

use std::time::{Duration, Instant};

use reqwest::Method;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fault::{Fault, Hits};
use crate::history::Expect;
use crate::moment::Moment;
use crate::report::{Report, seconds};
use crate::timing::Timing;
use crate::world::{Setup, World};

pub(super) const RESTART: Scenario = Scenario {
    name: "database-restart",
    about: "G09: PostgreSQL crashes every 5 to 20 s and is away for 0 to 5 s",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Faults, Takes::Minutes, Takes::Replicas],
    run: |task| Box::pin(restart(task)),
};

pub(super) const BACKEND_KILL: Scenario = Scenario {
    name: "backend-kill",
    about: "G10: a connection to PostgreSQL is broken every 200 ms",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Faults, Takes::Minutes, Takes::Replicas],
    run: |task| Box::pin(backend_kill(task)),
};

/// How soon after its return somebody claims something.
const CLAIMS_AGAIN: Duration = Duration::from_secs(2);

/// The longest time in which requests are served as before.
const SERVES_AGAIN: Duration = Duration::from_secs(5);

/// With a lease that outlasts a short absence of the database, so that no claim may be lost by one.
const TIMING: Timing = Timing {
    lease: Duration::from_secs(4),
    ..Timing::SHORT
};

async fn restart(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(RESTART.name, task.seed, task.kind, task.replicas);
    setup.timing = TIMING;
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "crashes");
    let sessions = world.load.sessions(40).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(200),
        Dice::of(task.seed, "load"),
    );

    let until = task
        .minutes
        .map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0));
    let most = task
        .faults
        .unwrap_or(if until.is_some() { usize::MAX } else { 3 });
    let mut back = Vec::new();
    let mut refusals = 0;
    // The edition for CI hurries.
    let hurry = if until.is_some() { 1 } else { 5 };
    while back.len() < most && until.is_none_or(|until| Instant::now() < until) {
        tokio::time::sleep(dice.millis(5000 / hurry, 20_000 / hurry)).await;
        let away = dice.millis(0, 5000 / hurry);
        let from = Moment::now();
        world.fleet.hold_up(true);
        world.database.crash().await?;
        let gone = Instant::now();
        loop {
            let before = world.client.log().refusals("unavailable");
            // An answer that is neither 503 nor fine is noted by the client itself.
            let answer = world
                .client
                .once(&Method::GET, "/v1/runs?limit=1", None)
                .await;
            anyhow::ensure!(
                answer.is_none(),
                "there was an answer without a database: {answer:?}"
            );
            refusals += world.client.log().refusals("unavailable") - before;
            if gone.elapsed() >= away {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.database.resume().await?;
        let until = Moment::now();
        world.fleet.hold_up(false);
        world.fleet.note(Fault {
            what: "database crash",
            from,
            until,
            hits: Hits::Everybody,
            held: Vec::new(),
        });
        back.push(until);
    }
    tokio::time::sleep(world.timing.takeover()).await;
    drop(load);

    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let longest = outcome.longest_to_first_claim(&back);
    let report = &mut outcome.report;
    report.line(
        "first claim",
        format!("{} after its return at the latest", seconds(longest)),
    );
    report.line(
        "probes",
        format!("{refusals} were answered 503 while it was away"),
    );
    report.must(refusals > 0, || {
        "goal: nobody was told that the database is away".to_owned()
    });
    report.must_be_in_time(longest <= CLAIMS_AGAIN, || {
        format!("goal: the first claim came {longest:?} after the database's return")
    });
    Ok(outcome.report)
}

async fn backend_kill(task: Task) -> anyhow::Result<Report> {
    let setup = Setup::of(BACKEND_KILL.name, task.seed, task.kind, task.replicas);
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "backends");
    let sessions = world.load.sessions(40).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(200),
        Dice::of(task.seed, "load"),
    );

    let until = task
        .minutes
        .map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0));
    let most = task
        .faults
        .unwrap_or(if until.is_some() { usize::MAX } else { 40 });
    let mut broken = 0;
    while broken < most && until.is_none_or(|until| Instant::now() < until) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let backends = world.facts.backends().await?;
        if backends.is_empty() {
            continue;
        }
        let backend = dice.pick(&backends);
        let at = Moment::now();
        world
            .database
            .execute(&format!("select pg_terminate_backend({backend})"))
            .await?;
        world.fleet.note(Fault {
            what: "broken connection",
            from: at,
            until: at,
            hits: Hits::Nobody,
            held: Vec::new(),
        });
        broken += 1;
    }
    let served = served_again(&world).await?;
    drop(load);

    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let report = &mut outcome.report;
    report.line(
        "served again",
        format!("{} after the last one", seconds(served)),
    );
    report.must_be_in_time(served <= SERVES_AGAIN, || {
        format!("goal: requests were served as before only after {served:?}")
    });
    Ok(outcome.report)
}

/// How long it takes until many requests in a row are served.
async fn served_again(world: &World) -> anyhow::Result<Duration> {
    const IN_A_ROW: usize = 60;
    let begun = Instant::now();
    let mut served_since = Instant::now();
    let mut row = 0;
    while row < IN_A_ROW {
        anyhow::ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "requests are not served again"
        );
        if world
            .client
            .once(&Method::GET, "/v1/runs?limit=1", None)
            .await
            .is_some()
        {
            row += 1;
        } else {
            row = 0;
            served_since = Instant::now();
        }
    }
    Ok(served_since.duration_since(begun))
}
