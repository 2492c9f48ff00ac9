//! The team's provider. That it plays a script is for the example: what counts is that hango knows nothing
//! of it.

use hango_scripted::ScriptedProvider;

/// The provider.
pub(crate) fn provider() -> ScriptedProvider {
    let script = include_str!("house.toml");
    ScriptedProvider::from_toml(script).expect("the script is part of this program")
}
