//! Endless recordings: segments, limits on their size, and disks that are full, removed or blocked.

use std::path::PathBuf;
use std::time::SystemTime;

use stereod::{Temporal, TemporalMode};
use stereod_core::matching::{History, match_next};
use stereod_io::sink::video::{RecordingTags, read_recording_tags};

use super::*;

const DEMO: [&str; 4] = ["--demo", "--demo-size", "96x64", "--headless"];

/// A live camera of 30 pictures a second.
const LIVE_EYE: &str = "videotestsrc is-live=true pattern=ball ! \
                        video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1";

/// The files of a folder with this ending, by name.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}

fn number(path: &Path) -> u64 {
    let name = path.file_stem().unwrap().to_str().unwrap();
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[test]
fn segments_are_files_of_their_own_and_no_frame_is_lost_between() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "70", "--record", "rec/o.mkv", "--segment", "1s"];
    std::fs::create_dir(folder.path().join("rec")).unwrap();
    let statistics = statistics(folder.path(), &[&DEMO[..], &outputs].concat());
    assert_eq!(statistics["recorded"], 70, "{statistics}");
    let segments = files(&folder.path().join("rec"), ".mkv");
    assert_eq!(segments.iter().map(|path| number(path)).collect::<Vec<_>>(), [1, 2, 3]);
    let all: Vec<_> = segments.iter().map(|path| recorded(path)).collect();
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [30, 30, 10]);
    assert!(all.concat() == (0..70).map(reference).collect::<Vec<_>>());
    for (n, path) in segments.iter().enumerate() {
        // Each has its tags, its duration, and the time of its own first frame.
        let RecordingTags { range, first_timestamp, .. } = read_recording_tags(path).unwrap();
        assert_eq!((range.count, first_timestamp), (DISPARITIES, Duration::from_secs(n as u64)));
        let player = player::Player::open(path, player::RECORDING).unwrap();
        let frames = player.play();
        assert_eq!(frames[0].time, Duration::ZERO);
        let expected = Duration::from_secs(1).mul_f64(frames.len() as f64 / 30.0);
        let wrong = player.duration().unwrap().abs_diff(expected);
        assert!(wrong < Duration::from_millis(1), "{path:?}: {wrong:?}");
    }
}

#[test]
fn confidence_is_recorded_beside_the_disparity() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "35", "--record", "o.mkv", "--confidence", "sure.mkv"];
    let outputs = [&DEMO[..], &outputs, &["--segment", "1s"]].concat();
    let statistics = statistics(folder.path(), &outputs);
    assert_eq!(statistics["written"]["confidence"], 35, "{statistics}");
    let found = files(folder.path(), ".mkv");
    let (disparity, confidence) = found.split_at(2);
    let params = params().with_confidence(Some(0));
    let mut numbers = Vec::new();
    for path in confidence {
        let player = player::Player::open(path, player::RECORDING).unwrap();
        numbers.extend(player.play().into_iter().map(|frame| frame.bytes));
    }
    let disparity: Vec<_> = disparity.iter().flat_map(|path| recorded(path)).collect();
    assert_eq!((disparity.len(), numbers.len()), (35, 35));
    for (n, (disparity, numbers)) in (0..).zip(disparity.iter().zip(&numbers)) {
        let known = disparity.iter().map(|&number| number > 0);
        assert!(known.eq(numbers.iter().map(|&sure| sure > 0)), "{n}");
        let expected = match_next(&demo_pair(n), &params, &mut History::default());
        assert!(expected.confidence.unwrap().pixels() == numbers, "{n}");
    }
}

