use stereod_core::obstacles::{Bin, Mount, Nearest};

use super::*;

fn nearest(distance_m: f64) -> Nearest {
    let position_m = [distance_m, 0.0, 0.4];
    Nearest { distance_m, nearest_m: distance_m - 0.1, sigma_m: 0.01, position_m, pixels: 50 }
}

fn zone(name: &str, occupied: Option<bool>, distance_m: Option<f64>) -> Zone {
    Zone { name: name.into(), occupied, nearest: distance_m.map(nearest), known: 0.98765 }
}

fn json(state: &impl Serialize) -> String {
    serde_json::to_string(state).unwrap()
}

#[test]
fn states_have_metres_and_null_for_what_is_not_known() {
    assert_eq!(
        json(&ZoneState::new(&zone("a", Some(true), Some(2.34567)), 1.25)),
        r#"{"occupied":true,"distance_m":2.346,"nearest_m":2.246,"known":0.988,"stamp":1.25}"#
    );
    assert_eq!(
        json(&ZoneState::new(&zone("a", None, None), 1.0)),
        r#"{"occupied":null,"distance_m":null,"nearest_m":null,"known":0.988,"stamp":1.0}"#
    );
    assert_eq!(
        json(&ZoneState::new(&zone("a", Some(false), Some(f64::NAN)), 1.0)),
        r#"{"occupied":false,"distance_m":null,"nearest_m":null,"known":0.988,"stamp":1.0}"#
    );
    let bins =
        vec![Bin::Unknown, Bin::Obstacle(nearest(3.0)), Bin::Clear, Bin::Obstacle(nearest(2.0))];
    let scan = Scan { first_deg: -20.0, bin_deg: 10.0, bins, near_m: 0.5, far_m: 10.0 };
    // The fourth bin from the right is that to the left.
    assert_eq!(
        json(&NearestState::new(&scan, 1.0)),
        r#"{"distance_m":2.0,"direction_deg":15.0,"height_m":0.4,"stamp":1.0}"#
    );
    let scan = Scan { bins: vec![Bin::Unknown], ..scan };
    assert_eq!(
        json(&NearestState::new(&scan, 1.0)),
        r#"{"distance_m":null,"direction_deg":null,"height_m":null,"stamp":1.0}"#
    );
}

#[test]
fn a_topic_keeps_its_rate_but_tells_changes_at_once() {
    let start = Instant::now();
    let interval = Duration::from_millis(500);
    let mut pace = Pace::default();
    let mut due = |ms: u64, occupied| {
        pace.is_due(start + Duration::from_millis(ms), interval, Some(occupied))
    };
    assert!(due(0, None));
    assert!(!due(499, None));
    assert!(due(500, None));
    assert!(due(510, Some(true)));
    assert!(!due(1009, Some(true)));
    assert!(due(1009, Some(false)));
    assert!(due(1010, None));
    assert!(!due(1500, None));
    assert!(due(1510, None));
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let good = Settings {
        address: "mqtt://127.0.0.1:1".into(),
        name: "rig".into(),
        ..Settings::default()
    };
    for (wrong, words) in [
        (Settings { address: "127.0.0.1".into(), ..good.clone() }, "mqtt://HOST"),
        (Settings { rate: 0.0, ..good.clone() }, "rate"),
        (Settings { rate: f64::NAN, ..good.clone() }, "rate"),
        (Settings { zones: vec!["a+".into()], ..good.clone() }, "+ or #"),
        (Settings { address: "mqtts://a b".into(), ..good.clone() }, "mqtts://HOST"),
        (
            Settings {
                address: "mqtts://a".into(),
                ca: Some("nowhere.pem".into()),
                ..good.clone()
            },
            "nowhere.pem",
        ),
        (Settings { frigate: Some(Frigate::default()), ..good.clone() }, "camera"),
    ] {
        let error = format!("{:#}", Broker::open(wrong).err().unwrap());
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_broker_that_is_not_there_costs_counted_states_only() {
    let address = "mqtt://127.0.0.1:1".into();
    let broker = Broker::open(Settings {
        address,
        name: "rig".into(),
        zones: vec!["a".into()],
        ..Settings::default()
    })
    .unwrap();
    let scan =
        Scan { first_deg: 0.0, bin_deg: 1.0, bins: vec![Bin::Clear], near_m: 0.5, far_m: 10.0 };
    let mount = Mount::default();
    let mut obstacles =
        Obstacles { scan, zones: vec![zone("a", None, None)], things: Vec::new(), mount };
    for pair in 0..100 {
        obstacles.zones[0].occupied = Some(pair % 2 == 0);
        broker.show(&obstacles, Duration::from_secs(pair));
    }
    assert!(broker.losses() >= 99, "{}", broker.losses());
    let before = broker.losses();
    obstacles.zones = vec![zone("b", None, None)];
    broker.show(&obstacles, Duration::ZERO);
    assert!(broker.losses() > before, "a zone without a topic");
    assert_eq!((broker.newest(Duration::ZERO), broker.refused()), (vec![], 0));
}
