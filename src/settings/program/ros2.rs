//! `[ros2]`: messages to a ROS 2 graph.

use std::net::Ipv4Addr;

use serde::Deserialize;

use stereod_core::settings::row::Plain::{Switch, Text};
use stereod_core::settings::row::{Integer, Kind, OUTPUT, Row};
#[cfg(feature = "ros2")]
use stereod_io::ros2::dds::{Graph, Reach};
use stereod_io::sink::messages;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "ros2"), allow(dead_code))] // The program then refuses the section.
pub struct Ros2 {
    pub namespace: String,
    pub topics: String,
    pub domain: Option<u8>,
    pub discovery: String,
    pub reliable: bool,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::text("namespace", "", |text| match text.is_empty() || namespace(text).is_some() {
        true => Ok(()),
        false => Err("names of ROS (letters, digits and _) such as `/front_stereo`, or `/` for no namespace".into()),
    })
    .flag(OUTPUT, "--ros2", "NAMESPACE")
    .help(
        "Publish images, disparity, depth and points as messages to a ROS 2 graph, below this namespace \
         such as /front_stereo, or / for no namespace.",
    ),
    Row::text("topics", "", messages::check_topics)
        .help("Messages to publish, a list as for `output.mcap`.")
        .more(
            "\"\": left, left-jpeg, right, disparity, disparity-jpeg, with a calibration depth, depth-png and \
             points, verdicts if a network is checked, scan and obstacles if they are found, and odometry if the motion is \
             followed. Only messages that have a subscriber are encoded.",
        ),
    Row::whole("domain", Text("auto"), Integer::U8, [0, 232])
        .or(&["auto"])
        .help("Domain of DDS, 0 to 232.")
        .more("`auto`: the variable ROS_DOMAIN_ID, or 0."),
    Row::text("discovery", "auto", |text| {
        match ["auto", "localhost", "subnet"].contains(&text) || addresses(text).is_some() {
            true => Ok(()),
            false => Err("auto, localhost, subnet, or IPv4 addresses of this machine".into()),
        }
    })
    .help("Where subscribers are looked for.")
    .more(
        "\"localhost\": on this machine; \"subnet\": also on the networks of all its interfaces; \
         addresses of this machine, \"10.0.0.5, 192.168.1.2\": on the networks of these interfaces; \
         `auto`: as ROS_AUTOMATIC_DISCOVERY_RANGE or ROS_LOCALHOST_ONLY say, else localhost.",
    ),
    Row::new("reliable", Switch(false), Kind::Switch)
        .help("Repeat messages that a subscriber has missed: it may then ask for reliable ones.")
        .more("A slow subscriber costs the others pairs."),
];

impl Ros2 {
    /// Returns the namespace with a slash before each of its names, empty for none; `None`: nothing is
    /// published.
    pub fn namespace(&self) -> Option<String> {
        namespace(&self.namespace)
    }

    #[cfg(feature = "ros2")]
    pub fn graph(&self) -> Graph {
        let reach = match self.discovery.as_str() {
            "localhost" => Some(Reach::Localhost),
            "subnet" => Some(Reach::Subnet),
            text => addresses(text).map(Reach::Interfaces),
        };
        Graph { domain: self.domain, reach }
    }

    pub(in crate::settings) fn shows_obstacles(&self) -> bool {
        self.namespace().is_some() && messages::show_obstacles(&self.topics)
    }

    pub(in crate::settings) fn shows_odometry(&self) -> bool {
        self.namespace().is_some() && messages::show_odometry(&self.topics)
    }

    pub(in crate::settings) fn shows_confidence(&self) -> bool {
        self.namespace().is_some() && messages::names(&self.topics).any(|name| name == "confidence")
    }
}

/// Parses a list of addresses with commas.
fn addresses(text: &str) -> Option<Vec<Ipv4Addr>> {
    text.split(',').map(|address| address.trim().parse().ok()).collect()
}

/// Parses a namespace (design.ros2.org/articles/topic_and_service_names.html).
pub(super) fn namespace(text: &str) -> Option<String> {
    if text == "/" {
        return Some(String::new());
    }
    let names = text.strip_prefix('/').unwrap_or(text);
    let is_name = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty()
            && name.chars().all(letters)
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.contains("__")
    };
    names.split('/').all(is_name).then(|| format!("/{names}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::refused;

    #[test]
    fn discovery_is_a_word_or_addresses() {
        for right in ["auto", "localhost", "subnet", "10.0.0.5", "10.0.0.5, 192.168.1.2"] {
            assert!(!refused("ros2", "discovery", right), "{right}");
        }
        for wrong in ["", "Subnet", "eth0", "10.0.0.5/24", "10.0.0.5,", "::1"] {
            assert!(refused("ros2", "discovery", wrong), "{wrong}");
        }
    }

    #[test]
    fn a_namespace_is_made_of_names_of_ros() {
        for (text, expected) in [("/", ""), ("/front", "/front"), ("a/b_2", "/a/b_2")] {
            let ros2 = Ros2 { namespace: text.into(), ..Settings::default().ros2 };
            assert_eq!(ros2.namespace().as_deref(), Some(expected));
            assert!(!refused("ros2", "namespace", text));
        }
        assert_eq!(Settings::default().ros2.namespace(), None);
        for wrong in ["drive.mcap", "//", "/a/", "/2", "a b", "a__b", "ä", "~"] {
            assert!(refused("ros2", "namespace", wrong), "{wrong}");
        }
    }
}