#[test]
fn whitened_pictures_are_recorded_beside_the_disparity() {
    let folder = tempfile::tempdir().unwrap();
    let stage = ["--temporal", "whiten", "--history", "5", "--degree", "1"];
    let outputs = ["--frames", "12", "--record", "o.mkv", "--whitened", "white.mkv"];
    let statistics = statistics(folder.path(), &[&DEMO[..], &outputs, &stage].concat());
    assert_eq!(statistics["written"]["whitened"], 12, "{statistics}");
    assert_eq!(statistics["temporal"]["pairs"], 12, "{statistics}");
    let temporal = Temporal { mode: TemporalMode::Whiten, history: 5, degree: 1 };
    let tags = read_recording_tags(&folder.path().join("o.mkv")).unwrap();
    assert_eq!(tags.stages.temporal, Some(temporal));
    let player = player::Player::open(&folder.path().join("white.mkv"), player::RECORDING).unwrap();
    let (params, mut history) = (params().with_temporal(Some(temporal)), History::default());
    for (n, frame) in (0..).zip(player.play()) {
        let expected = match_next(&demo_pair(n), &params, &mut history);
        assert!(frame.numbers() == expected.temporal.unwrap().whitened, "{n}");
    }

    // Nothing computes the whitened images: reported before an earlier file is changed.
    let path = folder.path().join("earlier.mkv");
    std::fs::write(&path, "earlier").unwrap();
    let outputs = ["--frames", "2", "--whitened", "earlier.mkv"];
    let (status, _, stderr) = run(folder.path(), &[&["run"], &DEMO[..], &outputs].concat());
    assert!(status == 2 && stderr.contains("--temporal whiten"), "{status}: {stderr}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "earlier");
}

#[test]
fn the_oldest_segments_go_also_those_of_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = ["o.mkv", "o-20200101T000000Z-00001.mp4", "mine-20200101T000000Z-00001.mkv"];
    for name in foreign {
        std::fs::write(folder.path().join(name), [0; 100_000]).unwrap();
    }
    let keep = ["--record", "o.mkv", "--segment-size", "20kB", "--keep", "60kB", "--frames", "60"];
    let arguments = [&DEMO[..], &keep].concat();
    let ours = || -> Vec<_> {
        let all = files(folder.path(), ".mkv").into_iter();
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("o-")).collect()
    };
    let mut last = 0;
    for _ in 0..2 {
        statistics(folder.path(), &arguments);
        let segments = ours();
        let sizes: Vec<_> = segments.iter().map(|p| p.metadata().unwrap().len()).collect();
        assert!(sizes.iter().sum::<u64>() <= 61_000 && sizes.len() >= 2, "{sizes:?}");
        assert!(sizes.iter().all(|&size| size <= 21_000), "{sizes:?}");
        let numbers: Vec<_> = segments.iter().map(|path| number(path)).collect();
        // They are the youngest, without a gap, and the second run continues the first one's
        // numbers.
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        assert!(numbers[0] > last, "{numbers:?} after {last}");
        last = *numbers.last().unwrap();
        // Together they hold the end of the run.
        let frames: Vec<_> = segments.iter().flat_map(|path| recorded(path)).collect();
        let begin = 60 - frames.len() as u64;
        assert!(frames == (begin..60).map(reference).collect::<Vec<_>>(), "from {begin} on");
    }
    for name in foreign {
        assert_eq!(folder.path().join(name).metadata().unwrap().len(), 100_000, "{name}");
    }
}

#[test]
fn wrong_limits_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, words) in [
        (&["--segment", "10min"][..], "--record"),
        (&["--record", "o.mkv", "--keep", "2GB"], "--segment 10min"),
        (&["--record", "o.mkv", "--segment", "10"], "--segment: wrong value"),
        (&["--record", "o.mkv", "--segment-size", "2 apples"], "such as `2GB`"),
        (&["--record", "o.mkv", "--segment-size", "2GB", "--keep", "3GB"], "at least twice"),
    ] {
        let arguments = [&["run"], &DEMO[..], flags].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert!(status == 2 && stderr.contains(words), "{flags:?}: {status} {stderr}");
    }
    assert_eq!(files(folder.path(), "").len(), 0);
    let missing = ["--record", "no/o.mkv", "--segment", "10min"];
    let (status, _, stderr) = run(folder.path(), &[&["run"], &DEMO[..], &missing].concat());
    assert!(status == 1 && stderr.contains("mkdir -p"), "{status} {stderr}");
}

