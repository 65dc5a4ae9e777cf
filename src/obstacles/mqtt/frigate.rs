//! Events of Frigate (`frigate/events`, docs.frigate.video/integrations/mqtt) as boxes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::topics;
use crate::boxes::{DetectorBox, MOST_BOXES, fractions, read_stamp};

/// Where Frigate tells its events, and of which camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Frigate {
    /// `PREFIX/events`, where the prefix is Frigate's `mqtt.topic_prefix`.
    pub topic: String,
    /// Name of the camera in Frigate's settings. It must show the left view.
    pub camera: String,
    /// Width and height of Frigate's `detect` in pixels, to which its boxes belong.
    pub size: [u32; 2],
    /// Largest difference between the stamps of a moving thing's box and of the pair that asks. Frigate sends a box
    /// when something changes, and else every 5 s while a thing moves. A thing that stands still keeps its box until
    /// Frigate says that it is gone.
    pub hold: Duration,
}

impl Default for Frigate {
    fn default() -> Self {
        Self {
            topic: "frigate/events".into(),
            camera: String::new(),
            size: [1280, 720],
            hold: Duration::from_secs(6),
        }
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    after: Object,
}

#[derive(Deserialize)]
struct Object {
    id: String,
    camera: String,
    label: String,
    score: Option<f64>,
    #[serde(rename = "box")]
    edges: [f64; 4],
    frame_time: f64,
    #[serde(default)]
    false_positive: bool,
    #[serde(default)]
    stationary: bool,
}

/// Things that Frigate tracks at present.
pub(super) struct Tracked {
    frigate: Frigate,
    things: Mutex<BTreeMap<String, Held>>,
    refused: AtomicU64,
    /// Whether an event of another camera was logged, or one of ours came.
    told: AtomicBool,
}

struct Held {
    found: DetectorBox,
    is_stationary: bool,
}

impl Tracked {
    /// # Errors
    /// Fails if the topic, the camera or the size cannot be.
    pub(super) fn new(frigate: Frigate) -> Result<Self> {
        topics::check(&frigate.topic)?;
        ensure!(!frigate.camera.is_empty(), "the name of Frigate's camera is missing");
        ensure!(
            !frigate.size.contains(&0),
            "Frigate's images of {} x {} have no pixel",
            frigate.size[0],
            frigate.size[1]
        );
        let (refused, told) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Self { frigate, things: Mutex::default(), refused, told })
    }

    pub(super) fn topic(&self) -> &str {
        &self.frigate.topic
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes an event, or counts it if it is not one.
    pub(super) fn take(&self, payload: &[u8]) {
        if let Err(fault) = self.read(payload)
            && self.refused.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!(
                "an event in {} is refused: {fault}; further ones are counted",
                self.frigate.topic
            );
        }
    }

    fn read(&self, payload: &[u8]) -> Result<(), String> {
        let Event { kind, after } =
            serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        if after.camera != self.frigate.camera {
            if !self.told.swap(true, Ordering::Relaxed) {
                let (other, ours) = (after.camera, &self.frigate.camera);
                tracing::info!(
                    "Frigate's events of camera \"{other}\" are left out, because \"{ours}\" is set"
                );
            }
            return Ok(());
        }
        self.told.store(true, Ordering::Relaxed);
        let mut things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        if kind == "end" || after.false_positive {
            things.remove(&after.id);
            return Ok(());
        }
        if !matches!(kind.as_str(), "new" | "update") {
            return Err(format!("its type \"{}\" is not new, update or end", kind.escape_debug()));
        }
        let size = self.frigate.size.map(f64::from);
        let edges =
            fractions(after.edges, Some(size)).map_err(|fault| format!("its box {fault}"))?;
        let stamp =
            read_stamp(after.frame_time).ok_or("its frame_time is not in seconds since 1970")?;
        if things.len() >= MOST_BOXES && !things.contains_key(&after.id) {
            return Err(format!("more than {MOST_BOXES} things are tracked at once"));
        }
        let found = DetectorBox {
            label: after.label,
            id: Some(after.id.clone()),
            score: after.score,
            edges,
            stamp,
        };
        things.insert(after.id, Held { found, is_stationary: after.stationary });
        Ok(())
    }

