//! `hango quickstart`: the main job with nothing set up, from one command.
//!
//! It starts as `serve` does, sees to it that there are a tenant, an agent and a session, executes a run
//! that calls a tool, and prints it as it happens. Started again after a crash it follows the unfinished
//! run to its end before it begins a new one. The key that it prints takes the place of the one that was
//! printed before; with `--once` it prints none, and leaves that one as it is.

/// Prints a line. Where nobody reads any more, the run and the server go on all the same.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod follow;

use anyhow::Context;
use hango_application::use_cases::{
    AgentDraft, Caller, Input, KeyName, KeyText, NewAgent, RequestContext, RunDraft, RunQuery,
    SessionDraft, SessionQuery, UseCaseError, UseCases,
};
use hango_domain::Timestamp;
use hango_domain::access::visibility;
use hango_domain::agent::Agent;
use hango_domain::conversation::Block;
use hango_domain::run::{Run, RunStatus};
use hango_domain::session::{OnBusy, Session};
use hango_ports::Clock as _;
use hango_ports::agent_store::AgentRef;
use hango_ports::page::PageRequest;
use serde_json::Map;

use crate::config::{Config, DEMO, ProviderKind};
use crate::own::Own;
use crate::serve::{Halves, Server, Signals};
use crate::system::WallClock;
use follow::Follower;

/// The name of the agent, of the sessions and of the keys.
const NAME: &str = "quickstart";

/// What is asked.
const QUESTION: &str = "What time is it in Tokyo right now, and which day of the week?";

/// What the printed example asks, so that there is a middle in which to end the process.
const SLOW_QUESTION: &str = "What time is it in Paris? Answer slowly.";

/// What the agent is told.
const SYSTEM_PROMPT: &str = "You answer questions about time. Look the time up with get_time before \
                             you answer, and answer in one or two sentences.";

/// The model, where nobody names one.
const DEMO_MODEL: &str = "demo";
const ANTHROPIC_MODEL: &str = "claude-haiku-5-5";
const OPENAI_MODEL: &str = "gpt-4.1-mini";

/// What the command line may choose.
pub(crate) struct Choice {
    /// Exit after the run.
    pub(crate) once: bool,
    /// The provider, else the first that is configured, else the built-in one.
    pub(crate) provider: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
}

/// Runs the quickstart; whether its run succeeded.
pub(crate) async fn quickstart(config: Config, own: Own, choice: Choice) -> anyhow::Result<bool> {
    let (provider, model) = choose(&config, &own, &choice)?;
    let mut signals = Signals::listen()?;
    let begun = WallClock.now();
    let Some(server) = Server::start_unless(&config, own, Halves::BOTH, &mut signals).await? else {
        return Ok(true);
    };

    let job = run_once(&server, begun, &provider, &model, choice.once);
    let stopped = signals.first();
    tokio::pin!(stopped);
    let outcome = tokio::select! {
        done = job => Some(done),
        () = &mut stopped => None,
    };
    let succeeded = match outcome {
        Some(Ok((status, key))) => {
            if let Some(key) = key {
                next_steps(&server, &key);
                stopped.await;
            }
            status == RunStatus::Succeeded
        }
        Some(Err(error)) => {
            server.stop(&config.settings).await;
            return Err(error);
        }
        None => true,
    };
    server.stop(&config.settings).await;
    Ok(succeeded)
}

/// The provider and model to use.
fn choose(config: &Config, own: &Own, choice: &Choice) -> anyhow::Result<(String, String)> {
    let configured = config.providers.iter().map(|provider| {
        let model = match provider.kind {
            ProviderKind::Anthropic { .. } => ANTHROPIC_MODEL,
            ProviderKind::OpenAi { .. } => OPENAI_MODEL,
            ProviderKind::Scripted { .. } => DEMO_MODEL,
        };
        (&provider.name, Some(model))
    });
    let own = own.providers.iter().map(|(name, _)| (name, None));
    // The built-in one is the last that is configured.
    let all: Vec<_> = configured.chain(own).collect();
    let chosen = match &choice.provider {
        Some(chosen) => all.iter().find(|(name, _)| *name == chosen),
        None => all.first(),
    };
    let (name, usual) = chosen.with_context(|| {
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = choice.provider.as_deref().unwrap_or_default();
        format!(
            "no provider {wanted:?} is configured; there are {}",
            names.join(", ")
        )
    })?;
    let model = choice.model.as_deref().or(*usual);
    let model = model.with_context(|| format!("say which --model of {name} to use"))?;
    Ok(((*name).clone(), model.to_owned()))
}

