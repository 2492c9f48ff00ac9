//! A server, its provider and its tools, and everything that a test asked of them.

use std::sync::{Arc, Mutex, PoisonError};

use super::api::Api;
use super::hango::Hango;
use super::home::Home;
use super::provider::{Ask, FakeProvider};
use super::reply::Reply;
use super::store::WriteLock;
use super::tools::{Called, Response, ToolServer};

/// Everything of one test.
pub(crate) struct World {
    /// The model.
    pub(crate) provider: FakeProvider,
    /// The tools' services.
    pub(crate) tools: ToolServer,
    /// The server's directory.
    pub(crate) home: Home,
    /// The API of the server that runs now.
    pub(crate) api: Api,
    hango: Option<Hango>,
    accepted: Arc<Mutex<Vec<Accepted>>>,
}

/// A run that hango accepted.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    /// Its session.
    pub(crate) session: String,
    /// Its id.
    pub(crate) id: String,
    /// Its input, by which the provider knows it.
    pub(crate) input: String,
}

impl World {
    /// A server whose tools answer at once.
    pub(crate) async fn start(
        settings: &[(&str, &str)],
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with_tools(settings, model, |_| Response::text("done")).await
    }

    /// A server.
    pub(crate) async fn with_tools(
        settings: &[(&str, &str)],
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> Self {
        let world = Self::with_closed_tools(settings, model, tools).await;
        world.tools.open();
        world
    }

    /// A server whose tools cannot be reached until they are opened.
    pub(crate) async fn with_closed_tools(
        settings: &[(&str, &str)],
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> Self {
        let provider = FakeProvider::start(model).await;
        let tools = ToolServer::bind(tools);
        let mut home = Home::of_server();
        home.set("HANGO_OPENAI_BASE_URL", &provider.base_url());
        for (name, value) in settings {
            home.set(name, value);
        }
        home.write_config(&tools.config());
        let mut hango = Hango::serve(&home).await;
        let api = Api::of(&hango.address().await);
        api.create_agent().await;
        Self {
            provider,
            tools,
            home,
            api,
            hango: Some(hango),
            accepted: Arc::default(),
        }
    }

    /// Opens a session and starts a run in it.
    pub(crate) async fn start_run(&self, input: &str) -> Accepted {
        let session = self.api.open_session().await;
        self.start_run_in(&session, input).await
    }

    /// Starts a run in a session.
    pub(crate) async fn start_run_in(&self, session: &str, input: &str) -> Accepted {
        let run = Accepted {
            session: session.to_owned(),
            id: self.api.start_run(session, input).await,
            input: input.to_owned(),
        };
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.push(run.clone());
        run
    }

    /// Every run that was accepted, in that order.
    pub(crate) fn accepted(&self) -> Vec<Accepted> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.clone()
    }

    /// The process.
    pub(crate) fn hango(&mut self) -> &mut Hango {
        self.hango.as_mut().expect("hango runs")
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.hango.take().expect("hango runs").kill9();
    }

    /// Starts it again in the same place.
    pub(crate) async fn restart(&mut self) {
        drop(self.hango.take());
        let mut hango = Hango::serve(&self.home).await;
        self.api = Api::of(&hango.address().await);
        self.hango = Some(hango);
    }

    /// Freezes hango before its next commit.
    pub(crate) async fn freeze_commits(&self) -> WriteLock {
        WriteLock::take(&self.home.database()).await
    }
}