    /// Forgets all things, because their ends may be missed.
    pub(super) fn clear(&self) {
        self.things.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn newest(&self, capture: Duration) -> Vec<DetectorBox> {
        let things = self.things.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |held: &&Held| {
            held.is_stationary || held.found.stamp.abs_diff(capture) <= self.frigate.hold
        };
        things.values().filter(holds).map(|held| held.found.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tracked() -> Tracked {
        let frigate =
            Frigate { camera: "front_door".into(), size: [1280, 1000], ..Frigate::default() };
        Tracked::new(frigate).unwrap()
    }

    /// An event with the fields of Frigate's documentation, and some that stereod does not know.
    fn event(kind: &str, changes: &[(&str, serde_json::Value)]) -> Vec<u8> {
        let mut after = serde_json::json!({
            "id": "1607123955.475377-mxklsc", "camera": "front_door", "frame_time": 1607123962.082975,
            "snapshot": {"frame_time": 1607123965.975463, "box": [415, 489, 528, 700]}, "label": "person",
            "sub_label": null, "top_score": 0.958984375, "false_positive": false, "start_time": 1607123955.475377,
            "end_time": null, "score": 0.87890625, "box": [128, 500, 640, 750], "area": 128000,
            "current_zones": ["yard", "driveway"], "stationary": false,
        });
        for (key, value) in changes {
            after[key] = value.clone();
        }
        serde_json::json!({"type": kind, "before": {"id": "x"}, "after": after})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn things_come_move_and_go() {
        let tracked = tracked();
        let at = Duration::from_secs(1_607_123_963);
        tracked.take(&event("new", &[]));
        let found = &tracked.newest(at)[0];
        assert_eq!(
            (found.label.as_str(), found.id.as_deref()),
            ("person", Some("1607123955.475377-mxklsc"))
        );
        assert_eq!((found.edges, found.score), ([0.1, 0.5, 0.5, 0.75], Some(0.87890625)));
        assert_eq!(found.stamp, Duration::from_secs_f64(1607123962.082975));
        tracked.take(&event("update", &[("box", serde_json::json!([0, 0, 1280, 1000]))]));
        tracked.take(&event("new", &[("id", "2".into()), ("label", "car".into())]));
        tracked.take(&event("new", &[("id", "3".into()), ("camera", "back".into())]));
        assert_eq!(tracked.newest(at).len(), 2);
        assert_eq!(tracked.newest(at)[0].edges, [0.0, 0.0, 1.0, 1.0]);
        tracked.take(&event("end", &[]));
        assert_eq!(tracked.newest(at)[0].label, "car");
        tracked.take(&event("update", &[("id", "2".into()), ("false_positive", true.into())]));
        assert_eq!(tracked.newest(at), []);
        assert_eq!(tracked.refused(), 0);
    }

    #[test]
    fn boxes_hold_for_a_while_unless_they_stand_still() {
        let tracked = tracked();
        let stamp = Duration::from_secs_f64(1607123962.082975);
        tracked.take(&event("new", &[]));
        tracked.take(&event("new", &[("id", "2".into()), ("stationary", true.into())]));
        assert_eq!(tracked.newest(stamp + Duration::from_secs(6)).len(), 2);
        assert_eq!(tracked.newest(stamp + Duration::from_secs(7)).len(), 1);
        tracked.clear();
        assert_eq!(tracked.newest(stamp), []);
    }

    #[test]
    fn wrong_events_are_counted() {
        let tracked = tracked();
        for payload in [
            b"".to_vec(),
            b"{\"type\": \"new\"}".to_vec(),
            event("moved", &[]),
            event("new", &[("box", serde_json::json!([5, 5, 1, 1]))]),
            event("new", &[("box", serde_json::json!([5, 5]))]),
            event("new", &[("frame_time", (-1).into())]),
        ] {
            tracked.take(&payload);
        }
        assert_eq!(
            (tracked.refused(), tracked.newest(Duration::from_secs(1_607_123_962)).len()),
            (6, 0)
        );
        for thing in 0..MOST_BOXES + 1 {
            tracked.take(&event("new", &[("id", thing.to_string().into())]));
        }
        assert_eq!(tracked.newest(Duration::from_secs(1_607_123_962)).len(), MOST_BOXES);
        assert_eq!(tracked.refused(), 7);
    }

    #[test]
    fn settings_are_checked() {
        let good = Frigate { camera: "a".into(), ..Frigate::default() };
        for wrong in [
            Frigate { camera: String::new(), ..good.clone() },
            Frigate { topic: "frigate/#".into(), ..good.clone() },
            Frigate { size: [0, 720], ..good.clone() },
        ] {
            assert!(Tracked::new(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            edges in prop::array::uniform4(any::<f64>()),
            time in any::<f64>(),
        ) {
            let tracked = tracked();
            tracked.take(&bytes);
            tracked.take(&event("new", &[("box", serde_json::json!(edges)), ("frame_time", serde_json::json!(time))]));
            let _any = tracked.newest(Duration::MAX);
        }
    }
}
