//! `[[rig]]` in a configuration file: several rigs, each with values of its own over those of all.

use std::collections::btree_map::Entry;
use std::ops::Range;

use toml::de::DeValue;
use toml::{Spanned, Value};

use super::super::schema::{self, RIG_NAME, Schema, join};
use super::{Error, Layers, Loaded, Origin, SAME_KEYS, dotted, in_order};

/// A `[[rig]]`: section, key and value of all that it sets for itself.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    name: String,
    place: Origin,
    values: Vec<(String, String, Value, Origin)>,
}

/// The key of a file below which its rigs are listed.
pub(super) const RIG: &str = "rig";

impl<S: Schema> Loaded<S> {
    /// Returns the names of all rigs of the file.
    pub fn rigs(&self) -> impl Iterator<Item = &str> {
        self.layers.rigs.iter().map(|rig| &*rig.name)
    }

    /// Returns the name of the rig whose values are in effect.
    pub fn rig(&self) -> Option<&str> {
        self.layers.rig.as_deref()
    }
}

impl<S: Schema> Layers<S> {
    /// Keeps what each rig sets for itself.
    pub(super) fn put_rigs(
        &mut self,
        places: &Spanned<DeValue<'_>>,
        values: Value,
        at: &dyn Fn(Range<usize>) -> Origin,
    ) {
        let (Some(places), Value::Array(values)) = (places.get_ref().as_array(), values) else {
            let place = at(places.span());
            self.mistakes.push(format!("{place}: begin each rig with a line [[rig]]"));
            return;
        };
        for (place, values) in places.iter().zip(values) {
            let (Some(sections), Value::Table(mut values)) = (place.get_ref().as_table(), values)
            else {
                self.mistakes.push(format!("{}: begin each rig with [[rig]]", at(place.span())));
                continue;
            };
            let mut rig = Rig { name: String::new(), place: at(place.span()), values: Vec::new() };
            for (section, content) in in_order(sections) {
                let name = section.get_ref().as_ref();
                let value = values.remove(name).expect(SAME_KEYS);
                match value {
                    Value::String(text) if name == "name" => rig.name = text,
                    _ if schema::check_section::<S>(name).is_ok()
                        && !S::OF_RIGS.contains(&name) =>
                    {
                        self.mistakes.push(format!(
                            "{}: [{name}] holds for all rigs: write it above the first [[rig]]",
                            at(section.span())
                        ));
                    }
                    value => {
                        for (key, value, origin) in self.keys_of(section, content, value, at) {
                            if let Some(value) = self.checked(name, &key, value, &origin) {
                                rig.values.push((name.to_owned(), key, value, origin));
                            }
                        }
                    }
                }
            }
            let is_taken = self.rigs.iter().any(|other| other.name == rig.name);
            if is_taken || !is_name_of_rig(&rig.name) {
                self.mistakes.push(format!(
                    "{}: a [[rig]] needs a `name` of its own: 1 to 32 letters, digits, - and _",
                    at(place.span())
                ));
            }
            self.rigs.push(rig);
        }
    }

    /// Lays the values of this rig of the file over those of all rigs.
    pub fn rig(&mut self, name: &str) {
        let Some(Rig { name, place, values }) =
            self.rigs.iter().find(|rig| rig.name == name).cloned()
        else {
            // A file with a mistake may have been read in part only.
            if !self.mistakes.is_empty() {
                return;
            }
            let there_are = match &self.rigs[..] {
                [] => "the configuration file has no [[rig]]".to_owned(),
                rigs => format!("rigs: {}", join(rigs.iter().map(|rig| &*rig.name))),
            };
            self.mistakes.push(format!("unknown rig `{name}`; {there_are}"));
            return;
        };
        for &(section, key, value) in S::RIG_DEFAULTS {
            if let Entry::Vacant(origin) = self.origins.entry(dotted(section, key)) {
                origin.insert(place.clone());
                self.insert(section, key, value.into());
            }
        }
        for (section, key, value, origin) in values {
            self.insert(&section, &key, value);
            self.origins.insert(dotted(&section, &key), origin);
        }
        self.rig = Some(name);
    }

    /// Puts the name of the rig into all texts that ask for it. Values for all rigs of a file wait for the name of one.
    pub(super) fn put_name(&mut self) -> Result<(), Error> {
        let mut mistakes = Vec::new();
        if self.rig.is_none() && !self.rigs.is_empty() {
            return Ok(());
        }
        for (section, row) in schema::rows::<S>() {
            let value = &mut self.table[section][row.key];
            let Some(text) = value.as_str().filter(|text| text.contains(RIG_NAME)) else {
                continue;
            };
            if let Some(rig) = &self.rig {
                *value = text.replace(RIG_NAME, rig).into();
            }
            if let Err(misfit) = schema::check_exactly(section, row, value) {
                let origin = self.origins.get(&dotted(section, row.key));
                mistakes.push(format!("{}: {misfit}", origin.cloned().unwrap_or_default()));
            }
        }
        if mistakes.is_empty() { Ok(()) } else { Err(Error(mistakes)) }
    }
}

/// Reports whether a text can be a part of addresses, names of files and coordinate frames.
fn is_name_of_rig(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(is_part)
}
