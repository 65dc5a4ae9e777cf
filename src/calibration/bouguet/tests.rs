//! Against OpenCV 4.10 and 5.0, which agree: cv2.stereoRectify and cv2.fisheye.stereoRectify with
//! CALIB_ZERO_DISPARITY on the numbers of `examples.rs`.

use super::*;
use crate::examples;

/// Alpha, size, and the resulting focal length, principal point and entry (0, 3) of P2.
type View = (Option<f64>, (usize, usize), [f64; 4]);

fn check(rig: &StereoCalibration, views: &[View], rotations: [[f64; 9]; 2]) {
    for &(alpha, size, [focal, x, y, shift]) in views {
        let found = rig.rectify(alpha, size).unwrap();
        assert_eq!((found.width, found.height), size);
        let eyes = [(&found.left, 0.0, rotations[0]), (&found.right, shift, rotations[1])];
        for (view, shift, rotation) in eyes {
            let rotation = Matrix3::from_row_slice(&rotation);
            assert!((view.rotation - rotation).amax() < 1e-9, "{alpha:?}: {}", view.rotation);
            let projection = projection(focal, [x, y], shift);
            let off = (view.projection - projection).amax();
            assert!(off < 1e-7, "{alpha:?} {size:?}: {off} {}", view.projection);
        }
    }
}

#[test]
fn the_oak_d() {
    let views = [
        (
            None,
            (1280, 800),
            [808.8916625976562, 651.1861190795898, 411.18639755249023, -59.702621151292256],
        ),
        (
            Some(0.0),
            (1280, 800),
            [966.0426858232108, 651.1861190795898, 411.18639755249023, -71.30161324999064],
        ),
        (
            Some(0.5),
            (1280, 800),
            [774.3160618977365, 651.1861190795898, 411.18639755249023, -57.1506675521705],
        ),
        (
            Some(1.0),
            (1280, 800),
            [582.5894379722621, 651.1861190795898, 411.18639755249023, -42.99972185435037],
        ),
        (
            Some(0.0),
            (640, 407),
            [478.7630583637882, 322.72265243530273, 206.27037454128265, -35.33651144695343],
        ),
        (
            None,
            (640, 407),
            [411.52363334655763, 322.72265243530273, 206.27037454128265, -30.373708510719936],
        ),
    ];
    check(
        &examples::oakd(),
        &views,
        [
            [
                0.9999361846751881,
                -0.011187661231158068,
                0.0015693353386168972,
                0.01118603608020363,
                0.9999368929355774,
                0.0010405494491972994,
                -0.0015808776172024763,
                -0.0010229284044764924,
                0.9999982272201479,
            ],
            [
                0.9995027791815579,
                -0.031313213492479924,
                -0.003698252170454391,
                0.03130938065557319,
                0.999509147048723,
                -0.001089793053232427,
                0.003730561795000439,
                0.0009734612004735262,
                0.9999925676133722,
            ],
        ],
    );
}

#[test]
fn the_chessboards() {
    let views = [
        (
            None,
            (640, 480),
            [537.3338208816, 337.67332458496094, 243.91975784301758, -44.84198077710602],
        ),
        (
            Some(0.0),
            (640, 480),
            [518.8367563054625, 337.67332458496094, 243.91975784301758, -43.2983500173761],
        ),
        (
            Some(0.5),
            (640, 480),
            [474.998671072039, 337.67332458496094, 243.91975784301758, -39.639941596113765],
        ),
        (
            Some(1.0),
            (640, 480),
            [431.1605858386154, 337.67332458496094, 243.91975784301758, -35.98153317485143],
        ),
        (
            Some(0.0),
            (320, 247),
            [267.9719347224413, 164.42584323883057, 124.4130446434021, -22.362992759161166],
        ),
        (
            None,
            (320, 247),
            [276.50302866198996, 164.42584323883057, 124.4130446434021, -23.07493594155247],
        ),
    ];
    check(
        &examples::chessboards(),
        &views,
        [
            [
                0.9999647958564671,
                -0.007721164807164353,
                0.003284914268962851,
                0.007728620352691715,
                0.9999675730491074,
                -0.0022630240214910158,
                -0.003267334567776647,
                0.002288332208944508,
                0.9999920439986129,
            ],
            [
                0.9999333107266635,
                -0.011548361092964522,
                9.723826677945934e-05,
                0.011548109899958,
                0.9999307274142244,
                0.002276297563714395,
                -0.00012351903705407887,
                -0.0022750228408927133,
                0.9999974045036921,
            ],
        ],
    );
}

