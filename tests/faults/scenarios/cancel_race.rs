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
use crate::truth::client::{Accepted, Client};
use crate::truth::provider::Provider;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cancel-race",
    about: "G08: runs are cancelled within 50 ms of their acceptance, around a turn's end or their own, \
            and at any moment",
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

/// How long it takes at most from the question for an answer to the end of the turn that it brings.
const TURN: u64 = 120;

/// How long somebody waits for that question.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many runs are under way at once.
const AT_ONCE: usize = 12;

/// When a run is cancelled: so long after something.
#[derive(Clone, Copy, Debug)]
struct Aim {
    around: Around,
    after: Duration,
}

/// What a cancel is to meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Around {
    /// The run's claim, which comes just behind its acceptance.
    Claim,
    /// The end of the first turn, behind the question for its answer.
    Boundary,
    /// The run's end, behind the question for the last answer.
    End,
    /// Anything, at any moment behind its acceptance.
    Anything,
}

impl Around {
    const ALL: [(Self, &str); 4] = [
        (Self::Claim, "the claim"),
        (Self::Boundary, "a boundary"),
        (Self::End, "the end"),
        (Self::Anything, "anything"),
    ];
}

impl Aim {
    /// A third of them each: the claim, a turn's end or the run's, any moment.
    fn throw(dice: &mut Dice) -> Self {
        let (around, longest) = match dice.between(0, 5) {
            0 | 1 => (Around::Claim, 50),
            2 => (Around::Boundary, TURN),
            3 => (Around::End, TURN),
            _ => (Around::Anything, LONGEST),
        };
        Self {
            around,
            after: dice.millis(0, longest),
        }
    }
}

/// An answer to a cancel.
struct Cancelled {
    run: String,
    around: Around,
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
                let (provider, seed) = (world.provider.clone(), world.seed);
                let (n, aim) = (begun, Aim::throw(&mut dice));
                tokio::spawn(async move {
                    let accepted = client.start_run(&session, &format!("run {n}")).await?;
                    meet(&accepted, aim, &provider, seed).await;
                    cancel(&client, &accepted, aim.around).await
                })
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
    let counts = Around::ALL.map(|(around, name)| {
        let count = |status| {
            let answers = answers.iter();
            let answers = answers.filter(|it| it.around == around && it.status == status);
            answers.count()
        };
        format!("{name} {}/{}", count(202), count(409))
    });
    outcome.report.line(
        "cancels",
        format!("accepted/behind the end, around {}", counts.join(", ")),
    );
    for answer in &answers {
        let objections = objections(&outcome.story, answer, heartbeat);
        outcome.report.violations.extend(objections);
    }
    Ok(outcome.report)
}

/// Waits for the moment to cancel a run that was just accepted.
async fn meet(accepted: &Accepted, aim: Aim, provider: &Provider, seed: u64) {
    let run = &accepted.input;
    let turn = match aim.around {
        Around::Claim | Around::Anything => None,
        Around::Boundary => Some(1),
        Around::End => Some(SHAPE.turns_of(seed, run)),
    };
    if let Some(turn) = turn {
        let turn = usize::try_from(turn).unwrap_or_default();
        // Where it is never asked for, the checker knows why.
        let _ = tokio::time::timeout(PATIENCE, provider.is_asked(run, turn)).await;
    }
    tokio::time::sleep(aim.after).await;
}

async fn cancel(client: &Client, accepted: &Accepted, around: Around) -> anyhow::Result<Cancelled> {
    let path = format!("/v1/runs/{}/cancel", accepted.id);
    // Asked again, where there was no answer: that of the first time comes again.
    let (status, body) = client
        .persist(&Method::POST, &path, Some(&json!({})))
        .await?;
    let answered = Moment::now();
    client.follow(&accepted.id).await;
    Ok(Cancelled {
        run: accepted.id.clone(),
        around,
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
