#!/usr/bin/env bash
# Packages or publishes the crates. Cargo takes only what lies in a crate's folder, so a clone of the repository gets the
# licences in each crate, and kernels and shaders in that of the core.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="Usage: scripts/crates.sh package|publish [OPTION...]
  Runs \`cargo package\` or \`cargo publish\` with these options, such as --dry-run, for the six crates of the
  last commit. Packages are written to target/package, or to package/ in CARGO_TARGET_DIR."
case ${1:-} in
    package | publish) ;;
    -h | --help) echo "$usage" && exit 0 ;;
    *) echo "$usage" >&2 && exit 2 ;;
esac

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone --quiet . "$clone"
cd "$clone"
for crate in core calibration obstacles map io evaluate; do cp LICENSE-* "src/$crate"; done
mkdir src/core/shaders
cp -r kernels src/core
cp -r shaders/matching src/core/shaders
# The copies are what Git does not know.
cargo "$1" --locked --workspace --exclude stereod-python --allow-dirty "${@:2}"
