//! The binary `hango`: the program, and nothing of anybody's own.

use std::process::ExitCode;

use hango::Own;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hango::main(Own::default())
}
