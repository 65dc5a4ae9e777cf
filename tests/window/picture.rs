//! The image off-screen: colours, positions, overlay.

use stereod_core::chroma::{Chroma, ChromaPlane, ColourCoding};
use stereod_core::obstacles::{Bin, Mount, Nearest, Obstacles, Scan, Zone};
use stereod_core::pool::Pool;
use stereod_obstacles::overlay;

use super::*;

const MAPS: [ColourMap; 3] = [ColourMap::Turbo, ColourMap::Viridis, ColourMap::Grey];

#[test]
fn every_pixel_has_exactly_its_colour() {
    let Some(mut offscreen) = offscreen("every_pixel_has_exactly_its_colour") else { return };
    let frame = frame(0);
    for map in MAPS {
        let shown = offscreen.render(&frame, &scene(View::Disparity, map), PICTURE, None).unwrap();
        for (x, y, seen) in shown.enumerate_pixels() {
            let value = BLOCKS[y as usize / BLOCK][x as usize / BLOCK];
            assert_eq!(*seen, colour(map, value), "{map:?} at {x},{y}");
        }
    }
    let shown =
        offscreen.render(&frame, &scene(View::Left, ColourMap::Turbo), PICTURE, None).unwrap();
    for (x, y, seen) in shown.enumerate_pixels() {
        let grey = frame.pair.left.row(y as usize)[x as usize];
        assert_eq!(*seen, Rgba([grey, grey, grey, 255]), "{x},{y}");
    }
}

/// The left picture in its colours, the right one and the confidence in grey beside it.
#[test]
fn pictures_with_colour_are_shown_in_it() {
    let Some(mut offscreen) = offscreen("pictures_with_colour_are_shown_in_it") else { return };
    let (width, height) = (PICTURE.0 as usize, PICTURE.1 as usize);
    let turbo = |view| scene(view, ColourMap::Turbo);
    // As many samples as pixels, and a fourth of them; full and limited range.
    for (shift, coding) in [
        ([0, 0], ColourCoding::of_rgb()),
        ([1, 1], ColourCoding::new(0.299, 0.114, false)),
        ([1, 0], ColourCoding::new(0.2126, 0.0722, true)),
    ] {
        let mut coloured = Arc::into_inner(frame(0)).unwrap();
        let (across, down) = ChromaPlane::size_for((width, height), shift);
        // The same colour all over, since graphics devices mix those of neighbours.
        let samples = Pooled::unpooled(vec![[90, 170]; across * down]);
        let plane = ChromaPlane::new((width, height), shift, samples);
        let chroma = Chroma::new(coding, plane, Pool::new());
        coloured.pair.left = Image::from_fn(width, height, super::grey).with_chroma(Some(chroma));
        let shown = offscreen.render(&coloured, &turbo(View::Left), PICTURE, None).unwrap();
        for (x, y, seen) in shown.enumerate_pixels() {
            let expected = coloured.pair.left.rgb_at(x as usize, y as usize);
            let off = seen.0.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
            assert!(off <= Some(1), "{coding:?} at {x},{y}: {seen:?}, not {expected:?}");
        }
        let shown = offscreen.render(&coloured, &turbo(View::Confidence), PICTURE, None).unwrap();
        assert!(shown.pixels().all(|Rgba([red, green, blue, _])| red == green && red == blue));
    }
    // A camera that comes back in grey.
    let shown = offscreen.render(&frame(0), &turbo(View::Left), PICTURE, None).unwrap();
    let grey = super::grey(3, 3);
    assert_eq!(*shown.get_pixel(3, 3), Rgba([grey, grey, grey, 255]));
}

/// Every disparity in the range, one pixel each, compared with the table.
#[test]
fn every_disparity_has_the_colour_of_its_table_entry() {
    let name = "every_disparity_has_the_colour_of_its_table_entry";
    let Some(mut offscreen) = offscreen(name) else { return };
    let (width, height) = (512, 128);
    let values: Vec<i16> = (0..width * height).map(|i| (i as i32 - 32768) as i16).collect();
    let mut all = Arc::into_inner(frame(0)).unwrap();
    all.pair.left = Image::from_fn(width, height, |_, _| 0);
    all.pair.right = Image::from_fn(width, height, |_, _| 0);
    all.confidence = None;
    all.disparity = stereod::DisparityMap::of_values(width, RANGE, values.clone());
    for (low, high) in [(-32767, 32767), (-160, 3000), (0, 1), (7, 7), (0, 255)] {
        let limits = Limits { low, high };
        let scene = Scene { limits, ..scene(View::Disparity, ColourMap::Turbo) };
        let size = (width as u32, height as u32);
        let shown = offscreen.render(&all, &scene, size, None).unwrap();
        let table = ColourMap::Turbo.table();
        for (&value, seen) in values.iter().zip(shown.pixels()) {
            let expected = match value {
                INVALID => ColourMap::Turbo.unknown(),
                _ => table[limits.table_entry(value)],
            };
            assert_eq!(seen.0[..3], expected, "{value} in {limits:?}");
        }
    }
}

