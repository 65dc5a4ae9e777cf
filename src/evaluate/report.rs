//! Report on all pairs, as JSON; [`super::table`] formats it for people.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::item::Areas;
use super::scoring::{NAMES, Score};
use super::sparsification::Sparsification;
use super::summary::{Summary, deviation};
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
    /// Standard deviation of the added noise; `None` in a comparison of several.
    pub noise: Option<f64>,
    /// Seeds of the noise; none without noise.
    pub seeds: Vec<u64>,
    pub settings: toml::Value,
    /// The data sets, in the order of the command line.
    pub datasets: Vec<Dataset>,
    /// Set if each "pair" is a combination of settings with the means over all pairs.
    pub is_comparison: bool,
    /// Pairs of each combination of a comparison, by its name.
    pub combinations: Vec<(String, Vec<Dataset>)>,
    /// Standard deviations of the means over several seeds.
    pub deviation: Option<Summary>,
}

impl Report {
    /// Joins reports that differ in the seed of their noise, at least one.
    pub fn of_seeds(mut reports: Vec<Report>) -> Self {
        if reports.len() > 1 {
            let means: Vec<Summary> = reports.iter().filter_map(Report::mean).collect();
            reports[0].deviation = Summary::combined(&means.iter().collect::<Vec<_>>(), deviation);
        }
        let mut joined = reports.remove(0);
        joined.seeds.extend(reports.iter().flat_map(|report| &report.seeds));
        for (number, dataset) in joined.datasets.iter_mut().enumerate() {
            for (place, (_, outcome)) in dataset.pairs.iter_mut().enumerate() {
                let others =
                    reports.iter().map(|report| match &report.datasets[number].pairs[place].1 {
                        Ok(measured) => Ok(&measured.summary),
                        Err(error) => Err(error.clone()),
                    });
                let others = others.collect::<Result<Vec<&Summary>, String>>();
                match (&mut *outcome, others) {
                    (Ok(measured), Ok(others)) => {
                        let all: Vec<&Summary> =
                            [&measured.summary].into_iter().chain(others).collect();
                        measured.summary = Summary::mean_of_seeds(&all).expect("there is one");
                    }
                    (Ok(_), Err(error)) => *outcome = Err(error),
                    (Err(_), _) => {}
                }
            }
        }
        joined
    }

    /// Makes the comparison of reports with these names, at least one.
    pub fn comparison(mut reports: Vec<(&String, Report)>) -> Self {
        let row = |(name, report): &(&String, Report)| {
            let Some(summary) = report.mean() else {
                return ((*name).clone(), Err("no pair could be evaluated".to_owned()));
            };
            let pairs = report.datasets.iter().flat_map(Dataset::measured);
            let (_, first) = pairs.into_iter().next().expect("a mean is of pairs");
            let deviation = report.deviation.clone();
            let (size, range) = (first.size, first.range);
            ((*name).clone(), Ok(Measured { size, range, summary, deviation }))
        };
        let pairs = reports.iter().map(row).collect();
        let noise = reports[0].1.noise;
        let is_same = reports.iter().all(|(_, report)| report.noise == noise);
        let combinations = reports
            .iter_mut()
            .map(|(name, report)| (name.clone(), std::mem::take(&mut report.datasets)))
            .collect();
        let (_, first) = reports.remove(0);
        let datasets = vec![Dataset { path: "all".into(), pairs }];
        let noise = noise.filter(|_| is_same);
        Self { datasets, is_comparison: true, combinations, noise, ..first }
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
            "noise": match &self.seeds[..] {
                [] => Value::Null,
                [seed] => json!({ "sigma": self.noise, "seed": seed }),
                seeds => json!({ "sigma": self.noise, "seeds": seeds }),
            },
        });
        if self.is_comparison {
            let pairs = self.datasets.iter().flat_map(|dataset| &dataset.pairs);
            let rows = pairs.zip(&self.combinations);
            report["comparison"] = rows.map(|(row, (_, of))| combination(row, of)).collect();
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

fn combination(
    (name, outcome): &(String, Result<Measured, String>),
    datasets: &[Dataset],
) -> Value {
    let mut row = match outcome {
        Err(error) => json!({ "settings": name, "error": error }),
        Ok(measured) => json!({ "settings": name, "mean": summary(&measured.summary, "items") }),
    };
    if let Ok(Measured { deviation: Some(deviation), .. }) = outcome {
        row["deviation"] = summary(deviation, "items");
    }
    row["datasets"] = datasets.iter().map(dataset).collect();
    row
}

fn mean<'a>(of: impl Iterator<Item = &'a Measured>) -> Option<Summary> {
    Summary::mean(&of.map(|measured| &measured.summary).collect::<Vec<_>>())
}

