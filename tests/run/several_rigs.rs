//! Several rigs in one program: `[[rig]]` in the configuration.

use std::io::{BufRead, BufReader};

use serde_json::json;

use super::*;

/// Two recorded rigs; the second one has the views of the first exchanged and less of them.
const RECORDED: &str = r#"
[matching]
disparities = 24
[output]
record = "{rig}.mkv"
stats = "{rig}.json"

[[rig]]
name = "front"
source.left = "l.mkv"
source.right = "r.mkv"

[[rig]]
name = "rear"
[rig.source]
left = "r.mkv"
right = "l.mkv"
[rig.matching]
cost = "ad"
"#;

fn configured(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rigs.toml"), text).unwrap();
    folder
}

fn run_rigs(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(folder, &[&["run", "--headless", "--config", "rigs.toml"], arguments].concat())
}

#[test]
fn each_rig_writes_what_it_writes_alone() {
    let folder = configured(RECORDED);
    write_eyes(folder.path(), 4, 4);
    let (status, stdout, stderr) = run_rigs(folder.path(), &[]);
    assert_eq!(status, 0, "{stderr}");
    let maps = |name: &str| recorded(&folder.path().join(name));
    let together = [maps("front.mkv"), maps("rear.mkv")];
    assert_ne!(together[0], together[1]);
    for (rig, together) in ["front", "rear"].into_iter().zip(together) {
        assert!(
            stdout.contains(&format!("{rig}: ")) && stdout.contains(": 4 pairs of"),
            "{stdout}"
        );
        let text = std::fs::read_to_string(folder.path().join(format!("{rig}.json"))).unwrap();
        let statistics: Value = serde_json::from_str(&text).unwrap();
        assert_eq!([&statistics["rig"], &statistics["matched"]], [&json!(rig), &json!(4)]);
        let (status, _, stderr) = run_rigs(folder.path(), &["--rig", rig, "--record", "alone.mkv"]);
        assert_eq!(status, 0, "{stderr}");
        assert!(maps("alone.mkv") == together, "{rig}");
    }
}

