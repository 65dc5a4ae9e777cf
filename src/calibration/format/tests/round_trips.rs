//! Every format reads its own output; no text makes a reader panic.

use nalgebra::{Matrix3x4, Rotation3, Vector3};
use proptest::prelude::*;

use super::super::digits;
use super::*;
use crate::{Camera, Lens, Rectification, RectifiedView};

const WRITTEN: [Format; 5] =
    [Format::Own, Format::OpenCvYaml, Format::OpenCvXml, Format::OpenCvJson, Format::Ros];

fn written(calibration: &StereoCalibration, report: &Report, format: Format) -> Loaded {
    let texts = render(calibration, report, format).unwrap();
    assert_eq!(texts.len(), if format == Format::Ros { 2 } else { 1 });
    let files: Vec<_> = ["a", "b"].into_iter().zip(texts.iter().map(String::as_str)).collect();
    let loaded = read_texts(&files).unwrap_or_else(|error| panic!("{error}\n{}", texts[0]));
    assert_eq!(loaded.format, format);
    loaded
}

#[test]
fn every_number_has_a_point() {
    for (value, text) in
        [(1.0, "1.0"), (-1e-7, "-1.0e-7"), (1.5e-7, "1.5e-7"), (1e300, "1.0e300"), (0.25, "0.25")]
    {
        assert_eq!(digits(value), text);
    }
}

#[test]
fn unlike_cameras_keep_their_sizes() {
    let mut rig = crate::examples::euroc();
    rig.right = Camera {
        width: 564,
        height: 360,
        focal: rig.right.focal.map(|focal| 0.75 * focal),
        centre: rig.right.centre.map(|at| 0.75 * (at + 0.5) - 0.5),
        ..rig.right
    };
    rig.rectification = Some(rig.rectify(Some(0.0), (752, 480)).unwrap());
    for format in WRITTEN {
        let read = written(&rig, &Report::default(), format);
        assert_eq!(read.notes, Vec::<String>::new());
        let read = read.calibration;
        assert_eq!((&read.left, &read.right), (&rig.left, &rig.right), "{format}");
        assert_eq!(read.rectification, rig.rectification, "{format}");
    }
}

fn lens() -> impl Strategy<Value = Lens> {
    let k = -0.5..0.5_f64;
    prop_oneof![
        (prop::array::uniform14(k.clone()), prop::sample::select(vec![0, 4, 5, 8, 12, 14]))
            .prop_map(|(mut all, used)| {
                all[used..].fill(0.0);
                Lens::Brown(all)
            }),
        prop::array::uniform4(k).prop_map(Lens::Fisheye),
    ]
}

fn camera(size: (usize, usize)) -> impl Strategy<Value = Camera> {
    let focal = 0.8..1.2_f64;
    // Longer than a tenth of any side; shorter ones are refused.
    (300.0..2000.0, prop::array::uniform2(focal), prop::array::uniform2(0.3..0.7), lens()).prop_map(
        move |(f, part, centre, lens)| Camera {
            width: size.0,
            height: size.1,
            focal: part.map(|part| part * f),
            centre: [centre[0] * size.0 as f64, centre[1] * size.1 as f64],
            skew: if matches!(lens, Lens::Fisheye(_)) { centre[0] - 0.5 } else { 0.0 },
            lens,
        },
    )
}

/// A calibration with a rectification that fits it: the pose follows from the rectification.
fn calibration() -> impl Strategy<Value = StereoCalibration> {
    let turn = || prop::array::uniform3(-0.15..0.15_f64);
    let projection = (100.0..2000.0_f64, prop::array::uniform3(50.0..1000.0), 0.02..0.9_f64);
    let size = (64..2000_usize, 64..2000_usize);
    (size, turn(), turn(), projection).prop_flat_map(|(size, left, right, projection)| {
        let (f, [cx, cy, right_cx], baseline) = projection;
        let view = |turn: [f64; 3], cx, tx| RectifiedView {
            rotation: Rotation3::from_scaled_axis(Vector3::from(turn)).into_inner(),
            projection: Matrix3x4::new(f, 0.0, cx, tx, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0),
        };
        let rectification = Rectification {
            width: size.0,
            height: size.1,
            left: view(left, cx, 0.0),
            right: view(right, right_cx, -f * baseline),
        };
        (camera(size), camera(size)).prop_map(move |(left, right)| {
            let (rotation, translation) = rectification.pose();
            let rectification = Some(rectification.clone());
            StereoCalibration { left, right, rotation, translation, rectification }
        })
    })
}

fn report() -> impl Strategy<Value = Report> {
    let text = || prop::option::of("[ -~äß\"\\\\\n]{0,20}");
    let number = || prop::option::of(0.0..10.0_f64);
    (text(), text(), number(), number(), prop::option::of(0..1000_usize)).prop_map(
        |(made_by, date, rms_px, epipolar_error_px, pairs)| Report {
            made_by,
            date,
            rms_px,
            epipolar_error_px,
            pairs,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_format_reads_what_it_writes(
        mut calibration in calibration(), report in report(), whole in any::<bool>(),
    ) {
        // Of ROS the rectification is all that tells the pose.
        let ros = written(&calibration, &report, Format::Ros).calibration;
        prop_assert_eq!(&ros, &calibration);
        if !whole {
            calibration.rectification = None;
        } else if let Some(rectification) = &mut calibration.rectification {
            rectification.width += 7;
        }
        prop_assert!(render(&calibration, &report, Format::Ros).is_err());
        for format in [Format::Own, Format::OpenCvYaml, Format::OpenCvXml, Format::OpenCvJson] {
            prop_assert_eq!(&written(&calibration, &report, format).calibration, &calibration);
        }
        prop_assert_eq!(written(&calibration, &report, Format::Own).report, report);
    }

    /// Text that is cut off, lost or doubled gives a message or a calibration, never a panic; and truncation
    /// never gives another calibration.
    #[test]
    fn damaged_texts_are_refused_or_the_same(
        calibration in calibration(), format in prop::sample::select(&WRITTEN[..]),
        at in 0.0..1.0_f64, length in 0..40_usize, damage in 0..3,
    ) {
        let texts = render(&calibration, &Report::default(), format).unwrap();
        let last = texts.len() - 1;
        let mut damaged = texts.clone();
        let from = (at * damaged[last].len() as f64) as usize;
        let to = (from + length).min(damaged[last].len());
        match damage {
            0 => damaged[last].truncate(from),
            1 => damaged[last].replace_range(from..to, ""),
            _ => damaged[last].insert_str(from, &texts[last][from..to]),
        }
        let files: Vec<_> = ["a", "b"].into_iter().zip(damaged.iter().map(String::as_str)).collect();
        match read_texts(&files) {
            Ok(loaded) if damage == 0 => {
                prop_assert_eq!(&loaded.calibration.left, &calibration.left);
                prop_assert_eq!(&loaded.calibration.right, &calibration.right);
                prop_assert_eq!(loaded.calibration.rotation, calibration.rotation);
                prop_assert_eq!(loaded.calibration.translation, calibration.translation);
            }
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,200}", start in prop::sample::select(vec![
        "", "%YAML:1.0\n---\n", "{", "<a>", "[left]\n", "K1: ", "cam0: {", "cameraData: ", "T_BS: ",
        "image_width: 3\nprojection_matrix: ",
    ])) {
        let text = format!("{start}{text}");
        let _ = read_texts(&[("a", &text)]);
        let _ = read_texts(&[("a", &text), ("b", &text)]);
    }
}
