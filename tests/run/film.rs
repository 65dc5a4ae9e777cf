//! Numbers of a shot's frames: read in the patterns of film tools, and kept in all outputs.

use super::ranges::walls;
use super::run;

/// Returns the value of an attribute of an EXR file.
fn attribute<'a>(file: &'a [u8], name: &str, kind: &str) -> &'a [u8] {
    let key = format!("{name}\0{kind}\0");
    let at = file.windows(key.len()).position(|bytes| bytes == key.as_bytes());
    let rest = &file[at.unwrap_or_else(|| panic!("no {name}")) + key.len()..];
    let (size, value) = rest.split_at(4);
    &value[..u32::from_le_bytes(size.try_into().unwrap()) as usize]
}

#[test]
fn numbers_of_frames_survive() {
    let folder = tempfile::tempdir().unwrap();
    walls(folder.path(), 4);
    let at = |name: &str| folder.path().join(name);
    for number in 0..4 {
        for view in ["left", "right"] {
            let (from, to) =
                (format!("{view}{number:02}.png"), format!("{view}.{}.png", 1001 + number));
            std::fs::rename(at(&from), at(&to)).unwrap();
        }
    }
    let shot = ["run", "--left", "left.$F4.png", "--right", "right.####.png", "--frames", "1..3"];
    let outputs = ["--record", "d.mkv", "--preview", "p.mp4", "--pictures", "out/map.####.exr"];
    let clouds = ["--clouds", "clouds"];
    let more = ["--pictures-format", "exr", "--focal", "400", "--baseline", "0.1", "-d", "64"];
    let rate = ["--set", "source.picture_rate=24", "--headless"];
    let (status, _, stderr) =
        run(folder.path(), &[&shot[..], &outputs, &clouds, &more, &rate].concat());
    assert_eq!(status, 0, "{stderr}");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(at(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.contains("100")).collect();
        names.sort();
        names
    };
    assert_eq!(names("out"), ["map.1002.exr", "map.1003.exr"]);
    assert_eq!(names("clouds"), ["001002.ply", "001003.ply"]);
    let map = std::fs::read(at("out/map.1003.exr")).unwrap();
    assert_eq!(attribute(&map, "imageCounter", "int"), 1003_i32.to_le_bytes());
    assert_eq!(attribute(&map, "framesPerSecond", "rational")[..4], 24_i32.to_le_bytes());
    assert_eq!(attribute(&map, "focalLengthPx", "float"), 400_f32.to_le_bytes());
    assert_eq!(attribute(&map, "source", "string"), b"left.$F4.png + right.####.png");
    let again = ["--pictures", "again/map.%06d.png", "--headless"];
    let (status, _, stderr) = run(folder.path(), &[&shot[..], &again].concat());
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(names("again"), ["map.001002.png", "map.001003.png"]);
    let (status, _, stderr) = run(
        folder.path(),
        &[&shot[..], &["--pictures", "out/map.####.exr", "--headless"]].concat(),
    );
    let cure = "pictures are written as png, so their names end with .png";
    assert!(status == 2 && stderr.contains(cure), "{stderr}");
    let both = ["--pictures", "out/a.####.png", "--clouds", "out/b.####.ply", "--headless"];
    let cameras = ["--focal", "400", "--baseline", "0.1"];
    let (status, _, stderr) = run(folder.path(), &[&shot[..], &both, &cameras].concat());
    assert!(status == 2 && stderr.contains("are the same folder, "), "{stderr}");
    for video in ["d.mkv", "p.mp4"] {
        let content = std::fs::read(at(video)).unwrap();
        let tag = b"FIRST_FRAME=1002";
        assert!(content.windows(tag.len()).any(|bytes| bytes == tag), "{video}");
    }
}

#[test]
fn squeezed_views_have_the_disparities_of_the_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    walls(folder.path(), 1);
    let views = ["left00.png", "right00.png"]
        .map(|name| image::open(folder.path().join(name)).unwrap().to_luma8());
    let (width, height) = views[0].dimensions();
    let both = image::GrayImage::from_fn(width, height, |x, y| {
        let (view, x) = (&views[(2 * x / width) as usize], x % (width / 2));
        let [a, b] = [2 * x, 2 * x + 1].map(|x| u16::from(view.get_pixel(x, y)[0]));
        image::Luma([((a + b) / 2) as u8])
    });
    both.save(folder.path().join("half.png")).unwrap();
    let half = ["match", "--side-by-side", "half.png", "--half", "-d", "64", "-o", "map.png"];
    let (status, _, stderr) = run(folder.path(), &half);
    assert_eq!(status, 0, "{stderr}");
    let map = image::open(folder.path().join("map.png")).unwrap().to_luma16();
    assert_eq!(map.dimensions(), (width, height));
    for (x, expected) in [(60, 10.0), (180, 52.0)] {
        let found = f64::from(map.get_pixel(x, 48)[0]) / 256.0;
        assert!((found - expected).abs() < 0.6, "{x}: {found}");
    }
    for (name, x) in [("l.png", 0), ("r.png", width / 2)] {
        let view = image::imageops::crop_imm(&both, x, 0, width / 2, height).to_image();
        view.save(folder.path().join(name)).unwrap();
    }
    let two = ["match", "l.png", "r.png", "--half", "-d", "64", "-o", "two.png"];
    let (status, _, stderr) = run(folder.path(), &two);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(image::open(folder.path().join("two.png")).unwrap().to_luma16(), map);
}
