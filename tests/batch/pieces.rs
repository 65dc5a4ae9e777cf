//! Pieces do not depend on the shards, and joined they are the whole run.

use super::*;

const ALL: &str = "record,confidence,pictures,clouds,aligned";
const RIG: [&str; 4] = ["--focal", "100", "--baseline", "0.1"];

/// Writes the calibration of the left camera and a third one, and returns its path.
fn third(folder: &Path) -> String {
    let camera = "[[100, 0, 47.5], [0, 100, 31.5], [0, 0, 1]], \"D@\": [0, 0, 0, 0, 0]";
    let cameras = ["1", "2"].map(|n| format!("\"K{n}\": {}", camera.replace('@', n))).join(", ");
    let text = format!(
        "{{\"image_size\": [96, 64], {cameras}, \"R\": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], \"T\": [-0.05, 0, 0]}}"
    );
    let path = folder.join("third.json");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Two inputs of 50 and 9 pairs.
fn inputs(folder: &Path) {
    fs::create_dir(folder.join("in")).unwrap();
    write_videos(&folder.join("in"), "long", &scene(1, 50));
    write_videos(&folder.join("in"), "short", &scene(2, 9));
}

#[test]
fn any_number_of_shards_gives_the_same_bytes_and_joined_they_are_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    inputs(here);
    let third = third(here);
    let cameras = [&RIG[..], &["--align", &third]].concat();
    let shared = |out: &str, shards: u64| {
        for shard in 1..=shards {
            let shard = format!("{shard}/{shards}");
            let arguments = ["in", "--out", out, "--shard", &shard, "--piece", "8", "--write", ALL];
            ends(&mut batch(here, &[&arguments[..], &cameras].concat()), 0);
        }
        files(&here.join(out))
    };
    let [one, three, seven] = [("one", 1), ("three", 3), ("seven", 7)].map(|(o, n)| shared(o, n));
    // Six pieces of the long input (the last one has ten pairs) and one of the short one.
    let recordings = one.keys().filter(|name| name.ends_with("disparity.mkv"));
    let expected = ["long.00000000", "long.00000008", "long.00000016", "long.00000024"];
    let expected = expected.into_iter().chain(["long.00000032", "long.00000040", "short.00000000"]);
    assert_eq!(
        recordings.cloned().collect::<Vec<_>>(),
        expected.map(|piece| format!("{piece}/disparity.mkv")).collect::<Vec<_>>()
    );
    assert!(one == three && one == seven);
    let (said, _) = ends(&mut stereod(here, &["batch", "verify", "seven"]), 0);
    assert!(said.contains("2 inputs, 7 of 7 pieces whole, 59 pairs"), "{said}");

    ends(&mut stereod(here, &["batch", "merge", "seven", "-o", "joined"]), 0);
    for (name, pairs) in [("long", 50), ("short", 9)] {
        let whole = here.join(format!("whole-{name}"));
        fs::create_dir(&whole).unwrap();
        let [left, right] = ["left", "right"].map(|view| format!("../in/{name}_{view}.mkv"));
        let arguments = [
            &["run", "--headless", "-d", "24", "--preset", "fast", "--engine", "cpu"],
            &["--left", &left, "--right", &right, "--record", "disparity.mkv"][..],
            &["--confidence", "confidence.mkv", "--pictures", "pictures", "--clouds", "clouds"],
            &["--aligned", "aligned.mkv"],
            &cameras,
        ];
        ends(&mut stereod(&whole, &arguments.concat()), 0);
        let joined = here.join("joined").join(name);
        let (of_run, of_batch) = (files(&whole), files(&joined));
        assert_eq!(of_run.keys().collect::<Vec<_>>(), of_batch.keys().collect::<Vec<_>>());
        for (file, content) in &of_run {
            assert!(*content == of_batch[file], "{name}/{file}");
        }
        assert_eq!(of_run.len(), 3 + 2 * (pairs + 1), "{:?}", of_run.keys());
        let stats = fs::read(joined.join("stats.json")).unwrap();
        let stats: Value = serde_json::from_slice(&stats).unwrap();
        assert_eq!((&stats["pairs"], &stats["matched"]), (&pairs.into(), &pairs.into()), "{stats}");
    }
}

