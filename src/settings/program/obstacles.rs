//! `[mount]`: where the left camera is on the vehicle; `[obstacles]`: what is found in the disparity besides, and who is
//! told.

use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;

use super::ros2::namespace;
use crate::settings::names::path_of;
use stereod_core::frame::StereoGeometry;
use stereod_core::obstacles::Mount;
use stereod_core::settings::row::Integer::U64;
use stereod_core::settings::row::Plain::{Real, Switch, Text, Whole};
use stereod_core::settings::row::{InBatch, Kind, OUTPUT, Row, any};
use stereod_obstacles::scan::Rules;
use stereod_obstacles::usual;
use stereod_obstacles::zones::{self, ZoneRule};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSettings {
    pub x_m: f64,
    pub y_m: f64,
    pub z_m: f64,
    pub roll_deg: f64,
    pub pitch_deg: f64,
    pub yaw_deg: f64,
    pub axes: Axes,
    pub ground: Ground,
}

/// Axes of a vehicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axes {
    /// Ahead, to the left, up: ROS (REP 103).
    Flu,
    /// Ahead, to the right, down: ArduPilot and PX4.
    Frd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    Fixed,
    Track,
}

pub(in crate::settings) const MOUNT: &[Row] = &[
    Row::real("x_m", Real(0.0), [-100.0, 100.0])
        .knob("Mount", "ahead")
        .rare()
        .slider(-3.0, 3.0, 0.01)
        .help("Position of the left camera on the vehicle: metres ahead of its origin ..."),
    Row::real("y_m", Real(0.0), [-100.0, 100.0])
        .knob("Mount", "to the side")
        .rare()
        .slider(-3.0, 3.0, 0.01)
        .help("... and to its left (with `axes` = \"frd\": to its right) ..."),
    Row::real("z_m", Real(0.0), [-100.0, 100.0])
        .knob("Mount", "height")
        .slider(-3.0, 3.0, 0.01)
        .help("... and up (\"frd\": down)."),
    Row::real("roll_deg", Real(0.0), [-60.0, 60.0])
        .knob("Mount", "roll")
        .rare()
        .slider(-60.0, 60.0, 0.5)
        .help("Attitude of the left camera, as its images are rectified: roll, positive if its right side is lower ..."),
    Row::real("pitch_deg", Real(0.0), [-60.0, 60.0])
        .knob("Mount", "pitch")
        .slider(-60.0, 60.0, 0.5)
        .help("... pitch, positive if it looks down (\"frd\": up) ..."),
    Row::real("yaw_deg", Real(0.0), [-180.0, 180.0])
        .knob("Mount", "yaw")
        .rare()
        .slider(-180.0, 180.0, 1.0)
        .help("... and yaw, positive if it looks to the left (\"frd\": right).")
        .more("Rotations about the vehicle's axes in this order; `stereod calibration mount` finds height, roll and pitch."),
    Row::names("axes", "flu", &["flu", "frd"])
        .help("Axes of the vehicle in which this section is written.")
        .about(&["Ahead, to the left, up, as in ROS (REP 103)", "Ahead, to the right, down, as in ArduPilot and PX4"]),
    Row::names("ground", "fixed", &["fixed", "track"])
        .help("Whether roll, pitch and height follow the ground that is seen.")
        .about(&["The camera is as this section says", "By at most 10 degrees and 0.3 m, with each pair that shows the ground"]),
];

/// Checks the beginning of an address; what follows is checked when it is opened.
fn begins(address: &str, schemes: &[&str]) -> Result<(), String> {
    match address.is_empty() || schemes.iter().any(|scheme| address.starts_with(scheme)) {
        true => Ok(()),
        false => Err(format!("an address that begins with {}", schemes.join(" or "))),
    }
}

