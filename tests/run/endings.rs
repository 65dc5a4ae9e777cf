//! Ends of runs: by signals, by being killed, of live sources.

use std::io::{BufRead, BufReader};

use super::*;

const ENDLESS: [&str; 7] = ["--demo", "--demo-size", "96x64", "--frames", "0", "--record", "o.mkv"];

/// An endless run that has begun to write its recording.
fn begun(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = stereod(folder, &with_statistics(arguments));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let file = folder.join("o.mkv");
    wait_until("the recording grows", || {
        std::fs::metadata(&file).is_ok_and(|file| file.len() > 100_000)
    });
    child
}

/// Checks samples of a recording's frames against the demo scene.
fn assert_recorded(frames: &[Vec<u16>]) {
    for n in (0..frames.len()).step_by(1 + frames.len() / 4) {
        assert!(frames[n] == reference(n as u64), "frame {n}");
    }
}

#[test]
fn the_first_signal_finishes_the_files() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let child = begun(folder.path(), &ENDLESS);
        signal(&child, number);
        let output = ended(child);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("a second signal (Ctrl-C) exits at once"), "{stderr}");
        let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
        let path = folder.path().join("o.mkv");
        let frames = recorded(&path);
        assert_eq!(statistics["recorded"], frames.len());
        assert_eq!(statistics["matched"], frames.len());
        assert_recorded(&frames);
        // A finished file states its length.
        let player = player::Player::open(&path, player::RECORDING).unwrap();
        assert!(player.duration().is_some_and(|d| d > Duration::from_millis(30)));
    }
}

/// As `timeout` does, which signals the program and then its group.
#[test]
fn two_signals_at_once_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let child = begun(folder.path(), &ENDLESS);
    for _ in 0..20 {
        signal(&child, libc::SIGTERM);
    }
    let (status, stdout, stderr) = outcome_of(ended(child));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(stderr.matches("a second signal (Ctrl-C) exits at once").count(), 1, "{stderr}");
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(statistics["recorded"], recorded(&folder.path().join("o.mkv")).len());
}

#[test]
fn a_recorded_job_that_a_signal_cuts_short_says_so_by_its_status() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes_at(2, folder.path(), 100, 100);
    let eyes = ["--left", "l.mkv", "--right", "r.mkv", "--record", "o.mkv"];
    let paced = [&eyes[..], &["--set", "source.pace=realtime"]].concat();
    for (number, expected) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut command = stereod(folder.path(), &with_statistics(&paced));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let file = folder.path().join("o.mkv");
        wait_until("the recording is there", || file.exists());
        signal(&child, number);
        let (status, stdout, stderr) = outcome_of(ended(child));
        assert_eq!(status, expected, "{stderr}");
        assert!(stderr.contains("stopped by a signal after "), "{stderr}");
        // All matched pairs are complete.
        let statistics: Value = serde_json::from_str(&stdout).unwrap();
        assert!(statistics["matched"].as_u64().unwrap() < 100, "{statistics}");
        assert_eq!(statistics["recorded"], recorded(&file).len());
        std::fs::remove_file(&file).unwrap();
    }
}

/// A caller that reads status 0 takes the recording for whole.
#[test]
fn no_recorded_job_that_is_stopped_while_it_starts_ends_with_0() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes_at(2, folder.path(), 100, 100);
    let paced = ["--left", "l.mkv", "--right", "r.mkv", "--set", "source.pace=realtime"];
    let start = || {
        let mut command = stereod(folder.path(), &with_statistics(&paced));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // The first moments are those of a start on this machine.
    let (begun, mut child) = (Instant::now(), start());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("matching on")), "it says so");
    let whole = begun.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut stopped = 0;
    for part in 0..25 {
        let (moment, child) = (whole * part / 20, start());
        std::thread::sleep(moment);
        signal(&child, libc::SIGTERM);
        let output = ended(child);
        // Without a code, the signal came before its handler was there.
        let code = output.status.code();
        assert!(matches!(code, None | Some(143)), "after {moment:?}: {output:?}");
        stopped += usize::from(code.is_some());
    }
    assert!(stopped > 0);
}

