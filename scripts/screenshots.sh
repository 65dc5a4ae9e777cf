#!/usr/bin/env bash
# Draws the pictures of the window in docs/images anew, off-screen from the built-in scene, and translates
# shaders/points.wgsl for the page (page/space.js). Needs a graphics driver (mesa-vulkan-drivers suffices). The same
# tests, without the variable, compare them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
STEREOD_WRITE_DOCS=1 cargo test --locked --lib -- run::picture_tests:: window::renderer:: --nocapture
ls -l docs/images/{window,points,wipe,help,panel,timeline}.jpg
