//! Recordings in MCAP files, read by the crate; tests/remote reads them by programs of others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcap::MessageStream;
use mcap::read::Options;

use super::recording::{SmallDisk, end_live, files, live, wait_for_log};
use super::rigs::write_rig;
use super::*;

const DEMO: [&str; 4] = ["--demo", "--demo-size", "96x64", "--headless"];
const CAMERAS: [&str; 4] = ["--focal", "80", "--baseline", "0.1"];

/// Times of the messages of each topic. A file that was not finished is read to its end.
fn times(path: &Path, is_finished: bool) -> BTreeMap<String, Vec<u64>> {
    let file = std::fs::read(path).unwrap();
    if is_finished {
        let summary = mcap::Summary::read(&file).unwrap().expect("it has an index");
        assert!(summary.stats.unwrap().message_count > 0);
    }
    let options = if is_finished { Options::ValidateChunkCrcs } else { Options::IgnoreEndMagic };
    let mut times = BTreeMap::<String, Vec<u64>>::new();
    for message in MessageStream::new_with_options(&file, options.into()).unwrap() {
        let Ok(message) = message else {
            assert!(!is_finished, "{message:?}");
            break;
        };
        assert_eq!(message.log_time, message.publish_time);
        times.entry(message.channel.topic.clone()).or_default().push(message.log_time);
    }
    times
}

/// Asserts that every pair is whole, and returns the number of pairs.
fn whole_pairs(times: &BTreeMap<String, Vec<u64>>) -> usize {
    let of_left = &times["/left/image_rect"];
    assert!(of_left.is_sorted(), "{of_left:?}");
    for (topic, times) in times.iter().filter(|(topic, _)| *topic != "/tf_static") {
        assert_eq!(times, of_left, "{topic}");
    }
    of_left.len()
}

#[test]
fn segments_are_whole_files_with_the_topics_that_were_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "70", "--record", "o.mcap", "--segment", "1s"];
    let arguments = [&DEMO[..], &CAMERAS, &outputs].concat();
    let statistics = statistics(folder.path(), &arguments);
    assert_eq!(statistics["recorded"], 70, "{statistics}");
    let segments = files(folder.path(), ".mcap");
    let all: Vec<_> = segments.iter().map(|path| times(path, true)).collect();
    assert_eq!(all.iter().map(whole_pairs).collect::<Vec<_>>(), [30, 30, 10]);
    for (n, times) in all.iter().enumerate() {
        let topics: Vec<_> = times.keys().map(String::as_str).collect();
        let expected = [
            "/depth/image_rect",
            "/disparity",
            "/disparity/image_color/compressed",
            "/left/camera_info",
            "/left/image_rect",
            "/right/camera_info",
            "/tf_static",
        ];
        assert_eq!(topics, expected);
        // Each file stands alone.
        assert_eq!(times["/tf_static"], [n as u64 * 1_000_000_000]);
    }
    let chosen = ["--frames", "3", "--record", "c.mcap", "--mcap", "left,left-jpeg, confidence"];
    run(folder.path(), &[&["run", "-d", "24"], &DEMO[..], &chosen].concat());
    let times = times(&folder.path().join("c.mcap"), true);
    let topics: Vec<_> = times.keys().map(String::as_str).collect();
    let images = ["/confidence", "/left/image_rect", "/left/image_rect/compressed"];
    assert!(images.iter().all(|topic| topics.contains(topic)), "{topics:?}");
    assert!(
        !topics.iter().any(|topic| topic.starts_with("/disparity") || topic.starts_with("/depth")),
        "{topics:?}"
    );
    assert_eq!(whole_pairs(&times), 3);
}

#[test]
fn a_mount_that_follows_the_ground_is_recorded_with_each_pair() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "3", "--mcap", "left,scan", "--set=mount.z_m=0.8", "--record"];
    for (ground, name) in [("fixed", "fixed.mcap"), ("track", "track.mcap")] {
        let ground = format!("--set=mount.ground={ground}");
        let arguments = [&DEMO[..], &CAMERAS, &outputs, &[name, &ground]].concat();
        statistics(folder.path(), &arguments);
    }
    let fixed = times(&folder.path().join("fixed.mcap"), true);
    assert!(!fixed.contains_key("/tf"), "{fixed:?}");
    let moving = times(&folder.path().join("track.mcap"), true);
    assert_eq!(whole_pairs(&moving), 3);
    assert_eq!((moving["/tf"].len(), moving["/tf_static"].len()), (3, 1));
}

#[test]
fn the_motion_is_recorded_with_the_pairs_whose_pose_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["--demo", "--demo-size", "320x240", "--headless", "--frames", "5", "--odometry"];
    let outputs = ["--focal", "400", "--baseline", "0.1", "--record"];
    for (name, prefix) in [("alone.mcap", ""), ("front.mcap", "front_")] {
        let prefix = format!("--set=output.frame_prefix={prefix}");
        statistics(folder.path(), &[&demo[..], &outputs, &[name, &prefix]].concat());
    }
    let alone = times(&folder.path().join("alone.mcap"), true);
    let left = &alone["/left/image_rect"];
    assert_eq!((left.len(), alone["/tf_static"].len()), (5, 1));
    let (poses, transforms) = (&alone["/odom"], &alone["/tf"]);
    assert!(transforms.iter().all(|time| left.contains(time)), "{alone:?}");
    assert!(poses.iter().all(|time| transforms.contains(time)), "{alone:?}");
    // The first pair has no velocity.
    assert!(!poses.contains(&left[0]), "{alone:?}");
    // A rig with a prefix may have neighbours, so it does not place the vehicle.
    let front = times(&folder.path().join("front.mcap"), true);
    assert_eq!((&front["/odom"], front.get("/tf")), (poses, None));
}