#[test]
fn a_killed_recording_is_readable_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = begun(folder.path(), &ENDLESS);
    child.kill().unwrap();
    child.wait().unwrap();
    let path = folder.path().join("o.mkv");
    let frames = recorded(&path);
    assert!(frames.len() > 3, "{}", frames.len());
    assert_recorded(&frames);
    let tags = stereod_io::sink::video::read_recording_tags(&path).unwrap();
    assert_eq!((tags.range.min, tags.range.count), (0, DISPARITIES));
}

#[test]
fn live_sources_never_wait_and_what_is_dropped_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let eye = "videotestsrc is-live=true pattern=ball ! \
               video/x-raw,format=GRAY8,width=320,height=240,framerate=60/1";
    // A queue of one place fills quickly.
    let arguments = ["--left", eye, "--right", eye, "--record", "o.mkv", "--set", "queue.pairs=1"];
    let child = begun(folder.path(), &[&arguments[..], &PATIENT].concat());
    signal(&child, libc::SIGINT);
    let output = ended(child);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| statistics[key].as_u64().unwrap();
    assert!(count("matched") > 0);
    assert_eq!(count("pairs"), count("matched") + count("dropped"), "{statistics}");
    let output = &statistics["outputs"][0];
    let taken = output["frames"].as_u64().unwrap() + output["dropped"].as_u64().unwrap();
    assert_eq!(taken, count("matched"), "{statistics}");
    let live = &statistics["live"];
    for eye in ["left", "right"] {
        let eye = &live[eye];
        assert_eq!((eye["losses"].as_u64(), eye["broken"].as_u64()), (Some(0), Some(0)), "{live}");
    }
    let apart = &live["synchronisation"]["difference_ms"];
    let [p50, p95, max] = ["p50", "p95", "max"].map(|key| apart[key].as_f64().unwrap());
    assert!(p50 <= p95 && p95 <= max && max < 16.7, "{live}");
}

#[test]
fn a_recording_goes_on_when_a_lost_camera_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let eye = |frames: &str| {
        format!(
            "videotestsrc is-live=true {frames} pattern=ball ! \
             video/x-raw,format=GRAY8,width=320,height=240,framerate=30/1"
        )
    };
    let (left, right) = (eye("num-buffers=90"), eye(""));
    let arguments = ["--left", &left, "--right", &right, "--record", "o.mkv", "--frames", "150"];
    let arguments = with_statistics(&[&arguments[..], &PATIENT].concat());
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let said = |text: &str| stderr.matches(text).count();
    let times = said("left camera lost: its stream ended; trying again");
    assert!(times >= 1 && said("left camera is back after ") == times, "{stderr}");
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(statistics["live"]["left"]["reconnects"].as_u64(), Some(times as u64));
    assert!(statistics["live"]["left"]["away_s"].as_f64().unwrap() >= 0.5 * times as f64);
    let path = folder.path().join("o.mkv");
    let frames = recorded(&path);
    assert_eq!(statistics["recorded"].as_u64(), Some(frames.len() as u64), "{stderr}");
    // The gap is there: without it, 150 pairs last 5 s.
    let player = player::Player::open(&path, player::RECORDING).unwrap();
    assert!(player.duration().unwrap() >= Duration::from_millis(5300), "{:?}", player.duration());
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&ENDLESS[..], &["--preview", "o.mp4"]].concat();
    let mut child = begun(folder.path(), &arguments);
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let written = || std::fs::metadata(folder.path().join("o.mkv")).unwrap().len();
    wait_until("the start is over", || written() > 2_000_000);
    let (before, begun) = (resident(), written());
    wait_until("much has been written", || written() > begun + 8_000_000);
    let grown = resident().saturating_sub(before);
    child.kill().unwrap();
    child.wait().unwrap();
    // A leak of one byte per pixel and pair would be as large as the growth of the file.
    assert!(grown < 6_000, "{before} KiB grew by {grown} KiB");
}