fn pair((name, outcome): &(String, Result<Measured, String>)) -> Value {
    match outcome {
        Err(error) => json!({ "item": name, "error": error }),
        Ok(Measured { size: (width, height), range, summary: found, .. }) => {
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
        Measured {
            size: (3, 2),
            range: DisparityRange { min: -1, count: 16 },
            summary,
            deviation: None,
        }
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
            noise: Some(2.5),
            seeds: vec![9],
            settings: toml::Value::from("all"),
            datasets: vec![
                Dataset { path: "one".into(), pairs: first },
                Dataset { path: "two".into(), pairs: second },
            ],
            is_comparison: false,
            combinations: Vec::new(),
            deviation: None,
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
            seeds: Vec::new(),
            settings: toml::Value::from(0),
            datasets: vec![lost],
            is_comparison: false,
            combinations: Vec::new(),
            deviation: None,
        };
        let names = ["paths=4".to_owned(), "paths=8".to_owned()];
        let comparison = Report::comparison(vec![(&names[0], report), (&names[1], none)]);
        let compared: Value = serde_json::from_str(&comparison.json()).unwrap();
        assert_eq!(
            compared["comparison"][0],
            json!({ "settings": "paths=4", "mean": json["mean"], "datasets": json["datasets"] })
        );
        assert_eq!(compared["comparison"][1]["error"], "no pair could be evaluated");
    }

    #[test]
    fn seeds_give_means_and_deviations() {
        let of = |seed, times: [f64; 2]| Report {
            engine: None,
            repeat: 1,
            even: None,
            noise: Some(5.0),
            seeds: vec![seed],
            settings: toml::Value::from(0),
            datasets: vec![Dataset {
                path: "one".into(),
                pairs: vec![
                    ("a".into(), Ok(measured(times[0], 50.0))),
                    ("b".into(), Ok(measured(times[1], 70.0))),
                ],
            }],
            is_comparison: false,
            combinations: Vec::new(),
            deviation: None,
        };
        let joined =
            Report::of_seeds(vec![of(1, [1.0, 3.0]), of(2, [5.0, 7.0]), of(3, [9.0, 11.0])]);
        let name = "paths=4".to_owned();
        let compared = Report::comparison(vec![(&name, joined)]).json();
        let compared: Value = serde_json::from_str(&compared).unwrap();
        let row = &compared["comparison"][0];
        assert_eq!(compared["noise"], json!({ "sigma": 5.0, "seeds": [1, 2, 3] }));
        assert_eq!(
            (&row["mean"]["time_ms"], &row["deviation"]["time_ms"]),
            (&json!(6.0), &json!(4.0))
        );
        assert_eq!(row["deviation"]["unfilled"]["all"]["density"], 0.0);
        let item = &row["datasets"][0]["items"][1];
        assert_eq!((&item["time_ms"], &item["unfilled"]["all"]["n"]), (&json!(7.0), &json!(6)));
        let mut lost = of(2, [1.0, 1.0]);
        lost.datasets[0].pairs[1].1 = Err("lost".into());
        let joined = Report::of_seeds(vec![of(1, [1.0, 3.0]), lost]);
        assert_eq!(joined.counts(), (1, 2));
    }
}
