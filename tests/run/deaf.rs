//! Messages cannot be delivered (a full disk, a reader that is gone or does not read), and inputs
//! never come (pipes without a writer): the program works and ends all the same.

use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;

use super::manager::Manager;
use super::*;

/// A writer that fails or is blocked, and the handle that must be kept open for it.
fn dead_ends() -> Vec<(&'static str, Stdio, Option<PipeReader>)> {
    let full_disk = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (gone, to_nobody) = std::io::pipe().unwrap();
    drop(gone);
    let (asleep, to_asleep) = full_pipe();
    vec![
        ("a full disk", full_disk.into(), None),
        ("a reader that is gone", to_nobody.into(), None),
        ("a reader that does not read", to_asleep.into(), Some(asleep)),
    ]
}

/// A pipe that is full.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let set = |flags: libc::c_int| {
        // SAFETY: the descriptor is open as long as the writer lives.
        assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) }, 0);
    };
    set(libc::O_NONBLOCK);
    let mut fill = writer.try_clone().unwrap();
    while fill.write(&[b'\n'; 512]).is_ok() {}
    set(0);
    (reader, writer)
}

const LIVE: &str = "videotestsrc is-live=true pattern=ball ! \
                    video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1";

fn configure(folder: &Path, p1: u32) {
    let text = format!(
        "[source]\nleft = '{LIVE}'\nright = '{LIVE}'\n[output]\nrecord = 'o.mkv'\n\
         [matching]\ndisparities = 24\np1 = {p1}\n[log]\nfilter = 'trace'\n"
    );
    fs::write(folder.join("rig.toml"), text).unwrap();
}

#[test]
fn a_run_that_nobody_hears_is_reloaded_and_stopped_and_finishes_its_files() {
    for (what, stderr, kept) in dead_ends() {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), 20);
        let manager = Manager::bind(folder.path());
        let arguments = ["run", "--headless", "--config", "rig.toml", "--stats", "s.json"];
        let mut child = stereod(folder.path(), &arguments)
            .env("NOTIFY_SOCKET", &manager.socket)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let length = || fs::metadata(folder.path().join("o.mkv")).map_or(0, |file| file.len());
        wait_until("the recording grows", || length() > 20_000);
        // Twice, because the tuner must survive its first change.
        for p1 in [21, 22] {
            configure(folder.path(), p1);
            signal(&child, libc::SIGHUP);
            manager.listen_for("RELOADING=1");
            manager.listen_for("READY=1");
            manager.wait_for_pairs();
            let before = length();
            wait_until("the recording grows on", || length() > before + 20_000);
        }
        signal(&child, libc::SIGTERM);
        assert_eq!(ended_with(&mut child).code(), Some(0), "{what}");
        drop(kept);
        let statistics = fs::read(folder.path().join("s.json")).unwrap();
        let statistics: Value = serde_json::from_slice(&statistics).unwrap();
        assert_eq!(statistics["retuned"], 2, "{what}: {statistics}");
        let frames = recorded(&folder.path().join("o.mkv")).len();
        assert_eq!(statistics["recorded"], frames, "{what}");
        let player = player::Player::open(&folder.path().join("o.mkv"), player::RECORDING);
        assert!(player.unwrap().duration().is_some(), "{what}: the recording is not finished");
    }
}

#[test]
fn a_command_that_nobody_hears_does_its_work_and_keeps_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let pair = demo_pair(0);
    for (name, image) in [("l.pgm", &pair.left), ("r.pgm", &pair.right)] {
        let mut file = b"P5\n96 64\n255\n".to_vec();
        file.extend_from_slice(image.pixels());
        fs::write(folder.path().join(name), file).unwrap();
    }
    let matching = ["match", "l.pgm", "r.pgm", "-d", "24", "-o", "d.png", "-vvv"];
    let missing = ["match", "l.pgm", "none.pgm", "-d", "24", "-o", "e.png"];
    let wrong = ["match", "l.pgm", "r.pgm", "-d", "24", "-o", "e.png", "--set", "matching.p1=x"];
    for (arguments, status) in [(&matching[..], 0), (&missing, 1), (&wrong, 2)] {
        for (what, stderr, _kept) in dead_ends() {
            let output = folder.path().join("d.png");
            let _ = fs::remove_file(&output);
            let mut child = stereod(folder.path(), arguments)
                .stdout(Stdio::null())
                .stderr(stderr)
                .spawn()
                .unwrap();
            assert_eq!(ended_with(&mut child).code(), Some(status), "{what}: {arguments:?}");
            assert_eq!(output.exists(), status == 0, "{what}: {arguments:?}");
        }
    }
}

