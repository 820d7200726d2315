//! `garlic man`: the help of all commands as manual pages.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::exit::Fault;
use crate::output;

/// Write manual pages, one for the program and one for each command
///
/// The pages have the text of --help. Existing pages are replaced. Their names are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the pages; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  garlic man --out ~/.local/share/man/man1
  man garlic-search";

/// Writes the pages.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    fs::create_dir_all(&args.out).map_err(|e| {
        let folder = args.out.display();
        Fault::failed(format!("cannot make the folder {folder}: {e}"))
    })?;
    let mut program = crate::args::Args::command().disable_help_subcommand(true);
    // Names of commands get the program's name before them.
    program.build();
    let mut pages = vec![("garlic".to_owned(), program.clone())];
    for command in program.get_subcommands() {
        let name = format!("garlic-{}", command.get_name());
        pages.push((name.clone(), command.clone().display_name(name)));
    }
    let mut written = String::new();
    for (name, command) in pages {
        let path = args.out.join(format!("{name}.1"));
        let page = Man::new(command).source(concat!("garlic ", env!("CARGO_PKG_VERSION")));
        output::write_file(&path, |out| page.render(&mut *out))?;
        written += &format!("{}\n", path.display());
    }
    output::print(&written)
}
