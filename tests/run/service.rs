//! Running as a service: notifications to the service manager, the unit files, a source from the
//! configuration.

use super::manager::Manager;
use super::*;

/// `config/` of the repository.
fn config(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_service_manager_hears_of_start_life_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::bind(folder.path());
    let eye = "videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=96,height=64";
    std::fs::write(
        folder.path().join("rig.toml"),
        format!("[source]\nleft = '{eye}'\nright = '{eye}'\n[matching]\ndisparities = 24\n"),
    )
    .unwrap();
    let mut child = stereod(folder.path(), &["run", "--headless", "--config", "rig.toml"])
        .env("NOTIFY_SOCKET", &manager.socket)
        .env("WATCHDOG_USEC", "600000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let first = manager.listen_for("READY=1");
    assert!(!first.iter().any(|line| line.starts_with("WATCHDOG")), "{first:?}");
    let told = manager.listen_for("STATUS=");
    assert!(told.iter().any(|line| line.starts_with("STATUS=waiting for the first")), "{told:?}");
    // One thread tells both: signs of life at a third of 0.6 s, its state every two seconds.
    let between = manager.listen_for("STATUS=");
    let signs = between.iter().filter(|line| *line == "WATCHDOG=1").count();
    assert!((1..=12).contains(&signs), "{between:?}");
    signal(&child, libc::SIGTERM);
    manager.listen_for("STOPPING=1");
    assert_eq!(ended_with(&mut child).code(), Some(0));
}

#[test]
fn the_source_comes_from_the_configuration_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 3, 3);
    let rig = "[source]\nleft = 'l.mkv'\nright = 'r.mkv'\n[matching]\ndisparities = 24\n";
    std::fs::write(folder.path().join("rig.toml"), rig).unwrap();
    let told = statistics(folder.path(), &["--config", "rig.toml"]);
    assert_eq!((&told["matched"], &told["source"]), (&3.into(), &"l.mkv + r.mkv".into()));
    let demo = ["--config", "rig.toml", "--demo", "--frames", "2", "--demo-size", "96x64"];
    assert_eq!(statistics(folder.path(), &demo)["matched"], 2);

    std::fs::write(folder.path().join("half.toml"), "[source]\nleft = 'l.mkv'\n").unwrap();
    let (status, _, stderr) = run(folder.path(), &["run", "--config", "half.toml"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("no `right`"), "{stderr}");
    let both = "[source]\nside_by_side = 'x'\nright = 'r.mkv'\n";
    std::fs::write(folder.path().join("both.toml"), both).unwrap();
    let (status, _, stderr) = run(folder.path(), &["run", "--config", "both.toml"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("both.toml:2") && stderr.contains("`side_by_side`"), "{stderr}");
}

#[test]
fn systemd_finds_no_mistake_in_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, instance) in
        [("stereod.service", "stereod.service"), ("stereod@.service", "stereod@front.service")]
    {
        // systemd-analyze checks that the program exists, and it is not installed here.
        let unit = config(name).replace("/usr/bin/stereod", env!("CARGO_BIN_EXE_stereod"));
        std::fs::write(folder.path().join(name), &unit).unwrap();
        let verify = |name: &str| {
            let unit = folder.path().join(name);
            let output =
                Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit).output();
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // Its messages about other units of this machine do not count.
            let ours: Vec<_> = said.lines().filter(|l| l.contains("stereod")).collect();
            (output.status.success(), ours.join("\n"))
        };
        assert_eq!(verify(instance), (true, String::new()), "{name}");
        let wrong = unit.replace("ProtectSystem=strict", "ProtectSystem=fierce");
        std::fs::write(folder.path().join(name), wrong).unwrap();
        let (_, said) = verify(instance);
        assert!(said.contains("fierce"), "a mistake goes unnoticed: {said}");
    }
}

#[test]
fn the_units_differ_only_in_the_rig() {
    let one = config("stereod.service");
    let many = config("stereod@.service").replace("/stereod/%i", "/stereod").replace(" (%i)", "");
    let directives = |unit: &str| -> Vec<String> {
        let lines = unit.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| line.replace("=stereod/%i", "=stereod")).collect()
    };
    let many = many.replace("/etc/stereod.toml", "/etc/stereod/config.toml");
    assert_eq!(directives(&one), directives(&many));
}

#[test]
fn a_service_waits_for_absent_cameras_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::bind(folder.path());
    let absent = ["run", "--headless", "--left", "/dev/video777", "--right", "/dev/video778"];
    let mut child = stereod(folder.path(), &absent)
        .env("NOTIFY_SOCKET", &manager.socket)
        .env("WATCHDOG_USEC", "600000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let first = manager.hear();
    assert!(first.contains("READY=1") && first.contains("/dev/video777: no camera"), "{first}");
    assert!((0..20).all(|_| manager.hear().contains("WATCHDOG=1")));
    signal(&child, libc::SIGTERM);
    assert_eq!(ended_with(&mut child).code(), Some(0));
    // If it is started at a prompt, the message comes at once.
    let (status, _, stderr) = run(folder.path(), &absent);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("/dev/video777: no camera") && !stderr.contains("waiting"), "{stderr}");
}

/// Serves one file for every request.
fn serve(listener: std::net::TcpListener, file: Vec<u8>) {
    use std::io::{Read, Write};
    for stream in listener.incoming() {
        let (mut stream, file) = (stream.unwrap(), file.clone());
        std::thread::spawn(move || {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let length = file.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
            let head = head + "Content-Type: video/x-matroska\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&file));
        });
    }
}

#[test]
fn a_server_that_comes_later_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 4, 4);
    let eye = std::fs::read(folder.path().join("l.mkv")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let uri = format!("http://{address}/eye.mkv");
    let flags = ["run", "--headless", "--left", &uri, "--right", &uri, "--stats", "-"];
    let matching = ["--disparities", "24", "--set"];
    let patient = [&flags[..], &matching, &["source.wait_s=100"]].concat();
    let child = stereod(folder.path(), &patient)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    wait_until("it waits", || said().contains("waiting for it"));
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || serve(listener, eye));
    let output = ended(child);
    let said = said();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("waiting for it").count(), 1, "{said}");
    assert!(said.contains("it is there after"), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["matched"], 4, "{said}");
}
