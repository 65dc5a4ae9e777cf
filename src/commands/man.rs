//! `stereod man` and `stereod completions`: manual pages and completions from the descriptions of the command line.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use super::{Error, print};
use crate::cli::{Cli, CompletionsArgs, ManArgs};

pub fn run(args: ManArgs) -> Result<(), Error> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    if let Some(folder) = args.dir {
        return write_all(whole, &folder);
    }
    let Some(name) = args.command else {
        return print(page(whole)?);
    };
    let names: Vec<String> = whole.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    match whole.find_subcommand(&name) {
        Some(command) => print(page(command.clone())?),
        None => Err(Error::usage(format!("no command `{name}`; commands: {}", names.join(", ")))),
    }
}

fn page(command: clap::Command) -> Result<Vec<u8>, Error> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.context("the manual page cannot be rendered")?;
    Ok(page)
}

fn write_all(whole: clap::Command, folder: &Path) -> Result<(), Error> {
    let name = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(name)?;
    clap_mangen::generate_to(whole, folder).with_context(name)?;
    Ok(())
}

pub fn completions(args: CompletionsArgs) -> Result<(), Error> {
    // Into memory first: the generator panics if its output cannot be written.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stereod", &mut script);
    print(script)
}