#[test]
fn rosbag2_offers_what_is_sent_once_to_later_subscribers() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "2", "--record", "o.mcap"];
    statistics(folder.path(), &[&DEMO[..], &CAMERAS, &outputs].concat());
    let file = std::fs::read(folder.path().join("o.mcap")).unwrap();
    let summary = mcap::Summary::read(&file).unwrap().unwrap();
    assert_eq!(summary.channels.len(), 7);
    for channel in summary.channels.values() {
        let profile = &channel.metadata["offered_qos_profiles"];
        // rmw/types.h: 1 is transient local, 2 volatile; both are reliable.
        let durability = if channel.topic == "/tf_static" { 1 } else { 2 };
        assert!(profile.contains(&format!("\n  durability: {durability}\n")), "{profile}");
        assert!(profile.contains("\n  reliability: 1\n"), "{profile}");
    }
    let of_rosbag2 = summary.metadata_indexes.iter().find(|index| index.name == "rosbag2");
    let record = mcap::read::metadata(&file, of_rosbag2.unwrap()).unwrap();
    assert_eq!(record.metadata["serialized_metadata"], "");
}

/// Names and contents of the attachments.
fn attachments(path: &Path) -> Vec<(String, Vec<u8>)> {
    let file = std::fs::read(path).unwrap();
    let summary = mcap::Summary::read(&file).unwrap().expect("it has an index");
    let attached = summary.attachment_indexes.iter().map(|index| {
        let attachment = mcap::read::attachment(&file, index).unwrap();
        (attachment.name, attachment.data.into_owned())
    });
    attached.collect()
}

#[test]
fn every_segment_has_the_calibration() {
    let folder = tempfile::tempdir().unwrap();
    write_rig(folder.path());
    let rig = std::fs::read(folder.path().join("rig.json")).unwrap();
    let outputs = ["--frames", "45", "--record", "o.mcap", "--segment", "1s"];
    statistics(folder.path(), &[&DEMO[..], &outputs, &["--calibration", "rig.json"]].concat());
    let segments = files(folder.path(), ".mcap");
    assert_eq!(segments.len(), 2);
    for path in segments {
        assert_eq!(attachments(&path), [("rig.json".to_owned(), rig.clone())]);
    }
}

#[cfg(unix)]
#[test]
fn a_calibration_from_a_pipe_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    write_rig(folder.path());
    let (program, demo) = (env!("CARGO_BIN_EXE_stereod"), DEMO.join(" "));
    let command = format!(
        "{program} run {demo} -d 24 --frames 3 --record o.mcap --calibration <(cat rig.json)"
    );
    let mut bash = Command::new("bash");
    let (status, _, stderr) = outcome(bash.args(["-c", &command]).current_dir(folder.path()));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(attachments(&folder.path().join("o.mcap")), []);
}

#[test]
fn a_killed_run_leaves_whole_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = live(folder.path(), &[&CAMERAS[..], &["--record", "o.mcap"]].concat());
    let path = folder.path().join("o.mcap");
    wait_until("something is written", || path.metadata().is_ok_and(|it| it.len() > 300_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let pairs = whole_pairs(&times(&path, false));
    assert!(pairs > 5, "{pairs}");
}

#[test]
fn a_full_disk_costs_whole_pairs_and_the_next_file_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 2000) else { return };
    let filler = disk.0.join("filler");
    std::fs::write(&filler, vec![1; 1600 << 10]).unwrap();
    let child = live(folder.path(), &["--record", "disk/o.mcap"]);
    let size = |path: &Path| path.metadata().map_or(0, |about| about.len());
    let first = disk.0.join("o.mcap");
    wait_for_log(folder.path(), "recording disk/o.mcap failed: ");
    std::fs::remove_file(&filler).unwrap();
    let next = || files(&disk.0, "-00001.mcap").first().map_or(0, |path| size(path));
    wait_until("it goes on in the next file", || next() > 100_000);
    let (status, statistics, stderr) = end_live(folder.path(), child);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("the disk is full; make room"), "{stderr}");
    let written = [first, files(&disk.0, "-00001.mcap")[0].clone()];
    let pairs: usize = written.iter().map(|path| whole_pairs(&times(path, false))).sum();
    let recorded = statistics["recorded"].as_u64().unwrap();
    assert_eq!(pairs as u64, recorded, "{statistics}");
}

#[test]
fn what_cannot_be_recorded_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let with_eyes = tempfile::tempdir().unwrap();
    write_eyes(with_eyes.path(), 1, 1);
    let unknown = ["run", "--headless", "--left", "l.mkv", "--right", "r.mkv", "-d", "24"];
    let depth = ["--record", "o.mcap", "--mcap", "left,depth"];
    let (status, _, stderr) = run(with_eyes.path(), &[&unknown[..], &depth].concat());
    assert!(status != 0 && stderr.contains("give --calibration FILE"), "{stderr}");
    assert!(!with_eyes.path().join("o.mcap").exists());
    let refused: [(&[&str], &str); 5] = [
        (&["--record", "o.mcap", "--mcap", "colour"], "a list of left, left-jpeg"),
        (&["--record", "o.mkv", "--mcap", "left"], "give --record OUT.mcap"),
        (&["--confidence", "o.mcap"], "name it .mkv"),
        (&["--record", "o.bag"], "name it .mkv"),
        (&["--record", "o.mcap", "--on-demand"], "--serve PORT"),
    ];
    for (arguments, cure) in refused {
        let arguments = [&["run", "-d", "24"], &DEMO[..], arguments].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert!(status != 0 && stderr.contains(cure), "{arguments:?}: {stderr}");
    }
    let left: Vec<PathBuf> = files(folder.path(), "");
    assert!(left.is_empty(), "{left:?}");
}
