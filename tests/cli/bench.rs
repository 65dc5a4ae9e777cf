//! `stereod bench` as a whole.

use super::prints;

/// One pair: the medians of several on a busy machine are those of different pairs, and need not add up.
const SMALL: [&str; 9] =
    ["bench", "--engine", "cpu", "--size", "64x48", "--repeat", "1", "-d", "16"];

#[test]
fn bench_reports_shares_and_the_time_per_cell_and_path() {
    let text = prints(&[&SMALL[..], &["--threads", "1"]].concat());
    let line = |name: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert!(line("aggregation, down").ends_with(" %"), "{text}");
    assert!(line("a cell and path").contains(" ns   ("), "{text}");

    let json = prints(&[&SMALL[..], &["--threads", "1", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{json}"));
    let total = number(&json["total_ms"]);
    let [mut share_of_stages, mut time_of_stages] = [0.0; 2];
    for (name, time) in json["stages_ms"].as_object().unwrap() {
        let share = number(&json["stages_percent"][name]);
        assert!((share - 100.0 * number(time) / total).abs() < 1.0, "{name}: {json}");
        share_of_stages += share;
        time_of_stages += number(time);
    }
    assert!((share_of_stages - 100.0 * time_of_stages / total).abs() < 2.0, "{json}");
    // 64 * 48 * 16 cells along 4 paths.
    let [of_pair, of_paths] = ["ns_per_cell_and_path", "aggregation_ns_per_cell_and_path"];
    assert!((number(&json[of_pair]) - total * 1e6 / 196_608.0).abs() < 0.01, "{json}");
    assert!(number(&json[of_paths]) < number(&json[of_pair]), "{json}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.json");
    // Windows alone take half the time of paths at these sizes, which are the report's own.
    let quick = ["--paths", "0", "--cost", "sad", "--window", "1", "--prior", "0"];
    let report = ["bench", "--engine", "cpu", "--repeat", "1", "--report", path.to_str().unwrap()];
    let text = prints(&[&report[..], &quick, &["--evidence", "off", "--spatial", "off"]].concat());
    assert!(text.contains("1920x1080, 128 disparities"), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(report["speeds"][0]["identical_pixels"].is_u64(), "{report}");
    assert!(report["speeds"][2]["total_ms"].is_f64(), "{report}");

    let local = prints(&[&SMALL[..], &["--paths", "0"]].concat());
    assert!(!local.contains("a cell and path"), "{local}");
}
