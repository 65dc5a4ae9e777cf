//! Parts of recordings: the pairs, their numbers and their maps are those of the whole.

use std::collections::BTreeMap;

use super::*;

/// Pairs in these tests: more than a group of pictures.
const PAIRS: u64 = 290;

const H264: &str = "videoconvert ! video/x-raw,format=I420 \
                    ! x264enc key-int-max=250 bframes=3 b-adapt=false ! mp4mux";

const VIDEOS: [&str; 4] = ["--left", "l.mkv", "--right", "r.mkv"];

/// Writes the views of the demo scene as `l.NAME` and `r.NAME`.
fn write_videos(folder: &Path, extension: &str, coding: &str) {
    let pairs: Vec<StereoPair> = (0..PAIRS).map(demo_pair).collect();
    let lefts: Vec<_> = pairs.iter().map(|pair| pair.left.pixels().to_vec()).collect();
    let rights: Vec<_> = pairs.iter().map(|pair| pair.right.pixels().to_vec()).collect();
    write_grey(&folder.join(format!("l.{extension}")), SIZE, &lefts, coding);
    write_grey(&folder.join(format!("r.{extension}")), SIZE, &rights, coding);
}

/// Runs a source into numbered images, and returns these by name.
fn maps(folder: &Path, source: &[&str], part: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let output = folder.join("maps");
    let _ = std::fs::remove_dir_all(&output);
    let arguments = [source, &["--pictures", "maps", "--preset", "fast"], part].concat();
    let said = statistics(folder, &arguments);
    let files = std::fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().path());
    let images = files.filter(|path| path.extension().is_some_and(|kind| kind == "png"));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let maps: BTreeMap<_, _> =
        images.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect();
    assert_eq!(said["matched"], maps.len(), "{said}");
    maps
}

/// Checks that parts of a source are the same maps as in the whole, by the same names. `time` returns a pair's
/// time in seconds after the first one. Returns the names.
fn check(folder: &Path, source: &[&str], pairs: u64, time: impl Fn(u64) -> f64) -> Vec<String> {
    let whole = maps(folder, source, &[]);
    assert_eq!(whole.len() as u64, pairs);
    let middle = pairs - 12.max(pairs / 10);
    let (begin, length) = (time(middle) - 0.001, time(middle + 5) - time(middle));
    let by_time = ["--start", &begin.to_string(), "--duration", &length.to_string()];
    let early = ["--start", &(time(3) - 0.001).to_string(), "--duration", &length.to_string()];
    let by_number = ["--frames", &format!("{}..{}", middle - 1, middle + 7)];
    let to_the_end = ["--start", &(time(pairs - 4) - 0.001).to_string()];
    let counted = ["--start", &begin.to_string(), "--frames", "2"];
    for (part, numbers) in [
        (&by_time[..], middle..middle + 5),
        (&early, 3..8),
        (&by_number, middle - 1..middle + 7),
        (&to_the_end, pairs - 4..pairs),
        (&counted, middle..middle + 2),
    ] {
        let part_of = maps(folder, source, part);
        let of_part = whole.iter().take(numbers.end as usize).skip(numbers.start as usize);
        let expected: BTreeMap<_, _> =
            of_part.map(|(name, map)| (name.clone(), map.clone())).collect();
        let names = |maps: &BTreeMap<String, _>| maps.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&part_of), names(&expected), "{source:?} {part:?}");
        assert!(part_of == expected, "{source:?} {part:?}: maps differ from those of the whole");
    }
    whole.into_keys().collect()
}

fn thirtieths(number: u64) -> f64 {
    number as f64 / 30.0
}

#[test]
fn a_part_of_h264_with_frames_in_decoding_order() {
    let folder = tempfile::tempdir().unwrap();
    write_videos(folder.path(), "mp4", H264);
    let source = ["--left", "l.mp4", "--right", "r.mp4"];
    check(folder.path(), &source, PAIRS, thirtieths);
    // Both views in one stream, and by number instead of time.
    check(folder.path(), &["--top-bottom", "l.mp4"], PAIRS, thirtieths);
    let by_index = [&source[..], &["--set", "source.pair_by=index"]].concat();
    check(folder.path(), &by_index, PAIRS, thirtieths);
}

#[test]
fn a_part_of_lossless_video_and_of_images() {
    let folder = tempfile::tempdir().unwrap();
    write_videos(folder.path(), "mkv", LOSSLESS);
    check(folder.path(), &VIDEOS, PAIRS, thirtieths);
    for number in 0..40 {
        let pair = demo_pair(number);
        for (eye, image) in [("l", &pair.left), ("r", &pair.right)] {
            let path = folder.path().join(format!("{eye}{:03}.pgm", 10 + 2 * number));
            let header = format!("P5\n{} {}\n255\n", SIZE.0, SIZE.1);
            std::fs::write(path, [header.as_bytes(), image.pixels()].concat()).unwrap();
        }
    }
    // An image without a partner is no pair.
    std::fs::remove_file(folder.path().join("r016.pgm")).unwrap();
    let source = ["--left", "l%03d.pgm", "--right", "r%03d.pgm"];
    let time = |pair| thirtieths(if pair < 3 { pair } else { pair + 1 });
    let names = check(folder.path(), &source, 39, time);
    // Maps have the numbers of their images.
    assert_eq!(names[..4], ["000010.png", "000012.png", "000014.png", "000018.png"]);
}

#[test]
fn a_part_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    recordings::write_demo(&folder.path().join("a.mcap"), 40);
    check(folder.path(), &["a.mcap"], 40, |pair| pair as f64 * 0.033);
}

#[test]
fn the_settings_name_a_part_too() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 30, 30);
    let settings = ["--set", "source.start_s=0.5", "--set", "source.duration_s=0.2"];
    let said = statistics(folder.path(), &[&VIDEOS[..], &settings].concat());
    assert_eq!((&said["pairs"], &said["frames"]["left"]), (&6.into(), &6.into()), "{said}");
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 30, 30);
    recordings::write_demo(&folder.path().join("a.mcap"), 10);
    let refused = |source: &[&str], part: &[&str], status: i32, reason: &str| {
        let arguments = [&["run", "--headless", "-d", "24"], source, part].concat();
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, status, "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    };
    refused(&VIDEOS, &["--start", "4"], 1, "1.000 s long");
    refused(&VIDEOS, &["--frames", "30.."], 1, "30 pairs");
    refused(&["a.mcap"], &["--start", "4"], 1, "0.330 s long");
    refused(&["--demo"], &["--frames", "9..3"], 2, "ends before its first one");
    let live = ["--left", "videotestsrc is-live=true ! video/x-raw,width=96,height=64 ! identity"];
    let live = [&live[..], &["--right", live[1]]].concat();
    refused(&live, &["--start", "1"], 2, "for recordings");
    refused(&live, &["--frames", "1..2"], 2, "for recordings");
}
