//! The library as another program uses it: by its public items alone, whatever features are on.

use std::time::Duration;

use stereod::{
    BoardView, Calibration, Device, Disparity, Error, Eye, INVALID, ImageBuf, ImageRef, Matcher,
    Params, Rectifier, SUBPIXEL, Status, Stream,
};

const SIZE: (usize, usize) = (120, 80);

/// A box at 20 px before a wall at 9 px, as the left and the right camera see it.
fn scene() -> [Vec<u8>; 2] {
    let texture = |x: usize, y: usize, seed: usize| {
        let blot = (x / 2 + seed).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
        (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
    };
    let view = |wall: usize, left: usize| {
        let pixel = move |i: usize| {
            let (x, y) = (i % SIZE.0, i / SIZE.0);
            let is_box = (left..left + 40).contains(&x) && (20..60).contains(&y);
            if is_box { texture(x - left, y, 7000) } else { texture(x + wall, y, 0) }
        };
        (0..SIZE.0 * SIZE.1).map(pixel).collect()
    };
    [view(0, 50), view(9, 30)]
}

fn image(pixels: &[u8]) -> ImageRef<'_> {
    ImageRef::new(pixels, SIZE.0, SIZE.1).unwrap()
}

fn params() -> Params {
    Params::default().with_disparities(32).with_confidence(Some(0))
}

fn matcher(params: &Params) -> Matcher {
    Matcher::new(params, SIZE.0, SIZE.1, Device::Cpu(Some(2))).unwrap()
}

fn matched(params: &Params) -> Disparity {
    let [left, right] = scene();
    matcher(params).compute(image(&left), image(&right)).unwrap()
}

#[test]
fn a_known_scene_has_its_disparity_its_status_and_its_occlusion() {
    let [left, right] = scene();
    let mut matcher = matcher(&params());
    let disparity = matcher.compute(image(&left), image(&right)).unwrap();
    let (map, pixels) = (disparity.map(), disparity.disparity_px());
    for (x, y, truth) in [(70, 40, 20.0), (20, 10, 9.0), (110, 70, 9.0)] {
        let found = pixels[y * SIZE.0 + x];
        assert!((found - truth).abs() < 0.2 && map.at(x, y) == Some(found), "{x}, {y}: {found}");
    }
    let status = disparity.status().unwrap();
    for (i, &value) in map.values().iter().enumerate() {
        assert_eq!(status[i] == Status::Unknown, value == INVALID);
        assert_eq!(pixels[i].is_nan(), value == INVALID);
        assert!(value == INVALID || pixels[i] == f32::from(value) / SUBPIXEL as f32);
    }
    // Beside the box, the right camera does not see the wall.
    let occluded = matcher.occluded(&disparity).unwrap();
    let share = |columns: std::ops::Range<usize>| {
        let all = columns.len() * 20;
        let pixels = (30..50).flat_map(|y| columns.clone().map(move |x| y * SIZE.0 + x));
        pixels.filter(|&pixel| occluded[pixel]).count() as f64 / all as f64
    };
    assert!(share(41..49) > 0.6 && share(55..85) < 0.05, "{} {}", share(41..49), share(55..85));

    let filled = matched(&Params::of_settings([("disparities", "32"), ("fill", "rays")]).unwrap());
    assert!(filled.status().is_none(), "without confidence nothing tells them apart");
    let filling = Params::of_settings([("disparities", "32"), ("fill", "rays")]).unwrap();
    let filled = matched(&filling.with_confidence(Some(0)));
    let count = |status: Status| filled.status().unwrap().iter().filter(|&&s| s == status).count();
    assert!(count(Status::Filled) > 100 && count(Status::Measured) > 6000);
}