/// Neither is read: the messages block on one pipe, the statistics on the other.
#[test]
fn two_signals_are_never_needed_to_end_what_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), 20);
    let ((_kept, stderr), (_too, stdout)) = (full_pipe(), full_pipe());
    let mut child = stereod(folder.path(), &["run", "--headless", "--config", "rig.toml"])
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap();
    let file = folder.path().join("o.mkv");
    wait_until("the recording grows", || fs::metadata(&file).is_ok_and(|f| f.len() > 20_000));
    signal(&child, libc::SIGINT);
    // The statistics could not be delivered.
    assert_eq!(ended_with(&mut child).code(), Some(1));
    assert!(recorded(&file).len() > 3);
}

fn make_pipe(path: &Path) {
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name ends in a zero and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn a_configuration_that_has_become_a_pipe_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), 20);
    let log = folder.path().join("log");
    let mut child = stereod(folder.path(), &["run", "--headless", "--config", "rig.toml"])
        .env("RUST_LOG", "info")
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = |text: &str| fs::read_to_string(&log).unwrap().contains(text);
    wait_until("it matches", || said("matching on"));
    fs::remove_file(folder.path().join("rig.toml")).unwrap();
    make_pipe(&folder.path().join("rig.toml"));
    signal(&child, libc::SIGHUP);
    wait_until("the pipe is given up", || said("did not come to an end within 5 s"));
    signal(&child, libc::SIGHUP);
    signal(&child, libc::SIGINT);
    assert_eq!(ended_with(&mut child).code(), Some(0));
    assert!(said("the configuration stays as it was: the configuration file rig.toml"));
}

/// Every kind of input: a pipe without a writer gives an error that names it.
#[test]
fn pipes_without_a_writer_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    make_pipe(&folder.path().join("pipe.png"));
    let pixels = b"P5\n8 8\n255\n0123456701234567012345670123456701234567012345670123456701234567";
    fs::write(folder.path().join("l.pgm"), pixels).unwrap();
    let demo = ["run", "--demo", "--demo-size", "96x64", "-d", "16", "--frames", "2"];
    let cases: [&[&str]; 6] = [
        &["run", "--demo", "--config", "pipe.png"],
        &[&demo[..], &["--calibration", "pipe.png"]].concat(),
        &["match", "l.pgm", "pipe.png", "-d", "16", "-o", "d.png"],
        &["run", "--left", "pipe.png", "--right", "pipe.png", "-d", "16"],
        &["calibration", "show", "pipe.png"],
        &[
            "calibrate",
            "--left-pictures",
            "pipe.png",
            "--right-pictures",
            "l.pgm",
            "-o",
            "c.toml",
            "--board",
            "chessboard:9x6",
            "--square",
            "0.025",
        ],
    ];
    for arguments in cases {
        let log = folder.path().join("log");
        let mut child = stereod(folder.path(), arguments)
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let status = ended_with(&mut child).code();
        let said = fs::read_to_string(&log).unwrap();
        assert!(matches!(status, Some(1 | 2)), "{arguments:?}: {status:?} {said}");
        assert!(
            said.contains("pipe.png") && said.contains("regular file"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_name_cannot_forge_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let forged = "x\n   0.1s ERROR forged\u{1b}[2J";
    let name = format!("{forged}.toml");
    fs::write(folder.path().join(&name), "").unwrap();
    let demo = ["run", "--demo", "--demo-size", "96x64", "-d", "16", "--frames", "2", "-v"];
    let (status, _, stderr) = run(folder.path(), &[&demo[..], &["--config", &name]].concat());
    assert_eq!(status, 0, "{stderr}");
    let line = stderr.lines().find(|line| line.contains("configuration file")).unwrap();
    assert!(line.contains(r"x\n   0.1s ERROR forged\u{1b}[2J.toml"), "{stderr}");
    // A damaged one gives an error, of one line or a list.
    fs::write(folder.path().join(&name), "[x]\n[y]\n").unwrap();
    let (status, _, errors) = run(folder.path(), &[&demo[..], &["--config", &name]].concat());
    assert_eq!(status, 2, "{errors}");
    for text in [&stderr, &errors] {
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("0.1s ERROR")), "{text}");
    }
}

