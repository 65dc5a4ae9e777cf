//! What a run tells people and programs: logs and statistics.

use std::time::{Duration, SystemTime};

use super::*;

const DEMO: [&str; 6] = ["run", "--demo", "--demo-size", "96x64", "--headless", "--frames=3"];

#[test]
fn log_lines_are_objects_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) =
        run(folder.path(), &[&DEMO[..], &["--set", "log.format=json"]].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.starts_with("demo scene"), "the statistics are no log: {stdout}");
    let lines: Vec<Value> =
        stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of_source = lines.iter().find(|line| {
        line["message"].as_str().is_some_and(|message| message.starts_with("demo scene"))
    });
    let of_source = of_source.unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(of_source["level"], "INFO");
    assert!(of_source["target"].as_str().unwrap().starts_with("stereod::"), "{of_source}");
    let time = humantime::parse_rfc3339(of_source["timestamp"].as_str().unwrap()).unwrap();
    assert!(time.elapsed().unwrap() < Duration::from_secs(300), "{time:?}");
}

#[test]
fn log_lines_have_the_time_of_day_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, stderr) = run(folder.path(), &[&DEMO[..], &["--set", "log.time=clock"]].concat());
    let first = stderr.split_whitespace().next().unwrap();
    let time = humantime::parse_rfc3339(first).unwrap_or_else(|_| panic!("{stderr}"));
    assert!(time.elapsed().unwrap() < Duration::from_secs(300), "{time:?}");
}

#[test]
fn a_quiet_run_prints_nothing_but_the_statistics_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let quiet = [&DEMO[..], &["-q"]].concat();
    assert_eq!(run(folder.path(), &quiet), (0, String::new(), String::new()));
    let (status, stdout, stderr) = run(folder.path(), &[&quiet[..], &["--stats", "-"]].concat());
    assert_eq!((status, stderr.as_str()), (0, ""));
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(statistics["matched"], 3);
}

#[test]
fn statistics_name_their_layout_program_start_and_share_of_known_pixels() {
    let before = SystemTime::now() - Duration::from_millis(1);
    let folder = tempfile::tempdir().unwrap();
    let statistics = statistics(folder.path(), &[&DEMO[1..], &["--pictures", "p"]].concat());
    assert_eq!(statistics["schema"], 1);
    assert_eq!(statistics["version"], env!("CARGO_PKG_VERSION"));
    let started = humantime::parse_rfc3339(statistics["started"].as_str().unwrap()).unwrap();
    assert!(started >= before && started < SystemTime::now(), "{started:?}");
    // The rows that are sampled: 8, 24, 40 and 56.
    let share = |n: u64| {
        let map = reference(n);
        let rows = map.chunks_exact(SIZE.0).skip(8).step_by(16);
        let pixels: Vec<_> = rows.flatten().collect();
        pixels.iter().filter(|&&&value| value != 0).count() as f64 / pixels.len() as f64
    };
    let known = (0..3).map(share).sum::<f64>() / 3.0 * 100.0;
    assert!((statistics["known"].as_f64().unwrap() - known).abs() < 0.01, "{known} {statistics}");
}
