//! What a binary brings that no configuration asks for.

use std::fmt;
use std::sync::Arc;

use hango_ports::{Provider, Telemetry, Tool};

/// What a team's own binary has besides hango's adapters; by default nothing.
///
/// It stands beside what is configured, and by its own names: one that is taken twice, or a tool's that
/// hango has built in, is a configuration that does not work.
#[derive(Default)]
pub struct Own {
    pub(crate) providers: Vec<(String, Arc<dyn Provider>)>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) telemetry: Option<Arc<dyn Telemetry>>,
}

impl Own {
    /// Adds a provider, which agents call `name`.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.providers.push((name.into(), provider));
        self
    }

    /// Adds a tool, which agents have unless their list of tools leaves it out.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Tells `telemetry` what the engine does in place of the log, and beside what is exported: it passes on
    /// to [`LogLines`](hango_application::telemetry::LogLines) what shall be in the log as well.
    #[must_use]
    pub fn telemetry(self, telemetry: Arc<dyn Telemetry>) -> Self {
        Self {
            telemetry: Some(telemetry),
            ..self
        }
    }
}

/// As `hango config` lists it, behind what is configured.
impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, provider) in &self.providers {
            writeln!(f, "provider {name} ({}, of this binary)", provider.kind())?;
        }
        for tool in &self.tools {
            writeln!(f, "tool {} (of this binary)", tool.definition().name)?;
        }
        Ok(())
    }
}
