//! Agents: seen by all of a tenant, made and changed by those who administer it.

use hango_domain::agent::{Agent, AgentLimits, AgentSettings, is_slug};
use hango_domain::layers::{self, SettingFault, SettingFaultKind};
use hango_domain::{AgentId, Timestamp};
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStoreError};
use hango_ports::page::{Page, PageRequest, Position};
use serde_json::{Map, Value};

use super::input::judge_name;
use super::pieces::Filling;
use super::{Action, Caller, Fault, FaultCode, Input, UseCaseError, UseCases};

/// The hottest sampling that a provider takes.
const MAX_TEMPERATURE: f64 = 2.0;

/// An agent to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewAgent {
    /// Its name in URLs.
    pub slug: String,
    /// The rest; its name is the slug if it is not given. Provider and model are given.
    pub draft: AgentDraft,
}

/// What a caller says of an agent; `None` leaves it as it is, or to its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentDraft {
    /// Its name for people.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The provider's name in the configuration.
    pub provider: Option<String>,
    /// The model, in the provider's spelling.
    pub model: Option<String>,
    /// The first block of the system prompt.
    pub system_prompt: Option<String>,
    /// Names of the tools it may call.
    pub tools: Option<Vec<String>>,
    /// The most a model may answer, in tokens; `Some(None)` leaves it to the provider.
    pub max_tokens: Option<Option<u32>>,
    /// `Some(None)` leaves it to the provider.
    pub temperature: Option<Option<f64>>,
    /// Limits tighter than the server's, whole.
    pub limits: Option<AgentLimits>,
    /// The optional layers' own settings, whole.
    pub middleware: Option<Map<String, Value>>,
    /// The callers' own data, whole.
    pub metadata: Option<Map<String, Value>>,
}

impl UseCases {
    /// Makes an agent.
    pub async fn create_agent(
        &self,
        caller: &Caller,
        new: Input<NewAgent>,
    ) -> Result<Agent, UseCaseError> {
        caller.must_administer()?;
        let NewAgent { slug, draft } = new
            .judged(|new, faults| {
                if !is_slug(&new.slug) {
                    let detail = "a slug has 1 to 63 lower-case letters, digits and hyphens, does not \
                                  begin with a hyphen and does not look like an id";
                    faults.push(Fault::new("/slug", FaultCode::InvalidFormat, detail));
                }
                self.judge_agent(&new.draft, faults);
            })
            .accepted()?;
        // The store sets the moments.
        let unset = Timestamp::from_micros(0);
        let agent = Agent {
            id: AgentId(self.ids.uuid()),
            tenant_id: caller.scope.tenant,
            version: 1,
            name: draft.name.clone().unwrap_or_else(|| slug.clone()),
            slug,
            description: draft.description.clone().unwrap_or_default(),
            metadata: draft.metadata.clone().unwrap_or_default(),
            settings: draft.applied_to(AgentSettings {
                provider: String::new(),
                model: String::new(),
                system_prompt: String::new(),
                tools: Vec::new(),
                max_tokens: None,
                temperature: None,
                limits: AgentLimits::default(),
                middleware: Map::new(),
            }),
            created_by: caller.scope.user,
            created_at: unset,
            updated_at: unset,
            archived_at: None,
        };
        let audit = self.caller_audit(caller, Action::AgentCreate, agent.id.0);
        Ok(self.stores.agents.create(agent, audit).await?)
    }

    /// Reads an agent, archived ones too.
    pub async fn agent(&self, caller: &Caller, agent: AgentRef) -> Result<Agent, UseCaseError> {
        self.stores
            .agents
            .find(caller.scope.tenant, agent)
            .await?
            .ok_or(UseCaseError::NotFound)
    }

    /// Reads the tenant's agents, newest first.
    pub async fn agents(
        &self,
        caller: &Caller,
        include_archived: bool,
        request: PageRequest,
    ) -> Result<Page<Agent>, UseCaseError> {
        let tenant = caller.scope.tenant;
        let mut filling = Filling::of(request, |agent: &Agent| {
            Some(Position {
                at: agent.created_at,
                id: agent.id.0,
            })
        });
        while let Some(request) = filling.asks() {
            let agents = &self.stores.agents;
            let page = agents.list(tenant, include_archived, request).await?;
            filling.take(page);
        }
        Ok(filling.page())
    }

    /// Changes an agent; with `version`, only from that one. Whoever asks for what is there already gets the
    /// agent as it is: no version is made, `updated_at` stays, and the trail holds no row, because nothing
    /// was changed.
    pub async fn update_agent(
        &self,
        caller: &Caller,
        agent: AgentRef,
        version: Option<u32>,
        draft: Input<AgentDraft>,
    ) -> Result<Agent, UseCaseError> {
        let mut found = self.agent(caller, agent).await?;
        caller.must_administer()?;
        let draft = draft
            .judged(|draft, faults| self.judge_agent(draft, faults))
            .accepted()?;
        loop {
            // Settings are stored whole, so they are written only over those they were made from.
            let patch = AgentPatch {
                name: draft.name.clone(),
                description: draft.description.clone(),
                settings: Some(draft.clone().applied_to(found.settings)),
                metadata: draft.metadata.clone(),
            };
            let audit = self.caller_audit(caller, Action::AgentUpdate, found.id.0);
            let from = version.unwrap_or(found.version);
            let agents = &self.stores.agents;
            match agents
                .update(found.tenant_id, found.id, Some(from), patch, audit)
                .await
            {
                Err(AgentStoreError::VersionMismatch { .. }) if version.is_none() => {
                    found = self.agent(caller, AgentRef::Id(found.id)).await?;
                }
                done => return Ok(done?),
            }
        }
    }

