//! The `heist` command: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    heist_cli::main()
}