#[test]
fn images_of_all_kinds_give_the_same_disparity() {
    let [left, right] = scene();
    let mut matcher = matcher(&params());
    let expected = matcher.compute(image(&left), image(&right)).unwrap();
    let mut padded = vec![255; (SIZE.0 + 5) * SIZE.1];
    for (to, from) in padded.chunks_mut(SIZE.0 + 5).zip(left.chunks(SIZE.0)) {
        to[..SIZE.0].copy_from_slice(from);
    }
    let rgb: Vec<u8> = left.iter().flat_map(|&grey| [grey; 3]).collect();
    let borrowed = ImageRef::from_rgb(&rgb, SIZE.0, SIZE.1).unwrap();
    assert!(matches!(ImageRef::from_rgb(&rgb[1..], SIZE.0, SIZE.1), Err(Error::Size(_))));
    let rgb = ImageBuf::from_rgb(&rgb, SIZE.0, SIZE.1).unwrap();
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("left.png");
    image::save_buffer(&path, &left, SIZE.0 as u32, SIZE.1 as u32, image::ColorType::L8).unwrap();
    let read = ImageBuf::open(&path).unwrap();
    assert_eq!((read.width(), read.height(), read.pixels()), (SIZE.0, SIZE.1, &left[..]));
    for view in [
        ImageRef::with_stride(&padded, SIZE.0, SIZE.1, SIZE.0 + 5).unwrap(),
        borrowed,
        (&rgb).into(),
        (&read).into(),
    ] {
        let found = matcher.compute(view, image(&right)).unwrap();
        assert_eq!(found.map().values(), expected.map().values());
    }
    let deep: Vec<u16> = left.iter().map(|&grey| u16::from(grey) * 257).collect();
    let borrowed = ImageRef::from_16_bit(&deep, SIZE.0, SIZE.1).unwrap();
    let mut values = vec![0; SIZE.0 * SIZE.1];
    matcher.compute_into(borrowed, image(&right), &mut values).unwrap();
    assert!(matches!(
        matcher.compute_into(borrowed, image(&right), &mut values[1..]),
        Err(Error::Size(_))
    ));
    assert!(matches!(ImageRef::from_16_bit(&deep[1..], SIZE.0, SIZE.1), Err(Error::Size(_))));
    let deep = ImageBuf::from_16_bit(&deep, SIZE.0, SIZE.1).unwrap();
    let found = matcher.compute(&deep, image(&right)).unwrap();
    assert_eq!(found.map().values(), values);
    let off = deep.pixels().iter().zip(&left).filter(|(a, b)| a.abs_diff(**b) > 8).count();
    assert!(off * 50 < left.len(), "{off} pixels of a high contrast were changed");
    #[cfg(feature = "image")]
    {
        let grey = image::GrayImage::from_raw(SIZE.0 as u32, SIZE.1 as u32, left.clone()).unwrap();
        assert_eq!(image::GrayImage::from(read), grey);
        let view = ImageRef::try_from(&grey).unwrap();
        let found = matcher.compute(view, image(&right)).unwrap();
        assert_eq!(found.map().values(), expected.map().values());
    }
}

#[test]
fn a_stream_gives_the_maps_of_a_matcher_one_by_one() {
    let [left, right] = scene();
    let settings = [("disparities", "32"), ("temporal", "denoise"), ("steady", "3")];
    let params = Params::of_settings(settings).unwrap();
    let mut stream = Stream::new(&params, SIZE.0, SIZE.1, Device::Cpu(Some(2))).unwrap();
    let mut matcher = matcher(&params);
    let (mut streamed, mut single) = (Vec::new(), Vec::new());
    for i in 0..6_u8 {
        let noisy = |view: &[u8]| -> Vec<u8> {
            let noise = |j: usize| {
                ((j as u32).wrapping_mul(2_654_435_761) >> 20) as u8 ^ i.wrapping_mul(37)
            };
            view.iter().enumerate().map(|(j, &grey)| grey.saturating_add(noise(j) % 9)).collect()
        };
        let (left, right) = (noisy(&left), noisy(&right));
        let time = Duration::from_millis(33 * u64::from(i));
        streamed.extend(stream.push(image(&left), image(&right), time).unwrap());
        single.push(matcher.compute_next(image(&left), image(&right), time).unwrap());
    }
    streamed.extend(stream.finish().unwrap());
    assert_eq!(streamed.len(), single.len());
    for (a, b) in streamed.iter().zip(&single) {
        assert_eq!((a.map().values(), a.timestamp()), (b.map().values(), b.timestamp()));
    }
}

