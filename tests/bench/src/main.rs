//! Measures the released binary from outside, as its users have it, against the goals of the project.
//!
//! ```text
//! cargo build --release -p hango
//! cargo run --release -p hango-bench -- costs
//! cargo run --release -p hango-bench -- throughput
//! cargo run --release -p hango-bench -- replicas
//! ```
//!
//! It brings what it needs: a private PostgreSQL of the machine's own programs, which waits for the disk
//! as one in production does, a provider over HTTP, and clients. Directories are made where temporary
//! files go (`TMPDIR`): that has to be a disk, or commits cost nothing.

mod api;
mod costs;
mod database;
mod figures;
mod goals;
mod hango;
mod machine;
mod provider;
mod replicas;
mod report;
mod stand;
mod throughput;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use database::Database;
use hango::Program;
use report::Report;
use stand::Store;

/// Measures hango.
#[derive(Parser)]
struct Arguments {
    /// What to measure.
    #[command(subcommand)]
    what: What,
    /// The binary; by default the one that was built beside this program.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, Subcommand)]
enum What {
    /// Count what a run, a turn, a lease and an idle process cost. About two minutes.
    Costs {
        /// How many runs of each kind.
        #[arg(long, default_value_t = 100)]
        runs: usize,
    },
    /// Time runs one by one and many at once, on SQLite and on PostgreSQL with one and three processes.
    Throughput {
        /// How often all of it is measured.
        #[arg(long, default_value_t = 3)]
        repeats: usize,
        /// For how many seconds runs are kept in flight, each time.
        #[arg(long, default_value_t = 8)]
        seconds: u64,
    },
    /// Time what happens between processes. About a minute.
    Replicas,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Fails where somebody was first, which nobody can be.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().map_err(anyhow::Error::from);
    match runtime.and_then(|runtime| runtime.block_on(measure(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: Arguments) -> anyhow::Result<()> {
    let program = Program::find(arguments.binary)?;
    println!(
        "{}, load {}\n",
        program.binary().display(),
        machine::load()?
    );
    let mut database = Database::start().await?;
    let mut report = Report::default();
    let (database, noted) = (&mut database, &mut report);
    match arguments.what {
        What::Costs { runs } => costs::count(&program, database, runs, noted).await?,
        What::Throughput { repeats, seconds } => {
            let stores = [Store::Sqlite, Store::Postgres(1), Store::Postgres(3)];
            let window = Duration::from_secs(seconds);
            throughput::measure(&program, database, &stores, repeats, window, noted).await?;
        }
        What::Replicas => replicas::measure(&program, database, noted).await?,
    }
    report.print();
    println!("load {}", machine::load()?);
    Ok(())
}
