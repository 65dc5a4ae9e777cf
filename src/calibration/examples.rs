//! Calibrations of real rigs, for tests.

use nalgebra::{Matrix3, Vector3};

use super::{Camera, Lens, StereoCalibration};

/// Returns a camera; `k` are OpenCV's fx, fy, cx, cy.
pub fn camera(size: (usize, usize), k: [f64; 4], lens: Lens) -> Camera {
    Camera {
        width: size.0,
        height: size.1,
        focal: [k[0], k[1]],
        centre: [k[2], k[3]],
        skew: 0.0,
        lens,
    }
}

/// Coefficients in OpenCV's order; missing ones are 0.
pub fn brown<const N: usize>(k: [f64; N]) -> Lens {
    let mut all = [0.0; 14];
    all[..N].copy_from_slice(&k);
    Lens::Brown(all)
}

fn rig(
    left: Camera,
    right: Camera,
    rotation: [f64; 9],
    translation: [f64; 3],
) -> StereoCalibration {
    StereoCalibration {
        left,
        right,
        rotation: Matrix3::from_row_slice(&rotation),
        translation: Vector3::from(translation),
        rectification: None,
    }
}

/// Returns an OAK-D's mono cameras: rational lenses with a pole next to a zero.
pub fn oakd() -> StereoCalibration {
    let size = (1280, 800);
    let left = [808.2711181640625, 807.5339965820312, 634.1679077148438, 407.65618896484375];
    let right = [810.8751220703125, 810.2493286132812, 661.3380737304688, 413.0704650878906];
    rig(
        camera(
            size,
            left,
            brown([
                -9.209368705749512,
                65.29181671142578,
                -5.2166426030453295e-05,
                0.0004887678078375757,
                -87.71741485595703,
                -9.287524223327637,
                65.54322052001953,
                -87.8282699584961,
            ]),
        ),
        camera(
            size,
            right,
            brown([
                -7.693194389343262,
                51.975399017333984,
                0.0012278045760467649,
                -0.0006654844619333744,
                -60.03352737426758,
                -7.779684543609619,
                52.25653076171875,
                -60.08742141723633,
            ]),
        ),
        [
            0.9997833371162415,
            0.020121490582823753,
            0.005331689026206732,
            -0.02013220824301243,
            0.9997953772544861,
            0.00196435721591115,
            -0.005291072651743889,
            -0.002071270253509283,
            0.9999838471412659,
        ],
        [-0.07377123355865478, 0.002311163544654846, 0.0002729603461921215],
    )
}

/// Returns the cameras of OpenCV's chessboard images.
pub fn chessboards() -> StereoCalibration {
    let size = (640, 480);
    let left = [535.739585283, 535.581894316, 342.3528434257, 235.0314821816];
    let right = [539.5884455418, 539.0857474472, 328.216385638, 248.8243085844];
    rig(
        camera(
            size,
            left,
            brown([-0.2647605844, -0.0478327403, 0.0017809594, -0.0002897243, 0.2436485676]),
        ),
        camera(
            size,
            right,
            brown([-0.2801516325, 0.098549882, -0.0004196268, 0.0010452227, -0.0121017054]),
        ),
        [
            0.9999877635,
            0.0038268029,
            0.0031350435,
            -0.0038124363,
            0.9999822635,
            -0.0045758074,
            -0.0031524986,
            0.0045637992,
            0.9999846166,
        ],
        [-0.0834471767, 0.0009637424, -8.1148e-06],
    )
}

/// Returns the cameras of the EuRoC data set.
pub fn euroc() -> StereoCalibration {
    let size = (752, 480);
    rig(
        camera(
            size,
            [458.654, 457.296, 367.215, 248.375],
            brown([-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05]),
        ),
        camera(
            size,
            [457.587, 456.134, 379.999, 255.238],
            brown([-0.28368365, 0.07451284, -0.00010473, -3.555907e-05]),
        ),
        [
            0.9999972564778812,
            0.0023120671924238847,
            0.0003760081024155938,
            -0.0023171357232812354,
            0.9998980485066438,
            0.014089835846648196,
            -0.0003433931205241621,
            -0.01409066845271459,
            0.9999006626377283,
        ],
        [-0.11007380812718678, 0.00039912154701414806, -0.0008537025033580449],
    )
}

/// Returns a left camera with all coefficients, a right one with few, strongly rotated relative to
/// each other.
pub fn tilted() -> StereoCalibration {
    let size = (1280, 800);
    rig(
        camera(size, [808.25, 807.5, 634.5, 407.75], all_coefficients()),
        camera(size, [629.42, 633.38, 641.3, 398.6], brown([-0.2, 0.05, 1e-3])),
        [
            0.9961937223389817,
            -0.028246991579130205,
            -0.08246317383615709,
            0.025675830533763964,
            0.999155603931856,
            -0.03207539334083829,
            0.0832995756219991,
            0.029835995011003175,
            0.9960778052456034,
        ],
        [-0.641, 0.038, -0.091],
    )
}

pub fn all_coefficients() -> Lens {
    Lens::Brown([
        -0.31, 0.12, 4e-4, -7e-4, -0.021, 0.05, -0.013, 0.002, 6e-4, -3e-4, -5e-4, 2e-4, 0.012,
        -0.017,
    ])
}

/// Returns two fisheye cameras of about 165 degrees.
pub fn fisheye() -> StereoCalibration {
    let size = (848, 800);
    rig(
        camera(
            size,
            [286.1, 287.9, 421.3, 398.6],
            Lens::Fisheye([-0.0076, 0.0439, -0.0416, 0.0078]),
        ),
        camera(
            size,
            [285.4, 286.2, 425.9, 402.2],
            Lens::Fisheye([-0.0052, 0.0391, -0.0379, 0.0069]),
        ),
        [
            0.9997110168338578,
            -0.007125677160047924,
            -0.02295882283621972,
            0.006872691896954579,
            0.9999150049511346,
            -0.011079213855771925,
            0.023035818351074214,
            0.010918223233803434,
            0.9996750189308089,
        ],
        [-0.0641, 0.0008, -0.0011],
    )
}
