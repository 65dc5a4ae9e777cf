#!/usr/bin/env bash
# Sets up, builds, and runs stereod on the synthetic scene: in a window if there is a display, else
# headless with a lossless recording and a preview.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/demo.sh [--headless] [FLAGS OF `stereod run`]

Sets up this machine, builds stereod and runs it on the synthetic scene: in a window if there is a
display, else (or with --headless) into files in out/.
END
}

headless=no
flags=()
for argument in "$@"; do
    case $argument in
        --headless) headless=yes ;;
        -h | --help) usage; exit 0 ;;
        *) flags+=("$argument") ;;
    esac
done
if [[ -z ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; then headless=yes; fi

scripts/setup.sh
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
echo "demo: building (the first time takes some minutes)"
# Only what the demo shows, apart from the whole program in target/release.
if [[ $headless == no ]]; then features=window; else features=cli; fi
cargo build --profile demo --locked --no-default-features --features "$features"
stereod=${CARGO_TARGET_DIR:-target}/demo/stereod

mkdir -p out
if [[ $headless == no ]]; then
    echo "demo: opening a window; space pauses, c changes colours, l changes the view, q quits"
    "$stereod" run --demo --stats out/demo.json "${flags[@]}"
else
    echo "demo: no window, so the result goes into files"
    "$stereod" run --demo --headless --record out/demo.mkv --preview out/demo.mp4 \
        --stats out/demo.json "${flags[@]}"
    echo
    echo "demo: files in $PWD/out"
    echo "  demo.mkv   disparity without loss, 16-bit FFV1 (disparity * 256, 0 is unknown)"
    echo "  demo.json  statistics of the run (docs/statistics.md)"
    echo "  demo.mp4   left image and disparity in colours, for any player:"
    echo
    echo "open $PWD/out/demo.mp4"
fi
