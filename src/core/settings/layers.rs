//! The layers: defaults < file < environment < `--set` and flags, each key with its origin.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use self::defaults::{follow_engine, resolve};
use super::matching;
use super::matching::presets::PRESETS;
use super::schema::Schema;
use super::schema::{self, join};
use super::suggest::nearest;

use crate::engine::PriorFrom;

use crate::matching::Params;
use crate::matching::params::Chosen;
use crate::matching::saturation::WHITE;
use crate::reading;
use crate::redact::{redact, remember};

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// Built in.
    #[default]
    Default,
    /// A line of a configuration file, counted from 1.
    File {
        /// The file's name as given.
        path: PathBuf,
        line: usize,
    },
    Environment(String),
    /// `--set` with this argument.
    Set(String),
    /// A flag such as `--p1`.
    Flag(&'static str),
    Parameter,
    /// Default for this cost or engine.
    For(&'static str),
    Preset(&'static str),
    /// Changed in the window while it was in effect.
    Window,
    /// Chosen from the first pairs of a run, because the value here is `auto`.
    Pictures(Box<Origin>),
    /// Chosen at the start of a run to reach the requested rate.
    Fit,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => f.write_str(name),
            Origin::Set(argument) => write!(f, "--set {}", redact(argument)),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Parameter => f.write_str("parameter"),
            Origin::For(name) => write!(f, "default for {name}"),
            Origin::Preset(name) => write!(f, "preset {name}"),
            Origin::Window => f.write_str("a change while running"),
            Origin::Pictures(said) => write!(f, "chosen from the pictures ({said})"),
            Origin::Fit => f.write_str("chosen for --fit"),
        }
    }
}

/// All mistakes in the settings, each with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error(Vec<String>);

impl Error {
    pub fn mistakes(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            all => {
                write!(f, "{} mistakes in the settings:", all.len())?;
                all.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
            }
        }
    }
}

/// The settings in effect.
#[derive(Clone, Debug)]
pub struct Loaded<S> {
    /// The checked values.
    pub settings: S,
    /// The checked parameters of the matcher.
    pub params: Params,
    /// The values as in a file, with numbers in place of every `auto` that depends on the cost or
    /// on the images.
    values: Table,
    origins: BTreeMap<String, Origin>,
    layers: Layers<S>,
}

impl<S: Schema> Loaded<S> {
    pub fn origin(&self, section: &str, key: &str) -> &Origin {
        static DEFAULT: Origin = Origin::Default;
        self.origins.get(&dotted(section, key)).unwrap_or(&DEFAULT)
    }

    /// Returns the values as in a file, by section.
    pub fn values(&self) -> &Table {
        &self.values
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.layers.files
    }
}

/// A key of `[matching]` with a value that makes the engine faster, as on the command line.
pub type Fitted = (&'static str, String);

/// Settings under construction: add layers from the lowest to the highest, then [`Layers::finish`].
/// Mistakes are collected, so that all of them are reported at once.
#[derive(Clone, Debug)]
pub struct Layers<S> {
    of: PhantomData<S>,
    table: Table,
    origins: BTreeMap<String, Origin>,
    mistakes: Vec<String>,
    /// The configuration files so far.
    files: Vec<PathBuf>,
    rigs: Vec<rigs::Rig>,
    /// The name of the rig whose values are in effect.
    rig: Option<String>,
    /// The number of disparities chosen for `auto`.
    chosen: Option<usize>,
    /// Values of `[matching]` with which the rate was reached.
    fitted: Vec<Fitted>,
    shows_confidence: bool,
    /// Grey level from which images are white.
    white: u8,
}

/// The key that a value is for: `prior` may also name a network.
fn meant<'a>(section: &'a str, key: &'a str, text: &str) -> (&'a str, &'a str) {
    match (section, key) {
        ("matching", "prior") if PriorFrom::is_meant(text) => ("engine", "prior_from"),
        named => named,
    }
}

impl<S: Schema> Default for Layers<S> {
    fn default() -> Self {
        Layers::new()
    }
}

const PREFIX: &str = "STEREOD_";

const TEST_PREFIX: &str = "STEREOD_TEST_";

/// Largest size of a configuration file in bytes; one with every key and comment has 15 KiB.
pub const FILE_MAX: usize = 1 << 20;

