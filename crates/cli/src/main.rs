//! The `heist` command: see the library.

use std::process::ExitCode;

/// Simulations need it: the same seed gives the same result only if the addresses are the same. Outside of a simulation it
/// passes every request to the allocator of the system.
#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

fn main() -> ExitCode {
    heist_cli::main()
}
