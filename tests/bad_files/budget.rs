//! Input and settings that need more memory than there is are refused with numbers, before the
//! memory is allocated.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::{Ended, common, scene, stereod, within_patience};

/// Checks that the message has all these words. The limit of `stereod` bounds the memory used
/// meanwhile.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) -> Ended {
    let ended = stereod(folder, arguments);
    assert_ne!(ended.status, 0, "{arguments:?}: {}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in: {}", ended.stderr);
    }
    ended
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// A PNG whose header declares 16384x16384 pixels of four 16-bit channels: 2 GiB in 57 bytes.
fn promise() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let parts: [(&[u8; 4], &[u8]); 3] = [
        (b"IHDR", &[0, 0, 0x40, 0, 0, 0, 0x40, 0, 16, 6, 0, 0, 0]),
        (b"IDAT", &[]),
        (b"IEND", &[]),
    ];
    for (kind, data) in parts {
        let body = [kind, data].concat();
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(&body);
        file.extend(crc(&body).to_be_bytes());
    }
    file
}

#[test]
fn a_header_that_promises_too_much_is_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["l000.png", "l001.png", "r000.png", "r001.png"] {
        fs::write(folder.path().join(name), promise()).unwrap();
    }
    let words = ["l000.png", "16384x16384 pixels cannot be in a file of 57 bytes"];
    let arguments = ["match", "l000.png", "r000.png", "-o", "x.png", "-d", "16"];
    refused(folder.path(), &arguments, &words);
    let arguments =
        ["run", "--left", "l%03d.png", "--right", "r%03d.png", "--headless", "-d", "16"];
    refused(folder.path(), &arguments, &words[1..]);
    fs::write(folder.path().join("c.toml"), "").unwrap();
    assert!(!folder.path().join("x.png").exists());
}

#[test]
fn what_is_larger_than_the_budget_is_refused_with_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let bench =
        ["bench", "--size", "16384x16384", "-d", "1024", "--engine", "cpu", "--memory", "4000"];
    let words =
        ["matching 16384x16384 at 1024 disparities needs", "budget is 3.9 GiB", "memory_mib"];
    refused(folder.path(), &bench, &words);
    // Without a number, the budget follows from the free memory: here, from the limit of the test.
    refused(folder.path(), &bench[..7], &["disparities needs", "half of the"]);

    let mut row = b"P5\n1000000 1\n255\n".to_vec();
    row.resize(row.len() + 1_000_000, 7);
    fs::write(folder.path().join("row.pgm"), &row).unwrap();
    fs::copy(folder.path().join("row.pgm"), folder.path().join("other.pgm")).unwrap();
    let arguments = ["match", "row.pgm", "other.pgm", "-o", "x.png", "-d", "16", "--memory", "100"];
    refused(folder.path(), &arguments, &["matching 1000000x1 at 16", "the budget is 100 MiB"]);
    let arguments = ["match", "row.pgm", "other.pgm", "-o", "x.png", "-d", "16", "--memory", "1"];
    refused(folder.path(), &arguments, &["row.pgm", "decoding 1000000x1 pixels needs"]);

    let wide = "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=4096,height=4096";
    let arguments = ["run", "--left", wide, "--right", wide, "--headless", "--memory", "100"];
    refused(folder.path(), &arguments, &["decoding pictures of 4096x4096 needs 512 MiB"]);
    let queues = [
        "run",
        "--demo",
        "--frames",
        "2",
        "--headless",
        "--memory",
        "300",
        "--set",
        "queue.pairs=1024",
    ];
    refused(folder.path(), &queues, &["keeping 1024 pairs", "fewer [queue] pairs"]);
}