    /// How an agent's optional layers are set, what it leaves out filled in.
    #[must_use]
    pub fn layers(&self, agent: &Agent) -> layers::Settings {
        self.read_layers(&agent.settings.middleware).0
    }

    fn read_layers(
        &self,
        middleware: &Map<String, Value>,
    ) -> (layers::Settings, Vec<SettingFault>) {
        layers::Settings::read(middleware, self.settings.repeat_call_threshold)
    }

    /// Archives an agent; doing it again changes nothing.
    pub async fn archive_agent(
        &self,
        caller: &Caller,
        agent: AgentRef,
        sent: Input<()>,
    ) -> Result<(), UseCaseError> {
        let agent = self.agent(caller, agent).await?;
        caller.must_administer()?;
        sent.accepted()?;
        let audit = self.caller_audit(caller, Action::AgentArchive, agent.id.0);
        let agents = &self.stores.agents;
        Ok(agents.archive(agent.tenant_id, agent.id, audit).await?)
    }

    /// The agent that a filter names; `None` when there is none, and nothing is to be found.
    pub(super) async fn filtered_agent(
        &self,
        caller: &Caller,
        agent: AgentRef,
    ) -> Result<Option<AgentId>, UseCaseError> {
        match agent {
            AgentRef::Id(id) => Ok(Some(id)),
            slug @ AgentRef::Slug(_) => {
                let found = self.stores.agents.find(caller.scope.tenant, slug).await?;
                Ok(found.map(|agent| agent.id))
            }
        }
    }

    fn judge_agent(&self, draft: &AgentDraft, faults: &mut Vec<Fault>) {
        for (pointer, name) in [("/name", &draft.name), ("/model", &draft.model)] {
            if let Some(name) = name {
                judge_name(pointer, name, faults);
            }
        }
        let mut fault = |pointer: &str, code, detail: String| {
            faults.push(Fault::new(pointer, code, detail));
        };
        if let Some(name) = &draft.provider
            && !self.catalog.has_provider(name)
        {
            let detail = format!("no provider named {name:?} is configured");
            fault("/provider", FaultCode::UnknownProvider, detail);
        }
        for (at, name) in draft.tools.iter().flatten().enumerate() {
            if !self.catalog.has_tool(name) {
                let detail = format!("no tool named {name:?} is registered");
                fault(&format!("/tools/{at}"), FaultCode::UnknownTool, detail);
            }
        }
        if draft.max_tokens == Some(Some(0)) {
            let detail = "at least 1 is needed".to_owned();
            fault("/max_tokens", FaultCode::OutOfRange, detail);
        }
        if let Some(Some(temperature)) = draft.temperature
            && !(0.0..=MAX_TEMPERATURE).contains(&temperature)
        {
            let detail = format!("0 to {MAX_TEMPERATURE} is possible");
            fault("/temperature", FaultCode::OutOfRange, detail);
        }
        self.judge_limits(&draft.limits.unwrap_or_default(), faults);
        if let Some(middleware) = &draft.middleware {
            let (_, wrong) = self.read_layers(middleware);
            faults.extend(wrong.into_iter().map(Fault::from));
        }
    }

    fn judge_limits(&self, limits: &AgentLimits, faults: &mut Vec<Fault>) {
        let AgentLimits {
            max_iterations,
            tool_timeout_ms,
            run_deadline_ms,
        } = *limits;
        let server = self.settings.limits;
        let millis =
            |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        for (name, wanted, most) in [
            (
                "max_iterations",
                max_iterations.map(u64::from),
                u64::from(server.max_iterations),
            ),
            (
                "tool_timeout_ms",
                tool_timeout_ms,
                millis(server.tool_timeout),
            ),
            ("run_deadline_ms", run_deadline_ms, millis(server.deadline)),
        ] {
            let pointer = format!("/limits/{name}");
            match wanted {
                Some(0) => {
                    let detail = "at least 1 is needed";
                    faults.push(Fault::new(pointer, FaultCode::OutOfRange, detail));
                }
                Some(wanted) if wanted > most => {
                    let detail = format!("the server's own limit is {most}");
                    faults.push(Fault::new(pointer, FaultCode::LimitTooLarge, detail));
                }
                Some(_) | None => {}
            }
        }
    }
}

impl AgentDraft {
    /// `settings` with what is given in the place of what was.
    fn applied_to(self, settings: AgentSettings) -> AgentSettings {
        AgentSettings {
            provider: self.provider.unwrap_or(settings.provider),
            model: self.model.unwrap_or(settings.model),
            system_prompt: self.system_prompt.unwrap_or(settings.system_prompt),
            tools: self.tools.unwrap_or(settings.tools),
            max_tokens: self.max_tokens.unwrap_or(settings.max_tokens),
            temperature: self.temperature.unwrap_or(settings.temperature),
            limits: self.limits.unwrap_or(settings.limits),
            middleware: self.middleware.unwrap_or(settings.middleware),
        }
    }
}

impl From<SettingFault> for Fault {
    /// A fault of a `middleware` object, as one of the agent's.
    fn from(fault: SettingFault) -> Self {
        let code = match fault.kind {
            SettingFaultKind::Unknown => FaultCode::UnknownField,
            SettingFaultKind::Type => FaultCode::InvalidType,
            SettingFaultKind::Range => FaultCode::OutOfRange,
        };
        Self::new(format!("/middleware{}", fault.pointer), code, fault.detail)
    }
}

#[cfg(test)]
mod tests;
