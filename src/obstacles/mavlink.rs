//! Obstacles and the motion of the vehicle for autopilots: MAVLink messages that both ArduPilot and PX4 take, over UDP or
//! a serial port.

mod around;
mod clock;
mod line;
#[cfg(test)]
mod link_tests;
mod messages;
#[cfg(test)]
mod ring_tests;
mod turn;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::mavlink::dialects::ardupilotmega::TIMESYNC_DATA;
use ::mavlink::{MAVLinkV2MessageRaw, MavHeader, MessageData};
use anyhow::ensure;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};
use stereod_core::obstacles::{Obstacles, Scan};
use stereod_core::pose::Odometry;
use stereod_core::thread;
use tracing::{Span, error, info, warn};

pub use self::around::{ELEMENT_DEG, ELEMENTS, Limits, Reading, around_vehicle, is_usable, limits};
use self::clock::Clock;
pub use self::line::Address;
use self::line::{Fault, Heard, Line, unix_ns};
use self::turn::after_turn;
use crate::words::toward;

/// MAV_COMP_ID_OBSTACLE_AVOIDANCE.
const COMPONENT: u8 = 196;
/// MAV_COMP_ID_AUTOPILOT1.
const AUTOPILOT: u8 = 1;
/// Scans that wait for the thread. More wait only while its line is blocked.
const QUEUE: usize = 32;
/// Least time between two messages of the vehicle's motion. Estimators want them often: PX4's guide asks for 30 to 50 a
/// second.
const MOTION: Duration = Duration::from_millis(20);
/// A scan that is older than this takes no part in messages.
const FRESH: Duration = Duration::from_millis(300);
/// Longest time from a capture to its message. More is that of a recording.
const LATENCY_MAX: Duration = Duration::from_secs(1);
/// Time between heartbeats, and between questions for the vehicle's time.
const BEAT: Duration = Duration::from_secs(1);
/// Time between attempts to open a serial port that has vanished.
const REOPENING: Duration = Duration::from_secs(2);
/// Without trouble for so long, it is over. Longer than a beat and than the time between attempts to open a port.
const QUIET: Duration = Duration::from_secs(4);

/// Settings of a [`Link`].
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub address: Address,
    /// MAVLink's number of the vehicle, from 1 to 255. ArduPilot's is SYSID_THISMAV, PX4's MAV_SYS_ID.
    pub system_id: u8,
    /// Most messages of each kind a second, from 2 to 50. Of scans in between, only the newest is sent.
    pub rate_hz: f64,
    pub messages: Messages,
}

/// Messages that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// OBSTACLE_DISTANCE: distances around the vehicle, for ArduPilot and PX4.
    pub ring: bool,
    /// OBSTACLE_DISTANCE_3D: up to 40 points, which only ArduPilot reads.
    pub points: bool,
    /// DISTANCE_SENSOR: the nearest obstacle within 22.5 degrees of ahead.
    pub forward: bool,
}

impl Default for Messages {
    fn default() -> Self {
        Self { ring: true, points: false, forward: false }
    }
}

impl Settings {
    /// Returns the settings for an address with system id 1, 15 messages a second and OBSTACLE_DISTANCE.
    pub fn new(address: Address) -> Self {
        Self { address, system_id: 1, rate_hz: 15.0, messages: Messages::default() }
    }
}

