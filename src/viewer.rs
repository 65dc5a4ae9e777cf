//! The exchange between a run and its viewers: settings to change. A viewer shows knobs and requests
//! values; the run applies them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use stereod_core::files;
use stereod_core::thread::locked;
use stereod_io::control::Recordings;
use stereod_io::playback::{Playback, SPEEDS};
use stereod_io::sink::colouring::Colouring;
use stereod_io::sink::segments::{free_bytes, is_segment};
use stereod_obstacles::zones::{Edit, ZoneRule};

#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    pub name: (&'static str, &'static str),
    pub group: &'static str,
    /// Name in plain words.
    pub label: &'static str,
    /// Set if it is folded away below the others of its group.
    pub is_rare: bool,
    /// Flag of the command line that sets it: `--p1`.
    pub flag: Option<&'static str>,
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

    /// Returns the key, where the label is not the same.
    pub fn key_besides(&self) -> Option<&'static str> {
        Some(self.name.1).filter(|key| *key != self.label)
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

/// Times of a recording that viewers move through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub begin: Duration,
    pub length: Duration,
    /// Time from pair to pair.
    pub period: Duration,
    /// True if pairs are shown at the recorded pace, so that there is a speed.
    pub is_paced: bool,
}

impl Span {
    /// Marks the begin or the end of a part at a pair, or removes the mark there. A mark behind the other one
    /// removes that. Returns the marked part as flags.
    pub fn mark(&self, playback: &Playback, is_end: bool, position: Duration) -> String {
        // The part ends behind the pair.
        let behind = if is_end { self.period / 2 } else { Duration::ZERO };
        let time = position.saturating_add(behind);
        let which = usize::from(is_end);
        let mut marks = [None; 2];
        playback.change(|playing| {
            let is_there = playing.marks[which] == Some(time);
            playing.marks[which] = (!is_there).then_some(time);
            if let [Some(begin), Some(end)] = playing.marks
                && end <= begin
            {
                playing.marks[1 - which] = None;
            }
            marks = playing.marks;
        });
        let [begin, end] = marks;
        if begin.or(end).is_none() {
            return "no part is marked".to_owned();
        }
        let begin = begin.unwrap_or_default();
        let part =
            |end: Duration| format!(" --duration {:.3}", end.saturating_sub(begin).as_secs_f64());
        format!("marked: --start {:.3}{}", begin.as_secs_f64(), end.map(part).unwrap_or_default())
    }

    /// Sets the speed, as far as there is one.
    pub fn set_speed(
        &self,
        playback: &Playback,
        of: impl FnOnce(f64) -> f64,
    ) -> Result<(), String> {
        if !self.is_paced {
            return Err("pairs come as fast as they are matched: there is no speed".into());
        }
        playback.change(|playing| {
            playing.speed = of(playing.speed).clamp(SPEEDS[0], SPEEDS[1]);
        });
        Ok(())
    }
}

/// The files of frames of a run, which viewers start and stop together. Clones are the same.
#[derive(Clone)]
pub struct Recorder {
    pub recordings: Recordings,
    /// Returns the files and folders that a recording of this name has, or one without a name.
    pub files: FilesOf,
}

pub type FilesOf = Arc<dyn Fn(Option<&str>) -> Vec<PathBuf> + Send + Sync>;

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("recordings", &self.recordings).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Starts a recording whose files have this name, or that of the settings if it is empty. Looks at the
    /// disk. Fails if the name cannot be that of a new file.
    pub fn start(&self, name: &str) -> Result<(), String> {
        let name = name.trim();
        if name.is_empty() {
            self.recordings.start(None);
            return Ok(());
        }
        if let Some(why) = flaw_of_name(name) {
            return Err(format!("{name:?} is no name for a recording: {why}"));
        }
        // A pipe or a device has no other name.
        let named = (self.files)(Some(name));
        if let Some(file) = named.iter().find(|file| is_taken(file)) {
            return Err(format!("{} is there already; give another name", file.display()));
        }
        match self.recordings.start(Some(name)) {
            true => Ok(()),
            false => Err("a recording is being written; stop it first".into()),
        }
    }

    /// Returns the bytes that the fullest disk has free for the files. Looks at the disks.
    pub fn free(&self) -> Option<u64> {
        let files = (self.files)(None);
        files.iter().filter_map(|file| free_bytes(files::folder_of(file)).ok()).min()
    }

    /// Returns the files and folders of all recordings so far.
    pub fn written(&self) -> Vec<PathBuf> {
        let named = self.recordings.names();
        let all = [None].into_iter().chain(named.iter().map(|name| Some(&**name)));
        all.flat_map(|name| (self.files)(name)).collect()
    }
}

/// Reports whether a file, a folder or segments of this name are there. A limit of segments would remove old ones,
/// which may be what the run reads.
fn is_taken(path: &Path) -> bool {
    let mut others = std::fs::read_dir(files::folder_of(path)).into_iter().flatten().flatten();
    path.is_file() || path.is_dir() || others.any(|it| is_segment(path, &it.file_name()))
}

/// Returns why a text cannot be the name of a file, if so.
fn flaw_of_name(name: &str) -> Option<&'static str> {
    if name.contains(['/', '\\']) {
        return Some("it names a folder; the files go where the settings say");
    }
    if name.starts_with('.') {
        return Some("it begins with a dot");
    }
    if name.contains(|c: char| c.is_control() || ['%', '#'].contains(&c)) {
        return Some("it has a character that cannot stand in a name");
    }
    (name.len() > LONGEST_NAME).then_some("it is too long")
}

/// Longest name of a recording in bytes, of the 255 that file systems take: the names of outputs and the time
/// and number of a segment follow it.
const LONGEST_NAME: usize = 180;

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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_recording_has_a_plain_name_that_no_file_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let files = move |name: Option<&str>| vec![path.join(name.unwrap_or("out"))];
        let recorder = Recorder { recordings: Recordings::default(), files: Arc::new(files) };
        recorder.recordings.stop();
        for name in ["../a", "a/b", "a\\b", ".a", "..", "a\nb", "%06d", "##", &"x".repeat(181)] {
            let refused = recorder.start(name).unwrap_err();
            assert!(refused.contains("is no name"), "{refused}");
        }
        fs::write(folder.path().join("yard"), "x").unwrap();
        assert!(recorder.start("yard").unwrap_err().contains("yard is there already"));
        fs::write(folder.path().join("wood-20261121T101500Z-00001.mkv"), "x").unwrap();
        assert!(recorder.start("wood.mkv").unwrap_err().contains("wood.mkv is there already"));
        assert!(!recorder.recordings.is_on());
        recorder.start(" yard 2 ").unwrap();
        assert_eq!(recorder.recordings.now().unwrap().name.as_deref(), Some("yard 2"));
        assert!(recorder.start("other").unwrap_err().contains("stop it first"));
        recorder.recordings.stop();
        recorder.start("").unwrap();
        assert_eq!(recorder.recordings.now().unwrap().name, None);
        let written = ["out", "yard 2"].map(|name| folder.path().join(name));
        assert_eq!(recorder.written(), written);
        assert!(recorder.free().is_some());
    }
}
