//! Quality of a calibration, in numbers.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::coverage::Coverage;
use super::errors::Compare;
use super::outliers::{Kept, pair_rms, rms};
use super::rig::Rig;
use super::sighting::{Reason, Sighting};
use super::start;
use super::verdict::{Facts, Verdict};
use crate::board::Board;
use crate::{Camera, Lens, StereoCalibration};

/// Row error after rectification, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RowError {
    pub mean: f64,
    /// 95 of 100 points are better.
    pub p95: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PairReport {
    pub name: String,
    pub left_out: Option<Reason>,
    /// Root mean square of the reprojection error of the left view, in pixels; of used pairs only,
    /// like the next ones.
    pub left_rms_px: Option<f64>,
    /// The same of the right view.
    pub right_rms_px: Option<f64>,
    /// The same of both.
    pub rms_px: Option<f64>,
    /// Mean epipolar error in pixels.
    pub epipolar_error_px: Option<f64>,
    /// Width of edges in the left and the right image, in pixels, if the board was found.
    pub blur_px: Option<[f64; 2]>,
}

/// Quality of a calibration. Serialised, it also holds the cameras (`K1`, `D1`, `R` and so on, as
/// OpenCV names them).
#[derive(Clone, Debug)]
pub struct Report {
    pub verdict: Verdict,
    pub board: Board,
    /// Every pair, in input order.
    pub pairs: Vec<PairReport>,
    /// Root mean square of the reprojection error of both views together in pixels, as OpenCV's
    /// stereoCalibrate computes it.
    pub rms_px: f64,
    /// The same of each camera calibrated by itself, as OpenCV's calibrateCamera computes it.
    pub alone_rms_px: [f64; 2],
    /// Mean over all points of the distances from both epipolar lines in pixels, as OpenCV's
    /// stereo_calib sample computes it.
    pub mean_epipolar_error_px: f64,
    pub rectified_row_error_px: RowError,
    /// Distance of the cameras in metres.
    pub baseline_m: f64,
    /// Its standard deviation without the error of the board's squares; `None` if undetermined.
    pub baseline_sd_m: Option<f64>,
    /// Standard deviations of the focal lengths in pixels, likewise.
    pub focal_sd_px: Option<[f64; 2]>,
    /// Coverage of each image by the board.
    pub coverage: [Coverage; 2],
    calibration: StereoCalibration,
}

impl Report {
    pub fn used(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.left_out.is_none()).count()
    }

    /// Returns the skipped pairs, with the reasons.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &Reason)> {
        self.pairs.iter().filter_map(|pair| Some((pair.name.as_str(), pair.left_out.as_ref()?)))
    }
}

/// A calibration and its quality.
#[derive(Clone, Debug)]
pub struct Solved {
    /// Both cameras.
    pub calibration: StereoCalibration,
    /// Quality of the calibration.
    pub report: Report,
}

/// Assembles the report.
pub(super) fn solved(
    board: &Board,
    sizes: [(usize, usize); 2],
    sightings: &[Sighting],
    kept: Kept,
) -> Solved {
    let Kept { rig, views, alone_rms_px, .. } = &kept;
    let place = rig.places[1];
    let calibration = StereoCalibration {
        left: rig.cameras[0].clone(),
        right: rig.cameras[1].clone(),
        rotation: place.rotation,
        translation: place.translation,
        rectification: None,
    };
    let compare = Compare::new(&calibration);
    let Compared { pairs, used, coverage, epipolar_px, rows } =
        Compared::of(sizes, sightings, &kept, &compare);
    let tilts: Vec<[f64; 2]> = rig.boards.iter().map(start::tilt).collect();
    let (nearest_m, farthest_m) = distances(rig);
    let (rms_px, baseline_m) = (rms(rig, views), place.translation.norm());
    let uncertainty = rig.uncertainty(views);
    let baseline = uncertainty.as_ref().map(|known| known.distance(rig, 1));
    let focal = uncertainty.map(|known| [0, 1].map(|camera| known.focal(rig, camera)));
    let baseline_sd_m = baseline.map(|sd| sd.all);
    let focal_sd_px = focal.map(|sds| sds.map(|sd| sd.all));
    let bent = baseline.into_iter().chain(focal.into_iter().flatten()).any(|sd| sd.is_bend());
    let verdict = Verdict::of(&Facts {
        used,
        rms_px,
        alone_rms_px: alone_rms_px[0].max(alone_rms_px[1]),
        row_error_px: rows.mean,
        baseline_m,
        baseline_sd_m,
        focal_sd_px,
        bent,
        coverage: &coverage,
        translation: place.translation.into(),
        focal: [0, 1].map(|camera: usize| rig.cameras[camera].focal[0]),
        rectified_focal_px: compare.focal_px(),
        tilts: &tilts,
        nearest_m,
        spread: farthest_m / nearest_m,
    });
    let report = Report {
        verdict,
        board: *board,
        pairs,
        rms_px,
        alone_rms_px: *alone_rms_px,
        mean_epipolar_error_px: epipolar_px,
        rectified_row_error_px: rows,
        baseline_m,
        baseline_sd_m,
        focal_sd_px,
        coverage,
        calibration: calibration.clone(),
    };
    Solved { calibration, report }
}