impl MountSettings {
    pub fn mount(&self) -> Mount {
        let sign = match self.axes {
            Axes::Flu => 1.0,
            Axes::Frd => -1.0,
        };
        Mount {
            position_m: [self.x_m, sign * self.y_m, sign * self.z_m],
            attitude_deg: [self.roll_deg, sign * self.pitch_deg, sign * self.yaw_deg],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Obstacles {
    pub find: bool,
    pub lines: String,
    pub mavlink: String,
    pub mavlink_system: u8,
    pub mavlink_3d: bool,
    pub mavlink_sensor: bool,
    pub mavlink_odometry: bool,
    pub mqtt: String,
    pub mqtt_ca: String,
    pub mqtt_topic: String,
    pub mqtt_discovery: String,
    pub zones: String,
    pub boxes: String,
    pub bin_deg: f64,
    pub field_deg: Option<f64>,
    pub low_m: Option<f64>,
    pub high_m: Option<f64>,
    pub slope_deg: f64,
    pub overhangs: bool,
    pub far_m: Option<f64>,
    pub confidence: u8,
    pub pixels: u32,
}

pub(in crate::settings) const OBSTACLES: &[Row] = &[
    Row::new("find", Switch(false), Kind::Switch)
        .help("Find obstacles even if none of the outputs below is given: for the live page and the window.")
        .more("Needs known cameras, and computes the confidence."),
    Row::path("lines")
        .flag(OUTPUT, "--obstacles", "FILE|-|udp://HOST:PORT")
        .help("Write the obstacles of each pair as a line of JSON: to a file, a pipe, standard output, or by UDP."),
    Row::text("mavlink", "", |text| begins(text, &["udp://", "serial://"]))
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--mavlink", "udp://HOST:PORT|serial:///dev/TTY?baud=N")
        .help("Send obstacles to ArduPilot or PX4 by MAVLink.")
        .more("Rigs with the same address are merged into one message."),
    Row::whole("mavlink_system", Whole(1), U64, [1, 255])
        .help("MAVLink system number of the vehicle."),
    Row::new("mavlink_3d", Switch(false), Kind::Switch)
        .help("Send OBSTACLE_DISTANCE_3D as well, which ArduPilot reads."),
    Row::new("mavlink_sensor", Switch(false), Kind::Switch)
        .help("Send DISTANCE_SENSOR as well: the nearest obstacle ahead."),
    Row::new("mavlink_odometry", Switch(false), Kind::Switch)
        .help("Send ODOMETRY as well: the motion of the vehicle since the first pair, for the autopilot's estimator."),
    Row::text("mqtt", "", |text| begins(text, &["mqtt://", "mqtts://"]))
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--mqtt", "mqtt://HOST[:PORT]")
        .help("Tell zones and the nearest obstacle to an MQTT broker; mqtts:// encrypts.")
        .more("User and password: the variables STEREOD_MQTT_USER and STEREOD_MQTT_PASSWORD."),
    Row::path("mqtt_ca").help("Certificates that the broker's may be signed with besides those of the system, PEM."),
    Row::text("mqtt_topic", "", any)
        .help("Topic below which everything is told.")
        .more("\"\": `stereod/` and the name of the rig or of the machine."),
    Row::text("mqtt_discovery", "homeassistant", any)
        .help("Prefix of the topics by which Home Assistant finds the sensors; \"\": none."),
    Row::path("zones")
        .in_batch(InBatch::Kept)
        .flag(OUTPUT, "--zones", "FILE.toml")
        .help("File of the zones to watch, `[[zone]]` each (docs/obstacles.md)."),
    Row::text("boxes", "", |text| match text.strip_prefix(BOXES_OF_GRAPH).is_none_or(is_topic) {
        true => Ok(()),
        false => Err("a topic of ROS 2 with its namespace, such as `ros2:/detections`".into()),
    })
        .in_batch(InBatch::Reset)
        .help("Boxes of a detector whose distances are wanted: udp://127.0.0.1:PORT, a message of JSON each, or `stdin`.")
        .more("`frigate:CAMERA:WxH`: Frigate's, through `mqtt`; `ros2:/TOPIC`: vision_msgs/Detection2DArray of a ROS 2 graph."),
    Row::real("bin_deg", Real(1.0), [0.2, 30.0])
        .knob("Obstacles", "width of a direction")
        .rare()
        .slider(0.5, 10.0, 0.5)
        .help("Width of a direction of the scan in degrees."),
    Row::real("field_deg", Text("auto"), [1.0, 180.0])
        .or(&["auto"])
        .knob("Obstacles", "field of view")
        .rare()
        .slider(10.0, 180.0, 5.0)
        .help("Field of the scan in degrees, half of it to each side of the camera; `auto`: all that it sees."),
    Row::real("low_m", Text("auto"), [-1000.0, 1000.0])
        .or(&["auto"])
        .knob("Obstacles", "lowest height")
        .slider(-2.0, 2.0, 0.05)
        .help("Lowest height of an obstacle in metres, in the vehicle's axes, up.")
        .more("`auto`: 0.1, or, if `mount.z_m` is 0, 0.3 below the camera."),
    Row::real("high_m", Text("auto"), [-1000.0, 1000.0])
        .or(&["auto"])
        .knob("Obstacles", "greatest height")
        .slider(-2.0, 5.0, 0.05)
        .help("Greatest height of an obstacle.")
        .more("`auto`: 2, or, if `mount.z_m` is 0, 0.3 above the camera."),
    Row::real("slope_deg", Real(1.0), [0.0, 30.0])
        .knob("Obstacles", "slope of the ground")
        .rare()
        .slider(0.0, 10.0, 0.5)
        .help("Angle in degrees by which the lowest height rises with the distance.")
        .more("For uneven ground and an attitude that is not exact. Not used if `mount.z_m` is 0."),
    Row::new("overhangs", Switch(true), Kind::Switch)
        .knob("Obstacles", "overhangs")
        .rare()
        .help("Call a direction clear only if rays above the horizon see through, too.")
        .more("A bare sky is unknown, so that outdoors few directions are clear; without it, what hangs in front of the sky may be missed in a clear direction."),
    Row::real("far_m", Text("auto"), [0.1, 10000.0])
        .or(&["auto"])
        .knob("Obstacles", "greatest distance")
        .slider(1.0, 50.0, 0.5)
        .help("Distance in metres up to which obstacles count and directions are looked through.")
        .more("`auto`: 20, or that of a disparity of 4 px if it is less."),
    Row::whole("confidence", Whole(128), U64, [0, 255])
        .knob("Obstacles", "lowest confidence")
        .rare()
        .slider(0.0, 255.0, 1.0)
        .help("Confidence from which on a pixel counts, 0 to 255."),
    Row::whole("pixels", Whole(20), U64, [1, 100_000])
        .knob("Obstacles", "fewest pixels")
        .rare()
        .slider(1.0, 500.0, 1.0)
        .help("Number of pixels that must agree about an obstacle."),
];

/// How boxes begin that come by a topic of a ROS 2 graph.
pub const BOXES_OF_GRAPH: &str = "ros2:";

fn is_topic(text: &str) -> bool {
    text.len() > 1 && text.starts_with('/') && namespace(text).is_some()
}

impl Obstacles {
    /// Reports whether obstacles are to be found.
    pub fn are_wanted(&self) -> bool {
        let texts = [&self.lines, &self.mavlink, &self.mqtt, &self.zones, &self.boxes];
        self.find || texts.iter().any(|text| !text.is_empty())
    }

    /// Keys of the further messages to an autopilot that are on.
    pub fn mavlink_asks(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("mavlink_3d", self.mavlink_3d),
            ("mavlink_sensor", self.mavlink_sensor),
            ("mavlink_odometry", self.mavlink_odometry),
        ];
        all.into_iter().filter_map(|(key, is_on)| is_on.then_some(key))
    }

    /// Reports whether an autopilot is told of the motion.
    pub fn tells_odometry(&self) -> bool {
        self.mavlink_odometry && !self.mavlink.is_empty()
    }

    /// Reports whether the lines have standard output for themselves.
    pub fn on_stdout(&self) -> bool {
        self.lines == "-"
    }

    /// Returns the file of the lines, if it is one.
    pub fn file(&self) -> Option<PathBuf> {
        path_of(&self.lines).filter(|_| !self.on_stdout() && !self.lines.starts_with("udp://"))
    }

    pub fn rules(&self, mount: &Mount, geometry: &StereoGeometry) -> Rules {
        let usual = usual::rules(mount, geometry);
        let [low, high] = usual.band_m;
        Rules {
            bin_deg: self.bin_deg,
            field_deg: self.field_deg,
            band_m: [self.low_m.unwrap_or(low), self.high_m.unwrap_or(high)],
            slope_deg: if usual.slope_deg == 0.0 { 0.0 } else { self.slope_deg },
            overhangs: self.overhangs,
            far_m: self.far_m.unwrap_or(usual.far_m),
            confidence: self.confidence,
            pixels: self.pixels,
        }
    }

    /// Returns the files that are read.
    pub fn inputs(&self) -> impl Iterator<Item = PathBuf> + use<> {
        [path_of(&self.zones), path_of(&self.mqtt_ca)].into_iter().flatten()
    }

    /// Returns values that only one rig can have, with their keys: its boxes, and its topic of an MQTT broker.
    pub fn of_one_rig(&self) -> impl Iterator<Item = (&'static str, String)> {
        let topic = if self.mqtt.is_empty() { "" } else { &self.mqtt_topic };
        [("obstacles.boxes", &*self.boxes), ("obstacles.mqtt_topic", topic)]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key, value.to_owned()))
    }

