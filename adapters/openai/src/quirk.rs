//! What an operator has to say about a server, because nobody can see it from outside.

use std::str::FromStr;

use thiserror::Error;

/// A way in which a server, or the models behind it, differ from the protocol's documentation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quirk {
    /// `no_temperature`: its models refuse a request that says how they shall sample.
    NoTemperature,
}

/// There is no quirk of that name.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("no quirk of this kind of provider; there is no_temperature")]
pub struct UnknownQuirk;

impl FromStr for Quirk {
    type Err = UnknownQuirk;

    fn from_str(name: &str) -> Result<Self, UnknownQuirk> {
        match name {
            "no_temperature" => Ok(Self::NoTemperature),
            _ => Err(UnknownQuirk),
        }
    }
}
