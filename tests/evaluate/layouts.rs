//! Published layouts of data sets, each with a small wall whose truth is stored in that format.

use std::fs;

use image::{DynamicImage, ImageBuffer, Luma};

use super::{Data, HIDDEN, SHIFT, write_floats};

const SIZE: (u32, u32) = (96, 48);

const CALIBRATION: &str = "\
cam0=[80 0 47; 0 80 23; 0 0 1]
cam1=[80 0 47; 0 80 23; 0 0 1]
doffs=0
baseline=100
width=96
height=48
ndisp=20
";

fn deep(data: &Data, name: &str, value: impl Fn(u32) -> u16) {
    let picture = ImageBuffer::from_fn(SIZE.0, SIZE.1, |x, _| Luma([value(x)]));
    DynamicImage::ImageLuma16(picture).save(data.file(name)).unwrap();
}

fn middlebury(data: &Data, folder: &str, names: [&str; 3], height: u32, scale: u8) {
    let [left, right, truth] = names.map(|name| format!("{folder}/{name}"));
    data.wall(&left, &right, (SIZE.0, height));
    let value = scale * SHIFT as u8;
    data.grey(&truth, (SIZE.0, height), |x, _| if x < HIDDEN { 0 } else { value });
}

fn kitti(data: &Data, [left, right, non_occluded, all]: [&str; 4]) {
    let at = |folder: &str| format!("kitti/{folder}/000007_10.png");
    data.wall(&at(left), &at(right), SIZE);
    let value = 256 * SHIFT as u16;
    deep(data, &at(non_occluded), |x| if x < 2 * HIDDEN { 0 } else { value });
    deep(data, &at(all), |x| if x < HIDDEN { 0 } else { value });
}

fn two_view(data: &Data, folder: &str, truth: &str, has_more: bool) {
    let at = |name: &str| format!("{folder}/{name}");
    data.wall(&at("im0.png"), &at("im1.png"), SIZE);
    write_floats(&data.file(&at(truth)), SIZE, |x, _| {
        if x < HIDDEN { f32::INFINITY } else { SHIFT as f32 }
    });
    if has_more {
        data.grey(&at("mask0nocc.png"), SIZE, |x, _| if x < 2 * HIDDEN { 128 } else { 255 });
        fs::write(data.file(&at("calib.txt")), CALIBRATION).unwrap();
    }
}

#[test]
fn every_layout_is_found_and_understood() {
    let data = Data::new();
    middlebury(&data, "2001", ["im2.pgm", "im6.pgm", "disp2.pgm"], 380, 8);
    middlebury(&data, "2003", ["im2.png", "im6.png", "disp2.png"], 375, 4);
    middlebury(&data, "2006", ["view1.png", "view5.png", "disp1.png"], 370, 3);
    two_view(&data, "eth3d", "disp0GT.pfm", true);
    two_view(&data, "middlebury2014", "disp0.pfm", false);
    kitti(&data, ["image_2", "image_3", "disp_noc_0", "disp_occ_0"]);
    data.wall("without/im0.png", "without/im1.png", SIZE);

    // Exact to the last digit beside the hidden part, too.
    let report = data.report(&[".", "--spatial", "off"]);
    let items = report["datasets"][0]["items"].as_array().unwrap();
    let pixels = |height: u32, hidden: u32| Some(u64::from((SIZE.0 - hidden) * height));
    let both = |hidden| pixels(SIZE.1, hidden);
    let found: Vec<_> = items
        .iter()
        .map(|item| {
            let dense = &item["dense"];
            for area in ["nonocc", "all"] {
                if !dense[area].is_null() {
                    assert_eq!(dense[area]["avgerr"], 0.0, "{item:#}");
                }
            }
            let count = |area: &str| dense[area]["n"].as_u64();
            (
                item["item"].as_str().unwrap(),
                item["disparities"].as_u64(),
                count("nonocc"),
                count("all"),
            )
        })
        .collect();
    assert_eq!(
        found[..5],
        [
            ("2001", Some(32), None, pixels(380, HIDDEN)),
            ("2003", Some(64), None, pixels(375, HIDDEN)),
            ("2006", Some(86), None, pixels(370, HIDDEN)),
            ("eth3d", Some(20), both(2 * HIDDEN), both(HIDDEN)),
            ("kitti/000007_10", Some(128), both(2 * HIDDEN), both(HIDDEN)),
        ]
    );
    // The publisher's calib.txt is missing, so the images are used.
    let (name, disparities, non_occluded, all) = found[5];
    assert_eq!((name, non_occluded, all), ("middlebury2014", None, both(HIDDEN)));
    assert!(disparities.is_some_and(|count| count.is_multiple_of(16)), "{disparities:?}");
    assert_eq!(found.len(), 6);
}

