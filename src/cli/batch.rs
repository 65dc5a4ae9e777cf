//! The flags of `stereod batch`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, UnknownArgumentValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueHint};
use toml::Value;

use super::RigFlags;
use super::flags::{Common, FlagLayer, SettingFlags, parser};
use super::source::TopicArgs;
use crate::outputs::{OUTPUTS, of_batch};
use stereod_core::settings::row::{ENGINE, MATCHING, PICTURES};

pub(super) const EXAMPLES: &str = "\
Examples:
  stereod batch drives/ --out disparity/                       all recordings of a folder
  stereod batch drives.txt --out disparity/ --shard 3/8        the third of eight parts
  stereod batch drives.txt --out disparity/ --shard auto       the part of this Slurm task
  stereod batch drives.txt --out disparity/ --shard auto/64    the part of this pod of 64
  stereod batch drives.txt --out disparity/ --shard 3/8 --dry-run
  stereod batch missing disparity/                             shards to start again: 3,7-9
  stereod batch status disparity/                              pieces, rate and time left
  stereod batch verify disparity/
  stereod batch merge disparity/ -o joined/

LIST has one input a line: a recording of messages, two videos or patterns of images (left, then right, with \
a space or a tab between them), or with --side-by-side or --top-bottom one video. Names count from the folder \
of LIST. FOLDER stands for all recordings of messages in it, and all pairs of videos whose names differ in \
left and right, cam0 and cam1 or the like. Long inputs are cut into pieces of --piece pairs. DIR has a folder \
for each piece, which appears when the piece is complete; run.json pins inputs, settings and version. A piece \
that is there is not made again.

Exit status: 0 done, or nothing to do; 1 failed, a retry may help; 2 wrong usage or configuration; 3 an input \
is missing or damaged, a retry does not help; 130 or 143 if a signal ended it. docs/clusters.md has scripts \
for Slurm, Kubernetes, Ray and GNU parallel.";

/// Flags of `run` that a batch does not have besides those of outputs, and what it has in their place.
static OF_RUN: [(&str, &[&str]); 2] = [
    (
        "a batch matches whole recordings, and --piece N cuts them into pieces of N pairs; `stereod run` matches a part",
        &["frames", "start", "duration"],
    ),
    ("the inputs are the lines of LIST, or the recordings in FOLDER", &["left", "right", "demo"]),
];

/// Options of a batch in place of the flags of outputs.
const OF_OUTPUTS: &str =
    "--write record,pictures,... chooses the outputs, which go into the folder of --out";

/// Names the flags of `run` in the errors about them. Takes no values.
#[derive(Clone, Debug)]
pub struct FlagsOfRun;

impl Args for FlagsOfRun {
    fn augment_args(command: Command) -> Command {
        let all = OF_RUN.iter().flat_map(|(tip, flags)| flags.iter().map(|flag| (*tip, *flag)));
        let outputs = OUTPUTS.iter().filter(|output| output.flag.starts_with("--"));
        let all = all.chain(outputs.map(|output| (OF_OUTPUTS, output.name())));
        let arg = |(tip, flag): (&'static str, &'static str)| {
            let parser = UnknownArgumentValueParser::suggest(tip);
            let arg = Arg::new(flag).long(flag).hide(true);
            arg.num_args(0..=1).default_missing_value("").value_parser(parser)
        };
        command.args(all.map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FlagsOfRun {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

/// Arguments of `batch`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BatchArgs {
    #[command(subcommand)]
    pub command: Option<BatchCommand>,

    /// Text file with one input a line, or folder of recordings
    #[arg(value_name = "LIST|FOLDER", required = true, value_hint = ValueHint::AnyPath)]
    pub list: Option<PathBuf>,

    /// Folder for the results; created if missing, and shared by all shards
    #[arg(long, value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Outputs of each piece
    #[arg(long, value_name = "OUTPUT,...", value_delimiter = ',', default_value = "record")]
    #[arg(value_parser = PossibleValuesParser::new(of_batch().map(|(name, ..)| name)))]
    pub write: Vec<String>,

    /// Work on part I of N; `auto` takes it from the environment of Slurm (SLURM_ARRAY_TASK_ID) or Kubernetes
    /// (JOB_COMPLETION_INDEX), and N from Slurm, from the first call for DIR, or from `auto/N`
    #[arg(long, value_name = "I/N|auto[/N]", help_heading = "Shards")]
    pub shard: Option<Shard>,

    /// Number of the first shard [default: 1; with `auto` that of the array]
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u64).range(0..=1))]
    #[arg(help_heading = "Shards", requires = "shard")]
    pub shard_base: Option<u64>,

