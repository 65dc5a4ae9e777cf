//! Stopping and pausing, shared by every part of the pipeline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::playback::Playback;
use stereod_core::thread::locked;

/// A flag shared by threads. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Clears the switch and returns whether it was set.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// A pair on the screen: its number and its time.
pub type Shown = (u64, Duration);

/// A pause of the source. Pairs that were delivered before it are still matched, but viewers do not show them.
/// Clones are the same pause.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<Mutex<Paused>>);

#[derive(Debug, Default)]
struct Paused {
    is_set: bool,
    /// Begin of the pause; `None` at the end of a recording, whose last pairs are shown.
    since: Option<Instant>,
    /// True if a viewer has paused that knows the pair on the screen.
    by_window: bool,
    /// The pair on the screen, to go on from.
    shown: Option<Shown>,
}

impl Pause {
    pub fn set(&self, on: bool) {
        let mut paused = locked(&self.0);
        match on {
            false => paused.is_set = false,
            true if paused.is_set => {}
            true => {
                *paused = Paused { is_set: true, since: Some(Instant::now()), ..Paused::default() }
            }
        }
    }

    /// Begins a pause at the pair in the window, also if the recording has ended and later pairs are on their way.
    pub fn hold(&self, shown: Shown) {
        let mut paused = locked(&self.0);
        if !paused.is_set || paused.since.is_none() {
            let (since, shown) = (Some(Instant::now()), Some(shown));
            *paused = Paused { is_set: true, since, by_window: true, shown };
        }
    }

    /// Begins a pause once all pairs are shown.
    pub fn set_at_end(&self) {
        let mut paused = locked(&self.0);
        if !paused.is_set {
            *paused = Paused { is_set: true, ..Paused::default() };
        }
    }

    pub fn is_set(&self) -> bool {
        locked(&self.0).is_set
    }

    /// Reports whether a viewer shows a pair that was delivered at this time: all but those before the pause.
    pub fn shows(&self, delivered: Instant) -> bool {
        let paused = locked(&self.0);
        !paused.is_set || paused.since.is_none_or(|since| delivered >= since)
    }

    /// The same for the window, where a pause of another viewer begins with the last pair that was delivered.
    pub fn window_shows(&self, delivered: Instant) -> bool {
        !locked(&self.0).by_window || self.shows(delivered)
    }

    /// Returns the pair at which the window has paused, during the pause.
    pub fn shown(&self) -> Option<Shown> {
        let paused = locked(&self.0);
        paused.shown.filter(|_| paused.is_set)
    }

    /// Returns that pair once after the pause.
    pub fn take_shown(&self) -> Option<Shown> {
        let mut paused = locked(&self.0);
        if paused.is_set { None } else { paused.shown.take() }
    }

    /// Forgets that pair, because another one is on its way to the screen.
    pub fn forget_shown(&self) {
        locked(&self.0).shown = None;
    }
}

/// A recording: all that files of frames get from one start to the next stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub number: u64,
    /// Name of its files; `None`: that of the settings.
    pub name: Option<Arc<str>>,
}

/// The recording that frames belong to, and the earlier ones. Clones are the same.
#[derive(Clone, Debug)]
pub struct Recordings(Arc<Mutex<Recorded>>);

#[derive(Debug)]
struct Recorded {
    now: Option<Recording>,
    /// Recordings so far.
    count: u64,
    /// Names so far, each once.
    names: Vec<Arc<str>>,
}

impl Default for Recordings {
    /// A recording of files with the names of the settings.
    fn default() -> Self {
        let (now, names) = (Some(Recording { number: 0, name: None }), Vec::new());
        Self(Arc::new(Mutex::new(Recorded { now, count: 1, names })))
    }
}

impl Recordings {
    /// Starts the next recording. Returns false during one.
    pub fn start(&self, name: Option<&str>) -> bool {
        let mut recorded = locked(&self.0);
        let is_first = recorded.now.is_none();
        if is_first {
            let name: Option<Arc<str>> = name.map(Into::into);
            let new = name.iter().filter(|name| !recorded.names.contains(name));
            let new: Vec<_> = new.cloned().collect();
            recorded.names.extend(new);
            recorded.now = Some(Recording { number: recorded.count, name });
            recorded.count += 1;
        }
        is_first
    }

    pub fn stop(&self) {
        locked(&self.0).now = None;
    }

    pub fn now(&self) -> Option<Recording> {
        locked(&self.0).now.clone()
    }

    pub fn is_on(&self) -> bool {
        locked(&self.0).now.is_some()
    }

    /// Returns the names of all recordings so far.
    pub fn names(&self) -> Vec<Arc<str>> {
        locked(&self.0).names.clone()
    }
}

/// Requests to a running pipeline.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Stops the source, matches the queued pairs and finishes the files.
    pub stop: Switch,
    pub pause: Pause,
    /// Lets one pair pass while the source is paused.
    pub step: Switch,
    /// Starts and stops the writing of frames to files; the matcher reads it, so all outputs switch at one pair.
    pub recordings: Recordings,
    /// Moves through a recording.
    pub playback: Playback,
}