/// Sender of obstacles to an autopilot, for all rigs of a run.
///
/// A thread of its own sends, listens to TIMESYNC and keeps the heartbeat. What takes its time there (a blocked serial
/// line, a port that has vanished, a peer that is not there) never holds up [`Link::send`].
#[derive(Debug)]
pub struct Link {
    /// `None` only while it is dropped.
    scans: Option<Sender<Latest>>,
    /// The other end of `scans`, to drop the oldest.
    oldest: Receiver<Latest>,
    /// The newest motion of the vehicle.
    motions: Option<Sender<Motion>>,
    oldest_motion: Receiver<Motion>,
    /// The rig that tells the motion.
    motion_of: OnceLock<usize>,
    losses: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// The newest scan of a rig.
#[derive(Debug)]
struct Latest {
    rig: usize,
    /// Span of the rig's log lines.
    span: Span,
    obstacles: Arc<Obstacles>,
    /// Rate at which the vehicle turns to the left, in degrees per second.
    turn_deg_s: f64,
    /// Unix time.
    captured: Duration,
    arrived: Instant,
    is_sent: bool,
}

impl Latest {
    /// Returns the obstacles as the vehicle has them about itself now.
    fn at_sending(&self, now: Instant) -> Obstacles {
        let since = Duration::from_nanos(unix_ns().unsigned_abs()).checked_sub(self.captured);
        // The stamps of a recording are of another day.
        let age = since
            .filter(|since| *since <= LATENCY_MAX)
            .unwrap_or_else(|| now.saturating_duration_since(self.arrived));
        after_turn((*self.obstacles).clone(), self.turn_deg_s * age.as_secs_f64())
    }
}

/// The motion of the vehicle at a Unix time.
#[derive(Debug)]
struct Motion {
    odometry: Box<Odometry>,
    captured: Duration,
    arrived: Instant,
}

impl Link {
    /// Opens the address and begins with the heartbeat.
    ///
    /// Fails if the rate or the system id is out of range, if the host is unknown, or if the serial port is missing,
    /// forbidden or in use. A UDP peer need not be there.
    pub fn open(settings: Settings) -> anyhow::Result<Self> {
        let rate = settings.rate_hz;
        ensure!(
            (2.0..=50.0).contains(&rate),
            "MAVLink: {rate} messages a second: write 2 to 50; autopilots wait half a second"
        );
        ensure!(settings.system_id > 0, "MAVLink: system id 0 is everybody: write 1 to 255");
        let (scans, oldest) = bounded(QUEUE);
        let (motions, oldest_motion) = bounded(1);
        let (hear, heard) = bounded(64);
        let losses = Arc::new(AtomicU64::new(0));
        let line = Line::open(&settings.address, 0, &hear)?;
        let worker = Worker::new(settings, line, hear, losses.clone());
        let (queue, moved) = (oldest.clone(), oldest_motion.clone());
        let work = move || worker.run(&queue, &moved, &heard);
        let thread = thread::spawn("mavlink-out", work, |broken| error!("{broken}"))?;
        Ok(Self {
            scans: Some(scans),
            oldest,
            motions: Some(motions),
            oldest_motion,
            motion_of: OnceLock::new(),
            losses,
            thread: Some(thread),
        })
    }

