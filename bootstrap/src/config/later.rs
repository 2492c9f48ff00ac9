//! Settings of the contract whose features this build does not have. Their names are known and their
//! values are checked; a value that asks for the feature is refused, because a setting that is silently
//! ignored is worse than none.

use super::parse::{Parsed, address, switch};
use super::problems::Problems;
use super::settings::UNSET;
use super::values::Fallback::Text;
use super::values::{Fallback, Origin, Setting, Show, Values};

/// A setting of a later build.
pub(super) struct Later {
    /// The setting.
    pub(super) setting: Setting,
    /// Says what is wrong with a text, were the feature there.
    check: fn(&str) -> Parsed<()>,
}

macro_rules! later {
    ($($(#[doc = $doc:literal])+ $name:literal, $fallback:expr, $show:ident, $parse:expr;)*) => {
        /// The settings of later builds.
        pub(super) const LATER: &[Later] = &[$(Later {
            setting: Setting {
                name: $name,
                fallback: $fallback,
                show: Show::$show,
                doc: concat!($($doc),+),
            },
            check: |text| ($parse)(text).map(drop),
        }),*];
    };
}

later! {
    /// Where /metrics listens by itself.
    "HANGO_METRICS_LISTEN", UNSET, Plain, address;
    /// Whether metrics name tenants.
    "HANGO_METRICS_TENANT_LABEL", Text("true"), Plain, switch;
}

/// Refuses every value that asks for a feature of a later build.
pub(super) fn refuse(values: &Values, problems: &mut Problems) {
    for Later { setting, check } in LATER {
        let Some(value) = values
            .iter()
            .find(|value| value.setting.name == setting.name)
        else {
            continue;
        };
        let same = |fallback: Fallback| value.text == values.fallback(fallback);
        if value.origin == Origin::Default || same(setting.fallback) {
            continue;
        }
        if problems.keep(value.place(), check(&value.text)).is_some() {
            problems.at(
                value.place(),
                "this build does not have that yet; leave it out",
            );
        }
    }
}
