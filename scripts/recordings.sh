#!/bin/sh
# Tests recordings of messages, written by other programs, and stereo networks, with the program in STEREOD_TEST_PROGRAM. Exits with 77
# if Python's packages cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/browser-tools
STEREOD_TEST_PROGRAM=$(realpath "${STEREOD_TEST_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/stereod}")
if [ ! -x "$STEREOD_TEST_PROGRAM" ]; then
    echo "recordings.sh: $STEREOD_TEST_PROGRAM is missing; build it, or set STEREOD_TEST_PROGRAM" >&2
    exit 1
fi
scripts/test_tools.sh || exit 77
export STEREOD_TEST_PROGRAM
exec "$tools/bin/python" -m pytest -p no:cacheprovider -ra tests/recordings tests/networks "$@"
