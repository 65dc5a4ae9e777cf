//! Mutual information on a real pair whose right image is changed as if from another kind of
//! camera.

use image::GrayImage;
use serde_json::Value;

use crate::common::data::data;
use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Share of the pixels that are wrong by more than 1 px, all filled.
fn wrong(item: &std::path::Path, cost: &str) -> f64 {
    let arguments = ["evaluate", "--json", "-", "--repeat", "1", "--engine", "cpu", "--cost", cost];
    let (status, stdout, stderr) = outcome(stereod(&arguments).arg(item));
    assert_eq!(status, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    report["datasets"][0]["items"][0]["dense"]["nonocc"]["bad1.0"].as_f64().unwrap()
}

#[test]
fn exposure_gamma_and_negatives_cost_little() {
    let Some(cones) = data("middlebury_v2/cones") else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["item.json", "imL.png", "groundtruth.png", "nonocc.png", "all.png", "disc.png"] {
        std::fs::copy(cones.join(name), folder.path().join(name)).unwrap();
    }
    let right: GrayImage = image::open(cones.join("imR.png")).unwrap().to_luma8();
    let with = |grey: &dyn Fn(u8) -> u8| {
        let mut other = right.clone();
        other.iter_mut().for_each(|value| *value = grey(*value));
        other.save(folder.path().join("imR.png")).unwrap();
        ["mi", "ad"].map(|cost| wrong(folder.path(), cost))
    };
    let [as_it_is, _] = with(&|v| v);
    let gamma = |v: u8| (255.0 * (f64::from(v) / 255.0).powf(2.2)).round() as u8;
    for (name, grey) in [
        ("half", &(|v: u8| v / 2) as &dyn Fn(u8) -> u8),
        ("gamma", &gamma),
        ("negative", &|v: u8| 255 - v),
    ] {
        let [mi, ad] = with(grey);
        assert!(mi < as_it_is + 2.0, "{name}: {mi} beside {as_it_is}");
        assert!(
            ad > 2.0 * mi,
            "{name}: {ad} with the absolute difference, {mi} with mutual information"
        );
    }
}
