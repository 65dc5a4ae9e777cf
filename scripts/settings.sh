#!/usr/bin/env bash
# Writes config/default.toml and the table of presets in docs/settings.md anew from the table of settings
# (src/settings). The same tests, without the variable, compare them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
STEREOD_WRITE_DOCS=1 cargo test --locked --lib -- settings::tests::written
