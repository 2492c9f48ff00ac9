//! What agents can be made of: the providers that are configured and the tools that are registered.

use hango_domain::middleware::LayerTool;
use hango_domain::tool::{Idempotency, ToolDef};

/// The providers and tools of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// The configured providers.
    pub providers: Vec<ProviderInfo>,
    /// Every tool that an agent can name, those of layers included.
    pub tools: Vec<ToolInfo>,
}

/// A configured provider.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProviderInfo {
    /// Its name in the configuration.
    pub name: String,
    /// The kind of its protocol.
    pub kind: String,
}

/// A tool that an agent can name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// What a model sees of it.
    pub definition: ToolDef,
    /// What may happen to a call of it that a crash left in doubt.
    pub idempotency: Idempotency,
}

impl From<LayerTool> for ToolInfo {
    fn from(tool: LayerTool) -> Self {
        let LayerTool {
            definition,
            idempotency,
            execute: _,
        } = tool;
        Self {
            definition,
            idempotency,
        }
    }
}

impl Catalog {
    /// Whether a provider of that exact name is configured.
    #[must_use]
    pub fn has_provider(&self, name: &str) -> bool {
        self.providers.iter().any(|provider| provider.name == name)
    }

    /// Whether a tool of that exact name is registered.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.definition.name == name)
    }
}
