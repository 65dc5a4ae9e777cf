//! Killed, stopped and competing workers, damaged inputs, a disk without room.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use super::*;

/// Arguments for many small pieces.
const PIECES: [&str; 5] = ["in", "--out", "out", "--piece", "4"];

fn input(folder: &Path, pairs: u64) {
    fs::create_dir(folder.join("in")).unwrap();
    write_videos(&folder.join("in"), "a", &scene(1, pairs));
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = batch(folder, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the first piece.
fn wait_for_a_piece(folder: &Path) {
    wait_until("a piece", || {
        folder.exists() && names(folder).iter().any(|name| name.starts_with("a."))
    });
}

#[test]
fn killed_workers_leave_whole_pieces_and_nothing_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 40);
    let undisturbed = ["in", "--out", "undisturbed", "--piece", "4"];
    ends(&mut batch(here, &undisturbed), 0);
    fs::create_dir(here.join("out")).unwrap();
    for (number, ms) in [0, 30, 90, 200, 400].into_iter().enumerate() {
        let mut worker = start(here, &PIECES);
        if number > 0 {
            wait_for_a_piece(&here.join("out"));
        }
        std::thread::sleep(Duration::from_millis(ms));
        worker.kill().unwrap();
        worker.wait().unwrap();
        for name in names(&here.join("out")).iter().filter(|name| name.starts_with("a.")) {
            assert!(here.join("out").join(name).join("manifest.json").exists(), "{name}");
        }
    }
    ends(&mut batch(here, &PIECES), 0);
    ends(&mut stereod(here, &["batch", "verify", "out"]), 0);
    assert!(files(&here.join("undisturbed")) == files(&here.join("out")));
    let left: Vec<String> =
        names(&here.join("out")).into_iter().filter(|n| n.ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Numbers of pairs to try, because a machine that was busy with others may be through with few before the test comes.
const MORE_AND_MORE: [u64; 3] = [80, 800, 8000];

#[test]
fn a_signal_ends_it_in_order() {
    for pairs in MORE_AND_MORE {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        input(here, pairs);
        let worker = start(here, &[&PIECES[..], &["--json"]].concat());
        wait_for_a_piece(&here.join("out"));
        // SAFETY: the process is our child and not yet waited for.
        assert_eq!(unsafe { libc::kill(worker.id() as i32, libc::SIGTERM) }, 0);
        let output = ended(worker);
        if output.status.success() {
            continue;
        }
        assert_eq!(output.status.code(), Some(143), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (made, pieces) = (said["made"].as_u64().unwrap(), pairs / 4);
        assert!((1..pieces).contains(&made) && said["status"] == 143, "{said}");
        assert!(said["failed"].as_array().unwrap().is_empty(), "{said}");
        let rest = summary(&mut batch(here, &PIECES), 0);
        assert_eq!(
            (&rest["there"], &rest["made"]),
            (&made.into(), &(pieces - made).into()),
            "{rest}"
        );
        return;
    }
    panic!("no signal came in time");
}

#[test]
fn a_piece_that_takes_too_long_fails() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // Far more work than any processor does in a second.
    input(here, 4000);
    let slow = ["batch", "in", "--out", "out", "--time-limit", "1", "-d", "64", "--paths", "16"];
    let said = summary(&mut stereod(here, &[&slow[..], &["--engine", "cpu"]].concat()), 1);
    let reason = said["failed"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("--time-limit 1"), "{said}");
    assert_eq!(said["made"], 0);
    assert!(names(&here.join("out")).iter().all(|name| !name.starts_with("a.")));
}

#[test]
fn two_workers_of_one_shard_make_every_piece_once() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 40);
    let workers = [(); 3].map(|()| start(here, &[&PIECES[..], &["--json"]].concat()));
    let mut made = 0;
    for worker in workers {
        let output = ended(worker);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let busy = said["busy"].as_array().unwrap().len();
        assert_eq!(output.status.code(), Some(i32::from(busy > 0)), "{said}");
        made += said["made"].as_u64().unwrap();
    }
    assert_eq!(made, 10);
    ends(&mut stereod(here, &["batch", "verify", "out"]), 0);

    fs::remove_dir_all(here.join("out/a.00000008")).unwrap();
    let lock = File::create(here.join("out/.a.00000008.piece.stereod-lock")).unwrap();
    lock.lock().unwrap();
    let said = summary(&mut batch(here, &PIECES), 1);
    assert_eq!((&said["there"], &said["busy"][0]), (&9.into(), &"a.00000008".into()), "{said}");
    drop(lock);
    assert_eq!(summary(&mut batch(here, &PIECES), 0)["made"], 1);
}

