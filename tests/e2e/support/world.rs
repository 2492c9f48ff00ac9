//! A server, its provider and its tools, other servers of the same store, and everything that a test asked
//! of them.

use std::sync::{Arc, Mutex, PoisonError};

use hango_test_database::TestDatabase;

use super::api::Api;
use super::hango::Hango;
use super::home::Home;
use super::provider::{Ask, FakeProvider};
use super::reply::Reply;
use super::store::{Frozen, Kind, Store};
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

/// Another server of a world's store.
pub(crate) struct Replica {
    /// Its API.
    pub(crate) api: Api,
    /// Its process, which ends with this.
    _hango: Hango,
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

/// What a world is made of, before its server is started.
pub(crate) struct Plan<'a> {
    /// Where the runs are kept.
    pub(crate) store: Store,
    /// What an operator sets.
    pub(crate) settings: &'a [(&'a str, &'a str)],
    /// What he says behind `hango serve`.
    pub(crate) arguments: &'a [&'a str],
}

impl<'a> Plan<'a> {
    /// A server that does everything, on an empty store of that kind.
    pub(crate) async fn on(kind: Kind, settings: &'a [(&'a str, &'a str)]) -> Self {
        let store = match kind {
            // In its own directory.
            Kind::Sqlite => Store::Sqlite("hango.db".into()),
            Kind::Postgres => Store::Postgres(Arc::new(TestDatabase::new().await)),
        };
        Self {
            store,
            settings,
            arguments: &[],
        }
    }

    /// The same with other arguments.
    pub(crate) fn with_arguments(self, arguments: &'a [&'a str]) -> Self {
        Self { arguments, ..self }
    }

    /// Starts it, with tools that answer at once.
    pub(crate) async fn start(
        self,
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> World {
        self.with_tools(model, |_| Response::text("done")).await
    }

    /// Starts it.
    pub(crate) async fn with_tools(
        self,
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> World {
        let world = self.with_closed_tools(model, tools).await;
        world.tools.open();
        world
    }

    /// Starts it, with tools that cannot be reached until they are opened.
    pub(crate) async fn with_closed_tools(
        self,
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> World {
        let (mut world, arguments) = self.unstarted(model, tools).await;
        world.begin(Hango::start(&world.home, &arguments)).await;
        world.api.create_agent().await;
        world
    }

    /// Everything but the server, which nobody has started yet, with its arguments.
    pub(crate) async fn unstarted(
        self,
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> (World, Vec<&'a str>) {
        let provider = FakeProvider::start(model).await;
        let tools = ToolServer::bind(tools);
        let mut home = match self.store {
            Store::Sqlite(_) => Home::of_server(),
            store => Home::of_server_on(store),
        };
        home.set("HANGO_OPENAI_BASE_URL", &provider.base_url());
        home.set("HANGO_ANTHROPIC_BASE_URL", &provider.anthropic_url());
        for (name, value) in self.settings {
            home.set(name, value);
        }
        home.write_config(&tools.config());
        let world = World {
            provider,
            tools,
            home,
            // Nobody is there.
            api: Api::of("127.0.0.1:1"),
            hango: None,
            accepted: Arc::default(),
        };
        (world, [&["serve"], self.arguments].concat())
    }
}

impl World {
    /// A server on an embedded store, whose tools answer at once.
    pub(crate) async fn start(
        settings: &[(&str, &str)],
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Plan::on(Kind::Sqlite, settings).await.start(model).await
    }

    /// A server on an embedded store.
    pub(crate) async fn with_tools(
        settings: &[(&str, &str)],
        model: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
        tools: impl Fn(&Called) -> Response + Send + Sync + 'static,
    ) -> Self {
        let plan = Plan::on(Kind::Sqlite, settings).await;
        plan.with_tools(model, tools).await
    }

    /// Opens a session and starts a run in it.
    pub(crate) async fn start_run(&self, input: &str) -> Accepted {
        let session = self.api.open_session().await;
        self.start_run_in(&session, input).await
    }

    /// Starts a run in a session.
    pub(crate) async fn start_run_in(&self, session: &str, input: &str) -> Accepted {
        let id = self.api.start_run(session, input).await;
        self.accepted_as(session, id, input)
    }

    /// Notes a run that hango accepted.
    pub(crate) fn accepted_as(&self, session: &str, id: String, input: &str) -> Accepted {
        let run = Accepted {
            session: session.to_owned(),
            id,
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
        self.begin(Hango::start(&self.home, &["serve"])).await;
    }

    /// Takes a process as the server of this world once it is ready.
    pub(crate) async fn begin(&mut self, mut hango: Hango) {
        self.api = Api::of(&hango.address().await);
        self.hango = Some(hango);
    }

    /// Starts another server of the same store, with those arguments.
    pub(crate) async fn join(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Replica {
        let mut home = self.home.another();
        for (name, value) in settings {
            home.set(name, value);
        }
        let arguments = [&["serve"], arguments].concat();
        let mut hango = Hango::start(&home, &arguments);
        let api = Api::of(&hango.address().await);
        // What it needs it has read; it writes nothing there.
        drop(home);
        Replica { api, _hango: hango }
    }

    /// Freezes hango before its next commit of a change of a run.
    pub(crate) async fn freeze_commits(&self) -> Frozen {
        self.home.store().freeze().await
    }
}