/// Number of mistakes after which the rest of a file is skipped.
pub const MISTAKES_MAX: usize = 50;

impl<S: Schema> Layers<S> {
    /// Starts with the built-in defaults.
    pub fn new() -> Self {
        Layers {
            of: PhantomData,
            table: schema::defaults::<S>(),
            origins: BTreeMap::new(),
            mistakes: Vec::new(),
            files: Vec::new(),
            rigs: Vec::new(),
            rig: None,
            chosen: None,
            fitted: Vec::new(),
            shows_confidence: false,
            white: WHITE,
        }
    }

    pub fn file(&mut self, path: &Path) {
        self.files.push(path.to_owned());
        match reading::read(path, FILE_MAX as u64) {
            Ok(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => self.file_text(path, text),
                Err(error) => {
                    let line = line_at(&bytes, error.valid_up_to());
                    self.mistakes.push(format!("{}:{line}: not UTF-8 text", path.display()));
                }
            },
            Err(error) => {
                let what = match error.kind() {
                    ErrorKind::FileTooLarge => "is too large for a configuration",
                    _ => "cannot be read",
                };
                self.mistakes
                    .push(format!("the configuration file {} {what}: {error}", path.display()));
            }
        }
    }

    pub fn file_text(&mut self, path: &Path, text: &str) {
        let place = |line: usize| Origin::File { path: path.to_owned(), line };
        if text.len() > FILE_MAX {
            self.mistakes.push(format!(
                "{}: too large for a configuration ({} KiB; all there is to say fits {} KiB)",
                path.display(),
                text.len() >> 10,
                FILE_MAX >> 10
            ));
            return;
        }
        // Parsed twice: once for the places of the keys, once for plain values.
        let parsed = DeTable::parse(text).and_then(|places| Ok((places, text.parse::<Table>()?)));
        let (places, mut values) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let place = place(line_at(text.as_bytes(), at));
                self.mistakes.push(format!("{place}: {}", error.message().replace('\n', ", ")));
                return;
            }
        };
        let at = |span: Range<usize>| place(line_at(text.as_bytes(), span.start));
        let before = self.mistakes.len();
        for (section, content) in in_order(places.get_ref()) {
            if self.mistakes.len() - before > MISTAKES_MAX {
                break;
            }
            let name = section.get_ref().as_ref();
            let value = values.remove(name).expect(SAME_KEYS);
            if name == rigs::RIG && !S::OF_RIGS.is_empty() {
                self.put_rigs(content, value, &at);
                continue;
            }
            for (key, value, origin) in self.keys_of(section, content, value, &at) {
                if self.mistakes.len() - before > MISTAKES_MAX {
                    break;
                }
                self.put(name, &key, value, origin);
            }
        }
    }

    /// Returns keys, values and places of a section, in the order of the file.
    fn keys_of(
        &mut self,
        section: &Spanned<Cow<'_, str>>,
        places: &Spanned<DeValue<'_>>,
        values: Value,
        at: &dyn Fn(Range<usize>) -> Origin,
    ) -> Vec<(String, Value, Origin)> {
        let name = section.get_ref().as_ref();
        let mistake = match (places.get_ref().as_table(), values, schema::check_section::<S>(name))
        {
            (Some(keys), Value::Table(mut values), Ok(())) => {
                let found = |key: &Spanned<Cow<'_, str>>| {
                    let name = key.get_ref().as_ref();
                    let value = values.remove(name).expect(SAME_KEYS);
                    (name.to_owned(), value, at(key.span()))
                };
                return in_order(keys).into_iter().map(|(key, _)| key).map(found).collect();
            }
            (Some(_), _, Err(misfit)) => misfit,
            _ => Self::no_section(name),
        };
        self.mistakes.push(format!("{}: {mistake}", at(section.span())));
        Vec::new()
    }

    /// Returns the message on `name = ...` where a section is expected.
    fn no_section(name: &str) -> String {
        if schema::check_section::<S>(name).is_ok() {
            return format!("`{name}` is a section: write [{name}] and its keys below");
        }
        match schema::all::<S>().find(|(_, key)| *key == name) {
            Some((home, _)) => format!("the key `{name}` belongs below the line [{home}]"),
            None => format!(
                "unknown key `{name}` outside a section; sections: {}",
                join(schema::sections::<S>())
            ),
        }
    }

    /// Adds variables named `STEREOD_SECTION_KEY`; others are ignored.
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        let mut ours: Vec<(String, OsString)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX))
            .collect();
        ours.sort();
        for (name, value) in ours {
            let known = schema::all::<S>().find(|(section, key)| variable(section, key) == name);
            let Some((section, key)) = known else {
                self.mistakes.push(Self::no_variable(&name));
                continue;
            };
            match value.into_string() {
                Ok(text) => self.put_text(section, key, &text, Origin::Environment(name)),
                Err(_) => self.mistakes.push(format!("{name}: not UTF-8 text")),
            }
        }
    }

    fn no_variable(name: &str) -> String {
        let all: Vec<String> =
            schema::all::<S>().map(|(section, key)| variable(section, key)).collect();
        let upper = name.to_uppercase();
        let meant = nearest(&upper, all.iter().map(String::as_str))
            .map(|near| format!(" did you mean {near}?"))
            .unwrap_or_default();
        let section =
            schema::sections::<S>().find(|section| upper.starts_with(&variable(section, "")));
        let alternatives = match section {
            Some(section) => format!("keys of [{section}]: {}", join(schema::keys::<S>(section))),
            None => format!(
                "variables are named STEREOD_SECTION_KEY, with the sections {}",
                join(schema::sections::<S>())
            ),
        };
        format!("{name}: unknown variable;{meant} {alternatives}")
    }

    /// Adds `section.key=value`.
    pub fn assignment(&mut self, argument: &str) {
        let mistake = |what: String| format!("{}: {what}", Origin::Set(argument.into()));
        let form = "expected section.name=value, for example matching.p1=7";
        let Some((name, text)) = argument.split_once('=') else {
            self.mistakes.push(mistake(form.into()));
            return;
        };
        let Some((section, key)) = name.trim().split_once('.') else {
            let homes = schema::all::<S>().filter(|(_, key)| *key == name.trim());
            let meant: Vec<String> =
                homes.map(|(section, key)| format!("; did you mean {section}.{key}?")).collect();
            self.mistakes.push(mistake(format!("{form}{}", meant.concat())));
            return;
        };
        self.put_text(section, key, text.trim(), Origin::Set(argument.into()));
    }

    pub fn flag(&mut self, section: &str, key: &str, flag: &'static str, value: Value) {
        self.put(section, key, value, Origin::Flag(flag));
    }

    pub fn parameter(&mut self, name: &str, text: &str) {
        let (section, row) = match schema::parameter(name) {
            Ok(found) => found,
            Err(unknown) => return self.mistakes.push(unknown),
        };
        let (section, key) = meant(section, row.key, text);
        match schema::value_of_text::<S>(section, key, text) {
            Ok(value) if key == "disparities" && value.is_str() => {
                self.mistakes.push(format!("`{name}` is a number here, not {value}"));
            }
            Ok(value) => self.put(section, key, value, Origin::Parameter),
            Err(misfit) => self.mistakes.push(misfit.replace(&format!(" in [{section}]"), "")),
        }
    }

    fn put_text(&mut self, section: &str, key: &str, text: &str, origin: Origin) {
        let (section, key) = meant(section, key, text);
        match schema::value_of_text::<S>(section, key, text) {
            Ok(value) => self.put(section, key, value, origin),
            Err(misfit) => self.mistakes.push(format!("{origin}: {misfit}")),
        }
    }

    fn put(&mut self, section: &str, key: &str, value: Value, origin: Origin) {
        let (section, key) = meant(section, key, value.as_str().unwrap_or_default());
        let Some(value) = self.checked(section, key, value, &origin) else { return };
        self.insert(section, key, value);
        self.origins.insert(dotted(section, key), origin);
    }

    fn checked(
        &mut self,
        section: &str,
        key: &str,
        value: Value,
        origin: &Origin,
    ) -> Option<Value> {
        value.as_str().into_iter().for_each(remember);
        let checked = schema::check_value::<S>(section, key, value);
        checked.map_err(|misfit| self.mistakes.push(format!("{origin}: {misfit}"))).ok()
    }

    fn insert(&mut self, section: &str, key: &str, value: Value) {
        let table = self.table.get_mut(section).and_then(Value::as_table_mut);
        table.expect("every section is a table").insert(key.to_owned(), value);
    }

    /// Returns the settings in effect.
    pub fn finish(mut self) -> Result<Loaded<S>, Error> {
        if !self.mistakes.is_empty() {
            return Err(Error(self.mistakes));
        }
        self.apply_preset();
        self.put_name()?;
        let layers = self.clone();
        let mut values = self.table;
        let cost = resolve::<S>(&mut values);
        follow_engine(&mut values, &mut self.origins, cost);
        let checked: S = schema::typed(values.clone());
        if let Err((section, conflict)) = checked.check() {
            let origin =
                self.origins.get(&dotted(section, conflict.key)).cloned().unwrap_or_default();
            return Err(Error(vec![format!(
                "{origin}: wrong value for `{}` in [{section}]: expected {}",
                conflict.key, conflict.expected
            )]));
        }
        if let (None, Some(count)) = (checked.matching().disparities, self.chosen) {
            values["matching"]["disparities"] = Value::Integer(count as i64);
            let said = self.origins.entry(dotted("matching", "disparities")).or_default();
            *said = Origin::Pictures(Box::new(said.clone()));
        }
        let settings: S = schema::typed(values.clone());
        let mut params = settings.matching().params().map_err(|error| {
            let set: Vec<String> = matching::keys_of(&error)
                .iter()
                .filter_map(|key| {
                    let name = dotted("matching", key);
                    let origin = self.origins.get(&name).filter(|&from| *from != Origin::Parameter);
                    Some(format!("{name}: {}", origin?))
                })
                .collect();
            let origin =
                if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) };
            let error = error.to_string();
            // The library names parameters, the program flags.
            let error = match self.origins.values().any(|origin| *origin == Origin::Parameter) {
                true => error,
                false => S::worded(error),
            };
            Error(vec![format!("{error}{origin}")])
        })?;
        params.odometry |= settings.shows_odometry();
        if self.shows_confidence || settings.shows_confidence() || params.odometry {
            params.confidence.get_or_insert(0);
        }
        params.white = self.white;
        let is_chosen = |keys: &[&str]| {
            keys.iter().any(|key| self.origins.contains_key(&dotted("matching", key)))
        };
        params.chosen = Chosen {
            window: is_chosen(&["cost_window", "cost_window_where"]),
            prior: is_chosen(&["prior", "prior_strength"]),
            paths: is_chosen(&["paths"]),
            p1: is_chosen(&["p1"]),
            p2: is_chosen(&["p2"]),
            p2_mode: is_chosen(&["p2_mode", "p2_min", "p2_slope"]),
            median: is_chosen(&["median"]),
            speckle: is_chosen(&["speckle_size", "speckle_range"]),
        };
        for (section, row) in schema::rows::<S>().filter(|(_, row)| row.by_cost.is_some()) {
            self.origins.entry(dotted(section, row.key)).or_insert(Origin::For(cost));
        }
        Ok(Loaded { settings, params, values, origins: self.origins, layers })
    }
}

