#!/bin/sh
# Tests recordings of messages, written by other programs, with the program in STEREOD_TEST_PROGRAM. Exits with 77
# if Python's packages cannot be fetched. Shares its virtual environment with browser.sh.
set -eu
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/browser-tools
STEREOD_TEST_PROGRAM=$(realpath "${STEREOD_TEST_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/stereod}")
if [ ! -x "$STEREOD_TEST_PROGRAM" ]; then
    echo "recordings.sh: $STEREOD_TEST_PROGRAM is missing; build it, or set STEREOD_TEST_PROGRAM" >&2
    exit 1
fi
if ! "$tools/bin/python" -c "import cv2, foxglove, jsonschema, laspy, lz4, mcap, mcap_ros2, numpy, PIL, plyfile, pypcd4, pytest, rosbags" 2>/dev/null; then
    if ! { "$(scripts/python.sh venv ensurepip)" -m venv "$tools" && "$tools/bin/pip" install -q pytest jsonschema numpy opencv-python-headless pillow mcap mcap-ros2-support rosbags foxglove-sdk laspy plyfile pypcd4; }; then
        echo "recordings.sh: rosbags is missing; it needs python3-venv and access to PyPI" >&2
        exit 77
    fi
fi
export STEREOD_TEST_PROGRAM
exec "$tools/bin/python" -m pytest -p no:cacheprovider -ra tests/recordings "$@"
