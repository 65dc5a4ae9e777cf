//! `stereod completions`: completions of the command line for a shell.

use clap::CommandFactory;

use super::{Error, print};
use crate::cli::{Cli, CompletionsArgs};

/// Runs the command.
pub fn run(args: CompletionsArgs) -> Result<(), Error> {
    // Into memory first: the generator panics if its output cannot be written.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stereod", &mut script);
    print(script)
}
