//! `stereod match`.

use super::Error;
use crate::cli::MatchArgs;

/// Runs the command.
///
/// # Errors
/// Always: this file is replaced when the branches are joined.
pub fn run(args: MatchArgs) -> Result<(), Error> {
    super::load(&args.common, args.flags())?;
    Err(anyhow::anyhow!("`stereod match` is not joined to the engine on this branch").into())
}
