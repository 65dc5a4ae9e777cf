//! Recordings of messages, written by the library that wrote the first MCAP files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;

use mcap::WriteOptions;
use mcap::records::MessageHeader;

use super::*;
use crate::common::data::data;

/// A message of a topic: its name, its type without package, and the time of recording in nanoseconds.
type Sent = (&'static str, &'static str, u64, Vec<u8>);

/// Stamp of pair 0 in nanoseconds, and the time between pairs.
const START: u64 = 1_700_000_000_000_000_000;
const PERIOD: u64 = 33_000_000;

/// Begins a message in CDR with a header of this stamp.
fn header(stamp: u64) -> Vec<u8> {
    let numbers = [(stamp / 1_000_000_000) as u32, (stamp % 1_000_000_000) as u32, 4];
    let mut message = vec![0, 1, 0, 0];
    numbers.iter().for_each(|number| message.extend(number.to_le_bytes()));
    message.extend(b"eye\0");
    message
}

/// An image with rows of `step` bytes.
fn image(stamp: u64, encoding: &str, [width, height, step]: [usize; 3], data: &[u8]) -> Vec<u8> {
    let mut message = header(stamp);
    let number = |message: &mut Vec<u8>, number: usize| {
        message.resize(message.len().next_multiple_of(4), 0);
        message.extend((number as u32).to_le_bytes());
    };
    number(&mut message, height);
    number(&mut message, width);
    number(&mut message, encoding.len() + 1);
    message.extend(encoding.as_bytes());
    // The end of the text, and is_bigendian.
    message.extend([0, 0]);
    number(&mut message, step);
    number(&mut message, data.len());
    message.extend(data);
    message
}

/// Both views of the first pairs of the demo scene; the right ones are recorded late.
fn views(pairs: u64, topics: [&'static str; 2]) -> Vec<Sent> {
    let of_pair = |number| {
        let (pair, stamp) = (demo_pair(number), START + number * PERIOD);
        let size = [SIZE.0, SIZE.1, SIZE.0];
        let of = |view: usize, pixels: &[u8]| {
            let late = stamp + 70_000_000 * view as u64;
            (topics[view], "Image", late, image(stamp, "mono8", size, pixels))
        };
        [of(0, pair.left.pixels()), of(1, pair.right.pixels())]
    };
    (0..pairs).flat_map(of_pair).collect()
}

fn write(path: &Path, messages: &[Sent], options: WriteOptions, is_finished: bool) {
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = options.chunk_size(Some(20_000)).create(file).unwrap();
    let mut channels = BTreeMap::new();
    for (topic, kind, log_time, data) in messages {
        let channel_id = *channels.entry(topic).or_insert_with(|| {
            let schema =
                writer.add_schema(&format!("sensor_msgs/msg/{kind}"), "ros2msg", b"").unwrap();
            writer.add_channel(schema, topic, "cdr", &BTreeMap::new()).unwrap()
        });
        let (log_time, publish_time) = (*log_time, *log_time);
        let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time };
        writer.write_to_known_channel(&header, data).unwrap();
    }
    match is_finished {
        true => drop(writer.finish().unwrap()),
        false => {
            writer.flush().unwrap();
            std::mem::forget(writer);
        }
    }
}

/// Writes the first pairs of the demo scene as a recording.
pub(super) fn write_demo(path: &Path, pairs: u64) {
    write(path, &views(pairs, TOPICS), WriteOptions::new(), true);
}

const TOPICS: [&str; 2] = ["/cam/left/image_rect", "/cam/right/image_rect"];

/// Expected frames of a recording of the first pairs.
fn expected(pairs: u64) -> Vec<Vec<u16>> {
    (0..pairs).map(reference).collect()
}

#[test]
fn the_stamps_pair_the_views() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.mcap"), &views(7, TOPICS), WriteOptions::new(), true);
    let said = statistics(folder.path(), &["a.mcap", "--record", "out.mkv"]);
    assert_eq!(said["matched"], 7, "{said}");
    assert_eq!(recorded(&folder.path().join("out.mkv")), expected(7));
    // With the topics by name, the other way round.
    let named = ["--right-topic", TOPICS[0], "--left-topic", TOPICS[1], "--swap"];
    let said =
        statistics(folder.path(), &[&["a.mcap", "--record", "out.mkv"], &named[..]].concat());
    assert_eq!(said["matched"], 7, "{said}");
    assert_eq!(recorded(&folder.path().join("out.mkv")), expected(7));
}

