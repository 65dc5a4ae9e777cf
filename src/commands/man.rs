//! `stereod man` and `stereod completions`: manual pages and completions from the descriptions of the command line.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

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
    print(with_cameras(args.shell, &String::from_utf8_lossy(&script)))
}

/// Completes the flags of views with the cameras of this machine, too, in the commands that read cameras.
///
/// clap's own scripts know fixed words and names of files only.
fn with_cameras(shell: Shell, script: &str) -> String {
    const LIST: &str = "stereod devices --sources 2>/dev/null";
    let (starts, files, both) = match shell {
        Shell::Bash => (
            ["stereod__subcmd__", ")"],
            "compgen -f \"${cur}\"",
            format!("compgen -f \"${{cur}}\"; compgen -W \"$({LIST})\" -- \"${{cur}}\""),
        ),
        Shell::Zsh => (["(", ")"], ":_files'", ":_stereod_sources'".to_owned()),
        Shell::Fish => (
            ["complete -c stereod -n \"__fish_stereod_using_subcommand ", "\""],
            "-r -F",
            format!("-r -F -a '({LIST})'"),
        ),
        _ => return script.to_owned(),
    };
    let (mut command, mut flag, mut lines) = ("", "", Vec::new());
    for line in script.lines() {
        let word = line.trim_start();
        if let Some((name, _)) = word.strip_prefix(starts[0]).and_then(|l| l.split_once(starts[1]))
        {
            command = if name.contains(' ') { command } else { name };
        }
        let named =
            ["--left", "--right", "--side-by-side", "--top-bottom"].into_iter().find(|name| {
                let (name, fish) = (*name, format!(" -l {} ", &name[2..]));
                word.strip_prefix(name) == Some(")")
                    || word.contains(&format!("{name}=["))
                    || word.contains(&fish)
            });
        match shell {
            // The words follow on lines of their own.
            Shell::Bash if word.starts_with("--") => flag = named.unwrap_or_default(),
            Shell::Bash => {}
            _ => flag = named.unwrap_or_default(),
        }
        let reads_cameras = ["run", "calibrate"].contains(&command) && !flag.is_empty();
        lines.push(if reads_cameras { line.replace(files, &both) } else { line.to_owned() });
        if line.starts_with("autoload") {
            lines.push(format!(
                "\n_stereod_sources() {{\n    local -a found=(${{(f)\"$({LIST})\"}})\n    \
                 compadd -a found\n    _files\n}}"
            ));
        }
    }
    lines.join("\n") + "\n"
}