/// A live run of the test pattern, with its messages in the file `log`.
pub fn live(folder: &Path, arguments: &[&str]) -> Child {
    let eyes = ["--left", LIVE_EYE, "--right", LIVE_EYE, "--headless"];
    let mut command = stereod(folder, &with_statistics(&[&eyes[..], arguments].concat()));
    let log = std::fs::File::create(folder.join("log")).unwrap();
    command.stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

/// Exit status, statistics and messages of a live run that is asked to end.
pub fn end_live(folder: &Path, child: Child) -> (i32, Value, String) {
    let (status, statistics, _) = end(child);
    let said = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    (status, statistics, said)
}

/// Waits until a live run has said this.
pub fn wait_for_log(folder: &Path, text: &str) {
    wait_until(text, || std::fs::read_to_string(folder.join("log")).unwrap().contains(text));
}

/// Statistics of the output whose name begins with this: frames, dropped, failed.
fn counts(statistics: &Value, name: &str) -> [u64; 3] {
    let outputs = statistics["outputs"].as_array().unwrap();
    let begins = |output: &&Value| output["name"].as_str().unwrap().starts_with(name);
    let output = outputs.iter().find(begins).unwrap();
    ["frames", "dropped", "failed"].map(|key| output[key].as_u64().unwrap())
}

#[test]
fn names_of_segments_are_settled_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    // 229 characters, and a time, a number and a minus for each segment.
    let long = format!("{}.mkv", "n".repeat(229));
    let arguments = ["run", "--left", "none", "--right", "none", "--headless", "--segment", "1h"];
    let (status, _, stderr) = run(folder.path(), &[&arguments[..], &["--record", &long]].concat());
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("too long") && stderr.contains("--record"), "{stderr}");

    let mut first = live(folder.path(), &["--record", "o.mkv", "--segment", "1h"]);
    wait_until("a segment", || files(folder.path(), "-00001.mkv").len() == 1);
    let second =
        [&["run"][..], &DEMO, &["--record", "o.mkv", "--segment", "1h", "--frames", "2"]].concat();
    let (status, _, stderr) = run(folder.path(), &second);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("another run") && stderr.contains("o.mkv"), "{stderr}");
    first.kill().unwrap();
    first.wait().unwrap();
    let (status, _, stderr) = run(folder.path(), &second);
    assert_eq!(status, 0, "{stderr}");
}