#[test]
fn inputs_that_are_missing_damaged_or_changed_are_not_to_be_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 12);
    fs::write(here.join("in/noise.mkv"), [7; 5000]).unwrap();
    fs::write(here.join("in/cut.mcap"), b"\x89MCAP0\r\n").unwrap();
    let lines = [
        "in/a_left.mkv in/a_right.mkv",
        "in/noise.mkv in/a_right.mkv",
        "in/cut.mcap",
        "in/late_left.mkv in/late_right.mkv",
    ];
    fs::write(here.join("list.txt"), lines.join("\n")).unwrap();
    let run = || batch(here, &["list.txt", "--out", "out", "--piece", "100"]);
    let said = summary(&mut run(), 3);
    assert_eq!((&said["made"], said["bad"].as_array().unwrap().len()), (&1.into(), 3), "{said}");
    assert_eq!(said["failed"].as_array().unwrap().len(), 0, "{said}");
    assert_eq!(ends(&mut stereod(here, &["batch", "missing", "out"]), 0).0, "2-4\n");
    let (_, said) = ends(&mut run(), 3);
    assert!(said.contains("a retry does not help"), "{said}");
    // The others can be joined.
    let (said, error) = ends(&mut stereod(here, &["batch", "merge", "out", "-o", "joined"]), 1);
    assert!(said.contains("of 1 inputs") && error.contains("3 of 4 inputs"), "{said}{error}");
    assert!(here.join("joined/in-a/disparity.mkv").exists());

    // Files that come later are taken; one that has changed is not.
    write_videos(&here.join("in"), "late", &scene(2, 5));
    fs::copy(here.join("in/a_left.mkv"), here.join("in/noise.mkv")).unwrap();
    let said = summary(&mut run(), 3);
    assert_eq!((&said["made"], &said["there"]), (&1.into(), &1.into()), "{said}");
    let bad = said["bad"].as_array().unwrap();
    let changed = bad.iter().find(|bad| bad["piece"] == "in.00000000").unwrap();
    assert!(changed["reason"].as_str().unwrap().contains("--force"), "{said}");
    let said = summary(run().arg("--force"), 3);
    assert_eq!((&said["made"], &said["there"]), (&1.into(), &2.into()), "{said}");

    let (_, said) = ends(&mut batch(here, &["nothing.txt", "--out", "out2"]), 2);
    assert!(said.contains("nothing.txt"), "{said}");
    for wrong in [
        &["--shard", "3/2"][..],
        &["--shard", "auto"],
        &["-d", "auto"],
        &["--set", "engine.fit=30"],
    ] {
        let arguments = [&["list.txt", "--out", "out2"], wrong].concat();
        ends(&mut stereod(here, &[&["batch"], &arguments[..]].concat()), 2);
    }
}

#[test]
fn a_disk_without_room_can_be_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 40);
    let program = batch(here, &["in", "--out", "out", "--piece", "0", "--json"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 16; exec \"$0\" \"$@\""]).arg(program.get_program());
    limited.args(program.get_args()).current_dir(here);
    let (stdout, _) = ends(&mut limited, 1);
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert!(said["failed"][0]["reason"].as_str().unwrap().contains("disparity.mkv"), "{said}");
    let left: Vec<String> =
        names(&here.join("out")).into_iter().filter(|name| name != "run.json").collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(summary(&mut batch(here, &["in", "--out", "out", "--piece", "0"]), 0)["made"], 1);
}

