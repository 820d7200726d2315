//! `garlic completions`: a script that lets a shell complete commands, flags and file names.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::output;

/// Print a completion script for a shell
///
/// Write it to the place where your shell looks for completions. It names the commands and flags of this version; write
/// it again after an update.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell that the script is for
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  garlic completions bash > ~/.local/share/bash-completion/completions/garlic
  garlic completions zsh > ~/.zfunc/_garlic
  garlic completions fish > ~/.config/fish/completions/garlic.fish";

/// Prints the script.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::args::Args::command(),
        "garlic",
        &mut script,
    );
    output::with_stdout(|out| out.write_all(&script))
}
