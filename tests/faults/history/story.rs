//! Everything that is known of a scenario when it is over: what those outside of hango saw, and what
//! hango says.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use futures::stream::{StreamExt, TryStreamExt};
use reqwest::Method;
use serde_json::Value;

use super::SKEW;
use crate::fault::{Fault, Gap, STOPPED};
use crate::moment::Moment;
use crate::store::{Claim, EventRow};
use crate::timing::Timing;
use crate::truth::client::{Client, KEY, Log};
use crate::truth::provider::Asked;
use crate::truth::tools::Called;
use crate::world::{CANARY, World};

/// How many questions are asked at once.
const AT_ONCE: usize = 8;

/// What is known.
pub(crate) struct Story {
    /// What clients saw.
    pub(crate) clients: Log,
    /// What the provider was asked, by the run's input.
    pub(crate) asked: HashMap<String, Vec<Asked>>,
    /// What the provider refused.
    pub(crate) refused: Vec<String>,
    /// What the tools were called for, by the run's id.
    pub(crate) called: HashMap<String, Vec<Called>>,
    /// What was done on purpose.
    pub(crate) faults: Vec<Fault>,
    /// Every stored run, in the order of its session's queue, one session after the other.
    pub(crate) runs: Vec<Told>,
    /// Every session's messages.
    pub(crate) messages: HashMap<String, Vec<Value>>,
    /// The runs that an audit row says were created, as often as one says so.
    pub(crate) audited: Vec<String>,
    /// Who held each claim, as far as somebody saw it.
    pub(crate) holders: HashMap<Claim, String>,
    /// The owners that replicas said they are.
    pub(crate) owners: HashSet<String>,
    /// The times in which nobody could execute.
    pub(crate) gaps: Vec<Gap>,
    /// How fast replicas notice each other.
    pub(crate) timing: Timing,
    /// What two tenants see.
    pub(crate) foreign: Vec<String>,
    /// The logs and tables that hold a secret.
    pub(crate) leaks: Vec<String>,
}

/// What hango says of a run.
pub(crate) struct Told {
    /// Its id.
    pub(crate) id: String,
    /// Its session.
    pub(crate) session: String,
    /// Its input.
    pub(crate) input: String,
    /// The run.
    pub(crate) run: Value,
    /// Its journal.
    pub(crate) calls: Vec<Value>,
    /// Its events.
    pub(crate) events: Vec<EventRow>,
}

impl Told {
    /// A text of the run.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.run[field].as_str().unwrap_or_default()
    }
}

impl Story {
    /// Reads it, also with the key of `other`, if there is another tenant.
    pub(crate) async fn read(world: &World, other: Option<&Client>) -> anyhow::Result<Self> {
        let client = &Readers {
            one: &world.client,
            other,
            foreign: Mutex::default(),
        };
        let mut events: HashMap<String, Vec<EventRow>> = HashMap::new();
        for event in world.facts.events().await? {
            events.entry(event.run.clone()).or_default().push(event);
        }
        let rows = world.facts.runs().await?;
        let mut sessions: Vec<_> = rows.iter().map(|row| row.session.clone()).collect();
        sessions.dedup();

        let runs = futures::stream::iter(rows).map(|row| {
            let events = events.remove(&row.id).unwrap_or_default();
            async move {
                let run = client.get(&format!("/v1/runs/{}", row.id)).await?;
                let calls = format!("/v1/runs/{}/tool-calls", row.id);
                anyhow::Ok(Told {
                    input: input(&run).context("a run has no input")?,
                    calls: list(&client.get(&calls).await?),
                    id: row.id,
                    session: row.session,
                    run,
                    events,
                })
            }
        });
        let runs: Vec<Told> = runs.buffered(AT_ONCE).try_collect().await?;
        let messages = futures::stream::iter(sessions).map(|session| async move {
            let messages = messages(client, &session).await?;
            anyhow::Ok((session, messages))
        });
        let messages = messages.buffered(AT_ONCE).try_collect().await?;

        let mut asked: HashMap<String, Vec<Asked>> = HashMap::new();
        for entry in world.provider.asked() {
            asked.entry(entry.run.clone()).or_default().push(entry);
        }
        Ok(Self {
            clients: world.client.log(),
            asked,
            refused: world.provider.refused(),
            called: world.tools.by_run(),
            faults: world.fleet.faults(),
            runs,
            messages,
            audited: world.facts.audited("run.create").await?,
            holders: world.holders(),
            owners: world.fleet.owners(),
            gaps: world.fleet.gaps(),
            timing: world.timing,
            foreign: client.foreign(),
            leaks: leaks(world).await?,
        })
    }

