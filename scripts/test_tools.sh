#!/bin/sh
# Makes the virtual environment of the tests that need Python's packages: recordings, networks, the live page, and OpenCV for
# comparisons and the simulated cameras. One for all, because most of the time goes into fetching and unpacking. Fails if
# the packages cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/browser-tools
if "$tools/bin/python" -c "import cv2, foxglove, jsonschema, laspy, lz4, mcap, mcap_ros2, numpy, onnx, onnxruntime, PIL, playwright, plyfile, pymavlink, pypcd4, pytest, rosbags" 2>/dev/null; then
    exit 0
fi
if ! { "$(scripts/python.sh venv ensurepip)" -m venv "$tools" && "$tools/bin/pip" install -q playwright pytest jsonschema \
    numpy onnx onnxruntime opencv-python-headless pillow mcap mcap-ros2-support rosbags foxglove-sdk laspy plyfile pymavlink pypcd4; }; then
    echo "test_tools.sh: Python's packages are missing; they need python3-venv and access to PyPI" >&2
    exit 1
fi
