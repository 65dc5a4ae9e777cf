//! Settings that can be changed from the window while pairs flow: the window shows knobs and asks
//! for values; it does not know what they do.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::sink::colouring::Colouring;

/// Something that can be changed while pairs flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Section and key of the setting.
    pub name: (&'static str, &'static str),
    /// Heading that it stands below.
    pub group: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Effect, in a sentence.
    pub hint: &'static str,
    /// Kind of its values.
    pub kind: KnobKind,
    /// Value that it is set to, as it would be written in a file, without quotation marks.
    pub value: String,
    /// Meaning of the value, where it is a word such as `auto`.
    pub means: Option<String>,
    /// Why it cannot be changed in this run.
    pub locked: Option<String>,
}

/// Kind of the values that a knob takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobKind {
    /// A number.
    Number {
        /// The smallest that the slider offers; others can be typed.
        low: f64,
        /// The largest that it offers.
        high: f64,
        /// So far apart are those that it offers.
        step: f64,
        /// A word that may stand in place of the number.
        word: Option<&'static str>,
    },
    /// One of these.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Switch,
}

/// Section, key and value of a setting.
pub type Wish = (&'static str, &'static str, String);

/// Request of the window.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// These values; whatever was asked for before and not begun with is void.
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

/// Knobs, and the way in which they change something.
#[derive(Clone)]
pub struct Tuning {
    /// The knobs at the start.
    pub knobs: Vec<Knob>,
    /// Takes what is asked for, and never waits; [`super::Remote::tuned`] answers.
    pub ask: Arc<dyn Fn(Ask) + Send + Sync>,
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").field("knobs", &self.knobs.len()).finish_non_exhaustive()
    }
}

/// Answer to a request, or news of a change that came from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The request, where it was one for values.
    pub number: Option<u64>,
    /// The knobs as they are in effect.
    pub knobs: Vec<Knob>,
    /// The colours in effect.
    pub colouring: Colouring,
    /// Why the values could not be had, if so; everything then is as it was.
    pub problem: Option<String>,
}