/// Sets up what is missing and follows the session's unfinished runs, and one new one, to their ends. With the key for who goes on, if this is not all there will be.
async fn run_once(
    server: &Server,
    begun: Timestamp,
    provider: &str,
    model: &str,
    once: bool,
) -> anyhow::Result<(RunStatus, Option<KeyText>)> {
    let use_cases = &server.app.use_cases;
    let made = if once {
        use_cases.new_default_key(NAME).await
    } else {
        use_cases.replace_default_key(NAME).await
    };
    let (credential, key) = made.context("make the key")?;
    let key_id = KeyName::Id(credential.key.id);
    let caller = Caller::new(credential, RequestContext::default());
    let agent = ensure_agent(use_cases, &caller, provider, model)
        .await
        .context("make the agent")?;
    let session = ensure_session(use_cases, &caller, &agent)
        .await
        .context("make the session")?;

    say!("");
    if provider == DEMO {
        say!(
            "Provider  {provider} (built in: it plays a script; set ANTHROPIC_API_KEY or \
             OPENAI_API_KEY for a model)"
        );
    } else {
        say!("Provider  {provider}, model {model}");
    }

    say!("Agent     {} · session {}", agent.slug, session.id);

    let follower = Follower {
        stores: &server.app.stores,
        live: &server.app.live,
        seen: visibility(&caller.scope),
    };
    for run in unfinished(use_cases, &caller, &session, begun).await? {
        say!("\nAn earlier run did not end; it goes on:");
        follower.follow(&run).await?;
    }
    let draft = RunDraft {
        input: vec![Block::text(QUESTION)],
        on_busy: OnBusy::Enqueue,
        metadata: Map::new(),
    };
    let run = use_cases
        .accept_run(&caller, session.id, Input::new(draft), None)
        .await
        .context("start the run")?
        .thing;
    let status = follower.follow(&run).await?;
    if once {
        // Nobody was told it.
        use_cases
            .revoke_key(&key_id)
            .await
            .context("revoke the key")?;
        return Ok((status, None));
    }
    Ok((status, Some(key)))
}

/// The agent, with the provider and model that were chosen this time.
async fn ensure_agent(
    use_cases: &UseCases,
    caller: &Caller,
    provider: &str,
    model: &str,
) -> Result<Agent, UseCaseError> {
    let draft = AgentDraft {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        ..AgentDraft::default()
    };
    match use_cases
        .agent(caller, AgentRef::Slug(NAME.to_owned()))
        .await
    {
        Ok(agent) if agent.settings.provider == provider && agent.settings.model == model => {
            Ok(agent)
        }
        Ok(agent) => {
            let found = AgentRef::Id(agent.id);
            use_cases
                .update_agent(caller, found, None, Input::new(draft))
                .await
        }
        Err(UseCaseError::NotFound) => {
            let new = NewAgent {
                slug: NAME.to_owned(),
                draft: AgentDraft {
                    name: Some("Quickstart".to_owned()),
                    system_prompt: Some(SYSTEM_PROMPT.to_owned()),
                    tools: Some(vec!["get_time".to_owned()]),
                    ..draft
                },
            };
            use_cases.create_agent(caller, Input::new(new)).await
        }
        Err(error) => Err(error),
    }
}

