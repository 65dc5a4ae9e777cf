//! Output files, refusals and messages.

use std::fs;

use super::{Data, write_floats};

const YELLOW: [u8; 3] = [240, 220, 60];
const ORANGE: [u8; 3] = [240, 140, 30];
const DARK_GREEN: [u8; 3] = [0, 100, 40];

#[test]
fn the_tables_go_to_standard_output_and_the_rest_into_files() {
    let data = Data::new();
    data.described("set/wall");
    fs::write(data.at("table.md"), "an earlier table, longer than the new one? no").unwrap();
    let (status, stdout, stderr) = data.evaluate(&[
        "set",
        "--json",
        "all.json",
        "--markdown",
        "table.md",
        "--errors",
        "new/errors",
        "--set",
        "matching.subpixel=false",
    ]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("Pixels that both cameras see\n  pair "), "{stdout}");
    let row = stdout.lines().find(|line| line.starts_with("  wall ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..7], ["100.0", "66.67", "0.00", "1.667", "66.67", "16.67"]);
    assert!(stdout.contains("\nAll pixels\n") && stdout.contains("\n\n1 pair on CPU"), "{stdout}");
    assert!(stdout.ends_with("`--legend` explains the columns.\n"), "{stdout}");
    let folder = data.at("set");
    let (_, explained, _) = data.evaluate(&[folder.to_str().unwrap(), "--legend", "--latex", "t"]);
    assert!(explained.contains("median of 3.\n1 pair on CPU"), "{explained}");
    // The table goes to other people.
    let latex = fs::read_to_string(data.at("t")).unwrap();
    assert!(latex.contains("\nmean of set & ") && !latex.contains('/'), "{latex}");
    let markdown = fs::read_to_string(data.at("table.md")).unwrap();
    assert!(markdown.contains("\n| wall | 100.0 | 66.67 | 0.00 | 1.667 | 2.160 |"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(data.at("all.json")).unwrap()).unwrap();
    assert_eq!(json["mean"]["dense"]["nonocc"]["bad1.0"], 66.6667);

    let names = fs::read_dir(data.at("new/errors")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["set_wall.png"]);
    let picture = image::open(data.at("new/errors/set_wall.png")).unwrap().to_rgb8();
    let left = image::open(data.at("set/wall/l.png")).unwrap().to_luma8();
    let at = |x, y| picture.get_pixel(x, y).0;
    assert_eq!(
        (picture.dimensions(), at(50, 5), at(50, 14), at(50, 20)),
        ((96, 48), YELLOW, ORANGE, DARK_GREEN)
    );
    // According to the mask, only one camera sees the lower part of the wall; at the left there is
    // no truth.
    assert_eq!(at(50, 40), DARK_GREEN.map(|channel| channel / 2));
    assert_eq!(at(2, 20), [left.get_pixel(2, 20)[0] / 2; 3]);
}

#[test]
fn a_picture_that_cannot_be_written_costs_no_figures() {
    let data = Data::new();
    data.described("set/a");
    data.described("set/b");
    fs::create_dir_all(data.at("errors/set_a.png")).unwrap();
    let (status, stdout, stderr) =
        data.evaluate(&["set", "--errors", "errors", "--json", "all.json"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(
        stderr.contains("1 of the pictures of errors") && stderr.contains("set_a.png"),
        "{stderr}"
    );
    assert!(stdout.contains("\n  a ") && stdout.contains("\n  b "), "{stdout}");
    assert!(data.at("all.json").exists() && data.at("errors/set_b.png").exists());
    // The report is no error image.
    let (status, _, stderr) =
        data.evaluate(&["set", "--errors", "errors", "--json", "errors/set_b.png"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("--json and --errors are the same file"), "{stderr}");
}

#[test]
fn an_implausible_description_is_refused() {
    let data = Data::new();
    data.described("wall");
    let item = fs::read_to_string(data.at("wall/item.json")).unwrap();
    for (good, bad, words) in [
        ("\"ndisp\":16", "\"ndisp\":0", "ndisp is 0"),
        ("\"gt_scale\":16", "\"gt_scale\":1e-300", "gt_scale is 1e-300"),
        ("\"gt_scale\":16", "\"gt_scale\":1e300", "gt_scale is 1e300"),
        ("\"gt_scale\":16", "\"gt_scale\":-1", "gt_scale is -1"),
    ] {
        assert!(item.contains(good), "{item}");
        fs::write(data.at("wall/item.json"), item.replace(good, bad)).unwrap();
        let (status, _, stderr) = data.evaluate(&["wall"]);
        assert_eq!(status, 1, "{bad}: {stderr}");
        assert!(stderr.contains(words) && stderr.len() < 500, "{bad}: {stderr}");
    }
    fs::write(data.at("wall/item.json"), &item).unwrap();
    let (status, _, stderr) = data.evaluate(&["wall", "--min-disparity", "20"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("--min-disparity 20"), "{stderr}");
}

#[test]
fn standard_output_has_one_kind_of_report() {
    let data = Data::new();
    data.described("wall");
    let (status, stdout, _) = data.evaluate(&["wall", "--markdown", "-"]);
    assert_eq!(status, 0);
    assert!(stdout.starts_with("Pixels that both cameras see:\n\n| pair |"), "{stdout}");
    let (status, stdout, stderr) = data.evaluate(&["wall", "--markdown", "-", "--json", "-"]);
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.contains("would mix on standard output"), "{stderr}");
}

#[test]
fn nothing_that_is_read_is_destroyed() {
    let data = Data::new();
    data.described("wall");
    let before = |name: &str| fs::read(data.at(name)).unwrap();
    for (flag, name) in [
        ("--json", "wall/item.json"),
        ("--markdown", "wall/nonocc.png"),
        ("--json", "wall/truth.png"),
    ] {
        let kept = before(name);
        let (status, stdout, stderr) = data.evaluate(&["wall", flag, name]);
        assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains("also an input"), "{stderr}");
        assert_eq!(before(name), kept);
    }
    // The folder for the error images already holds the left image, under the name of the first
    // one.
    fs::rename(data.at("wall/l.png"), data.at("wall/wall.png")).unwrap();
    let item = fs::read_to_string(data.at("wall/item.json")).unwrap();
    fs::write(data.at("wall/item.json"), item.replace("l.png", "wall.png")).unwrap();
    let kept = before("wall/wall.png");
    let (status, _, stderr) = data.evaluate(&["wall", "--errors", "wall"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("wall/wall.png") && stderr.contains("also an input"), "{stderr}");
    assert_eq!(before("wall/wall.png"), kept);

    let (status, _, stderr) = data.evaluate(&["wall", "--json", "a", "--markdown", "./a"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("--json and --markdown are the same file"), "{stderr}");
    let (status, _, stderr) = data.evaluate(&["wall", "--errors", "wall/item.json"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("it is not a folder"), "{stderr}");
    let (status, _, stderr) = data.evaluate(&["wall", "--json", "no/where.json"]);
    assert_eq!(status, 1);
    assert!(stderr.contains("mkdir -p"), "{stderr}");
}

#[test]
fn what_is_no_data_set_is_wrong_usage() {
    let data = Data::new();
    data.wall("pair/im0.png", "pair/im1.png", (96, 48));
    for (arguments, part) in [
        (&["missing"][..], "missing: No such file"),
        (&["pair/im0.png"], "pair/im0.png is no data set"),
        (&["pair"], "no pair with known disparity in pair (1 folders hold pictures, but no truth)"),
        (&["pair", "--noise=-1"], "from 0 to 255"),
        (&["pair", "--noise", "nan"], "from 0 to 255"),
        (&["pair", "--seed", "3"], "--noise <SIGMA>"),
        (&["pair", "--repeat", "0"], "0"),
        (&[], "<DATASET>"),
    ] {
        let (status, stdout, stderr) = data.evaluate(arguments);
        assert_eq!((status, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

#[test]
fn pairs_that_cannot_be_evaluated_are_named_and_the_others_are_evaluated() {
    let data = Data::new();
    let names = [
        "1-good",
        "2-cut",
        "3-sizes",
        "4-truth",
        "5-mask",
        "6-range",
        "7-json",
        "8-missing",
        "9-empty",
    ];
    names.iter().for_each(|name| data.described(&format!("set/{name}")));
    let edit = |name: &str, from: &str, to: &str| {
        let path = data.at(&format!("set/{name}/item.json"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    let picture = fs::read(data.at("set/2-cut/l.png")).unwrap();
    fs::write(data.at("set/2-cut/l.png"), &picture[..picture.len() / 2]).unwrap();
    data.grey("set/3-sizes/r.png", (90, 48), |x, _| x as u8);
    write_floats(&data.at("set/4-truth/truth.pfm"), (96, 40), |_, _| 5.0);
    edit("4-truth", "truth.png", "truth.pfm");
    edit("4-truth", "\"masks\"", "\"no masks\"");
    data.grey("set/5-mask/nonocc.png", (48, 48), |_, _| 255);
    edit("6-range", "\"ndisp\":16", "\"ndisp\":5000");
    fs::write(data.at("set/7-json/item.json"), "{").unwrap();
    fs::remove_file(data.at("set/8-missing/truth.png")).unwrap();
    data.grey("set/9-empty/truth.png", (96, 48), |_, _| 0);

    let (status, stdout, stderr) = data.evaluate(&["set", "--json", "-", "--errors", "errors"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(
        stderr.starts_with("error: 8 of 9 pairs could not be evaluated:\n  - 2-cut: "),
        "{stderr}"
    );
    assert!(stderr.ends_with("\n  - and 3 more (--json has all of them)\n"), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let items = report["datasets"][0]["items"].as_array().unwrap();
    let errors: Vec<&str> = items[1..].iter().map(|item| item["error"].as_str().unwrap()).collect();
    for (error, part) in errors.iter().zip([
        "l.png: the picture is damaged",
        "the pictures differ in size",
        "the truth is 96x40, but the left picture 96x48",
        "nonocc.png is 48x48",
        "1024",
        "item.json describes no pair",
        "truth.png",
        "no pixel of it has a truth that counts",
    ]) {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(report["mean"]["dense"]["all"]["items"], 1);
    let pictures = fs::read_dir(data.at("errors")).unwrap();
    let pictures: Vec<_> = pictures.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(pictures, ["set_1-good.png"]);

    let (status, stdout, stderr) = data.evaluate(&["set/7-json"]);
    assert_eq!(status, 1);
    assert!(stdout.contains("0 of 1 pairs.\n"), "{stdout}");
    assert!(stderr.contains("1 of 1 pairs could not be evaluated"), "{stderr}");
}
