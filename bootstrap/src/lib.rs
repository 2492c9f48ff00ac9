//! The program `hango`: configuration, command line, wiring, signals.
//!
//! It names adapters and puts them together; it holds no rule. Logs go to standard error, results to
//! standard output. Exit status: 0 fine, 1 failed while running, 2 wrong usage or configuration.
//!
//! The binary is [`main`] with nothing besides. A team's own is the same with its [`Own`] providers, tools
//! and telemetry: `tests/own_server` is one, and `docs/adapters.md` tells how to write what goes into it.

mod admin;
mod app;
mod cli;
mod config;
mod exporting;
#[cfg(debug_assertions)]
mod failpoints;
mod logging;
mod migrate;
mod own;
mod quickstart;
mod serve;
mod start;
mod store;
mod system;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use anyhow::Context;
use hango_ports::Clock;

use cli::{Cli, Command};
use config::{Config, Environment};
use quickstart::Choice;
use serve::Halves;
use system::SteadyClock;

pub use hango_application::telemetry::LogLines;
pub use own::Own;

/// The configuration file that is read when none is named.
const CONFIG_FILE: &str = "hango.toml";

/// Does what the command line asks for, and says how the process ends: the whole of a binary's `main`.
#[must_use]
pub fn main(own: Own) -> ExitCode {
    // HTTP clients are built without a cryptography provider, and fail unless there is one by then. Only
    // a second call could fail.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::read();
    if let Command::Openapi = cli.command {
        return match describe() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(1, &error),
        };
    }
    let config = match configuration(cli.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return failed(2, &error),
    };
    match run(config, own, cli.command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if error.is::<config::Problems>() => failed(2, &error),
        Err(error) => failed(1, &error),
    }
}

/// Prints the API's description, which no configuration changes.
fn describe() -> anyhow::Result<()> {
    let document = hango_http::document();
    writeln!(io::stdout(), "{document:#}")?;
    Ok(())
}

/// Does what the command line asks for; whether all went well that is not an error.
fn run(config: Config, own: Own, command: Command) -> anyhow::Result<bool> {
    if let Command::Config = command {
        let brought = own.to_string();
        app::check(&config, own)?;
        write!(io::stdout(), "{config}{brought}")?;
        for warning in config.warnings() {
            writeln!(io::stderr(), "hango: {warning}")?;
        }
        return Ok(true);
    }
    let clock: Arc<dyn Clock> = Arc::new(SteadyClock::new());
    // A quickstart tells its own story; the log is for what goes wrong, unless it is asked for.
    let wanted = match command {
        Command::Quickstart(_) if !config.names_log() => {
            logging::filter("warn").map_err(anyhow::Error::msg)?
        }
        _ => config.settings.log.clone(),
    };
    let _logs = logging::start(wanted, config.settings.log_format, Arc::clone(&clock))
        .context("cannot log")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        match command {
            Command::Config | Command::Openapi => {}
            Command::Serve(args) => {
                config.check_parts(args.no_workers, args.no_api)?;
                let halves = Halves {
                    api: !args.no_api,
                    workers: !args.no_workers,
                };
                serve::serve(config, own, halves).await?;
            }
            Command::Quickstart(args) => {
                config.check_embedded()?;
                let choice = Choice {
                    once: args.once,
                    provider: args.provider,
                    model: args.model,
                };
                return quickstart::quickstart(config, own, choice).await;
            }
            Command::Migrate(args) => migrate::run(&config, args, clock).await?,
            Command::Admin(args) => admin::run(&config, args, clock).await?,
        }
        Ok(true)
    })
}

/// Reads the configuration from the environment and the file that is named, if one is.
fn configuration(named: Option<&Path>) -> anyhow::Result<Config> {
    let environment = environment()?;
    let named = named.or_else(|| environment.get("HANGO_CONFIG").map(Path::new));
    let file = match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => Some(
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        ),
        None => match fs::read_to_string(CONFIG_FILE) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).context(format!("cannot read {CONFIG_FILE}")),
        },
    };
    Ok(Config::load(&environment, file.as_deref())?)
}

/// The process's variables, those that are text. One of hango's own has to be.
#[expect(clippy::disallowed_methods, reason = "this is where they are read")]
fn environment() -> anyhow::Result<Environment> {
    let mut environment = Environment::new();
    for (name, text) in env::vars_os() {
        let Ok(name) = name.into_string() else {
            continue;
        };
        match text.into_string() {
            Ok(text) => {
                environment.insert(name, text);
            }
            Err(_) if name.starts_with("HANGO_") => anyhow::bail!("{name} is not text in UTF-8"),
            Err(_) => {}
        }
    }
    Ok(environment)
}

/// Says what went wrong, with its causes.
fn failed(status: u8, error: &anyhow::Error) -> ExitCode {
    // Whoever cannot be told cannot be told that either.
    let _ = writeln!(io::stderr(), "hango: {error:#}");
    ExitCode::from(status)
}
