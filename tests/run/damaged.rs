//! Damaged images and videos: all damage is reported.

use stereod_core::frame::Image;

use super::*;

/// Flips `count` pseudo-random bits in the middle of a file.
fn flip_bits(from: &Path, to: &Path, count: usize) {
    let mut bytes = std::fs::read(from).unwrap();
    let (first, span) = (bytes.len() / 5, bytes.len() * 3 / 5);
    let mut seed = 7u64;
    for _ in 0..count {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes[first + (seed >> 33) as usize % span] ^= 1 << (seed >> 29 & 7);
    }
    std::fs::write(to, bytes).unwrap();
}

fn save(image: &Image, path: &Path) {
    let (width, height) = (image.width() as u32, image.height() as u32);
    let picture = image::GrayImage::from_raw(width, height, image.pixels().to_vec()).unwrap();
    picture.save(path).unwrap();
}

/// Truncates the file to `part` tenths and appends `end`.
fn cut(path: &Path, part: usize, end: &[u8]) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, [&bytes[..bytes.len() * part / 10], end].concat()).unwrap();
}

#[test]
fn match_refuses_a_damaged_picture_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pair = demo_pair(0);
    for kind in ["jpg", "png", "pgm"] {
        let (left, right) = (format!("l.{kind}"), format!("r.{kind}"));
        save(&pair.right, &at(&right));
        let arguments = ["match", &left, &right, "-d", "24", "-o", "o.png"];
        save(&pair.left, &at(&left));
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 0, "{stderr}");
        std::fs::remove_file(at("o.png")).unwrap();
        for (part, end) in [(3, &b""[..]), (6, b"\xff\xd9"), (9, b""), (7, &[0x5a; 5000])] {
            if kind == "pgm" && end.len() > 1000 {
                // A PGM image has no redundancy to check.
                continue;
            }
            save(&pair.left, &at(&left));
            cut(&at(&left), part, end);
            let (status, _, stderr) = run(folder.path(), &arguments);
            assert_eq!(status, 1, "{kind} {part}: {stderr}");
            assert!(stderr.contains(&left) && stderr.contains("damaged"), "{kind}: {stderr}");
            assert!(!at("o.png").exists(), "{kind} {part}");
        }
    }
}

#[test]
fn damaged_numbered_pictures_are_left_out_told_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    // An image without any data, about 65 bytes long.
    let hollow = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x60\0\0\0\x40\x08\0\0\0\0\xc0\x5f\x2d\xd2\
                   \0\0\0\0IDAT\x35\xaf\x06\x1e\0\0\0\0IEND\xae\x42\x60\x82";
    for kind in ["jpg", "png"] {
        for number in 0..5u64 {
            let pair = demo_pair(number);
            save(&pair.left, &at(format!("l{number}.{kind}")));
            save(&pair.right, &at(format!("r{number}.{kind}")));
        }
        match kind {
            "jpg" => cut(&at("l2.jpg".to_owned()), 8, b"\xff\xd9"),
            _ => std::fs::write(at("l2.png".to_owned()), hollow).unwrap(),
        }
        cut(&at(format!("l4.{kind}")), 5, b"");
        let (left, right) = (format!("l%d.{kind}"), format!("r%d.{kind}"));
        let arguments = with_statistics(&["--left", &left, "--right", &right, "--headless"]);
        let (status, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{stderr}");
        assert!(stderr.contains(&format!("l2.{kind}")), "{stderr}");
        assert!(stderr.contains("2 of 5 pictures left out"), "{stderr}");
        let statistics: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(statistics["matched"], 3, "{stdout}");
        assert_eq!(statistics["unpaired"]["right"], 2, "{stdout}");
        assert_eq!(statistics["damaged"]["left"]["left_out"], 2, "{stdout}");
        assert_eq!(statistics["damaged"]["right"]["left_out"], 0, "{stdout}");
    }
}