#[test]
fn errors_can_be_acted_on() {
    let name = |error: Error| match error {
        Error::Parameter { name, message } => {
            assert!(!message.contains("--"), "{message}");
            name
        }
        other => panic!("{other:?}"),
    };
    let new = |params: Params| Matcher::new(&params, 64, 48, Device::Cpu(None)).err().unwrap();
    assert_eq!(name(new(params().with_p1(40).with_p2(3))), "p1");
    assert_eq!(name(new(params().with_disparities(0))), "disparities");
    let far = stereod::DisparityRange { min: 64, count: 64 };
    assert_eq!(name(new(params().with_range(far))), "min_disparity");
    let of = |key, value| Params::of_settings([(key, value)]).unwrap_err();
    assert_eq!(name(of("uniqueness", "100")), "uniqueness");
    assert_eq!(name(of("disparites", "3")), "disparites");
    assert_eq!(name(of("p2", "1")), "p1");
    assert!(
        name(of("threads", "2")) == "threads" && of("threads", "2").to_string().contains("Device")
    );
    let bytes = [0; 12];
    for (width, height, stride) in [(5, 3, 5), (0, 3, 4), (4, 3, 3), (4, usize::MAX, 8)] {
        let error = ImageRef::with_stride(&bytes, width, height, stride).unwrap_err();
        assert!(matches!(error, Error::Size(_)), "{error:?}");
    }
    // Bytes of colour are not taken for grey levels, and a fourth channel not for the next pixel.
    let error = ImageRef::new(&[0; 36], 4, 3).unwrap_err().to_string();
    assert!(
        error.contains("36 bytes are too many for 4x3") && error.contains("`from_rgb`"),
        "{error}"
    );
    assert!(ImageRef::with_stride(&[0; 36], 4, 3, 4).is_ok(), "planes may follow");
    for len in [0, 35, 37, 48] {
        let error = ImageBuf::from_rgb(&vec![0; len], 4, 3).unwrap_err().to_string();
        assert!(error.contains(&format!("{len} samples are no image of 4x3")), "{error}");
    }
    assert!(ImageBuf::from_16_bit(&[0; 13], 4, 3).is_err());
    let error = matcher(&params())
        .compute(ImageRef::new(&bytes, 4, 3).unwrap(), ImageRef::new(&bytes, 4, 3).unwrap());
    let Err(Error::Size(text)) = error else { panic!("a small image was taken") };
    assert!(text.contains("4x3") && text.contains("120x80"), "{text}");
    let device = Matcher::new(&params(), 64, 48, Device::Cuda(Some(99))).err().unwrap();
    assert!(matches!(device, Error::Device(_)), "{device:?}");
    assert!(matches!(matched(&params()).depth_m(None), Err(Error::NoGeometry)));
    let missing = ImageBuf::open("none.png").unwrap_err();
    let Error::File { message, cause: Some(cause) } = &missing else { panic!("{missing:?}") };
    assert!(message.contains("none.png"), "{message}");
    assert_eq!(cause.kind(), std::io::ErrorKind::NotFound);
    let source = std::error::Error::source(&missing).expect("the system's error");
    assert!(source.is::<std::io::Error>(), "{source:?}");
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{\n  \"K1\": [1,\n}").unwrap();
    let Err(Error::Calibration(text)) = Calibration::read(&[&broken]) else {
        panic!("it was read")
    };
    assert!(text.contains("broken.json:3"), "{text}");
}

