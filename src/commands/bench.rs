//! `stereod bench`.

use super::Error;
use crate::cli::BenchArgs;

/// Runs the command.
///
/// # Errors
/// Always: this file is replaced when the branches are joined.
pub fn run(args: BenchArgs) -> Result<(), Error> {
    super::load(&args.common, args.flags())?;
    Err(anyhow::anyhow!("`stereod bench` is not joined to the engine on this branch").into())
}
