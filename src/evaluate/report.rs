//! Report on all pairs, as JSON; [`super::table`] formats it for people.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::item::Areas;
use super::scoring::{NAMES, Score};
use super::sparsification::Sparsification;
use super::summary::Summary;
use crate::measured::Measured;

pub struct Dataset {
    /// Its name on the command line.
    pub path: PathBuf,
    /// Each pair by its name, with its result or the reason for having none.
    pub pairs: Vec<(String, Result<Measured, String>)>,
}

impl Dataset {
    /// Returns the evaluated pairs.
    pub fn measured(&self) -> impl Iterator<Item = (&str, &Measured)> {
        self.pairs.iter().filter_map(|(name, pair)| Some((&**name, pair.as_ref().ok()?)))
    }

    pub fn mean(&self) -> Option<Summary> {
        mean(self.measured().map(|(_, measured)| measured))
    }
}

/// The whole report.
pub struct Report {
    /// Description of the engine; `None` if none could be made.
    pub engine: Option<String>,
    /// Number of times that each pair was matched.
    pub repeat: u32,
    /// Grey level of the painted textureless regions.
    pub even: Option<u8>,
    /// Standard deviation and seed of the added noise.
    pub noise: Option<(f64, u64)>,
    pub settings: toml::Value,
    /// The data sets, in the order of the command line.
    pub datasets: Vec<Dataset>,
    /// Set if each "pair" is a combination of settings with the means over all pairs.
    pub is_comparison: bool,
}

impl Report {
    /// Makes the comparison of reports with these names, at least one.
    pub fn comparison(mut reports: Vec<(&String, Report)>) -> Self {
        let row = |(name, report): &(&String, Report)| {
            let Some(summary) = report.mean() else {
                return ((*name).clone(), Err("no pair could be evaluated".to_owned()));
            };
            let pairs = report.datasets.iter().flat_map(Dataset::measured);
            let (_, first) = pairs.into_iter().next().expect("a mean is of pairs");
            ((*name).clone(), Ok(Measured { size: first.size, range: first.range, summary }))
        };
        let pairs = reports.iter().map(row).collect();
        let (_, first) = reports.remove(0);
        let all = Dataset { path: "all".into(), pairs };
        Self { datasets: vec![all], is_comparison: true, ..first }
    }

    /// Returns the numbers of evaluated pairs and of all.
    pub fn counts(&self) -> (usize, usize) {
        let measured = self.datasets.iter().map(|dataset| dataset.measured().count()).sum();
        (measured, self.datasets.iter().map(|dataset| dataset.pairs.len()).sum())
    }

    pub fn mean(&self) -> Option<Summary> {
        mean(self.datasets.iter().flat_map(Dataset::measured).map(|(_, measured)| measured))
    }

    /// Returns everything as one JSON object. Figures have the names, digits and places of the scoring script
    /// of the test data: `unfilled` corresponds to `--fill none`, `dense` to `--fill kitti`.
    pub fn json(&self) -> String {
        let mut report = json!({
            "stereod": env!("CARGO_PKG_VERSION"),
            "engine": self.engine,
            "repeat": self.repeat,
            "even": self.even,
            "noise": self.noise.map(|(sigma, seed)| json!({ "sigma": sigma, "seed": seed })),
        });
        if self.is_comparison {
            let pairs = self.datasets.iter().flat_map(|dataset| &dataset.pairs);
            report["comparison"] = pairs.map(combination).collect();
        } else {
            report["settings"] = json!(self.settings);
            report["datasets"] = self.datasets.iter().map(dataset).collect();
            report["mean"] = json!(self.mean().map(|mean| summary(&mean, "items")));
        }
        format!("{report:#}\n")
    }
}

fn dataset(dataset: &Dataset) -> Value {
    json!({
        "dataset": dataset.path.to_string_lossy(),
        "items": dataset.pairs.iter().map(pair).collect::<Vec<_>>(),
        "mean": dataset.mean().map(|mean| summary(&mean, "items")),
    })
}

fn combination((name, outcome): &(String, Result<Measured, String>)) -> Value {
    match outcome {
        Err(error) => json!({ "settings": name, "error": error }),
        Ok(measured) => json!({ "settings": name, "mean": summary(&measured.summary, "items") }),
    }
}

fn mean<'a>(of: impl Iterator<Item = &'a Measured>) -> Option<Summary> {
    Summary::mean(&of.map(|measured| &measured.summary).collect::<Vec<_>>())
}

fn pair((name, outcome): &(String, Result<Measured, String>)) -> Value {
    match outcome {
        Err(error) => json!({ "item": name, "error": error }),
        Ok(Measured { size: (width, height), range, summary: found }) => {
            let mut all = json!({
                "item": name,
                "width": width,
                "height": height,
                "min_disparity": range.min,
                "disparities": range.count,
            });
            if let (Value::Object(all), Value::Object(more)) = (&mut all, summary(found, "n")) {
                all.extend(more);
            }
            all
        }
    }
}

