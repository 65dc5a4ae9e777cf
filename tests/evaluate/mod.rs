//! `stereod evaluate`, as a process: on synthetic pairs, and compared with the scoring script of
//! the test data.

mod deep;
mod even;
mod figures;
mod information;
mod layouts;
mod outputs;
mod scored;
mod submission;

use std::fs;
use std::path::{Path, PathBuf};

use image::{ImageBuffer, Luma};
use serde_json::{Value, json};

use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Disparity of the wall in all synthetic pairs.
const SHIFT: usize = 5;

/// Columns at the left that the right camera does not see, and some more.
const HIDDEN: u32 = 8;

/// A folder with data sets.
struct Data(tempfile::TempDir);

impl Data {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the path of a file and creates its folders.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Writes both pictures of a wall with a rich texture.
    fn wall(&self, left: &str, right: &str, (width, height): (u32, u32)) {
        for (name, shift) in [(left, 0), (right, SHIFT)] {
            self.grey(name, (width, height), |x, y| texture(x as usize + shift, y as usize));
        }
    }

    fn grey(&self, name: &str, (width, height): (u32, u32), value: impl Fn(u32, u32) -> u8) {
        let picture = ImageBuffer::from_fn(width, height, |x, y| Luma([value(x, y)]));
        picture.save(self.file(name)).unwrap();
    }

    /// Exit status, standard output and standard error of `stereod evaluate ARGUMENTS` in the folder.
    fn evaluate(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = stereod(&[&["evaluate", "--engine", "cpu"], arguments].concat());
        outcome(command.current_dir(self.0.path()))
    }

    /// Returns its JSON report; it must succeed.
    fn report(&self, arguments: &[&str]) -> Value {
        let whole = ["--json", "-", "--repeat", "1", "--set", "matching.subpixel=false"];
        let (status, stdout, stderr) = self.evaluate(&[arguments, &whole].concat());
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// The pair `NAME`: 96x48. Its truth is 2 px too large in 12 rows and 4 px in the next 4, and
    /// unknown in the columns that the right camera does not see. Both cameras see the whole upper
    /// half.
    fn described(&self, name: &str) {
        let (size, path) = ((96, 48), |file: &str| format!("{name}/{file}"));
        self.wall(&path("l.png"), &path("r.png"), size);
        self.grey(&path("truth.png"), size, |x, y| {
            let off = [2, 2, 2, 4].get(y as usize / 4).copied().unwrap_or(0);
            if x < HIDDEN { 0 } else { 16 * (SHIFT as u8 + off) }
        });
        self.grey(&path("nonocc.png"), size, |_, y| if y < 24 { 255 } else { 128 });
        let item = json!({
            "name": "the wall", "left": "l.png", "right": "r.png", "gt": "truth.png", "gt_scale": 16,
            "gt_invalid": 0, "ndisp": 16, "masks": { "nonocc": "nonocc.png" }, "metric": "middlebury"
        });
        fs::write(self.file(&path("item.json")), item.to_string()).unwrap();
    }
}

/// Grey level of a point of the wall: blots of 2x2 pixels.
fn texture(x: usize, y: usize) -> u8 {
    let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
    (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
}

/// A PFM file of these values.
fn write_floats(path: &Path, (width, height): (u32, u32), value: impl Fn(u32, u32) -> f32) {
    let mut file = format!("Pf\n{width} {height}\n-1\n").into_bytes();
    for y in (0..height).rev() {
        file.extend((0..width).flat_map(|x| value(x, y).to_le_bytes()));
    }
    fs::write(path, file).unwrap();
}
