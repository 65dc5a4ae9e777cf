//! Zones and the nearest obstacle told to an MQTT broker, with Home Assistant's discovery; boxes from Frigate's events.
//!
//! | topic below the base | payload |
//! | --- | --- |
//! | `status` | `online` or `offline`, retained; `offline` also by last will |
//! | `zone/NAME` | `{"occupied": true, "distance_m": 2.31, "nearest_m": 2.2, "known": 0.93, "stamp": 1764412800.25}`; `occupied` is null if it is not known, distances are null if nothing is seen |
//! | `nearest` | `{"distance_m": 3.2, "direction_deg": -12.0, "height_m": 0.4, "stamp": 1764412800.25}`, null without an obstacle, which does not mean that the way is free; the direction is positive to the left, the height above the vehicle's origin |
//!
//! Distances are in metres, stamps in seconds since 1970. States are not retained, so that nobody takes an old one for
//! the present; if pairs stop, nothing is sent.

mod address;
mod connection;
mod frigate;
mod topics;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use stereod_core::obstacles::{Obstacles, Scan, Zone};
use stereod_core::thread;
use tokio::sync::Notify;

use self::connection::{Connection, Outbox};
use self::frigate::Tracked;
use self::topics::Topics;
use crate::boxes::DetectorBox;
use crate::lines::rounded;

pub use self::frigate::Frigate;

/// Environment variables with the user and the password. They are read from nowhere else, because command lines and
/// files of settings are seen by others.
pub const USER: &str = "STEREOD_MQTT_USER";
pub const PASSWORD: &str = "STEREOD_MQTT_PASSWORD";

/// Settings of a broker and of the messages to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `mqtt://HOST[:1883]`, or `mqtts://HOST[:8883]` for TLS, which checks the broker's certificate and host name.
    pub address: String,
    /// File of PEM certificates of authorities that replace the system's for TLS.
    pub ca: Option<PathBuf>,
    /// Name of the rig or the host, as Home Assistant shows it; the host's name if it is empty.
    pub name: String,
    /// Base of the topics; `stereod/NAME` if it is empty.
    pub topic: String,
    /// Prefix of Home Assistant's discovery; no discovery if it is empty.
    pub discovery: String,
    /// Names of all zones.
    pub zones: Vec<String>,
    /// Most messages a second in each topic, from 0.01 to 100, besides changes of `occupied`, which are sent at once.
    pub rate: f64,
    /// Frigate's events as boxes.
    pub frigate: Option<Frigate>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: String::new(),
            ca: None,
            name: String::new(),
            topic: String::new(),
            discovery: "homeassistant".into(),
            zones: Vec::new(),
            rate: 2.0,
            frigate: None,
        }
    }
}

/// Connection to an MQTT broker on a thread of its own. A broker that is away, blocks or refuses the password never
/// delays the caller: the newest state of each topic waits, and older ones are dropped and counted. A lost connection
/// is logged once, and attempts go on every 1 to 30 s. Dropping it says `offline` to the broker, within 2 s.
pub struct Broker {
    topics: Arc<Topics>,
    outbox: Arc<Outbox>,
    paces: Mutex<Paces>,
    interval: Duration,
    tracked: Option<Arc<Tracked>>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    /// Starts to connect, and to try again for as long as the broker is away.
    ///
    /// # Errors
    /// Fails if an address, a topic or a name of a zone cannot be used, if a file of certificates cannot be read or has
    /// none, or if there is a password without a user in the environment.
    pub fn open(settings: Settings) -> Result<Self> {
        ensure!(
            (0.01..=100.0).contains(&settings.rate),
            "a rate of {} messages a second is not from 0.01 to 100",
            settings.rate
        );
        let topics = Arc::new(Topics::new(&settings)?);
        let outbox = Arc::new(Outbox::default());
        let track = |frigate| Tracked::new(frigate).map(Arc::new);
        let tracked = settings.frigate.clone().map(track).transpose()?;
        let stop = Arc::new(Notify::new());
        let options = address::options(&settings, &topics)?;
        // The runtime belongs to the thread: nothing else of the program runs on it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("no event loop")?;
        let connection = Connection::new(options, &topics, &outbox, tracked.as_ref(), &stop);
        let run = move || {
            runtime.block_on(connection.run());
            // A look-up of a host's name may still hang; it must not delay the end.
            runtime.shutdown_background();
        };
        let thread = thread::spawn("mqtt", run, |broken| tracing::error!("{broken}"))?;
        let paces = Mutex::new(Paces {
            of_topics: vec![Pace::default(); topics.states()],
            unknown: HashSet::new(),
        });
        let interval = Duration::from_secs_f64(1.0 / settings.rate);
        Ok(Self { topics, outbox, paces, interval, tracked, stop, thread: Some(thread) })
    }

