//! Links of obstacles to autopilots and brokers.

use std::sync::Arc;
#[cfg(feature = "mavlink")]
use std::sync::{Mutex, Weak};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::run::live::opened::Opened;
use crate::settings::{BOXES_OF_GRAPH, Loaded, Settings};
use stereod_core::frame::Matched;
#[cfg(feature = "mavlink")]
use stereod_core::thread::locked;
use stereod_io::clock::CaptureClock;
use stereod_io::sink::{Losses, Sink, messages};
use stereod_obstacles::boxes::{BoxSource, FRESH};
use stereod_obstacles::finder::Boxes;
#[cfg(feature = "mavlink")]
use stereod_obstacles::mavlink::{self, Link};
#[cfg(feature = "mqtt")]
use stereod_obstacles::mqtt::{self, Broker, Frigate};

/// How `obstacles.boxes` begins if they are Frigate's: `frigate:CAMERA:WxH`.
const FRIGATE: &str = "frigate:";

/// The links of a run, which are open before its first pair.
pub struct Links {
    sinks: Vec<Box<dyn Sink>>,
    /// Boxes of a detector, asked for by the time of capture.
    pub boxes: Option<Boxes>,
}

/// Checks the addresses, and the variables of ROS, before anything is opened.
pub fn check(settings: &Settings) -> Result<()> {
    #[cfg(feature = "mavlink")]
    if !settings.obstacles.mavlink.is_empty() {
        settings.obstacles.mavlink.parse::<mavlink::Address>().context("--mavlink")?;
    }
    let boxes = &settings.obstacles.boxes;
    if boxes.starts_with(FRIGATE) && settings.obstacles.mqtt.is_empty() {
        bail!("Frigate's boxes come through its MQTT broker: give --mqtt mqtt://HOST as well");
    }
    #[cfg(feature = "ros2")]
    if settings.ros2.namespace().is_some() || boxes.starts_with(BOXES_OF_GRAPH) {
        stereod_io::ros2::dds::chosen()?;
    }
    Ok(())
}

impl Links {
    pub fn open(loaded: &Loaded, run: &Opened) -> Result<Self> {
        let (settings, clock) = (&loaded.settings, run.clock);
        let mut links = Self { sinks: Vec::new(), boxes: None };
        links.open_mavlink(settings, run).context("--mavlink")?;
        links.open_mqtt(settings, run).context("--mqtt")?;
        let boxes = settings.obstacles.boxes.as_str();
        if !boxes.is_empty() && !boxes.starts_with(FRIGATE) {
            let source = match boxes.strip_prefix(BOXES_OF_GRAPH) {
                Some(topic) => of_graph(topic, run),
                None => BoxSource::open(boxes, FRESH),
            };
            let source = source.context("obstacles.boxes")?;
            links.boxes = Some(Box::new(move |time| source.newest(messages::stamp(clock, time))));
        }
        Ok(links)
    }

    pub fn into_sinks(self) -> Vec<Box<dyn Sink>> {
        self.sinks
    }

    #[cfg(not(feature = "mavlink"))]
    fn open_mavlink(&mut self, settings: &Settings, _: &Opened) -> Result<()> {
        if !settings.obstacles.mavlink.is_empty() {
            bail!("this stereod was built without it (Cargo's feature `mavlink`)");
        }
        Ok(())
    }

    #[cfg(feature = "mavlink")]
    fn open_mavlink(&mut self, settings: &Settings, run: &Opened) -> Result<()> {
        let obstacles = &settings.obstacles;
        if obstacles.mavlink.is_empty() {
            for key in obstacles.mavlink_asks() {
                tracing::warn!("obstacles.{key} has no effect without obstacles.mavlink");
            }
            return Ok(());
        }
        let mut to = mavlink::Settings::new(obstacles.mavlink.parse()?);
        to.system_id = obstacles.mavlink_system;
        to.messages.points = obstacles.mavlink_3d;
        to.messages.forward = obstacles.mavlink_sensor;
        let link = shared(&obstacles.mavlink, to)?;
        let rig = run.rigs.iter().position(|name| *name == run.name).unwrap_or_default();
        let (lost, tells_motion) = (link.clone(), obstacles.mavlink_odometry);
        if tells_motion {
            link.claim_motion(rig)?;
        }
        self.add(
            "mavlink",
            run.clock,
            move || lost.losses(),
            move |frame, time| {
                if let Some(found) = &frame.obstacles {
                    link.send(rig, Arc::new(found.clone()), turn_deg_s(frame), time);
                }
                if let (true, Some(odometry)) = (tells_motion, &frame.odometry) {
                    link.send_motion(odometry.clone(), time);
                }
            },
        );
        Ok(())
    }

    #[cfg(not(feature = "mqtt"))]
    fn open_mqtt(&mut self, settings: &Settings, _: &Opened) -> Result<()> {
        if !settings.obstacles.mqtt.is_empty() || settings.obstacles.boxes.starts_with(FRIGATE) {
            bail!("this stereod was built without it (Cargo's feature `mqtt`)");
        }
        Ok(())
    }

