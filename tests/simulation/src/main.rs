//! Simulates histories by their seeds, or shows what happens in one.
//!
//! ```text
//! cargo run --release -p hango-simulation -- --seeds 1000000 --from 0
//! cargo run --release -p hango-simulation -- --replay 4711
//! ```

use std::num::NonZero;
use std::process::ExitCode;

use clap::Parser;
use hango_simulation::{Simulated, search, simulate};

/// Simulates processes of hango over one store, with everything going wrong that can.
#[derive(Parser)]
struct Arguments {
    /// How many seeds to try.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many at a time; by default as many as there are cores.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Show all that happens in this one instead.
    #[arg(long)]
    replay: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.replay {
        let simulated = simulate(seed, true);
        print!("{}", simulated.trace);
        return told(&[simulated]);
    }
    let threads = arguments.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, NonZero::get),
        NonZero::get,
    );
    let found = search(arguments.from, arguments.seeds, threads);
    println!("{} seeds, {} went wrong", found.tried, found.wrong.len());
    told(&found.wrong)
}

/// Tells what went wrong, and how to see it again.
fn told(simulated: &[Simulated]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for one in simulated.iter().filter(|it| !it.wrong.is_empty()) {
        println!("{one}");
        code = ExitCode::FAILURE;
    }
    code
}
