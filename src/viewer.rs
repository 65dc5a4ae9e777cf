//! The exchange between a run and its viewers: settings to change. A viewer shows knobs and requests
//! values; the run applies them.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::Serialize;

use stereod_core::thread::locked;
use stereod_io::sink::colouring::Colouring;
use stereod_obstacles::zones::{Edit, ZoneRule};

#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    pub name: (&'static str, &'static str),
    pub group: &'static str,
    pub hint: &'static str,
    pub kind: KnobKind,
    /// Set if the setting also takes texts that a choice does not offer; the hint describes them.
    pub is_open: bool,
    /// Value as written in a configuration file, without quotation marks.
    pub value: String,
    /// Effective value behind a word such as `auto`.
    pub means: Option<String>,
    /// Reason why it cannot be changed in this run.
    pub locked: Option<String>,
}

impl Knob {
    /// Returns section and key of the setting, `matching.p1`: the name of a parameter.
    pub fn path(&self) -> String {
        format!("{}.{}", self.name.0, self.name.1)
    }

    pub fn label(&self) -> String {
        self.name.1.replace('_', " ")
    }

    /// Returns the value in the type of its kind. A word in place of a number stays a word.
    pub fn typed(&self) -> Typed<'_> {
        let word = Typed::Word(&self.value);
        match self.kind {
            KnobKind::Switch => Typed::Switch(self.value == "true"),
            KnobKind::Number { whole: true, .. } => self.value.parse().map_or(word, Typed::Whole),
            KnobKind::Number { .. } => self.value.parse().map_or(word, Typed::Real),
            KnobKind::Choice(_) => word,
        }
    }
}

/// Value of a knob in the type of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Typed<'a> {
    Switch(bool),
    Whole(i64),
    Real(f64),
    Word(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobKind {
    Number {
        /// Smallest value of the slider; others can be typed.
        low: f64,
        /// Largest value of the slider.
        high: f64,
        step: f64,
        /// Smallest and largest number that the setting takes.
        range: [f64; 2],
        /// Set if the setting takes whole numbers only.
        whole: bool,
        /// A word accepted in place of the number.
        word: Option<&'static str>,
    },
    Choice(&'static [&'static str]),
    Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerId {
    Window,
    Ros2,
    Client(ClientId),
}

/// Number of a client of the server. No other client of the run has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(pub u32);

/// Name of a request. Numbers of a viewer rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    pub viewer: ViewerId,
    pub number: u32,
}

/// Path of a setting, `matching.p1`, and a value as in a configuration file, without quotation marks.
pub type Wish = (String, String);

#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Set these settings, and leave all others as they are.
    Values { id: RequestId, values: Vec<Wish> },
    /// Return to the values of the configuration.
    Reset(RequestId),
    /// Add or remove a zone.
    Zone { id: RequestId, edit: Edit },
    /// Write a configuration file with the values in effect.
    Write,
}

/// The zones that a run watches, in the order of what it finds in them. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Zones(Arc<Mutex<Arc<[ZoneRule]>>>);

impl Zones {
    pub fn get(&self) -> Arc<[ZoneRule]> {
        locked(&self.0).clone()
    }

    pub fn set(&self, zones: Vec<ZoneRule>) {
        *locked(&self.0) = zones.into();
    }
}

/// Knobs, and the function that applies their values.
#[derive(Clone)]
pub struct Tuning {
    pub knobs: Vec<Knob>,
    /// Takes a request and never waits. [`Tuned`] is the answer.
    pub ask: Arc<dyn Fn(Ask) + Send + Sync>,
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("knobs", &self.knobs.len()).finish_non_exhaustive()
    }
}

/// Settings in effect after requests, or after a change from elsewhere. Every viewer gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The requests that are answered, each with the reason if it was refused and so has changed nothing.
    pub answers: Vec<(RequestId, Option<String>)>,
    pub knobs: Vec<Knob>,
    /// Time since when pairs are matched with them.
    pub since: Instant,
    pub colouring: Colouring,
}

impl Tuned {
    /// Returns the numbers of the viewer's requests that this answers, each with the reason if it was refused.
    pub fn answers_to(&self, viewer: ViewerId) -> impl Iterator<Item = (u32, Option<&String>)> {
        let own = self.answers.iter().filter(move |(id, _)| id.viewer == viewer);
        own.map(|(id, problem)| (id.number, problem.as_ref()))
    }
}

/// A viewer of a run: the window, or the live page.
pub trait Viewer: Send + Sync {
    /// Answers requests, or reports a change from elsewhere.
    fn tuned(&self, tuned: Tuned);

    fn saved(&self, message: Result<String, String>);
}
