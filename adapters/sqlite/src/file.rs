//! The file: made whole or not at all, never over something that is there, readable by nobody else, and
//! with one executor at a time.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection};

use crate::open::OpenError;

/// How every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// As much of a file's beginning as is looked at.
const HEADER: usize = MAGIC.len() + 2;

/// The most symbolic links that lead to a file; no system follows more.
const MAX_LINKS: usize = 40;

/// The name behind the symbolic links that `path` may be. By it the file has one lock, whatever name it
/// is opened by; directories need no such care, for a link to one leads to the same lock.
pub(crate) fn behind_links(path: PathBuf) -> PathBuf {
    let mut path = path;
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        // Relative to where the link is; an absolute one stays as it is.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Makes sure that a database is at `path`. With `execute` a missing one is made, and the lock of its
/// executor is returned.
pub(crate) async fn prepare(path: &Path, execute: bool) -> Result<Option<File>, OpenError> {
    let lock = if execute { Some(lock(path)?) } else { None };
    match File::open(path) {
        Ok(file) => check(path, file)?,
        Err(error) if error.kind() == ErrorKind::NotFound && execute => make(path).await?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(OpenError::Missing {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(unusable(path, error)),
    }
    Ok(lock)
}

/// Locks the file for executing. The lock is on a file beside it, so that it has nothing to do with
/// SQLite's own, and ends with the process, however that ends.
fn lock(path: &Path) -> Result<File, OpenError> {
    let lock = beside(path, ".lock");
    let unusable = |error| unusable(&lock, error);
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(dir).map_err(unusable)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&lock).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

/// What can be seen from outside. SQLite takes an empty file for an empty database; here it is what is
/// left of a full one.
fn check(path: &Path, mut file: File) -> Result<(), OpenError> {
    let unusable = |error| unusable(path, error);
    let damaged = |what: &str| OpenError::Damaged {
        path: path.to_owned(),
        source: what.into(),
    };
    let mut header = [0; HEADER];
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(MAGIC) => {}
        Ok(()) => return Err(damaged("it does not begin like a SQLite database")),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(damaged("it is shorter than any SQLite database"));
        }
        Err(error) => return Err(unusable(error)),
    }
    let about = file.metadata().map_err(unusable)?;
    if about.nlink() > 1 {
        let what = "it has another name (a hard link), which would be a way around its lock";
        return Err(unusable(io::Error::other(what)));
    }
    let log = fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len());
    if log == 0 && about.len() % page_size(&header) != 0 {
        return Err(damaged("it ends within a page"));
    }
    Ok(())
}

/// The size of a page, as the two bytes behind the magic say; 1 stands for 65,536.
fn page_size(header: &[u8; HEADER]) -> u64 {
    match u16::from_be_bytes([header[16], header[17]]) {
        0 | 1 => 65_536,
        size => size.into(),
    }
}

/// Makes an empty database, under another name until it is whole.
async fn make(path: &Path) -> Result<(), OpenError> {
    let unusable = |error| unusable(path, error);
    let begun = beside(path, ".new");
    match fs::remove_file(&begun) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unusable(error)),
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(&begun).map_err(unusable)?;
    let database = SqliteConnectOptions::new()
        .filename(&begun)
        .journal_mode(SqliteJournalMode::Wal)
        .connect()
        .await
        .map_err(|error| OpenError::of(path, error))?;
    database
        .close()
        .await
        .map_err(|error| OpenError::of(path, error))?;
    fs::rename(&begun, path).map_err(unusable)
}

/// The file of that name with something behind it.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

fn unusable(path: &Path, error: io::Error) -> OpenError {
    OpenError::Unusable {
        path: path.to_owned(),
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_has_one_name_whatever_links_lead_to_it() {
        let dir = tempfile::tempdir().expect("there is room for a directory");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("data")).expect("it can be made");
        // The file need not be there yet.
        symlink("data/hango.db", at("relative.db")).expect("it can be made");
        symlink(at("relative.db"), at("absolute.db")).expect("it can be made");
        symlink("loop.db", at("loop.db")).expect("it can be made");

        let file = at("data/hango.db");
        assert_eq!(behind_links(file.clone()), file);
        assert_eq!(behind_links(at("relative.db")), file);
        assert_eq!(behind_links(at("absolute.db")), file);
        assert_eq!(behind_links(at("loop.db")), at("loop.db"));
        assert_eq!(behind_links("no-link.db".into()), Path::new("no-link.db"));
    }

    #[tokio::test]
    async fn a_link_to_the_file_is_no_way_around_its_lock() {
        let dir = tempfile::tempdir().expect("there is room for a directory");
        let link = dir.path().join("link.db");
        symlink("hango.db", &link).expect("it can be made");

        let first = prepare(&behind_links(dir.path().join("hango.db")), true).await;
        let second = prepare(&behind_links(link), true).await;

        let _lock = first.expect("nobody else executes");
        assert!(matches!(second, Err(OpenError::Locked { .. })));
    }
}
