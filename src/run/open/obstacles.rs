//! What finds obstacles in the pairs of a run, and the outputs that tell them but have no file.

use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use crate::pipeline::Find;
use crate::run::live::opened::Opened;
use crate::settings::{Ground, Loaded, Settings};
use stereod_core::files;
use stereod_core::frame::{Matched, StereoGeometry};
use stereod_core::obstacles::Obstacles;
use stereod_core::picture::png;
use stereod_io::clock::CaptureClock;
use stereod_io::sink::lines::Line;
use stereod_io::sink::{Losses, Sink, messages};
use stereod_obstacles::finder::{Boxes, Finder};
use stereod_obstacles::ground::{Tracker, Tracking};
use stereod_obstacles::zones::ZoneRule;
use stereod_obstacles::{draw, lines, words};

/// Returns what completes the matched pairs: it adds the place of the camera on the vehicle to its odometry, finds
/// obstacles, and says in words what the first pair shows; `None` if nobody asks for either.
pub fn finder(loaded: &Loaded, run: &Opened, boxes: Option<Boxes>) -> Result<Option<Find>> {
    let settings = &loaded.settings;
    let mount = settings.mount.mount();
    if !settings.finds_obstacles() {
        let grid = run.finding.grid.clone();
        let place: Find = Box::new(move |matched| {
            matched.odometry.iter_mut().for_each(|odometry| odometry.mount = mount);
            matched.grid = grid.take();
        });
        return Ok(loaded.params.odometry.then_some(place));
    }
    let geometry = run.rig.pairs.geometry.context(
        "obstacles need known cameras: give --calibration FILE, or --focal and --baseline",
    )?;
    let zones = settings.obstacles.zones()?;
    let mut finder = with_zones(settings, &geometry, zones.clone(), boxes)?;
    run.finding.zones.set(zones);
    let (finding, mut has_told) = (run.finding.clone(), false);
    Ok(Some(Box::new(move |matched| {
        if let Some(next) = finding.take() {
            finder.go_on_as(next);
        }
        matched.odometry.iter_mut().for_each(|odometry| odometry.mount = finder.mount());
        matched.obstacles = finder.find(matched);
        matched.grid = finding.grid.take();
        if let (false, Some(obstacles)) = (has_told, &matched.obstacles) {
            tracing::info!("obstacles: {}", words::in_words(obstacles));
            has_told = true;
        }
    })))
}

/// Returns what finds obstacles by these settings.
pub fn of_settings(
    settings: &Settings,
    geometry: &StereoGeometry,
    boxes: Option<Boxes>,
) -> Result<Finder> {
    with_zones(settings, geometry, settings.obstacles.zones()?, boxes)
}

/// As [`of_settings`], with these zones in place of those of the file.
pub fn with_zones(
    settings: &Settings,
    geometry: &StereoGeometry,
    zones: Vec<ZoneRule>,
    boxes: Option<Boxes>,
) -> Result<Finder> {
    let mount = settings.mount.mount();
    let rules = settings.obstacles.rules(&mount, geometry);
    let tracking =
        Tracking { least_confidence: settings.obstacles.confidence, ..Tracking::default() };
    let tracker = match settings.mount.ground {
        Ground::Fixed => None,
        Ground::Track => Some(Tracker::new(mount, tracking).context("mount.ground")?),
    };
    // Else nothing would be in the way, and directions would be called clear.
    let [low, high] = rules.band_m;
    ensure!(low < high, "obstacles.low_m is {low} and high_m {high}: give a high_m above it");
    Ok(Finder::new(rules, zones, mount, tracker, boxes)?)
}

/// Returns what makes a line of JSON of a pair's obstacles, which names its rig if there are several.
pub fn line(rig: Option<&str>) -> Line {
    let rig = rig.map(str::to_owned);
    Arc::new(move |frame, stamp| {
        let obstacles = frame.obstacles.as_ref()?;
        let latency = frame.pair.arrived.elapsed();
        let mut line = lines::to_json(obstacles, frame.pair.sequence, stamp, latency);
        if let Some(odometry) = &frame.odometry {
            line["pose"] = lines::pose_to_json(odometry);
        }
        if let Some(rig) = &rig {
            line["rig"] = rig.as_str().into();
        }
        Some(line.to_string())
    })
}

/// Writes a picture of a pair's obstacles.
pub fn draw(path: &Path, matched: &Matched, found: &Obstacles) -> Result<()> {
    let Some(geometry) = matched.geometry else { return Ok(()) };
    let picture = draw::draw(found, &matched.pair.left, geometry);
    let png = png::encode_rgb(&picture.rgb, picture.width, picture.height)?;
    files::write_whole(path, &png)
}

/// Adds the outputs of obstacles that have no file.
pub fn add(sinks: &mut Vec<Box<dyn Sink>>, loaded: &Loaded, run: &Opened) -> Result<()> {
    let settings = &loaded.settings;
    if !settings.finds_obstacles() {
        return Ok(());
    }
    let clock = run.clock;
    let to = match settings.obstacles.lines.as_str() {
        "-" => Some(To::Stdout),
        text => text.strip_prefix("udp://").map(sender).transpose().context("--obstacles")?,
    };
    if let Some(to) = to {
        sinks.push(Box::new(Lines { to, clock, line: line(loaded.rig()), lost: 0 }));
    }
    Ok(())
}

fn sender(address: &str) -> Result<To> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address).with_context(|| format!("no place to send to at udp://{address}"))?;
    socket.set_nonblocking(true)?;
    Ok(To::Udp(socket))
}

enum To {
    Stdout,
    Udp(UdpSocket),
}

/// Lines of JSON to standard output or by UDP.
struct Lines {
    to: To,
    clock: Option<CaptureClock>,
    line: Line,
    lost: u64,
}

impl Sink for Lines {
    fn name(&self) -> &str {
        "obstacles"
    }

    fn counted_as(&self) -> Option<&'static str> {
        Some("obstacles")
    }

    fn newest_only(&self) -> bool {
        matches!(self.to, To::Udp(_))
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let stamp = messages::stamp(self.clock, frame.pair.timestamp);
        let Some(mut line) = (self.line)(frame, stamp) else { return Ok(()) };
        line.push('\n');
        match &mut self.to {
            To::Stdout => {
                let mut out = std::io::stdout().lock();
                let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                written.context("standard output cannot be written")
            }
            To::Udp(socket) => {
                // Nobody needs to listen.
                self.lost += u64::from(socket.send(line.as_bytes()).is_err());
                Ok(())
            }
        }
    }

    fn losses(&self) -> Losses {
        Losses { failed: self.lost, ..Losses::default() }
    }
}
