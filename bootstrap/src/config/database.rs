//! Where the store is: a file, or a server.

use std::path::PathBuf;

use secrecy::SecretString;

use super::Settings;
use super::parse::Parsed;
use super::problems::Problems;

/// Where the store is.
#[derive(Clone)]
pub(crate) enum Database {
    /// The embedded store's file, which belongs to one process.
    Sqlite(PathBuf),
    /// PostgreSQL, for any number of processes. The URL may hold a password.
    Postgres(SecretString),
}

impl Database {
    /// Whether one process has it to itself.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// The server's URL.
    pub(crate) fn url(&self) -> Option<&SecretString> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(url) => Some(url),
        }
    }

    /// `sqlite://` and a path, relative or absolute; or `postgres://` and what follows it elsewhere.
    pub(super) fn parse(text: &str) -> Parsed<Self> {
        let scheme = text.split_once("://");
        let (scheme, rest) = scheme.ok_or("neither sqlite://… nor postgres://…")?;
        match scheme {
            "sqlite" => file(rest).map(Self::Sqlite),
            "postgres" | "postgresql" => {
                hango_postgres::check_url(text)
                    .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
                Ok(Self::Postgres(text.into()))
            }
            _ => Err("neither sqlite://… nor postgres://…".to_owned()),
        }
    }
}

fn file(path: &str) -> Parsed<PathBuf> {
    match path {
        "" | ":memory:" => Err("names no file; what is durable needs one".to_owned()),
        path if path.ends_with('/') => Err("names a folder, not a file".to_owned()),
        path if path.contains('?') => Err("must not hold parameters".to_owned()),
        path => Ok(path.into()),
    }
}

impl Settings {
    /// Notes a direct way to what is not the store.
    pub(super) fn check_direct(&self, problems: &mut Problems) {
        let wrong = match (&self.database, &self.database_direct) {
            (Database::Sqlite(_), Some(_)) => "only PostgreSQL has one; leave it out",
            (Database::Postgres(_), Some(Database::Sqlite(_))) => "must be a postgres:// URL too",
            (_, None) | (Database::Postgres(_), Some(Database::Postgres(_))) => return,
        };
        problems.at("HANGO_DATABASE_DIRECT_URL", wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<PathBuf> {
        match Database::parse(text) {
            Ok(Database::Sqlite(path)) => Some(path),
            Ok(Database::Postgres(_)) | Err(_) => None,
        }
    }

    #[test]
    fn an_embedded_store_is_a_file() {
        for (text, file) in [
            ("sqlite://hango-data/hango.db", "hango-data/hango.db"),
            ("sqlite:///var/lib/hango.db", "/var/lib/hango.db"),
        ] {
            assert_eq!(path(text), Some(file.into()), "{text}");
        }
    }

    #[test]
    fn a_server_is_named_by_either_scheme() {
        for text in [
            "postgres://me:pw@host:5432/hango",
            "postgresql://host/hango?sslmode=require",
            "postgres:///hango?host=/run/postgresql",
        ] {
            let read = Database::parse(text);
            assert!(matches!(read, Ok(Database::Postgres(_))), "{text}");
        }
    }

    #[test]
    fn what_is_no_store_is_refused_without_repeating_it() {
        for text in [
            "",
            "hango.db",
            "sqlite://",
            "sqlite://:memory:",
            "sqlite://data/",
            "sqlite://a.db?mode=ro",
            "mysql://me:canary@host/hango",
            "postgres://me:canary@host:port/hango",
            "postgres://me:canary@host/hango?sslmode=perhaps",
        ] {
            let refused = Database::parse(text).err().unwrap_or_default();
            assert!(!refused.is_empty(), "{text}");
            assert!(!refused.contains("canary"), "{refused}");
        }
    }
}