    /// Cut inputs into pieces of about N pairs; 0: whole inputs
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = "Shards")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub piece: u64,

    /// Match N pairs before each piece as well, without writing them; needed if inputs are cut and a stage
    /// remembers earlier pairs (--temporal, --steady, --cost mi)
    #[arg(long, value_name = "N", help_heading = "Shards", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub run_in: Option<u64>,

    /// End a piece as failed if it takes longer than this many seconds, because its input hangs; the others are made
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(help_heading = "Shards", hide_short_help = true)]
    pub time_limit: Option<u64>,

    /// List the pieces of this shard and their state, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Replace results of other settings, another version or other inputs
    #[arg(long)]
    pub force: bool,

    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,

    /// Videos with the left view in their left half
    #[arg(long, conflicts_with = "top_bottom", help_heading = "Source")]
    pub side_by_side: bool,

    /// Videos with the left view in their upper half
    #[arg(long, help_heading = "Source", hide_short_help = true)]
    pub top_bottom: bool,

    #[command(flatten)]
    pub topics: TopicArgs,

    /// Exchange the views
    #[arg(long, help_heading = "Source")]
    pub swap: bool,

    #[command(flatten, next_help_heading = "Source")]
    pub pictures: SettingFlags<PICTURES>,

    /// Largest time difference between the two frames of a pair, in milliseconds, or `auto`
    #[arg(long, value_name = "MS", value_parser = parser("source", "tolerance_ms"))]
    #[arg(help_heading = "Source", hide_short_help = true)]
    pub tolerance: Option<Value>,

    /// Milliseconds that are added to the right view's times, or `auto`
    #[arg(long, value_name = "MS", value_parser = parser("source", "offset_ms"))]
    #[arg(help_heading = "Source", hide_short_help = true, allow_negative_numbers = true)]
    pub offset: Option<Value>,

    /// Format of pictures
    #[arg(long, value_name = "FORMAT", value_parser = parser("output", "pictures_format"))]
    #[arg(help_heading = "Output", hide_short_help = true)]
    pub pictures_format: Option<Value>,

    /// Content of previews
    #[arg(long, value_name = "VIEW", value_parser = parser("output", "preview_view"))]
    #[arg(help_heading = "Output", hide_short_help = true)]
    pub preview_view: Option<Value>,

    /// Topics of MCAP files
    #[arg(long, value_name = "TOPICS", value_parser = parser("output", "mcap"))]
    #[arg(help_heading = "Output", hide_short_help = true)]
    pub mcap: Option<Value>,

    #[command(flatten)]
    pub rig: RigFlags,

    #[command(flatten, next_help_heading = "Matching")]
    pub matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    pub compute: SettingFlags<ENGINE>,

    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub of_run: FlagsOfRun,
}

impl BatchArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        layer.put("source", "swap", "--swap", self.swap.then_some(true));
        layer.add(&self.pictures);
        layer.put("source", "tolerance_ms", "--tolerance", self.tolerance.clone());
        layer.put("source", "offset_ms", "--offset", self.offset.clone());
        layer.put("output", "pictures_format", "--pictures-format", self.pictures_format.clone());
        layer.put("output", "preview_view", "--preview-view", self.preview_view.clone());
        layer.put("output", "mcap", "--mcap", self.mcap.clone());
        self.rig.lay(&mut layer);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}

/// Work on the results of a batch.
#[derive(Clone, Debug, Subcommand)]
pub enum BatchCommand {
    /// Print the shards that have something to do, as an array expression: 3,7-9; nothing if all is done
    Missing {
        /// Folder of the results
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Number of shards [default: that of the first call for DIR]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        shards: Option<u64>,
        /// Number of the first shard
        #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u64).range(0..=1))]
        shard_base: Option<u64>,
        #[command(flatten)]
        common: Common,
    },
    /// Print how many pieces and pairs are done, the rate and the time left
    Status {
        /// Folder of the results
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Check that every piece is there once and unchanged
    Verify {
        /// Folder of the results
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Remove the folders of damaged pieces, so that the batch makes them again; not those with other files
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Join the pieces of each input, without loss
    Merge {
        /// Folder of the results
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Folder with a folder for each input; or one file, OUT.mkv or OUT.mcap, if there is one input
        #[arg(short, long, value_name = "OUT", value_hint = ValueHint::AnyPath)]
        output: PathBuf,
        #[command(flatten)]
        common: Common,
    },
}

/// Part of a batch, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// A number and the number of shards.
    Given(u64, u64),
    /// By the environment; the number of shards may be given.
    Auto(Option<u64>),
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a number of all, such as 3/8, or auto, or auto/N".to_owned();
        let number = |text: &str| text.parse::<u64>().ok();
        let count = |text: &str| number(text).filter(|&count| (1..1 << 32).contains(&count));
        match text.split_once('/') {
            None if text == "auto" => Ok(Shard::Auto(None)),
            None => Err(wrong()),
            Some(("auto", all)) => count(all).map(|all| Shard::Auto(Some(all))).ok_or_else(wrong),
            Some((shard, all)) => {
                let given = number(shard).zip(count(all));
                given.map(|(shard, all)| Shard::Given(shard, all)).ok_or_else(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_run_are_refused_with_what_a_batch_has_instead() {
        #[derive(clap::Parser, Debug)]
        struct Only {
            #[command(flatten)]
            _args: BatchArgs,
        }
        for (flag, tip) in [("--frames=9", "--piece"), ("--record", "--write"), ("--left", "LIST")]
        {
            let arguments = ["x", "list.txt", "--out", "o", flag];
            let error = <Only as clap::Parser>::try_parse_from(arguments).unwrap_err().to_string();
            assert!(error.contains("unexpected argument") && error.contains(tip), "{error}");
        }
    }

    #[test]
    fn shards_are_parsed() {
        assert_eq!("3/8".parse(), Ok(Shard::Given(3, 8)));
        assert_eq!("0/1".parse(), Ok(Shard::Given(0, 1)));
        assert_eq!("auto".parse(), Ok(Shard::Auto(None)));
        assert_eq!("auto/64".parse(), Ok(Shard::Auto(Some(64))));
        for wrong in ["", "3", "3/", "/8", "3/0", "-1/8", "a/8", "auto/", "auto/0", "1/2/3", "Auto"]
        {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
