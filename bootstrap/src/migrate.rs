//! `hango migrate`: the schema, a step on or back.

use std::io::{self, Write};
use std::sync::Arc;

use hango_ports::Clock;
use hango_sqlite::{Migration, SqliteStore};

use crate::cli::MigrateArgs;
use crate::config::Config;
use crate::store;

/// Does what was asked for, and says what that was.
pub(crate) async fn run(
    config: &Config,
    args: MigrateArgs,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<()> {
    let (verb, steps) = if args.dry_run && !config.settings.database.exists() {
        ("would apply", hango_sqlite::migrations())
    } else {
        let store = store::open(&config.settings, clock, !args.dry_run).await?;
        let done = steps(&store, args).await;
        store.close().await;
        done?
    };
    let mut out = io::stdout().lock();
    if steps.is_empty() {
        writeln!(out, "nothing to do")?;
    }
    for Migration {
        version,
        description,
    } in steps
    {
        writeln!(out, "{verb} {version} {description}")?;
    }
    Ok(())
}

async fn steps(
    store: &SqliteStore,
    args: MigrateArgs,
) -> anyhow::Result<(&'static str, Vec<Migration>)> {
    Ok(match args.down {
        Some(steps) => ("took back", store.migrate_down(steps).await?),
        None if args.dry_run => ("would apply", store.pending().await?),
        None => ("applied", store.migrate().await?),
    })
}
