//! The command line.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use hango_application::use_cases::{KeyName, NamesNoKey};
use hango_domain::Timestamp;
use hango_domain::access::Role;

use crate::config;

/// Runs LLM agents durably: one binary, one API.
#[derive(Debug, Parser)]
#[command(name = "hango", version)]
pub(crate) struct Cli {
    /// The configuration file; else `HANGO_CONFIG`'s, else ./hango.toml where there is one
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and execute runs
    Serve(ServeArgs),
    /// See it work: make an agent, execute a run, then serve
    Quickstart(QuickstartArgs),
    /// Check the configuration as a start does, and print it: secrets masked, and where each value came
    /// from
    Config,
    /// Print the API's description, OpenAPI 3.1
    Openapi,
    /// Bring the schema up to date, or take steps of it back
    Migrate(MigrateArgs),
    /// Administer tenants, users and keys, straight on the store
    Admin(AdminArgs),
}

/// Which halves of the server run.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ServeArgs {
    /// The API alone: nothing is claimed or swept
    #[arg(long, conflicts_with = "no_api")]
    pub(crate) no_workers: bool,
    /// The engine alone, with health and readiness
    #[arg(long)]
    pub(crate) no_api: bool,
}

/// How the first run is made.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuickstartArgs {
    /// Exit after the run
    #[arg(long)]
    pub(crate) once: bool,
    /// The agent's provider; else the first configured one
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// The agent's model
    #[arg(long)]
    pub(crate) model: Option<String>,
}

/// Which way the schema goes.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MigrateArgs {
    /// Only say what would be done
    #[arg(long, conflicts_with = "down")]
    pub(crate) dry_run: bool,
    /// Take the last N steps back, with all that they hold
    #[arg(long, value_name = "N")]
    pub(crate) down: Option<usize>,
}

/// What to administer.
#[derive(Args, Debug)]
pub(crate) struct AdminArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: Admin,
}

/// What to administer.
#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Tenants
    #[command(subcommand)]
    Tenant(AdminTenant),
    /// Users of a tenant
    #[command(subcommand)]
    User(AdminUser),
    /// Keys of a user
    #[command(subcommand)]
    Key(AdminKey),
}

/// What to do with tenants.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminTenant {
    /// Make a tenant with its owner and his first key
    Create {
        /// Its name for programs
        #[arg(long)]
        slug: String,
        /// Its name for people; else the slug
        #[arg(long)]
        name: Option<String>,
        /// The owner's address
        #[arg(long, value_name = "EMAIL")]
        owner_email: String,
    },
    /// List all tenants
    List,
}

/// What to do with users.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminUser {
    /// Add a user
    Create {
        /// Who he is.
        #[command(flatten)]
        who: Who,
        /// What he may do
        #[arg(long)]
        role: RoleArg,
    },
    /// Refuse his keys and end his runs
    Disable(Who),
    /// List the users of a tenant
    List {
        /// The tenant's slug
        #[arg(long, value_name = "SLUG")]
        tenant: String,
    },
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminKey {
    /// Make a key
    Create {
        /// Whose it is.
        #[command(flatten)]
        who: Who,
        /// Its name for people
        #[arg(long)]
        name: String,
        /// From when on it is refused, such as 2027-01-31T00:00:00Z; else never
        #[arg(long, value_name = "TIME", value_parser = moment)]
        expires_at: Option<Timestamp>,
    },
    /// List the keys of a tenant, or of one of its users
    List {
        /// The tenant's slug
        #[arg(long, value_name = "SLUG")]
        tenant: String,
        /// Only this user's
        #[arg(long)]
        email: Option<String>,
    },
    /// Revoke a key
    Revoke {
        /// Its prefix (the 12 characters behind hk_), its whole text, or its id
        #[arg(value_parser = NamedKey)]
        key: KeyName,
    },
}

/// A user, by his tenant and address.
#[derive(Args, Debug)]
pub(crate) struct Who {
    /// The tenant's slug
    #[arg(long, value_name = "SLUG")]
    pub(crate) tenant: String,
    /// The user's address
    #[arg(long)]
    pub(crate) email: String,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleArg {
    /// Everything, owners included
    Owner,
    /// Everything but owners
    Admin,
    /// His own sessions
    Member,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Owner => Self::Owner,
            RoleArg::Admin => Self::Admin,
            RoleArg::Member => Self::Member,
        }
    }
}

fn moment(text: &str) -> Result<Timestamp, &'static str> {
    hango_http::parse_moment(text).ok_or("not a moment such as 2027-01-31T00:00:00Z")
}

/// Reads what names a key. Unlike others this parser does not repeat what it could not read: it may be a
/// secret.
#[derive(Clone)]
struct NamedKey;

impl TypedValueParser for NamedKey {
    type Value = KeyName;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<KeyName, clap::Error> {
        let read = value.to_str().ok_or(NamesNoKey).and_then(str::parse);
        read.map_err(|error| {
            let what =
                format!("{error}.\n`hango admin key list --tenant SLUG` shows a tenant's keys.\n");
            clap::Error::raw(ErrorKind::ValueValidation, what).with_cmd(command)
        })
    }
}

impl Cli {
    /// Reads the process's arguments. Ends the process, with status 2, where they are wrong.
    pub(crate) fn read() -> Self {
        let matches = command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command line with the variables' documentation where people look for it.
fn command() -> clap::Command {
    Cli::command().mut_subcommand("config", |config| config.after_help(config::help()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parses(line: &str) -> bool {
        Cli::try_parse_from(line.split_whitespace()).is_ok()
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn the_contracts_commands_are_understood() {
        for line in [
            "hango serve",
            "hango serve --no-workers",
            "hango serve --no-api --config other.toml",
            "hango quickstart --once --provider demo --model m",
            "hango --config other.toml config",
            "hango migrate --dry-run",
            "hango migrate --down 1",
            "hango admin tenant create --slug acme --owner-email a@b",
            "hango admin tenant list --json",
            "hango admin user create --tenant acme --email a@b --role member",
            "hango admin user disable --tenant acme --email a@b",
            "hango admin --json key create --tenant acme --email a@b --name ci",
            "hango admin user list --tenant acme",
            "hango admin key create --tenant acme --email a@b --name ci --expires-at 2027-01-31T00:00:00+01:00",
            "hango admin key list --tenant acme --json",
            "hango admin key list --tenant acme --email a@b",
            "hango admin key revoke abcdef123456",
            "hango admin key revoke hk_abcdef123456_secret",
            "hango admin key revoke 0199a000-0000-7000-8000-000000000001",
        ] {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "hango",
            "hango serve --no-workers --no-api",
            "hango migrate --down",
            "hango migrate --dry-run --down 1",
            "hango admin user create --tenant acme --email a@b --role king",
            "hango admin key create --tenant acme --email a@b --name ci --expires-at tomorrow",
            "hango admin key revoke abcdef",
        ] {
            assert!(!parses(line), "{line}");
        }
    }

    #[test]
    fn what_names_no_key_is_not_repeated_because_it_may_be_a_secret() {
        let line = ["hango", "admin", "key", "revoke", "hk_canary"];
        let refused = Cli::try_parse_from(line).map(drop);

        let said = refused.expect_err("it names no key").to_string();
        assert!(!said.contains("canary"), "{said}");
        for told in ["12 letters and digits", "hango admin key list"] {
            assert!(said.contains(told), "{said}");
        }
    }
}