/// The session of the quickstart before this one, or a new one.
async fn ensure_session(
    use_cases: &UseCases,
    caller: &Caller,
    agent: &Agent,
) -> Result<Session, UseCaseError> {
    let query = SessionQuery {
        agent: Some(AgentRef::Id(agent.id)),
        created_by: Some(caller.scope.user),
    };
    let page = PageRequest {
        limit: 200,
        after: None,
    };
    let found = use_cases.sessions(caller, query, page).await?.items;
    if let Some(session) = found.into_iter().find(|session| session.title == NAME) {
        return Ok(session);
    }
    let draft = SessionDraft {
        agent: AgentRef::Id(agent.id),
        title: NAME.to_owned(),
        metadata: Map::new(),
    };
    let made = use_cases.create_session(caller, Input::new(draft), None);
    Ok(made.await?.thing)
}

/// The session's runs that had not ended at `begun`, oldest first. The server executes from its first
/// moment, so such a run may have ended by now.
async fn unfinished(
    use_cases: &UseCases,
    caller: &Caller,
    session: &Session,
    begun: Timestamp,
) -> Result<Vec<Run>, UseCaseError> {
    let query = RunQuery {
        states: Vec::new(),
        session: Some(session.id),
        agent: None,
    };
    let page = PageRequest {
        limit: 200,
        after: None,
    };
    let runs = use_cases.runs(caller, query, page).await?.items;
    let unfinished = |run: &Run| run.state.finished_at().is_none_or(|at| at >= begun);
    Ok(runs.into_iter().filter(unfinished).rev().collect())
}

/// What to try next, with everything filled in.
fn next_steps(server: &Server, key: &KeyText) {
    let url = format!("http://{}", server.address);
    let key = key.expose();
    let address = server.address;
    let pid = std::process::id();
    let program = std::env::current_exe()
        .map_or_else(|_| "hango".to_owned(), |path| path.display().to_string());
    say!(
        r#"
The server goes on; Ctrl-C stops it. Every call is described, and can be tried, at {url}/docs
Try, in another terminal:

  export HANGO_URL={url} HANGO_API_KEY={key}

  # who am I
  curl -s $HANGO_URL/v1/me -H "authorization: Bearer $HANGO_API_KEY"

  # a session with the agent, and a run in it that is waited for
  SESSION=$(curl -s $HANGO_URL/v1/sessions -H "authorization: Bearer $HANGO_API_KEY" \
    -H 'content-type: application/json' -d '{{"agent": "{NAME}"}}' | sed 's/.*"id":"\([^"]*\)".*/\1/')
  RUN=$(curl -s $HANGO_URL/v1/sessions/$SESSION/runs -H "authorization: Bearer $HANGO_API_KEY" \
    -H 'content-type: application/json' -d '{{"input": "What time is it in Berlin?"}}' \
    | sed 's/.*"id":"\([^"]*\)".*/\1/')
  curl -s "$HANGO_URL/v1/runs/$RUN?wait_ms=30000" -H "authorization: Bearer $HANGO_API_KEY"

  # what it said, and what it called
  curl -s $HANGO_URL/v1/sessions/$SESSION/messages -H "authorization: Bearer $HANGO_API_KEY"
  curl -s $HANGO_URL/v1/runs/$RUN/tool-calls -H "authorization: Bearer $HANGO_API_KEY"

  # end the process in the middle of a run: asked to be slow, the demo model takes seconds ...
  RUN=$(curl -s $HANGO_URL/v1/sessions/$SESSION/runs -H "authorization: Bearer $HANGO_API_KEY" \
    -H 'content-type: application/json' -d '{{"input": "{SLOW_QUESTION}"}}' \
    | sed 's/.*"id":"\([^"]*\)".*/\1/'); sleep 2; kill -9 {pid}

  # ... start it again where it was, in the first terminal and the same directory: the run goes on ...
  HANGO_LISTEN={address} {program} serve

  # ... and ends, in its second attempt
  curl -s "$HANGO_URL/v1/runs/$RUN?wait_ms=60000" -H "authorization: Bearer $HANGO_API_KEY" \
    | grep -oE '"(state|attempt)":[^,]*'
"#
    );
}
