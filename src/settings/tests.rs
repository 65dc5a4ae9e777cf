use std::fs;

use serde::Deserialize;
use toml::Value;

use super::program::{Colour, Log, Ros2, Window, commented};
use super::*;
use stereod_core::settings::PRESETS;
use stereod_core::settings::row::Kind;

/// Settings with these assignments, for the tests of the sections, too.
pub(crate) fn settings(assignments: &[&str]) -> Settings {
    let mut layers = Layers::new();
    assignments.iter().for_each(|argument| layers.assignment(argument));
    layers.finish().unwrap().settings
}

pub(crate) fn refused(section: &str, key: &str, value: impl Into<toml::Value>) -> bool {
    row(section, key).unwrap().check(&value.into()).is_err()
}

/// Compares a file with its text from the table, or writes it.
fn compare(path: &str, is: &str, expected: &str) {
    if std::env::var_os("STEREOD_WRITE_DOCS").is_some() {
        fs::write(path, expected).unwrap();
    } else {
        assert!(is == expected, "{path} differs from the table of settings: scripts/settings.sh");
    }
}

#[test]
fn written_default_file_is_that_of_the_table() {
    const FILE: &str = "config/default.toml";
    let text = commented(|_, row| format!("{} = {}", row.key, Value::from(row.default)));
    assert_eq!(text.parse::<toml::Table>().unwrap(), schema::defaults::<Settings>());
    compare(FILE, &fs::read_to_string(FILE).unwrap(), &text);
}

/// The page lists the presets with their values.
#[test]
fn written_presets_are_those_of_the_table() {
    const PAGE: &str = "docs/settings.md";
    let mut table = "| `--preset` | purpose | values |\n| --- | --- | --- |\n".to_owned();
    for preset in &PRESETS {
        let values = preset.values.iter();
        let values = values.map(|&(key, value)| format!("`{key} = {}`", Value::from(value)));
        let values = values.collect::<Vec<_>>().join(", ");
        table += &format!("| `{}` | {} | {values} |\n", preset.name, preset.about);
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let begin = page.find("| `--preset` |").expect("a table");
    let end = begin + page[begin..].find("\n\n").unwrap() + 1;
    compare(PAGE, &page, &format!("{}{table}{}", &page[..begin], &page[end..]));
}

/// A default is a value that the key takes, and every key and name is described.
#[test]
fn rows_agree_with_themselves() {
    for (section, row) in rows() {
        assert!(row.help.ends_with('.'), "{section}.{}: {}", row.key, row.help);
        assert_eq!(row.check(&row.default.into()), Ok(()), "{section}.{}", row.key);
        if let Some((key, only)) = row.only {
            let other = super::row(section, key).unwrap().kind;
            let known = |names: &[&str]| only.iter().all(|name| names.contains(name));
            assert!(matches!(other, Kind::Names(names) if known(names)), "{section}.{key}");
        }
        let Kind::Names(names) = row.kind else { continue };
        assert_eq!(row.about.len(), names.len(), "{section}.{}", row.key);
    }
}

/// The names that a row takes are those of its field, no more and no fewer.
#[test]
fn every_name_is_one_of_the_field() {
    let with = |section: &str, key: &str, name: &str| {
        let mut values = Layers::new().finish().unwrap().values().clone();
        let keys = values[section].as_table_mut().unwrap();
        for row in rows().filter(|row| row.0 == section).map(|row| row.1) {
            if row.none.is_some() && keys[row.key].as_str() == row.none {
                keys.remove(row.key);
            }
        }
        keys.insert(key.into(), name.into());
        keys.clone()
    };
    let read = |section: &str, keys: toml::Table| -> Result<(), toml::de::Error> {
        match section {
            "source" => Source::deserialize(keys).map(drop),
            "camera" => Camera::deserialize(keys).map(drop),
            "calibration" => Calibration::deserialize(keys).map(drop),
            "matching" => Matching::deserialize(keys).map(drop),
            "engine" => Engine::deserialize(keys).map(drop),
            "output" => Output::deserialize(keys).map(drop),
            "colour" => Colour::deserialize(keys).map(drop),
            "window" => Window::deserialize(keys).map(drop),
            "ros2" => Ros2::deserialize(keys).map(drop),
            "mount" => MountSettings::deserialize(keys).map(drop),
            "log" => Log::deserialize(keys).map(drop),
            other => panic!("no names in [{other}]"),
        }
    };
    for (section, row) in rows() {
        let Kind::Names(names) = row.kind else { continue };
        let names: Vec<_> = names.iter().filter(|name| Some(**name) != row.none).collect();
        for name in &names {
            assert!(read(section, with(section, row.key, name)).is_ok(), "{} {name}", row.key);
        }
        let error = read(section, with(section, row.key, "?")).unwrap_err().to_string();
        // Below it stands where.
        let what = error.lines().next().unwrap();
        assert_eq!(what.matches('`').count(), 2 * (names.len() + 1), "{error}");
    }
}
