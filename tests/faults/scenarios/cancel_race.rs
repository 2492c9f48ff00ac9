//! G08: runs are cancelled around their claim, their boundaries and their end.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::history::story::Story;
use crate::moment::Moment;
use crate::plan::Shape;
use crate::report::Report;
use crate::truth::client::Client;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cancel-race",
    about: "G08: runs are cancelled within 50 ms of their claim, a boundary or their end",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Runs, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// Short turns, so that the moments which matter are close to each other.
const SHAPE: Shape = Shape {
    turns: 3,
    tools: 2,
    pace: 8,
    tool: 30,
};

/// How long a run of that shape may take before it is cancelled.
const LONGEST: u64 = 700;

/// How many runs are under way at once.
const AT_ONCE: usize = 12;

/// An answer to a cancel.
struct Cancelled {
    run: String,
    answered: Moment,
    status: u16,
    body: Value,
}

async fn run(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup.shape = SHAPE;
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "cancels");
    let sessions = world.load.sessions(AT_ONCE).await?;

    let mut answers = Vec::new();
    let mut begun = 0;
    let runs = task.runs.unwrap_or(120);
    while begun < runs {
        let round = sessions.iter().take(runs - begun);
        let cancels: Vec<JoinHandle<anyhow::Result<Cancelled>>> = round
            .map(|session| {
                begun += 1;
                let (client, session) = (world.client.clone(), session.clone());
                let offset = offset(&mut dice);
                tokio::spawn(async move { cancel(client, session, begun, offset).await })
            })
            .collect();
        for cancel in cancels {
            answers.push(cancel.await??);
        }
    }

    let expect = Expect {
        ends: |run| run["state"] == "succeeded" || run["state"] == "cancelled",
        ..Expect::SUCCESS
    };
    let heartbeat = world.timing.heartbeat;
    let mut outcome = world.finish(&expect).await?;
    let accepted = answers.iter().filter(|answer| answer.status == 202);
    outcome.report.line(
        "cancels",
        format!("{} accepted, {} came after the end", accepted.count(), {
            answers.iter().filter(|answer| answer.status == 409).count()
        }),
    );
    for answer in &answers {
        let objections = objections(&outcome.story, answer, heartbeat);
        outcome.report.violations.extend(objections);
    }
    Ok(outcome.report)
}

/// How long after its acceptance a run is cancelled: at once, or at any moment of its life.
fn offset(dice: &mut Dice) -> Duration {
    match dice.between(0, 2) {
        0 => dice.millis(0, 50),
        _ => dice.millis(0, LONGEST),
    }
}

async fn cancel(
    client: Client,
    session: String,
    n: usize,
    offset: Duration,
) -> anyhow::Result<Cancelled> {
    let accepted = client.start_run(&session, &format!("run {n}")).await?;
    tokio::time::sleep(offset).await;
    let path = format!("/v1/runs/{}/cancel", accepted.id);
    // Asked again, where there was no answer: that of the first time comes again.
    let (status, body) = client
        .persist(&Method::POST, &path, Some(&json!({})))
        .await?;
    let answered = Moment::now();
    client.follow(&accepted.id).await;
    Ok(Cancelled {
        run: accepted.id,
        answered,
        status,
        body,
    })
}

/// What speaks against the answer to a cancel, now that the run has ended.
fn objections(story: &Story, answer: &Cancelled, heartbeat: Duration) -> Vec<String> {
    let Some(told) = story.runs.iter().find(|told| told.id == answer.run) else {
        return vec![format!("I9: run {} is lost", answer.run)];
    };
    let state = told.text("state");
    let mut objections = Vec::new();
    let holds = match answer.status {
        202 => state == "cancelled",
        409 => state == "succeeded" && answer.body["code"] == "run_ended",
        _ => false,
    };
    if !holds {
        objections.push(format!(
            "I9: the cancel of run {} was answered {} {}, and it ended {state}",
            answer.run, answer.status, answer.body
        ));
    }
    let latest = answer.answered.plus(heartbeat + Duration::from_secs(1));
    let asked = story.asked_for(told).iter().any(|asked| asked.at > latest);
    let called = story
        .called_by(told)
        .iter()
        .any(|called| called.at > latest);
    if answer.status == 202 && (asked || called) {
        objections.push(format!(
            "I9: run {} went on long after its cancel",
            answer.run
        ));
    }
    objections
}