#[test]
fn flipped_bits_of_a_video_are_told_for_its_eye() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = |eye: fn(StereoPair) -> Vec<u8>| -> Vec<Vec<u8>> {
        (0..40).map(|n| eye(demo_pair(n))).collect()
    };
    let lefts = pictures(|pair| pair.left.pixels().to_vec());
    let rights = pictures(|pair| pair.right.pixels().to_vec());
    // Most flipped bits of a JPEG image give another valid one.
    for (name, coding, least) in [
        ("ffv1.mkv", "avenc_ffv1 slices=4 slicecrc=1 ! matroskamux", 5),
        ("h264.mkv", "videoconvert ! x264enc key-int-max=10 ! matroskamux", 5),
        ("mjpeg.mkv", "jpegenc ! matroskamux", 1),
    ] {
        let [left, right, damaged] = ["l", "r", "damaged"].map(|eye| format!("{eye}_{name}"));
        write_grey(&folder.path().join(&left), SIZE, &lefts, coding);
        write_grey(&folder.path().join(&right), SIZE, &rights, coding);
        flip_bits(&folder.path().join(&right), &folder.path().join(&damaged), 25);
        let whole = statistics(folder.path(), &["--left", &left, "--right", &right, "--headless"]);
        assert_eq!(whole.get("damaged"), None, "{name}: {whole}");
        let arguments = with_statistics(&["--left", &left, "--right", &damaged, "--headless"]);
        let (_, stdout, stderr) = run(folder.path(), &arguments);
        let seen: Value = serde_json::from_str(&stdout).unwrap();
        let [ours, other] = ["right", "left"].map(|eye| {
            let damage = &seen["damaged"][eye];
            damage["concealed"].as_u64().unwrap() + damage["left_out"].as_u64().unwrap()
        });
        assert!((least..=40).contains(&ours), "{name}: {stdout}");
        assert_eq!(other, 0, "{name}: {stdout}");
        assert!(stderr.contains(&format!("{damaged}: ")), "{name}: {stderr}");
    }
}

#[test]
fn a_recording_that_was_cut_off_is_an_error_in_every_container() {
    let folder = tempfile::tempdir().unwrap();
    let pictures: Vec<_> = (0..40).map(|n| demo_pair(n).left.pixels().to_vec()).collect();
    for (name, coding) in [
        ("v.avi", "jpegenc ! avimux"),
        ("v.mkv", "jpegenc ! matroskamux"),
        ("v.mp4", "videoconvert ! x264enc ! mp4mux faststart=true"),
    ] {
        let path = folder.path().join(name);
        write_grey(&path, SIZE, &pictures, coding);
        std::fs::copy(&path, folder.path().join(format!("whole_{name}"))).unwrap();
        cut(&path, 5, b"");
        let whole = format!("whole_{name}");
        let arguments = with_statistics(&["--left", name, "--right", &whole, "--headless"]);
        let (status, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{name}: {stdout}{stderr}");
        assert!(stderr.contains(&format!("{name}: ")) && stderr.contains("truncated"), "{stderr}");
    }
}

/// Returns the place of the last occurrence of `what`.
fn find_last(content: &[u8], what: &[u8]) -> usize {
    content.windows(what.len()).rposition(|window| window == what).unwrap()
}

#[test]
fn a_file_that_lacks_nothing_but_its_index_is_played_whole() {
    let folder = tempfile::tempdir().unwrap();
    let pictures: Vec<_> = (0..40).map(|n| demo_pair(n).left.pixels().to_vec()).collect();
    for (name, coding, index) in [
        ("v.avi", "jpegenc ! avimux", &b"idx1"[..]),
        ("v.mkv", "jpegenc ! matroskamux", b"\x1c\x53\xbb\x6b"),
    ] {
        let path = folder.path().join(name);
        write_grey(&path, SIZE, &pictures, coding);
        let content = std::fs::read(&path).unwrap();
        let index = find_last(&content, index);
        let whole = format!("whole_{name}");
        std::fs::rename(&path, folder.path().join(&whole)).unwrap();
        let arguments = with_statistics(&["--left", name, "--right", &whole, "--headless"]);
        for cut in [index + 12, index] {
            std::fs::write(&path, &content[..cut]).unwrap();
            let (status, stdout, stderr) = run(folder.path(), &arguments);
            assert_eq!(status, 0, "{name}: {stdout}{stderr}");
            let said = format!("{name}: the file is truncated, {cut} of ");
            assert!(stderr.contains(&said) && stderr.contains("all 40 were read"), "{stderr}");
            let statistics: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(statistics["matched"], 40, "{stdout}");
        }
        // A part of the last frame is missing.
        std::fs::write(&path, &content[..index - 300]).unwrap();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{name}: {stderr}");
        assert!(stderr.contains("the file is truncated: "), "{stderr}");
    }
}
