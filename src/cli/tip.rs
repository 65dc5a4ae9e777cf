//! Tips that clap cannot know, added to its errors.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Adds a tip to the error of a command line of this process.
pub fn with_tip(error: Error) -> Error {
    with_tip_of(error, &std::env::args_os().skip(1).collect::<Vec<_>>())
}

/// If `match` got one image only, it may hold both views.
fn with_tip_of(mut error: Error, arguments: &[OsString]) -> Error {
    let lacks_right = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().any(|name| name == "<RIGHT>"),
        _ => false,
    };
    let Some((command, arguments)) = arguments.split_first() else { return error };
    if command != "match" || !lacks_right || error.kind() != ErrorKind::MissingRequiredArgument {
        return error;
    }
    let file = arguments.iter().find(|argument| Path::new(argument).is_file());
    let file = file.map_or("BOTH.png".into(), |file| file.to_string_lossy());
    let tip = format!(
        "if {file} holds both views, the left one in its left half: \
         'stereod match --side-by-side {file} -o OUT.png'; in its upper half: '--top-bottom'"
    );
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

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
        for line in ["stereod match l.png r.png", "stereod match --right", "stereod rectify l.png"]
        {
            let told = told(line);
            assert!(!told.contains("holds both views"), "{told}");
        }
    }
}