/// A recording of both views. Each message has the number of the demo pair that it shows, and a stamp in
/// milliseconds; they are recorded one after the other.
fn recorded_as(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<Sent> {
    let size = [SIZE.0, SIZE.1, SIZE.0];
    let sent = |view: usize, at: usize, &(number, stamp): &(u64, u64)| {
        let pair = demo_pair(number);
        let pixels = [pair.left.pixels(), pair.right.pixels()][view];
        let log = START + at as u64 * PERIOD + view as u64 * 1_000_000;
        let stamp = START + stamp * 1_000_000;
        (TOPICS[view], "Image", log, image(stamp, "mono8", size, pixels))
    };
    let of = |view: usize, all: &[(u64, u64)]| -> Vec<Sent> {
        all.iter().enumerate().map(|(at, message)| sent(view, at, message)).collect()
    };
    let mut messages = [of(0, left), of(1, right)].concat();
    messages.sort_by_key(|&(.., log, _)| log);
    messages
}

/// `info` and `run` find these pairs; the messages of a run.
fn assert_pairs(messages: &[Sent], numbers: &[u64], arguments: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.mcap"), messages, WriteOptions::new(), true);
    if arguments.is_empty() {
        let (status, stdout, stderr) = run(folder.path(), &["info", "a.mcap", "--json"]);
        assert_eq!(status, 0, "{stderr}");
        let info: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(info["pair"]["pairs"], numbers.len(), "{info}");
    }
    let arguments = [&["a.mcap", "--record", "o.mkv"], arguments].concat();
    let (status, stdout, stderr) = run(folder.path(), &with_statistics(&arguments));
    assert_eq!(status, 0, "{stderr}");
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(said["matched"], numbers.len(), "{stderr}");
    let expected: Vec<_> = numbers.iter().map(|&number| reference(number)).collect();
    assert!(recorded(&folder.path().join("o.mkv")) == expected, "{stderr}");
    let [left, right] = ["left", "right"].map(|view| {
        let all = said["frames"][view].as_u64().unwrap();
        assert_eq!(all, said["unpaired"][view].as_u64().unwrap() + numbers.len() as u64, "{said}");
        all
    });
    let sent = |topic| messages.iter().filter(|(name, ..)| *name == topic).count() as u64;
    assert_eq!([left, right], TOPICS.map(sent), "every image is counted: {said}");
    (said, stderr)
}

/// Messages in this order, each with its own stamp.
fn in_order(numbers: &[u64]) -> Vec<(u64, u64)> {
    numbers.iter().map(|&number| (number, 33 * number)).collect()
}

#[test]
fn the_order_of_the_messages_does_not_matter() {
    let mixed = in_order(&[2, 0, 1, 3, 7, 5, 4, 6, 8]);
    let right = in_order(&[0, 1, 3, 2, 4, 5, 8, 6, 7]);
    let all: Vec<_> = (0..9).collect();
    for messages in [recorded_as(&mixed, &mixed), recorded_as(&mixed, &right)] {
        let (_, stderr) = assert_pairs(&messages, &all, &[]);
        assert!(!stderr.contains("stamp") && !stderr.contains("were paired"), "{stderr}");
    }
    // Parts in the wrong order, and times that run backwards.
    for order in [[3, 4, 5, 0, 1, 2, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1, 0]] {
        let messages = recorded_as(&in_order(&order), &in_order(&order));
        let mut numbers = order;
        if order[0] == 3 {
            numbers.sort_unstable();
        }
        assert_pairs(&messages, &numbers, &[]);
        assert_pairs(&messages, &order, &["--set", "source.pair_by=index"]);
    }
    // Times that begin again.
    let again: Vec<_> = (0..9).map(|i| (i, 5000 + i % 4 * 33)).collect();
    assert_pairs(&recorded_as(&again, &again), &all, &["--set", "source.pair_by=index"]);
}

#[test]
fn stamps_that_do_not_grow_are_told_and_replaced() {
    let all: Vec<_> = (0..20).collect();
    let stamps: [fn(u64) -> u64; 3] =
        [|_| 7000, |i| i / 12 * 1000, |i| if i < 16 { 9000 } else { 9000 + 33 * i }];
    for stamp in stamps {
        let view: Vec<_> = all.iter().map(|&i| (i, stamp(i))).collect();
        let (_, stderr) = assert_pairs(&recorded_as(&view, &view), &all, &[]);
        assert!(stderr.contains("the stamps of the images do not grow"), "{stderr}");
        assert_pairs(&recorded_as(&view, &view), &all, &["--set", "source.pair_by=index"]);
    }
}

#[test]
fn copies_and_wrong_stamps_cost_no_other_image() {
    let twice = in_order(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    let (said, stderr) = assert_pairs(&recorded_as(&twice, &twice), &[0, 1, 2, 3, 4], &[]);
    assert!(stderr.contains("5 left and 5 right images are copies"), "{stderr}");
    assert!(!stderr.contains("--tolerance"), "{stderr}");
    assert_eq!(said["unpaired"], serde_json::json!({ "left": 5, "right": 5 }));
    for hours in [-1, 1] {
        let whole = in_order(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let shift = |(number, stamp): &(u64, u64)| (*number, stamp + 4_000_000);
        let whole: Vec<_> = whole.iter().map(shift).collect();
        let mut wrong = whole.clone();
        wrong[4].1 = wrong[4].1.checked_add_signed(hours * 3_600_000).unwrap();
        let messages = recorded_as(&wrong, &whole);
        let (said, stderr) = assert_pairs(&messages, &[0, 1, 2, 3, 5, 6, 7, 8], &[]);
        let place = if hours > 0 { "3600.0 s after those" } else { "3600.0 s before those" };
        assert!(stderr.contains(TOPICS[0]) && stderr.contains("image 4: its time"), "{stderr}");
        assert!(stderr.contains(place), "{stderr}");
        assert_eq!(said["damaged"]["left"]["mistimed"], 1, "{said}");
    }
}

#[test]
fn images_hours_apart_and_views_out_of_step_are_paired() {
    let numbers = [0, 1, 2];
    let rare: Vec<_> = numbers.iter().map(|&i| (i, i * 6 * 3_600_000)).collect();
    assert_pairs(&recorded_as(&rare, &rare), &numbers, &[]);
    let all: Vec<_> = (0..9).collect();
    let left = in_order(&all);
    for apart in [12, 16, 17] {
        let right: Vec<_> = left.iter().map(|&(number, stamp)| (number, stamp + apart)).collect();
        let messages = recorded_as(&left, &right);
        // 17 ms are more than half a period: the right image before is nearer.
        let (pairs, arguments): (&[u64], &[&str]) = match apart {
            17 => (&all, &["--offset", "-17"]),
            _ => (&all, &[]),
        };
        let (_, stderr) = assert_pairs(&messages, pairs, arguments);
        let told = format!("often {apart}.0 ms apart, the right view later");
        assert_eq!(stderr.contains(&told), apart != 17, "{stderr}");
        assert!(apart == 17 || stderr.contains(&format!("--offset -{apart}.0")), "{stderr}");
    }
}

#[test]
fn what_a_killed_recorder_leaves_is_played_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    write(&path, &views(6, TOPICS), WriteOptions::new(), false);
    let (status, _, stderr) =
        run(folder.path(), &["run", "-d", "24", "a.mcap", "--record", "o.mkv"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("unfinished") && stderr.contains("last whole message"), "{stderr}");
    assert_eq!(recorded(&folder.path().join("o.mkv")), expected(6));
}

#[test]
fn wrong_messages_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let refused = |messages: &[Sent], what: &[&str]| {
        write(&path, messages, WriteOptions::new(), true);
        let (status, _, stderr) = run(folder.path(), &["run", "a.mcap", "-d", "24", "--headless"]);
        assert_ne!(status, 0, "{stderr}");
        for what in what {
            assert!(stderr.contains(what) && !stderr.contains("panicked"), "{what}: {stderr}");
        }
    };
    let both =
        |message: Vec<u8>| [0, 1].map(|view| (TOPICS[view], "Image", START, message.clone()));
    let data = vec![9; 96 * 64];
    refused(&both(image(START, "32FC1", [96, 16, 384], &data)), &["32FC1", "mono8", TOPICS[0]]);
    refused(&both(image(START, "mono8", [96, 65, 96], &data)), &["96x65", "need more than"]);
    refused(&both(image(START, "mono8", [1 << 20, 1 << 20, 1 << 20], &data)), &["budget"]);
    refused(&both(image(START, "mono8", [1 << 31, 1 << 31, 96], &data)), &["budget"]);
    for step in [0, 4] {
        let what = format!("the step of {step} bytes is smaller than a row of 96 pixels");
        refused(&both(image(START, "mono8", [96, 64, step], &data)), &[&what]);
    }
    refused(&both(image(START, "mono8", [0, 0, 0], &[])), &["no pixels"]);
    refused(&both(header(START)), &["the message ends"]);
    refused(&both(vec![0, 9, 0, 0, 1]), &["CDR encoding 0009"]);
    refused(&views(2, ["/a/image", "/b/image"]), &["--left-topic", "/a/image (sensor_msgs/Image"]);
    refused(&[("/imu", "Imu", START, header(START))], &["no topic with images"]);
    let sizes = [
        (TOPICS[0], "Image", START, image(START, "mono8", [96, 64, 96], &data)),
        (TOPICS[1], "Image", START, image(START, "mono8", [64, 64, 64], &data)),
    ];
    refused(&sizes, &["differ in size", "64x64"]);
    let mut late = views(3, TOPICS);
    late[3].3 = image(START + 9_000_000_000, "mono8", [96, 64, 96], &data);
    late.truncate(4);
    late.remove(1);
    refused(&late, &["no stamp of one view fits", "--tolerance", "--offset -9000` pairs"]);
    let (status, stdout, _) = run(folder.path(), &["info", "a.mcap"]);
    assert!(status == 0 && stdout.contains("no stamps pair"), "{stdout}");
    assert!(!stdout.contains("skew"), "{stdout}");
    let offset = ["a.mcap", "--offset", "-9000", "--record", "o.mkv"];
    assert_eq!(statistics(folder.path(), &offset)["matched"], 1);
}

/// A `CameraInfo` of 96x64 pixels, with this P.
fn camera_info(k: [f64; 9], p: [f64; 12]) -> Vec<u8> {
    camera_info_of([96, 64], k, p, [0; 6])
}

/// A `CameraInfo`; `window` has the binning, then the region of interest: offset, height, width.
fn camera_info_of(size: [u32; 2], k: [f64; 9], p: [f64; 12], window: [u32; 6]) -> Vec<u8> {
    let mut message = header(START);
    for number in [size[1], size[0], 10] {
        message.extend(number.to_le_bytes());
    }
    message.extend(b"plumb_bob\0\0\0");
    message.extend(5_u32.to_le_bytes());
    // Numbers of 8 bytes are aligned behind the encapsulation header.
    message.resize((message.len() - 4).next_multiple_of(8) + 4, 0);
    let r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let numbers = [0.0; 5].into_iter().chain(k).chain(r).chain(p);
    numbers.for_each(|number| message.extend(number.to_le_bytes()));
    window.iter().for_each(|number| message.extend(number.to_le_bytes()));
    message.push(0);
    message
}

const INFOS: [&str; 2] = ["/cam/left/camera_info", "/cam/right/camera_info"];
const RAW: [&str; 2] = ["/cam/left/image_raw", "/cam/right/image_raw"];
const K: [f64; 9] = [80.0, 0.0, 47.5, 0.0, 80.0, 31.5, 0.0, 0.0, 1.0];

/// P of a camera with K and this fourth column.
fn p_of(x: f64, y: f64) -> [f64; 12] {
    [80.0, 0.0, 47.5, x, 0.0, 80.0, 31.5, y, 0.0, 0.0, 1.0, 0.0]
}

#[test]
fn rectified_and_raw_topics_have_the_same_checks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let said = |topics: [&'static str; 2], infos: [Vec<u8>; 2]| {
        let [left, right] = infos;
        let infos = [(INFOS[0], "CameraInfo", START, left), (INFOS[1], "CameraInfo", START, right)];
        write(&path, &[&infos[..], &views(2, topics)].concat(), WriteOptions::new(), true);
        let run = run(folder.path(), &["run", "a.mcap", "-d", "24", "--headless"]);
        assert_eq!(run.0, 0, "{}", run.2);
        run.2
    };
    // A region of a larger sensor, and the same binned.
    let at = |f: f64, cx: f64, cy: f64, x: f64| {
        let k = [f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0];
        (k, [f, 0.0, cx, x, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0])
    };
    for topics in [TOPICS, RAW] {
        for (size, f, window) in [
            ([192, 128], 80.0, [0, 0, 60, 40, 64, 96]),
            ([384, 256], 160.0, [2, 2, 120, 80, 128, 192]),
        ] {
            let scale = f / 80.0;
            let info = |x: f64| {
                let (k, p) = at(f, 107.5 * scale, 71.5 * scale, x * scale);
                camera_info_of(size, k, p, window)
            };
            let said = said(topics, [info(0.0), info(-8.0)]);
            let words = "focal length 80.0 px, baseline 100.0 mm";
            assert!(said.contains(words) && !said.contains("not usable"), "{topics:?}: {said}");
        }
        let right =
            |p: [f64; 12]| said(topics, [camera_info(K, p_of(0.0, 0.0)), camera_info(K, p)]);
        let changed = |at: usize, to: f64| {
            let mut p = p_of(-8.0, 0.0);
            p[at] = to;
            p
        };
        for (p, words) in [
            (changed(0, 78.0), "fx is 80.000 px"),
            (changed(6, 37.0), "cy is 31.500 px"),
            (p_of(0.0, 0.0), "no baseline is recorded"),
            (p_of(0.0, 0.0), "`--focal 80 --baseline B`"),
            (p_of(0.0, -8.0), "one above the other"),
            (p_of(8.0, 0.0), "--swap"),
            (p_of(f64::NAN, 0.0), "p[3]: NaN is not a finite number"),
            (p_of(-8000.0, 0.0), "a baseline of 100.0000 m is not plausible"),
            (p_of(-8000.0, 0.0), "`--focal 80 --baseline B`"),
        ] {
            let said = right(p);
            assert!(said.contains("not usable") && said.contains(words), "{words}: {said}");
        }
        let short = right(p_of(-0.008, 0.0));
        assert!(short.contains("a baseline of 0.100 mm is hardly plausible"), "{short}");
        // Both count from another camera.
        let third = said(topics, [camera_info(K, p_of(4.0, 0.0)), camera_info(K, p_of(-4.0, 0.0))]);
        assert!(third.contains("baseline 100.0 mm"), "{third}");
    }
    // Full images, although the driver tells a region of the same shape.
    let info = |x| camera_info_of([96, 64], K, p_of(x, 0.0), [0, 0, 24, 16, 32, 48]);
    let full = said(TOPICS, [info(0.0), info(-8.0)]);
    assert!(full.contains("focal length 80.0 px") && full.contains("are left out"), "{full}");
}

#[test]
fn the_first_usable_messages_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut messages = Vec::new();
    for n in 0..3 {
        for (view, x) in [0.0, -8.0].into_iter().enumerate() {
            let (k, p) = if n == 0 { ([0.0; 9], [0.0; 12]) } else { (K, p_of(x, 0.0)) };
            messages.push((INFOS[view], "CameraInfo", START + n, camera_info(k, p)));
        }
    }
    messages.extend(TOPICS.map(|topic| (topic, "Image", START, image(START, "", [0; 3], &[]))));
    messages.extend(views(7, TOPICS).into_iter().skip(2));
    write(&folder.path().join("a.mcap"), &messages, WriteOptions::new(), true);
    let arguments = with_statistics(&["a.mcap", "--record", "o.mkv"]);
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(recorded(&folder.path().join("o.mkv")), expected(7)[1..]);
    for view in ["left", "right"] {
        assert_eq!(said["damaged"][view]["left_out"], 1, "{said}");
    }
    for words in [
        "baseline 100.0 mm",
        "/cam/right/camera_info: message 2 is the first usable one; those before it",
        "the image has no pixels (0x0)",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let (status, stdout, _) = run(folder.path(), &["info", "a.mcap"]);
    assert!(status == 0 && !stdout.contains("not usable"), "{stdout}");
    let counts = ": 6 pairs, skew 0.000 ms (at most 0.000 ms); 1 left and 1 right images that cannot be read";
    assert!(stdout.contains(counts), "{stdout}");
}

#[test]
fn a_topic_that_is_named_twice_has_both_views_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let topic = "/stereo/image_raw";
    let both = |number: u64| {
        let (pair, stamp) = (demo_pair(number), START + number * PERIOD);
        let rows = (0..SIZE.1).flat_map(|y| [pair.left.row(y), pair.right.row(y)].concat());
        let pixels: Vec<u8> = rows.collect();
        let size = [2 * SIZE.0, SIZE.1, 2 * SIZE.0];
        (topic, "Image", stamp, image(stamp, "mono8", size, &pixels))
    };
    let messages: Vec<_> = (0..4).map(both).collect();
    write(&folder.path().join("a.mcap"), &messages, WriteOptions::new(), true);
    let named = ["--left-topic", topic, "--right-topic", topic];
    let said =
        statistics(folder.path(), &[&["a.mcap", "--record", "out.mkv"], &named[..]].concat());
    assert_eq!(said["matched"], 4, "{said}");
    assert_eq!(recorded(&folder.path().join("out.mkv")), expected(4));
    let (status, stdout, _) = run(folder.path(), &[&["info", "a.mcap"], &named[..]].concat());
    assert!(status == 0 && stdout.contains("both views of /stereo/image_raw: 4 pairs"), "{stdout}");
    for arguments in [&["a.mcap"][..], &["--side-by-side", "a.mcap"]] {
        let arguments = [&["run", "--headless", "-d", "24"], arguments].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert!(status != 0 && stderr.contains("side by side"), "{stderr}");
        assert!(stderr.contains("--left-topic"), "{stderr}");
    }
}

