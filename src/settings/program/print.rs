//! The settings in effect as a commented configuration file.

use crate::settings::Loaded;
use crate::settings::schema::without_secrets;

/// Every key with its default and a comment: `config/default.toml`.
pub const DEFAULT_TOML: &str = include_str!("../../../config/default.toml");

/// Column of the origins.
const ORIGIN_COLUMN: usize = 32;

/// Returns the lines of `config/default.toml`, each with its section and the key that it sets, if
/// any.
pub fn default_lines() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let mut section = "";
    DEFAULT_TOML.lines().map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        let key = line.split_once(" = ").map(|(key, _)| key).filter(|key| !key.starts_with('#'));
        (section, key, line)
    })
}

impl Loaded {
    /// Formats the settings in effect as a configuration file: the comments of
    /// `config/default.toml`, `***` in place of passwords, and with `origins` a comment after each
    /// value on its origin.
    pub fn to_toml(&self, origins: bool) -> String {
        let mut text = String::new();
        for (section, key, line) in default_lines() {
            let Some(key) = key else {
                text += &format!("{line}\n");
                continue;
            };
            let line = format!("{key} = {}", without_secrets(&self.values()[section][key]));
            if origins {
                let origin = self.origin(section, key).to_string().replace(['\n', '\r'], " ");
                text += &format!("{line:<ORIGIN_COLUMN$} # {origin}\n");
            } else {
                text += &format!("{line}\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::Layers;
    use crate::settings::row;

    #[test]
    fn defaults_print_as_the_default_file() {
        let printed = Layers::new().finish().unwrap().to_toml(false);
        assert_eq!(printed.lines().count(), DEFAULT_TOML.lines().count());
        for (printed, default) in printed.lines().zip(DEFAULT_TOML.lines()) {
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