    /// Hands on what a rig sees, captured at a Unix time, on a vehicle that turns to the left by so many degrees per
    /// second: messages have no use for the time of capture, so the scan is turned to that of sending. Never waits: while
    /// the line is blocked, the oldest is lost.
    pub fn send(&self, rig: usize, obstacles: Arc<Obstacles>, turn_deg_s: f64, captured: Duration) {
        let Some(scans) = &self.scans else { return };
        let (span, arrived) = (Span::current(), Instant::now());
        let mut scan =
            Latest { rig, span, obstacles, turn_deg_s, captured, arrived, is_sent: false };
        while let Err(TrySendError::Full(back)) = scans.try_send(scan) {
            scan = back;
            if self.oldest.try_recv().is_ok() {
                self.losses.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Fails if another rig tells the motion of the vehicle already: paths of two rigs would contradict each other.
    pub fn claim_motion(&self, rig: usize) -> anyhow::Result<()> {
        let owner = *self.motion_of.get_or_init(|| rig);
        ensure!(
            owner == rig,
            "two rigs of one vehicle would send ODOMETRY: set obstacles.mavlink_odometry for one of them"
        );
        Ok(())
    }

    /// Hands on the motion of the vehicle, captured at a Unix time. Never waits: a newer one replaces one that waits.
    pub fn send_motion(&self, odometry: Box<Odometry>, captured: Duration) {
        let Some(motions) = &self.motions else { return };
        let mut motion = Motion { odometry, captured, arrived: Instant::now() };
        while let Err(TrySendError::Full(back)) = motions.try_send(motion) {
            motion = back;
            let _ = self.oldest_motion.try_recv();
        }
    }

    /// Returns how many scans and motions did not reach the line. Those that a newer one replaced by the rate limit do not count.
    ///
    /// With UDP, a datagram that nobody received is known only if the peer's system says so.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        (self.scans, self.motions) = (None, None);
        // It ends within the time that a blocked line takes, 100 ms. If it panicked, that has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread behind a [`Link`].
struct Worker {
    settings: Settings,
    line: Option<Line>,
    /// Number of the newest line.
    lines: u64,
    hear: Sender<Heard>,
    clock: Clock,
    rigs: BTreeMap<usize, Latest>,
    motion: Option<Motion>,
    troubles: Troubles,
    next_beat: Instant,
    next_obstacles: Instant,
    next_motion: Instant,
    next_opening: Instant,
    opened: Instant,
    sequence: u8,
    last_stamp_ms: u32,
    /// Scans of the last messages, of which the peer's system may yet say that nobody took them.
    last_sent: usize,
    is_introduced: bool,
}

impl Worker {
    fn new(settings: Settings, line: Line, hear: Sender<Heard>, losses: Arc<AtomicU64>) -> Self {
        let now = Instant::now();
        let troubles = Troubles::new(settings.address.clone(), losses);
        Self {
            settings,
            line: Some(line),
            lines: 0,
            hear,
            clock: Clock::default(),
            rigs: BTreeMap::new(),
            motion: None,
            troubles,
            next_beat: now,
            next_obstacles: now,
            next_motion: now,
            next_opening: now,
            opened: now,
            sequence: 0,
            last_stamp_ms: 0,
            last_sent: 0,
            is_introduced: false,
        }
    }

    /// Runs until the [`Link`] is dropped.
    fn run(
        mut self,
        scans: &Receiver<Latest>,
        motions: &Receiver<Motion>,
        heard: &Receiver<Heard>,
    ) {
        loop {
            let wait = self.next_deadline().saturating_duration_since(Instant::now());
            select! {
                recv(scans) -> scan => match scan {
                    Ok(scan) => self.take(scan),
                    Err(_) => return,
                },
                recv(motions) -> motion => self.motion = motion.ok().or(self.motion.take()),
                recv(heard) -> heard => if let Ok(heard) = heard { self.hear(heard) },
                default(wait) => {}
            }
            self.act(Instant::now());
        }
    }

    fn next_deadline(&self) -> Instant {
        let obstacles = self.has_unsent().then_some(self.next_obstacles);
        let motion = self.motion.is_some().then_some(self.next_motion);
        let opening = self.line.is_none().then_some(self.next_opening);
        [obstacles, motion, opening].into_iter().flatten().fold(self.next_beat, Instant::min)
    }

    fn has_unsent(&self) -> bool {
        self.rigs.values().any(|scan| !scan.is_sent)
    }

    fn take(&mut self, scan: Latest) {
        self.troubles.rigs.entry(scan.rig).or_insert_with(|| scan.span.clone());
        if is_usable(&scan.obstacles) {
            self.rigs.insert(scan.rig, scan);
        } else {
            self.troubles.lose(1);
            let Scan { bin_deg, near_m, far_m, .. } = &scan.obstacles.scan;
            let reason = format!("bins of {bin_deg} degrees, {near_m} to {far_m} m");
            self.troubles.meet_of(scan.rig, Trouble::Unusable, &reason);
        }
    }

    fn act(&mut self, now: Instant) {
        if self.line.is_none() && now >= self.next_opening {
            self.reopen(now);
        }
        if now >= self.next_beat {
            self.next_beat = now + BEAT;
            self.beat(now);
            self.troubles.end(now);
        }
        if self.has_unsent() && now >= self.next_obstacles {
            self.next_obstacles = now + Duration::from_secs_f64(1.0 / self.settings.rate_hz);
            self.send_obstacles(now);
        }
        if now >= self.next_motion
            && let Some(motion) = self.motion.take()
        {
            self.next_motion = now + MOTION;
            self.send_motion(&motion, now);
        }
    }

    /// Sends the motion of the vehicle. While the rig is lost, the autopilot hears nothing, which it notices by itself.
    fn send_motion(&mut self, motion: &Motion, now: Instant) {
        let time_usec = motion.captured.as_micros() as u64;
        let Some(message) = messages::odometry(&motion.odometry, time_usec) else { return };
        let is_fresh = now.saturating_duration_since(motion.arrived) <= FRESH;
        let is_free = is_fresh && !self.line.as_ref().is_some_and(Line::is_backed_up);
        if is_fresh && !is_free {
            self.troubles.meet(Trouble::Blocked, "older messages still wait in the port");
        }
        if !(is_free && self.send(&message)) {
            self.troubles.lose(1);
        }
    }

    fn reopen(&mut self, now: Instant) {
        self.next_opening = now + REOPENING;
        self.lines += 1;
        match Line::open(&self.settings.address, self.lines, &self.hear) {
            Ok(line) => self.line = Some(line),
            Err(error) => self.troubles.meet(Trouble::Gone, &format!("{error:#}")),
        }
    }

    fn beat(&mut self, now: Instant) {
        let request = self.clock.request(unix_ns(), now, self.settings.system_id);
        // Faults are told and counted where obstacles are lost.
        if self.send(&messages::heartbeat()) {
            self.send(&request);
        }
    }

    /// Sends what the rigs see now. A scan is sent once: when no new one comes, messages about obstacles end.
    fn send_obstacles(&mut self, now: Instant) {
        let lost = self.drop_old(now);
        self.troubles.lose(lost);
        let scans: Vec<_> = self.rigs.values().collect();
        let Some(captured) = scans.iter().map(|scan| scan.captured).max() else { return };
        let all: Vec<_> = scans.iter().map(|scan| scan.at_sending(now)).collect();
        let all: Vec<_> = all.iter().collect();
        let unsent = scans.iter().filter(|scan| !scan.is_sent).count();
        let Some(limits) = limits(&all) else { return };
        let is_sent = if self.line.as_ref().is_some_and(Line::is_backed_up) {
            self.troubles.meet(Trouble::Blocked, "older messages still wait in the port");
            false
        } else {
            self.send_burst(&all, limits, captured)
        };
        self.last_sent = if is_sent { unsent } else { 0 };
        self.troubles.lose(unsent - self.last_sent);
        self.rigs.values_mut().for_each(|scan| scan.is_sent = true);
    }

    /// Forgets scans that are too old, and returns how many of them were never sent.
    fn drop_old(&mut self, now: Instant) -> usize {
        let before = self.rigs.values().filter(|scan| !scan.is_sent).count();
        self.rigs.retain(|_, scan| now.saturating_duration_since(scan.arrived) <= FRESH);
        before - self.rigs.values().filter(|scan| !scan.is_sent).count()
    }

    /// Sends one message of each kind, and returns whether all of them went out.
    fn send_burst(&mut self, all: &[&Obstacles], limits: Limits, captured: Duration) -> bool {
        let readings = around_vehicle(all);
        let kinds = self.settings.messages;
        let time = self.clock.vehicle_time(captured);
        let mut is_sent = true;
        // The points come first: ArduPilot clears its boundary for them, and the ring then sets its middle layer.
        if kinds.points {
            let stamp = self.next_stamp_ms(time);
            let points = messages::points(all, limits, stamp);
            is_sent &= points.iter().all(|point| self.send(point));
        }
        if kinds.ring {
            let time_usec = time.map_or(0, |time| time.as_micros() as u64);
            is_sent = is_sent && self.send(&messages::ring(&readings, limits, time_usec));
        }
        if kinds.forward {
            let stamp = time.map_or(0, |time| time.as_millis() as u32);
            let message = messages::forward(&readings, limits, stamp);
            is_sent = is_sent && message.is_none_or(|message| self.send(&message));
        }
        if is_sent && !self.is_introduced {
            self.is_introduced = true;
            info!("MAVLink: first obstacles: {}", in_words(&readings, limits));
        }
        is_sent
    }

    /// Returns a stamp that differs from that of the last image.
    ///
    /// ArduPilot tells images apart by it. Without the vehicle's time it is ours since the start, because with a
    /// constant stamp ArduPilot would join images that it gets together with other messages.
    fn next_stamp_ms(&mut self, time: Option<Duration>) -> u32 {
        let time = time.unwrap_or_else(|| self.opened.elapsed());
        let stamp = time.as_millis() as u32;
        let is_same = stamp == self.last_stamp_ms;
        self.last_stamp_ms = if is_same { stamp.wrapping_add(1) } else { stamp };
        self.last_stamp_ms
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Timesync { from, data, at, .. } if data.tc1 != 0 => {
                if (from.system_id, from.component_id) == (self.system(), AUTOPILOT) {
                    self.clock.answered(&data, at);
                }
            }
            Heard::Timesync { from, data, unix_ns, .. } => {
                if (from.system_id, from.component_id) != (self.system(), COMPONENT) {
                    self.send(&TIMESYNC_DATA {
                        tc1: unix_ns,
                        ts1: data.ts1,
                        target_system: from.system_id as u8,
                        target_component: from.component_id,
                    });
                }
            }
            Heard::NoPeer(error) => {
                self.troubles.lose(std::mem::take(&mut self.last_sent));
                self.troubles.meet(Trouble::NoPeer, &error.to_string());
            }
            Heard::Gone(number, error) if number == self.lines && self.line.is_some() => {
                self.close(&error.to_string());
            }
            Heard::Gone(..) => {}
        }
    }

    fn system(&self) -> u32 {
        self.settings.system_id.into()
    }

    /// Sends a message, and returns whether it went out. The reason why not is told.
    fn send(&mut self, data: &impl MessageData) -> bool {
        let header = MavHeader {
            system_id: self.system(),
            component_id: COMPONENT,
            sequence: self.sequence,
        };
        let Some(line) = &mut self.line else { return false };
        let mut message = MAVLinkV2MessageRaw::new();
        message.serialize_message_data(header, data);
        self.sequence = self.sequence.wrapping_add(1);
        match line.send(message.raw_bytes()) {
            Ok(()) => return true,
            Err(Fault::Blocked) => self.troubles.meet(Trouble::Blocked, "no room in the port"),
            Err(Fault::NoPeer(error)) => self.troubles.meet(Trouble::NoPeer, &error.to_string()),
            Err(Fault::Gone(error)) => self.close(&error.to_string()),
        }
        false
    }

    fn close(&mut self, reason: &str) {
        self.line = None;
        self.next_opening = Instant::now() + REOPENING;
        self.troubles.meet(Trouble::Gone, reason);
    }
}

/// Returns what the first message says, so that a wrong sign shows at once.
fn in_words(readings: &[Reading; ELEMENTS], limits: Limits) -> String {
    let nearest = readings.iter().enumerate().filter_map(|(element, reading)| match reading {
        Reading::Obstacle(metres) => Some((element as f64 * ELEMENT_DEG, *metres)),
        Reading::Clear | Reading::Unknown => None,
    });
    let nearest = nearest.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or_else(
        || "nothing found".into(),
        |(clockwise, metres)| {
            let left = if clockwise > 180.0 { 360.0 - clockwise } else { -clockwise };
            format!("nearest {metres:.1} m, {}", toward(left))
        },
    );
    let count = |state| readings.iter().filter(|reading| **reading == state).count();
    format!(
        "{nearest}; of {ELEMENTS} directions {} clear and {} unknown, from {:.2} to {:.2} m about the vehicle's origin",
        count(Reading::Clear),
        count(Reading::Unknown),
        limits.min_m,
        limits.max_m
    )
}

/// Kinds of trouble, each of which is told each rig once until it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Blocked,
    NoPeer,
    Gone,
    Unusable,
}

impl Trouble {
    /// Returns what is wrong, what to do, and what is said when it is over.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Blocked => [
                "the line is blocked or too slow",
                "raise the baud rate, send fewer kinds of messages, or check who reads",
                "the line takes messages again",
            ],
            Self::NoPeer => [
                "nobody is there",
                "start the autopilot or router, or check address and port",
                "the peer is there again",
            ],
            Self::Gone => [
                "the port has vanished",
                "it is opened again every 2 s; check cable and power",
                "the port is open again",
            ],
            Self::Unusable => [
                "a scan has impossible limits or angles and is left out",
                "check mount and calibration of its rig",
                "scans are usable again",
            ],
        }
    }
}

