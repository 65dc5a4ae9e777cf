#!/usr/bin/env bash
# shellcheck disable=SC2317 # the cases are called by their names
# Runs in the machine of camera_vm.sh; output and exit status of each run go to /host/out.
out=/host/out
# Emulated processors are slow, and the cameras are tested here, not the matcher.
small=(--disparities 16 --cost ad --paths 4 --engine cpu --headless --set matching.left_right=off
    --set matching.median=0)
unwatched=(--set alignment.check=false)

# shellcheck disable=SC1091 # lies in the machine
. /host/vm_guest.sh

# try NAME COMMAND...: keeps its output, log and exit status. Runs that an earlier boot finished are skipped.
try() {
    local name=$1
    shift
    if [ -e "$out/$name.rc" ]; then return; fi
    timeout 120 "$@" >"$out/$name.out" 2>"$out/$name.log" </dev/null
    echo $? >"$out/$name.rc"
    echo "guest: $name: $(cat "$out/$name.rc"), up $(cut -d' ' -f1 /proc/uptime) s"
}
play() { # NAME FRAMES FLAGS...
    local name=$1 frames=$2
    shift 2
    try "$name" /tmp/stereod run "${small[@]}" --frames "$frames" --stats - "$@"
}
start() { # FOLDER, with the variables of twocams
    # shellcheck disable=SC1091 # lies in the machine
    . twocams usb "$1" 2>/dev/null
}
end() {
    kill "$CAML" "$CAMR" 2>/dev/null
    wait "$CAML" "$CAMR" 2>/dev/null
    udevadm settle
}
node() { readlink -f "$1"; }
# Reads and sets every control of two cameras in the way of the window's panel.
adjust() { # NAME CAMERA CAMERA
    if [ -e /host/unit_tests ]; then
        try "adjusted_$1" env STEREOD_TEST_CAMERAS="$2 $3" /host/unit_tests --nocapture \
            --exact source::v4l2::adjust::tests::controls_of_real_cameras_are_read_and_set
    fi
}

cp /host/stereod /tmp/stereod
# Names of both cameras by their ports.
by_path() { find /dev/v4l/by-path -lname "*/$(basename "$(node "$1")")" | head -1; }

list() {
    try none /tmp/stereod devices
    start /host/rec
    try devices /tmp/stereod devices
    try devices_json /tmp/stereod devices --json
    try devices_controls /tmp/stereod devices --controls
    try listed_controls v4l2-ctl -d "$L" --list-ctrls
    adjust usb "$L" "$R"
    end
}
formats() {
    local format
    start /host/rec
    play auto 15 "${unwatched[@]}" --left "$(node "$L")" --right "$(by_path "$R")"
    for format in grey yuyv mjpg; do
        play "${format}_320x240" 60 "${unwatched[@]}" --left "$L" --right "$R" --format "$format" --size 320x240
        play "${format}_640x480" 15 "${unwatched[@]}" --left "$L" --right "$R" --format "$format" --size 640x480 --rate 15
    done
    end
}
swap() {
    start /host/rec
    play swap 150 --left "$L" --right "$R" --size 320x240 --rate 15 --swap
    play unswapped 150 --left "$L" --right "$R" --size 320x240 --rate 15
    end
}
refusals() {
    local holder
    start /host/rec
    play missing 5 --left /dev/video77 --right "$R"
    play same 5 --left "$L" --right "$(by_path "$L")"
    play metadata 5 --left "${L%0}1" --right "$R"
    play unoffered 5 --left "$L" --right "$R" --size 800x600
    v4l2-ctl -d "$L" --stream-mmap --stream-to=/dev/null >/dev/null 2>&1 &
    holder=$!
    sleep 2
    try busy_devices /tmp/stereod devices
    play busy 5 --left "$L" --right "$R"
    kill "$holder"
    wait "$holder" 2>/dev/null
    chmod 755 /tmp/stereod
    try forbidden env HOME=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups \
        /tmp/stereod run "${small[@]}" --left "$L" --right "$R" --frames 5
    end
}
calibrated() {
    SIZES=752x480 FMTS=grey FPS=10 start /host/raw
    mkdir "$out/calibrated_pictures"
    # With the default cost, because the views of real cameras differ in brightness.
    try calibrated /tmp/stereod run --headless --engine cpu --disparities 48 --frames 6 \
        --left "$L" --right "$R" --rate 10 --calibration /host/calibration --depth \
        --pictures "$out/calibrated_pictures" --stats -
    end
}
# A camera that is plugged in only after the start.
late() {
    start /host/rec
    echo unplug >/run/cam.right
    sleep 2
    (sleep 6; echo plug >/run/cam.right) &
    play late 30 "${unwatched[@]}" --left "$L" --right "$R" --size 320x240 --rate 15 --set source.wait_s=90
    wait $!
    end
}
# Make, model and serial number alike: only the port tells the cameras apart.
twins() {
    local port
    LEFT="-s SAME -n Twin" RIGHT="-s SAME -n Twin" FMTS=grey SIZES=320x240 start /host/rec
    try twins /tmp/stereod devices
    # Their ports are those of the cameras before them.
    port=/dev/v4l/by-path/platform-vhci_hcd.0-usb-0
    play twins_run 60 "${unwatched[@]}" --left "$port:1:1.0-video-index0" --right "$port:2:1.0-video-index0"
    end
}
halves() {
    SIZES=640x240 FMTS="grey mjpg" FPS=30 start /host/halves
    play halves 60 "${unwatched[@]}" --side-by-side "$L"
    play halves_size 30 "${unwatched[@]}" --side-by-side "$L" --size 320x240 --format mjpg
    end
}
# The kernel's test camera has more formats, and controls.
vivid() {
    local vivid other format
    modprobe vivid n_devs=2 node_types=0x1,0x1 2>/dev/null
    udevadm settle
    # shellcheck disable=SC2046 # two names without spaces
    set -- $(grep -l vivid /sys/class/video4linux/video*/name | xargs -n 1 dirname | xargs -n 1 basename)
    vivid=/dev/$1 other=/dev/$2
    try vivid_devices /tmp/stereod devices
    try vivid_json /tmp/stereod devices --json
    try vivid_listed v4l2-ctl -d "$vivid" --list-ctrls
    adjust vivid "$vivid" "$other"
    for format in nv12 uyvy; do
        play "vivid_$format" 20 "${unwatched[@]}" --side-by-side "$vivid" --format "$format" --size 160x180 --rate 25
    done
    play vivid_controls 20 "${unwatched[@]}" --side-by-side "$vivid" --size 160x180 --set camera.gain=100000 \
        --set camera.focus=3
    play vivid_set 20 "${unwatched[@]}" --side-by-side "$vivid" --size 160x180 --set camera.gain=77
    try vivid_gain v4l2-ctl -d "$vivid" -C gain
    v4l2-ctl -d "$other" -c gain_automatic=1
    (sleep 4; v4l2-ctl -d "$vivid" -c gain=99) &
    play vivid_follow 200 "${unwatched[@]}" --left "$vivid" --right "$other" --size 320x180 --rate 25 \
        --set camera.exposure_from=left
    wait $!
    try vivid_followed v4l2-ctl -d "$other" -C gain,gain_automatic
}

for case in "$@"; do "$case"; done
exit 0