#[test]
fn kitti_2012_in_grey_and_in_colour() {
    for eyes in [["image_0", "image_1"], ["colored_0", "colored_1"]] {
        let data = Data::new();
        kitti(&data, [eyes[0], eyes[1], "disp_noc", "disp_occ"]);
        let report = data.report(&["kitti"]);
        let item = &report["datasets"][0]["items"][0];
        assert_eq!(item["item"], "000007_10");
        assert_eq!(
            (&item["dense"]["nonocc"]["rms"], &item["dense"]["all"]["rms"]),
            (&0.0.into(), &0.0.into())
        );
    }
}

#[test]
fn pictures_in_colour_are_matched_as_match_does() {
    let data = Data::new();
    data.described("wall");
    // The red channel alone gives the same result, at a fifth of the contrast (Rec. 709).
    for eye in ["l.png", "r.png"] {
        let path = data.at(&format!("wall/{eye}"));
        let grey = image::open(&path).unwrap().to_luma8();
        let colour =
            ImageBuffer::from_fn(96, 48, |x, y| image::Rgb([grey.get_pixel(x, y)[0], 90, 17]));
        colour.save(&path).unwrap();
    }
    let item = data.report(&["wall", "--uniqueness", "0"])["datasets"][0]["items"][0].clone();
    let out = data.at("map.pfm");
    let mut command = crate::common::program::stereod(&[
        "match",
        "wall/l.png",
        "wall/r.png",
        "-d",
        "16",
        "--set",
        "matching.subpixel=false",
        "--uniqueness",
        "0",
        "-o",
        "map.pfm",
    ]);
    let (status, _, stderr) = crate::common::outcome::outcome(command.current_dir(data.0.path()));
    assert_eq!(status, 0, "{stderr}");
    let map = fs::read(out).unwrap();
    let floats = map["Pf\n96 48\n-1.0\n".len()..]
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes));
    let known = floats.filter(|value| value.is_finite()).count();
    let density = 100.0 * known as f64 / (96.0 * 48.0);
    assert!((item["image_density"].as_f64().unwrap() - density).abs() < 1e-4, "{density}: {item}");
}

/// An array as numpy.save writes it.
fn write_array(data: &Data, name: &str, value: impl Fn(u32) -> f32) {
    let (width, height) = SIZE;
    let shape = format!("'shape': ({height}, {width}), }}");
    let header = format!("{{'descr': '<f4', 'fortran_order': False, {shape}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    for _ in 0..height {
        file.extend((0..width).flat_map(|x| value(x).to_le_bytes()));
    }
    fs::write(data.file(name), file).unwrap();
}

#[test]
fn a_folder_gives_the_figures_of_its_description() {
    let data = Data::new();
    let known = |x: u32, value: f32| if x < HIDDEN { 0.0 } else { value };
    let sets = [
        ("driving", ["left-image-half-size/a_1.jpg", "right-image-half-size/a_1.jpg"]),
        ("drives", ["train-left-image/d/a_1.jpg", "train-right-image/d/a_1.jpg"]),
        ("booster", ["camera_00/im0.png", "camera_02/im0.png"]),
        ("tartan", ["image_left/000000_left.png", "image_right/000000_right.png"]),
        ("middlebury2021", ["im0.png", "im1.png"]),
    ];
    // The truth is too large, so that there are errors to count.
    let truth = SHIFT as f32 + 1.25;
    let stored = |x: u32| known(x, 256.0 * truth) as u16;
    deep(&data, "driving/disparity-map-half-size/a_1.png", stored);
    deep(&data, "drives/train-disparity-map/d/a_1.png", stored);
    write_array(&data, "booster/disp_00.npy", |x| known(x, truth));
    // Nothing is in the distance of 0, and the sky is far.
    write_array(&data, "tartan/depth_left/000000_left_depth.npy", |x| known(x, 80.0 / truth));
    write_floats(&data.file("middlebury2021/disp0.pfm"), SIZE, |x, _| {
        if x < HIDDEN { f32::INFINITY } else { truth }
    });
    deep(&data, "list/truth.png", stored);
    for (set, views) in sets {
        let [left, right] = views.map(|view| format!("{set}/{view}"));
        data.wall(&left, &right, SIZE);
        let item = serde_json::json!({
            "left": format!("../{left}"), "right": format!("../{right}"), "gt": "truth.png"
        });
        fs::write(data.file("list/item.json"), item.to_string()).unwrap();
        let figures = |dataset: &str| {
            let mut item = data.report(&[dataset])["datasets"][0]["items"][0].clone();
            let item = item.as_object_mut().unwrap();
            item.retain(|key, _| key != "item" && key != "time_ms");
            item.clone()
        };
        let found = figures(set);
        assert_eq!(found, figures("list"), "{set}");
        assert_eq!(found["dense"]["all"]["n"], (SIZE.0 - HIDDEN) * SIZE.1, "{set}");
        assert!(found["dense"]["all"]["avgerr"].as_f64().unwrap() > 1.0, "{set}");
    }
}
