//! Settings that change during a run.

use toml::Value;

use super::super::matching::presets::PRESETS;
use super::super::row::Live;
use super::super::schema;
use super::{Error, Fitted, Layers, Loaded, Origin, dotted};

impl Loaded {
    /// Returns the value of a key, which must exist, as it was given: `auto` if it was not
    /// overridden.
    pub fn given(&self, section: &str, key: &str) -> &Value {
        &self.layers.table[section][key]
    }

    /// Reports whether the number of disparities is still to be chosen from the images.
    pub fn awaits_choice(&self) -> bool {
        self.settings.matching.disparities.is_none()
    }

    /// Reports whether it was chosen, so that `auto` has a meaning.
    pub fn has_chosen(&self) -> bool {
        self.layers.chosen.is_some()
    }

    /// Returns these settings with this number for `auto` disparities, whatever else is changed
    /// later.
    pub fn with_chosen(&self, disparities: usize) -> Result<Loaded, Error> {
        Layers { chosen: Some(disparities), ..self.layers.clone() }.finish()
    }

    /// Returns the values that make the engine faster, if a rate was requested.
    pub fn fitted_values(&self) -> &[Fitted] {
        &self.layers.fitted
    }

    /// Returns these settings with values that make the engine faster.
    pub fn with_fitted(&self, fitted: &[Fitted]) -> Result<Loaded, Error> {
        let mut layers = Layers { fitted: fitted.to_vec(), ..self.layers.clone() };
        for (key, text) in fitted {
            layers.put_text("matching", key, text, Origin::Fit);
        }
        layers.finish()
    }

    /// Returns these settings with confidence computed.
    pub fn with_confidence(&self) -> Result<Loaded, Error> {
        Layers { shows_confidence: true, ..self.layers.clone() }.finish()
    }

    /// Returns these settings for images that are white from this grey level on.
    pub fn with_white(&self, white: u8) -> Result<Loaded, Error> {
        Layers { white, ..self.layers.clone() }.finish()
    }

    /// Returns these settings with other values for some keys, written as on the command line, and
    /// checked like every layer.
    pub fn with_texts<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Result<Loaded, Error> {
        let mut layers = self.layers.clone();
        for (section, key, text) in changes {
            let value = schema::value_of_text(section, key, text);
            // Unchanged values keep their origin.
            if value.is_ok_and(|value| same(&value, self.given(section, key))) {
                continue;
            }
            if (section, key) == ("matching", "preset") {
                layers.take_back_tuned();
            }
            layers.put_text(section, key, text, Origin::Window);
        }
        layers.finish()
    }

    /// Returns these settings with some keys, and their origin, from `other`.
    pub fn with_those_of<'a>(
        &self,
        other: &Loaded,
        keys: impl IntoIterator<Item = &'a (String, String)>,
    ) -> Result<Loaded, Error> {
        let mut layers = self.layers.clone();
        for (section, key) in keys {
            let value = other.given(section, key).clone();
            layers.put(section, key, value, other.layers.origin(section, key));
        }
        layers.finish()
    }

    /// Returns the section and key of every value that differs.
    pub fn differences(&self, other: &Loaded) -> Vec<(String, String)> {
        let all = schema::all();
        let differing = all.filter(|(s, k)| !same(self.given(s, k), other.given(s, k)));
        differing.map(|(section, key)| (section.to_owned(), key.to_owned())).collect()
    }

    /// Returns the reason why a key cannot change in this run: `None` if it can, empty if it never
    /// can.
    pub fn why_fixed(&self, section: &str, key: &str) -> Option<&'static str> {
        if section == "colour" && key != "map" && self.settings.output.has_depth_limits() {
            return Some("--near and --far set the colours");
        }
        match schema::row(section, key).map(|row| row.live) {
            Some(Live::Always) => None,
            Some(Live::UnlessRecorded) => self.settings.output.why_range_fixed(),
            Some(Live::Fixed) | None => Some(""),
        }
    }

    /// Returns a configuration file that gives these settings with the same environment and flags:
    /// the content of the file in effect, and all tuned values that are not the default.
    pub fn to_file(&self) -> String {
        let wanted = |section: &str, key: &str| {
            let said = !same(self.given(section, key), &schema::defaults()[section][key]);
            let tuned = schema::row(section, key).is_some_and(|row| row.panel.is_some());
            let is_own = !matches!(self.origin(section, key), Origin::Preset(_));
            said && is_own && (tuned || matches!(self.origin(section, key), Origin::File { .. }))
        };
        let mut text = String::new();
        let mut begun = "";
        for (section, key) in schema::rows().map(|(section, row)| (section, row.key)) {
            if !wanted(section, key) {
                continue;
            }
            if begun != section {
                text += &format!("\n[{section}]\n");
                begun = section;
            }
            text += &format!("{key} = {}\n", self.given(section, key));
        }
        text
    }
}

impl Layers {
    /// Takes back what was tuned of the keys that presets set.
    fn take_back_tuned(&mut self) {
        for (key, _) in PRESETS.iter().flat_map(|preset| preset.values) {
            if self.origin("matching", key) == Origin::Window {
                self.origins.remove(&dotted("matching", key));
                self.table["matching"][*key] = schema::defaults()["matching"][*key].clone();
            }
        }
    }

    fn origin(&self, section: &str, key: &str) -> Origin {
        self.origins.get(&dotted(section, key)).cloned().unwrap_or_default()
    }
}

