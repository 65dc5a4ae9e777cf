//! Surfaces without texture: the source of their disparity, and that they have none without
//! support.

use serde_json::json;

use super::Data;

/// Width and height of the scene, and its box: columns, rows and disparity.
const SIZE: (u32, u32) = (400, 300);
const BOX: ([u32; 2], [u32; 2], u32) = ([150, 250], [100, 200], 32);

/// The ground is evaluated from this distance around the box: closer, the windows of cost and
/// texture still include the box.
const RIM: u32 = 12;

fn is_within([from, to]: [u32; 2], at: u32, rim: u32) -> bool {
    (from.saturating_sub(rim)..to + rim).contains(&at)
}

/// Uniformly distributed pseudo-random numbers.
fn random(x: u32, y: u32, seed: u32) -> u32 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9) ^ (y << 16 | x);
    for _ in 0..2 {
        mixed = (mixed ^ mixed >> 16).wrapping_mul(0x7feb_352d);
        mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    }
    mixed >> 8
}

/// Nearly normal noise of this standard deviation.
fn noise(x: u32, y: u32, seed: u32, sigma: f64) -> f64 {
    let sum: u32 = (0..12).map(|i| random(x, y, 100 * seed + i) % 4096).sum();
    sigma * (f64::from(sum) / 4096.0 - 6.0)
}

impl Data {
    /// The pair `name`: a textured box in front of an even ground, whose true disparity is 1 px. `blocks`
    /// makes every other block of 16 x 16 pixels of the ground one grey level brighter, as codecs do.
    fn box_before(&self, name: &str, ground: u8, sigma: f64, blocks: bool) {
        let (columns, rows, near) = BOX;
        for (eye, shift) in [(0, 0), (1, near)] {
            self.grey(&format!("{name}/{eye}.png"), SIZE, |x, y| {
                let at = x + shift;
                let grey = match is_within(columns, at, 0) && is_within(rows, y, 0) {
                    true => f64::from(40 + random(at / 3, y / 3, 7) % 160),
                    false => {
                        f64::from(ground)
                            + f64::from((x / 16 + y / 16) % 2) * f64::from(u8::from(blocks))
                    }
                };
                (grey + noise(x, y, 1 + eye, sigma)).round().clamp(0.0, 255.0) as u8
            });
        }
        self.grey(&format!("{name}/truth.png"), SIZE, |_, _| 1);
        self.grey(&format!("{name}/ground.png"), SIZE, |x, y| {
            if is_within(columns, x, RIM) && is_within(rows, y, RIM) { 0 } else { 255 }
        });
        let item = json!({
            "left": "0.png", "right": "1.png", "gt": "truth.png", "gt_scale": 1, "ndisp": 64,
            "masks": { "all": "ground.png" },
        });
        std::fs::write(self.file(&format!("{name}/item.json")), item.to_string()).unwrap();
    }

    /// Percentage of the ground whose disparity is too large.
    fn phantoms(&self, arguments: &[&str]) -> f64 {
        let report = self.report(arguments);
        let figures = &report["datasets"][0]["items"][0]["unfilled"]["all"];
        let known = figures["density"].as_f64().unwrap();
        // Unknown pixels are not too near.
        known * figures["nearer_valid"].as_f64().unwrap_or(0.0) / 100.0
    }
}

#[test]
fn an_even_ground_does_not_take_the_disparity_of_a_box() {
    let data = Data::new();
    let even = [
        (0, 0.0),
        (0, 1.2),
        (128, 0.0),
        (128, 0.5),
        (128, 1.2),
        (128, 3.0),
        (255, 0.0),
        (255, 3.0),
    ];
    let scenes = even.map(|(ground, sigma)| (ground, sigma, false));
    for (ground, sigma, blocks) in scenes.into_iter().chain([(16, 0.0, true)]) {
        let name = format!("{ground}-{sigma}");
        data.box_before(&name, ground, sigma, blocks);
        let [on, off] =
            ["on", "off"].map(|evidence| data.phantoms(&[&name, "--evidence", evidence]));
        assert!(on < 0.5, "{on} % of an even ground of {ground} with noise of {sigma}");
        assert!(off > 3.0, "{off} % where nobody asks for evidence: the scene shows nothing");
    }
}

#[test]
fn even_regions_can_be_painted_into_any_pair() {
    let data = Data::new();
    data.described("wall");
    let report = data.report(&["wall", "--even", "128"]);
    assert_eq!(report["even"], json!(128));
    assert_eq!(data.report(&["wall"])["even"], serde_json::Value::Null);
    let (status, _, stderr) = data.evaluate(&["wall", "--even", "256"]);
    assert!(status == 2 && stderr.contains("256"), "{stderr}");
    let (status, _, stderr) = data.evaluate(&["wall", "--even", "9", "--calibration", "rig.json"]);
    assert!(status == 2 && stderr.contains("--calibration"), "{stderr}");
}