#[test]
fn damage_is_found_and_clocks_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 12);
    let run = || batch(here, &PIECES);
    ends(&mut run(), 0);
    let pattern = here.join("**/*");
    for (number, path) in glob::glob(pattern.to_str().unwrap()).unwrap().flatten().enumerate() {
        // Some are of 1970, others of next year.
        let year = Duration::from_secs(365 * 86400);
        let time = if number % 2 == 0 { SystemTime::UNIX_EPOCH } else { SystemTime::now() + year };
        File::open(path).unwrap().set_modified(time).unwrap();
    }
    assert_eq!(summary(&mut run(), 0)["there"], 3);
    let verify = || stereod(here, &["batch", "verify", "out"]);
    ends(&mut verify(), 0);

    let path = here.join("out/a.00000004/disparity.mkv");
    let mut content = fs::read(&path).unwrap();
    let last = content.len() - 1;
    content[last] ^= 1;
    fs::write(&path, content).unwrap();
    let (_, said) = ends(&mut verify(), 1);
    let cure = "a.00000004: disparity.mkv has changed; `stereod batch verify --remove out` removes it, then";
    assert!(said.contains(cure), "{said}");
    let (_, said) = ends(&mut stereod(here, &["batch", "merge", "out", "-o", "joined.mkv"]), 1);
    assert!(said.contains("disparity.mkv has changed"), "{said}");
    assert!(!here.join("joined.mkv").exists());
    // A piece with a file of somebody else stays; without it, it is removed, and the batch makes it again.
    let remove =
        || ends(stereod(here, &["batch", "verify", "out", "--remove", "--json"]).arg("-q"), 1).0;
    let status = || {
        let (stdout, _) = ends(&mut stereod(here, &["batch", "status", "out", "--json"]), 0);
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    fs::write(here.join("out/a.00000004/mine.txt"), "mine").unwrap();
    let kept = remove();
    assert!(
        kept.contains(
            "mine.txt does not belong to it; move out/a.00000004/mine.txt away and verify again"
        ),
        "{kept}"
    );
    assert!(!kept.contains("removed"));
    fs::remove_file(here.join("out/a.00000004/mine.txt")).unwrap();
    assert_eq!((&status()["pieces"], &status()["done"]), (&json!(3), &json!(3)));
    let removed: Value = serde_json::from_str(&remove()).unwrap();
    assert_eq!(removed["removed"], json!(["a.00000004"]));
    let gone = "a.00000004: disparity.mkv has changed; removed; start the batch again";
    assert_eq!(removed["problems"], json!([gone]));
    assert!(!here.join("out/a.00000004").exists());
    let left = status();
    assert_eq!(
        (&left["done"], &left["pairs_left"], &left["unfinished"]),
        (&json!(2), &json!(4), &json!(0))
    );
    assert!(
        left["pairs_per_second"].as_f64().unwrap() > 0.0
            && left["seconds_left"].as_f64().unwrap() > 0.0
    );
    let (stdout, _) = ends(&mut stereod(here, &["batch", "status", "out"]), 0);
    assert!(
        stdout.starts_with("2 of 3 pieces done, 0 unfinished")
            && stdout.contains(" left with one worker"),
        "{stdout}"
    );
    assert_eq!(summary(&mut run(), 0)["made"], 1);
    fs::write(here.join("out/a.00000004/manifest.json"), "{}").unwrap();
    let (stdout, _) = ends(verify().arg("--json"), 1);
    let said: Value = serde_json::from_str(&stdout).unwrap();
    let problem = said["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("a.00000004: its manifest is damaged; start"), "{said}");
    // It is made again, but a folder that is none of a batch stays.
    assert_eq!(summary(&mut run(), 0)["made"], 1);
    fs::remove_file(here.join("out/a.00000004/manifest.json")).unwrap();
    let (_, said) = ends(&mut run(), 2);
    assert!(said.contains("in the way"), "{said}");
    assert_eq!(summary(run().arg("--force"), 0)["made"], 1);
}

#[test]
fn a_call_that_is_refused_leaves_the_folder_to_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 8);
    let (_, said) = ends(&mut batch(here, &["in", "--out", "out", "--write", "clouds"]), 2);
    assert!(said.contains("--calibration"), "{said}");
    assert_eq!(summary(&mut batch(here, &PIECES), 0)["made"], 2);
}