#[test]
fn a_killed_run_leaves_whole_segments() {
    let folder = tempfile::tempdir().unwrap();
    let begun = SystemTime::now();
    let mut child = live(folder.path(), &["--record", "o.mkv", "--segment", "1s"]);
    wait_until("a third segment", || {
        let third = files(folder.path(), "-00003.mkv");
        third.first().is_some_and(|path| !recorded(path).is_empty())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let segments = files(folder.path(), ".mkv");
    let mut absolute = Vec::new();
    for path in &segments {
        let tags = read_recording_tags(path).unwrap();
        let frames = player::Player::open(path, player::RECORDING).unwrap().play();
        assert!(!frames.is_empty(), "{path:?}");
        absolute.extend(frames.iter().map(|frame| tags.first_timestamp + frame.time));
    }
    assert_times_of_day(&segments, begun);
    // Times continue through all segments, in steps of whole frames except for rounding.
    for (before, after) in absolute.iter().zip(&absolute[1..]) {
        let step = (*after - *before).as_secs_f64() * 30.0;
        assert!((step - step.round()).abs() < 0.001 && step > 0.5, "{step}");
    }
    let lasts = absolute[absolute.len() - 1] - absolute[0];
    assert!(segments.len() >= 3 && lasts >= Duration::from_secs(2), "{lasts:?}");
}

/// All files state the time of day of their first frame, in tags and in the form that other
/// programs know, and agree about the offset between the clocks.
fn assert_times_of_day(segments: &[PathBuf], begun: SystemTime) {
    let unix = |moment: SystemTime| moment.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let offset = read_recording_tags(&segments[0]).unwrap().utc_offset_ns.expect("it was live");
    for path in segments {
        let tags = read_recording_tags(path).unwrap();
        assert_eq!(tags.utc_offset_ns, Some(offset));
        let start = tags.time_of_day(Duration::ZERO).unwrap();
        assert!(start > begun && start < SystemTime::now(), "{path:?}: {start:?}");
        let player = player::Player::open(path, player::RECORDING).unwrap();
        let shown = player.messages().1.get::<gst::tags::DateTime>().expect("a date").get();
        let shown = shown.to_g_date_time().unwrap();
        // GStreamer adds the fraction in floating point: for one date in eighty it shows the
        // previous microsecond.
        let shown = Duration::from_secs(shown.to_unix() as u64)
            + Duration::from_micros(shown.microsecond() as u64);
        let micros = Duration::from_micros(unix(start).as_micros() as u64);
        assert!(shown.abs_diff(micros) <= Duration::from_micros(1), "{path:?}: {shown:?}");
        // "o-20261121T101500Z-00001"
        let second = unix(start).as_secs();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let clock = format!("{:02}{:02}{:02}Z", second / 3600 % 24, second / 60 % 60, second % 60);
        assert!(name.contains(&format!("T{clock}-")), "{name} at {clock}");
    }
}

/// A small file system in a folder, unmounted at the end.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Mounts one of this many KiB; if this user may not mount, prints a note and returns `None`.
    pub fn mount(folder: &Path, kibibytes: u32) -> Option<Self> {
        let at = folder.join("disk");
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={kibibytes}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at);
        match mount.stderr(Stdio::null()).status() {
            Ok(status) if status.success() => Some(Self(at)),
            _ => {
                eprintln!("skipped: this user may not mount a small disk");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_costs_frames_of_its_output_only() {
    let folder = tempfile::tempdir().unwrap();
    // Without the filler it has room for minutes.
    let Some(disk) = SmallDisk::mount(folder.path(), 20_000) else { return };
    let filler = disk.0.join("filler");
    std::fs::write(&filler, vec![1; 19_960 << 10]).unwrap();
    let child = live(folder.path(), &["--record", "disk/o.mkv", "--preview", "p.mp4"]);
    wait_for_log(folder.path(), "recording disk/o.mkv failed: ");
    std::thread::sleep(Duration::from_secs(2));
    std::fs::remove_file(&filler).unwrap();
    wait_for_log(folder.path(), "is being written again after ");
    let (status, statistics, stderr) = end_live(folder.path(), child);

    assert_eq!(status, 1, "{stderr}");
    let said = |text: &str| stderr.matches(text).count();
    assert_eq!(said("the disk is full; make room"), 2, "once then, once at the end: {stderr}");
    assert_eq!(said("recording disk/o.mkv failed: "), 1, "{stderr}");
    assert_eq!(said("is being written again after "), 1, "{stderr}");
    assert_eq!(said("frames could not be written: "), 1, "{stderr}");
    let [frames, dropped, failed] = counts(&statistics, "recording");
    assert!(failed > 0, "{statistics}");
    let matched = statistics["matched"].as_u64().unwrap();
    assert_eq!(frames + dropped + failed, matched, "{statistics}");
    let first = recorded(&disk.0.join("o.mkv")).len() as u64;
    let second = recorded(&files(&disk.0, "-00001.mkv")[0]).len() as u64;
    assert_eq!(first + second, frames, "{statistics}");
    let [shown, dropped, failed] = counts(&statistics, "preview");
    assert_eq!((shown + dropped, failed), (matched, 0), "{statistics}");
    // The gap is also a gap in time: both files use the same time scale.
    let begin = |path: &Path| read_recording_tags(path).unwrap().first_timestamp;
    let second = begin(&files(&disk.0, "-00001.mkv")[0]);
    let hole = second - begin(&disk.0.join("o.mkv"));
    assert!(hole > Duration::from_secs(2), "{hole:?}");
}

#[test]
fn where_old_segments_may_go_a_full_disk_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 200) else { return };
    // The disk is smaller than the size limit of the recording.
    let limits = ["--segment-size", "30kB", "--keep", "1MB"];
    let child = live(folder.path(), &[&["--record", "disk/o.mkv"], &limits[..]].concat());
    wait_until("twelve segments", || {
        files(&disk.0, ".mkv").last().is_some_and(|path| number(path) >= 12)
    });
    let (status, statistics, stderr) = end_live(folder.path(), child);
    assert_eq!(status, 0, "{stderr}");
    let [frames, dropped, failed] = counts(&statistics, "recording");
    assert_eq!(frames + dropped, statistics["matched"].as_u64().unwrap(), "{statistics}");
    assert_eq!(failed, 0, "{statistics}");
    let segments = files(&disk.0, ".mkv");
    assert!(number(&segments[0]) > 1, "{segments:?}");
    for path in &segments {
        assert!(!recorded(path).is_empty(), "{path:?}");
    }
}

#[test]
fn a_recording_that_was_deleted_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rec")).unwrap();
    let child = live(folder.path(), &["--record", "rec/o.mkv", "--pictures", "p"]);
    let at = |name: &str| folder.path().join(name);
    wait_until("both are written", || {
        at("rec/o.mkv").metadata().is_ok_and(|m| m.len() > 10_000) && at("p").exists()
    });
    std::fs::remove_dir_all(at("rec")).unwrap();
    // Pictures arrive while it is emptied.
    wait_until("the folder is gone", || std::fs::remove_dir_all(at("p")).is_ok());
    wait_for_log(folder.path(), "recording rec/o.mkv failed: ");
    wait_for_log(folder.path(), "pictures in p failed: ");
    // A missing folder may be a removed disk, so it is not created again.
    assert!(!at("rec").exists() && !at("p").exists());
    std::fs::create_dir(at("rec")).unwrap();
    std::fs::create_dir(at("p")).unwrap();
    wait_until("it goes on", || {
        files(&at("rec"), ".mkv").len() == 1 && files(&at("p"), ".png").len() > 10
    });
    let (status, statistics, stderr) = end_live(folder.path(), child);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("somebody has deleted it"), "{stderr}");
    assert!(counts(&statistics, "recording")[2] > 0, "{statistics}");
    assert!(counts(&statistics, "pictures")[2] > 0, "{statistics}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_is_held_up_holds_up_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("o.mkv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A pipe without a reader acts as an infinitely slow disk.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            use std::os::fd::AsRawFd;
            let reader = std::fs::File::open(pipe).unwrap();
            // SAFETY: the descriptor is that of an open pipe.
            assert!(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } > 0);
            reader
        }
    });
    let outputs = ["--record", "o.mkv", "--preview", "p.mp4", "--pictures", "p"];
    let child = live(folder.path(), &outputs);
    let _held = reader.join().unwrap();
    // Many more frames than the pipe and the places before the recording hold.
    wait_until("the pictures go on", || {
        let pictures = folder.path().join("p");
        pictures.exists() && files(&pictures, ".png").len() > 150
    });
    let (status, statistics, stderr) = end_live(folder.path(), child);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("recording o.mkv: it is held up"), "{stderr}");
    let [frames, dropped, _] = counts(&statistics, "recording");
    assert!(dropped > 0 && frames > 0, "{statistics}");
    let matched = statistics["matched"].as_u64().unwrap();
    let [shown, missed, _] = counts(&statistics, "preview");
    assert_eq!(shown + missed, matched);
    let player = player::Player::open(&folder.path().join("p.mp4"), "qtdemux ! avdec_h264");
    assert_eq!(player.unwrap().play().len() as u64, shown);
}
