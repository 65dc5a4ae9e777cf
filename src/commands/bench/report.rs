//! Output of `stereod bench`.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::run::prepare::fit::{Sustained, ms};
use stereod_core::matching::{Params, levels};

/// Times of pairs one by one, and of a stream of pairs.
pub struct Measured {
    pub stages: Vec<(&'static str, Duration)>,
    /// On a device: from the first kernel's start to the last one's end, median and best.
    pub kernels: Option<(Duration, Duration)>,
    /// From the pair in memory to its map, alone on the engine: median and best.
    pub alone: (Duration, Duration),
    /// With all pairs in flight that the engine takes, if more than one.
    pub sustained: Option<Sustained>,
}

impl Measured {
    /// Returns the time of the stages that aggregate costs along paths or pick the winners; most do
    /// both.
    pub fn aggregation(&self) -> Duration {
        let follows = |name: &str| name.starts_with("aggregation") || name == "winner";
        self.stages.iter().filter(|(name, _)| follows(name)).map(|(_, time)| *time).sum()
    }

    /// Returns the share of a stage in the time of a pair, in percent to a tenth.
    fn share(&self, time: Duration) -> f64 {
        let whole = self.alone.0.as_secs_f64().max(1e-9);
        (1e3 * time.as_secs_f64() / whole).round() / 10.0
    }
}

pub struct Report {
    pub engine: String,
    pub multiprocessors: Option<u32>,
    pub size: (usize, usize),
    pub repeat: u32,
    pub params: Params,
    pub settings: toml::Value,
    pub measured: Measured,
    pub verified: Option<usize>,
}

impl Report {
    /// Nanoseconds per cell and path, to a tenth of a picosecond; a cell is a candidate of a pixel.
    /// `None` without paths.
    fn per_cell_and_path(&self, time: Duration) -> Option<f64> {
        let (width, height) = self.size;
        let paths = self.params.paths.count();
        let count = width as f64 * height as f64 * self.candidates() as f64 * paths as f64;
        (paths > 0).then(|| (time.as_secs_f64() * 1e9 / count * 1e4).round() / 1e4)
    }

    /// Candidates that a pixel tries, of those of the range.
    fn candidates(&self) -> usize {
        levels::candidates(&self.params, self.size)
    }

    pub fn json(&self) -> Value {
        let Measured { stages, kernels, alone: (total, best), sustained } = &self.measured;
        let of_stages = |number: &dyn Fn(Duration) -> f64| -> serde_json::Map<_, _> {
            stages.iter().map(|&(name, time)| (name.to_owned(), json!(number(time)))).collect()
        };
        let shares = of_stages(&|time| self.measured.share(time));
        let mut report = json!({
            "engine": self.engine,
            "width": self.size.0,
            "height": self.size.1,
            "repeat": self.repeat,
            "settings": self.settings,
            "candidates": self.candidates(),
            "multiprocessors": self.multiprocessors,
            "total_ms": ms(*total),
            "best_ms": ms(*best),
            "pairs_per_second": 1e3 / ms(*total),
            "stages_ms": of_stages(&ms),
            "stages_percent": shares,
        });
        let aggregation = self.measured.aggregation();
        if let Some(of_pair) = self.per_cell_and_path(*total) {
            report["ns_per_cell_and_path"] = json!(of_pair);
            report["aggregation_ms"] = json!(ms(aggregation));
            report["aggregation_ns_per_cell_and_path"] = json!(self.per_cell_and_path(aggregation));
        }
        if let Some((median, best)) = kernels {
            report["kernels_ms"] = json!(ms(*median));
            report["kernels_best_ms"] = json!(ms(*best));
        }
        if let Some(sustained) = sustained {
            report["in_flight_ms"] = json!(sustained.ms());
            report["sustained"] = json!({
                "in_flight": sustained.in_flight,
                "pairs": sustained.pairs,
                "ms_per_pair": sustained.ms(),
                "pairs_per_second": 1e3 / sustained.ms(),
            });
        }
        if let Some(pixels) = self.verified {
            report["identical_pixels"] = json!(pixels);
        }
        report
    }

    fn title(&self) -> String {
        let searched = match (self.candidates(), self.params.range.count) {
            (some, all) if some < all => format!("{some} of {all}"),
            (_, all) => all.to_string(),
        };
        format!(
            "{}x{}, {searched} disparities, {} paths, {}: median of {} on {}\n",
            self.size.0,
            self.size.1,
            self.params.paths,
            self.params.cost.name(),
            self.repeat,
            self.engine
        )
    }

    pub fn text(&self) -> String {
        let Measured { stages, kernels, alone: (total, best), sustained } = &self.measured;
        let mut text = self.title();
        for (name, time) in stages {
            let share = self.measured.share(*time);
            let _ = writeln!(text, "  {name:<24}{:9.3} ms   {share:5.1} %", ms(*time));
        }
        if let Some((median, best)) = kernels {
            let name = "kernels alone";
            let _ =
                writeln!(text, "  {name:<24}{:9.3} ms   (best {:.3} ms)", ms(*median), ms(*best));
        }
        let of_pair = self.per_cell_and_path(*total);
        let of_paths = self.per_cell_and_path(self.measured.aggregation());
        let (total, best) = (ms(*total), ms(*best));
        let _ = writeln!(
            text,
            "  {:<24}{total:9.3} ms   (best {best:.3} ms, {:.1} pairs/s)",
            "pair to disparity",
            1e3 / total
        );
        if let Some(sustained) = sustained {
            let per_pair = sustained.ms();
            let _ = writeln!(
                text,
                "  {:<24}{per_pair:9.3} ms   ({:.1} pairs/s, over {} pairs)",
                format!("a pair, {} in flight", sustained.in_flight),
                1e3 / per_pair,
                sustained.pairs
            );
        }
        if let (Some(of_pair), Some(of_paths)) = (of_pair, of_paths) {
            let _ = writeln!(
                text,
                "  {:<24}{of_pair:9.4} ns   ({of_paths:.4} ns in aggregation and winner)",
                "a cell and path"
            );
        }
        if let Some(pixels) = self.verified {
            let _ = writeln!(text, "  identical with the reference ({pixels} pixels)");
        }
        text
    }
}

/// Formats several reports that differ in the multiprocessors alone, one per line.
pub fn table(reports: &[Report]) -> String {
    let mut text = reports.first().map(Report::title).unwrap_or_default();
    let _ = writeln!(
        text,
        "  multiprocessors   kernels alone            best   a pair in flight   pairs/s"
    );
    for report in reports {
        let part = report.multiprocessors.map_or("all".into(), |count| count.to_string());
        let (kernels, best) = report.measured.kernels.unwrap_or(report.measured.alone);
        let streamed = report.measured.sustained.as_ref().map_or(ms(kernels), Sustained::ms);
        let _ = writeln!(
            text,
            "  {part:>15}{:13.3} ms{:13.3} ms{streamed:16.3} ms{:10.1}",
            ms(kernels),
            ms(best),
            1e3 / streamed,
        );
        if let Some(pixels) = report.verified {
            let _ = writeln!(text, "  {:>15}  identical with the reference ({pixels} pixels)", "");
        }
    }
    text
}
