//! The newest warnings of this process, for viewers that do not see its terminal.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use stereod_core::thread::locked;

/// Those of a rig, or of the whole program.
const MOST: usize = 20;

/// Time for which a warning counts as a present problem.
const PRESENT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Name of its rig; `None` if it is about the whole program.
    #[serde(skip)]
    rig: Option<String>,
    /// Text of the last time.
    pub text: String,
    /// Number of times, also with other numbers in the text.
    pub count: u64,
    #[serde(rename = "ago_s", serialize_with = "ago")]
    pub last: Instant,
}

fn ago<S: Serializer>(time: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.elapsed().as_secs())
}

impl Warning {
    /// Reports whether it counts as a present problem.
    pub fn is_present(&self) -> bool {
        self.last.elapsed() < PRESENT
    }
}

static NEWEST: Mutex<Warnings> = Mutex::new(Warnings(Vec::new()));

/// Notes a warning of a rig, or of the whole program. It must hold no secrets.
pub fn note(rig: Option<String>, text: String) {
    locked(&NEWEST).note(rig, text, Instant::now());
}

/// Returns the warnings of this rig and of the whole program.
pub fn newest(rig: Option<&str>) -> Vec<Warning> {
    let concerns = |it: &&Warning| it.rig.is_none() || it.rig.as_deref() == rig;
    locked(&NEWEST).0.iter().filter(concerns).cloned().collect()
}

struct Warnings(Vec<Warning>);

impl Warnings {
    fn note(&mut self, rig: Option<String>, text: String, now: Instant) {
        let is_of_rig = |known: &Warning| known.rig == rig;
        let before = self.0.iter().position(|it| is_of_rig(it) && is_alike(&it.text, &text));
        let count = before.map_or(0, |before| self.0.remove(before).count);
        if self.0.iter().filter(|it| is_of_rig(it)).count() == MOST {
            let oldest = self.0.iter().position(is_of_rig);
            oldest.map(|oldest| self.0.remove(oldest));
        }
        self.0.push(Warning { rig, text, count: count + 1, last: now });
    }
}

/// Reports whether two texts are the same but for their numbers.
fn is_alike(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        let parts = text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    words(a) == words(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_warning_is_counted_and_the_newest_stay() {
        let mut warnings = Warnings(Vec::new());
        let now = Instant::now();
        for number in 1..=100 {
            warnings.note(None, format!("left: {number} damaged frames"), now);
            warnings.note(None, format!("warning {}", "x".repeat(number)), now);
        }
        warnings.note(None, "left: 7 frames".into(), now);
        assert_eq!(warnings.0.len(), MOST);
        let damaged: Vec<_> = warnings.0.iter().filter(|it| it.text.contains("damaged")).collect();
        assert_eq!((damaged[0].text.as_str(), damaged[0].count), ("left: 100 damaged frames", 100));
        assert_eq!((damaged.len(), warnings.0[MOST - 1].count), (1, 1));
        assert!(warnings.0[0].is_present());
        // Those of a rig drive out no others.
        warnings.note(Some("front".into()), "left: 1 damaged frames".into(), now);
        assert_eq!((warnings.0.len(), warnings.0[MOST].count), (MOST + 1, 1));
    }
}