/// Limits a resource of the process of `command`.
#[cfg(target_os = "linux")]
fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, most: libc::rlim_t) {
    use std::os::unix::process::CommandExt;

    let limit = move || {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: setrlimit only reads `limit`, and may be called between fork and exec.
        match unsafe { libc::setrlimit(resource, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(limit) };
}

/// At any limit that the dynamic linker survives, a run ends well or names the cure. If GStreamer
/// cannot open a plug-in, it treats it as not installed.
#[test]
#[cfg(target_os = "linux")]
fn few_descriptors_are_named_with_the_cure() {
    let mut cured = 0;
    for most in 5..=40 {
        let folder = tempfile::tempdir().unwrap();
        let demo = ["run", "--demo", "--demo-size", "96x64", "--frames", "2", "--record", "o.mkv"];
        let mut command = stereod(folder.path(), &demo);
        limit(&mut command, libc::RLIMIT_NOFILE, most);
        let (status, _, stderr) = outcome(&mut command);
        if status == 0 || stderr.contains("error while loading shared libraries") {
            continue;
        }
        assert_eq!(status, 1, "{most}: {stderr}");
        assert!(stderr.contains("ulimit -n") && !stderr.contains("installed"), "{most}: {stderr}");
        cured += 1;
    }
    assert!(cured > 5, "only {cured} limits were too small");
}

/// By default, exceeding the file size limit ends the process (SIGXFSZ).
#[test]
#[cfg(target_os = "linux")]
fn a_limit_to_the_length_of_files_costs_that_output_only() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--demo", "--demo-size", "96x64", "--frames", "40", "--pictures", "out"];
    let arguments = [&arguments[..], &["--record", "o.mkv"]].concat();
    let mut command = stereod(folder.path(), &with_statistics(&arguments));
    limit(&mut command, libc::RLIMIT_FSIZE, 65_536);
    let (status, stdout, stderr) = outcome(&mut command);
    assert_eq!(status, 1, "{stderr}");
    let statistics: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    assert!(stderr.contains("o.mkv"), "{stderr}");
    assert!(statistics["matched"].as_u64() > Some(0), "{statistics}");
}

/// Number of a user who has no other process.
const NOBODY_ELSE: u32 = 54_321;

/// Without further threads a run ends with an error, and leaves no unfinished file: whichever thread it is that cannot
/// be started, one of stereod or one of a library.
#[test]
fn a_limit_of_threads_ends_the_run_in_order() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    // SAFETY: the call has no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: a limit of threads: only root can start a program as another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open.clone()).unwrap();
    let program = folder.path().join("stereod");
    std::fs::copy(env!("CARGO_BIN_EXE_stereod"), &program).unwrap();
    let run = |limit: u64| {
        let place = folder.path().join(limit.to_string());
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, open.clone()).unwrap();
        let mut command = Command::new(&program);
        command.args(["run", "--demo", "--demo-size", "96x64", "--frames", "9", "-d", "24"]);
        command.args(["--headless", "--record", "o.mkv", "--pictures", "p"]);
        command.env_clear().env("GST_REGISTRY", folder.path().join("registry"));
        command.env("GST_REGISTRY_FORK", "no").env("PATH", std::env::var_os("PATH").unwrap());
        command.current_dir(&place).uid(NOBODY_ELSE).gid(NOBODY_ELSE);
        // SAFETY: setrlimit is async-signal-safe, and its argument outlives the call.
        unsafe {
            command.pre_exec(move || {
                let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                match libc::setrlimit(libc::RLIMIT_NPROC, &limits) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_until("the end of the run", || child.try_wait().unwrap().is_some());
        let (status, _, stderr) = outcome_of(child.wait_with_output().unwrap());
        let left = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        let hidden = left.iter().find(|name| name.starts_with('.'));
        assert!(hidden.is_none(), "{limit}: {left:?}: {stderr}");
        match status {
            0 => assert_eq!(recorded(&place.join("o.mkv")).len(), 9, "{limit}"),
            // An encoder that cannot start its own threads fails in its own words.
            _ => assert!(
                stderr.contains("ulimit -u") || stderr.contains("cannot write o.mkv"),
                "{limit}: {status} {stderr}"
            ),
        }
        status
    };
    assert_eq!(run(10_000), 0);
    let statuses: Vec<i32> = (1..40).map(run).collect();
    assert!(statuses[0] != 0 && statuses.last() == Some(&0), "{statuses:?}");
}