#[test]
fn images_of_events_do_not_replace_those_of_cameras() {
    let folder = tempfile::tempdir().unwrap();
    let blank = image(START, "mono8", [SIZE.0, SIZE.1, SIZE.0], &[0; SIZE.0 * SIZE.1]);
    let events = ["/cam/left/event_image", "/cam/right/event_image"];
    let mut messages = events.map(|topic| (topic, "Image", START, blank.clone())).to_vec();
    messages.extend(views(3, ["/cam/left/image_rect_color", "/cam/right/image_rect_color"]));
    write(&folder.path().join("a.mcap"), &messages, WriteOptions::new(), true);
    statistics(folder.path(), &["a.mcap", "--record", "out.mkv"]);
    assert_eq!(recorded(&folder.path().join("out.mkv")), expected(3));
}

#[test]
fn a_recording_of_stereod_is_matched_again_if_it_has_both_views() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["--demo", "--demo-size", "96x64", "--focal", "80", "--baseline", "0.1"];
    let record = |arguments: &[&str]| {
        let said = statistics(folder.path(), &[&demo[..], &["--frames", "3"], arguments].concat());
        assert_eq!(said["matched"], 3, "{said}");
    };
    record(&["--record", "default.mcap"]);
    let (status, _, stderr) =
        run(folder.path(), &["run", "-d", "24", "--headless", "default.mcap"]);
    let cure = "left,right,disparity,depth";
    assert!(status != 0 && stderr.contains(&format!("`--mcap {cure}`")), "{stderr}");
    record(&["--record", "both.mcap", "--mcap", cure]);
    let (status, stdout, stderr) = run(folder.path(), &with_statistics(&["both.mcap"]));
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &said["matched"]), (0, &3.into()), "{stderr}");
    assert!(stderr.contains("focal length 80.0 px, baseline 100.0 mm"), "{stderr}");
}