    #[cfg(feature = "mqtt")]
    fn open_mqtt(&mut self, settings: &Settings, run: &Opened) -> Result<()> {
        let obstacles = &settings.obstacles;
        let frigate = obstacles.boxes.strip_prefix(FRIGATE).map(frigate).transpose()?;
        if obstacles.mqtt.is_empty() {
            return Ok(());
        }
        let has_boxes = frigate.is_some();
        let broker = Arc::new(Broker::open(mqtt::Settings {
            address: obstacles.mqtt.clone(),
            ca: crate::settings::names::path_of(&obstacles.mqtt_ca),
            name: run.name.clone(),
            topic: obstacles.mqtt_topic.clone(),
            discovery: obstacles.mqtt_discovery.clone(),
            zones: obstacles.zones()?.into_iter().map(|zone| zone.name).collect(),
            frigate,
            ..mqtt::Settings::default()
        })?);
        let (source, lost, clock) = (broker.clone(), broker.clone(), run.clock);
        if has_boxes {
            self.boxes = Some(Box::new(move |time| source.newest(messages::stamp(clock, time))));
        }
        let show = move |frame: &Matched, time| {
            if let Some(found) = &frame.obstacles {
                broker.show(found, time);
            }
        };
        self.add("mqtt", clock, move || lost.losses(), show);
        Ok(())
    }

    #[cfg(any(feature = "mavlink", feature = "mqtt"))]
    fn add(
        &mut self,
        name: &'static str,
        clock: Option<CaptureClock>,
        lost: impl Fn() -> u64 + Send + 'static,
        send: impl FnMut(&Matched, Duration) + Send + 'static,
    ) {
        self.sinks.push(Box::new(LinkSink { name, clock, lost, send }));
    }
}

/// Returns Frigate's camera and the size at which it detects: `CAMERA:WxH`.
#[cfg(feature = "mqtt")]
fn frigate(text: &str) -> Result<Frigate> {
    let parts = text.rsplit_once(':').and_then(|(camera, size)| {
        let (width, height) = size.split_once('x')?;
        Some((camera, [width.parse().ok()?, height.parse().ok()?]))
    });
    let (camera, size) = parts
        .context("obstacles.boxes: write frigate:CAMERA:WxH, with the size at which it detects")?;
    Ok(Frigate { camera: camera.into(), size, ..Frigate::default() })
}

#[cfg(feature = "ros2")]
fn of_graph(topic: &str, run: &Opened) -> Result<BoxSource> {
    crate::ros2::subscribe_boxes(topic, run.rig.pairs.size)
}

#[cfg(not(feature = "ros2"))]
fn of_graph(_: &str, _: &Opened) -> Result<BoxSource> {
    bail!("this stereod was built without ROS 2 (Cargo's feature `ros2`)")
}

/// Rigs with one address share its link, because autopilots take only one sender.
#[cfg(feature = "mavlink")]
fn shared(address: &str, settings: mavlink::Settings) -> Result<Arc<Link>> {
    static OPEN: Mutex<Vec<(String, Weak<Link>)>> = Mutex::new(Vec::new());
    let mut open = locked(&OPEN);
    open.retain(|(_, link)| link.strong_count() > 0);
    let known = open.iter().find(|(known, _)| known == address);
    if let Some(link) = known.and_then(|(_, link)| link.upgrade()) {
        return Ok(link);
    }
    let link = Arc::new(Link::open(settings)?);
    open.push((address.to_owned(), Arc::downgrade(&link)));
    Ok(link)
}

/// Returns the rate at which the vehicle turns to the left, in degrees per second; 0 if nobody follows its motion.
#[cfg(feature = "mavlink")]
fn turn_deg_s(frame: &Matched) -> f64 {
    let velocity = frame.odometry.as_ref().and_then(|odometry| odometry.of_vehicle().velocity);
    velocity.map_or(0.0, |[.., about_up]| about_up.to_degrees())
}

/// Hands what is found in each pair to a link, which has a thread of its own.
#[cfg_attr(not(any(feature = "mavlink", feature = "mqtt")), allow(dead_code))]
struct LinkSink<L, S> {
    name: &'static str,
    clock: Option<CaptureClock>,
    lost: L,
    send: S,
}

impl<L: Fn() -> u64 + Send, S: FnMut(&Matched, Duration) + Send> Sink for LinkSink<L, S> {
    fn name(&self) -> &str {
        self.name
    }

    fn counted_as(&self) -> Option<&'static str> {
        Some(self.name)
    }

    fn newest_only(&self) -> bool {
        true
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        (self.send)(frame, messages::stamp(self.clock, frame.pair.timestamp));
        Ok(())
    }

    fn losses(&self) -> Losses {
        Losses { busy: (self.lost)(), ..Losses::default() }
    }
}