#[test]
fn errors_are_of_the_kind_that_they_name() {
    let made = |params: &Params, (width, height), device| {
        Matcher::new(params, width, height, device).map(drop).unwrap_err()
    };
    let cpu = Device::Cpu(Some(1));
    for size in [(0, 0), (usize::MAX, 2), (100_000, 100_000)] {
        let error = made(&params(), size, cpu);
        assert!(matches!(error, Error::Size(_)), "{size:?}: {error:?}");
    }
    for device in [Device::Cpu(Some(0)), Device::Cuda(Some(99))] {
        let error = made(&params(), (64, 48), device);
        assert!(matches!(error, Error::Device(_)), "{device:?}: {error:?}");
    }
    // Without the feature, or without a device, or with a cost that the shaders lack.
    let mi = Params::of_settings([("cost", "mi")]).unwrap();
    match made(&mi, (64, 48), Device::Wgpu) {
        Error::Device(_) => {}
        Error::Parameter { name, .. } => assert_eq!(name, "cost"),
        other => panic!("{other:?}"),
    }
    let geometry = stereod::StereoGeometry {
        focal_px: 100.0,
        baseline_m: 0.2,
        centre_x_px: 60.0,
        centre_y_px: 40.0,
        right_centre_x_px: 60.0,
    };
    let rig = |size, geometry| Calibration::of_rectified(size, &geometry);
    assert_eq!(rig((120, 80), geometry).unwrap().size(), (120, 80));
    assert!(matches!(rig((0, 80), geometry), Err(Error::Size(_))));
    for (wrong, expected) in [
        (stereod::StereoGeometry { focal_px: f64::NAN, ..geometry }, "focal_px"),
        (stereod::StereoGeometry { baseline_m: -1.0, ..geometry }, "baseline_m"),
        (
            stereod::StereoGeometry { right_centre_x_px: f64::INFINITY, ..geometry },
            "right_centre_x_px",
        ),
    ] {
        let Err(Error::Parameter { name, .. }) = rig((120, 80), wrong) else { panic!("{wrong:?}") };
        assert_eq!(name, expected);
    }
}

#[test]
fn times_of_a_stream_do_not_go_back() {
    let [left, right] = scene();
    let mut matcher = matcher(&params());
    let mut stream = Stream::new(&params(), SIZE.0, SIZE.1, Device::Cpu(Some(2))).unwrap();
    let at = Duration::from_secs;
    let back = |error: Error| {
        let Error::Parameter { name, message } = error else { panic!("{error:?}") };
        assert!(
            name == "timestamp" && message.contains("3 s, is before that of the last one, 5 s")
        );
    };
    for time in [4, 5, 5] {
        matcher.compute_next(image(&left), image(&right), at(time)).unwrap();
        stream.push(image(&left), image(&right), at(time)).unwrap();
    }
    back(matcher.compute_next(image(&left), image(&right), at(3)).unwrap_err());
    back(stream.push(image(&left), image(&right), at(3)).unwrap_err());
    matcher.restart().unwrap();
    stream.finish().unwrap();
    let disparity = matcher.compute_next(image(&left), image(&right), at(3)).unwrap();
    stream.push(image(&left), image(&right), at(3)).unwrap();
    assert_eq!(disparity.clone().timestamp(), at(3));
    assert!(format!("{matcher:?} {stream:?}").contains("CPU"));
}

#[test]
fn the_right_map_belongs_to_the_matcher_of_the_disparity() {
    let disparity = matched(&params());
    let mut same = matcher(&params());
    assert_eq!(same.right_map(&disparity).unwrap().width(), SIZE.0);
    let mut wider = matcher(&params().with_disparities(64));
    let mut smaller = Matcher::new(&params(), 64, 48, Device::Cpu(Some(1))).unwrap();
    for other in [&mut wider, &mut smaller] {
        for error in [other.right_map(&disparity).err(), other.occluded(&disparity).err()] {
            let Some(Error::Parameter { name, message }) = &error else { panic!("{error:?}") };
            assert!(name == "disparity" && message.contains("another matcher"), "{message}");
        }
    }
}

#[test]
fn calibrations_are_read_written_and_applied() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calibrations/");
    let files = ["intrinsics.yml", "extrinsics.yml"].map(|name| format!("{folder}{name}"));
    let rig = Calibration::read_for_size(&files, (640, 480)).unwrap();
    let geometry = rig.geometry().unwrap();
    assert!((geometry.baseline_m - 0.0625).abs() < 0.001, "{geometry:?}");
    let written = tempfile::tempdir().unwrap();
    for name in ["rig.toml", "rig.yml", "rig.xml", "rig.json"] {
        let path = written.path().join(name);
        rig.write(&path).unwrap();
        let again = Calibration::read(&[&path]).unwrap().geometry().unwrap();
        assert!((again.focal_px - geometry.focal_px).abs() < 1e-6, "{name}");
    }
    assert!(matches!(rig.write(written.path().join("rig.txt")), Err(Error::Calibration(_))));
    let rectifier: Rectifier = rig.rectifier(None).unwrap();
    let raw = ImageBuf::from_rgb(&vec![128; 640 * 480 * 3], 640, 480).unwrap();
    let [left, _] = rectifier.rectify(&raw, &raw).unwrap();
    assert_eq!((left.width(), left.height()), rectifier.size());
    let mut matcher = Matcher::rectifying(&params(), rectifier, Device::Cpu(Some(2))).unwrap();
    let disparity = matcher.compute(&raw, &raw).unwrap();
    assert_eq!(disparity.picture(Eye::Left), left.pixels());
    assert_eq!(disparity.geometry(), Some(geometry));
}