#[test]
fn info_calls_unusable_what_run_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let info = |messages: &[Sent]| {
        write(&path, messages, WriteOptions::new(), true);
        let (status, stdout, stderr) = run(folder.path(), &["info", "a.mcap"]);
        assert_eq!(status, 0, "{stderr}");
        stdout
    };
    let data = vec![9; 96 * 64];
    let both = |encoding, size| {
        let message = image(START, encoding, size, &data);
        [0, 1].map(|view| (TOPICS[view], "Image", START, message.clone()))
    };
    for (encoding, size, what) in [
        ("32FC1", [96, 16, 384], "96x16 32FC1, unreadable: pixels in the format \"32FC1\""),
        ("", [96, 64, 96], "unreadable: pixels in the format \"\""),
        ("mono8", [0, 0, 0], "unreadable: the image has no pixels"),
        ("mono8", [1 << 31, 1 << 31, 96], "unreadable: an image of 2147483648x2147483648"),
    ] {
        let said = info(&both(encoding, size));
        assert!(said.contains(what), "{said}");
        assert!(said.contains(&format!("pair not usable: {}: ", TOPICS[0])), "{said}");
    }
    let mut sizes = both("mono8", [96, 64, 96]);
    sizes[1].3 = image(START, "mono8", [64, 64, 64], &data);
    let said = info(&sizes);
    assert!(said.contains("pair not usable: the views differ in size: 96x64 and 64x64"), "{said}");

    let (k, p) = (K, |tx| p_of(tx, 0.0));
    let with = |topics: [&'static str; 2], right: [f64; 12], k| {
        let info = |view: usize, p| (INFOS[view], "CameraInfo", START, camera_info(k, p));
        let views = views(1, topics);
        [info(0, p(0.0)), info(1, right), views[0].clone(), views[1].clone()]
    };
    for topics in [TOPICS, RAW] {
        let said = info(&with(topics, p(-8.0), k));
        assert!(said.contains("calibration: /cam/left") && !said.contains("not usable"), "{said}");
        let wrong = [[0.0; 12], p(f64::NAN), p(0.0), p(8.0)];
        for right in wrong {
            let said = info(&with(topics, right, k));
            assert!(said.contains("calibration not usable: "), "{right:?}: {said}");
        }
    }
    assert!(info(&with(RAW, p(-8.0), [0.0; 9])).contains("calibration not usable: "));
}

