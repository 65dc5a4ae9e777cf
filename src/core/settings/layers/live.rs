//! Settings that change during a run.

use toml::Value;

use super::super::matching::presets::PRESETS;
use super::super::schema::{self, Schema, same};
use super::{Error, Fitted, Layers, Loaded, Origin, dotted};

impl<S: Schema> Loaded<S> {
    /// Returns the value of a key, which must exist, as it was given: `auto` if it was not overridden.
    pub fn given(&self, section: &str, key: &str) -> &Value {
        &self.layers.table[section][key]
    }

    /// Reports whether the number of disparities is still to be chosen from the images.
    pub fn awaits_choice(&self) -> bool {
        self.settings.matching().disparities.is_none()
    }

    /// Reports whether it was chosen, so that `auto` has a meaning.
    pub fn has_chosen(&self) -> bool {
        self.layers.chosen.is_some()
    }

    /// Returns these settings with this number for `auto` disparities, whatever else is changed later.
    pub fn with_chosen(&self, disparities: usize) -> Result<Loaded<S>, Error> {
        Layers { chosen: Some(disparities), ..self.layers.clone() }.finish()
    }

    /// Returns the values that make the engine faster, if a rate was requested.
    pub fn fitted_values(&self) -> &[Fitted] {
        &self.layers.fitted
    }

    /// Returns these settings with values that make the engine faster.
    pub fn with_fitted(&self, fitted: &[Fitted]) -> Result<Loaded<S>, Error> {
        let mut layers = Layers { fitted: fitted.to_vec(), ..self.layers.clone() };
        for (key, text) in fitted {
            layers.put_text("matching", key, text, Origin::Fit);
        }
        layers.finish()
    }

    pub fn with_confidence(&self) -> Result<Loaded<S>, Error> {
        Layers { shows_confidence: true, ..self.layers.clone() }.finish()
    }

    /// Returns these settings for images that are white from this grey level on.
    pub fn with_white(&self, white: u8) -> Result<Loaded<S>, Error> {
        Layers { white, ..self.layers.clone() }.finish()
    }

    /// Returns these settings with other values for some keys, written as on the command line, and
    /// checked like every layer.
    pub fn with_texts<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Result<Loaded<S>, Error> {
        let mut layers = self.layers.clone();
        for (section, key, text) in changes {
            let value = schema::value_of_text::<S>(section, key, text);
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

    pub fn with_those_of<'a>(
        &self,
        other: &Loaded<S>,
        keys: impl IntoIterator<Item = &'a (String, String)>,
    ) -> Result<Loaded<S>, Error> {
        let mut layers = self.layers.clone();
        for (section, key) in keys {
            let value = other.given(section, key).clone();
            layers.put(section, key, value, other.layers.origin(section, key));
        }
        layers.finish()
    }

    pub fn differences(&self, other: &Loaded<S>) -> Vec<(String, String)> {
        let all = schema::all::<S>();
        let differing = all.filter(|(s, k)| !same(self.given(s, k), other.given(s, k)));
        differing.map(|(section, key)| (section.to_owned(), key.to_owned())).collect()
    }
}

impl<S: Schema> Layers<S> {
    fn take_back_tuned(&mut self) {
        let defaults = schema::defaults::<S>();
        for (key, _) in PRESETS.iter().flat_map(|preset| preset.values) {
            if self.origin("matching", key) == Origin::Window {
                self.origins.remove(&dotted("matching", key));
                self.table["matching"][*key] = defaults["matching"][*key].clone();
            }
        }
    }

    fn origin(&self, section: &str, key: &str) -> Origin {
        self.origins.get(&dotted(section, key)).cloned().unwrap_or_default()
    }
}