#[test]
fn depth_and_points_are_whole_and_written() {
    let disparity = matched(&params());
    let geometry = stereod::StereoGeometry {
        focal_px: 100.0,
        baseline_m: 0.2,
        centre_x_px: 60.0,
        centre_y_px: 40.0,
        right_centre_x_px: 60.0,
    };
    let depth = disparity.depth_m(Some(geometry)).unwrap();
    let points = disparity.points_m(Some(geometry)).unwrap();
    let pixel = 40 * SIZE.0 + 70;
    assert!((depth[pixel] - 1.0).abs() < 0.02 && points[pixel][2] == depth[pixel]);
    assert!((points[pixel][0] - 0.1 * depth[pixel]).abs() < 1e-4, "{:?}", points[pixel]);
    let folder = tempfile::tempdir().unwrap();
    let (png, ply) = (folder.path().join("d.png"), folder.path().join("d.ply"));
    disparity.write_png(&png).unwrap();
    let stored = image::open(&png).unwrap().into_luma16().into_raw();
    let value = disparity.map().values()[pixel];
    assert_eq!(i32::from(stored[pixel]), i32::from(value) * 256 / SUBPIXEL);
    let count = disparity.write_ply(&ply, Some(geometry)).unwrap();
    assert_eq!(count, depth.iter().filter(|depth| depth.is_finite()).count());
    assert!(std::fs::read(&ply).unwrap().starts_with(b"ply\n"));
}

#[test]
fn corners_of_a_chessboard_give_the_cameras_back() {
    let (focal, baseline, board, side) = (500.0, 0.12, (9, 6), 0.03);
    let mut state = 88_172_645_463_325_252_u64;
    // Between -0.5 and 0.5 (xorshift64, Marsaglia 2003).
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let mut view = |noise_px: f64| {
        let (a, b) = (random(), random());
        let place = [-0.12 + 0.2 * random(), -0.08 + 0.15 * random(), 0.7 + 0.4 * random()];
        let mut project = |shift: f64| {
            let corner = |i: usize| {
                let (x, y) = (side * (i % board.0) as f64, side * (i / board.0) as f64);
                // Turned about the vertical axis, then about the horizontal one.
                let (x, z) = (x * a.cos(), x * a.sin());
                let (y, z) = (y * b.cos() - z * b.sin(), y * b.sin() + z * b.cos());
                let (x, y, z) = (x + place[0] - shift, y + place[1], z + place[2]);
                let noise = [noise_px * random(), noise_px * random()];
                [320.0 + focal * x / z + noise[0], 240.0 + focal * y / z + noise[1]]
            };
            (0..board.0 * board.1).map(corner).collect()
        };
        BoardView { left: project(0.0), right: project(baseline) }
    };
    // Also exact corners, of cameras that stand exactly parallel.
    for noise_px in [0.0, 0.1] {
        let views: Vec<_> = (0..14).map(|_| view(noise_px)).collect();
        let (rig, rms_px) = Calibration::solve(board, side, (640, 480), &views).unwrap();
        let geometry = rig.geometry().unwrap();
        assert!(rms_px <= 0.6 * noise_px + 1e-6, "{rms_px}");
        assert!((geometry.baseline_m - baseline).abs() < 1e-3, "{geometry:?}");
        assert!((geometry.focal_px - focal).abs() < 10.0, "{geometry:?}");
    }
    let short = BoardView { left: vec![[0.0; 2]; 10], ..BoardView::default() };
    let error = Calibration::solve(board, side, (640, 480), &[short]).unwrap_err();
    assert!(error.to_string().contains("view 0 has 10 corners, but the board has 54"), "{error}");
}