/// Reports whether two values are equal, also a whole number and a fraction.
fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::Settings;

    fn loaded(text: &str) -> Loaded {
        let mut layers = Layers::new();
        layers.file_text(Path::new("rig.toml"), text);
        layers.finish().unwrap()
    }

    #[test]
    fn auto_follows_a_cost_that_is_changed_later() {
        let before = loaded("[matching]\np2 = 90\n");
        let after = before.with_texts([("matching", "cost", "ad")]).unwrap();
        assert_eq!((before.params.p1, before.params.p2), (32, 90));
        assert_eq!((after.params.p1, after.params.p2), (12, 90));
        assert_eq!(after.origin("matching", "cost").to_string(), "a change while running");
        assert_eq!(after.origin("matching", "p1").to_string(), "default for ad");
        assert_eq!(after.given("matching", "p1"), &Value::from("auto"));
        let back = after.with_texts([("matching", "p2", "auto")]).unwrap();
        assert_eq!(back.settings.matching.p2, 80);
    }

    #[test]
    fn a_preset_chosen_later_takes_back_what_was_tuned_of_it() {
        let before = loaded("[matching]\np1 = 9\n");
        let changes = [("matching", "fill", "row"), ("matching", "uniqueness", "9")];
        let tuned = before.with_texts(changes).unwrap();
        let dense = tuned.with_texts([("matching", "preset", "dense")]).unwrap();
        assert_eq!(dense.given("matching", "fill"), &Value::from("rays"));
        assert_eq!(dense.origin("matching", "fill").to_string(), "preset dense");
        // Values that no preset sets stay.
        assert_eq!((dense.params.p1, dense.params.uniqueness), (9, 9));
        let accurate = dense.with_texts([("matching", "preset", "accurate")]).unwrap();
        assert_eq!(accurate.given("matching", "fill"), &Value::from("off"));
        assert!(accurate.params.confidence.is_some());
        // A file states the preset, not its values.
        let text = accurate.to_file();
        assert_eq!(text, "\n[matching]\npreset = \"accurate\"\np1 = 9\nuniqueness = 9\n");
        assert_eq!(loaded(&text).params, accurate.params);
        let back = accurate.with_texts([("matching", "preset", "balanced")]).unwrap();
        assert_eq!(back.differences(&before), [("matching".to_owned(), "uniqueness".to_owned())]);
    }

    #[test]
    fn what_does_not_fit_is_said_as_at_the_start() {
        let before = loaded("");
        let error = before.with_texts([("matching", "p1", "300")]).unwrap_err().to_string();
        assert!(error.contains("wrong value 300 for `p1` in [matching]: expected `auto` or"));
        let error = before.with_texts([("matching", "p1", "200")]).unwrap_err().to_string();
        assert!(error.contains("matching.p1: a change while running"), "{error}");
    }

    #[test]
    fn chosen_disparities_stay_chosen_while_auto_is_said() {
        let before = loaded("[matching]\ndisparities = 'auto'\n");
        assert!(before.awaits_choice());
        assert_eq!(before.params.range.count, 64, "the default stands in");
        assert!(before.to_toml(false).contains("\ndisparities = \"auto\"\n"));
        let chosen = before.with_chosen(112).unwrap();
        assert!(!chosen.awaits_choice());
        assert_eq!(chosen.settings.matching.disparities, Some(112));
        let origin = chosen.origin("matching", "disparities").to_string();
        assert_eq!(origin, "chosen from the pictures (rig.toml:2)");
        assert_eq!(chosen.given("matching", "disparities"), &Value::from("auto"));
        assert_eq!(chosen.differences(&before), []);
        let tuned = chosen.with_texts([("matching", "p1", "9")]).unwrap();
        assert_eq!((tuned.params.range.count, tuned.params.p1), (112, 9));
        let given = tuned.with_texts([("matching", "disparities", "48")]).unwrap();
        assert_eq!(given.params.range.count, 48);
        let back = given.with_texts([("matching", "disparities", "auto")]).unwrap();
        assert_eq!(back.params.range.count, 112);
    }

    #[test]
    fn differences_are_those_of_meaning() {
        let before = loaded("[demo]\nrate = 30\n[matching]\np1 = 9\n");
        let after = loaded("[matching]\np1 = 10\n[log]\nfilter = 'warn'\n");
        let keys = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(s, k)| ((*s).to_owned(), (*k).to_owned())).collect()
        };
        assert_eq!(before.differences(&after), keys(&[("log", "filter"), ("matching", "p1")]));
        let merged = before.with_those_of(&after, &keys(&[("matching", "p1")])).unwrap();
        assert_eq!((merged.params.p1, &*merged.settings.log.filter), (10, "info"));
        assert_eq!(merged.origin("matching", "p1").to_string(), "rig.toml:2");
    }

    #[test]
    fn the_written_file_gives_the_same_settings() {
        let mut layers = Layers::new();
        let file = "[source]\nleft = 'l \"1\".mkv'\nright = 'r.mkv'\n[matching]\np1 = 9\n";
        layers.file_text(Path::new("rig.toml"), file);
        layers.assignment("matching.paths=4");
        layers.assignment("output.record=not-again.mkv");
        let before = layers.finish().unwrap();
        let tuned = before
            .with_texts([
                ("matching", "p1", "auto"),
                ("matching", "speckle_range", "3.5"),
                ("matching", "left_right", "off"),
                ("colour", "map", "grey"),
            ])
            .unwrap();
        let text = tuned.to_file();
        assert_eq!(
            text,
            "\n[source]\nleft = 'l \"1\".mkv'\nright = \"r.mkv\"\n\n[matching]\npaths = 4\n\
             left_right = \"off\"\nspeckle_range = 3.5\n\n[colour]\nmap = \"grey\"\n"
        );
        let again = loaded(&text);
        assert_eq!(again.settings.matching, tuned.settings.matching);
        assert_eq!(again.settings.colour, tuned.settings.colour);
        assert_eq!(again.settings.source, tuned.settings.source);
        assert_eq!(again.settings.output, Settings::default().output);
    }
}