#[test]
fn bars_keep_the_aspect() {
    let Some(mut offscreen) = offscreen("bars_keep_the_aspect") else { return };
    let frame = frame(0);
    let disparity = scene(View::Disparity, ColourMap::Viridis);
    // Twice as large, with 40 pixels to spare on either side.
    let wide = offscreen.render(&frame, &disparity, (400, 240), None).unwrap();
    assert_black(&wide, [0, 0, 40, 240]);
    assert_black(&wide, [360, 0, 400, 240]);
    assert_disparity(&wide, ColourMap::Viridis, (40, 0), 2.0);
    assert_eq!(*wide.get_pixel(40, 0), colour(ColourMap::Viridis, 0), "the corner");
    assert_eq!(*wide.get_pixel(359, 239), colour(ColourMap::Viridis, -48), "the corner");
    // One and a half times, with 30 pixels above and below.
    let high = offscreen.render(&frame, &disparity, (240, 240), None).unwrap();
    assert_black(&high, [0, 0, 240, 30]);
    assert_black(&high, [0, 210, 240, 240]);
    assert_disparity(&high, ColourMap::Viridis, (0, 30), 1.5);
    // Half the size.
    let small = offscreen.render(&frame, &disparity, (80, 60), None).unwrap();
    assert_disparity(&small, ColourMap::Viridis, (0, 0), 0.5);
}

#[test]
fn side_by_side_shows_both() {
    let Some(mut offscreen) = offscreen("side_by_side_shows_both") else { return };
    let scene = scene(View::SideBySide, ColourMap::Grey);
    let shown = offscreen.render(&frame(0), &scene, (640, 280), None).unwrap();
    assert_black(&shown, [0, 0, 640, 20]);
    assert_black(&shown, [0, 260, 640, 280]);
    assert_left(&shown, (0, 20), 2.0);
    assert_disparity(&shown, ColourMap::Grey, (320, 20), 2.0);
}

#[test]
fn frames_of_another_size_and_silly_targets_are_taken() {
    let name = "frames_of_another_size_and_silly_targets_are_taken";
    let Some(mut offscreen) = offscreen(name) else { return };
    let scene = scene(View::SideBySide, ColourMap::Turbo);
    offscreen.render(&frame(0), &scene, (320, 120), None).unwrap();
    let mut one = Arc::into_inner(frame(0)).unwrap();
    one.pair.left = Image::from_fn(1, 1, |_, _| 200);
    one.pair.right = Image::from_fn(1, 1, |_, _| 100);
    let too_large = one.confidence.take();
    one.disparity = stereod::DisparityMap::of_values(1, RANGE, vec![504]);
    let shown = offscreen.render(&one, &scene, (2, 1), None).unwrap();
    assert_eq!(shown.get_pixel(0, 0).0, [200, 200, 200, 255]);
    assert_eq!(*shown.get_pixel(1, 0), colour(ColourMap::Turbo, 504));
    for size in [(0, 0), (0, 5), (5, 0), (1_000_000, 1)] {
        let error = offscreen.render(&one, &scene, size, None).unwrap_err().to_string();
        assert!(error.contains("cannot draw"), "{error}");
    }
    offscreen.render(&one, &scene, (1, 1), Some(&full_overlay())).unwrap();
    one.confidence = too_large;
    let error = offscreen.render(&one, &scene, (2, 1), None).unwrap_err();
    assert!(format!("{error:#}").contains("confidence of another size"), "{error:#}");
}

/// A timeline in the middle of its recording, of which a part is marked.
const TIMELINE: Timeline = Timeline {
    position: Duration::from_secs(30),
    number: 900,
    length: Duration::from_secs(60),
    marks: [Some(Duration::from_secs(10)), Some(Duration::from_secs(50))],
    repeats: true,
    speed: Some(0.5),
    is_at_end: false,
};