struct Troubles {
    address: Address,
    /// Rigs that have sent scans, with the spans of their log lines.
    rigs: BTreeMap<usize, Span>,
    /// When each kind of trouble of a rig was last met, while it lasts.
    met: Vec<(Trouble, usize, Instant)>,
    losses: Arc<AtomicU64>,
}

impl Troubles {
    fn new(address: Address, losses: Arc<AtomicU64>) -> Self {
        Self { address, rigs: BTreeMap::new(), met: Vec::new(), losses }
    }

    fn lose(&self, scans: usize) {
        self.losses.fetch_add(scans as u64, Ordering::Relaxed);
    }

    /// Notes trouble of all rigs.
    fn meet(&mut self, trouble: Trouble, reason: &str) {
        let rigs: Vec<_> = self.rigs.keys().copied().collect();
        rigs.into_iter().for_each(|rig| self.meet_of(rig, trouble, reason));
    }

    /// Notes trouble of a rig, and warns of it if it is new.
    fn meet_of(&mut self, rig: usize, trouble: Trouble, reason: &str) {
        let now = Instant::now();
        let mut met = self.met.iter_mut();
        if let Some((.., last)) = met.find(|(met, of, _)| (*met, *of) == (trouble, rig)) {
            *last = now;
            return;
        }
        self.met.push((trouble, rig, now));
        let ([what, cure, _], address) = (trouble.words(), &self.address);
        self.rigs[&rig].in_scope(|| {
            warn!("MAVLink to {address}: {what} ({reason}): {cure}; obstacles are lost");
        });
    }

    /// Tells of trouble that was not met for a while that it is over.
    fn end(&mut self, now: Instant) {
        let losses = self.losses.load(Ordering::Relaxed);
        let address = &self.address;
        self.met.retain(|(trouble, rig, last)| {
            let lasts = now.saturating_duration_since(*last) < QUIET;
            if !lasts {
                let [_, _, over] = trouble.words();
                self.rigs[rig].in_scope(|| {
                    info!("MAVLink to {address}: {over}; {losses} scans were lost so far");
                });
            }
            lasts
        });
    }
}
