//! The live page and the Foxglove protocol: frames, status and settings, for any number of clients.
//!
//! A sink puts the newest pair into a slot. Each client takes it when it has drawn the one before,
//! so a slow client costs its own frames only. A pair is encoded when the first client asks for it,
//! and once for all that take it at the same size.

pub mod client;
pub mod connection;
mod encode;
pub mod foxglove;
pub mod recordings;
pub mod snapshot;
mod text;
mod viewers;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hyper::body::Bytes;
use tokio::sync::{AcquireError, OnceCell, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::trail::Trail;
use crate::viewer::{Ask, ClientId, Recorder, Span, Tuned, Viewer, Zones};
use stereod_core::frame::Matched;
use stereod_core::picture::cloud::CloudOptions;
use stereod_core::thread::locked;
use stereod_io::clock::CaptureClock;
use stereod_io::control::Control;
use stereod_io::sink::Sink;
use stereod_io::sink::colour::ColourScale;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::sink::messages::{Heading, TOPICS, stamp};
use stereod_obstacles::zones::{self, ZoneRule};
pub use viewers::Ending;
use viewers::{Answer, Viewers};

/// Sizes of images for the page: every pixel of every row, every second or every fourth one.
const SCALES: [usize; 3] = [1, 2, 4];

/// Messages for viewers that are encoded at once.
const ENCODED: usize = 4;

/// Snapshots that are made at once, because each keeps a core busy, and those that are in memory until
/// their client has taken them.
const MADE: usize = 2;
const HELD: usize = 8;

/// Threads for the work of a server.
pub const WORKERS: usize = ENCODED + MADE;

/// The live page of a run. Clones share it.
#[derive(Clone)]
pub struct Live(Arc<Shared>);

/// The parts of a run that its live page shows and changes.
pub struct Source {
    pub name: String,
    /// The names of all rigs of the program.
    pub rigs: Arc<[String]>,
    /// The number of this one.
    pub rig: usize,
    pub is_live: bool,
    pub control: Control,
    pub colouring: LiveColouring,
    /// Options of the point clouds that the page saves.
    pub clouds: CloudOptions,
    pub tuned: Tuned,
    /// Takes requests and never waits.
    pub ask: Box<dyn Fn(Ask) + Send + Sync>,
    pub clock: Option<CaptureClock>,
    /// Times between which viewers move, or why they cannot.
    pub span: Result<Span, String>,
    /// The zones, if the run finds obstacles.
    pub zones: Option<Zones>,
    /// Text before the names of coordinate frames in messages.
    pub frame_prefix: String,
    /// Whether the place of the camera on the vehicle is that of each pair.
    pub tracks_ground: bool,
    /// Starts and stops the files of frames, if the run writes some.
    pub recorder: Option<Recorder>,
}

struct Shared {
    source: Source,
    newest: watch::Sender<Option<Arc<Newest>>>,
    /// The path until the newest pair.
    trail: Mutex<Trail>,
    tuned: watch::Sender<Tuned>,
    saved: watch::Sender<Option<Result<String, String>>>,
    viewers: Viewers,
    encoders: Workers,
    makers: Workers,
    held: Arc<Semaphore>,
    clock: ServerClock,
}

/// The clock of the server's messages: Unix time at its start, and from there on a clock that never jumps.
#[derive(Clone, Copy)]
struct ServerClock {
    start: Instant,
    /// The same moment, also for the times of files.
    since: SystemTime,
}

impl ServerClock {
    fn new() -> Self {
        Self { start: Instant::now(), since: SystemTime::now() }
    }

    /// Returns the time since 1970 at the server's start.
    fn since_1970(self) -> Duration {
        self.since.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Returns the milliseconds from 1970 to a moment.
    fn unix_ms(self, moment: Instant) -> f64 {
        let start = self.since_1970();
        let since = match moment.checked_duration_since(self.start) {
            Some(later) => start + later,
            None => start.saturating_sub(self.start - moment),
        };
        since.as_secs_f64() * 1000.0
    }
}

/// The newest pair, and its messages once a client has asked for them.
struct Newest {
    /// Its number among the pairs for the page, from 0.
    number: u64,
    frame: Arc<Matched>,
    /// Disparities of the first and the last colour, in pixels.
    span: (f32, f32),
    /// In each size, without the right image and with it.
    encoded: [[OnceCell<Encoded>; 2]; SCALES.len()],
    messages: [OnceCell<Encoded>; TOPICS.len()],
}

/// An encoded message, or the reason why there is none.
type Encoded = Result<Bytes, String>;

impl Newest {
    fn new(number: u64, frame: Arc<Matched>, span: (f32, f32)) -> Self {
        let (encoded, messages) = Default::default();
        Self { number, frame, span, encoded, messages }
    }

    /// Returns the message for the page, which is encoded if no client has asked for it before.
    async fn for_page(self: &Arc<Self>, live: &Live, size: usize, right: bool) -> Encoded {
        let (newest, clock, zones) = (self.clone(), live.0.clock, live.zones());
        let encode = move || encode::message(&newest, SCALES[size], right, clock, &zones);
        self.encoded[size][usize::from(right)].get_or_init(|| live.encode(encode)).await.clone()
    }

    /// Returns the message of a topic, encoded in the same way.
    async fn of_topic(self: &Arc<Self>, live: &Live, topic: usize) -> Encoded {
        let newest = self.clone();
        let (stamp, of) = (stamp(live.0.source.clock, self.frame.pair.timestamp), live.clone());
        let encode = move || {
            let Source { frame_prefix, tracks_ground, .. } = &of.0.source;
            let head = Heading { stamp, prefix: frame_prefix, tracks_ground: *tracks_ground };
            TOPICS[topic].encode(&newest.frame, head).map(Bytes::from)
        };
        self.messages[topic].get_or_init(|| live.encode(encode)).await.clone()
    }
}

impl Shared {
    /// Tells this run from others.
    fn session(&self) -> String {
        format!("{:x}-{:x}", self.clock.since_1970().as_nanos(), std::process::id())
    }
}

impl Live {
    pub fn new(source: Source) -> Self {
        let tuned = watch::Sender::new(source.tuned.clone());
        Self(Arc::new(Shared {
            source,
            newest: watch::Sender::new(None),
            trail: Mutex::default(),
            tuned,
            saved: watch::Sender::new(None),
            viewers: Viewers::default(),
            encoders: Workers::new(ENCODED),
            makers: Workers::new(MADE),
            held: Arc::new(Semaphore::new(HELD)),
            clock: ServerClock::new(),
        }))
    }

    async fn encode(&self, encode: impl FnOnce() -> Result<Bytes> + Send + 'static) -> Encoded {
        self.0.encoders.work(encode).await?.map_err(|error| format!("{error:#}"))
    }

    /// Returns the zones as a file.
    pub fn zones_file(&self) -> Result<String> {
        zones::to_toml(&self.zones())
    }

    fn zones(&self) -> Arc<[ZoneRule]> {
        self.0.source.zones.as_ref().map(Zones::get).unwrap_or_default()
    }

    /// Tells viewers of the end, those that come later, too.
    pub fn end(&self, ending: Ending) {
        self.0.viewers.end(ending);
    }

    /// Tells all viewers of the end, and waits a little until they have heard it.
    pub async fn say_goodbye(&self) {
        self.0.viewers.say_goodbye().await;
    }

    /// Pauses the run. A recording goes on from the newest pair of the page.
    fn pause(&self) {
        let Source { span, control, .. } = &self.0.source;
        // Under the lock, so that no further pair comes to the page.
        self.0.newest.send_if_modified(|newest| {
            match newest.as_ref().filter(|_| span.is_ok()).map(|newest| &newest.frame.pair) {
                Some(pair) => control.pause.hold((pair.sequence, pair.timestamp)),
                None => control.pause.set(true),
            }
            false
        });
    }

    /// Returns the newest knobs, and the answers to requests of a client since the last call.
    fn take_tuned(
        &self,
        tuned: &mut watch::Receiver<Tuned>,
        client: ClientId,
    ) -> (Tuned, Vec<Answer>) {
        let newest = tuned.borrow_and_update();
        (newest.clone(), self.0.viewers.take_answers(client))
    }
}

impl Viewer for Live {
    fn tuned(&self, tuned: Tuned) {
        // Under one lock, so that no client takes an answer with the knobs before it.
        self.0.tuned.send_modify(|newest| {
            self.0.viewers.answer(&tuned);
            *newest = tuned;
        });
    }

    fn saved(&self, message: Result<String, String>) {
        self.0.saved.send_replace(Some(message));
    }
}

/// Hands the newest pair to the live page.
pub struct LiveSink {
    live: Live,
    taken: u64,
    scale: Option<ColourScale>,
}

impl LiveSink {
    pub fn new(live: Live) -> Self {
        Self { live, taken: 0, scale: None }
    }
}

impl Sink for LiveSink {
    fn name(&self) -> &str {
        "live page"
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let shared = &self.live.0;
        if !shared.source.control.pause.shows(frame.pair.arrived) {
            return Ok(());
        }
        let colouring = shared.source.colouring.get();
        let range = frame.disparity.range();
        let mut scale = (self.scale.take())
            .filter(|scale| scale.is_of(colouring.span, range))
            .unwrap_or_else(|| ColourScale::new(colouring.span, range));
        scale.update(&frame.disparity, frame.pair.timestamp);
        let span = scale.limits();
        self.scale = Some(scale);
        let newest = Newest::new(self.taken, frame.clone(), span);
        let is_shown = shared.newest.send_if_modified(|slot| {
            // A pause may have begun.
            let is_shown = shared.source.control.pause.shows(frame.pair.arrived);
            if is_shown {
                frame.odometry.iter().for_each(|odometry| locked(&shared.trail).add(odometry));
                *slot = Some(Arc::new(newest));
            }
            is_shown
        });
        self.taken += u64::from(is_shown);
        Ok(())
    }
}

/// Places for one kind of work, so that no other kind can keep it waiting.
pub struct Workers(Arc<Semaphore>);

/// A place, until its work is done. Whoever waits for it may leave before.
pub struct Place(#[expect(dead_code, reason = "released on drop")] OwnedSemaphorePermit);

impl Workers {
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    pub async fn enter(&self) -> Result<Place, AcquireError> {
        self.0.clone().acquire_owned().await.map(Place)
    }

    /// Does the work in the next free place; the error is a panic.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        self.enter().await.map_err(|closed| closed.to_string())?.work(work).await
    }
}

impl Place {
    /// Does the work; the error is a panic.
    pub async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let work = move || {
            let done = work();
            drop(self);
            done
        };
        spawn_blocking(work).await.map_err(|broken| broken.to_string())
    }
}