/// All pairs compared with a calibration.
struct Compared {
    pairs: Vec<PairReport>,
    used: usize,
    coverage: [Coverage; 2],
    epipolar_px: f64,
    rows: RowError,
}

impl Compared {
    fn of(
        sizes: [(usize, usize); 2],
        sightings: &[Sighting],
        kept: &Kept,
        compare: &Compare,
    ) -> Self {
        let Kept { rig, views, left_out, .. } = kept;
        let mut coverage = sizes.map(Coverage::new);
        let (mut pairs, mut epipolar, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut used = 0;
        for (sighting, left_out) in sightings.iter().zip(left_out) {
            let seen = sighting.seen.as_ref().ok();
            let mut pair = PairReport {
                name: sighting.name.clone(),
                left_out: left_out.clone(),
                blur_px: seen.map(|seen| seen.each_ref().map(|seen| seen.blur_px)),
                ..PairReport::default()
            };
            if let (None, Some(seen)) = (left_out, seen) {
                coverage.iter_mut().zip(seen).for_each(|(coverage, seen)| coverage.add(seen));
                let [left, right] = seen;
                let shared = || left.shared(right);
                let own: Vec<f64> =
                    shared().filter_map(|(l, r)| compare.epipolar([l, r])).collect();
                rows.extend(shared().filter_map(|(l, r)| compare.row([l, r])).map(f64::abs));
                let count = views.len() / 2;
                pair.left_rms_px = Some(rms(rig, &views[used..=used]));
                pair.right_rms_px = Some(rms(rig, &views[count + used..=count + used]));
                pair.rms_px = Some(pair_rms(rig, views, used));
                pair.epipolar_error_px = Some(mean(&own));
                epipolar.extend(own);
                used += 1;
            }
            pairs.push(pair);
        }
        rows.sort_by(f64::total_cmp);
        let rows = match rows.get(rows.len() * 95 / 100) {
            Some(&p95) => RowError { mean: mean(&rows), p95 },
            // Cameras that cannot be rectified have no rows to compare.
            None => RowError { mean: f64::NAN, p95: f64::NAN },
        };
        Self { pairs, used, coverage, epipolar_px: mean(&epipolar), rows }
    }
}

/// Returns the distances of the nearest and of the farthest board, in metres.
fn distances(rig: &Rig) -> (f64, f64) {
    let depths = rig.boards.iter().map(|board| board.translation.z);
    depths.fold((f64::INFINITY, 0.0f64), |(near, far), z| (near.min(z), far.max(z)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Report", 25)?;
        let c = &self.calibration;
        fields.serialize_field("verdict", &self.verdict)?;
        fields.serialize_field("board", &self.board.pattern.to_string())?;
        fields.serialize_field("square_m", &self.board.square_m)?;
        fields.serialize_field("image_size", &[c.left.width, c.left.height])?;
        if (c.left.width, c.left.height) != (c.right.width, c.right.height) {
            fields.serialize_field("right_image_size", &[c.right.width, c.right.height])?;
        }
        fields.serialize_field("pairs_used", &self.used())?;
        fields.serialize_field("pairs_left_out", &self.left_out().count())?;
        fields.serialize_field("rms_px", &self.rms_px)?;
        fields.serialize_field("left_rms_px", &self.alone_rms_px[0])?;
        fields.serialize_field("right_rms_px", &self.alone_rms_px[1])?;
        fields.serialize_field("mean_epipolar_error_px", &self.mean_epipolar_error_px)?;
        fields.serialize_field("rectified_row_error_px", &self.rectified_row_error_px)?;
        fields.serialize_field("baseline_m", &self.baseline_m)?;
        fields.serialize_field("baseline_sd_m", &self.baseline_sd_m)?;
        fields.serialize_field("focal_sd_px", &self.focal_sd_px)?;
        for (number, camera) in [("1", &c.left), ("2", &c.right)] {
            let names = if number == "1" { ["K1", "D1"] } else { ["K2", "D2"] };
            fields.serialize_field(names[0], &matrix(camera))?;
            fields.serialize_field(names[1], coefficients(camera))?;
        }
        let rows: Vec<[f64; 3]> = c.rotation.row_iter().map(|r| [r[0], r[1], r[2]]).collect();
        fields.serialize_field("R", &rows)?;
        fields.serialize_field("T", &<[f64; 3]>::from(c.translation))?;
        #[derive(Serialize)]
        struct Both<'a> {
            left: &'a Coverage,
            right: &'a Coverage,
        }
        let [left, right] = &self.coverage;
        fields.serialize_field("coverage", &Both { left, right })?;
        fields.serialize_field("pairs", &self.pairs)?;
        fields.end()
    }
}

fn matrix(camera: &Camera) -> [[f64; 3]; 3] {
    let ([fx, fy], [cx, cy]) = (camera.focal, camera.centre);
    [[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]
}

/// Returns the coefficients without trailing zeros that the model lacks.
fn coefficients(camera: &Camera) -> &[f64] {
    match &camera.lens {
        Lens::Brown(all) if all[5..].iter().all(|value| *value == 0.0) => &all[..5],
        Lens::Brown(all) => &all[..8],
        Lens::Fisheye(all) => all,
    }
}
