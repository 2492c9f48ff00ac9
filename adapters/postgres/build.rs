//! Migrations are compiled in: a new one has to be noticed.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/postgres");
}