#[test]
fn euroc() {
    let views = [
        (
            None,
            (752, 480),
            [456.71500000000003, 364.44123458862305, 256.95167541503906, -50.27420169661017],
        ),
        (
            Some(0.0),
            (752, 480),
            [436.24429564709413, 364.44123458862305, 256.95167541503906, -48.0208307332968],
        ),
        (
            Some(0.5),
            (752, 480),
            [374.7001378713413, 364.44123458862305, 256.95167541503906, -41.24618264583263],
        ),
        (
            Some(1.0),
            (752, 480),
            [313.1559800955884, 364.44123458862305, 256.95167541503906, -34.47153455836846],
        ),
        (
            Some(0.0),
            (376, 247),
            [226.89361196647553, 184.90466785430908, 127.8638421177864, -24.97595921236437],
        ),
        (
            None,
            (376, 247),
            [235.01792708333332, 184.90466785430908, 127.8638421177864, -25.870266289713978],
        ),
    ];
    check(
        &examples::euroc(),
        &views,
        [
            [
                0.9999663475300326,
                -0.001422739138721599,
                0.008079580483489151,
                0.0013657418346424666,
                0.9999741760894848,
                0.007055629199250527,
                -0.008089410156935827,
                -0.007044357138828136,
                0.9999424675829173,
            ],
            [
                0.9999633526194371,
                -0.0036258118715555435,
                0.007755443660230135,
                0.00368039854725533,
                0.999968475277163,
                -0.0070358452512171675,
                -0.007729688520779978,
                0.007064130529499098,
                0.9999451734846436,
            ],
        ],
    );
}

#[test]
fn tilted_sensors_and_large_rotations() {
    let views = [
        (None, (1280, 800), [720.44, 451.06776428222656, 403.33382415771484, -467.23519536837307]),
        (
            Some(0.0),
            (1280, 800),
            [800.3072912699682, 451.06776428222656, 403.33382415771484, -519.0324434946103],
        ),
        (
            Some(0.3),
            (1280, 800),
            [668.9174395864906, 451.06776428222656, 403.33382415771484, -433.8206798213672],
        ),
        (
            Some(1.0),
            (1280, 800),
            [362.34111899170944, 451.06776428222656, 403.33382415771484, -234.99323125046675],
        ),
    ];
    check(
        &examples::tilted(),
        &views,
        [
            [
                0.9947934173309683,
                -0.08227563525840417,
                0.06013964314659601,
                0.0833229090629834,
                0.996407970501108,
                -0.015114534301295205,
                -0.058680061863086594,
                0.02004684924593568,
                0.998075535305347,
            ],
            [
                0.988371690698323,
                -0.05859301754529867,
                0.1403148578058465,
                0.056106623852983054,
                0.9981907970541086,
                0.02161433404718842,
                -0.14132744880580866,
                -0.013490402937640516,
                0.989870982119701,
            ],
        ],
    );
}