/// Without an NVIDIA GPU, no message about it is printed each time.
#[test]
fn the_want_of_a_gpu_is_no_news() {
    let folder = tempfile::tempdir().unwrap();
    let (_, devices, _) = run(folder.path(), &["devices"]);
    if !devices.contains("there is no NVIDIA driver") {
        return;
    }
    let demo = ["run", "--demo", "--demo-size", "96x64", "-d", "16", "--frames", "2"];
    let (_, _, stderr) = run(folder.path(), &demo);
    assert!(stderr.contains("matching on CPU ("), "{stderr}");
    assert!(!stderr.contains("using the CPU"), "{stderr}");
    let (_, _, stderr) = run(folder.path(), &[&demo[..], &["-v"]].concat());
    assert!(stderr.contains("DEBUG using the CPU: there is no NVIDIA driver"), "{stderr}");
}

/// The service manager's socket is full.
#[test]
fn a_service_manager_that_does_not_read_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), 20);
    let socket = folder.path().join("notify");
    let _manager = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let fill = std::os::unix::net::UnixDatagram::unbound().unwrap();
    fill.set_nonblocking(true).unwrap();
    while fill.send_to(b"x", &socket).is_ok() {}
    let mut child = stereod(folder.path(), &["run", "--headless", "--config", "rig.toml"])
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "600000")
        .env("RUST_LOG", "error")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let file = folder.path().join("o.mkv");
    wait_until("the recording grows", || fs::metadata(&file).is_ok_and(|f| f.len() > 20_000));
    signal(&child, libc::SIGTERM);
    assert_eq!(ended_with(&mut child).code(), Some(0));
}

/// Reports whether a process has a handler of its own for a signal.
fn handles(child: &Child, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

/// Opening a pipe waits for its writer.
#[test]
fn one_signal_ends_what_an_element_holds_up_before_its_first_picture() {
    let folder = tempfile::tempdir().unwrap();
    make_pipe(&folder.path().join("pipe"));
    let eye = "filesrc location=pipe ! matroskademux ! decodebin";
    let arguments = ["run", "--headless", "--left", eye, "--right", LIVE, "-v"];
    let log = folder.path().join("log");
    let mut child = stereod(folder.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_until("it handles signals", || handles(&child, libc::SIGINT));
    // Meanwhile it comes to the pipe.
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, libc::SIGINT);
    let status = ended_with(&mut child).code();
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("stopping") && status == Some(0), "{status:?}: {said}");
}

/// If a GPU, or a part of one, is requested, an error says that there is none.
#[test]
fn settings_of_a_gpu_are_not_ignored_silently() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["run", "--demo", "--demo-size", "96x64", "-d", "16", "--frames", "2"];
    let (_, _, stderr) =
        run(folder.path(), &[&demo[..], &["--engine", "cpu", "--multiprocessors", "4"]].concat());
    let told = "WARN --multiprocessors: engine.multiprocessors is for GPUs and is ignored";
    assert_eq!(stderr.matches(told).count(), 1, "{stderr}");
    let (_, _, stderr) = run(folder.path(), &[&demo[..], &["--engine", "cpu"]].concat());
    assert!(!stderr.contains("is for GPUs"), "{stderr}");

    let (_, devices, _) = run(folder.path(), &["devices"]);
    if !devices.contains("there is no NVIDIA driver") {
        return;
    }
    // Measuring a rate creates engines, too.
    let more = ["--multiprocessors", "4", "--gpu-priority", "high", "--fit", "0.1"];
    let (_, _, stderr) = run(folder.path(), &[&demo[..], &more].concat());
    let told =
        stderr.lines().filter(|line| line.contains("INFO using the CPU: there is no NVIDIA"));
    let told: Vec<&str> = told.collect();
    assert!(
        told.len() == 1 && told[0].ends_with("ignored: engine.multiprocessors, engine.priority"),
        "{stderr}"
    );
}
