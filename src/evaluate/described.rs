//! Pairs that an `item.json` describes (docs/accuracy.md lists its fields).

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::item::{Areas, Item, Truth};
use stereod_core::files;
use stereod_core::reading;

/// Name of the description of a folder's pair.
pub const NAME: &str = "item.json";

/// Smallest and largest plausible stored value of a pixel of disparity.
const SCALES: [f64; 2] = [1e-3, 65535.0];

/// Largest size of a description in bytes.
const LONGEST: u64 = 1 << 20;

/// The fields that are read; others are for people or other programs.
#[derive(Deserialize)]
struct Description {
    left: PathBuf,
    right: PathBuf,
    /// `null`: the truth is not known.
    #[serde(deserialize_with = "Option::deserialize")]
    gt: Option<PathBuf>,
    gt_scale: Option<f64>,
    gt_invalid: Option<f64>,
    max_disp: Option<f64>,
    masks: Option<Masks>,
    #[serde(default)]
    gt_is_nonocc: bool,
    ndisp: Option<usize>,
}

#[derive(Default, Deserialize)]
struct Masks {
    nonocc: Option<PathBuf>,
    all: Option<PathBuf>,
    disc: Option<PathBuf>,
}

/// Reads the description at `path`; names in it are relative to its folder.
pub fn item(path: &Path) -> anyhow::Result<Item> {
    let shown = path.display();
    let text = reading::read(path, LONGEST).with_context(|| format!("cannot read {shown}"))?;
    let found: Description =
        serde_json::from_slice(&text).with_context(|| format!("{shown} describes no pair"))?;
    let folder = files::folder_of(path);
    if let Some(scale) = found.gt_scale {
        let [least, most] = SCALES;
        ensure!(
            (least..=most).contains(&scale),
            "{shown}: gt_scale is {scale:e}; it is what one pixel of disparity is stored as, {least} to {most}"
        );
    }
    ensure!(
        found.ndisp != Some(0),
        "{shown}: ndisp is 0; it is the number of candidate disparities, 1 or more: leave it out to have it \
         chosen from the pictures"
    );
    let mut item = Item {
        eyes: [folder.join(&found.left), folder.join(&found.right)],
        truth: Areas::default(),
        disparities: found.ndisp,
        described_by: vec![path.to_owned()],
    };
    let Some(file) = found.gt.map(|file| folder.join(file)) else { return Ok(item) };
    let (scale, unknown, largest) = (found.gt_scale, found.gt_invalid, found.max_disp);
    let truth = Truth { file, scale, unknown, of_depth: None, largest, mask: None };
    let with_mask = |mask: Option<&PathBuf>| Truth {
        mask: mask.map(|mask| folder.join(mask)),
        ..truth.clone()
    };
    let masks = found.masks.unwrap_or_default();
    let discontinuities = masks.disc.as_ref().map(|mask| with_mask(Some(mask)));
    item.truth = match found.gt_is_nonocc {
        // Truth without occluded pixels does not cover all pixels, unless a mask does.
        true => Areas {
            non_occluded: Some(truth.clone()),
            all: masks.all.as_ref().map(|mask| with_mask(Some(mask))),
            discontinuities,
        },
        false => Areas {
            non_occluded: masks.nonocc.as_ref().map(|mask| with_mask(Some(mask))),
            all: Some(with_mask(masks.all.as_ref())),
            discontinuities,
        },
    };
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> anyhow::Result<Item> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, text).unwrap();
        let strip = |path: &mut PathBuf| {
            *path = path.strip_prefix(folder.path()).unwrap().to_owned();
        };
        let mut item = item(&path)?;
        item.eyes.iter_mut().chain(&mut item.described_by).for_each(strip);
        let Areas { non_occluded, all, discontinuities } = &mut item.truth;
        for truth in [non_occluded, all, discontinuities].into_iter().flatten() {
            strip(&mut truth.file);
            truth.mask.iter_mut().for_each(strip);
        }
        Ok(item)
    }

    fn truth(mask: Option<&str>) -> Truth {
        let mask = mask.map(PathBuf::from);
        let (file, scale, unknown) = ("g.png".into(), Some(4.0), Some(0.0));
        Truth { file, scale, unknown, of_depth: None, largest: None, mask }
    }

    const BEGIN: &str = r#"{"name": "x", "metric": "middlebury", "left": "l.png", "right": "r.png",
        "gt": "g.png", "gt_scale": 4, "gt_invalid": 0, "#;

    #[test]
    fn masks_and_range() {
        let masks =
            r#""ndisp": 60, "masks": {"nonocc": "n.png", "all": "a.png", "disc": "d.png"}}"#;
        let item = of(&format!("{BEGIN}{masks}")).unwrap();
        assert_eq!(item.eyes, [PathBuf::from("l.png"), "r.png".into()]);
        let [non_occluded, all, discontinuities] =
            ["n.png", "a.png", "d.png"].map(|mask| Some(truth(Some(mask))));
        assert_eq!(item.truth, Areas { non_occluded, all, discontinuities });
        assert_eq!((item.disparities, item.files().count()), (Some(60), 9));

        let item = of(&format!(r#"{BEGIN}"masks": {{"nonocc": "n.png"}}}}"#)).unwrap();
        let all = Some(truth(None));
        let non_occluded = Some(truth(Some("n.png")));
        assert_eq!(item.truth, Areas { non_occluded, all, ..Areas::default() });
    }

    #[test]
    fn truth_without_occluded_pixels() {
        let item = of(&format!(r#"{BEGIN}"gt_is_nonocc": true, "max_disp": 70}}"#)).unwrap();
        let non_occluded = Some(Truth { largest: Some(70.0), ..truth(None) });
        assert_eq!(item.truth, Areas { non_occluded, ..Areas::default() });
    }

    #[test]
    fn truth_may_be_unknown() {
        let item = of(r#"{"left": "l.png", "right": "r.png", "gt": null, "ndisp": 9}"#).unwrap();
        assert_eq!((item.truth, item.disparities), (Areas::default(), Some(9)));
    }

    #[test]
    fn what_describes_nothing_is_named() {
        for (text, part) in [
            ("", "describes no pair"),
            ("[]", "describes no pair"),
            (r#"{"left": "l.png", "right": "r.png"}"#, "missing field `gt`"),
            (r#"{"left": "l", "right": "r", "gt": "g.png", "gt_scale": 0}"#, "gt_scale is 0"),
            (r#"{"left": "l", "right": "r", "gt": "g.png", "ndisp": -4}"#, "`-4`"),
        ] {
            let error = format!("{:#}", of(text).unwrap_err());
            assert!(error.contains("item.json") && (error.contains(part)), "{text}: {error}");
        }
        let deep = "[".repeat(1 << 19);
        assert!(of(&deep).is_err());
    }
}