#[test]
fn the_settings_of_a_piece_lead_no_later_run_into_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 8);
    ends(&mut batch(here, &["in", "--out", "out", "--write", "record,pictures"]), 0);
    let before = files(&here.join("out"));
    let views = ["--left", "in/a_left.mkv", "--right", "in/a_right.mkv"];
    let again = ["run", "--headless", "--config", "out/a.00000000/settings.toml", "--frames", "2"];
    ends(&mut stereod(here, &[&again[..], &views].concat()), 0);
    assert!(files(&here.join("out")) == before);
    let statistics = fs::read_to_string(here.join("out/a.00000000/stats.json")).unwrap();
    assert!(statistics.contains("disparity.mkv") && !statistics.contains(".part"), "{statistics}");
}

#[test]
fn damaged_frames_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 12);
    let path = here.join("in/a_left.mkv");
    let mut content = fs::read(&path).unwrap();
    let middle = content.len() / 2;
    content[middle..middle + 8].iter_mut().for_each(|byte| *byte ^= 0x55);
    fs::write(&path, content).unwrap();
    let said = summary(&mut batch(here, &["in", "--out", "out"]), 0);
    // More than one if the flipped bytes lie at the end of a frame.
    let damaged = said["damaged"].as_u64().unwrap();
    assert!(said["made"] == 1 && (1..3).contains(&damaged), "{said}");
    let (said, _) = ends(&mut stereod(here, &["batch", "verify", "out"]), 0);
    assert!(said.contains(&format!("damaged frames in the inputs: {damaged}")), "{said}");
}

/// Changes a file of JSON.
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut content = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut content);
    fs::write(path, serde_json::to_string_pretty(&content).unwrap()).unwrap();
}

#[test]
fn an_edited_manifest_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 12);
    ends(&mut batch(here, &PIECES), 0);
    for (piece, key, value) in [
        ("a.00000004", "pairs", Value::from(0)),
        ("a.00000008", "pairs", 3.into()),
        ("a.00000000", "damaged", 7.into()),
        ("a.00000000", "engine", "GPU".into()),
    ] {
        let path = here.join("out").join(piece).join("manifest.json");
        edit(&path, |manifest| manifest[key] = value);
        for command in [&["verify", "out"][..], &["merge", "out", "-o", "joined.mkv"]] {
            let (_, said) = ends(&mut stereod(here, &[&["batch"], command].concat()), 1);
            assert!(said.contains(&format!("{piece}: its manifest was edited")), "{said}");
        }
        assert!(!here.join("joined.mkv").exists());
        assert_ne!(ends(&mut stereod(here, &["batch", "missing", "out"]), 0).0, "");
        assert_eq!(summary(&mut batch(here, &PIECES), 0)["made"], 1, "{piece} {key}");
    }
    ends(&mut stereod(here, &["batch", "merge", "out", "-o", "joined.mkv"]), 0);
}

#[test]
fn a_damaged_piece_is_told_and_made_again_and_nothing_else_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 12);
    ends(&mut batch(here, &PIECES), 0);
    let piece = here.join("out/a.00000004");
    let damages: [(&str, &dyn Fn()); 4] = [
        ("bytes in place of", &|| fs::write(piece.join("disparity.mkv"), "cut").unwrap()),
        ("disparity.mkv is missing", &|| fs::remove_file(piece.join("disparity.mkv")).unwrap()),
        ("B3SUMS has changed", &|| fs::write(piece.join("B3SUMS"), "x  y\n").unwrap()),
        ("stats.json is no regular file", &|| {
            fs::remove_file(piece.join("stats.json")).unwrap();
            pipe(&piece.join("stats.json"));
        }),
    ];
    let missing = || ends(&mut stereod(here, &["batch", "missing", "out"]), 0);
    for (reason, damage) in damages {
        damage();
        assert_ne!(missing().0, "", "{reason}");
        let (_, said) = ends(&mut stereod(here, &["batch", "verify", "out"]), 1);
        assert!(said.contains(reason), "{said}");
        let (_, said) = ends(&mut batch(here, &PIECES), 0);
        assert!(said.contains(reason) && said.contains("made anew"), "{said}");
        let (stdout, said) = missing();
        assert!(stdout.is_empty() && said.contains("nothing is missing"), "{stdout}{said}");
    }
    // A file of somebody else does not go with a damaged piece.
    fs::write(piece.join("notes.txt"), "mine").unwrap();
    fs::write(piece.join("disparity.mkv"), "cut").unwrap();
    let (_, said) = ends(&mut batch(here, &PIECES), 2);
    assert!(said.contains("notes.txt is none of its files"), "{said}");
    assert_eq!(fs::read_to_string(piece.join("notes.txt")).unwrap(), "mine");
}