#[test]
fn what_fits_the_budget_is_done() {
    let folder = tempfile::tempdir().unwrap();
    scene(64, 48, 0).save(folder.path().join("l.png")).unwrap();
    scene(64, 48, 4).save(folder.path().join("r.png")).unwrap();
    let arguments = ["match", "l.png", "r.png", "-o", "x.png", "-d", "16", "--memory", "50"];
    let ended = stereod(folder.path(), &arguments);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(folder.path().join("x.png").exists());
    let wrong = stereod(folder.path(), &["config", "print", "--set", "engine.memory_mib=0"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("`auto` or MiB from 1"), "{}", wrong.stderr);
}

#[test]
fn where_the_whole_picture_does_not_fit_the_budget_it_is_matched_in_bands() {
    let folder = tempfile::tempdir().unwrap();
    scene(400, 1200, 0).save(folder.path().join("l.png")).unwrap();
    scene(400, 1200, 4).save(folder.path().join("r.png")).unwrap();
    let pair =
        ["match", "l.png", "r.png", "-o", "x.png", "-d", "64", "--engine", "cpu", "--threads", "2"];
    let with = |more: &[&'static str]| [&pair[..], more].concat();
    let does = |more: &[&'static str], words: &[&str]| {
        let ended = stereod(folder.path(), &with(more));
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        for word in words {
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
    };
    let few = ["--memory", "20"];
    let bands = "x1 tiles of 400x";
    does(&few, &[bands, "the whole picture needs more memory than there is", "overlap 128"]);
    let off = [&few[..], &["--tiles", "off"]].concat();
    refused(folder.path(), &with(&off), &["auto needs less", "matching 400x1200", "20 MiB"]);
    let large = [&few[..], &["--tiles", "1x1,0"]].concat();
    refused(folder.path(), &with(&large), &["--tiles 1x1,0 are too large", "20 MiB"]);
    let none = "matching 400x1200 at 64 disparities needs";
    refused(folder.path(), &with(&["--memory", "5"]), &[none, "the budget is 5.0 MiB"]);
    // More tiles than rows, and the largest number of tiles.
    let thin = ["--tiles", "1x401,0"];
    refused(folder.path(), &with(&thin), &["401 columns of tiles", "fewer --tiles"]);
    does(&["--tiles", "2x2,32", "--verify"], &["2x2 tiles of", "identical with the reference"]);
    // The queues before and behind the engine of a run are counted as well.
    let run = "run --demo --demo-size 800x600 --frames 2 --headless -d 256 --engine cpu --threads 2 --memory 110";
    let ended = stereod(folder.path(), &run.split(' ').collect::<Vec<_>>());
    assert!(ended.status == 0 && ended.stderr.contains("x1 tiles of 800x"), "{}", ended.stderr);
}

#[test]
fn a_rectification_of_absurd_size_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrations/opencv.yml");
    let good = good.to_str().unwrap();
    let converted = stereod(folder.path(), &["calibration", "convert", good, "-o", "rig.toml"]);
    assert_eq!(converted.status, 0, "{}", converted.stderr);
    let rig = fs::read_to_string(folder.path().join("rig.toml")).unwrap();
    let section = rig.find("[rectification]").expect("a rectification");
    let size = section + rig[section..].find("size = [").expect("its size");
    let end = size + rig[size..].find('\n').unwrap();
    let large = format!("{}size = [32768, 32768]{}", &rig[..size], &rig[end..]);
    fs::write(folder.path().join("rig.toml"), large).unwrap();
    let run = [
        "run",
        "--demo",
        "--demo-size",
        "640x480",
        "--headless",
        "--frames",
        "2",
        "--calibration",
        "rig.toml",
    ];
    let ended = refused(folder.path(), &run, &["rig.toml", "32768x32768"]);
    assert_eq!(ended.status, 2);
}

#[test]
fn calibrations_and_configurations_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let show = |name: &str, words: &[&str]| {
        let ended = refused(folder.path(), &["calibration", "show", name], words);
        assert_eq!(ended.status, 2, "{}", ended.stderr);
    };
    let anchors: String = (0..60).map(|n| format!("&a{n} [")).collect();
    let nested = |items: usize| format!("a: {anchors}{}{}", "1,".repeat(items), "]".repeat(60));
    write("nested.yml", &nested(1_000_000));
    show("nested.yml", &["nested.yml", "far too many values"]);
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), "*a,".repeat(100_000));
    write("long.yml", &long);
    show("long.yml", &["long.yml:2", "far too many values"]);
    write("large.yml", &nested(4_000_000));
    show("large.yml", &["large.yml", "too large for a calibration"]);
    let attributes: String = (0..200_000).map(|n| format!(" a{n}='1'")).collect();
    write("attributes.xml", &format!("<opencv_storage{attributes}/>"));
    show("attributes.xml", &["attributes.xml", "too many attributes"]);
    let keys = |count: usize| (0..count).map(|n| format!("key{n} = 1\n")).collect::<String>();
    write("many.toml", &keys(300_000));
    let config = |words: &[&str]| {
        let arguments = ["config", "print", "--config", "many.toml"];
        let ended = refused(folder.path(), &arguments, words);
        assert_eq!(ended.status, 2);
        ended
    };
    config(&["many.toml", "too large for a configuration"]);
    // As many errors as the limit allows, at the top and in a section; the message lists only some
    // of them.
    for head in ["", "[matching]\n"] {
        write("many.toml", &format!("{head}{}", keys(60_000)));
        let ended = config(&["many.toml", "unknown key `key1`"]);
        assert!(ended.stderr.lines().count() < 70, "{}", ended.stderr.lines().count());
    }
    write("own.toml", &format!("version = 1\n[left]\n{}", keys(200_000)));
    show("own.toml", &["own.toml"]);
}

#[cfg(feature = "bags")]
#[test]
fn a_signal_ends_the_opening_of_an_endless_recording() {
    let folder = tempfile::tempdir().unwrap();
    let record = |opcode: u8, data: &[u8]| {
        [&[opcode][..], &(data.len() as u64).to_le_bytes(), data].concat()
    };
    // Records of private use without content, 18 GB of them in 200 chunks.
    let records = record(0x80, &[]).repeat(10_000_000);
    let compressed = zstd::encode_all(&records[..], 1).unwrap();
    let numbers = [0, 1, records.len() as u64].map(u64::to_le_bytes).concat();
    let name = [&[0; 4][..], &4_u32.to_le_bytes(), b"zstd"].concat();
    let length = (compressed.len() as u64).to_le_bytes();
    let chunk = record(6, &[&numbers[..], &name, &length, &compressed].concat());
    let file = [mcap::MAGIC, &record(1, &[0; 8]), &chunk.repeat(200)].concat();
    fs::write(folder.path().join("a.mcap"), file).unwrap();
    let rig = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrations/opencv.yml");
    let rig = rig.to_str().unwrap();
    let arguments = ["run", "a.mcap", "--calibration", rig, "--headless", "-d", "16"];
    let mut command = common::program::stereod(&arguments);
    command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none(), "it was opened");
    // SAFETY: the process is our child and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    let status = within_patience("opening".to_owned(), move || child.wait().unwrap());
    // Before the handlers are there, the signal itself ends it.
    let ends = (status.code(), std::os::unix::process::ExitStatusExt::signal(&status));
    assert!(matches!(ends, (Some(143), None) | (None, Some(libc::SIGTERM))), "{status}");
}