fn full_status() -> RunStatus {
    let judged = |text: &str, alarm| Judged { text: text.into(), alarm, ..Judged::default() };
    RunStatus {
        engine: "CPU (AVX2, 4 threads)".into(),
        pairs: 1234,
        counts: Counts { dropped: 5, ..Counts::default() },
        unpaired: [1, 0],
        late: 7,
        alignment: Some(judged("rows 3.2 px  roll 0.12 deg  rows off", true)),
        exposure: Some(Judged {
            text: "noise 2.1 1.9  brightness 97 88".into(),
            ..Judged::default()
        }),
        banners: vec![
            Banner { text: "left camera lost, trying again (for 12 s)".into(), trouble: true },
            Banner { text: "right camera back after 3 s".into(), trouble: false },
        ],
        ..RunStatus::default()
    }
}

fn full_overlay() -> OverlayContent {
    OverlayContent {
        temporal: None,
        around: None,
        path: None,
        rates: Rates {
            timing: Timing::Latency,
            frames_per_second: Some(29.97),
            latency: Some(Duration::from_micros(12_345)),
            latency_p95: Some(Duration::from_micros(15_900)),
        },
        on_screen: Some(Duration::from_micros(18_200)),
        picture: Some(PICTURE),
        status: Some(Arc::new(full_status())),
        legend: Some(Legend { colour_map: ColourMap::Turbo, limits: LIMITS, geometry: None }),
        hover: Some(Hover {
            pixel: (60, 100),
            disparity: Some(31.5),
            confidence: Some(117),
            depth: Some(1.672),
            marks: vec![(484.0, 400.0)],
            side: None,
        }),
        paused: true,
        ended: true,
        error: Some("the left camera is gone: /dev/video0 was unplugged".into()),
        notice: Some("saved stereod-20260101-000000-000-000012-disparity.png".into()),
        timeline: Some(TIMELINE),
        rows: None,
        ruler: None,
        scale: None,
        bar: Bar::default(),
        wipe: Some(Wipe {
            pane: panes(View::Disparity, PICTURE, (752, 564))[0],
            line: 400,
            sides: [Side::default(), Side { pair: 3, known: 0.9, settings: vec!["p1 = 9".into()] }],
        }),
        histograms: Some([
            Histogram::of_times(Timing::Latency, (5..90).map(Duration::from_millis)),
            Histogram::of_skew((-40..50).map(|i| Some(i * 50_000))),
        ]),
        sheet: Some(Sheet::Help),
    }
}

/// Heights in points of the bar, and of the timeline in it.
const BAR: u32 = 72;
const TIMELINE_HEIGHT: u32 = 61;

/// The bar takes the lower edge, and of the picture above it only problems cover parts.
#[test]
fn the_overlay_is_where_it_should_be() {
    let Some(mut offscreen) = offscreen("the_overlay_is_where_it_should_be") else { return };
    let scene = scene(View::Disparity, ColourMap::Turbo);
    let size = (752, 564);
    let free = size.1 - BAR;
    let bare = offscreen.render(&frame(0), &scene, (size.0, free), None).unwrap();
    let figures = OverlayContent {
        sheet: None,
        timeline: None,
        error: None,
        notice: None,
        ended: false,
        paused: false,
        hover: None,
        wipe: None,
        histograms: None,
        status: Some(Arc::new(RunStatus { banners: Vec::new(), ..full_status() })),
        ..full_overlay()
    };
    offscreen.render(&frame(0), &scene, size, Some(&figures)).unwrap();
    // Sizes of buttons are known from the second time on.
    let shown = offscreen.render(&frame(0), &scene, size, Some(&figures)).unwrap();
    let differs = |x, y| bare.get_pixel(x, y) != shown.get_pixel(x, y);
    let count = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        xs.flat_map(|x| ys.clone().map(move |y| (x, y))).filter(|&(x, y)| differs(x, y)).count()
    };
    let bright = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        xs.flat_map(|x| ys.clone().map(move |y| (x, y)))
            .filter(|&(x, y)| shown.get_pixel(x, y).0[..3].iter().all(|&v| v > 200))
            .count()
    };
    let grey = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        let all = xs.flat_map(|x| ys.clone().map(move |y| (x, y)));
        all.filter(|&(x, y)| shown.get_pixel(x, y).0[..3].iter().all(|&v| v > 140)).count()
    };
    assert!(grey(8..400, free + 34..564) > 300, "the figures are in the bar");
    assert!(grey(8..600, free..free + 34) > 300, "the buttons are in the bar");
    assert!(bright(480..744, 526..564) > 100, "the legend's numbers are at the bottom right");
    assert!(count(0..420, 0..60) > 300, "the problem is at the top left");
    assert_eq!(count(0..752, 130..free), 0, "the picture stays free");
    let all = count(0..752, 0..free);
    assert!(all < 752 * free as usize / 8, "the overlay covers {all} pixels");
    // A timeline takes the lower edge, and nothing else moves below it.
    let with_timeline = OverlayContent { timeline: Some(TIMELINE), ..figures.clone() };
    let shown = offscreen.render(&frame(0), &scene, size, Some(&with_timeline)).unwrap();
    let pixel = |x: u32| shown.get_pixel(x, 543).0;
    // Before the part, within it, its end, and the position.
    assert_eq!([pixel(60), pixel(300), pixel(710)].map(|p| p[2] > p[0] + 40), [false, true, false]);
    assert!(pixel(14 + 724 / 2)[..3].iter().all(|&v| v > 200), "{:?}", pixel(14 + 724 / 2));
    let full = offscreen.render(&frame(0), &scene, size, Some(&full_overlay())).unwrap();
    assert_ne!(full, shown);
    let again = offscreen.render(&frame(0), &scene, (size.0, free), None).unwrap();
    assert_eq!(again, bare, "the overlay leaves nothing behind");
}

