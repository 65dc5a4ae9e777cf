//! `stereod run`.

use super::Error;
use crate::cli::RunArgs;

/// Runs the command.
///
/// # Errors
/// Always: this file is replaced when the branches are joined.
pub fn run(args: RunArgs) -> Result<(), Error> {
    super::load(&args.common, args.flags())?;
    Err(anyhow::anyhow!("`stereod run` is not joined to the engine on this branch").into())
}
