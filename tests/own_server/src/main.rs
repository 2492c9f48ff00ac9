//! A team's own server: all of hango, with a provider, a tool and telemetry of the team's own.
//!
//! `docs/adapters.md` shows it; its test starts it as a user would.

mod ended;
mod house;
mod opening_hours;

// region: own
use std::process::ExitCode;
use std::sync::Arc;

use hango::{LogLines, Own};

use ended::Ended;
use opening_hours::OpeningHours;

fn main() -> ExitCode {
    let own = Own::default()
        .provider("house", Arc::new(house::provider()))
        .tool(Arc::new(OpeningHours))
        .telemetry(Arc::new(Ended::before(Arc::new(LogLines))));
    hango::main(own)
}
// endregion: own