#[test]
fn a_damaged_chunk_is_left_out_told_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    for compression in [None, Some(mcap::Compression::Zstd)] {
        write(&path, &views(9, TOPICS), WriteOptions::new().compression(compression), true);
        let mut content = std::fs::read(&path).unwrap();
        let summary = mcap::Summary::read(&content).unwrap().unwrap();
        let chunk = &summary.chunk_indexes[2];
        let lost: usize = {
            let indices = summary.read_message_indexes(&content, chunk).unwrap();
            indices.values().map(Vec::len).sum()
        };
        let start = chunk.compressed_data_offset().unwrap() as usize;
        content[start + 2000..][..200].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, content).unwrap();
        let arguments = with_statistics(&["a.mcap", "--record", "o.mkv"]);
        let (status, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 0, "{stderr}");
        let said: Value = serde_json::from_str(&stdout).unwrap();
        let what = format!("the chunk at byte {} (log time 1700000000.", chunk.chunk_start_offset);
        assert_eq!(stderr.matches(&what).count(), 1, "{stderr}");
        assert!(stderr.contains(&format!("; {lost} of its messages are left out")), "{stderr}");
        let left_out = |view: &str| said["damaged"][view]["left_out"].as_u64().unwrap();
        let counted = left_out("left") + left_out("right");
        assert_eq!(counted, lost as u64, "{said}");
        let maps = recorded(&folder.path().join("o.mkv"));
        assert_eq!(maps.len() as u64, said["matched"].as_u64().unwrap());
        // What was matched is right.
        let whole = expected(9);
        assert!(maps.iter().all(|map| whole.contains(map)) && maps.len() < 9, "{}", maps.len());
        let (status, stdout, _) = run(folder.path(), &["info", "a.mcap"]);
        assert!(status == 0 && stdout.contains("\ndamaged: the chunk at byte"), "{stdout}");
    }
}

