//! sensor.yaml of the EuRoC data sets (Burri et al., IJRR 2016): a YAML file for each camera, with
//! its pose in the body's frame.

use super::draft::Draft;
use super::kalibr::between;
use super::lens;
use super::tree::At;
use crate::calibration::check::Sources;
use crate::calibration::{CalibrationError, Camera, StereoCalibration};

fn camera(root: &At) -> Result<Camera, CalibrationError> {
    if let Some(kind) = root.get("sensor_type")
        && kind.text()? != "camera"
    {
        return Err(kind.error(format!("a sensor of type {:?} is no camera", kind.text()?)));
    }
    let model = root.need("camera_model")?;
    if model.text()? != "pinhole" {
        return Err(model.error(format!("the camera model {:?} is not supported", model.text()?)));
    }
    let (width, height) = root.need("resolution")?.size()?;
    let [fx, fy, cx, cy] = root.need("intrinsics")?.exactly()?;
    let name = root.need("distortion_model")?;
    let model = lens::named(&name)?;
    let coefficients = root.need("distortion_coefficients")?;
    let lens = lens::lens(model, &coefficients.numbers()?).map_err(|w| coefficients.error(w))?;
    Ok(Camera { width, height, focal: [fx, fy], centre: [cx, cy], skew: 0.0, lens })
}

/// Reads the files of both cameras.
pub(super) fn read(left: &At, right: &At) -> Result<Draft, CalibrationError> {
    let cameras = (camera(left)?, camera(right)?);
    // T_BS transforms from the sensor's frame into the body's.
    let (from, to) = (left.need("T_BS")?.motion()?, right.need("T_BS")?.motion()?);
    let (rotation, translation) = between(&from, &to);
    let sources = Sources {
        left: left.file().into(),
        right: right.file().into(),
        pose: format!("{} and {} (T_BS)", left.file(), right.file()),
        rectification: String::new(),
        swap: format!("name the files in the order {},{}", right.file(), left.file()),
        ..Sources::default()
    };
    let (left, right) = cameras;
    let calibration = StereoCalibration { left, right, rotation, translation, rectification: None };
    Ok(Draft::new(calibration, sources))
}
