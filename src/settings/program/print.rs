//! The settings in effect as a commented configuration file, and names of flags in texts about parameters.

use crate::settings::{Loaded, OF_OBSTACLES, Settings, row, rows};
use stereod_core::settings::Origin;
use stereod_core::settings::row::{ENGINE, Kind, Live, MATCHING, Row};
use stereod_core::settings::schema::{self, Schema, same, without_secrets};

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

const WIDTH: usize = 100;

const ORIGIN_COLUMN: usize = 32;

/// Formats every key as a configuration file: its meaning as a comment, and the line that `line`
/// makes of its section and row.
pub fn commented(line: impl Fn(&'static str, &'static Row) -> String) -> String {
    let mut text = HEADER.to_owned();
    for &(section, about, rows) in Settings::SECTIONS {
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

/// Formats the settings in effect as a commented configuration file, with `***` in place of
/// passwords, and with `origins` a comment after each value on its origin.
pub fn to_toml(loaded: &Loaded, origins: bool) -> String {
    commented(|section, Row { key, .. }| {
        let line = format!("{key} = {}", without_secrets(&loaded.values()[section][*key]));
        if !origins {
            return line;
        }
        let origin = loaded.origin(section, key).to_string().replace(['\n', '\r'], " ");
        format!("{line:<ORIGIN_COLUMN$} # {origin}")
    })
}

/// Returns the reason why a key cannot change in this run: `None` if it can, empty if it never
/// can.
pub fn why_fixed(loaded: &Loaded, section: &str, key: &str) -> Option<&'static str> {
    if section == "colour" && key != "map" && loaded.settings.output.has_depth_limits() {
        return Some("--near and --far set the colours");
    }
    if OF_OBSTACLES.contains(&section) && !loaded.settings.finds_obstacles() {
        return Some("this run finds no obstacles");
    }
    match row(section, key).map(|row| row.live) {
        Some(Live::Always) => None,
        Some(Live::UnlessRecorded) => loaded.settings.output.why_range_fixed(),
        Some(Live::Fixed) | None => Some(""),
    }
}

/// Returns a configuration file that gives these settings with the same environment and flags:
/// the content of the file in effect, and all tuned values that are not the default.
pub fn to_file(loaded: &Loaded) -> String {
    let defaults = schema::defaults::<Settings>();
    let wanted = |section: &str, key: &str| {
        let said = !same(loaded.given(section, key), &defaults[section][key]);
        let tuned = row(section, key).is_some_and(|row| row.panel.is_some());
        let is_own = !matches!(loaded.origin(section, key), Origin::Preset(_));
        said && is_own && (tuned || matches!(loaded.origin(section, key), Origin::File { .. }))
    };
    let mut text = String::new();
    let mut begun = "";
    for (section, key) in rows().map(|(section, row)| (section, row.key)) {
        if !wanted(section, key) {
            continue;
        }
        if begun != section {
            text += &format!("\n[{section}]\n");
            begun = section;
        }
        text += &format!("{key} = {}\n", loaded.given(section, key));
    }
    text
}

/// Replaces each quoted parameter of a text by its flag: "`p1`" becomes "--p1", and
/// "`engine=cpu`" becomes "--engine cpu". Parameters without a flag become `--set` and their key.
pub fn with_flags(text: &str) -> String {
    replace_quoted(text, spell)
}

/// Replaces the parts of a text in backticks, together with these, unless `other` returns `None`.
pub fn replace_quoted(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((quoted, after)) = after.split_once('`') else { break };
        named += before;
        match other(quoted) {
            Some(other) => named += &other,
            None => named += &format!("`{quoted}`"),
        }
        rest = after;
    }
    named + rest
}

/// Returns the spelling of a parameter on the command line; `None` if there is no such parameter.
fn spell(quoted: &str) -> Option<String> {
    let (name, value) = match quoted.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (quoted, None),
    };
    let flags = rows().filter_map(|(_, row)| row.flag);
    let mut flags = flags.filter(|flag| [MATCHING, ENGINE].contains(&flag.group));
    let dashed = format!("--{}", name.replace('_', "-"));
    if flags.any(|flag| flag.name == dashed) {
        return Some(value.map_or(dashed.clone(), |value| format!("{dashed} {value}")));
    }
    let section =
        ["matching", "engine"].into_iter().find(|section| row(section, name).is_some())?;
    let value = value?;
    Some(format!("--set {section}.{name}={value}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Value;

    use super::*;
    use crate::settings::Layers;

    #[test]
    fn defaults_print_as_the_default_file() {
        let printed = to_toml(&Layers::new().finish().unwrap(), false);
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
            again.file_text(Path::new("printed.toml"), &to_toml(&loaded, origins));
            assert_eq!(again.finish().unwrap().settings, loaded.settings);
        }
        let text = to_toml(&loaded, true);
        assert!(
            text.contains("p1 = 9                           # --set matching.p1=9\n"),
            "{text}"
        );
        let p2 = "p2 = 155                         # default for combined\n";
        assert!(text.contains(p2), "{text}");
        assert!(text.contains("uniqueness = 8                   # default\n"), "{text}");
        assert!(text.contains("rate = 25.0 "), "{text}");
    }

    #[test]
    fn parameters_become_flags_and_the_rest_stays() {
        for (text, shown) in [
            ("lower `p2_min` or use `engine=cpu`", "lower --p2-min or use --engine cpu"),
            ("`in_flight=1` needs less", "--set engine.in_flight=1 needs less"),
            ("the cost `ad`, `p1`", "the cost `ad`, --p1"),
            ("`stereod devices` lists them", "`stereod devices` lists them"),
            ("no quotes", "no quotes"),
            ("an odd ` and p1", "an odd ` and p1"),
        ] {
            assert_eq!(with_flags(text), shown);
        }
    }
}
