//! What is measured: processes of hango on one store, a provider, a client of each process.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};

use crate::api::Api;
use crate::database::Database;
use crate::hango::{Hango, Program};
use crate::machine::Ticks;
use crate::provider::{Model, Provider};

/// How many requests prepare a measurement at once.
const PREPARING: usize = 16;

/// Where runs are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Store {
    /// In a file beside the one process.
    Sqlite,
    /// In PostgreSQL, with so many processes.
    Postgres(usize),
}

impl Store {
    /// As it is told.
    pub(crate) fn place(self) -> String {
        match self {
            Self::Sqlite => "SQLite".to_owned(),
            Self::Postgres(1) => "PostgreSQL".to_owned(),
            Self::Postgres(processes) => format!("PostgreSQL, {processes} processes"),
        }
    }
}

/// Processes, ready to be used.
pub(crate) struct Stand {
    pub(crate) provider: Provider,
    pub(crate) processes: Vec<Hango>,
    clients: Vec<Api>,
    agents: BTreeMap<String, Model>,
}

impl Stand {
    /// Starts them on an empty store.
    pub(crate) async fn start(
        program: &Program,
        database: &mut Database,
        store: Store,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let program = program.with(settings);
        match store {
            Store::Sqlite => Self::on(&program, 1).await,
            Store::Postgres(processes) => {
                database.begin_anew().await?;
                let url = database.url(database.port());
                let program = program.with(&[("HANGO_DATABASE_URL", &url)]);
                Self::on(&program, processes).await
            }
        }
    }

    /// Starts them where the program's settings say.
    pub(crate) async fn on(program: &Program, processes: usize) -> anyhow::Result<Self> {
        let provider = Provider::start().await?;
        let program = program.with(&[("HANGO_OPENAI_BASE_URL", provider.base_url())]);
        let processes: Vec<_> = (0..processes)
            .map(|_| program.serve(&[]))
            .collect::<anyhow::Result<_>>()?;
        let clients = processes.iter().map(Hango::api);
        Ok(Self {
            clients: clients.collect::<anyhow::Result<_>>()?,
            provider,
            processes,
            agents: BTreeMap::new(),
        })
    }

    /// The client that takes turn `n`.
    pub(crate) fn api(&self, n: usize) -> &Api {
        &self.clients[n % self.clients.len()]
    }

    /// Opens sessions with a model.
    pub(crate) async fn sessions(
        &mut self,
        model: Model,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        let name = model.to_string();
        if !self.agents.contains_key(&name) {
            self.api(0).create_agent(model).await?;
            self.agents.insert(name, model);
        }
        let opening = (0..count).map(|n| self.api(n).open_session(model));
        stream::iter(opening)
            .buffered(PREPARING)
            .try_collect()
            .await
    }

    /// Executes one run in each session, one after the other; how long each took.
    pub(crate) async fn one_by_one(&self, sessions: &[String]) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(sessions.len());
        for (n, session) in sessions.iter().enumerate() {
            times.push(self.api(n).run(session).await?);
        }
        Ok(times)
    }

    /// Starts one run in each session, a few at a time; their ids.
    pub(crate) async fn start_all(&self, sessions: &[String]) -> anyhow::Result<Vec<String>> {
        let starting = sessions.iter().enumerate();
        let starting = starting.map(|(n, session)| self.api(n).start_run(session));
        stream::iter(starting)
            .buffered(PREPARING)
            .try_collect()
            .await
    }

    /// Waits until the provider is asked for so many answers at once.
    pub(crate) async fn all_asked(&self, runs: usize) -> anyhow::Result<()> {
        let asked = async {
            while self.provider.thinking() < runs {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let asked = tokio::time::timeout(Duration::from_secs(30), asked).await;
        asked.with_context(|| format!("of {runs} runs {} started", self.provider.thinking()))
    }

    /// What all processes used of the processors.
    pub(crate) fn cpu(&self) -> anyhow::Result<Ticks> {
        self.processes
            .iter()
            .try_fold(Ticks::default(), |sum, hango| Ok(sum + hango.cpu()?))
    }

    /// Lets all processes end by themselves.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.processes.into_iter().try_for_each(Hango::stop)
    }
}