/// Returns the figures; `counted` names the number of pixels or pairs.
fn summary(summary: &Summary, counted: &str) -> Value {
    let map = |areas: &Areas<Score>| {
        json!({
            "nonocc": score(&areas.non_occluded, counted),
            "all": score(&areas.all, counted),
            "disc": score(&areas.discontinuities, counted),
        })
    };
    json!({
        "time_ms": rounded(summary.time_ms),
        "image_density": rounded(summary.image_density),
        "map": {
            "density": rounded(summary.surfaces.density),
            "plane_residual": summary.surfaces.plane_residual.map(rounded),
            "thin_gaps": rounded(summary.surfaces.thin_gaps),
        },
        "unfilled": map(&summary.unfilled),
        "dense": map(&summary.dense),
        "sparsification": {
            "nonocc": curve(summary.sparsification.non_occluded),
            "all": curve(summary.sparsification.all),
            "disc": curve(summary.sparsification.discontinuities),
        },
    })
}

fn curve(curve: Option<Sparsification>) -> Option<Value> {
    let Sparsification { area, best, calibration } = curve?;
    let [area, best, calibration] = [area, best, calibration].map(rounded);
    Some(json!({ "area": area, "best": best, "calibration": calibration }))
}

fn score(score: &Option<Score>, counted: &str) -> Value {
    let Some(score) = score else { return Value::Null };
    let figures = NAMES.iter().zip(score.figures.0);
    let mut all: Map<String, Value> =
        figures.map(|(name, figure)| ((*name).to_owned(), json!(figure.map(rounded)))).collect();
    all.insert(counted.to_owned(), score.count.into());
    all.into()
}

/// Rounds a number to four digits after the point.
fn rounded(number: f64) -> f64 {
    format!("{number:.4}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::super::scoring::Figures;
    use super::super::surfaces::Surfaces;
    use super::*;
    use stereod_core::frame::DisparityRange;

    fn measured(time_ms: f64, density: f64) -> Measured {
        let mut figures = Figures([None; NAMES.len()]);
        figures.0[0] = Some(density);
        let all = Some(Score { count: 6, figures });
        let areas = Areas { all, ..Areas::default() };
        let (unfilled, dense) = (areas.clone(), areas);
        let curve = Sparsification { area: density / 2.0, best: 1.0, calibration: 2.0 };
        let sparsification = Areas { all: Some(curve), ..Areas::default() };
        let image_density = density;
        let surfaces = Surfaces { density, plane_residual: None, thin_gaps: 12.5 };
        let summary = Summary { time_ms, image_density, surfaces, unfilled, dense, sparsification };
        Measured { size: (3, 2), range: DisparityRange { min: -1, count: 16 }, summary }
    }

    #[test]
    fn pairs_failures_and_means() {
        let first = vec![
            ("a".into(), Ok(measured(1.0, 200.0 / 3.0))),
            ("b".into(), Err("cannot be read".into())),
        ];
        let second = vec![("c".into(), Ok(measured(4.0, 50.0)))];
        let report = Report {
            engine: Some("CPU".into()),
            repeat: 3,
            even: None,
            noise: Some((2.5, 9)),
            settings: toml::Value::from("all"),
            datasets: vec![
                Dataset { path: "one".into(), pairs: first },
                Dataset { path: "two".into(), pairs: second },
            ],
            is_comparison: false,
        };
        assert_eq!(report.counts(), (2, 3));
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["noise"], json!({ "sigma": 2.5, "seed": 9 }));
        let pairs = &json["datasets"][0]["items"];
        assert_eq!(pairs[1], json!({ "item": "b", "error": "cannot be read" }));
        let pair = &pairs[0];
        assert_eq!((&pair["width"], &pair["min_disparity"]), (&json!(3), &json!(-1)));
        assert_eq!(pair["unfilled"]["nonocc"], Value::Null);
        let all = &pair["dense"]["all"];
        assert_eq!(
            (&all["density"], &all["n"], &all["rms"]),
            (&json!(66.6667), &json!(6), &Value::Null)
        );
        // Means are of exact figures, not of rounded ones: (66.66666... + 50) / 2.
        let mean = &json["mean"]["unfilled"]["all"];
        assert_eq!((&mean["density"], &mean["items"]), (&json!(58.3333), &json!(2)));
        assert_eq!(
            json["mean"]["sparsification"]["all"],
            json!({ "area": 29.1667, "best": 1.0, "calibration": 2.0 })
        );
        assert_eq!(json["mean"]["sparsification"]["nonocc"], Value::Null);
        assert_eq!(json["mean"]["time_ms"], 2.5);
        let map = json!({ "density": 58.3333, "plane_residual": null, "thin_gaps": 12.5 });
        assert_eq!(json["mean"]["map"], map);
        assert_eq!(json["datasets"][1]["mean"]["time_ms"], 4.0);

        let lost = Dataset { path: "one".into(), pairs: vec![("b".into(), Err("lost".into()))] };
        let none = Report {
            engine: None,
            repeat: 3,
            even: None,
            noise: None,
            settings: toml::Value::from(0),
            datasets: vec![lost],
            is_comparison: false,
        };
        let names = ["paths=4".to_owned(), "paths=8".to_owned()];
        let comparison = Report::comparison(vec![(&names[0], report), (&names[1], none)]);
        let compared: Value = serde_json::from_str(&comparison.json()).unwrap();
        assert_eq!(
            compared["comparison"][0],
            json!({ "settings": "paths=4", "mean": json["mean"] })
        );
        assert_eq!(compared["comparison"][1]["error"], "no pair could be evaluated");
    }
}