/// Makes a named pipe.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn pipes_and_devices_among_the_files_of_a_piece_end_no_check() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 8);
    ends(&mut batch(here, &PIECES), 0);
    let piece = here.join("out/a.00000004");
    let verify = || ends(&mut stereod(here, &["batch", "verify", "out"]), 1).1;
    pipe(&piece.join("more"));
    assert!(verify().contains("more: it is a pipe"), "a pipe");
    fs::remove_file(piece.join("more")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", piece.join("more")).unwrap();
    assert!(verify().contains("more: it is a device"), "a device");
    fs::remove_file(piece.join("more")).unwrap();
    // Only as many bytes are read as the piece has.
    File::create(piece.join("more")).unwrap().set_len(1 << 40).unwrap();
    assert!(verify().contains("more does not belong to it"), "a large file");
    fs::remove_file(piece.join("more")).unwrap();
    ends(&mut stereod(here, &["batch", "verify", "out"]), 0);
}

#[test]
fn a_damaged_plan_leads_nowhere_else_and_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    input(here, 8);
    ends(&mut batch(here, &PIECES), 0);
    let path = here.join("out/run.json");
    let good = fs::read(&path).unwrap();
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let changes: [Change; 4] = [
        ("`../x`", &|plan| plan["inputs"][0]["name"] = "../x".into()),
        ("`/x`", &|plan| plan["inputs"][0]["name"] = "/x".into()),
        ("`../x`", &|plan| plan["write"][0] = "../x".into()),
        ("pieces", &|plan| plan["inputs"][0]["pairs"] = u64::MAX.into()),
    ];
    for (reason, change) in changes {
        fs::write(&path, &good).unwrap();
        edit(&path, change);
        for command in
            [&["verify", "out"][..], &["missing", "out"], &["merge", "out", "-o", "joined"]]
        {
            let (_, said) = ends(&mut stereod(here, &[&["batch"], command].concat()), 1);
            assert!(said.contains(reason) && said.contains("--force"), "{said}");
        }
        ends(&mut batch(here, &PIECES), 1);
    }
    assert_eq!(names(here), ["in", "out"]);
    // The cure.
    fs::remove_file(&path).unwrap();
    assert_eq!(summary(batch(here, &PIECES).arg("--force"), 0)["there"], 2);
    let (_, said) = ends(&mut batch(here, &["in", "--out", "out2", "--frames", "4"]), 2);
    assert!(said.contains("--piece N"), "{said}");
}

#[test]
fn an_input_that_changes_while_it_is_matched_makes_no_piece() {
    for pairs in MORE_AND_MORE {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        input(here, pairs);
        fs::create_dir(here.join("other")).unwrap();
        write_videos(&here.join("other"), "a", &scene(2, pairs));
        let worker = start(here, &["in", "--out", "out", "--piece", "0", "--json"]);
        // The folder of the unfinished piece shows that its input was identified.
        let is_part = |name: &String| name.starts_with(".a.") && name.ends_with(".part");
        let is_whole = |name: &String| name.starts_with("a.");
        let is = |what: &dyn Fn(&String) -> bool| {
            here.join("out").exists() && names(&here.join("out")).iter().any(what)
        };
        wait_until("it begins", || is(&is_part) || is(&is_whole));
        fs::rename(here.join("other/a_left.mkv"), here.join("in/a_left.mkv")).unwrap();
        let output = ended(worker);
        if output.status.success() {
            continue;
        }
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let reason = said["bad"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("changed while it was matched"), "{said}");
        assert_eq!(names(&here.join("out")), ["run.json"]);
        let again = ["in", "--out", "out", "--piece", "0", "--force"];
        assert_eq!(summary(&mut batch(here, &again), 0)["made"], 1);
        return;
    }
    panic!("no input changed in time");
}
