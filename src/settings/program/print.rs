//! The settings in effect as a commented configuration file.

use super::replace_quoted;
use crate::settings::row::{Kind, Row};
use crate::settings::schema::{SECTIONS, without_secrets};
use crate::settings::{Loaded, row, rows};

/// First lines of a configuration file.
const HEADER: &str = "\
# Settings of stereod.
#
# Read from --config FILE, else from $XDG_CONFIG_HOME/stereod/config.toml (usually
# ~/.config/stereod/config.toml), else from /etc/stereod/config.toml; a key that is left out keeps
# its default. Later layers win: built-in defaults, this file, the environment
# (STEREOD_MATCHING_P1=7), then --set matching.p1=7 and the other flags.
# `stereod config check FILE` finds mistakes; `stereod config print --origin` prints the settings in
# effect and where each was set.
";

/// Width of the comments.
const WIDTH: usize = 100;

/// Column of the origins.
const ORIGIN_COLUMN: usize = 32;

/// Formats every key as a configuration file: its meaning as a comment, and the line that `line`
/// makes of its section and row.
pub fn commented(line: impl Fn(&'static str, &'static Row) -> String) -> String {
    let mut text = HEADER.to_owned();
    for &(section, about, rows) in SECTIONS {
        text += "\n";
        comment(&mut text, ["#", "#"], &with_quotes(section, about));
        text += &format!("[{section}]\n");
        for row in rows {
            let meaning = format!("{} {}", row.help, row.more);
            comment(&mut text, ["#", "#"], &with_quotes(section, &meaning));
            if let Kind::Names(names) = row.kind {
                for (name, about) in names.iter().zip(row.about) {
                    let about = format!("\"{name}\": {}", with_quotes(section, about));
                    comment(&mut text, ["#  ", "#    "], &about);
                }
            }
            text += &line(section, row);
            text += "\n";
        }
    }
    text
}

/// Replaces the backticks around the words and names of a section's keys by the quotation marks that
/// these need in the file.
fn with_quotes(section: &str, text: &str) -> String {
    replace_quoted(text, |quoted| {
        let is_word = |(home, row): (&str, &Row)| {
            let names = if let Kind::Names(names) = row.kind { names } else { &[] };
            home == section && row.words.iter().chain(names).any(|word| *word == quoted)
        };
        let is_key = row(section, quoted).is_some();
        (!is_key && rows().any(is_word)).then(|| format!("\"{quoted}\""))
    })
}

/// Adds a comment, wrapped: what the first and the other lines begin with, and its words.
fn comment(to: &mut String, [first, other]: [&str; 2], words: &str) {
    let mut line = first.to_owned();
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            *to += &format!("{line}\n");
            line = other.to_owned();
        }
        line += " ";
        line += word;
    }
    *to += &format!("{line}\n");
}

impl Loaded {
    /// Formats the settings in effect as a commented configuration file, with `***` in place of
    /// passwords, and with `origins` a comment after each value on its origin.
    pub fn to_toml(&self, origins: bool) -> String {
        commented(|section, Row { key, .. }| {
            let line = format!("{key} = {}", without_secrets(&self.values()[section][*key]));
            if !origins {
                return line;
            }
            let origin = self.origin(section, key).to_string().replace(['\n', '\r'], " ");
            format!("{line:<ORIGIN_COLUMN$} # {origin}")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Value;

    use super::*;
    use crate::settings::Layers;

    #[test]
    fn defaults_print_as_the_default_file() {
        let printed = Layers::new().finish().unwrap().to_toml(false);
        let file = commented(|_, row| format!("{} = {}", row.key, Value::from(row.default)));
        assert_eq!(printed.lines().count(), file.lines().count());
        for (printed, default) in printed.lines().zip(file.lines()) {
            // Values that depend on the cost are printed as resolved.
            match default.split_once(" = \"auto\"") {
                Some((key, _)) if row("matching", key).is_some_and(|row| row.by_cost.is_some()) => {
                    let number = printed.strip_prefix(&format!("{key} = ")).unwrap();
                    assert!(number.parse::<f64>().is_ok(), "{printed}");
                }
                _ => assert_eq!(printed, default),
            }
        }
        assert!(printed.contains("\np1 = 32\n") && printed.contains("\nspeckle_size = 40\n"));
    }

    #[test]
    fn what_is_printed_reads_back() {
        let mut layers = Layers::new();
        for argument in [
            "matching.p1=9",
            "matching.left_right=off",
            "output.record=a \"quoted\" \\ name # 1.mkv",
            "output.pictures=two\nlines",
            "demo.rate=25",
            "source.tolerance_ms=2.5",
            "colour.map=grey",
        ] {
            layers.assignment(argument);
        }
        let loaded = layers.finish().unwrap();
        for origins in [false, true] {
            let mut again = Layers::new();
            again.file_text(Path::new("printed.toml"), &loaded.to_toml(origins));
            assert_eq!(again.finish().unwrap().settings, loaded.settings);
        }
        let text = loaded.to_toml(true);
        assert!(
            text.contains("p1 = 9                           # --set matching.p1=9\n"),
            "{text}"
        );
        let p2 = "p2 = 155                         # default for combined\n";
        assert!(text.contains(p2), "{text}");
        assert!(text.contains("uniqueness = 8                   # default\n"), "{text}");
        assert!(text.contains("rate = 25.0 "), "{text}");
    }
}
