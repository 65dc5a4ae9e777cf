use super::*;
use crate::accuracy::Accuracy;
use stereod_core::frame::{DisparityMap, DisparityRange};
use stereod_core::matching::{Cost, Median, P2Mode, Params, Subpixel, match_pair};
use stereod_core::pool::Pooled;

/// A scene without noise.
fn quiet(width: usize, height: usize, min: i32, count: usize) -> DemoOptions {
    DemoOptions {
        width,
        height,
        noise: 0.0,
        disparities: DisparityRange { min, count },
        ..DemoOptions::default()
    }
}

fn truth(pair: &StereoPair) -> &Truth {
    pair.truth.as_deref().expect("the demo scene knows its truth")
}

/// FNV-1a over the bytes of both images and the truth.
fn fingerprint(pair: &StereoPair) -> u64 {
    let truth = truth(pair);
    let pictures = pair.left.pixels().iter().chain(pair.right.pixels()).copied();
    let disparities = truth.disparity.iter().flat_map(|d| d.to_bits().to_le_bytes());
    let bytes = pictures.chain(disparities).chain(truth.visible.iter().map(|&v| u8::from(v)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_bytes_depend_on_options_and_number_alone() {
    let options = DemoOptions { noise: 2.0, ..quiet(333, 250, 0, 48) };
    let mut source = DemoSource::new(options.clone()).unwrap();
    let prints: Vec<u64> = (0..3).map(|n| fingerprint(&source.pair(n))).collect();
    // Out of order, into used buffers, with other numbers of threads.
    for threads in [1, 2, 3, 7] {
        source.threads = threads;
        for n in [2, 0, 1] {
            assert_eq!(fingerprint(&source.pair(n)), prints[n as usize], "{threads} threads");
        }
    }
    let other = DemoSource::new(DemoOptions { seed: 2, ..options }).unwrap();
    assert_ne!(fingerprint(&other.pair(0)), prints[0]);
}

#[test]
fn the_bytes_are_those_of_every_other_machine() {
    let source = DemoSource::new(DemoOptions { noise: 1.5, ..quiet(160, 120, -3, 32) }).unwrap();
    // A deliberate change of the scene changes this number.
    assert_eq!(fingerprint(&source.pair(11)), 13_108_152_812_262_122_597);
    let options = DemoOptions { walks: true, ..source.scene.options };
    let source = DemoSource::new(options).unwrap();
    assert_eq!(fingerprint(&source.pair(11)), 13_355_331_987_531_809_655);
}

/// Returns the point that a pixel of the left picture shows, along the camera's axes.
fn point(options: &DemoOptions, pair: &StereoPair, x: usize, y: usize) -> [f64; 3] {
    let geometry = options.geometry();
    let disparity = f64::from(truth(pair).disparity[y * options.width + x]);
    let z =
        geometry.focal_px * geometry.baseline_m / (disparity - f64::from(options.disparities.min));
    let p = (x as f64 - geometry.centre_x_px) / geometry.focal_px;
    let q = (y as f64 - geometry.centre_y_px) / geometry.focal_px;
    [p * z, q * z, z]
}

#[test]
fn points_of_a_walking_camera_lie_on_the_surfaces_of_the_scene() {
    let options = DemoOptions { walks: true, ..quiet(320, 240, -5, 56) };
    let source = DemoSource::new(options.clone()).unwrap();
    for number in [0_u64, 55, 200, 333] {
        let seconds = number as f64 / options.rate;
        let (pair, camera) = (source.pair(number), options.camera(seconds));
        let frame = Frame::new(&source.scene, number, seconds);
        // Of the planes and of the ball.
        let mut on = [0; 6];
        for i in 0..320 * 240 {
            let at = camera.apply(point(&options, &pair, i % 320, i / 320)).map(|part| part as f32);
            let away = source.scene.planes.each_ref().map(|plane| {
                let length = scene::dot(plane.normal, plane.normal).sqrt();
                (scene::dot(plane.normal, at) - 1.0).abs() / length
            });
            let from_ball: [f32; 3] = std::array::from_fn(|i| at[i] - frame.ball[i]);
            let ball = (scene::dot(from_ball, from_ball).sqrt() - source.scene.radius).abs();
            let all = away.into_iter().chain([ball]);
            let (nearest, metres) =
                all.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap();
            assert!(metres < 2e-4, "{metres} m from all at pixel {i} of pair {number}");
            on[nearest] += 1;
        }
        assert!(on.iter().all(|&pixels| pixels > 300), "{on:?}");
    }
}

#[test]
fn the_pose_of_a_walking_camera_leads_back_to_what_it_showed_first() {
    let options = DemoOptions { walks: true, ..quiet(400, 300, 0, 56) };
    let source = DemoSource::new(options.clone()).unwrap();
    let (first, geometry) = (source.pair(0), options.geometry());
    for number in [20, 90, 250] {
        let (pair, pose) = (source.pair(number), options.pose(number));
        let (mut same, mut alike) = (0, 0);
        for i in 0..400 * 300 {
            let [x, y, z] = pose.apply(point(&options, &pair, i % 400, i / 400));
            let (u, v) = (
                (geometry.focal_px * x / z + geometry.centre_x_px).round(),
                (geometry.focal_px * y / z + geometry.centre_y_px).round(),
            );
            if !(0.0..400.0).contains(&u) || !(0.0..300.0).contains(&v) {
                continue;
            }
            let there = v as usize * 400 + u as usize;
            let expected = geometry.focal_px * geometry.baseline_m / z;
            if (f64::from(truth(&first).disparity[there]) - expected).abs() < 0.3 {
                same += 1;
                let grey = f32::from(first.left.pixels()[there]);
                alike += u32::from((grey - f32::from(pair.left.pixels()[i])).abs() < 12.0);
            }
        }
        // The rest is hidden by the ball or the column, or at edges. Of a wrong pose, less than 0.6 look alike.
        assert!(same > 400 * 300 / 2, "{same} points of pair {number} are seen in pair 0");
        assert!(f64::from(alike) > 0.8 * f64::from(same), "{alike} of {same} points look alike");
    }
}

#[test]
fn any_size_and_range_is_rendered_within_the_range() {
    for (width, height) in [(1, 1), (3, 2), (1, 70), (129, 1), (64, 64), (200, 31)] {
        for (min, count) in [(0, 1), (0, 16), (-7, 20), (5, 300), (-2047, 1024), (1000, 1024)] {
            for (number, walks) in [(0, false), (77, false), (0, true), (77, true), (350, true)] {
                let options = DemoOptions { walks, ..quiet(width, height, min, count) };
                let source = DemoSource::new(options).unwrap();
                let pair = source.pair(number);
                assert_eq!((pair.left.width(), pair.left.height()), (width, height));
                assert_eq!((pair.right.width(), pair.right.height()), (width, height));
                let (low, high) = (min as f32, min as f32 + (count - 1) as f32);
                assert_eq!(truth(&pair).disparity.len(), width * height);
                for d in truth(&pair).disparity.iter() {
                    assert!((low..=high).contains(d), "{d} in {width}x{height}, {min} + {count}");
                }
            }
        }
    }
}

#[test]
fn the_scene_spans_most_of_the_range_and_moves() {
    let source = DemoSource::new(quiet(320, 240, 4, 48)).unwrap();
    let (first, second) = (source.pair(0), source.pair(1));
    let least = truth(&first).disparity.iter().copied().fold(f32::MAX, f32::min);
    let most = truth(&first).disparity.iter().copied().fold(f32::MIN, f32::max);
    assert!(least < 4.0 + 0.2 * 47.0 && most > 4.0 + 0.75 * 47.0, "{least} to {most}");
    let changed = std::iter::zip(first.left.pixels(), second.left.pixels());
    assert!(changed.filter(|(a, b)| a != b).count() > 320 * 240 / 4);
    // After 8 seconds the motion restarts.
    assert_eq!(fingerprint(&source.pair(240)), fingerprint(&first));
}

#[test]
fn the_right_picture_shows_the_left_ones_points_where_the_truth_says() {
    let still = [(0, 0), (-9, 50), (12, 100), (0, 190)].map(|(min, number)| (min, number, false));
    for (min, number, walks) in still.into_iter().chain([(0, 130, true), (-9, 400, true)]) {
        let (width, height) = (400, 300);
        let options = DemoOptions { walks, ..quiet(width, height, min, 56) };
        let source = DemoSource::new(options).unwrap();
        let pair = source.pair(number);
        let truth = truth(&pair);
        let seen = truth.visible.iter().filter(|&&v| v).count();
        assert!((width * height * 6 / 10..width * height * 97 / 100).contains(&seen), "{seen}");

        let (mut within, mut sum, mut count) = (0, 0.0, 0);
        for i in (0..width * height).filter(|&i| truth.visible[i]) {
            let (x, y) = (i % width, i / width);
            let match_x = x as f32 - truth.disparity[i];
            let (low, part) = (match_x as usize, match_x.fract());
            let row = pair.right.row(y);
            let (a, b) = (f32::from(row[low]), f32::from(row[(low + 1).min(width - 1)]));
            let error = (a + part * (b - a) - f32::from(pair.left.row(y)[x])).abs();
            within += usize::from(error <= 3.0);
            sum += error;
            count += 1;
        }
        let (share, mean) = (within as f32 / count as f32, sum / count as f32);
        // The rest is at edges and thin lines, because interpolation mixes two shades. A truth that is off by a
        // quarter of a pixel gives 0.82 and 2.4.
        assert!(share > 0.85 && mean < 1.75, "{share} within 3 grey levels, mean {mean}");
    }
}

#[test]
fn hidden_points_lie_left_of_something_nearer_or_outside() {
    let (width, height) = (400, 300);
    let source = DemoSource::new(quiet(width, height, 0, 56)).unwrap();
    let pair = source.pair(30);
    let truth = truth(&pair);
    let mut behind = 0;
    for y in 0..height {
        let row = &truth.disparity[y * width..][..width];
        // From right to left: the leftmost match column that a point further right has taken.
        let mut hides_all_from = f32::MAX;
        for x in (0..width).rev() {
            let match_x = x as f32 - row[x];
            let visible = truth.visible[y * width + x];
            if match_x < 0.0 {
                assert!(!visible);
            } else if visible {
                assert!(match_x < hides_all_from + 1.5, "({x}, {y}) is seen behind something");
            } else {
                behind += 1;
                assert!(match_x > hides_all_from - 1.5, "({x}, {y}) is hidden by nothing");
            }
            hides_all_from = hides_all_from.min(match_x);
        }
    }
    assert!(behind > 200, "{behind} hidden pixels");
}

#[test]
fn noise_and_brightness_are_as_asked_for() {
    let options = quiet(300, 200, 0, 40);
    let plain = DemoSource::new(options.clone()).unwrap().pair(3);
    let noisy = DemoSource::new(DemoOptions { noise: 4.0, ..options.clone() }).unwrap().pair(3);
    let differences = |a: &Image, b: &Image| {
        let pixels = std::iter::zip(a.pixels(), b.pixels()).filter(|&(&a, _)| a > 20 && a < 235);
        let differences: Vec<f64> = pixels.map(|(&a, &b)| f64::from(b) - f64::from(a)).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let square = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>();
        (mean, (square / differences.len() as f64).sqrt())
    };
    for (a, b) in [(&plain.left, &noisy.left), (&plain.right, &noisy.right)] {
        let (mean, spread) = differences(a, b);
        assert!(mean.abs() < 0.1 && (3.8..4.2).contains(&spread), "{mean}, {spread}");
    }
    let brighter = DemoOptions { right_gain: 0.8, right_offset: 30.0, ..options };
    let brighter = DemoSource::new(brighter).unwrap().pair(3);
    assert_eq!(brighter.left.pixels(), plain.left.pixels());
    for (&a, &b) in plain.right.pixels().iter().zip(brighter.right.pixels()) {
        let expected = 0.8 * f32::from(a) + 30.0;
        assert!(a == 0 || a == 255 || (f32::from(b) - expected).abs() < 1.0, "{a} became {b}");
    }
}

#[test]
fn the_reference_matcher_finds_the_truth() {
    let source = DemoSource::new(DemoOptions { noise: 1.0, ..quiet(240, 180, 0, 32) }).unwrap();
    let pair = source.pair(55);
    let (range, cost) =
        (DisparityRange { min: 0, count: 32 }, Cost::Ad { truncation: 30, window: 3 });
    let mut params = Params::bare(range, cost, (12, 80));
    params.p2_mode = P2Mode::Linear { min: 6, slope_16: 40 };
    params.subpixel = Subpixel::Corrected;
    params.median = Median::Three;
    let map = match_pair(&pair.left, &pair.right, &params);
    let mut accuracy = Accuracy::default();
    accuracy.add(&map, truth(&pair));
    let summary = accuracy.summary().unwrap();
    assert!(summary.bad_1 < 1.5, "{summary:?}");

    // A map that is wrong everywhere is seen to be.
    let wrong =
        DisparityMap::new(240, 180, map.range(), Pooled::unpooled(vec![31 * 16; 240 * 180]));
    let mut accuracy = Accuracy::default();
    accuracy.add(&wrong, truth(&pair));
    assert!(accuracy.summary().unwrap().bad_1 > 99.0);
}

#[test]
fn the_source_delivers_what_was_asked_for() {
    let options = DemoOptions { frames: Some(5), rate: 10.0, ..quiet(40, 30, 0, 8) };
    let mut source = DemoSource::new(options.clone()).unwrap();
    assert_eq!((source.info().pairs, source.info().rate), (Some(5), Some(10.0)));
    assert!(source.info().has_truth && !source.info().live);
    let mut times = Vec::new();
    let mut emit = |pair: StereoPair, _| {
        times.push((pair.sequence, pair.timestamp.as_millis()));
        ControlFlow::Continue(())
    };
    source.run(&Switch::default(), &mut emit).unwrap();
    assert_eq!(times, [(0, 0), (1, 100), (2, 200), (3, 300), (4, 400)]);
    assert_eq!(source.counts(), SourceCounts { left: 5, right: 5, pairs: 5, ..Default::default() });

    let mut endless = DemoSource::new(DemoOptions { frames: None, ..options }).unwrap();
    let stop = Switch::default();
    let mut taken = 0;
    let mut emit = |_, _| {
        taken += 1;
        stop.set(taken == 7);
        ControlFlow::Continue(())
    };
    endless.run(&stop, &mut emit).unwrap();
    assert_eq!((taken, endless.counts().pairs), (7, 7));
    endless.run(&Switch::default(), &mut |_, _| ControlFlow::Break(())).unwrap();
    assert_eq!(endless.counts().pairs, 8);
}
