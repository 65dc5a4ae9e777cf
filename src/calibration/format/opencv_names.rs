//! Names of matrices in OpenCV calibrations, and the search by them.

use super::tree::{At, Node, Value};
use crate::error::Result;

// Names with blanks between them.
/// Camera matrices.
pub(super) const K: &str =
    "k kk m cameramatrix cameramat mtx cm kmatrix kmat intrinsic intrinsics intrinsicmatrix";
pub(super) const D: &str = "d kc dist distcoeffs distcoeff distcoef distcoefs distortion distortioncoeffs \
     distortioncoefficients distortioncoeff distortioncoef distortionvector distvec";
pub(super) const R: &str = "r rect rectification rectificationmatrix rectificationrotation rectificationtransform rrect \
     rectify rectr rotrect";
/// Projections of the rectification.
pub(super) const P: &str =
    "p proj projection projectionmatrix projmat projmatrix prect newcameramatrix";
pub(super) const MODEL: &str = "distortionmodel lensmodel fisheyemodel fisheye isfisheye";
/// The kind of camera, which distinguishes a fisheye lens from others.
pub(super) const CAMERA_MODEL: &str = "cameramodel cameratype";
/// The mirror's parameter of OpenCV's omnidirectional cameras.
pub(super) const MIRROR: &str = "xi";
/// Names of the pose; for the translation with the metres per unit.
pub(super) const ROTATION: &str = "r rotation rotationmatrix rot rstereo stereor";
pub(super) const ROTATION_VECTOR: &str = "om rvec rotationvector";
pub(super) const TRANSLATION: [(&str, f64); 3] = [
    ("t translation translationvector trans tvec tstereo stereot tm translationm", 1.0),
    ("tcm translationcm", 0.01),
    ("tmm translationmm", 0.001),
];

/// Pairs of names for left and right; counting from 0 comes first, because K1 is the right camera then.
pub(super) const SIDES: [[&str; 2]; 4] = [
    ["left l", "right r"],
    ["0 cam0 camera0", "1 cam1 camera1"],
    ["1 cam1 camera1", "2 cam2 camera2"],
    ["a", "b"],
];

/// Returns a name in lower case without signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns every value of the files by its plain name, which includes the keys above it.
pub(super) struct Entries<'a> {
    pub list: Vec<(String, At<'a>)>,
}

impl<'a> Entries<'a> {
    pub fn of(roots: &[At<'a>]) -> Self {
        let mut list = Vec::new();
        for root in roots {
            // A single group around everything is ignored.
            let mut top = root.clone();
            while let [(_, only)] = top.entries().as_slice()
                && !only.is_matrix()
                && !only.entries().is_empty()
            {
                top = only.clone();
            }
            collect(&top, "", &mut list);
        }
        Self { list }
    }

    /// Returns the one value with one of these names. If it occurs under several names or in both
    /// files, the values must be equal.
    pub fn find(&self, names: &[String], fits: fn(&Node) -> bool) -> Result<Option<At<'a>>> {
        let mut found = self.list.iter().filter(|(name, at)| names.contains(name) && fits(at.node));
        let Some((_, first)) = found.next() else { return Ok(None) };
        for (_, other) in found {
            let same = match (first.is_matrix(), other.is_matrix()) {
                (true, true) => numbers_of(first) == numbers_of(other),
                _ => first.node.value == other.node.value,
            };
            if !same {
                return Err(other.error(format!(
                    "contradicts {} of {}; remove the one that is wrong",
                    first.path(),
                    first.file()
                )));
            }
        }
        Ok(Some(first.clone()))
    }

    /// Returns a matrix of one camera.
    pub fn of_eye(&self, bases: &str, sides: &str) -> Result<Option<At<'a>>> {
        self.find(&sided(bases, sides), Node::is_matrix)
    }

    pub fn matrix(&self, names: &str) -> Result<Option<At<'a>>> {
        self.find(&owned(names), Node::is_matrix)
    }
}

fn collect<'a>(at: &At<'a>, above: &str, list: &mut Vec<(String, At<'a>)>) {
    for (key, value) in at.entries() {
        let name = format!("{above}{}", plain(key));
        if value.is_matrix() || value.entries().is_empty() {
            list.push((name, value));
        } else {
            collect(&value, &name, list);
        }
    }
}

/// Returns all numbers of a value, in any arrangement.
pub(super) fn numbers_of(at: &At) -> Vec<f64> {
    let mut numbers = Vec::new();
    let mut open = vec![at.node.get("data").unwrap_or(at.node)];
    while let Some(node) = open.pop() {
        match &node.value {
            Value::Number(number) => numbers.push(*number),
            Value::List(items) => open.extend(items.iter().rev()),
            _ => {}
        }
    }
    numbers
}

pub(super) fn owned(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

/// Returns the names for one camera: the part before the side and the part after it.
pub(super) fn sided(bases: &str, sides: &str) -> Vec<String> {
    let both = |base: &str, side: &str| [format!("{base}{side}"), format!("{side}{base}")];
    bases
        .split(' ')
        .flat_map(|base| sides.split(' ').flat_map(move |side| both(base, side)))
        .collect()
}

pub(super) fn is_calibration(root: &At) -> bool {
    let entries = Entries::of(std::slice::from_ref(root));
    let mut names = owned("cameramatrix");
    names.extend(owned(ROTATION));
    names.extend(owned(ROTATION_VECTOR));
    names.extend(TRANSLATION.iter().flat_map(|(names, _)| owned(names)));
    for side in SIDES.concat() {
        [K, D, R, P].iter().for_each(|bases| names.extend(sided(bases, side)));
    }
    entries.list.iter().any(|(name, at)| at.is_matrix() && names.contains(name))
}
