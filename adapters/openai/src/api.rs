//! Which of OpenAI's protocols a server is asked in.

use std::str::FromStr;

use thiserror::Error;

/// One of OpenAI's protocols.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Api {
    /// `chat_completions`, which most servers of open models speak too.
    #[default]
    ChatCompletions,
    /// `responses`, OpenAI's own for models that reason.
    Responses,
}

impl Api {
    /// Its name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Responses => "responses",
        }
    }
}

/// There is no protocol of that name.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("neither chat_completions nor responses")]
pub struct UnknownApi;

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Self, UnknownApi> {
        match name {
            "chat_completions" => Ok(Self::ChatCompletions),
            "responses" => Ok(Self::Responses),
            _ => Err(UnknownApi),
        }
    }
}
