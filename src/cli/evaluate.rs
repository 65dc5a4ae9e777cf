//! The flags of `stereod evaluate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::flags::{Common, Computation, FlagLayer, SettingFlags};
use stereod_core::settings::row::PICTURES;
use stereod_evaluate::submission::Benchmark;
use stereod_evaluate::table::{self, Layout};

pub(super) const EXAMPLES: &str = "\
Examples:
  stereod evaluate middlebury/ kitti2015/training/
  stereod evaluate teddy/ -d 60 --paths 4 --json -
  stereod evaluate middlebury/ eth3d/ --markdown table.md --errors wrong/
  stereod evaluate middlebury/ --noise 5 --seed 7
  stereod evaluate middlebury/ --even 128 --noise 1
  stereod evaluate middlebury/ --compare 'cost=census,ad,mi; paths=4,8' --latex table.tex
  stereod evaluate middlebury/ --noise 5 --compare 'seed=1,2,3; paths=4,8' --columns known,bad-1,ms --per-pair bad-1
  stereod evaluate middlebury/ --compare opencv                beside OpenCV, if python3 has cv2
  stereod evaluate kitti2015/testing/ --fill rays --fill-max 1023 --submission kitti -o upload/

A DATASET is a folder that is searched recursively for pairs of known disparity: folders with an \
item.json (docs/accuracy.md describes it), and those of Middlebury (2001 to 2006, 2014, 2021 and version 3), \
KITTI (2012 and 2015), ETH3D's two-view sets, DrivingStereo (half size), Booster and TartanAir as they are \
published. Each pair is matched with the range \
that its publisher gives, unless --disparities says otherwise. The report has each pair, and the means of \
each DATASET and of all.

Images of --errors: errors up to 0.5 px are dark green, 1 px green, 2 px yellow, 4 px orange, larger ones red. \
Pixels without a disparity are light blue if filling from the row would be right within 1 px, else violet. \
Pixels that only one camera sees are half as bright. Where the truth is not known, the left image is shown in grey.

Exit status: 0 done, 1 a pair could not be evaluated (the others are), 2 wrong usage or configuration.";

/// Arguments of `evaluate`.
#[derive(Clone, Debug, Args)]
pub struct EvaluateArgs {
    /// Folders that hold pairs with known disparity, or the item.json of one
    #[arg(value_name = "DATASET", required = true, value_hint = ValueHint::AnyPath)]
    pub datasets: Vec<PathBuf>,

    /// Write all figures as one JSON object; - is standard output, in place of the table
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the tables in Markdown; - is standard output, in place of the aligned ones
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,

    /// Write the tables as comma-separated values; - is standard output. With --per-pair also NAME-pairs.csv
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,

    /// Write the tables for LaTeX; - is standard output
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub latex: Option<PathBuf>,

    /// Compare settings: every combination of these values, such as 'cost=census,ad,mi; paths=4,8', with the
    /// means over all pairs; `opencv` in the list adds OpenCV's StereoSGBM, if python3 has cv2; `noise=0,5` varies the noise,
    /// and `seed=1,2,3` gives means and standard deviations over these seeds
    #[arg(long, value_name = "KEY=VALUES;...", conflicts_with_all = ["errors", "learn"])]
    pub compare: Option<String>,

    /// Columns of the tables and their order, such as known,bad-1,D1,ms [default: all in Markdown and CSV]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table::column)]
    pub columns: Vec<&'static str>,

    /// Add tables of this column with a row for each pair and a column for each combination
    #[arg(long, value_name = "COLUMN", requires = "compare", value_parser = table::column)]
    pub per_pair: Option<&'static str>,

    /// Explain the columns below the tables
    #[arg(long)]
    pub legend: bool,

    /// Write an image of each pair's errors into this folder, which is created if missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub errors: Option<PathBuf>,

    /// Write what the confidence is learnt from into this folder, which is created if missing; slow
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub learn: Option<PathBuf>,

    /// Write the disparity of each pair, also of those without truth, as the upload of this benchmark takes it
    #[arg(long, value_name = "BENCHMARK", requires = "output", conflicts_with = "compare")]
    pub submission: Option<Benchmark>,

    /// Folder for --submission, which is created if missing
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "submission")]
    pub output: Option<PathBuf>,

    /// Paint a quarter of the left image, and the same surfaces in the right one, with this grey level before
    /// noise is added: surfaces without texture
    #[arg(long, value_name = "GREY")]
    pub even: Option<u8>,

    /// Add Gaussian noise of this standard deviation in grey levels to both images
    #[arg(long, value_name = "SIGMA", value_parser = sigma)]
    pub noise: Option<f64>,

    /// Seed of the noise: the same seed gives the same noise on every machine [default: 1]
    #[arg(long, value_name = "N", requires = "noise")]
    pub seed: Option<u64>,

    /// How often each pair is matched; the median time counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    #[command(flatten)]
    pub pictures: SettingFlags<PICTURES>,

    #[command(flatten)]
    pub computation: Computation,

    #[command(flatten)]
    pub common: Common,
}

impl EvaluateArgs {
    /// Returns the choice of columns and tables.
    pub fn layout(&self) -> Layout {
        Layout { columns: self.columns.clone(), per_pair: self.per_pair, legend: self.legend }
    }

    pub fn flags(&self) -> FlagLayer {
        let mut layer = self.computation.flags();
        layer.add(&self.pictures);
        layer
    }
}

fn sigma(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(sigma) if (0.0..=255.0).contains(&sigma) => Ok(sigma),
        _ => Err("expected a number of grey levels from 0 to 255".into()),
    }
}
