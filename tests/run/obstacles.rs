//! Obstacles of a run, and of one pair.

use std::net::UdpSocket;

use super::*;
use stereod_core::picture::png;

const CAMERAS: [&str; 4] = ["--focal", "80", "--baseline", "0.1"];

fn demo<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let source =
        ["run", "--demo", "--demo-size", "96x64", "--headless", "-d", "24", "--frames", "0..6"];
    [&source, more].concat()
}

fn check(line: &Value) {
    let scan = &line["scan"];
    let states = scan["states"].as_str().unwrap();
    let distances = scan["distances_m"].as_array().unwrap();
    assert_eq!(states.len(), distances.len(), "{line}");
    assert!(states.matches('o').count() >= 10, "{line}");
    for (state, distance) in states.chars().zip(distances) {
        assert_eq!(state == 'o', distance.is_number(), "{line}");
    }
    let least = distances.iter().filter_map(Value::as_f64).fold(f64::INFINITY, f64::min);
    assert_eq!(line["nearest"]["distance_m"].as_f64(), Some(least), "{line}");
}

#[test]
fn every_pair_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let more = [&CAMERAS[..], &["--obstacles", "o.ndjson", "--stats", "-"]].concat();
    let (status, stdout, stderr) = run(folder.path(), &demo(&more));
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("obstacles: nearest"), "{stderr}");
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(statistics["written"]["obstacles"], 6);
    let text = std::fs::read_to_string(folder.path().join("o.ndjson")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    for (number, line) in lines.iter().enumerate() {
        check(line);
        assert_eq!(line["pair"], number);
        assert_eq!(line["zones"].as_array().unwrap().len(), 0);
    }
    let stamp = |line: &Value| line["stamp"].as_f64().unwrap();
    assert!(lines.is_sorted_by(|a, b| stamp(a) < stamp(b)), "{text}");
}

#[test]
fn lines_go_by_udp_and_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    let to = format!("udp://{}", receiver.local_addr().unwrap());
    let (status, _, stderr) =
        run(folder.path(), &demo(&[&CAMERAS[..], &["--obstacles", &to]].concat()));
    assert_eq!(status, 0, "{stderr}");
    let mut bytes = [0; 1 << 16];
    let length = receiver.recv(&mut bytes).unwrap();
    check(&serde_json::from_slice(&bytes[..length]).unwrap());
    let (status, stdout, stderr) =
        run(folder.path(), &demo(&[&CAMERAS[..], &["--obstacles", "-"]].concat()));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(stdout.lines().count(), 6);
    stdout.lines().for_each(|line| check(&serde_json::from_str(line).unwrap()));
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("z.toml"), "[[zone]]\nname = \"gate\"\n").unwrap();
    let zone = "[[zone]]\nname = \"a\"\nimage = [[0, 0], [1, 0], [1, 1]]\n";
    std::fs::write(folder.path().join("ok.toml"), zone).unwrap();
    for (more, word) in [
        ([&CAMERAS[..], &["--zones", "z.toml"]].concat(), "zone \"gate\": give either `image`"),
        ([&CAMERAS[..], &["--zones", "none.toml"]].concat(), "none.toml"),
        ([&CAMERAS[..], &["--mavlink", "14550"]].concat(), "udp://"),
        ([&CAMERAS[..], &["--zones", "ok.toml", "--obstacles", "ok.toml"]].concat(), "ok.toml"),
        ([&CAMERAS[..], &["--obstacles", "-", "--stats", "-"]].concat(), "standard output"),
        ([&CAMERAS[..], &["--mqtt", "http://a"]].concat(), "mqtt://"),
        ([&CAMERAS[..], &["--obstacles", "udp://nowhere"]].concat(), "udp://nowhere"),
        (
            [&CAMERAS[..], &["--set", "obstacles.find=true", "--set", "mount.ground=track"]]
                .concat(),
            "z_m",
        ),
    ] {
        let (status, _, stderr) = run(folder.path(), &demo(&more));
        assert!([1, 2].contains(&status) && stderr.contains(word), "{more:?}: {status}: {stderr}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("ok.toml")).unwrap(), zone);
}

#[test]
fn a_pair_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let pair = demo_pair(0);
    for (name, view) in [("l.png", &pair.left), ("r.png", &pair.right)] {
        let file = png::encode_grey(view.pixels(), view.width(), view.height()).unwrap();
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    let (status, _, stderr) = run(folder.path(), &["obstacles", "l.png", "r.png", "-d", "24"]);
    assert!(status == 2 && stderr.contains("--calibration"), "{status}: {stderr}");
    let zones =
        "[[zone]]\nname = \"middle\"\nimage = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]\n";
    std::fs::write(folder.path().join("z.toml"), zones).unwrap();
    let pair = ["obstacles", "l.png", "r.png", "-d", "24", "--zones", "z.toml"];
    let (status, stdout, stderr) =
        run(folder.path(), &[&pair[..], &CAMERAS, &["--picture", "scan.png"]].concat());
    assert_eq!(status, 0, "{stderr}");
    let mut lines = stdout.lines();
    assert!(lines.next().unwrap().starts_with("nearest "), "{stdout}");
    assert!(lines.next().unwrap().starts_with("zone middle: occupied, "), "{stdout}");
    let picture = std::fs::read(folder.path().join("scan.png")).unwrap();
    assert_eq!(&picture[1..4], b"PNG");
    let (status, stdout, stderr) = run(folder.path(), &[&pair[..], &CAMERAS, &["--json"]].concat());
    assert_eq!(status, 0, "{stderr}");
    check(&serde_json::from_str(&stdout).unwrap());
}