impl<S: Schema> Layers<S> {
    /// Puts the values of the preset below those of all layers but the defaults.
    fn apply_preset(&mut self) {
        let keys = self.table["matching"].as_table_mut().expect("every section is a table");
        let defaults = schema::defaults::<S>();
        // Those of the preset before.
        self.origins.retain(|name, origin| {
            let key =
                name.strip_prefix("matching.").filter(|_| matches!(origin, Origin::Preset(_)));
            key.iter().for_each(|&key| {
                keys.insert(key.to_owned(), defaults["matching"][key].clone());
            });
            key.is_none()
        });
        let name = keys["preset"].as_str();
        let Some(preset) = PRESETS.iter().find(|preset| Some(preset.name) == name) else { return };
        for &(key, value) in preset.values {
            if let Entry::Vacant(origin) = self.origins.entry(dotted("matching", key)) {
                origin.insert(Origin::Preset(preset.name));
                keys.insert(key.to_owned(), value.into());
            }
        }
    }
}

const SAME_KEYS: &str = "both readings of a file hold the same keys";

fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<Cow<'i, str>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Returns the line, counted from 1, of a byte of a text.
fn line_at(text: &[u8], byte: usize) -> usize {
    1 + text[..byte.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

fn dotted(section: &str, key: &str) -> String {
    format!("{section}.{key}")
}

pub fn variable(section: &str, key: &str) -> String {
    format!("{PREFIX}{section}_{key}").to_uppercase()
}

mod defaults;
mod live;
mod rigs;
