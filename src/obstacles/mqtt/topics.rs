//! Topics of the messages, and their description for Home Assistant.

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::Settings;

pub(super) const ONLINE: &str = "online";
pub(super) const OFFLINE: &str = "offline";

/// Longest description for Home Assistant in bytes, and longest message of a broker.
pub(super) const LONGEST_DISCOVERY: usize = 1 << 20;

/// Longest topic in bytes, and most slashes in it: brokers close connections for more (mosquitto: 200 slashes).
const LONGEST: usize = 1024;
const DEEPEST: usize = 100;

/// Home Assistant shows a state as unavailable if none came for so many intervals, or for this time in seconds if that
/// is longer.
const EXPIRE_INTERVALS: f64 = 4.0;
const EXPIRE_S: f64 = 5.0;

/// Topics of one rig.
pub(super) struct Topics {
    pub(super) status: String,
    /// Topics of states: that of the nearest obstacle, then those of the zones.
    states: Vec<String>,
    zones: HashMap<String, usize>,
    /// Topic and payload of Home Assistant's discovery.
    pub(super) discovery: Option<(String, Vec<u8>)>,
}

impl Topics {
    pub(super) const NEAREST: usize = 0;

    /// # Errors
    /// Fails if a topic may not be published, a zone has no name or that of another, or there are too many of them.
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let name = match settings.name.as_str() {
            "" => gethostname::gethostname().to_string_lossy().into_owned(),
            name => name.to_owned(),
        };
        let base = match settings.topic.as_str() {
            "" => format!("stereod/{name}"),
            topic => topic.to_owned(),
        };
        check(&base)?;
        let mut zones = HashMap::new();
        let mut states = vec![format!("{base}/nearest")];
        for zone in &settings.zones {
            ensure!(!zone.is_empty(), "a zone without a name has no MQTT topic");
            ensure!(
                zones.insert(zone.clone(), states.len()).is_none(),
                "two zones are called \"{zone}\""
            );
            states.push(format!("{base}/zone/{zone}"));
        }
        states.iter().try_for_each(|topic| check(topic))?;
        let mut topics = Self { status: format!("{base}/status"), states, zones, discovery: None };
        if !settings.discovery.is_empty() {
            check(&settings.discovery)?;
            let device = format!("stereod_{}", id(&base));
            let payload = topics.describe(&device, &name, settings).to_string().into_bytes();
            ensure!(
                payload.len() < LONGEST_DISCOVERY / 2,
                "{} zones are too many for MQTT",
                settings.zones.len()
            );
            topics.discovery =
                Some((format!("{}/device/{device}/config", settings.discovery), payload));
        }
        Ok(topics)
    }

    /// Returns the number of topics of states.
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn state(&self, index: usize) -> &str {
        &self.states[index]
    }

    pub(super) fn zone(&self, name: &str) -> Option<usize> {
        self.zones.get(name).copied()
    }

    /// Returns the message that makes Home Assistant (2024.11 and later) show one device with all states. It replaces
    /// the one before, so that renamed zones leave nothing behind in the broker.
    fn describe(&self, device: &str, name: &str, settings: &Settings) -> Value {
        let expire = (EXPIRE_INTERVALS / settings.rate).max(EXPIRE_S).ceil() as u64;
        let mut components = Map::new();
        let mut add = |part: String, mut component: Value| {
            component["unique_id"] = json!(format!("{device}_{part}"));
            component["expire_after"] = json!(expire);
            components.insert(part, component);
        };
        let distance = |name: String, topic: &str| {
            json!({
                "platform": "sensor", "name": name, "device_class": "distance", "state_class": "measurement",
                "unit_of_measurement": "m", "suggested_display_precision": 2, "state_topic": topic,
                // Null becomes the word None, which Home Assistant shows as unknown.
                "value_template": "{{ value_json.distance_m }}",
            })
        };
        for zone in &settings.zones {
            let topic = &self.states[self.zones[zone]];
            add(format!("zone_{}_distance", id(zone)), distance(format!("{zone} distance"), topic));
            let occupied = json!({
                "platform": "binary_sensor", "name": format!("{zone} occupied"), "device_class": "occupancy",
                "state_topic": topic,
                // An unknown state must not read as free.
                "value_template": "{{ 'None' if value_json.occupied is none else 'ON' if value_json.occupied else 'OFF' }}",
            });
            add(format!("zone_{}_occupied", id(zone)), occupied);
        }
        let mut nearest = distance("Nearest obstacle".into(), &self.states[Self::NEAREST]);
        nearest["json_attributes_topic"] = json!(self.states[Self::NEAREST]);
        // Without the stamp: an attribute that always changes would fill Home Assistant's history.
        nearest["json_attributes_template"] = json!(
            "{{ {'direction_deg': value_json.direction_deg, 'height_m': value_json.height_m} | tojson }}"
        );
        add("nearest".into(), nearest);
        let version = env!("CARGO_PKG_VERSION");
        json!({
            "device": {
                "identifiers": [device], "name": name, "manufacturer": "stereod", "model": "Stereo camera",
                "sw_version": version,
            },
            "origin": {"name": "stereod", "sw_version": version},
            "availability_topic": self.status,
            "components": components,
        })
    }
}

