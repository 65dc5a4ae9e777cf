//! The settings in effect as a commented configuration file.

use toml::{Table, Value};

use super::{DEFAULT_TOML, Loaded};

/// Column at which the origins stand.
const ORIGIN_COLUMN: usize = 32;

impl Loaded {
    /// The settings in effect as a configuration file: the comments of `config/default.toml`, and
    /// with `origins` a comment after each value that says where it came from.
    pub fn to_toml(&self, origins: bool) -> String {
        let values = Table::try_from(&self.settings).expect("settings are plain values");
        let mut section = "";
        let mut text = String::new();
        for line in DEFAULT_TOML.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
            }
            match line.split_once(" = ").filter(|(key, _)| !key.starts_with('#')) {
                Some((key, _)) => {
                    let value = values.get(section).and_then(|table| table.get(key));
                    let value = value.map(Value::to_string).unwrap_or_default();
                    let line = format!("{key} = {value}");
                    if origins {
                        let origin =
                            self.origin(section, key).to_string().replace(['\n', '\r'], " ");
                        text.push_str(&format!("{line:<ORIGIN_COLUMN$} # {origin}\n"));
                    } else {
                        text.push_str(&format!("{line}\n"));
                    }
                }
                None => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Layers;
    use super::*;

    #[test]
    fn defaults_print_as_the_default_file() {
        assert_eq!(Layers::new().finish().unwrap().to_toml(false), DEFAULT_TOML);
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
        assert!(text.contains("p2 = 80                          # default\n"), "{text}");
        assert!(text.contains("rate = 25.0 "), "{text}");
    }
}
