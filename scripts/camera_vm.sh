#!/usr/bin/env bash
# Tests cameras without hardware: two simulated USB cameras in a small virtual machine, served by the
# kernel's own drivers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/camera_vm.sh TOOLS LEFT RIGHT BOTH [CASE...]

TOOLS  folder of the virtual machine's tools (run.sh, make_recording.py, twocams)
LEFT   rectified video of the left view, RIGHT of the right one, BOTH of both side by side
CASE   any of: list formats swap refusals late twins halves vivid (default: all), and calibrated: raw
       cameras with their calibration (RAW_LEFT, RAW_RIGHT: videos of 752x480 pixels, CALIBRATION: a file)

Environment: IMG, the machine's image as run.sh takes it; BIN, the program (target/debug/stereod);
KEEP, a folder for the files of the runs;
UNIT_TESTS, the executable of the unit tests (cargo test --lib --no-run), which set the cameras' controls.
END
}

if [[ $# -lt 4 ]]; then usage >&2; exit 2; fi
tools=$1 left=$2 right=$3 both=$4
shift 4
if [[ $# -eq 0 ]]; then set -- list formats swap refusals late twins halves vivid; fi
. scripts/vm.sh
prepare_machine scripts/camera_vm_guest.sh
"$python" "$tools/make_recording.py" "$left" "$right" "$share/rec"
"$python" "$tools/make_recording.py" "$both" "$both" "$share/halves" --sizes 640x240
if [[ " $* " == *" calibrated "* ]]; then
    "$python" "$tools/make_recording.py" "$RAW_LEFT" "$RAW_RIGHT" "$share/raw" --sizes 752x480
    cp "$CALIBRATION" "$share/calibration"
fi
if [[ -n ${UNIT_TESTS:-} ]]; then strip -o "$share/unit_tests" "$UNIT_TESTS"; fi
in_machine "$tools" $((200 + 100 * $#)) "bash /host/guest.sh $*"
conclude_machine scripts/camera_vm_check.py "$share/out" "$@"