/// Returns an id of the letters that Home Assistant allows. It is unique for the name, because most names in other
/// scripts have the same allowed letters: none.
fn id(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let letters: String = name.chars().map(letter).take(32).collect();
    // FNV-1a, as written down by its authors; ids must be the same after updates.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{letters}_{hash:016x}")
}

/// # Errors
/// Fails if messages cannot be published to this topic (MQTT 3.1.1, sections 1.5.3 and 4.7).
pub(super) fn check(topic: &str) -> Result<()> {
    let is_unwanted = |c: char| {
        c.is_control() || matches!(c, '\u{fdd0}'..='\u{fdef}') || c as u32 & 0xfffe == 0xfffe
    };
    let fault = if topic.is_empty() {
        "is empty"
    } else if topic.contains(['+', '#']) {
        "has + or #, which stand for other topics: rename the zone or the rig, or set another topic"
    } else if topic.contains('\0') {
        "has a NUL character"
    } else if topic.contains(is_unwanted) {
        "has a control character"
    } else if topic.starts_with('$') {
        "starts with $, which is the broker's own"
    } else if topic.len() > LONGEST {
        "is longer than 1024 bytes"
    } else if topic.matches('/').count() > DEEPEST {
        "has more than 100 slashes"
    } else {
        return Ok(());
    };
    bail!("the MQTT topic \"{}\" {fault}", topic.escape_debug())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topics(name: &str, zones: &[&str]) -> Result<Topics> {
        let zones = zones.iter().map(|zone| zone.to_string()).collect();
        Topics::new(&Settings { name: name.into(), zones, ..Settings::default() })
    }

    #[test]
    fn a_device_is_described() {
        let topics = topics("porch", &["Gate", "门"]).unwrap();
        let (topic, payload) = topics.discovery.as_ref().unwrap();
        assert_eq!(topic, "homeassistant/device/stereod_stereod_porch_6f4516c71ae90bc2/config");
        let value: Value = serde_json::from_slice(payload).unwrap();
        assert_eq!(value["availability_topic"], "stereod/porch/status");
        let components = value["components"].as_object().unwrap();
        assert_eq!(components.len(), 5);
        let gate = &components[&format!("zone_{}_occupied", id("Gate"))];
        assert_eq!(gate["state_topic"], "stereod/porch/zone/Gate");
        assert_eq!(
            (&gate["device_class"], &gate["expire_after"]),
            (&json!("occupancy"), &json!(5))
        );
        assert_eq!(components["nearest"]["unit_of_measurement"], "m");
    }

    #[test]
    fn without_a_prefix_nothing_is_described() {
        let settings =
            Settings { discovery: String::new(), topic: "a/b".into(), ..Settings::default() };
        let topics = Topics::new(&settings).unwrap();
        assert!(topics.discovery.is_none());
        assert_eq!(
            (topics.status.as_str(), topics.state(Topics::NEAREST)),
            ("a/b/status", "a/b/nearest")
        );
        let own = Topics::new(&Settings::default()).unwrap().status;
        assert_eq!(own, format!("stereod/{}/status", gethostname::gethostname().to_string_lossy()));
    }

    #[test]
    fn topics_that_cannot_be_published_are_refused() {
        let deep = "/".repeat(101);
        let long = "x".repeat(1100);
        for (name, zones, words) in [
            ("a+b", vec![], "+ or #"),
            ("a", vec!["b#"], "+ or #"),
            ("a", vec!["b\0"], "NUL"),
            ("a", vec!["b\n"], "control"),
            ("a", vec!["b\u{ffff}"], "control"),
            ("a", vec![""], "without a name"),
            ("a", vec!["b", "c", "b"], "two zones"),
            ("a", vec![&deep], "100 slashes"),
            ("a", vec![&long], "1024 bytes"),
        ] {
            let error = topics(name, &zones).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
        for topic in ["$SYS", "a+"] {
            let settings = Settings { topic: topic.into(), ..Settings::default() };
            assert!(Topics::new(&settings).is_err());
            let settings =
                Settings { discovery: topic.into(), name: "a".into(), ..Settings::default() };
            assert!(Topics::new(&settings).is_err());
        }
        let many: Vec<String> = (0..2000).map(|zone| format!("zone {zone}")).collect();
        let error = Topics::new(&Settings { name: "a".into(), zones: many, ..Settings::default() })
            .err()
            .unwrap();
        assert!(error.to_string().contains("2000 zones"), "{error}");
    }

    proptest! {
        #[test]
        fn ids_are_safe_and_differ(a in any::<String>(), b in any::<String>()) {
            for name in [&a, &b] {
                let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
                prop_assert!(id(name).chars().all(is_safe) && id(name).len() < 64);
            }
            prop_assert_eq!(id(&a) == id(&b), a == b);
        }

        #[test]
        fn names_are_refused_or_taken_without_panic(name in any::<String>()) {
            if let Ok(topics) = topics("rig", &[&name]) {
                prop_assert_eq!(topics.state(topics.zone(&name).unwrap()), format!("stereod/rig/zone/{name}"));
            }
        }
    }
}
