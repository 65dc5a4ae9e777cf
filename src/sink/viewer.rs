//! The exchange between a run and its viewers: settings to change. A viewer shows knobs and requests
//! values; the run applies them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::sink::colouring::Colouring;

/// A setting that can be changed during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Section and key of the setting.
    pub name: (&'static str, &'static str),
    /// Heading of its group.
    pub group: &'static str,
    pub hint: &'static str,
    pub kind: KnobKind,
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

    /// Returns the key in words.
    pub fn label(&self) -> String {
        self.name.1.replace('_', " ")
    }
}

/// Kind of the values that a knob takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobKind {
    Number {
        /// Smallest value of the slider; others can be typed.
        low: f64,
        /// Largest value of the slider.
        high: f64,
        /// Step of the slider.
        step: f64,
        /// A word accepted in place of the number.
        word: Option<&'static str>,
    },
    Choice(&'static [&'static str]),
    Switch,
}

/// Section, key and value of a setting.
pub type Wish = (&'static str, &'static str, String);

/// Request of a viewer.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Apply these values; earlier requests that were not begun are void.
    Values {
        /// Number of this request, above those of earlier ones.
        number: u64,
        /// The value of every knob.
        values: Vec<Wish>,
    },
    /// The values of the configuration.
    Reset,
    /// A configuration file with the values in effect.
    Write(PathBuf),
}

/// Knobs, and the function that applies their values.
#[derive(Clone)]
pub struct Tuning {
    /// The knobs at the start.
    pub knobs: Vec<Knob>,
    /// Takes a request and never waits. [`Tuned`] is the answer.
    pub ask: Arc<dyn Fn(Ask) + Send + Sync>,
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("knobs", &self.knobs.len()).finish_non_exhaustive()
    }
}

/// Answer to a request, or a change from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Number of the request for values, if it was one.
    pub number: Option<u64>,
    /// The knobs in effect.
    pub knobs: Vec<Knob>,
    /// Time since when pairs are matched with them.
    pub since: Instant,
    /// The colours in effect.
    pub colouring: Colouring,
    /// Reason for a refusal; then nothing has changed.
    pub problem: Option<String>,
}

/// A viewer of a run: the window, or the live page.
pub trait Viewer: Send + Sync {
    /// Answers a request, or reports a change from elsewhere.
    fn tuned(&self, tuned: Tuned);

    /// Reports that a file was written, or why not.
    fn saved(&self, message: Result<String, String>);
}