/// In a narrow window the buttons take more rows, and the picture keeps what is left.
#[test]
fn the_bar_of_a_narrow_window_is_higher() {
    let Some(mut offscreen) = offscreen("the_bar_of_a_narrow_window_is_higher") else { return };
    let scene = scene(View::Disparity, ColourMap::Turbo);
    let overlay = OverlayContent {
        bar: Bar { view: View::Disparity, ..Bar::default() },
        ..Default::default()
    };
    let mut heights = Vec::new();
    for width in [1280, 640, 320] {
        let shown = offscreen.render(&frame(0), &scene, (width, 480), Some(&overlay)).unwrap();
        let bar = (0..480).rev().take_while(|&y| *shown.get_pixel(2, y) == Rgba([24, 24, 24, 255]));
        let height = bar.count() as u32;
        let free = (width, 480 - height);
        let bare = offscreen.render(&frame(0), &scene, free, None).unwrap();
        let above = image::imageops::crop_imm(&shown, 0, 0, free.0, free.1).to_image();
        assert!(above == bare, "{width}: the picture above a bar of {height} pixels");
        heights.push(height);
    }
    assert!(heights.is_sorted_by(|wide, narrow| wide < narrow), "{heights:?}");
    assert_eq!(heights[0], BAR);
}

/// The scan and the zones lie over the left image and over the disparity, and not over the right image.
#[test]
fn obstacles_and_zones_lie_over_the_images() {
    let Some(mut offscreen) = offscreen("obstacles_and_zones_lie_over_the_images") else { return };
    let mut frame = Arc::into_inner(frame(0)).unwrap();
    let position_m = [2.0, 0.2, 0.0];
    let nearest = Nearest { distance_m: 2.0, nearest_m: 2.0, sigma_m: 0.1, position_m, pixels: 99 };
    let bins = vec![Bin::Clear, Bin::Unknown, Bin::Obstacle(nearest)];
    let scan = Scan { first_deg: -7.5, bin_deg: 5.0, bins, near_m: 0.5, far_m: 4.0 };
    let states = [Some(true), Some(false), None];
    let zone = |(place, occupied)| Zone {
        name: String::from(["a", "b", "c"][place]),
        occupied,
        nearest: None,
        known: 1.0,
    };
    let zones = states.into_iter().enumerate().map(zone).collect();
    frame.obstacles = Some(Obstacles { scan, zones, things: Vec::new(), mount: Mount::default() });
    let rule = |(name, left): (&str, f64)| {
        let right = left + 0.2;
        format!(
            "[[zone]]\nname = '{name}'\nimage = [[{left}, 0.3], [{right}, 0.3], [{right}, 0.4], [{left}, 0.4]]\n"
        )
    };
    let rules = [("a", 0.1), ("b", 0.4), ("c", 0.7)].map(rule).concat();
    let rules = stereod_obstacles::zones::read(&rules).unwrap();
    // Columns of the bins' middles: 400 px of focal length, and pixels from their middles.
    let column = |degrees: f64| (80.5 - 400.0 * degrees.to_radians().tan()) / 160.0;
    let mut places = vec![
        (column(-5.0), 0.0, overlay::CLEAR),
        (column(0.0), 0.0, overlay::UNKNOWN),
        (column(5.0), 0.0, [235, 110, 40]),
    ];
    let lines = [0.1, 0.4, 0.7].into_iter().zip(states);
    places.extend(lines.map(|(left, state)| (left, 0.35, overlay::zone_colour(state))));
    for view in [View::SideBySide, View::Pair] {
        let scene = scene(view, ColourMap::Grey);
        let (size, room) = ((1200, 450 + BAR), (1200, 450));
        let panes = panes(view, PICTURE, room);
        let around = Around::new(&frame, &rules, panes.clone());
        let content = OverlayContent { around, ..OverlayContent::default() };
        offscreen.render(&frame, &scene, size, Some(&content)).unwrap();
        let shown = offscreen.render(&frame, &scene, size, Some(&content)).unwrap();
        for (pane, is_marked) in panes.iter().zip([true, view == View::SideBySide]) {
            for (across, down, colour) in &places {
                let x = f64::from(pane.x) + across * f64::from(pane.width);
                let y = f64::from(pane.y) + down * f64::from(pane.height) + 4.0;
                let is_it = |x: u32| {
                    let seen = shown.get_pixel(x, y as u32).0;
                    (0..3).all(|i| seen[i].abs_diff(colour[i]) < 30)
                };
                let found = (x as u32 - 2..x as u32 + 2).any(is_it);
                assert_eq!(found, is_marked, "{view:?}: {colour:?} at {x}, {y}");
            }
        }
    }
}