#[test]
fn what_is_there_is_not_made_again_and_other_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    inputs(here);
    // Outputs of the configuration do not count, and what goes with them neither.
    let third = third(here);
    fs::write(
        here.join("own.toml"),
        format!("[output]\naligned = \"own.mkv\"\n[calibration]\nalign = {third:?}\nfocal_px = 100\nbaseline_m = 0.1\n"),
    )
    .unwrap();
    let run = |more: &[&str]| {
        let arguments = ["in", "--out", "out", "--piece", "25", "--config", "own.toml"];
        batch(here, &[&arguments[..], more].concat())
    };
    let (dry, _) = ends(&mut run(&["--dry-run"]), 0);
    assert_eq!(
        dry,
        "long.00000000: pairs 0..25, to do\nlong.00000025: pairs 25.., to do\nshort.00000000: pairs 0.., to do\n"
    );
    assert!(!here.join("out").exists());

    let missing = || ends(&mut stereod(here, &["batch", "missing", "out"]), 0).0;
    let second = summary(&mut run(&["--shard", "2/3"]), 0);
    assert_eq!((&second["made"], &second["pairs"]), (&1.into(), &25.into()), "{second}");
    assert_eq!(missing(), "1,3\n");
    let again = ["batch", "missing", "out", "--shards", "6", "--shard-base", "0"];
    assert_eq!(ends(&mut stereod(here, &again), 0).0, "1,5\n");
    let (_, said) = ends(&mut stereod(here, &["batch", "merge", "out", "-o", "joined"]), 1);
    assert!(said.contains("long.00000000: it is not there"), "{said}");
    let (_, said) = ends(&mut stereod(here, &["batch", "verify", "out"]), 1);
    assert!(said.contains("2 problems"), "{said}");

    // Slurm starts some tasks of the array again.
    for task in ["1", "3"] {
        let mut shard = run(&["--shard", "auto"]);
        shard.env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_TASK_COUNT", "2");
        shard.env("SLURM_ARRAY_TASK_MIN", "1").env("SLURM_ARRAY_TASK_MAX", "3");
        let said = summary(&mut shard, 0);
        assert_eq!((&said["made"], &said["shards"]), (&1.into(), &3.into()), "{said}");
    }
    assert_eq!(missing(), "");
    // The array of two tasks with a stride of 4.
    for task in ["0", "4"] {
        let arguments = ["in", "--out", "strided", "--piece", "25", "--config", "own.toml"];
        let mut shard = batch(here, &[&arguments[..], &["--shard", "auto"]].concat());
        let variables = [("ID", task), ("COUNT", "2"), ("MIN", "0"), ("MAX", "4"), ("STEP", "4")];
        for (name, value) in variables {
            shard.env(format!("SLURM_ARRAY_TASK_{name}"), value);
        }
        assert_eq!(summary(&mut shard, 0)["shards"], 2);
    }
    ends(&mut stereod(here, &["batch", "verify", "strided"]), 0);
    let modified = |name: &str| fs::metadata(here.join(name)).unwrap().modified().unwrap();
    let before = modified("out/long.00000000/disparity.mkv");
    let there = summary(&mut run(&[]), 0);
    assert_eq!((&there["made"], &there["there"]), (&0.into(), &3.into()), "{there}");
    assert_eq!(modified("out/long.00000000/disparity.mkv"), before);

    let (_, said) = ends(&mut run(&["--p1", "3"]), 2);
    assert!(said.contains("matching.p1 is 3") && said.contains("--force"), "{said}");
    let (_, said) = ends(&mut run(&["--write", "record,pictures"]), 2);
    assert!(said.contains("--write is record,pictures, but was record"), "{said}");
    let replaced = summary(&mut run(&["--p1", "3", "--force"]), 0);
    assert_eq!(replaced["made"], 3, "{replaced}");
    // One more input, of which the others know nothing.
    write_videos(&here.join("in"), "more", &scene(3, 4));
    let (_, said) = ends(&mut run(&["--p1", "3"]), 2);
    assert!(said.contains("more"), "{said}");
    let added = summary(&mut run(&["--p1", "3", "--force"]), 0);
    assert_eq!((&added["made"], &added["there"]), (&1.into(), &3.into()), "{added}");
    let left: Vec<String> =
        names(&here.join("out")).into_iter().filter(|n| n.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!here.join("own.mkv").exists());
}

