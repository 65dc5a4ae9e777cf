//! Figures of synthetic pairs that can be computed by hand.

use serde_json::{Value, json};

use super::Data;

/// Figures of the wall, which is matched without errors: `rows` rows are counted.
fn wall(rows: f64, counted: u32) -> Value {
    let percent = |part: f64| ((100.0 * part / rows) * 1e4).round() / 1e4;
    let (two_off, four_off) = (percent(16.0), percent(4.0));
    json!({
        "n": counted,
        "density": 100.0,
        // An error of 2 px is not above 2 px, nor 4 above 4; 4 px are above 5 % of 9.
        "bad0.5": two_off, "bad1.0": two_off, "bad2.0": four_off, "bad3.0": four_off, "bad4.0": 0.0,
        "bad0.5_valid": two_off, "bad1.0_valid": two_off, "bad2.0_valid": four_off,
        "bad3.0_valid": four_off, "bad4.0_valid": 0.0,
        "d1": four_off, "d1_valid": four_off, "nearer_valid": 0.0,
        "avgerr": ((12.0 * 2.0 + 4.0 * 4.0) / rows * 1e4).round() / 1e4,
        "rms": (((12.0 * 4.0 + 4.0 * 16.0) / rows).sqrt() * 1e4).round() / 1e4,
    })
}

#[test]
fn figures_of_a_wall() {
    let data = Data::new();
    data.described("set/wall");
    let report = data.report(&["set"]);
    let pair = &report["datasets"][0]["items"][0];
    for map in ["unfilled", "dense"] {
        assert_eq!(pair[map]["nonocc"], wall(24.0, 88 * 24), "{map}");
        assert_eq!(pair[map]["all"], wall(48.0, 88 * 48), "{map}");
    }
    assert_eq!((&pair["item"], &pair["disparities"]), (&json!("wall"), &json!(16)));
    assert_eq!((&pair["width"], &pair["height"]), (&json!(96), &json!(48)));
    assert!(pair["time_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(report["settings"]["min_disparity"], 0);
    assert_eq!((&report["repeat"], &report["noise"]), (&json!(1), &Value::Null));
    // Relative to all pixels of the map, including those without truth at the left.
    let density = pair["image_density"].as_f64().unwrap();
    assert!((100.0 * 88.0 / 96.0 - 1e-4..=100.0).contains(&density), "{density}");
}

#[test]
fn a_range_on_the_command_line_counts_instead_of_the_publishers() {
    let data = Data::new();
    data.described("wall");
    let pair = |arguments: &[&str]| data.report(arguments)["datasets"][0]["items"][0].clone();
    let few = pair(&["wall", "-d", "4"]);
    assert_eq!(few["disparities"], 4);
    assert_eq!(few["dense"]["all"]["bad0.5"], 100.0, "the wall is at 5 px");
    let chosen = pair(&["wall", "-d", "auto"]);
    assert!(chosen["disparities"].as_u64().unwrap().is_multiple_of(16), "{chosen}");
    let shifted = pair(&["wall", "--min-disparity", "-4"]);
    assert_eq!((&shifted["min_disparity"], &shifted["disparities"]), (&json!(-4), &json!(20)));
    assert_eq!(shifted["dense"]["all"], wall(48.0, 88 * 48));
}

#[test]
fn noise_is_of_its_seed() {
    let data = Data::new();
    data.described("wall");
    let figures = |arguments: &[&str]| {
        let report = data.report(&[&["wall"], arguments].concat());
        report["datasets"][0]["items"][0]["unfilled"].clone()
    };
    let clean = figures(&[]);
    let noisy = figures(&["--noise", "60", "--seed", "3"]);
    assert_ne!(noisy, clean);
    assert_eq!(noisy, figures(&["--noise", "60", "--seed", "3"]));
    assert_ne!(noisy, figures(&["--noise", "60", "--seed", "4"]));
    assert_eq!(figures(&["--noise", "60"]), figures(&["--noise", "60", "--seed", "1"]));
    assert_eq!(figures(&["--noise", "0"]), clean);
    let report = data.report(&["wall", "--noise", "2.5", "--seed", "9"]);
    assert_eq!(report["noise"], json!({ "sigma": 2.5, "seed": 9 }));
}

#[test]
fn means_are_of_each_data_set_and_of_all() {
    let data = Data::new();
    data.described("one/a");
    data.described("one/b");
    data.described("two");
    let report = data.report(&["one", "two", "-d", "16"]);
    let names = report["datasets"].as_array().unwrap().iter().map(|dataset| &dataset["dataset"]);
    assert_eq!(names.collect::<Vec<_>>(), ["one", "two"]);
    for (mean, items) in [
        (&report["mean"], 3),
        (&report["datasets"][0]["mean"], 2),
        (&report["datasets"][1]["mean"], 1),
    ] {
        let figures = &mean["dense"]["nonocc"];
        assert_eq!((&figures["bad0.5"], &figures["items"]), (&json!(66.6667), &json!(items)));
    }
}

/// Every combination has the figures of an evaluation with its flags.
#[test]
fn a_comparison_has_the_means_of_each_combination() {
    let data = Data::new();
    data.described("a");
    let compared = data.report(&["a", "--paths", "16", "--compare", "cost=census,ad; paths=0,8"]);
    let rows = compared["comparison"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["settings"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["cost=census paths=0", "cost=census paths=8", "cost=ad paths=0", "cost=ad paths=8"]
    );
    for (cost, paths, row) in [("census", "8", &rows[1]), ("ad", "0", &rows[2])] {
        let alone = data.report(&["a", "--cost", cost, "--paths", paths]);
        for map in ["unfilled", "dense", "map"] {
            assert_eq!(row["mean"][map], alone["mean"][map], "{cost} {paths}");
        }
    }
    assert_ne!(rows[1]["mean"]["unfilled"], rows[2]["mean"]["unfilled"]);

    let (status, stdout, stderr) = data.evaluate(&["a", "--compare", "paths=4,8", "--csv", "-"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("\r\nsettings,known,") && stdout.contains("\r\npaths=8,"), "{stdout}");
    let (status, _, stderr) = data.evaluate(&["a", "--compare", "paths=4,7"]);
    assert!(status == 2 && stderr.contains("paths"), "{stderr}");
    let (status, _, stderr) = data.evaluate(&["a", "--csv", "-", "--latex", "-"]);
    assert!(status == 2 && stderr.contains("--csv - and --latex -"), "{stderr}");
}
