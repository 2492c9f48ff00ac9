//! `hango migrate`: the schema, a step on or back.

use std::io::{self, Write};
use std::sync::Arc;

use hango_ports::Clock;

use crate::cli::MigrateArgs;
use crate::config::Config;
use crate::store::{self, SchemaError, Step, Store};

/// Does what was asked for, and says what that was.
pub(crate) async fn run(
    config: &Config,
    args: MigrateArgs,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<()> {
    let planned = args.dry_run.then(|| store::all_steps(&config.settings));
    let (verb, steps) = if let Some(steps) = planned.flatten() {
        ("would apply", steps)
    } else {
        let store = Store::open(&config.settings, clock, !args.dry_run).await?;
        let done = steps(&store, args).await;
        store.close().await;
        done?
    };
    let mut out = io::stdout().lock();
    if steps.is_empty() {
        writeln!(out, "nothing to do")?;
    }
    for step in steps {
        writeln!(out, "{verb} {step}")?;
    }
    Ok(())
}

async fn steps(store: &Store, args: MigrateArgs) -> Result<(&'static str, Vec<Step>), SchemaError> {
    Ok(match args.down {
        Some(steps) => ("took back", store.migrate_down(steps).await?),
        None if args.dry_run => ("would apply", store.pending().await?),
        None => ("applied", store.migrate().await?),
    })
}
