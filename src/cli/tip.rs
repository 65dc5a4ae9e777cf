//! Tips that clap cannot know, added to its errors.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::Cli;
use stereod_io::source::spec::is_video;

/// Adds a tip to the error of a command line of this process.
pub fn with_tip(error: Error) -> Error {
    with_tip_of(error, &std::env::args_os().skip(1).collect::<Vec<_>>())
}

fn with_tip_of(mut error: Error, arguments: &[OsString]) -> Error {
    let tip = match (error.kind(), arguments) {
        (ErrorKind::MissingRequiredArgument, [command, rest @ ..]) => {
            one_file_for_both(&error, command, rest)
        }
        (ErrorKind::InvalidSubcommand, [command, ..]) => letters_exchanged(&error, command),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// If the right view alone is missing, the one that was given may hold both.
fn one_file_for_both(error: &Error, command: &OsStr, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if !missing.iter().any(|name| name == "<RIGHT>" || name == "--right <RIGHT>") {
        return None;
    }
    let file = arguments.iter().map(Path::new).find(|file| file.is_file());
    let command = match command.to_str()? {
        // They read single images.
        "match" | "obstacles" if file.is_some_and(is_video) => "run",
        command => command,
    };
    let file = file.map_or("BOTH.png".into(), Path::to_string_lossy);
    let output = if command == "match" { " -o OUT.png" } else { "" };
    Some(format!(
        "if {file} holds both views, the left one in its left half: \
         'stereod {command} --side-by-side {file}{output}'; in its upper half: '--top-bottom'"
    ))
}

/// Names the command with the same letters. clap finds those that lack one or have another one.
fn letters_exchanged(error: &Error, command: &OsStr) -> Option<String> {
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let letters = sorted(command.to_str()?);
    let known = Cli::command();
    let meant = known.get_subcommands().find(|known| sorted(known.get_name()) == letters)?;
    let is_new = error.get(ContextKind::SuggestedSubcommand).is_none();
    is_new.then(|| format!("a similar subcommand exists: '{}'", meant.get_name()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        with_tip_of(error, &arguments[1..]).to_string()
    }

    #[test]
    fn one_picture_may_hold_both_views() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("both.png");
        std::fs::write(&file, "x").unwrap();
        let file = file.to_str().unwrap();
        for line in
            [format!("stereod match {file}"), format!("stereod match -d 64 -o d.png {file}")]
        {
            let told = told(&line);
            assert!(told.contains(&format!("match --side-by-side {file} -o OUT.png")), "{told}");
        }
        for (line, expected) in [
            (format!("stereod obstacles {file}"), format!("obstacles --side-by-side {file}'")),
            (format!("stereod run --left {file}"), format!("run --side-by-side {file}'")),
        ] {
            let told = told(&line);
            assert!(told.contains(&expected), "{told}");
        }
        let video = folder.path().join("both.mp4");
        std::fs::write(&video, "x").unwrap();
        let told_of_video = told(&format!("stereod match {}", video.display()));
        assert!(told_of_video.contains("'stereod run --side-by-side"), "{told_of_video}");
        for line in ["stereod match l.png r.png", "stereod match --right", "stereod rectify l.png"]
        {
            let told = told(line);
            assert!(!told.contains("holds both views"), "{told}");
        }
    }

    #[test]
    fn a_misspelt_command_is_named() {
        for (line, command) in [
            ("stereod rnu --demo", "'run'"),
            ("stereod mtach a b", "'match'"),
            ("stereod evalute", "'evaluate'"),
        ] {
            let told = told(line);
            assert!(told.contains(command), "{told}");
        }
        assert!(!told("stereod xyz").contains("similar"));
    }
}