    /// What the provider was asked for a run.
    pub(crate) fn asked_for(&self, told: &Told) -> &[Asked] {
        self.asked.get(&told.input).map_or(&[], Vec::as_slice)
    }

    /// Whether somebody who held that run had stopped, and woke just then. One who stopped between his
    /// last look at his lease and a call's first byte makes that call when he wakes: no look can be closer
    /// to it. That nothing else is begun then is held by tests that stop a process at one place.
    pub(crate) fn is_of_a_sleeper(&self, told: &Told, at: Moment) -> bool {
        let sleepers = self.faults.iter();
        let mut sleepers = sleepers.filter(|fault| fault.what == STOPPED);
        sleepers.any(|fault| {
            let held = fault.held.iter().any(|(run, _)| *run == told.id);
            held && at >= fault.until.minus(SKEW) && at <= fault.until.plus(Duration::from_secs(1))
        })
    }

    /// What the tools were called for by a run.
    pub(crate) fn called_by(&self, told: &Told) -> &[Called] {
        self.called.get(&told.id).map_or(&[], Vec::as_slice)
    }

    /// The messages of a run.
    pub(crate) fn messages_of(&self, told: &Told) -> Vec<&Value> {
        let messages = self.messages.get(&told.session).into_iter().flatten();
        messages
            .filter(|message| message["run_id"] == told.id.as_str())
            .collect()
    }
}

/// Who may read.
struct Readers<'a> {
    one: &'a Client,
    other: Option<&'a Client>,
    /// What both of them see.
    foreign: Mutex<Vec<String>>,
}

impl Readers<'_> {
    /// What one of them sees, and the other one must not.
    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let mut seen = None;
        for client in [Some(self.one), self.other].into_iter().flatten() {
            let (status, body) = client.persist(&Method::GET, path, None).await?;
            if status == 404 {
                continue;
            }
            anyhow::ensure!(status == 200, "GET {path}: {status} {body}");
            if seen.replace(body).is_some() {
                let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
                foreign.push(path.to_owned());
            }
        }
        seen.with_context(|| format!("nobody sees {path}"))
    }

    fn foreign(&self) -> Vec<String> {
        let foreign = self.foreign.lock();
        foreign.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The logs and tables that hold what nobody must read there.
async fn leaks(world: &World) -> anyhow::Result<Vec<String>> {
    let mut leaks = Vec::new();
    for secret in [CANARY, KEY] {
        for log in world.fleet.logs() {
            if std::fs::read_to_string(&log)?.contains(secret) {
                leaks.push(format!("the log {}", log.display()));
            }
        }
        let tables = world.facts.tables_with(secret).await?.into_iter();
        leaks.extend(tables.map(|table| format!("the table {table}")));
    }
    Ok(leaks)
}

/// Every message of a session.
async fn messages(client: &Readers<'_>, session: &str) -> anyhow::Result<Vec<Value>> {
    let mut messages: Vec<Value> = Vec::new();
    loop {
        let after = messages.len();
        let path = format!("/v1/sessions/{session}/messages?limit=200&after_seq={after}");
        let page = list(&client.get(&path).await?);
        if page.is_empty() {
            return Ok(messages);
        }
        messages.extend(page);
    }
}

/// What a client said to begin a run.
fn input(run: &Value) -> Option<String> {
    Some(run["input"][0]["text"].as_str()?.to_owned())
}

fn list(body: &Value) -> Vec<Value> {
    // Some lists come whole, others by page.
    let entries = body.get("data").unwrap_or(body).as_array();
    entries.cloned().unwrap_or_default()
}
