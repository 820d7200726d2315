//! The program `garlic`; the library beside it has all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    garlic_cli::run(std::env::args_os()).into()
}
