//! Files of other programs that are not read: their names, and ways to make readable ones of them.

use std::path::Path;

use super::tree::At;

/// The numbers of any calibration.
const BY_HAND: &str = "write its numbers as OpenCV YAML (K1 D1 K2 D2 R T image_size)";

/// Reports whether bytes contain others.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Names the format of a file that is not a text, with a line of Python or MATLAB that makes JSON of it.
pub(super) fn binary(file: &Path, bytes: &[u8]) -> Option<String> {
    let name = file.display();
    let json = file.with_extension("json");
    let json = json.display();
    let python = |read: &str| {
        format!(
            "python3 -c \"import json,numpy;{read};json.dump({{k:numpy.asarray(d[k]).tolist() for k in d if \
             k[0]!='_'}},open('{json}','w'))\""
        )
    };
    let matrices = "K1 D1 K2 D2 R T image_size by name";
    Some(match bytes {
        [b'P', b'K', 3, 4, ..] if contains(bytes, b".npy") => {
            let line = python(&format!("d=numpy.load('{name}')"));
            format!(
                "an archive of NumPy (.npz), which is not read; if it has {matrices}, this makes {json} of it: {line}"
            )
        }
        [b'P', b'K', 3, 4, ..] if contains(bytes, b"xl/") => {
            format!("a workbook of Excel, which is not read; {BY_HAND}")
        }
        [b'P', b'K', 3, 4, ..] => {
            "a ZIP archive; unpack it, and name the calibration file in it".into()
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => format!(
            "one array of NumPy (.npy), but a calibration has several; save them by name, K1, D1, K2, D2, R, T as \
             nested lists in JSON: json.dump({{'K1': K1.tolist(), ...}}, open('{json}', 'w'))"
        ),
        [0x80, 2..=5, ..] | [b'(', b'd', b'p', ..] => {
            let line = python(&format!("import pickle;d=pickle.load(open('{name}','rb'))"));
            format!(
                "a pickle of Python, which is not read, because it may run any program; if it is yours and a dict \
                 with {matrices}, this makes {json} of it: {line}"
            )
        }
        _ if bytes.starts_with(b"MATLAB ") => {
            let line =
                python(&format!("import scipy.io;d=scipy.io.loadmat('{name}',squeeze_me=True)"));
            format!(
                "a file of MATLAB, which is not read; stereoParams become {json} in MATLAB by: \
                 [K1,D1,K2,D2,R,T,s]=stereoParametersToOpenCV(stereoParams); writelines(jsonencode(struct('K1',K1,\
                 'D1',D1,'K2',K2,'D2',D2,'R',R,'T_mm',T,'image_size',s([2 1]))),'{json}'); matrices by name (saved \
                 with -v7) by: {line}"
            )
        }
        [0x89, b'H', b'D', b'F', ..] => format!("a file of HDF5, which is not read; {BY_HAND}"),
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => "a picture, no calibration".into(),
        [0x1f, 0x8b, ..] => "packed by gzip; unpack it with gunzip".into(),
        [b'%', b'P', b'D', b'F', ..] => format!("a PDF; {BY_HAND}"),
        _ => return None,
    })
}

/// Names the format of a text that is neither YAML nor TOML and is not read, with an alternative.
pub(super) fn text(text: &str) -> Option<String> {
    let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    if has("[image]") && has("camera matrix") {
        return Some(
            "an INI file of ROS' camera_calibration (ost.txt), which is not read; give the YAML files \
             that it saves in the same archive: left.yaml,right.yaml"
                .into(),
        );
    }
    if has("Calibration results") && has("Camera-system parameters") {
        return Some(
            "the report of Kalibr, which is not read; give its camchain (camchain-*.yaml) of the same run".into(),
        );
    }
    has("# Camera list with one line of data per camera")
        .then(|| format!("cameras of COLMAP, which are not read; {BY_HAND}"))
}

/// Names the format of a tree that is not read, with an alternative.
pub(super) fn tree(root: &At) -> Option<String> {
    let vins = ["projection_parameters", "mirror_parameters", "cam0_calib", "body_T_cam0"];
    if root.any(&vins).is_some() {
        return Some(
            "a configuration of VINS, which is not read; give Kalibr's camchain or EuRoC's sensor.yaml of \
             the same cameras, or write its numbers as OpenCV YAML (K1 D1 K2 D2 R T)"
                .into(),
        );
    }
    let is_basalt = root.get("value0").is_some_and(|all| all.get("T_imu_cam").is_some());
    let program = match () {
        () if is_basalt => "a calibration of Basalt",
        () if root.get("frames").is_some() && root.any(&["fl_x", "camera_angle_x"]).is_some() => {
            "camera poses of NeRF programs (transforms.json)"
        }
        () if root.get("projection").is_some() && root.get("f").is_some() => {
            "a calibration of Agisoft Metashape"
        }
        () => return None,
    };
    Some(format!("{program}, which is not read; {BY_HAND}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_named_with_a_way() {
        for (bytes, words) in [
            (&b"PK\x03\x04....K1.npy"[..], "numpy.load('a/rig.x')"),
            (b"PK\x03\x04....xl/workbook.xml", "Excel"),
            (b"PK\x03\x04....", "ZIP"),
            (b"\x93NUMPY\x01\x00", "one array of NumPy"),
            (b"\x80\x04\x95", "pickle.load(open('a/rig.x','rb'))"),
            (b"(dp0\nVK1\n", "a pickle"),
            (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "stereoParametersToOpenCV"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"\x89PNG\r\n\x1a\n", "a picture"),
            (b"\x1f\x8b\x08", "gunzip"),
        ] {
            let told = binary(Path::new("a/rig.x"), bytes).expect(words);
            assert!(told.contains(words) && !told.contains('\n'), "{words}: {told}");
        }
        assert_eq!(binary(Path::new("rig.yml"), b"%YAML:1.0\n---\nK1: 3\n"), None);
        assert_eq!(binary(Path::new("rig.yml"), b""), None);
    }
}
