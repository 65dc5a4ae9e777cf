//! Arguments that images and streams share.

use std::path::PathBuf;

use super::super::{Error, inputs};
use crate::board::detect::Detector;
use crate::cli::calibrate::CalibrateArgs;
use crate::settings::Loaded;
use stereod_core::calibration::board::Board;
use stereod_core::calibration::solve::Options;

/// Refuses outputs that are inputs, too.
pub(super) fn refuse_inputs(
    args: &CalibrateArgs,
    loaded: &Loaded,
    sources: impl IntoIterator<Item = PathBuf>,
) -> Result<(), Error> {
    let inputs = inputs(loaded, sources);
    let outputs = [Some(&args.output), args.json.as_ref()];
    outputs.into_iter().flatten().try_for_each(|output| inputs.refuse(output)).map_err(Error::Usage)
}

pub(super) fn options(args: &CalibrateArgs) -> Options {
    Options { model: args.model, keep_all: args.keep_all }
}

pub(super) fn detector(args: &CalibrateArgs, board: Board) -> Detector {
    Detector::new(board).with_window(args.corner_window.map(usize::from))
}