#[test]
fn lines_of_rigs_to_one_place_name_their_rig() {
    let folder = configured(&RECORDED.replace(
        "[output]\n",
        "[calibration]\nfocal_px = 80\nbaseline_m = 0.1\n[obstacles]\nlines = \"-\"\n[output]\n",
    ));
    write_eyes(folder.path(), 4, 4);
    let (status, stdout, stderr) = run_rigs(folder.path(), &[]);
    assert_eq!(status, 0, "{stderr}");
    let lines =
        stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("a whole line"));
    let mut rigs: Vec<_> = lines.map(|line| line["rig"].as_str().unwrap().to_owned()).collect();
    rigs.sort();
    assert_eq!(rigs, ["front", "front", "front", "front", "rear", "rear", "rear", "rear"]);
    let (status, stdout, stderr) = run_rigs(folder.path(), &["--rig", "rear"]);
    assert!(status == 0 && stdout.contains(r#""rig":"rear""#), "{stdout}{stderr}");
}

#[test]
fn a_rig_that_fails_is_told_and_the_others_go_on() {
    let folder = configured(&RECORDED.replace("left = \"r.mkv\"", "left = \"missing.mkv\""));
    write_eyes(folder.path(), 3, 3);
    let (status, _, stderr) = run_rigs(folder.path(), &[]);
    assert_eq!(status, 1, "{stderr}");
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    assert!(stderr.contains("error: rig rear: ") && stderr.contains("missing.mkv"), "{stderr}");
    assert_eq!(recorded(&folder.path().join("front.mkv")).len(), 3);
    assert!(!folder.path().join("rear.mkv").exists());
}

/// GStreamer's threads find it.
#[test]
fn a_damaged_image_is_told_as_that_of_its_rig() {
    let recorded = RECORDED.replace("r.mkv", "r/%06d.png").replace("l.mkv", "l/%06d.png");
    let folder = configured(&recorded);
    for (number, view) in [(0, "l"), (3, "r")] {
        let view = folder.path().join(view);
        std::fs::create_dir(&view).unwrap();
        for pair in 0..3 {
            let image = image::GrayImage::from_fn(96, 64, |x, y| {
                let x = x + number;
                image::Luma([((x * 37) ^ (y * 91) ^ (x * y)) as u8])
            });
            image.save(view.join(format!("{pair:06}.png"))).unwrap();
        }
    }
    std::fs::write(folder.path().join("r/000001.png"), b"no image").unwrap();
    let (status, _, stderr) = run_rigs(folder.path(), &[]);
    assert_eq!(status, 1, "{stderr}");
    for rig in ["front", "rear"] {
        let told = format!("WARN {rig}: cannot read r/000001.png");
        assert!(stderr.contains(&told), "{stderr}");
    }
}

#[test]
fn rigs_in_each_others_way_are_refused_before_anything_is_opened() {
    let shared = RECORDED.replace("record = \"{rig}.mkv\"", "record = \"both.mkv\"");
    let destroyed =
        RECORDED.replace("cost = \"ad\"", "cost = \"ad\"\n[rig.output]\nrecord = \"l.mkv\"");
    let memory = RECORDED.replace("cost = \"ad\"", "cost = \"ad\"\n[rig.engine]\nmemory_mib = 900");
    for (text, arguments, expected) in [
        (RECORDED, &["--left", "l.mkv", "--right", "r.mkv"][..], "choose one with --rig NAME"),
        (RECORDED, &["--rig", "side"], "unknown rig `side`; rigs: front, rear"),
        (
            RECORDED,
            &["--record", "x.mkv"],
            "--record of front and --record of rear are the same file",
        ),
        (&shared, &[], "{rig} in a text stands for its name"),
        (&destroyed, &[], "cannot write l.mkv: it is also an input"),
        (&memory, &[], "engine.memory_mib holds for all rigs"),
        ("[[rig]]\nname = \"a\"\n[rig.serve]\nlisten = \"9\"\n", &[], "[serve] holds for all rigs"),
        ("[[rig]]\nname = \"a/b\"\n", &[], "a [[rig]] needs a `name` of its own"),
        (
            "[[rig]]\nname = \"a\"\n[[rig]]\nname = \"a\"\n",
            &[],
            "rigs.toml:3: a [[rig]] needs a `name`",
        ),
        ("[rig]\nname = \"a\"\n", &[], "begin each rig with a line [[rig]]"),
        ("[[rig]]\nname = \"a\"\n[rig.sauce]\n", &[], "rigs.toml:3: unknown section"),
    ] {
        let folder = configured(text);
        write_eyes(folder.path(), 1, 1);
        let before = std::fs::read(folder.path().join("l.mkv")).unwrap();
        let (status, _, stderr) = run_rigs(folder.path(), arguments);
        assert_eq!(status, 2, "{expected}: {stderr}");
        assert!(stderr.contains(expected), "{expected}: {stderr}");
        assert!(std::fs::read(folder.path().join("l.mkv")).unwrap() == before);
        assert!(!folder.path().join("front.mkv").exists(), "{expected}");
    }
}

#[test]
fn the_settings_of_each_rig_are_checked() {
    let folder = configured(
        "[[rig]]\nname = \"a\"\n[[rig]]\nname = \"b\"\nmatching.p1 = 99\nmatching.p2 = 9\n",
    );
    let (status, _, stderr) = run(folder.path(), &["config", "check", "rigs.toml"]);
    assert!(
        status == 2 && stderr.contains("rig b: ") && stderr.contains("rigs.toml:5"),
        "{stderr}"
    );
    let check = |text: &str| {
        let folder = configured(text);
        run(folder.path(), &["config", "check", "rigs.toml"])
    };
    let (status, stdout, stderr) = check(LIVE);
    assert!(status == 0 && stdout.ends_with("no mistakes (rigs: front, rear)\n"), "{stderr}");
    let of_front = |above: &str| LIVE.replace("[matching]", &format!("{above}\n[matching]"));
    let camera = "[[rig]]\nname = \"a\"\nsource.left = \"/dev/video0\"\nsource.right = \"/dev/video1\"\n\
                  [[rig]]\nname = \"b\"\nsource.side_by_side = \"v4l2src device=/dev/video1\"\n";
    for (text, expected) in [
        (&*of_front("[output]\nrecord = \"both.mkv\""), "are the same file"),
        (&of_front("[ros2]\nnamespace = \"/both\""), "--ros2 /both is that of front and of rear"),
        (
            &of_front("[obstacles]\nboxes = \"stdin\""),
            "obstacles.boxes stdin is that of front and of rear",
        ),
        (
            &of_front("[obstacles]\nmqtt = \"mqtt://h\"\nmqtt_topic = \"home\""),
            "obstacles.mqtt_topic home is that of front and of rear",
        ),
        (camera, "the camera /dev/video1 is that of a and of b"),
        (
            &of_front("[serve]\nlisten = \"9\"\n[metrics]\nlisten = \"9\""),
            "another port than that of [serve]",
        ),
    ] {
        let (status, _, stderr) = check(text);
        assert!(status == 2 && stderr.contains(expected), "{expected}: {stderr}");
    }
    for above in ["[ros2]\nnamespace = \"/{rig}\"", "[serve]\nlisten = \"9\"\ntoken_file = \"t\""] {
        let (status, _, stderr) = check(&of_front(above));
        assert!(status == 0, "{above}: {stderr}");
    }
    let (status, stdout, stderr) =
        run(folder.path(), &["config", "print", "--config", "rigs.toml", "--rig", "a"]);
    assert!(status == 0 && stdout.contains("frame_prefix = \"a_\""), "{stderr}");
}

/// Two live rigs.
const LIVE: &str = r#"
[matching]
disparities = 24
[source]
left = "videotestsrc is-live=true pattern=ball ! video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1"
right = "videotestsrc is-live=true pattern=ball ! video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1"

[[rig]]
name = "front"
[[rig]]
name = "rear"
"#;

#[test]
fn the_rigs_share_a_server() {
    let folder = configured(LIVE);
    let arguments =
        ["run", "--headless", "--config", "rigs.toml", "--serve", "0", "--metrics", "0"];
    let mut command = stereod(folder.path(), &arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut metrics = None;
    let page = loop {
        let line = lines.find(|line| line.contains("on http://")).expect("it says where");
        let (_, address) = line.split_once("http://").unwrap();
        match address.split_once("/?token=") {
            Some((host, token)) => break (host.to_owned(), token.to_owned()),
            None => metrics = Some(address.split('/').next().unwrap().to_owned()),
        }
    };
    let (host, token) = page;
    let rest = std::thread::spawn(move || lines.collect::<Vec<_>>());
    let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
    let agent = config.build().new_agent();
    let get = |url: &str| {
        let mut answer = agent.get(url).call().unwrap();
        let to = answer.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        (answer.status().as_u16(), to, answer.body_mut().read_to_string().unwrap())
    };
    // The first rig starts the server, and the other follows.
    wait_until("both rigs", || {
        !get(&format!("http://{host}/healthz")).2.contains("not started yet")
    });
    for (path, to) in [("", "/front/"), ("rear", "/rear/"), ("?token=a", "/front/?token=a")] {
        let (status, location, _) = get(&format!("http://{host}/{path}"));
        assert_eq!((status, location.as_deref()), (307, Some(to)), "{path}");
    }
    let (status, _, text) = get(&format!("http://{host}/side/"));
    assert_eq!((status, &*text), (404, "the rigs are at\n/front/\n/rear/\n"));
    assert!(get(&format!("http://{host}/rear/")).2.contains("page.js"));
    assert_eq!(get(&format!("http://{host}/rear/snapshot/settings.toml")).0, 401);
    let settings = get(&format!("http://{host}/rear/snapshot/settings.toml?token={token}"));
    assert!(settings.2.contains("frame_prefix = \"rear_\""), "{}", settings.2);
    for (number, rig) in ["front", "rear"].into_iter().enumerate() {
        let url = format!("ws://{host}/{rig}/live?token={token}");
        let (mut socket, _) = tungstenite::connect(url).unwrap();
        let hello: Value =
            serde_json::from_str(&socket.read().unwrap().into_text().unwrap()).unwrap();
        assert_eq!([&hello["rigs"], &hello["rig"]], [&json!(["front", "rear"]), &json!(number)]);
    }
    let metrics = metrics.expect("the metrics come first");
    wait_until("pairs of both rigs", || {
        ["front", "rear"].iter().all(|rig| {
            let (status, _, text) = get(&format!("http://{metrics}/{rig}/metrics"));
            assert!(status == 200, "{text}");
            !text.contains("stereod_matched_total 0\n")
        })
    });
    let (status, _, text) = get(&format!("http://{metrics}/healthz"));
    assert!(status == 200 && text.contains("front: ok: ") && text.contains("rear: ok: "), "{text}");
    signal(&child, libc::SIGTERM);
    assert_eq!(ended_with(&mut child).code(), Some(0));
    // Each line names its rig.
    let rest = rest.join().unwrap().join("\n");
    assert!(rest.contains("stopping"), "{rest}");
}

/// A service manager hears of all rigs together: ready once both are, their status in one line, and one end.
#[test]
#[cfg(target_os = "linux")]
fn the_rigs_are_one_service() {
    let folder = configured(LIVE);
    let manager = super::manager::Manager::bind(folder.path());
    let mut command = stereod(folder.path(), &["run", "--headless", "--config", "rigs.toml"]);
    command.env("NOTIFY_SOCKET", &manager.socket).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut heard = Vec::new();
    let is_whole = |line: &String| {
        ["STATUS=front: ", "pairs matched", "; rear: "].iter().all(|it| line.contains(it))
    };
    wait_until("pairs of both rigs", || {
        heard.extend(manager.listen_for("STATUS=front: "));
        heard.iter().any(is_whole)
    });
    signal(&child, libc::SIGTERM);
    heard.extend(manager.listen_for("STOPPING=1"));
    assert_eq!(ended_with(&mut child).code(), Some(0));
    assert_eq!(heard.iter().filter(|line| *line == "READY=1").count(), 1, "{heard:?}");
}
