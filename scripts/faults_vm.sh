#!/usr/bin/env bash
# Tests camera faults without hardware: two simulated USB cameras in a small virtual machine are
# unplugged, fall silent, send half frames, lose frames, and run at clocks of their own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'END'
Usage: scripts/faults_vm.sh TOOLS LEFT RIGHT [CASE...]

TOOLS  folder of the virtual machine's tools (run.sh, make_recording.py, twocams)
LEFT   rectified video of the left eye, RIGHT of the right one
CASE   any of: replug faults raw phase skew ports (default: all), hour (with MINUTES and CYCLES),
       killed (with gstreamer1.0-libav)

Environment: IMG, the machine's image as run.sh takes it (with gstreamer1.0-libav a recording is made
and read, too); BIN, the program (target/debug/stereod); CYCLES, how often to replug (5; 100 takes
about half an hour); MINUTES, how long the hour is (60); FPS, of the cameras (15; 5 where the
machine has other things to do); KEEP, a folder for what the runs wrote.
END
}

if [[ $# -lt 3 ]]; then usage >&2; exit 2; fi
tools=$1 left=$2 right=$3
shift 3
cycles=${CYCLES:-5} minutes=${MINUTES:-60}
. scripts/vm.sh
prepare_machine scripts/faults_vm_guest.sh
"$python" "$tools/make_recording.py" "$left" "$right" "$share/rec" --sizes 320x240
mkdir "$share/exchanged"
for file in "$share"/rec/left_*; do
    name=$(basename "$file")
    cp "$file" "$share/exchanged/right_${name#left_}"
    cp "$share/rec/right_${name#left_}" "$share/exchanged/$name"
done
in_machine "$tools" $((400 + 20 * cycles + 60 * minutes)) \
    "CYCLES=$cycles MINUTES=$minutes FPS=${FPS:-15} bash /host/guest.sh $*"
CYCLES=$cycles conclude_machine scripts/faults_vm_check.py "$share/out"
