use serde::Deserialize;

use super::program::{Colour, Log, Ros2, Window};
use super::row::Kind;
use super::*;

/// The file says exactly what the table says, and why.
#[test]
fn default_file_has_every_key_with_its_default_and_a_comment() {
    let file: toml::Table = DEFAULT_TOML.parse().unwrap();
    assert_eq!(&file, schema::defaults());

    let mut before = "";
    for line in DEFAULT_TOML.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(before.starts_with("# "), "no comment above `{line}`");
        }
        assert!(line.chars().count() <= 100, "too long: {line}");
        before = line;
    }
}

/// A default is a value that the key takes, and what is said of names is said of all of them.
#[test]
fn rows_agree_with_themselves() {
    for (section, row) in rows() {
        assert_eq!(row.check(&row.default.into()), Ok(()), "{section}.{}", row.key);
        if let Some((key, only)) = row.only {
            let other = super::row(section, key).unwrap().kind;
            let known = |names: &[&str]| only.iter().all(|name| names.contains(name));
            assert!(matches!(other, Kind::Names(names) if known(names)), "{section}.{key}");
        }
        let Kind::Names(names) = row.kind else { continue };
        let about = if row.flag.is_some() { names.len() } else { 0 };
        assert_eq!(row.about.len(), about, "{section}.{}", row.key);
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
