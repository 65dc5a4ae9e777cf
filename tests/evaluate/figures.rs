//! Figures of synthetic pairs that can be computed by hand.

use serde_json::{Value, json};

use super::{Data, SHIFT};
use crate::common::outcome::outcome;
use crate::common::program::stereod;

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
    assert!(
        stdout.starts_with("region,settings,known,") && stdout.contains(",paths=8,"),
        "{stdout}"
    );
    // Seeds give the mean of what each gives alone, and the deviation.
    let noisy = data.report(&["a", "--noise", "120", "--compare", "seed=1,2; paths=4,8"]);
    assert_eq!(noisy["noise"], json!({ "sigma": 120.0, "seeds": [1, 2] }));
    let alone = ["1", "2"].map(|seed| {
        let report = data.report(&["a", "--noise", "120", "--seed", seed, "--paths", "8"]);
        report["mean"]["unfilled"]["nonocc"]["avgerr"].as_f64().unwrap()
    });
    let row = &noisy["comparison"][1];
    let [mean, deviation] = ["mean", "deviation"]
        .map(|kind| row[kind]["unfilled"]["nonocc"]["avgerr"].as_f64().unwrap());
    assert!((mean - (alone[0] + alone[1]) / 2.0).abs() < 1e-4 && alone[0] != alone[1], "{row}");
    let expected = (alone[0] - alone[1]).abs() / 2.0f64.sqrt();
    assert!((deviation - expected).abs() < 1e-4, "{row}");
    let (_, stdout, _) = data.evaluate(&[
        "a",
        "--compare",
        "noise=0,30",
        "--columns",
        "known,bad-1",
        "--per-pair",
        "bad-1",
        "--markdown",
        "-",
    ]);
    assert!(stdout.contains("| settings | known | bad 1 |\n"), "{stdout}");
    assert!(stdout.contains("| pair | noise=0 | noise=30 |\n"), "{stdout}");
    for (wrong, what) in [
        (&["--compare", "seed=1,2"][..], "seeds are of noise"),
        (&["--compare", "seed=1,2", "--noise", "3", "--seed", "4"][..], "leave out --seed"),
        (&["--compare", "noise=1,2", "--noise", "3"][..], "leave out --noise"),
        (&["--columns", "bad"][..], "expected one of known"),
    ] {
        let (status, _, stderr) = data.evaluate(&[&["a"][..], wrong].concat());
        assert!(status == 2 && stderr.contains(what), "{stderr}");
    }
    let (status, _, stderr) = data.evaluate(&["a", "--compare", "paths=4,7"]);
    assert!(status == 2 && stderr.contains("paths"), "{stderr}");
    for wrong in ["cost=census,paths=4", "paths=4,8,opencv"] {
        let (status, _, stderr) = data.evaluate(&["a", "--compare", wrong]);
        assert!(status == 2 && stderr.contains("put `;` between keys"), "{stderr}");
    }
    let pairs = ["a", "--compare", "paths=4,8", "--per-pair", "bad-1", "--csv"];
    let (status, _, stderr) = data.evaluate(&[&pairs[..], &["t.new.csv"]].concat());
    assert_eq!(status, 0, "{stderr}");
    let read = |name: &str| std::fs::read_to_string(data.at(name)).unwrap();
    assert!(read("t.new.csv").starts_with("region,settings,known,"));
    assert!(read("t.new-pairs.csv").starts_with("region,pair,paths=4,paths=8\r\n"));
    let (status, _, stderr) = data.evaluate(&[&pairs[..], &["-"]].concat());
    assert!(status == 2 && stderr.contains("writes two files"), "{stderr}");
    let (status, _, stderr) = data.evaluate(&["a", "--csv", "-", "--latex", "-"]);
    assert!(status == 2 && stderr.contains("--csv - and --latex -"), "{stderr}");
}

/// A stand-in for Python answers with a map that is right everywhere.
#[cfg(unix)]
#[test]
fn opencv_has_a_row_where_python_finds_it() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    let data = Data::new();
    data.described("a");
    fs::create_dir(data.at("bin")).unwrap();
    let compared = |what: &str, expected: i32| {
        let usual = [
            "evaluate",
            "--engine",
            "cpu",
            "a",
            "--repeat",
            "1",
            "--json",
            "-",
            "--subpixel",
            "off",
        ];
        let mut command = stereod(&[&usual[..], &["--compare", what]].concat());
        let (status, stdout, stderr) =
            outcome(command.current_dir(data.0.path()).env("PATH", data.at("bin")));
        assert_eq!(status, expected, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        (report["comparison"].as_array().unwrap().clone(), stderr)
    };
    let (rows, stderr) = compared("paths=4; opencv", 0);
    assert_eq!((rows.len(), &rows[0]["settings"]), (1, &json!("paths=4")));
    assert!(stderr.contains("OpenCV is left out") && stderr.contains("pip install"), "{stderr}");

    let pixels = 96 * 48;
    let map = (16 * SHIFT as i16).to_le_bytes().repeat(pixels);
    fs::write(data.at("answer"), [&0.25f64.to_le_bytes()[..], &map].concat()).unwrap();
    let script = "#!/bin/sh\n[ $# = 2 ] && { echo 9.8.7; exit; }\n\
                  /bin/cat > seen; echo $3 $4 $5 $6 $7 > asked; /bin/cat answer\n";
    fs::write(data.at("bin/python3"), script).unwrap();
    fs::set_permissions(data.at("bin/python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let (rows, stderr) = compared("opencv", 0);
    assert_eq!(stderr, "");
    assert_eq!(
        (&rows[0]["settings"], &rows[1]["settings"]),
        (&json!("stereod"), &json!("OpenCV 9.8.7 StereoSGBM"))
    );
    assert_eq!(rows[1]["mean"]["time_ms"], 250.0);
    assert_eq!(rows[0]["mean"]["unfilled"], rows[1]["mean"]["unfilled"]);
    assert_eq!(fs::read_to_string(data.at("asked")).unwrap(), "96 48 0 16 1\n");
    let pictures = ["a/l.png", "a/r.png"].map(|name| image::open(data.at(name)).unwrap());
    let pictures = pictures.each_ref().map(|picture| picture.as_bytes()).concat();
    assert!(fs::read(data.at("seen")).unwrap() == pictures);

    // An answer that is cut off.
    fs::write(data.at("answer"), [0; 100]).unwrap();
    let (rows, stderr) = compared("opencv", 1);
    assert!(stderr.contains("OpenCV's answer is no map of 96x48"), "{stderr}");
    assert_eq!(rows[1]["error"], "no pair could be evaluated");
}

#[test]
fn pixels_near_discontinuities() {
    let data = Data::new();
    data.described("wall");
    // The truth steps by 2 px at row 12, which is no discontinuity, and by 4 at row 16: rows 11 to 20 are near it,
    // of which one is off by 2 px and four are by 4.
    let disc =
        |data: &Data| data.report(&["wall"])["datasets"][0]["items"][0]["dense"]["disc"].clone();
    let found = disc(&data);
    assert_eq!((&found["n"], &found["avgerr"]), (&json!(88 * 10), &json!(1.8)));
    let item = std::fs::read_to_string(data.at("wall/item.json")).unwrap();
    let masks = r#""disc":"disc.png","nonocc":"#;
    std::fs::write(data.at("wall/item.json"), item.replace(r#""nonocc":"#, masks)).unwrap();
    data.grey("wall/disc.png", (96, 48), |_, y| if y == 3 { 255 } else { 128 });
    let found = disc(&data);
    assert_eq!((&found["n"], &found["avgerr"]), (&json!(88), &json!(2.0)));
}