#[test]
fn a_bomb_is_refused_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut messages = views(1, TOPICS);
    // Compresses to nearly nothing.
    messages.push(("/zeros", "Image", START, vec![0; 400 << 20]));
    write(&folder.path().join("a.mcap"), &messages, WriteOptions::new(), true);
    let small = std::fs::metadata(folder.path().join("a.mcap")).unwrap().len();
    assert!(small < 1 << 20, "{small} bytes");
    for command in [&["run", "--headless"][..], &["info"]] {
        let arguments = [command, &["a.mcap", "--set", "engine.memory_mib=256"]].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{stderr}");
        assert!(stderr.contains("budget") && stderr.contains("256 MiB"), "{stderr}");
    }
}

#[test]
fn info_describes_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut messages = views(9, TOPICS);
    // A gap, and an image that has no partner.
    messages.drain(8..10);
    messages.remove(0);
    write(&folder.path().join("a.mcap"), &messages, WriteOptions::new(), true);
    let (status, stdout, stderr) = run(folder.path(), &["info", "a.mcap", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(said["kind"], "MCAP");
    assert_eq!(said["pair"]["pairs"], 7);
    assert_eq!(said["pair"]["unpaired"], serde_json::json!([0, 1]));
    let topics = said["topics"].as_array().unwrap();
    let right = topics.iter().find(|topic| topic["name"] == TOPICS[1]).unwrap();
    assert_eq!((&right["messages"], &right["gaps"]), (&8.into(), &1.into()));
    assert!((right["longest_gap_s"].as_f64().unwrap() - 0.066).abs() < 1e-6, "{right}");
    let (status, stdout, _) = run(folder.path(), &["info", "a.mcap"]);
    assert!(status == 0 && stdout.contains("1 gap of up to 66 ms"), "{stdout}");
    std::fs::write(folder.path().join("a.txt"), "no recording").unwrap();
    for (name, what) in [("missing.mcap", "there is no"), ("a.txt", "is no recording")] {
        let (status, _, stderr) = run(folder.path(), &["info", name]);
        assert!(status == 1 && stderr.contains(what), "{stderr}");
    }
}

/// Returns the time of frame `number` of a recording in ZED's layout.
fn time_of_frame(whole: &[u8], number: usize) -> u64 {
    let messages = mcap::MessageStream::new(whole).unwrap().map(Result::unwrap);
    let mut frames = messages.filter(|message| message.channel.topic.ends_with("side_by_side"));
    frames.nth(number).unwrap().log_time
}

/// Flips a bit of frame `number`.
fn damage_frame(whole: &[u8], number: usize) -> Vec<u8> {
    let time = time_of_frame(whole, number);
    let chunks = mcap::Summary::read(whole).unwrap().unwrap().chunk_indexes;
    let of_frame = |chunk: &&mcap::records::ChunkIndex| {
        chunk.message_start_time == time && chunk.message_end_time == time
    };
    let chunk = chunks.iter().find(of_frame).unwrap();
    let mut content = whole.to_vec();
    content[(chunk.compressed_data_offset().unwrap() + chunk.compressed_size / 2) as usize] ^= 8;
    content
}

/// Returns the recording without frame `number`, as if its recorder had not written it.
fn without_frame(whole: &[u8], number: usize) -> Vec<u8> {
    let time = time_of_frame(whole, number);
    let mut content = std::io::Cursor::new(Vec::new());
    let mut writer = WriteOptions::new().chunk_size(Some(100)).create(&mut content).unwrap();
    for message in mcap::MessageStream::new(whole).unwrap().map(Result::unwrap) {
        if message.log_time != time || !message.channel.topic.ends_with("side_by_side") {
            writer.write(&message).unwrap();
        }
    }
    writer.finish().unwrap();
    drop(writer);
    content.into_inner()
}

#[test]
fn a_missing_frame_of_a_video_costs_those_that_build_on_it() {
    // Forty frames with a key frame in 20, each frame in a chunk of its own.
    let Some(gop) = data("bugs/damaged/gop.svo2") else { return };
    let gop = std::fs::read(gop).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svo2");
    let matched = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let arguments = ["a.svo2", "--headless", "--record", "o.mkv"];
        let (_, stdout, stderr) = run(folder.path(), &with_statistics(&arguments));
        let said: Value = serde_json::from_str(&stdout).unwrap();
        (said, recorded(&folder.path().join("o.mkv")), stderr)
    };
    let (said, whole, _) = matched(&gop);
    assert_eq!((whole.len(), said.get("damaged")), (40, None), "{said}");
    for number in [3, 20, 38] {
        // Frames 0 and 20 are key frames.
        let next = (number / 20 + 1) * 20;
        let left = [&whole[..number], &whole[next..]].concat();
        for (content, lost) in [
            (damage_frame(&gop, number), next - number),
            (without_frame(&gop, number), next - number - 1),
        ] {
            let (said, frames, stderr) = matched(&content);
            assert!(frames == left, "without frame {number}: {} frames, {said}", frames.len());
            assert_eq!(said["damaged"]["left"]["left_out"], lost, "{said}");
            assert_eq!(said["damaged"]["left"]["concealed"], 0, "{said}");
            assert!(stderr.contains("left out"), "{stderr}");
        }
    }
}
