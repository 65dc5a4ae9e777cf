//! Formats that are recognised but not read, so that an error can name them and an alternative.

use super::tree::At;

/// Returns the name of the format of a text that is neither YAML nor TOML, with advice.
pub(super) fn of_text(text: &str) -> Option<&'static str> {
    let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    if has("[image]") && has("camera matrix") {
        return Some(
            "an INI file of ROS' camera_calibration (ost.txt), which is not read; give the YAML files \
             that it saves in the same archive: left.yaml,right.yaml",
        );
    }
    None
}

/// Returns the name of the format of a tree, with advice.
pub(super) fn of_tree(root: &At) -> Option<&'static str> {
    let keys = ["projection_parameters", "mirror_parameters", "cam0_calib", "body_T_cam0"];
    root.any(&keys).map(|_| {
        "a configuration of VINS, which is not read; give Kalibr's camchain or EuRoC's sensor.yaml of \
         the same cameras, or write its numbers as OpenCV YAML (K1 D1 K2 D2 R T)"
    })
}