#[test]
fn recordings_of_messages_are_joined_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // A recording of our own is the input.
    let demo =
        ["run", "--demo", "--demo-size", "96x64", "--headless", "--frames", "30", "-d", "24"];
    let more = ["--preset", "fast", "--record", "drive.mcap", "--mcap", "left,right,disparity"];
    ends(&mut stereod(here, &[&demo[..], &more, &RIG].concat()), 0);
    fs::write(here.join("list.txt"), "drive.mcap\n").unwrap();
    let topics = ["--left-topic", "/left/image_rect", "--right-topic", "/right/image_rect"];
    let mcap = ["--mcap", "left,disparity"];
    let arguments = ["list.txt", "--out", "out", "--piece", "10", "--write", "mcap"];
    ends(&mut batch(here, &[&arguments[..], &topics, &mcap].concat()), 0);
    ends(&mut stereod(here, &["batch", "merge", "out", "-o", "joined.mcap"]), 0);
    let whole =
        ["run", "drive.mcap", "--headless", "-d", "24", "--preset", "fast", "--engine", "cpu"];
    let record = ["--record", "whole.mcap"];
    ends(&mut stereod(here, &[&whole[..], &record, &topics, &mcap].concat()), 0);
    let [joined, whole] =
        ["joined.mcap", "whole.mcap"].map(|name| fs::read(here.join(name)).unwrap());
    assert!(joined == whole, "{} and {} bytes", joined.len(), whole.len());
}

#[test]
fn every_output_of_a_piece_is_counted_under_the_name_that_it_gets() {
    let folder = tempfile::tempdir().unwrap();
    let here = &folder.path().canonicalize().unwrap();
    fs::create_dir(here.join("in")).unwrap();
    write_videos(&here.join("in"), "a", &scene(1, 5));
    let third = third(here);
    let (help, _) = ends(&mut stereod(here, &["batch", "--help"]), 0);
    let (_, help) = help.split_once("--write").unwrap();
    let (outputs, _) = help.split_once("possible values:").unwrap().1.split_once(']').unwrap();
    // One takes the place of `record`, the other needs a network (tests/networks).
    let is_wanted = |output: &&str| !["mcap", "verdicts"].contains(output);
    let outputs = outputs.split(',').map(str::trim).filter(is_wanted);
    let outputs: Vec<&str> = outputs.collect();
    // JSON escapes a quotation mark, and what people read on one line a line feed.
    let out = "o\"\nx";
    let write = outputs.join(",");
    let arguments = ["in", "--out", out, "--write", &write, "--align", &third];
    let whitening = ["--temporal", "whiten"];
    ends(&mut batch(here, &[&arguments[..], &RIG, &whitening].concat()), 0);
    let piece = here.join(out).join("a.00000000");
    let stats = fs::read(piece.join("stats.json")).unwrap();
    let stats: Value = serde_json::from_slice(&stats).unwrap();
    let counted = |output| if output == "record" { "recording" } else { output };
    let expected: BTreeMap<&str, u64> =
        outputs.into_iter().map(|name| (counted(name), 5)).collect();
    assert_eq!(stats["written"], serde_json::json!(expected));
    let place = piece.display().to_string().replace('\n', "\\n");
    for output in stats["outputs"].as_array().unwrap() {
        let name = output["name"].as_str().unwrap();
        assert!(name.contains(&place), "{name} is not in {place}");
    }
    ends(&mut stereod(here, &["batch", "verify", out]), 0);
    ends(&mut stereod(here, &["batch", "merge", out, "-o", "merged"]), 0);
    let lines = fs::read_to_string(here.join("merged/a/obstacles.ndjson")).unwrap();
    let pairs =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["pair"].clone());
    assert_eq!(pairs.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}
