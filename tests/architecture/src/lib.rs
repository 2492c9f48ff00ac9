//! What cargo knows of the workspace, for the tests that hold its architecture.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// The repository's top level.
#[must_use]
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The members of the workspace, without what they depend on.
#[must_use]
pub fn members() -> Metadata {
    MetadataCommand::new()
        .manifest_path(top().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo can read the workspace")
}

/// What `package` names as normal dependencies, other members included.
#[must_use]
pub fn uses(package: &Package) -> BTreeSet<&str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.as_str())
        .collect()
}

/// Everything that `package` reaches through normal dependencies, with the features that they declare:
/// what other members switch on does not count.
#[must_use]
pub fn reach(package: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--package", package])
        .current_dir(top())
        .output()
        .expect("cargo can be run");
    assert!(
        tree.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&tree.stderr)
    );
    String::from_utf8_lossy(&tree.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}