/// At 200 %, every text is twice as large at twice the place.
#[test]
fn the_overlay_follows_the_scale() {
    let Some(mut offscreen) = offscreen("the_overlay_follows_the_scale") else { return };
    let scene = scene(View::Disparity, ColourMap::Turbo);
    let mut covered = |scale: u32, content: &OverlayContent| {
        let size = (752 * scale, 564 * scale);
        let free = size.1 - (BAR + TIMELINE_HEIGHT) * scale;
        let bare = offscreen.render(&frame(0), &scene, (size.0, free), None).unwrap();
        offscreen.scale = scale as f32;
        offscreen.render(&frame(0), &scene, size, Some(content)).unwrap();
        let shown = offscreen.render(&frame(0), &scene, size, Some(content)).unwrap();
        // Cells of 16 points that have a changed pixel.
        let mut cells = std::collections::BTreeSet::new();
        let ground = shown.get_pixel(1, size.1 - 1);
        for (x, y, pixel) in shown.enumerate_pixels() {
            if pixel != if y < free { bare.get_pixel(x, y) } else { ground } {
                cells.insert((x / scale / 16, y / scale / 16));
            }
        }
        cells
    };
    let content = OverlayContent {
        sheet: None,
        wipe: None,
        hover: Some(Hover { marks: vec![], ..full_overlay().hover.unwrap() }),
        ..full_overlay()
    };
    let [once, twice] = [1, 2].map(|scale| covered(scale, &content));
    // Widths of letters are rounded to pixels.
    let differing = once.symmetric_difference(&twice).count();
    assert!(once.len() > 100 && differing < once.len() / 10, "{differing} of {}", once.len());
}

/// Both views side by side, with lines that cross both at the same rows.
#[test]
fn both_eyes_are_shown_with_lines_along_their_rows() {
    let name = "both_eyes_are_shown_with_lines_along_their_rows";
    let Some(mut offscreen) = offscreen(name) else { return };
    let mut frame = Arc::into_inner(frame(0)).unwrap();
    let (width, height) = (PICTURE.0 as usize, PICTURE.1 as usize);
    frame.pair.right = Image::from_fn(width, height, |x, y| 255 - grey(x, y));
    let scene = scene(View::Pair, ColourMap::Turbo);
    let size = (2 * PICTURE.0 * 2, PICTURE.1 * 2);
    let bare = offscreen.render(&frame, &scene, size, None).unwrap();
    assert_left(&bare, (0, 0), 2.0);
    each_block(|column, row| {
        let (x, y) = middle(column, row, 2.0);
        let grey = 255 - grey(column * BLOCK, row * BLOCK);
        assert_eq!(bare.get_pixel(2 * PICTURE.0 + x, y).0, [grey, grey, grey, 255]);
    });
    let panes = panes(View::Pair, PICTURE, size);
    let rows = Rows { panes, picture: PICTURE, mouse: Some(100) };
    let content = OverlayContent { rows: Some(rows), ..Default::default() };
    let with_bar = (size.0, size.1 + BAR);
    let shown = offscreen.render(&frame, &scene, with_bar, Some(&content)).unwrap();
    // Away from the panels: a column of each view is crossed at the same heights.
    let crossed = |x: u32| -> Vec<u32> {
        (90..size.1).filter(|&y| shown.get_pixel(x, y) != bare.get_pixel(x, y)).collect()
    };
    let left = crossed(120);
    assert_eq!(left, crossed(size.0 - 130));
    // Lines are 16 rows apart at two pixels a row, from row 8 on; the line at the mouse is white.
    for row in [56, 72, 88, 104] {
        assert!(left.contains(&(2 * row + 1)), "no line at row {row}: {left:?}");
    }
    let white = |x: u32| shown.get_pixel(x, 2 * 100 + 1).0[..3].iter().all(|&value| value > 200);
    assert!(white(120) && white(size.0 - 130), "the mouse's row");
    assert!(left.len() < 40, "{left:?}");
}

