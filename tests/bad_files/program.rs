//! Damaged files fed to the program.

use std::fs;
use std::path::Path;

use super::mutate;
use crate::{VIDEOS, scene, stereod, write_video};

/// Earlier content of the output.
const BEFORE: &[u8] = b"an earlier result";

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_program_survives_damaged_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for extension in ["png", "jpg", "pgm"] {
        let (left, right) = (format!("l.{extension}"), format!("r.{extension}"));
        scene(48, 32, 0).save(at(&left)).unwrap();
        scene(48, 32, 5).save(at(&right)).unwrap();
        let good = fs::read(at(&left)).unwrap();
        for seed in 0..4 {
            let damaged = mutate::bytes(&good, 1000 + seed);
            fs::write(at(&left), &damaged).unwrap();
            fs::write(at("out.png"), BEFORE).unwrap();
            let before = files(folder.path());
            let ended =
                stereod(folder.path(), &["match", &left, &right, "-o", "out.png", "-d", "16"]);
            if ended.status != 0 {
                assert_eq!(fs::read(at("out.png")).unwrap(), BEFORE, "{}", ended.stderr);
            }
            assert_eq!(files(folder.path()), before);
            assert_eq!(fs::read(at(&left)).unwrap(), damaged);
        }
        fs::remove_file(at(&left)).unwrap();
    }
}

#[test]
fn the_program_survives_damaged_videos() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (extension, coding) in VIDEOS {
        let (left, right) = (format!("l.{extension}"), format!("r.{extension}"));
        write_video(&at(&right), 3, coding);
        let good = fs::read(at(&right)).unwrap();
        for seed in 0..3 {
            let damaged = mutate::bytes(&good, 2000 + seed);
            fs::write(at(&left), &damaged).unwrap();
            let ended = stereod(
                folder.path(),
                &[
                    "run",
                    "--left",
                    &left,
                    "--right",
                    &right,
                    "-d",
                    "16",
                    "--headless",
                    "--frames",
                    "20",
                ],
            );
            assert_eq!(fs::read(at(&left)).unwrap(), damaged, "{}", ended.stdout);
        }
        assert_eq!(fs::read(at(&right)).unwrap(), good);
    }
}

#[test]
fn the_program_survives_damaged_calibrations_and_configurations() {
    let folder = tempfile::tempdir().unwrap();
    let calibrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrations");
    for (seed, name) in ["opencv.yml", "opencv.json", "opencv.xml"].into_iter().enumerate() {
        let good = fs::read_to_string(calibrations.join(name)).unwrap();
        let damaged = mutate::text(&good, 3000 + seed as u64);
        fs::write(folder.path().join(name), damaged).unwrap();
        stereod(folder.path(), &["calibration", "show", name]);
        stereod(
            folder.path(),
            &[
                "run",
                "--demo",
                "--demo-size",
                "64x48",
                "-d",
                "16",
                "--headless",
                "--frames",
                "2",
                "--calibration",
                name,
            ],
        );
    }
    for seed in 0..4 {
        let damaged = mutate::text(include_str!("../../config/default.toml"), 4000 + seed);
        fs::write(folder.path().join("c.toml"), damaged).unwrap();
        stereod(folder.path(), &["config", "print", "--config", "c.toml"]);
    }
}