    /// Tells a pair's zones and nearest obstacle. `time` is the pair's capture since the Unix epoch. It never waits.
    pub fn show(&self, obstacles: &Obstacles, time: Duration) {
        let stamp = rounded(time.as_secs_f64(), 6);
        let now = Instant::now();
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        for zone in &obstacles.zones {
            let Some(topic) = self.topics.zone(&zone.name) else {
                self.outbox.lost.fetch_add(1, Ordering::Relaxed);
                if paces.unknown.insert(zone.name.clone()) {
                    tracing::warn!(
                        "zone \"{}\" is not told to the MQTT broker, which was opened without it",
                        zone.name
                    );
                }
                continue;
            };
            if paces.of_topics[topic].is_due(now, self.interval, Some(zone.occupied)) {
                self.outbox.post(topic, &ZoneState::new(zone, stamp));
            }
        }
        if paces.of_topics[Topics::NEAREST].is_due(now, self.interval, None) {
            self.outbox.post(Topics::NEAREST, &NearestState::new(&obstacles.scan, stamp));
        }
    }

    /// Returns the boxes of Frigate's events that hold for a pair captured at this time since the Unix epoch.
    pub fn newest(&self, capture: Duration) -> Vec<DetectorBox> {
        self.tracked.as_ref().map(|tracked| tracked.newest(capture)).unwrap_or_default()
    }

    /// Returns the number of states that were due but dropped, because a newer one of the topic came before the broker
    /// took them. A message that was handed over just as the connection broke is not among them.
    pub fn losses(&self) -> u64 {
        self.outbox.lost.load(Ordering::Relaxed)
    }

    /// Returns the number of Frigate's events that were not understood; the first one's fault was logged.
    pub fn refused(&self) -> u64 {
        self.tracked.as_ref().map_or(0, |tracked| tracked.refused())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Paces {
    of_topics: Vec<Pace>,
    /// Zones that have no topic, and of which that was logged.
    unknown: HashSet<String>,
}

/// Keeps a topic within its rate.
#[derive(Clone, Default)]
struct Pace {
    last: Option<Instant>,
    occupied: Option<Option<bool>>,
}

impl Pace {
    fn is_due(&mut self, now: Instant, interval: Duration, occupied: Option<Option<bool>>) -> bool {
        let is_due = self.occupied != occupied
            || self.last.is_none_or(|last| now.saturating_duration_since(last) >= interval);
        if is_due {
            *self = Self { last: Some(now), occupied };
        }
        is_due
    }
}

#[derive(Serialize)]
struct ZoneState {
    occupied: Option<bool>,
    distance_m: Option<f64>,
    nearest_m: Option<f64>,
    known: f64,
    stamp: f64,
}

impl ZoneState {
    fn new(Zone { occupied, nearest, known, .. }: &Zone, stamp: f64) -> Self {
        let (distance_m, nearest_m) =
            (nearest.map(|found| found.distance_m), nearest.map(|found| found.nearest_m));
        Self {
            occupied: *occupied,
            distance_m: distance_m.map(|metres| rounded(metres, 3)),
            nearest_m: nearest_m.map(|metres| rounded(metres, 3)),
            known: rounded(*known, 3),
            stamp,
        }
    }
}

#[derive(Serialize)]
struct NearestState {
    distance_m: Option<f64>,
    direction_deg: Option<f64>,
    height_m: Option<f64>,
    stamp: f64,
}

impl NearestState {
    fn new(scan: &Scan, stamp: f64) -> Self {
        let found = scan.nearest();
        Self {
            distance_m: found.map(|(_, nearest)| rounded(nearest.distance_m, 3)),
            direction_deg: found.map(|(direction, _)| rounded(direction, 3)),
            height_m: found.map(|(_, nearest)| rounded(nearest.position_m[2], 3)),
            stamp,
        }
    }
}

#[cfg(test)]
mod tests;