/// Left of the line, everything that depends on the settings is of the kept frame.
#[test]
fn the_kept_map_is_left_of_the_line() {
    let Some(mut offscreen) = offscreen("the_kept_map_is_left_of_the_line") else { return };
    let present = frame(0);
    let mut kept = Arc::into_inner(frame(1)).unwrap();
    for value in kept.disparity.values_mut() {
        *value = if *value == INVALID { 700 } else { 1008 - *value };
    }
    kept.confidence = Some(Image::from_fn(PICTURE.0 as usize, PICTURE.1 as usize, |_, _| 77));
    let size = (2 * PICTURE.0, PICTURE.1);
    for view in [View::Disparity, View::SideBySide, View::Confidence, View::Points, View::Left] {
        let scene = scene(view, ColourMap::Turbo);
        let of_kept = offscreen.render(&kept, &scene, size, None).unwrap();
        let of_present = offscreen.render(&present, &scene, size, None).unwrap();
        assert_eq!(of_kept == of_present, view == View::Left, "{view:?}");
        offscreen.keep(Some(&kept)).unwrap();
        for share in [0.0, 0.3, 1.0] {
            let scene = Scene { wipe: Some(share), ..scene };
            let shown = offscreen.render(&present, &scene, size, None).unwrap();
            let pane = *panes(view, PICTURE, size).last().unwrap();
            let line = pane.x + (share * pane.width as f32) as u32;
            for (x, y, pixel) in shown.enumerate_pixels() {
                let is_kept = (pane.x..line).contains(&x);
                let expected = if is_kept { &of_kept } else { &of_present };
                assert_eq!(pixel, expected.get_pixel(x, y), "{view:?} {share} at {x},{y}");
            }
        }
        // Without a line, the kept frame is nowhere.
        assert_eq!(offscreen.render(&present, &scene, size, None).unwrap(), of_present);
        offscreen.keep(None).unwrap();
    }
}

/// The left camera's viewpoint shows its image, as far as the pixels have a depth.
#[test]
fn points_seen_from_the_left_camera_are_its_image() {
    let Some(mut offscreen) = offscreen("points_seen_from_the_left_camera_are_its_image") else {
        return;
    };
    let frame = frame(0);
    let left =
        offscreen.render(&frame, &scene(View::Left, ColourMap::Turbo), PICTURE, None).unwrap();
    let from_left = scene(View::Points, ColourMap::Turbo);
    // A disparity of d px is 48 / d metres.
    for (depths, is_drawn) in [
        (ALL_DEPTHS, (|value| value > 0) as fn(i16) -> bool),
        ([2.0, 5.0], |value| value == 160 || value == 331),
    ] {
        let points =
            offscreen.render(&frame, &Scene { depths, ..from_left }, PICTURE, None).unwrap();
        for (x, y, pixel) in points.enumerate_pixels() {
            let value = BLOCKS[y as usize / BLOCK][x as usize / BLOCK];
            let expected = match is_drawn(value) {
                true => left.get_pixel(x, y).0,
                false => [0, 0, 0, 255],
            };
            let is_same = pixel.0.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 2);
            assert!(is_same, "({x}, {y}): {pixel:?} instead of {expected:?}");
        }
    }
    // From the side, the near surfaces move away from the far ones.
    let mut aside = from_left;
    aside.orbit.turn(0.2, 0.0);
    let points = offscreen.render(&frame, &aside, PICTURE, None).unwrap();
    let same = points.pixels().zip(left.pixels()).filter(|(a, b)| a == b).count();
    assert!(same < points.pixels().len() / 2, "{same}");
}