#[test]
fn fisheye_lenses() {
    let views = [
        (
            Some(0.0),
            (848, 800),
            [41.159246584100195, 406.5782316689565, 418.9460881357222, -2.638901590885159],
        ),
        (
            Some(0.0),
            (640, 480),
            [24.695547950460117, 306.85149559921246, 251.3676528814333, -1.5833409545310957],
        ),
        (
            Some(0.5),
            (848, 800),
            [37.22600697160397, 408.723794466512, 413.67550532793757, -2.386724179193703],
        ),
        (
            Some(1.0),
            (848, 800),
            [25.710199190444687, 410.8693572640675, 408.404922520153, -1.6483947393694027],
        ),
        (
            Some(1.0),
            (640, 480),
            [15.426119514266812, 310.0900809540132, 245.04295351209177, -0.9890368436216417],
        ),
    ];
    check(
        &examples::fisheye(),
        &views,
        [
            [
                0.9997954980222907,
                -0.019413381428860343,
                -0.005664164179921782,
                0.019381348605441613,
                0.9997961630535579,
                -0.0056564714812196585,
                0.00577282085239758,
                0.005545535581085394,
                0.9999679602739905,
            ],
            [
                0.9997749499843466,
                -0.01247769048342454,
                0.017156824414708175,
                0.012381388964799064,
                0.999907056624546,
                0.005707829687322179,
                -0.017226450333705515,
                -0.005494119823682418,
                0.9998365186650583,
            ],
        ],
    );
    // Unless asked otherwise, a wide lens keeps its focal length instead of showing its sides.
    let own = examples::fisheye().rectify(None, (848, 800)).unwrap().geometry();
    assert!((own.focal_px - 287.05).abs() < 1e-9);
    assert!((own.centre_x_px - 423.6).abs() < 3.0 && (own.centre_y_px - 400.4).abs() < 3.0);
    assert!((own.baseline_m - examples::fisheye().translation.norm()).abs() < 1e-12);
}

#[test]
fn a_point_lies_on_the_same_row_of_both_pictures() {
    for rig in [examples::oakd(), examples::euroc(), examples::tilted(), examples::fisheye()] {
        let size = (rig.left.width, rig.left.height);
        let rectification = rig.rectify(None, size).unwrap();
        let geometry = rectification.geometry();
        let project = |view: &RectifiedView, point: Vector3<f64>| {
            let p = view.projection.fixed_columns::<3>(0) * view.rotation * point;
            (p.x / p.z, p.y / p.z)
        };
        for point in [Vector3::new(0.3, -0.2, 2.0), Vector3::new(-1.1, 0.7, 4.0)] {
            let left = project(&rectification.left, point);
            let right = project(&rectification.right, rig.rotation * point + rig.translation);
            // The files' rotations are rounded.
            assert!((left.1 - right.1).abs() < 1e-4, "{left:?} {right:?}");
            let [x, y, z] = geometry.point_m(left.0, left.1, left.0 - right.0).unwrap();
            let back = rectification.left.rotation.transpose() * Vector3::new(x, y, z);
            assert!((back - point).norm() < 1e-5, "{back}");
        }
    }
}

#[test]
fn what_cannot_be_rectified_is_refused() {
    let size = (752, 480);
    let changed = |change: &dyn Fn(&mut StereoCalibration)| {
        let mut rig = examples::euroc();
        change(&mut rig);
        rig.rectify(Some(0.0), size).unwrap_err().to_string()
    };
    assert!(changed(&|rig| rig.translation *= 0.0).contains("in one place"));
    assert!(changed(&|rig| rig.translation.swap_rows(0, 1)).contains("above the other"));
    assert!(changed(&|rig| rig.left.focal[1] = f64::NAN).contains("left camera"));
    assert!(changed(&|rig| rig.right.focal[0] = -1.0).contains("right camera"));
    assert!(changed(&|rig| rig.rotation *= 0.0).contains("rotation"));
    assert!(changed(&|rig| rig.left.lens = examples::brown([f64::NAN])).contains("lens model"));
    let alpha = examples::euroc().rectify(Some(1.5), size).unwrap_err();
    assert_eq!(alpha, RectifyError::Alpha(1.5));
    assert!(examples::euroc().rectify(None, (0, 480)).is_err());
}