    /// Reads the zones.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or describes no zones.
    pub fn zones(&self) -> anyhow::Result<Vec<ZoneRule>> {
        let Some(path) = self.zones_file() else { return Ok(Vec::new()) };
        zones::read(&zones::text(&path)?).with_context(|| format!("the zones {}", path.display()))
    }

    /// Returns the file of the zones, if there is one.
    pub fn zones_file(&self) -> Option<PathBuf> {
        path_of(&self.zones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::refused;

    #[test]
    fn boxes_of_a_graph_have_a_topic() {
        for (boxes, is_right) in [
            ("ros2:/detections", true),
            ("ros2:/front/detections", true),
            ("ros2:detections", false),
            ("ros2:/", false),
            ("ros2:/a b", false),
            ("stdin", true),
            ("", true),
        ] {
            assert_eq!(!refused("obstacles", "boxes", boxes), is_right, "{boxes}");
        }
    }

    #[test]
    fn a_mount_in_the_axes_of_an_autopilot_is_turned() {
        let flu = MountSettings {
            y_m: 1.0,
            z_m: 2.0,
            pitch_deg: 3.0,
            yaw_deg: 4.0,
            ..Settings::default().mount
        };
        let frd = MountSettings {
            y_m: -1.0,
            z_m: -2.0,
            pitch_deg: -3.0,
            yaw_deg: -4.0,
            axes: Axes::Frd,
            ..flu.clone()
        };
        assert_eq!(frd.mount(), flu.mount());
        assert_eq!(flu.mount().attitude_deg, [0.0, 3.0, 4.0]);
    }
}
