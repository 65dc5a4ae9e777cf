#!/usr/bin/env bash
# Runs in the machine of faults_vm.sh: what each run says and how it ends goes into /host/out.
out=/host/out
cp /host/stereod /tmp/stereod

say() { echo "guest, $(cut -d. -f1 /proc/uptime) s: $*"; }
start() { # starts the cameras, with the variables of twocams
    # shellcheck disable=SC1091 # lies in the machine
    FMTS="mjpg yuyv" SIZES=320x240 FPS=15 . twocams usb /host/rec 2>/dev/null
}
end() { # ends the cameras
    kill "$CAML" "$CAMR" 2>/dev/null
    wait "$CAML" "$CAMR" 2>/dev/null
    udevadm settle
}
eye() { # DEVICE FORMAT
    case $2 in
        mjpg) echo "v4l2src device=$1 ! image/jpeg,width=320,height=240,framerate=15/1 ! jpegdec" ;;
        raw) echo "v4l2src device=$1 ! video/x-raw,format=YUY2,width=320,height=240,framerate=15/1" ;;
    esac
}
run() { # NAME FORMAT FLAGS...: starts the program
    name=$1 log=$out/$1.log
    local left right
    left=$(eye "$L" "$2") right=$(eye "$R" "$2")
    shift 2
    : >"$log"
    /tmp/stereod run --disparities 16 --cost ad --paths 4 --engine cpu --headless --stats - \
        --left "$left" --right "$right" "$@" >"$out/$name.json" 2>"$log" </dev/null &
    program=$!
    until_says 'matching on' 1
    sleep 5
}
stop() { # ends it as a service manager does
    kill -TERM "$program"
    wait "$program"
    echo $? >"$out/$name.rc"
    say "$name: $(cat "$out/$name.rc")"
}
says() { grep -c -e "$1" "$log"; }
until_says() { # TEXT TIMES
    local tries
    for tries in $(seq 600); do
        [ "$(says "$1")" -ge "$2" ] && return
        sleep 0.1
    done
    echo "waited in vain for $2 times: $1 ($tries tries)" | tee -a "$log"
}
measure() { # memory in KiB, threads, open files
    awk '/^VmRSS|^Threads/ {printf "%s ", $2}' /proc/"$program"/status
    find /proc/"$program"/fd | wc -l
}

replug() {
    start
    local record=() i side lost=0
    gst-inspect-1.0 avenc_ffv1 >/dev/null 2>&1 && record=(--record "$out/replug.mkv")
    run replug mjpg "${record[@]}"
    for i in $(seq "${CYCLES:-5}"); do
        case $((i % 3)) in 0) side="left right" ;; 1) side=left ;; *) side=right ;; esac
        for s in $side; do echo unplug >/run/cam."$s"; lost=$((lost + 1)); done
        until_says 'camera lost' $lost
        sleep 1
        for s in $side; do echo plug >/run/cam."$s"; done
        until_says 'camera is back' $lost
        sleep 3
        measure >>"$out/replug.sizes"
        say "replug $i, $side: $(tail -1 "$out/replug.sizes")"
    done
    echo $lost >"$out/replug.lost"
    find /proc/"$program"/fd -printf '%l\n' | sed 's/[0-9]*\]$/]/' | sort | uniq -c >"$out/replug.files"
    stop
    end
}
faults() {
    start
    run faults mjpg
    echo 'stall 5000' >/run/cam.left
    until_says 'left camera is back' 1
    sleep 3
    echo 'cut 20' >/run/cam.right
    sleep 4
    echo 'drop 20' >/run/cam.left
    sleep 4
    stop
    end
}
raw() {
    start
    run raw raw
    echo 'cut 10' >/run/cam.left
    sleep 4
    stop
    end
}
phase() {
    RIGHT="-o 33" start
    run phase mjpg
    sleep 15
    stop
    end
}
skew() {
    LEFT="-p -200 -j 500" RIGHT="-p 200 -o 5 -j 500" start
    run skew mjpg
    sleep 35
    stop
    end
}

[ $# -gt 0 ] || set -- replug faults raw phase skew
for case; do "$case"; done
