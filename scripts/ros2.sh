#!/bin/sh
# Tests the messages of ROS 2 of the program in STEREOD_TEST_PROGRAM, built with the feature `ros2`, by ROS's own
# rclpy and by Cyclone DDS. Exits with 77 if Python's packages cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/ros2-tools
STEREOD_TEST_PROGRAM=$(realpath "${STEREOD_TEST_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/stereod}")
if [ ! -x "$STEREOD_TEST_PROGRAM" ]; then
    echo "ros2.sh: $STEREOD_TEST_PROGRAM is missing; build it with --features ros2, or set STEREOD_TEST_PROGRAM" >&2
    exit 1
fi
if ! "$tools/bin/python" -c "import cyclonedds, diagnostic_msgs, nav_msgs, numpy, PIL, pytest, rclpy, sensor_msgs, std_srvs, stereo_msgs" 2>/dev/null; then
    if ! { "$(scripts/python.sh venv ensurepip)" -m venv "$tools" && "$tools/bin/pip" install -q pytest numpy pillow cyclonedds \
        ros-kilted-rclpy ros-kilted-rmw-fastrtps-cpp ros-kilted-sensor-msgs ros-kilted-stereo-msgs ros-kilted-std-srvs \
        ros-kilted-diagnostic-msgs ros-kilted-nav-msgs; }; then
        echo "ros2.sh: rclpy is missing; it needs python3-venv, Python 3.10 to 3.13 and access to PyPI" >&2
        exit 77
    fi
fi
export STEREOD_TEST_PROGRAM
exec "$tools/bin/python" -m pytest -p no:cacheprovider -ra tests/ros2 "$@"
